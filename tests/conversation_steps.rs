//! Conversations advanced a little at a time, on the demo model with scripted replies: whatever
//! the budget, the pieces put together are those of the calls that wait.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use qwen35::conversation::{Conversation, ConversationOptions, Finish, Piece};
use qwen35::sampling::SamplingOptions;
use qwen35::tokenizer::AddedTokens;
use qwen35::{ErrorKind, Model, ModelOptions, Session, SessionOptions};

const TOOLS: &str = r#"[{"type": "function", "function": {"name": "weather", "parameters": {
    "type": "object", "properties": {"city": {"type": "string"}}}}}]"#;

fn model() -> Model {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/demo-model");
    Model::open(&path, &ModelOptions { threads: 2, ..ModelOptions::default() }).unwrap()
}

fn session(model: &Model, sampling: SamplingOptions) -> Session {
    Session::new(model, SessionOptions { sampling, ..SessionOptions::default() }).unwrap()
}

/// A session that answers `reply`.
fn scripted(model: &Model, reply: &str) -> Session {
    let mut ids = Vec::new();
    model.tokenizer().encode(reply, AddedTokens::Honour, &mut ids);
    let script = Arc::new(Mutex::new(VecDeque::from(ids)));
    let end = model.tokenizer().token_id("<|im_end|>").unwrap();
    let mut session = session(model, SamplingOptions::greedy());
    session.set_logits_hook(Some(Box::new(move |logits, _| {
        let token = script.lock().unwrap().pop_front().unwrap_or(end);
        logits.fill(f32::NEG_INFINITY);
        logits[token as usize] = 0.0;
        ControlFlow::Continue(())
    })));
    session
}

/// Reads the reply; `next` gives a piece, or none for the moment. Texts are joined.
fn read(mut next: impl FnMut() -> Option<Piece>) -> (Vec<Piece>, usize) {
    let (mut pieces, mut waits) = (Vec::new(), 0);
    loop {
        match (next(), pieces.last_mut()) {
            (None, _) => waits += 1,
            (Some(Piece::Text(more)), Some(Piece::Text(text)))
            | (Some(Piece::Thinking(more)), Some(Piece::Thinking(text))) => text.push_str(&more),
            (Some(piece), _) => {
                let ended = matches!(piece, Piece::End(_));
                pieces.push(piece);
                if ended {
                    return (pieces, waits);
                }
            }
        }
    }
}

#[test]
fn every_budget_gives_the_same_pieces() {
    let model = model();
    let call = "<tool_call>\n<function=weather>\n<parameter=city>\nKöln\n</parameter>\n\
                </function>\n</tool_call>";
    let long = "on and on and on and on and on";
    let stop = vec!["STOP".to_owned()];
    for (reply, thinking_budget, stop) in [
        ("Hm 😀\n</think>\n\nHello 👩‍👧!".to_owned(), 0, vec![]),
        (format!("Hm.\n</think>\n\nLook.\n\n{call}"), 0, vec![]),
        ("Hm.\n</think>\n\nSo far STOP and no further".to_owned(), 0, stop),
        (long.to_owned(), 3, vec![]),
    ] {
        let options = ConversationOptions {
            thinking: Some(true),
            thinking_budget,
            tools: Some(TOOLS.into()),
            stop,
            ..ConversationOptions::default()
        };
        let mut session = scripted(&model, &reply);
        let mut talk = Conversation::new(&model, options.clone()).unwrap();
        let fed = talk.send_text(&mut session, "Go on, please.").unwrap();
        let (expected, _) = read(|| Some(talk.next(&mut session).unwrap()));
        let (tokens, history) = (session.tokens().to_vec(), talk.history());
        for budget in [Duration::ZERO, Duration::from_millis(1), Duration::MAX] {
            let mut session = scripted(&model, &reply);
            let mut talk = Conversation::new(&model, options.clone()).unwrap();
            let queued = talk.enqueue_text(&mut session, "Go on, please.").unwrap();
            assert_eq!((queued.total, queued.computed), (fed.total, fed.total));
            assert_eq!(session.remaining(), fed.total);
            let (pieces, waits) = read(|| talk.step(&mut session, budget).unwrap());
            assert_eq!(pieces, expected, "{budget:?}");
            assert_eq!((session.tokens(), talk.history()), (&tokens[..], history.clone()));
            assert!(waits > 100 || budget != Duration::ZERO, "{waits} waits");
            assert!(waits == 0 || budget != Duration::MAX, "{waits} waits");
            let again = talk.step(&mut session, budget).unwrap();
            assert_eq!(again.as_ref(), expected.last());
        }
        // Begun in steps, and waited for.
        let mut session = scripted(&model, &reply);
        let mut talk = Conversation::new(&model, options).unwrap();
        talk.enqueue_text(&mut session, "Go on, please.").unwrap();
        assert_eq!(talk.step(&mut session, Duration::ZERO).unwrap(), None);
        let mut turn = 0;
        let (pieces, _) = read(|| {
            turn += 1;
            match turn % 3 {
                0 => Some(talk.next(&mut session).unwrap()),
                _ => talk.step(&mut session, Duration::ZERO).unwrap(),
            }
        });
        assert_eq!(pieces, expected);
    }
}

/// The random stream and penalties over the output are the same, also where the thoughts are
/// closed.
#[test]
fn chosen_at_random_it_is_the_same_too() {
    let model = model();
    let sampling = SamplingOptions { seed: Some(7), ..SamplingOptions::default() };
    assert!(sampling.presence_penalty > 0.0);
    let options = || ConversationOptions {
        thinking: Some(true),
        thinking_budget: 5,
        max_tokens: 40,
        ..ConversationOptions::default()
    };
    let mut waiting = session(&model, sampling.clone());
    let mut talk = Conversation::new(&model, options()).unwrap();
    talk.send_text(&mut waiting, "Tell me more.").unwrap();
    let (expected, _) = read(|| Some(talk.next(&mut waiting).unwrap()));
    let mut stepped = session(&model, sampling);
    let mut talk = Conversation::new(&model, options()).unwrap();
    talk.enqueue_text(&mut stepped, "Tell me more.").unwrap();
    let (pieces, _) = read(|| talk.step(&mut stepped, Duration::from_micros(300)).unwrap());
    assert_eq!(pieces, expected);
    assert_eq!(stepped.tokens(), waiting.tokens());
}

#[test]
fn a_cancel_in_the_messages_leaves_no_reply() {
    let model = model();
    let mut session = scripted(&model, "one two three four five six");
    let options = ConversationOptions { thinking: Some(false), ..ConversationOptions::default() };
    let mut talk = Conversation::new(&model, options).unwrap();
    let text = "word ".repeat(100);
    talk.enqueue_text(&mut session, &text).unwrap();
    let total = session.remaining();
    while session.remaining() > total / 2 {
        assert_eq!(talk.step(&mut session, Duration::ZERO).unwrap(), None);
    }
    session.cancel_handle().cancel();
    let error = talk.step(&mut session, Duration::MAX).unwrap_err();
    assert_eq!((error.kind(), talk.len()), (ErrorKind::Cancelled, 1));
    let error = talk.step(&mut session, Duration::MAX).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidState);
    // It goes on from what was computed.
    let fed = talk.enqueue(&mut session).unwrap();
    assert!(fed.computed < total && fed.total == total, "{fed:?}");
    let mut first = String::new();
    while first.is_empty() {
        if let Some(Piece::Text(text)) = talk.step(&mut session, Duration::ZERO).unwrap() {
            first += &text;
        }
    }
    // In the reply it is an end that can be undone.
    session.cancel_handle().cancel();
    let (pieces, _) = read(|| talk.step(&mut session, Duration::from_millis(1)).unwrap());
    assert_eq!(pieces.last(), Some(&Piece::End(Finish::Cancelled)));
    talk.resume(&session).unwrap();
    let (rest, _) = read(|| talk.step(&mut session, Duration::from_millis(1)).unwrap());
    for piece in pieces.into_iter().chain(rest) {
        if let Piece::Text(text) = piece {
            first += &text;
        }
    }
    assert_eq!(first, "one two three four five six");
    // What does not fit is refused before anything is queued.
    let (position, length) = (session.position(), talk.len());
    let error = talk.enqueue_messages(&mut session, "[{").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert_eq!((session.position(), talk.len()), (position, length));
}
