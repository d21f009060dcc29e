//! Saved conversations, on the demo model: whatever a reply is in the middle of, it goes on with
//! the very piece that would have come next; what is damaged or foreign changes nothing.

#[path = "support/temp.rs"]
mod temp;

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use qwen35::conversation::{Conversation, ConversationOptions, Piece};
use qwen35::sampling::SamplingOptions;
use qwen35::session::SaveOptions;
use qwen35::tokenizer::AddedTokens;
use qwen35::{ErrorKind, Model, ModelOptions, Session, SessionOptions, WeightFormat};
use temp::TempDir;

const ALL: SaveOptions = SaveOptions { without_marks: false };
const TOOLS: &str = r#"[{"type": "function", "function": {"name": "weather", "parameters": {
    "type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}}}}]"#;

fn model() -> Model {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/demo-model");
    Model::open(&path, &ModelOptions { threads: 1, ..ModelOptions::default() }).unwrap()
}

fn session(model: &Model, sampling: SamplingOptions) -> Session {
    Session::new(model, SessionOptions { sampling, ..SessionOptions::default() }).unwrap()
}

type Script = Arc<Mutex<VecDeque<u32>>>;

/// A session that answers what is in the script.
fn scripted(model: &Model, script: VecDeque<u32>) -> (Session, Script) {
    let script = Arc::new(Mutex::new(script));
    let next = Arc::clone(&script);
    let end = model.tokenizer().token_id("<|im_end|>").unwrap();
    let mut session = session(model, SamplingOptions::greedy());
    session.set_logits_hook(Some(Box::new(move |logits, _| {
        let token = next.lock().unwrap().pop_front().unwrap_or(end);
        logits.fill(f32::NEG_INFINITY);
        logits[token as usize] = 0.0;
        ControlFlow::Continue(())
    })));
    (session, script)
}

fn ids(model: &Model, text: &str) -> VecDeque<u32> {
    let mut ids = Vec::new();
    model.tokenizer().encode(text, AddedTokens::Honour, &mut ids);
    ids.into()
}

/// The pieces that are still to come, each as it comes.
fn rest(talk: &mut Conversation, session: &mut Session) -> Vec<Piece> {
    let mut pieces = Vec::new();
    loop {
        let piece = talk.next(session).unwrap();
        let ended = matches!(piece, Piece::End(_));
        pieces.push(piece);
        if ended {
            return pieces;
        }
    }
}

#[test]
fn a_reply_goes_on_from_every_token() {
    let model = model();
    let call = "<tool_call>\n<function=weather>\n<parameter=city>\nKöln 😀\n</parameter>\n\
                <parameter=days>\n3\n</parameter>\n</function>\n</tool_call>";
    let stop = vec!["STOP HERE".to_owned(), "\n\n\n".to_owned()];
    for (reply, thinking, thinking_budget, max_tokens) in [
        ("Hm 😀 👩‍👧.\n</think>\n\nHello 👩‍👧, नमस्ते!".to_owned(), true, 0, 0),
        (format!("Look.\n\n{call}\n{call}"), false, 0, 0),
        (format!("So.\n</think>\n\n{call} and text"), true, 0, 0),
        ("So far STOP HE, no, STOP HERE and no further".to_owned(), false, 0, 0),
        ("on and on and on and on and on".to_owned(), true, 4, 0),
        ("more than there is room for 😀😀😀😀".to_owned(), false, 0, 9),
    ] {
        let options = ConversationOptions {
            system: Some("You are brief.".into()),
            thinking: Some(thinking),
            thinking_budget,
            max_tokens,
            tools: Some(TOOLS.into()),
            stop: stop.clone(),
            ..ConversationOptions::default()
        };
        let (mut session, script) = scripted(&model, ids(&model, &reply));
        let mut talk = Conversation::new(&model, options).unwrap();
        talk.enqueue_text(&mut session, "Go on, please.").unwrap();
        let mut expected: Vec<Piece> = Vec::new();
        let mut saved = Vec::new();
        let mut stood = (usize::MAX, 0);
        loop {
            // In the prompt, then at each token; by steps, which stop in between.
            let stands = (session.position(), session.remaining());
            if stands != stood {
                let bytes = talk.save_to_memory(&session, ALL).unwrap();
                saved.push((bytes, script.lock().unwrap().clone(), expected.len()));
                stood = stands;
            }
            if let Some(piece) = talk.step(&mut session, Duration::ZERO).unwrap() {
                let ended = matches!(piece, Piece::End(_));
                expected.push(piece);
                // Between two pieces, too.
                let bytes = talk.save_to_memory(&session, ALL).unwrap();
                saved.push((bytes, script.lock().unwrap().clone(), expected.len()));
                if ended {
                    break;
                }
            }
        }
        assert!(saved.len() > 10, "{}", saved.len());
        let history = talk.history();
        let resumable = talk.resume(&session).is_ok();
        let more = if resumable { rest(&mut talk, &mut session) } else { Vec::new() };
        for (bytes, script, given) in saved {
            let (mut other, _) = scripted(&model, script);
            // What it was before leaves no trace.
            let mut again = Conversation::new(&model, ConversationOptions::default()).unwrap();
            again.add_text("user", "Something else");
            again.restore_from_memory(&mut other, &bytes).unwrap();
            if given < expected.len() {
                assert_eq!(rest(&mut again, &mut other), expected[given..], "{reply:?}");
            } else {
                assert_eq!(again.finish().map(|f| Piece::End(f.clone())).as_ref(), expected.last());
            }
            assert_eq!(again.history(), history);
            assert_eq!(again.resume(&other).is_ok(), resumable);
            if resumable {
                assert_eq!(rest(&mut again, &mut other), more);
            }
            assert_eq!(other.tokens(), session.tokens());
        }
    }
}

/// Replies of the model's own, chosen at random, with penalties over the output.
#[test]
fn the_models_own_replies_go_on_too() {
    let model = model();
    for thinking in [false, true] {
        let sampling = SamplingOptions { seed: Some(5), ..SamplingOptions::default() };
        let mut original = session(&model, sampling);
        let options = ConversationOptions {
            thinking: Some(thinking),
            thinking_budget: 12,
            max_tokens: 40,
            ..ConversationOptions::default()
        };
        let mut talk = Conversation::new(&model, options.clone()).unwrap();
        talk.send_text(&mut original, "Tell me about rivers, please.").unwrap();
        let (mut saved, mut expected) = (Vec::new(), Vec::new());
        while !matches!(expected.last(), Some(Piece::End(_))) {
            saved.push(talk.save_to_memory(&original, ALL).unwrap());
            expected.push(talk.next(&mut original).unwrap());
        }
        assert!(saved.len() > 5);
        for (given, bytes) in saved.iter().enumerate() {
            let mut other = session(&model, SamplingOptions::greedy());
            let mut again = Conversation::new(&model, options.clone()).unwrap();
            again.restore_from_memory(&mut other, bytes).unwrap();
            assert_eq!(rest(&mut again, &mut other), expected[given..]);
            assert_eq!(other.tokens(), original.tokens());
        }
        // The next turn goes on from there.
        let fed = talk.send_text(&mut original, "And lakes?").unwrap();
        let mut other = session(&model, SamplingOptions::greedy());
        let mut again = Conversation::new(&model, options).unwrap();
        again.restore_from_memory(&mut other, saved.last().unwrap()).unwrap();
        rest(&mut again, &mut other);
        assert_eq!(again.send_text(&mut other, "And lakes?").unwrap(), fed);
        assert_eq!(rest(&mut again, &mut other), rest(&mut talk, &mut original));
    }
}

#[test]
fn what_is_damaged_or_foreign_changes_nothing() {
    let model = model();
    let (mut original, _) = scripted(&model, ids(&model, "One two three four 😀 five."));
    let options = ConversationOptions { thinking: Some(false), ..ConversationOptions::default() };
    let mut talk = Conversation::new(&model, options.clone()).unwrap();
    talk.send_text(&mut original, "Count.").unwrap();
    talk.next(&mut original).unwrap();
    let bytes = talk.save_to_memory(&original, ALL).unwrap();

    let (mut session, script) = scripted(&model, ids(&model, "Something else."));
    let mut other = Conversation::new(&model, options.clone()).unwrap();
    other.send_text(&mut session, "Say something else.").unwrap();
    other.next(&mut session).unwrap();
    let before = other.save_to_memory(&session, ALL).unwrap();
    let mut refuse = |bytes: &[u8], kind: ErrorKind, part: &str| {
        let error = other.restore_from_memory(&mut session, bytes).unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.message().contains(part), "{part:?} is not in {error}");
        assert!(other.save_to_memory(&session, ALL).unwrap() == before, "{error}");
    };
    for n in 0..16 {
        refuse(&bytes[..bytes.len() * n / 16], ErrorKind::Format, "cut off");
    }
    let mut longer = bytes.clone();
    longer.push(0);
    refuse(&longer, ErrorKind::Format, "cut off");
    for at in (0..bytes.len().min(600)).chain((600..bytes.len()).step_by(bytes.len() / 64)) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x10;
        refuse(&damaged, ErrorKind::Format, "");
    }
    refuse(&original.save_to_memory(ALL).unwrap(), ErrorKind::Format, "it is a saved session");
    // Of the same checkpoint, opened in another way.
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/demo-model");
    let int8 = ModelOptions { weights: WeightFormat::Int8, ..ModelOptions::default() };
    let int8 = Model::open(&path, &int8).unwrap();
    let mut foreign = Session::new(&int8, SessionOptions::default()).unwrap();
    let mut stranger = Conversation::new(&int8, options.clone()).unwrap();
    stranger.send_text(&mut foreign, "Count.").unwrap();
    let saved = stranger.save_to_memory(&foreign, ALL).unwrap();
    refuse(&saved, ErrorKind::Unsupported, "opened as");
    // It goes on as if nothing had been tried.
    drop(script);
    let pieces = rest(&mut other, &mut session);
    assert!(pieces.len() > 1, "{pieces:?}");

    // A session says what it was given; a file is named.
    let error = session.restore_from_memory(&bytes).unwrap_err();
    assert!(error.message().contains("it is a saved conversation"), "{error}");
    let folder = TempDir::new();
    let file = folder.path().join("talk.state");
    talk.save_to_file(&original, ALL, &file).unwrap();
    other.restore_from_file(&mut session, &file).unwrap();
    assert_eq!(other.history(), talk.history());
    std::fs::write(&file, &bytes[..100]).unwrap();
    let error = other.restore_from_file(&mut session, &file).unwrap_err();
    assert!(error.message().contains("talk.state"), "{error}");
}
