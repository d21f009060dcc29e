//! Conversations whose replies are scripted: turns, tools, history.

#[path = "support/scripted.rs"]
mod scripted;

use qwen35::conversation::{Conversation, ConversationOptions, Finish};
use qwen35::sampling::SamplingOptions;
use qwen35::tokenizer::AddedTokens;
use qwen35::{ErrorKind, Session, SessionOptions};
use serde_json::{Value, json};

use scripted::*;

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
