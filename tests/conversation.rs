//! Conversations on the demo model, whose replies are written by a hook that forces each token:
//! what is tested is what becomes of them.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, Mutex};

use qwen35::conversation::{Conversation, ConversationOptions, Finish, Piece, ToolCall};
use qwen35::sampling::SamplingOptions;
use qwen35::session::{Overflow, SaveOptions};
use qwen35::tokenizer::{AddedTokens, Special};
use qwen35::{ErrorKind, Model, ModelOptions, Session, SessionOptions};
use serde_json::{Value, json};

const TOOLS: &str = r#"[{"type": "function", "function": {"name": "weather", "parameters": {
    "type": "object", "required": ["city"], "properties": {"city": {"type": "string"},
    "days": {"type": "integer"}, "exact": {"type": "boolean"}}}}}]"#;

fn model() -> Model {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/demo-model");
    Model::open(&path, &ModelOptions { threads: 1, ..ModelOptions::default() }).unwrap()
}

/// The tokens that the hook writes next; at their end the turn ends.
type Script = Arc<Mutex<VecDeque<u32>>>;

/// A session whose replies are scripted.
fn scripted(model: &Model, context_limit: usize) -> (Session, Script) {
    let options = SessionOptions {
        context_limit,
        sampling: SamplingOptions::greedy(),
        ..SessionOptions::default()
    };
    let mut session = Session::new(model, options).unwrap();
    let script = Script::default();
    let (next, end) = (script.clone(), model.tokenizer().token_id("<|im_end|>").unwrap());
    session.set_logits_hook(Some(Box::new(move |logits, _| {
        let token = next.lock().unwrap().pop_front().unwrap_or(end);
        logits.fill(f32::NEG_INFINITY);
        logits[token as usize] = 0.0;
        ControlFlow::Continue(())
    })));
    (session, script)
}

/// Sets the next reply.
fn write(model: &Model, script: &Script, reply: &str) -> usize {
    let mut ids = Vec::new();
    model.tokenizer().encode(reply, AddedTokens::Honour, &mut ids);
    *script.lock().unwrap() = ids.iter().copied().collect();
    ids.len()
}

/// What came: thoughts, text, calls and why it ended.
#[derive(Debug, Default, PartialEq)]
struct Reply {
    thoughts: String,
    text: String,
    calls: Vec<ToolCall>,
    finish: Option<Finish>,
}

fn read(conversation: &mut Conversation, session: &mut Session) -> Reply {
    let mut reply = Reply::default();
    loop {
        match conversation.next(session).unwrap() {
            Piece::Thinking(text) => reply.thoughts += &text,
            Piece::Text(text) => reply.text += &text,
            Piece::ToolCall(call) => reply.calls.push(call),
            Piece::End(finish) => {
                // It stays ended.
                assert_eq!(conversation.next(session).unwrap(), Piece::End(finish.clone()));
                reply.finish = Some(finish);
                return reply;
            }
        }
    }
}

fn text(text: &str) -> Reply {
    Reply { text: text.into(), finish: Some(Finish::EndOfTurn), ..Reply::default() }
}

fn history(conversation: &Conversation) -> Value {
    serde_json::from_str(&conversation.history()).unwrap()
}

fn options() -> ConversationOptions {
    ConversationOptions { thinking: Some(false), ..ConversationOptions::default() }
}

#[test]
fn turns_cost_their_new_tokens() {
    let model = model();
    let (mut session, script) = scripted(&model, 0);
    let system = Some("You are brief. ".repeat(12));
    let mut talk = Conversation::new(&model, ConversationOptions { system, ..options() }).unwrap();
    let mut before = 0;
    for turn in 0..6 {
        let said = write(&model, &script, &format!("Answer {turn}, at some length."));
        let fed = talk.send_text(&mut session, &format!("Question number {turn}?")).unwrap();
        let new = fed.total - before;
        assert!(turn == 0 || fed.computed <= new + 8, "turn {turn}: {fed:?}, {new} are new");
        assert_eq!(read(&mut talk, &mut session), text(&format!("Answer {turn}, at some length.")));
        // The reply's own tokens are read again: the template writes it differently as history.
        before = fed.total - 8;
        assert!(said > 4);
    }
    assert_eq!(talk.len(), 13);
    let last = &history(&talk)[12];
    assert_eq!(last, &json!({"role": "assistant", "content": "Answer 5, at some length."}));
}

/// A second chat turn costs only its new tokens, although the template drops the empty think
/// block from history: ten turns, 20 words of the user, 30 tokens of answer, thinking off. What
/// the template writes differently is computed between the turns, and so exactly that a
/// session that never saw the answer made has the same bits.
#[test]
fn settled_turns_cost_their_own_tokens_alone() {
    let model = model();
    let ids = |text: &str, added| {
        let mut ids = Vec::new();
        model.tokenizer().encode(text, added, &mut ids);
        ids
    };
    let question =
        |turn: usize| format!("This is question {turn} of a long talk.{}", " Well?".repeat(6));
    // What a turn adds: the user's message, and the header of the answer.
    let new = |turn: usize| {
        let header = "<|im_start|>assistant\n<think>\n\n</think>\n\n";
        let text = format!("<|im_start|>user\n{}<|im_end|>\n{header}", question(turn));
        ids(&text, AddedTokens::Honour).len()
    };
    for thinking in [false, true] {
        let (mut session, script) = scripted(&model, 0);
        let settings = ConversationOptions {
            system: Some("You are brief. ".repeat(8)),
            thinking: Some(thinking),
            max_tokens: 0,
            ..ConversationOptions::default()
        };
        let mut talk = Conversation::new(&model, settings.clone()).unwrap();
        for turn in 0..10 {
            let fed = talk.send_text(&mut session, &question(turn)).unwrap();
            if turn > 0 {
                assert!(fed.computed <= new(turn), "turn {turn}: {fed:?}, {} are new", new(turn));
            }
            let (reply, thought) = ("So it goes on and on. ".repeat(4), "Let me see. ");
            let said = match thinking {
                true => write(&model, &script, &format!("{thought}</think>\n\n{reply}")),
                false => write(&model, &script, &reply),
            };
            assert!(said >= 20);
            read(&mut talk, &mut session);
            let settled = talk.settle(&mut session).unwrap();
            // It computes the reply, its header and its end, and nothing but that.
            assert!(settled.computed > 0 && settled.computed <= said + 8, "{settled:?} {said}");
            assert_eq!(settled.total, session.position());
            // Once more there is nothing to do, and nothing to be resumed.
            assert_eq!(talk.settle(&mut session).unwrap().computed, 0);
            assert_eq!(talk.resume(&session).unwrap_err().kind(), ErrorKind::InvalidState);
        }
        // The next turn has the bits of a session that computes all of it at once.
        let fed = talk.send_text(&mut session, &question(10)).unwrap();
        assert!(fed.computed <= new(10));
        let greedy = SamplingOptions::greedy();
        let options = SessionOptions { sampling: greedy, ..SessionOptions::default() };
        let mut cold = Session::new(&model, options).unwrap();
        let mut other = Conversation::new(&model, settings).unwrap();
        other.set_history(&talk.history()).unwrap();
        let all = other.start(&mut cold).unwrap();
        assert_eq!((all.total, all.computed), (fed.total, fed.total));
        assert_eq!(cold.tokens(), session.tokens());
        let bits = |logits: &[f32]| logits.iter().map(|l| l.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(cold.logits().unwrap()), bits(session.logits().unwrap()));
        // Another question in place of the last one costs that question.
        talk.undo();
        let fed = talk.send_text(&mut session, &question(11)).unwrap();
        assert!(fed.computed <= new(11), "{fed:?}");
    }
}

#[test]
fn settling_has_its_times() {
    let model = model();
    let (mut session, script) = scripted(&model, 0);
    let tools = Some(TOOLS.into());
    let mut talk = Conversation::new(&model, ConversationOptions { tools, ..options() }).unwrap();
    // Nothing was said.
    assert_eq!(talk.settle(&mut session).unwrap().total, 0);
    write(&model, &script, "Hello, my friend.");
    talk.send_text(&mut session, "Hello!").unwrap();
    assert_eq!(talk.settle(&mut session).unwrap_err().kind(), ErrorKind::InvalidState);
    assert_eq!(read(&mut talk, &mut session), text("Hello, my friend."));
    // A cancel leaves what the next turn needs.
    session.cancel_handle().cancel();
    assert_eq!(talk.settle(&mut session).unwrap_err().kind(), ErrorKind::Cancelled);
    assert_eq!(talk.finish(), Some(&Finish::EndOfTurn));
    // A reply that was settled can be made again.
    talk.settle(&mut session).unwrap();
    write(&model, &script, "Good day.");
    let fed = talk.regenerate(&mut session).unwrap();
    assert!(fed.computed < 12, "{fed:?}");
    assert_eq!(read(&mut talk, &mut session), text("Good day."));
    // Calls wait for their results.
    let call = "<tool_call>\n<function=weather>\n<parameter=city>\nOslo\n</parameter>\n\
                </function>\n</tool_call>";
    write(&model, &script, call);
    talk.send_text(&mut session, "Weather?").unwrap();
    assert_eq!(read(&mut talk, &mut session).finish, Some(Finish::ToolCalls));
    let before = session.tokens().to_vec();
    assert_eq!(talk.settle(&mut session).unwrap().total, 0);
    assert_eq!(session.tokens(), before);
    talk.add_tool_result("call_0", "sunny");
    write(&model, &script, "Sunny.");
    let fed = talk.start(&mut session).unwrap();
    assert!(fed.computed < 30, "{fed:?}");
    assert_eq!(read(&mut talk, &mut session), text("Sunny."));
    // The whole turn is history now.
    let settled = talk.settle(&mut session).unwrap();
    assert!(settled.computed > 0);
    let fed = talk.send_text(&mut session, "Thanks.").unwrap();
    assert!(fed.computed < 20, "{fed:?}");
}

#[test]
fn thoughts_and_answers() {
    let model = model();
    for (thinking, reply, thoughts, answer) in [
        (true, "a</think>\n\nb", "a", "b"),
        (true, "a", "a", ""),
        (true, "</think>b", "", "b"),
        (true, "Hm.\nSo.\n</think>\n\nHi. ", "Hm.\nSo.", "Hi. "),
        (false, "b", "", "b"),
        (false, "b</think>c", "", "b</think>c"),
        (false, "<think>a</think>b", "a", "b"),
        (false, "", "", ""),
    ] {
        let (mut session, script) = scripted(&model, 0);
        write(&model, &script, reply);
        let thinking = Some(thinking);
        let options = ConversationOptions { thinking, ..ConversationOptions::default() };
        let mut talk = Conversation::new(&model, options).unwrap();
        talk.send_text(&mut session, "Say <think> something").unwrap();
        let found = read(&mut talk, &mut session);
        assert_eq!((&*found.thoughts, &*found.text), (thoughts, answer), "{reply:?}");
        // What was a word of the answer stays one in the next turn.
        let message = &history(&talk)[1];
        assert_eq!(message["content"], answer);
        let written = message.get("reasoning_content").is_some();
        assert_eq!(written, !thoughts.is_empty() || answer.contains("</think>"));
        write(&model, &script, "Yes.");
        talk.send_text(&mut session, "More?").unwrap();
        read(&mut talk, &mut session);
    }
}

#[test]
fn a_thinking_budget_closes_the_thoughts() {
    let model = model();
    for (thought, budget, rest) in
        [("on and on and on and on", 6, "The answer."), ("line\n", 2, "So.")]
    {
        let (mut session, script) = scripted(&model, 0);
        let mut ids = Vec::new();
        model.tokenizer().encode(&thought.repeat(8), AddedTokens::AsText, &mut ids);
        ids.truncate(budget);
        let mut expected = Vec::new();
        model.tokenizer().decode(&ids, Special::Keep, &mut expected).unwrap();
        model.tokenizer().encode(rest, AddedTokens::AsText, &mut ids);
        *script.lock().unwrap() = ids.into();
        let options = ConversationOptions {
            thinking: Some(true),
            thinking_budget: budget,
            ..ConversationOptions::default()
        };
        let mut talk = Conversation::new(&model, options).unwrap();
        talk.send_text(&mut session, "Think.").unwrap();
        let start = session.position();
        let found = read(&mut talk, &mut session);
        let expected = String::from_utf8(expected).unwrap();
        assert_eq!(found.thoughts, expected.trim_end_matches('\n'));
        assert_eq!((&*found.text, found.finish), (rest, Some(Finish::EndOfTurn)));
        let mut bytes = Vec::new();
        model.tokenizer().decode(&session.tokens()[start..], Special::Skip, &mut bytes).unwrap();
        let expected = format!("{}\n</think>\n\n{rest}", expected.trim_end_matches('\n'));
        assert_eq!(String::from_utf8(bytes).unwrap(), expected);
    }
}

/// What the library writes itself must fit as what the model writes must: in the middle of a reply
/// no turn of the conversation goes for it.
#[test]
fn closing_the_thoughts_drops_no_turns() {
    let model = model();
    let budget = 12;
    let begin = |session: &mut Session| {
        let options = ConversationOptions {
            thinking: Some(true),
            thinking_budget: budget,
            ..ConversationOptions::default()
        };
        let mut talk = Conversation::new(&model, options).unwrap();
        for turn in 0..3 {
            talk.add_text("user", &format!("Question number {turn}, with some words."));
            talk.add_text("assistant", "Well.");
        }
        talk.send_text(session, "Think.").unwrap();
        talk
    };
    let (mut session, script) = scripted(&model, 0);
    begin(&mut session);
    let spent = session.position() + budget;
    write(&model, &script, &"on ".repeat(budget));
    let thought: Vec<u32> = script.lock().unwrap().iter().copied().take(budget).collect();
    for free in 0..4 {
        let options = SessionOptions {
            context_limit: spent + free,
            sampling: SamplingOptions { presence_penalty: 0.5, ..SamplingOptions::greedy() },
            overflow: Overflow::DropTurns { reserve: budget },
            ..SessionOptions::default()
        };
        let mut session = Session::new(&model, options).unwrap();
        let mut next = VecDeque::from(thought.clone());
        session.set_logits_hook(Some(Box::new(move |logits, _| {
            logits[next.pop_front().unwrap_or(0) as usize] = 1e9;
            ControlFlow::Continue(())
        })));
        let mut talk = begin(&mut session);
        let before = session.tokens().to_vec();
        let found = read(&mut talk, &mut session);
        assert_eq!(found.finish, Some(Finish::ContextFull), "{free} free");
        assert!(session.tokens().starts_with(&before) && session.tokens().len() >= spent);
        assert!(found.thoughts.starts_with("on on"), "{found:?}");
        assert_eq!(history(&talk)[7]["reasoning_content"], found.thoughts);
        // The next turn may: it is none in the middle of a reply.
        let fed = talk.send_text(&mut session, &"And now? ".repeat(9)).unwrap();
        assert!(fed.dropped_messages > 0, "{fed:?}");
    }
}

/// Behind thoughts that the library has closed, the model's wish to close them is not heard: not
/// after a cut and not after a restoration either. In the next reply it is.
#[test]
fn closed_thoughts_are_not_closed_again() {
    let model = model();
    let id = |text: &str| model.tokenizer().token_id(text).unwrap();
    let (close, end) = (id("</think>"), id("<|im_end|>"));
    let mut words = Vec::new();
    model.tokenizer().encode(" one two three four five six seven", AddedTokens::AsText, &mut words);
    let count = words.len();
    for top_k in [1, 20, 0] {
        let sampling = SamplingOptions { temperature: 0.1, top_k, ..SamplingOptions::default() };
        let options = SessionOptions { sampling, ..SessionOptions::default() };
        let mut session = Session::new(&model, options).unwrap();
        let options = ConversationOptions {
            thinking: Some(true),
            thinking_budget: 2,
            max_tokens: 3,
            stop: vec!["</think>".into()],
            ..ConversationOptions::default()
        };
        let mut talk = Conversation::new(&model, options.clone()).unwrap();
        // Words as they come, but rather the end of the thoughts, from the third token on.
        let hook = |start: usize| {
            let words = words.clone();
            move |logits: &mut [f32], tokens: &[u32]| {
                let made = tokens[start..].iter().filter(|token| words.contains(token)).count();
                logits[*words.get(made).unwrap_or(&end) as usize] = 1e4;
                logits[close as usize] = if made < 2 { -1e4 } else { 2e4 };
                ControlFlow::Continue(())
            }
        };
        talk.enqueue_text(&mut session, "Go").unwrap();
        let start = session.tokens().len();
        session.set_logits_hook(Some(Box::new(hook(start))));
        let mut found = Reply::default();
        loop {
            match talk.next(&mut session).unwrap() {
                Piece::Thinking(text) => found.thoughts += &text,
                Piece::Text(text) => found.text += &text,
                Piece::End(Finish::Length) => talk.resume(&session).unwrap(),
                Piece::End(finish) => break found.finish = Some(finish),
                Piece::ToolCall(call) => panic!("{call:?}"),
            }
            let saved = talk.save_to_memory(&session, SaveOptions::default()).unwrap();
            talk.restore_from_memory(&mut session, &saved).unwrap();
        }
        let said = format!("{}{}", found.thoughts, found.text);
        assert_eq!(said, " one two three four five six seven", "top-k {top_k}");
        assert_eq!(found.finish, Some(Finish::EndOfTurn));
        let made = &session.tokens()[start..];
        assert_eq!(made.iter().filter(|token| **token == close).count(), 1);
        assert!(made.len() > count + 2);

        let options = ConversationOptions { thinking_budget: 0, ..options };
        talk.configure(options).unwrap();
        talk.regenerate(&mut session).unwrap();
        assert_eq!(read(&mut talk, &mut session).finish, Some(Finish::Length));
        assert_eq!(session.tokens().last(), Some(&close));
    }
}

#[test]
fn tool_calls_and_their_results() {
    let model = model();
    let (mut session, script) = scripted(&model, 0);
    let options = ConversationOptions { tools: Some(TOOLS.into()), ..options() };
    let mut talk = Conversation::new(&model, options).unwrap();
    let call = |city: &str, days: &str| {
        format!(
            "<tool_call>\n<function=weather>\n<parameter=city>\n{city}\n</parameter>\n\
             <parameter=days>\n{days}\n</parameter>\n</function>\n</tool_call>"
        )
    };
    let reply = format!("Let me look.\n\n{}\n{}", call("Köln", "2"), call("Oslo", "many"));
    write(&model, &script, &reply);
    talk.send_text(&mut session, "Weather?").unwrap();
    let found = read(&mut talk, &mut session);
    assert_eq!((&*found.text, found.finish), ("Let me look.", Some(Finish::ToolCalls)));
    let [first, second] = &found.calls[..] else { panic!("{:?}", found.calls) };
    assert_eq!((&*first.id, &*first.name, first.whole), ("call_0", "weather", true));
    assert_eq!(first.arguments, r#"{"city": "Köln", "days": 2}"#);
    assert_eq!((&*first.problem, &*first.raw), ("", &*call("Köln", "2")));
    assert_eq!(second.id, "call_1");
    assert_eq!(second.arguments, r#"{"city": "Oslo", "days": "many"}"#);
    assert!(second.problem.contains("days"), "{}", second.problem);

    talk.add_tool_result("call_0", "rain");
    talk.add_tool_result("call_1", r#"{"error": "days"}"#);
    write(&model, &script, "Rain in Köln.");
    let fed = talk.start(&mut session).unwrap();
    // The calls are part of what was computed: only the results and the header are new.
    assert!(fed.computed < fed.total / 2, "{fed:?}");
    assert_eq!(read(&mut talk, &mut session), text("Rain in Köln."));
    let all = history(&talk);
    assert_eq!(all.as_array().unwrap().len(), 5);
    let expected = json!({"role": "tool", "tool_call_id": "call_0", "content": "rain"});
    assert_eq!(all[2], expected);
    let function = &all[1]["tool_calls"][0]["function"];
    assert_eq!(function["arguments"], r#"{"city": "Köln", "days": 2}"#);

    // The next call has the next number, also after the history went out and in.
    let mut again = Conversation::new(
        &model,
        ConversationOptions {
            tools: Some(TOOLS.into()),
            thinking: Some(false),
            ..ConversationOptions::default()
        },
    )
    .unwrap();
    again.set_history(&talk.history()).unwrap();
    assert_eq!(again.history(), talk.history());
    write(&model, &script, &call("Rom", "1"));
    let fed = again.send_text(&mut session, "And Rome?").unwrap();
    assert!(fed.computed < fed.total, "{fed:?}");
    assert_eq!(read(&mut again, &mut session).calls[0].id, "call_2");

    // Without tools a call is text.
    let mut plain = Conversation::new(&model, self::options()).unwrap();
    write(&model, &script, &call("Rom", "1"));
    plain.send_text(&mut session, "Show me the form").unwrap();
    assert_eq!(read(&mut plain, &mut session), text(&call("Rom", "1")));
}

#[test]
fn stop_strings_are_never_shown() {
    let model = model();
    for (stop, expected, found) in [
        (&["a ga", "ta del"][..], "alpha bet", "a ga"),
        (&["gamma delta 😀!"], "alpha beta ", "gamma delta 😀!"),
        (&["😀"], "alpha beta gamma delta ", "😀"),
    ] {
        let (mut session, script) = scripted(&model, 0);
        write(&model, &script, "alpha beta gamma delta 😀! and more");
        let stop = stop.iter().map(|s| (*s).to_owned()).collect();
        let mut talk =
            Conversation::new(&model, ConversationOptions { stop, ..options() }).unwrap();
        talk.send_text(&mut session, "Go").unwrap();
        let reply = read(&mut talk, &mut session);
        assert_eq!((&*reply.text, reply.finish), (expected, Some(Finish::Stop(found.into()))));
        assert_eq!(history(&talk)[1]["content"], expected);
        assert_eq!(talk.resume(&session).unwrap_err().kind(), ErrorKind::InvalidState);
    }
    let stop = vec!["x".to_owned(), String::new()];
    let refused = Conversation::new(&model, ConversationOptions { stop, ..options() });
    assert_eq!(refused.err().unwrap().kind(), ErrorKind::InvalidArgument);
}

/// Every reply is cut after every number of tokens and gone on with: together it is the same, and
/// what was shown before is a beginning of it.
/// White space before a call is no text, so at a cut behind it a stop string in it has not come;
/// and what a cut shows of a stop string that comes whole later stays.
#[test]
fn stop_strings_at_a_cut_are_not_decided() {
    let model = model();
    let call = "<tool_call>\n<function=weather>\n<parameter=city>\nx\n</parameter>\n</function>\n</tool_call>";
    let length = |text: &str| {
        let mut ids = Vec::new();
        model.tokenizer().encode(text, AddedTokens::Honour, &mut ids);
        ids.len()
    };
    for (before, rest, stop, first, content, finish) in [
        ("Hm.\n\n", call, "\n\n", "Hm.", "Hm.", Finish::ToolCalls),
        ("Hm.\n\n", "more", "\n\n", "Hm.", "Hm.", Finish::Stop("\n\n".into())),
        ("Hm.\n\n<tool_call>", "\nso", "<tool", "Hm.\n\n", "Hm.\n\n", Finish::Stop("<tool".into())),
        ("x E", "ND more", "END", "x E", "x E", Finish::Stop("END".into())),
        ("x E", "N more", "END", "x E", "x EN more", Finish::EndOfTurn),
    ] {
        let (mut session, script) = scripted(&model, 0);
        let options = ConversationOptions {
            tools: Some(TOOLS.into()),
            stop: vec![stop.into()],
            max_tokens: length(before),
            ..options()
        };
        let mut talk = Conversation::new(&model, options).unwrap();
        write(&model, &script, before);
        let mut ids = script.lock().unwrap().clone();
        write(&model, &script, rest);
        ids.append(&mut script.lock().unwrap());
        *script.lock().unwrap() = ids;
        talk.send_text(&mut session, "Go").unwrap();
        let cut = read(&mut talk, &mut session);
        assert_eq!((&*cut.text, cut.finish), (first, Some(Finish::Length)), "{before:?} {rest:?}");
        let mut given = cut.text;
        let end = loop {
            talk.resume(&session).unwrap();
            let part = read(&mut talk, &mut session);
            given += &part.text;
            if part.finish != Some(Finish::Length) {
                break part.finish;
            }
        };
        assert_eq!(end, Some(finish), "{before:?} {rest:?}");
        assert_eq!(history(&talk)[1]["content"], content);
        assert_eq!(given, content);
    }
}

#[test]
fn replies_that_are_cut_go_on() {
    let model = model();
    let call = "<tool_call>\n<function=weather>\n<parameter=city>\na</b>\n</parameter>\n</function>\n</tool_call>";
    let reply = format!("Hm 😀\n</think>\n\nA 👩‍👧 b  \n\n{call}\n{call}\nend 語");
    let new = |max_tokens| {
        let options = ConversationOptions {
            thinking: Some(true),
            tools: Some(TOOLS.into()),
            max_tokens,
            stop: vec!["👩‍👧 c".into()],
            ..ConversationOptions::default()
        };
        Conversation::new(&model, options).unwrap()
    };
    let (mut session, script) = scripted(&model, 0);
    let length = write(&model, &script, &reply);
    let mut talk = new(0);
    talk.send_text(&mut session, "Go").unwrap();
    let whole = read(&mut talk, &mut session);
    assert_eq!((&*whole.thoughts, whole.calls.len()), ("Hm 😀", 2));
    assert_eq!(whole.text, "A 👩‍👧 b\nend 語");
    for cut in 1..length {
        write(&model, &script, &reply);
        let mut talk = new(cut as _);
        talk.send_text(&mut session, "Go").unwrap();
        let mut joined = Reply::default();
        loop {
            let part = read(&mut talk, &mut session);
            joined.thoughts += &part.thoughts;
            joined.text += &part.text;
            joined.calls.extend(part.calls.into_iter().filter(|call| call.whole));
            joined.finish = part.finish;
            assert!(!joined.text.contains(char::REPLACEMENT_CHARACTER));
            if joined.finish != Some(Finish::Length) {
                break;
            }
            talk.resume(&session).unwrap();
        }
        // Parts of tags at a cut were shown as text; otherwise nothing differs.
        let message = &history(&talk)[1];
        assert_eq!(message["content"], *whole.text, "cut at {cut}");
        assert_eq!(message["reasoning_content"], *whole.thoughts, "cut at {cut}");
        assert_eq!(joined.calls, whole.calls, "cut at {cut}");
        assert_eq!(talk.len(), 2);
    }
}

/// What is held back at one cut and again at the next is given once.
#[test]
fn every_text_is_given_once_over_cuts() {
    let model = model();
    let stop = "-----END";
    for (thinking, reply) in [
        (false, "x--- done, and more"),
        (false, "  Bamako is it"),
        (false, "def f():\n  \treturn 1--\n\n<tool_call>\n<function=weather>\n<tool_call><p"),
        (false, "-----EN\n\n<tool_call>\n<function=weather>\n</function>\n</tool_call>\n\nend"),
        (false, "<tool_call>\n<function=weather>\n</function>\n</tool_call>\n\nDone, see above"),
        (true, "a\n\n\nbcd</th\n</think>\n\nok"),
    ] {
        let mut ids = Vec::new();
        for character in reply.split_inclusive("</think>") {
            // Character by character, but for the tag, which is a token.
            let (plain, tag) =
                character.split_at(character.find("</think>").unwrap_or(character.len()));
            for one in plain.split("").filter(|one| !one.is_empty()) {
                model.tokenizer().encode(one, AddedTokens::Honour, &mut ids);
            }
            model.tokenizer().encode(tag, AddedTokens::Honour, &mut ids);
        }
        for (cut, cancels) in [(1, 0), (1, 2), (2, 1), (3, 0), (11, 0)] {
            let (mut session, script) = scripted(&model, 0);
            *script.lock().unwrap() = ids.iter().copied().collect();
            let options = ConversationOptions {
                thinking: Some(thinking),
                tools: Some(TOOLS.into()),
                max_tokens: cut,
                stop: vec![stop.into()],
                ..ConversationOptions::default()
            };
            let mut talk = Conversation::new(&model, options).unwrap();
            talk.send_text(&mut session, "Go").unwrap();
            let mut given = Reply::default();
            loop {
                let part = read(&mut talk, &mut session);
                given.thoughts += &part.thoughts;
                given.text += &part.text;
                if part.finish != Some(Finish::Length) {
                    break;
                }
                for _ in 0..cancels {
                    talk.resume(&session).unwrap();
                    session.cancel_handle().cancel();
                    let part = read(&mut talk, &mut session);
                    assert_eq!(part.finish, Some(Finish::Cancelled));
                    given.thoughts += &part.thoughts;
                    given.text += &part.text;
                }
                talk.resume(&session).unwrap();
            }
            // White space and the beginning of a call that a cut had to show turned out to be
            // markup.
            let message = &history(&talk)[1];
            let kept = |given: &str| given.replace(char::is_whitespace, "");
            let tag = "<tool_call><function=";
            for (key, given) in [("content", given.text), ("reasoning_content", given.thoughts)] {
                let said = message[key].as_str().unwrap_or_default();
                let mut shown = (0..tag.len()).map(|end| kept(&given).replacen(&tag[..end], "", 1));
                assert!(
                    shown.any(|shown| shown == kept(said)),
                    "{reply:?} cut at {cut}, {cancels} cancels: {given:?} for {said:?}"
                );
            }
        }
    }
}

#[test]
fn cancelled_replies_stay_usable() {
    let model = model();
    let (mut session, script) = scripted(&model, 0);
    let mut talk = Conversation::new(&model, options()).unwrap();
    session.cancel_handle().cancel();
    let refused = talk.send_text(&mut session, "One").unwrap_err();
    assert_eq!((refused.kind(), talk.len()), (ErrorKind::Cancelled, 0));
    write(&model, &script, "one two three four five six");
    talk.send_text(&mut session, "One").unwrap();
    let Piece::Text(first) = talk.next(&mut session).unwrap() else { panic!() };
    session.cancel_handle().cancel();
    let part = read(&mut talk, &mut session);
    assert_eq!(part.finish, Some(Finish::Cancelled));
    assert_eq!(history(&talk)[1]["content"], format!("{first}{}", part.text));
    talk.resume(&session).unwrap();
    assert_eq!(talk.len(), 1);
    let rest = read(&mut talk, &mut session);
    assert_eq!(first + &part.text + &rest.text, "one two three four five six");
    assert_eq!(rest.finish, Some(Finish::EndOfTurn));

    // A reply that nobody reads to its end stays in the history as far as it came.
    write(&model, &script, "seven eight nine");
    talk.send_text(&mut session, "Two").unwrap();
    let Piece::Text(start) = talk.next(&mut session).unwrap() else { panic!() };
    talk.send_text(&mut session, "Three").unwrap();
    assert_eq!(history(&talk)[3]["content"], start);
    assert_eq!(talk.len(), 5);
}

/// A reply goes on over the very sequence that it left, not over another of the same length that
/// ends in the same way; where the session went elsewhere the history keeps what it has.
#[test]
fn a_reply_knows_its_sequence() {
    let model = model();
    let (mut session, script) = scripted(&model, 0);
    let cut = ConversationOptions { max_tokens: 1, ..options() };
    let new = |options: &ConversationOptions| Conversation::new(&model, options.clone()).unwrap();
    let (mut one, mut two) = (new(&options()), new(&options()));
    let fed = one.send_text(&mut session, "What is 1 and 2?").unwrap();
    let last = session.tokens().last().copied();
    assert_eq!(two.send_text(&mut session, "What is 2 and 1?").unwrap().total, fed.total);
    assert_eq!(session.tokens().last().copied(), last);
    let error = one.next(&mut session).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidState);
    assert!(error.message().contains("behind other tokens"), "{error}");
    assert_eq!(one.len(), 1);
    write(&model, &script, "It is 3.");
    assert_eq!(read(&mut two, &mut session), text("It is 3."));

    // What cannot be gone on with stays in the history, and the session can come back.
    let mut talk = new(&cut);
    write(&model, &script, "It is 3.");
    talk.send_text(&mut session, "And now?").unwrap();
    assert_eq!(read(&mut talk, &mut session).finish, Some(Finish::Length));
    let (before, stood) = (talk.history(), session.tokens().to_vec());
    session.cancel_handle().cancel();
    assert_eq!(talk.regenerate(&mut session).unwrap_err().kind(), ErrorKind::Cancelled);
    assert_eq!(talk.resume(&session).unwrap_err().kind(), ErrorKind::InvalidState);
    assert_eq!(talk.history(), before);
    session.set_tokens(&stood).unwrap();
    talk.resume(&session).unwrap();
    assert_eq!(talk.len(), 1);
}

/// Ids of calls are the only ones of their kind, also when the caller has left out turns or has
/// written messages himself.
#[test]
fn calls_have_ids_of_their_own() {
    let model = model();
    let (mut session, script) = scripted(&model, 0);
    let tools = Some(TOOLS.into());
    let mut talk = Conversation::new(&model, ConversationOptions { tools, ..options() }).unwrap();
    for (history, id) in [
        (json!([]), "call_0"),
        (
            json!([{"role": "user", "content": "a"}, {"role": "assistant", "content": "", "tool_calls":
            [{"id": "call_7", "function": {"name": "weather", "arguments": {}}}]},
            {"role": "tool", "tool_call_id": "call_7", "content": "r"}]),
            "call_8",
        ),
        (
            json!([{"role": "user", "content": "a"}, {"role": "assistant", "content": ""},
            {"role": "tool", "tool_call_id": "call_3", "content": "r"}]),
            "call_4",
        ),
        (
            json!([{"role": "user", "content": "a"}, {"role": "assistant", "content": "", "tool_calls":
            [{"id": "call_99999999999", "function": {"name": "weather", "arguments": {}}},
             {"id": "mine", "function": {"name": "weather", "arguments": {}}}]}]),
            "call_2",
        ),
    ] {
        talk.set_history(&history.to_string()).unwrap();
        let call = "<tool_call>\n<function=weather>\n</function>\n</tool_call>";
        write(&model, &script, call);
        talk.send_text(&mut session, "Go").unwrap();
        assert_eq!(read(&mut talk, &mut session).calls[0].id, id);
    }
}

/// What is taken at one place is not too deep for any other.
#[test]
fn deep_values_are_taken_everywhere_or_nowhere() {
    let model = model();
    let deep = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    let tools = r#"[{"name": "f", "parameters": {"properties": {"l": {"type": "array"}}}}]"#;
    let takes = |history: &str| {
        let request = format!(r#"{{"messages": {history}}}"#);
        let request = qwen35::chat::ChatRequest::from_json(&request).unwrap();
        model.encode_chat(&request, Default::default()).unwrap();
    };
    for levels in [1, 120, 121, 122, 127, 128, 129] {
        let (mut session, script) = scripted(&model, 0);
        let options = ConversationOptions { tools: Some(tools.into()), ..options() };
        let mut talk = Conversation::new(&model, options).unwrap();
        let value = deep(levels);
        let call = format!(
            "<tool_call>\n<function=f>\n<parameter=l>\n{value}\n</parameter>\n</function>\n</tool_call>"
        );
        write(&model, &script, &call);
        talk.send_text(&mut session, "Go").unwrap();
        let found = read(&mut talk, &mut session);
        let [call] = &found.calls[..] else { panic!("{found:?}") };
        assert_eq!(call.problem.is_empty(), levels <= 121, "{levels}: {}", call.problem);
        talk.add_tool_result(&call.id, "ok");
        talk.start(&mut session).unwrap();
        talk.set_history(&talk.history()).unwrap();
        takes(&talk.history());
        // Also with the arguments as a value, which hosts may write.
        let text = Value::String(call.arguments.clone()).to_string();
        let written = talk.history().replace(&text, &call.arguments);
        assert_ne!(written, talk.history());
        talk.set_history(&written).unwrap();
        takes(&talk.history());
        talk.start(&mut session).unwrap();
    }
    for (levels, one, list) in [(125, true, true), (126, false, false), (127, false, false)] {
        let message = format!(r#"{{"role": "user", "content": "a", "x": {}}}"#, deep(levels));
        for (json, taken) in [(message.clone(), one), (format!("\n[{message}]"), list)] {
            let mut talk = Conversation::new(&model, options()).unwrap();
            assert_eq!(talk.add(&json).is_ok(), taken, "{levels}");
            talk.set_history(&talk.history()).unwrap();
            if taken {
                takes(&talk.history());
            }
        }
    }
}

#[test]
fn regenerate_and_undo() {
    let model = model();
    let (mut session, script) = scripted(&model, 0);
    let mut talk = Conversation::new(&model, options()).unwrap();
    assert_eq!(talk.regenerate(&mut session).unwrap_err().kind(), ErrorKind::InvalidState);
    assert_eq!(talk.undo(), 0);
    write(&model, &script, "First.");
    let fed = talk.send_text(&mut session, "Tell me something, please.").unwrap();
    let prompt = session.tokens().to_vec();
    read(&mut talk, &mut session);
    write(&model, &script, "Second.");
    let again = talk.regenerate(&mut session).unwrap();
    assert_eq!((again.total, session.tokens()), (fed.total, &prompt[..]));
    assert!(again.computed < fed.total, "{again:?}");
    assert_eq!(read(&mut talk, &mut session), text("Second."));
    assert_eq!(talk.len(), 2);
    write(&model, &script, "Third.");
    talk.send_text(&mut session, "More").unwrap();
    // In the middle of a reply, too.
    talk.next(&mut session).unwrap();
    write(&model, &script, "Fourth.");
    talk.regenerate(&mut session).unwrap();
    assert_eq!(read(&mut talk, &mut session), text("Fourth."));
    assert_eq!((talk.len(), talk.undo(), talk.len()), (4, 2, 2));
    assert_eq!(talk.next(&mut session).unwrap_err().kind(), ErrorKind::InvalidState);
    assert_eq!((talk.undo(), talk.undo(), talk.len()), (2, 0, 0));
}

#[test]
fn what_is_refused_changes_nothing() {
    let model = model();
    let (mut session, script) = scripted(&model, 128);
    let mut talk = Conversation::new(&model, options()).unwrap();
    assert_eq!(talk.next(&mut session).unwrap_err().kind(), ErrorKind::InvalidState);
    for (json, kind) in [
        ("{", ErrorKind::InvalidArgument),
        ("5", ErrorKind::InvalidArgument),
        ("[5]", ErrorKind::InvalidArgument),
        (r#"{"role": "user", "content": "a", "x": [1e999]}"#, ErrorKind::InvalidArgument),
        (
            r#"[{"role": "user", "content": "a"}, {"role": "system", "content": "b"}]"#,
            ErrorKind::Template,
        ),
        (r#"{"role": "assistant", "content": "nobody asked"}"#, ErrorKind::Template),
    ] {
        assert_eq!(talk.send(&mut session, json).unwrap_err().kind(), kind, "{json}");
        assert!(talk.is_empty());
    }
    let long = "word ".repeat(200);
    let error = talk.send_text(&mut session, &long).unwrap_err();
    assert_eq!((error.kind(), talk.len()), (ErrorKind::ContextOverflow, 0));
    for tools in ["{", "{}", "[1]", "\"x\"", "[{\"x\": 1e999}]"] {
        let bad = ConversationOptions { tools: Some(tools.into()), ..options() };
        assert_eq!(talk.configure(bad).unwrap_err().kind(), ErrorKind::InvalidArgument);
    }
    // It fills up, and says so.
    write(&model, &script, &long);
    talk.send_text(&mut session, "Go on").unwrap();
    let reply = read(&mut talk, &mut session);
    assert_eq!((reply.finish, session.position()), (Some(Finish::ContextFull), 128));
    assert!(long.starts_with(&reply.text));
    // A reply of which nothing has come is no message.
    let mut other = Conversation::new(&model, options()).unwrap();
    other.enqueue_text(&mut session, "one").unwrap();
    other.enqueue_text(&mut session, "two").unwrap();
    other.add_text("user", "three");
    let said: Vec<Value> = history(&other).as_array().unwrap().clone();
    assert_eq!(
        said.iter().map(|m| m["content"].as_str().unwrap()).collect::<String>(),
        "onetwothree"
    );
    // Another call on the session in the middle of a reply.
    talk.undo();
    write(&model, &script, "one two");
    talk.send_text(&mut session, "Go on").unwrap();
    talk.next(&mut session).unwrap();
    session.feed(&[1]).unwrap();
    assert_eq!(talk.next(&mut session).unwrap_err().kind(), ErrorKind::InvalidState);
    write(&model, &script, "one two");
    talk.regenerate(&mut session).unwrap();
    assert_eq!(read(&mut talk, &mut session), text("one two"));
}
