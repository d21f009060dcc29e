//! Replies of conversations, which are scripted: thoughts and their budget, stop strings, cuts.

#[path = "support/scripted.rs"]
mod scripted;

use std::collections::VecDeque;
use std::ops::ControlFlow;

use qwen35::conversation::{Conversation, ConversationOptions, Finish, Piece};
use qwen35::sampling::SamplingOptions;
use qwen35::session::{Overflow, SaveOptions};
use qwen35::tokenizer::{AddedTokens, Special};
use qwen35::{ErrorKind, Session, SessionOptions};

use scripted::*;

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
