//! Sessions that branch: forks, marks, going back, shared beginnings, conversations that do
//! not fit. Weights are random; every way to a sequence must give the bits of the plain one.

#[path = "support/synthetic.rs"]
mod synthetic;
#[path = "support/temp.rs"]
mod temp;
#[path = "support/tiny_tokenizer.rs"]
mod tiny_tokenizer;
#[path = "support/toy.rs"]
mod toy;

use std::ops::ControlFlow;
use std::time::Duration;

use qwen35::chat::ChatRequest;
use qwen35::sampling::SamplingOptions;
use qwen35::session::{DEFAULT_MARKS, Overflow, Step};
use qwen35::tokenizer::AddedTokens;
use qwen35::{ChatEncoding, ErrorKind, Model, ModelOptions, Next, Session, SessionOptions};
use temp::TempDir;

fn model() -> (TempDir, Model) {
    cached_model(0)
}

fn cached_model(prefix_cache_bytes: usize) -> (TempDir, Model) {
    let directory = toy::model();
    let options = ModelOptions { threads: 2, prefix_cache_bytes, ..ModelOptions::default() };
    let model = Model::open(directory.path(), &options).unwrap();
    (directory, model)
}

/// Draws tokens, so that the random stream matters.
fn options() -> SessionOptions {
    let sampling = SamplingOptions { seed: Some(7), ..SamplingOptions::default() };
    SessionOptions { sampling, ..SessionOptions::default() }
}

fn session(model: &Model) -> Session {
    Session::new(model, options()).unwrap()
}

fn ids(count: usize, salt: u32) -> Vec<u32> {
    (0..count as u32).map(|i| (i * 7919 + salt * 31 + 3) % 250).collect()
}

fn generate(session: &mut Session, count: usize) -> Vec<u32> {
    (0..count)
        .map(|_| match session.next_token().unwrap() {
            Next::Token(id) | Next::EndOfTurn(id) => id,
            Next::LimitReached => panic!("limit reached"),
        })
        .collect()
}

fn logits(session: &mut Session) -> Vec<f32> {
    session.logits().unwrap().to_vec()
}

/// The logits after `tokens`, computed plainly.
fn plain(model: &Model, tokens: &[u32]) -> Vec<f32> {
    let mut session = session(model);
    session.feed(tokens).unwrap();
    logits(&mut session)
}

fn kind<T>(result: qwen35::Result<T>) -> ErrorKind {
    result.err().unwrap().kind()
}

#[test]
fn forks_go_their_own_ways() {
    let (_directory, model) = model();
    for length in [1, 3, 63, 64, 65, 100] {
        let mut original = session(&model);
        original.feed(&ids(length, 0)).unwrap();
        // In the middle of an answer: the last token is not computed yet.
        generate(&mut original, 5);
        let mut same = original.fork().unwrap();
        let mut other = original.fork().unwrap();
        other.feed(&ids(70, 9)).unwrap();
        let expected = generate(&mut original, 20);
        assert_eq!(generate(&mut same, 20), expected, "the random stream is forked too");
        assert!(logits(&mut same) == logits(&mut original));
        assert!(logits(&mut other) == plain(&model, other.tokens()));
        // A fork of a fork, after its parents are gone.
        let mut third = other.fork().unwrap();
        let tokens = other.tokens().to_vec();
        drop((original, same, other));
        assert!(logits(&mut third) == plain(&model, &tokens));
    }
}

#[test]
fn forks_of_one_prompt_answer_as_alone() {
    let (_directory, model) = model();
    let mut prompt = session(&model);
    prompt.feed(&ids(150, 0)).unwrap();
    let mut forks: Vec<Session> = (0..6).map(|_| prompt.fork().unwrap()).collect();
    for (i, fork) in forks.iter_mut().enumerate() {
        fork.feed(&ids(1 + i * 13, i as u32)).unwrap();
    }
    let mut together = vec![Vec::new(); forks.len()];
    for _ in 0..12 {
        for (fork, out) in forks.iter_mut().zip(&mut together) {
            out.extend(generate(fork, 1));
        }
    }
    for (i, out) in together.iter().enumerate() {
        let mut alone = session(&model);
        alone.feed(&[ids(150, 0), ids(1 + i * 13, i as u32)].concat()).unwrap();
        assert_eq!(&generate(&mut alone, 12), out);
    }
    assert!(logits(&mut prompt) == plain(&model, &ids(150, 0)));
}

#[test]
fn rewinding_is_exact() {
    let (_directory, model) = model();
    for length in [1, 3, 4, 63, 64, 65, 100] {
        let mut session = session(&model);
        session.feed(&ids(length, 0)).unwrap();
        generate(&mut session, 3);
        let start = session.tokens().to_vec();
        let mark = session.mark().unwrap();
        let first = generate(&mut session, 30);
        let deeper = session.mark().unwrap();
        session.feed(&ids(80, 4)).unwrap();

        session.rewind(mark, true).unwrap();
        assert_eq!(session.tokens(), start);
        assert!(session.fork().unwrap().logits().unwrap() == plain(&model, &start));
        assert_eq!(generate(&mut session, 30), first, "the random stream went back");
        assert_eq!(kind(session.rewind(deeper, true)), ErrorKind::InvalidArgument);

        session.rewind(mark, false).unwrap();
        let second = generate(&mut session, 30);
        session.rewind(mark, false).unwrap();
        let third = generate(&mut session, 30);
        assert!(second != first || third != first, "the random stream went on");
        assert!(logits(&mut session) == plain(&model, session.tokens().to_vec().as_slice()));
        session.unmark(mark).unwrap();
        assert_eq!(kind(session.unmark(mark)), ErrorKind::InvalidArgument);
        assert_eq!(kind(session.rewind(mark, false)), ErrorKind::InvalidArgument);
    }
}

/// It clears memory in place, but not what a fork or a mark has a share of.
#[test]
fn a_reset_takes_nothing_from_others() {
    let (_directory, model) = model();
    let other = plain(&model, &ids(9, 5));
    // After a prompt, and with one to three single tokens beside the state.
    for single in 0..4 {
        let tokens = ids(70 + single, 0);
        let expected = plain(&model, &tokens);
        for steps in [0, 1] {
            let mut origin = session(&model);
            origin.feed(&tokens[..70]).unwrap();
            tokens[70..].iter().for_each(|id| origin.feed(&[*id]).unwrap());
            let mut fork = origin.fork().unwrap();
            // One that has gone on shares less.
            generate(&mut origin, steps);
            origin.reset().unwrap();
            origin.feed(&ids(9, 5)).unwrap();
            assert!(logits(&mut origin) == other);
            assert!(logits(&mut fork) == expected, "{single} tokens, {steps} steps");
            let mark = fork.mark().unwrap();
            generate(&mut fork, steps);
            fork.rewind(mark, false).unwrap();
            assert!(logits(&mut fork) == expected);
            fork.reset().unwrap();
            fork.feed(&ids(9, 5)).unwrap();
            assert!(logits(&mut fork) == other);
        }
    }
}

#[test]
fn marks_are_few() {
    let (_directory, model) = model();
    let mut few = Session::new(&model, SessionOptions { mark_limit: 2, ..options() }).unwrap();
    let a = few.mark().unwrap();
    few.feed(&ids(10, 0)).unwrap();
    let b = few.mark().unwrap();
    let error = few.mark().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidState);
    assert!(error.message().contains('2'), "{error}");
    few.unmark(a).unwrap();
    let c = few.mark().unwrap();
    let listed: Vec<_> = few.marks().map(|mark| (mark.id, mark.position)).collect();
    assert_eq!(listed, [(b, 10), (c, 10)]);
    // A fork has the marks too, and drops its own only.
    let mut fork = few.fork().unwrap();
    fork.unmark(b).unwrap();
    few.feed(&ids(10, 1)).unwrap();
    few.rewind(b, false).unwrap();
    fork.rewind(c, false).unwrap();
    assert_eq!((few.position(), fork.position()), (10, 10));
    // A mark of the empty sequence.
    let mut empty = session(&model);
    let start = empty.mark().unwrap();
    empty.feed(&ids(5, 0)).unwrap();
    empty.rewind(start, false).unwrap();
    assert_eq!(kind(empty.logits().map(|_| ())), ErrorKind::InvalidState);
    empty.reset().unwrap();
    assert_eq!(empty.marks().len(), 0);
}

#[test]
fn truncation_says_what_it_cost() {
    let (_directory, model) = model();
    let mut session = session(&model);
    session.feed(&ids(100, 0)).unwrap();
    session.mark().unwrap();
    session.feed(&ids(200, 1)).unwrap();
    let last = generate(&mut session, 1);
    assert_eq!(session.truncate(301).unwrap(), 0);
    assert_eq!(kind(session.truncate(302)), ErrorKind::InvalidArgument);
    // The last token is not computed yet: cutting it off is free.
    assert_eq!(session.truncate(300).unwrap(), 0);
    assert_eq!(last.len(), 1);
    for (position, cost) in [(299, 199), (150, 50), (100, 0), (99, 99), (1, 1), (0, 0)] {
        assert_eq!(session.truncate(position).unwrap(), cost, "{position}");
        assert_eq!(session.position(), position);
        if position > 0 {
            let tokens = session.tokens().to_vec();
            assert!(logits(&mut session) == plain(&model, &tokens), "{position}");
        }
    }
    assert_eq!(session.marks().len(), 0);
}

#[test]
fn a_cancelled_truncation_leaves_a_beginning() {
    let (_directory, model) = model();
    let mut session = session(&model);
    session.feed(&ids(1000, 0)).unwrap();
    session.set_progress(Some(Box::new(|progress| match progress.done {
        0..300 => ControlFlow::Continue(()),
        _ => ControlFlow::Break(()),
    })));
    assert_eq!(kind(session.truncate(900)), ErrorKind::Cancelled);
    session.set_progress(None);
    let kept = session.position();
    assert!(kept > 0 && kept < 900, "{kept}");
    assert_eq!(session.tokens(), &ids(1000, 0)[..kept]);
    session.feed(&ids(1000, 0)[kept..900]).unwrap();
    assert!(logits(&mut session) == plain(&model, &ids(1000, 0)[..900]));
}

fn turns(texts: &[(&str, &str)]) -> ChatRequest {
    ChatRequest::from_turns(texts.iter().copied())
}

#[test]
fn ten_turns_cost_their_own_tokens() {
    let (_directory, model) = model();
    let mut session = session(&model);
    let system = "be brief ".repeat(10);
    let mut texts = vec![("system".to_owned(), system)];
    let request = |texts: &[(String, String)]| {
        ChatRequest::from_turns(texts.iter().map(|(role, text)| (&**role, &**text)))
    };
    let length = |texts: &[(String, String)]| {
        let request = request(texts).add_generation_prompt(false);
        model.encode_chat(&request, ChatEncoding::Safe).unwrap().len()
    };
    for turn in 0..10 {
        let history = if turn == 0 { 0 } else { length(&texts[..texts.len() - 1]) };
        texts.push(("user".into(), format!("question {turn} ").repeat(5)));
        let fed = session.feed_chat(&request(&texts), ChatEncoding::Safe).unwrap();
        // What is new: the answer as the template writes it in history, and the question.
        assert_eq!(fed.computed, fed.total - history, "turn {turn}");
        assert_eq!(session.last_fed(), fed);
        let tokens = session.tokens().to_vec();
        assert!(logits(&mut session) == plain(&model, &tokens), "turn {turn}");
        let answer = generate(&mut session, 6);
        let answer: String = answer.iter().map(|id| char::from(97 + (id % 26) as u8)).collect();
        texts.push(("assistant".into(), answer));
    }
    assert!(session.marks().len() <= DEFAULT_MARKS);

    // The newest question asked otherwise costs that question, and an answer once more
    // nothing.
    texts.truncate(texts.len() - 2);
    texts.push(("user".into(), "another".into()));
    let history = length(&texts[..texts.len() - 1]);
    let fed = session.feed_chat(&request(&texts), ChatEncoding::Safe).unwrap();
    assert!(fed.computed <= fed.total - history, "{fed:?} {history}");
    generate(&mut session, 6);
    let fed = session.feed_chat(&request(&texts), ChatEncoding::Safe).unwrap();
    let header = fed.total - length(&texts);
    assert_eq!(fed.computed, header);
    let tokens = session.tokens().to_vec();
    assert!(logits(&mut session) == plain(&model, &tokens));
}

#[test]
fn sessions_of_a_namespace_share_their_beginnings() {
    let (_directory, model) = cached_model(8 << 20);
    let within = |namespace| {
        let options = SessionOptions { cache_namespace: namespace, ..options() };
        Session::new(&model, options).unwrap()
    };
    let system = "You are a guard of the town. ".repeat(8);
    let ask = |question: &str| turns(&[("system", &system), ("user", question)]);
    let mut first = within(Some(1));
    let fed = first.feed_chat(&ask("who goes there"), ChatEncoding::Safe).unwrap();
    assert_eq!((fed.computed, fed.cached), (fed.total, 0));

    let cold = {
        let mut cold = within(None);
        let fed = cold.feed_chat(&ask("stop"), ChatEncoding::Safe).unwrap();
        assert_eq!((fed.computed, fed.cached), (fed.total, 0), "no namespace shares nothing");
        logits(&mut cold)
    };
    let mut other = within(Some(2));
    let fed = other.feed_chat(&ask("stop"), ChatEncoding::Safe).unwrap();
    assert_eq!(fed.cached, 0, "another namespace shares nothing");

    let mut second = within(Some(1));
    let fed = second.feed_chat(&ask("stop"), ChatEncoding::Safe).unwrap();
    assert!(fed.cached > system.len() / 4 && fed.computed + fed.cached == fed.total, "{fed:?}");
    assert!(logits(&mut second) == cold, "cached equals uncached");
    let mut plain_session = within(None);
    plain_session.feed_chat(&ask("stop"), ChatEncoding::Safe).unwrap();
    assert_eq!(generate(&mut second, 20), generate(&mut plain_session, 20));
    // It can go on from there as any other, and back.
    let tokens = second.tokens().to_vec();
    second.truncate(tokens.len() - 30).unwrap();
    assert!(logits(&mut second) == plain(&model, &tokens[..tokens.len() - 30]));

    let stats = model.prefix_cache().unwrap().stats();
    assert!(stats.hits >= 1 && stats.entries >= 3 && stats.bytes <= stats.limit, "{stats:?}");
    model.prefix_cache().unwrap().clear(Some(1));
    assert!(model.prefix_cache().unwrap().stats().entries < stats.entries);
    let fed = within(Some(1)).feed_chat(&ask("stop"), ChatEncoding::Safe).unwrap();
    assert_eq!(fed.cached, 0);
    model.prefix_cache().unwrap().clear(None);
    assert_eq!(model.prefix_cache().unwrap().stats().bytes, 0);
}

#[test]
fn the_prefix_cache_keeps_its_bound() {
    let limit = 600 << 10;
    let (_directory, model) = cached_model(limit);
    let options = SessionOptions { cache_namespace: Some(0), ..options() };
    let mut session = Session::new(&model, options).unwrap();
    for i in 0..40 {
        let system = format!("{i} ").repeat(30 + i);
        let request = turns(&[("system", &system), ("user", "a")]);
        session.feed_chat(&request, ChatEncoding::Safe).unwrap();
        let stats = model.prefix_cache().unwrap().stats();
        assert!(stats.bytes <= limit && stats.entries > 0, "{stats:?}");
        let tokens = session.tokens().to_vec();
        assert!(logits(&mut session) == plain(&model, &tokens), "turn {i}");
    }
    assert!(model.prefix_cache().unwrap().stats().evictions > 0);
}

#[test]
fn set_tokens_computes_what_is_new() {
    let (_directory, model) = model();
    let mut session = session(&model);
    assert_eq!(session.set_tokens(&ids(100, 0)).unwrap().computed, 100);
    assert_eq!(session.set_tokens(&ids(130, 0)).unwrap().computed, 30);
    generate(&mut session, 3);
    let fed = session.set_tokens(&[ids(130, 0), vec![1, 2]].concat()).unwrap();
    assert_eq!(fed.total, 132);
    let tokens = session.tokens().to_vec();
    assert!(logits(&mut session) == plain(&model, &tokens));
    assert_eq!(kind(session.set_tokens(&[1, u32::MAX])), ErrorKind::InvalidArgument);
    assert_eq!(kind(session.set_tokens(&ids(toy::CONTEXT + 1, 0))), ErrorKind::ContextOverflow);
    assert_eq!(session.tokens(), tokens);
    assert_eq!(session.set_tokens(&[]).unwrap().total, 0);
    assert_eq!(session.position(), 0);
}

#[test]
fn overflow_drops_the_oldest_turns_if_asked_to() {
    let (_directory, model) = model();
    let system = "The code is BLUE-17. ";
    let filler = "filler ".repeat(12);
    let mut texts = vec![("system", system)];
    for _ in 0..12 {
        texts.extend([("user", &*filler), ("assistant", "ok")]);
    }
    texts.push(("user", "What is the code?"));
    let limit = 512;
    let refusing = SessionOptions { context_limit: limit, ..options() };
    let mut strict = Session::new(&model, refusing.clone()).unwrap();
    strict.feed(&ids(5, 0)).unwrap();
    let error = strict.feed_chat(&turns(&texts), ChatEncoding::Safe).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ContextOverflow);
    assert!(error.message().contains("512"), "{error}");
    assert_eq!(strict.tokens(), ids(5, 0), "nothing was consumed");

    for reserve in [0, 1, 100, 300] {
        let overflow = Overflow::DropTurns { reserve };
        let mut lenient =
            Session::new(&model, SessionOptions { overflow, ..refusing.clone() }).unwrap();
        let fed = lenient.feed_chat(&turns(&texts), ChatEncoding::Safe).unwrap();
        assert_eq!(fed.kept_messages, 1);
        assert!(fed.dropped_messages > 0 && fed.dropped_messages.is_multiple_of(2), "{fed:?}");
        let free = limit - fed.total;
        assert!(free >= if reserve == 0 { limit / 4 } else { reserve }, "{fed:?}");
        // Exactly the conversation without those messages.
        let mut kept = texts.clone();
        kept.drain(1..1 + fed.dropped_messages);
        let expected = model.encode_chat(&turns(&kept), ChatEncoding::Safe).unwrap();
        assert_eq!(lenient.tokens(), expected);
        assert!(logits(&mut lenient) == plain(&model, &expected));
        // One turn less would not have left the room.
        let mut more = texts.clone();
        more.drain(1..fed.dropped_messages - 1);
        let more = model.encode_chat(&turns(&more), ChatEncoding::Safe).unwrap();
        assert!(limit.saturating_sub(more.len()) < if reserve == 0 { limit / 4 } else { reserve });
        // The system prompt is not computed again when more turns have to go.
        let held = fed.total;
        texts.extend([("assistant", "BLUE-17"), ("user", &*filler)]);
        for _ in 0..6 {
            texts.extend([("assistant", "ok"), ("user", &*filler)]);
        }
        let fed = lenient.feed_chat(&turns(&texts), ChatEncoding::Safe).unwrap();
        assert!(fed.dropped_messages > 0 && fed.computed < fed.total, "{held} {fed:?}");
        texts.truncate(26);
    }

    // What was left out once is left out again as long as the rest fits: turns cost their own
    // tokens, not all of them.
    let overflow = Overflow::DropTurns { reserve: 0 };
    let mut lenient =
        Session::new(&model, SessionOptions { overflow, ..refusing.clone() }).unwrap();
    let (mut longer, mut again) = (texts.clone(), 0);
    let mut before = lenient.feed_chat(&turns(&longer), ChatEncoding::Safe).unwrap();
    for turn in 0..12 {
        longer.extend([("assistant", "ok"), ("user", "And then?")]);
        let fed = lenient.feed_chat(&turns(&longer), ChatEncoding::Safe).unwrap();
        if fed.dropped_messages == before.dropped_messages {
            assert!(fed.computed < 60, "turn {turn}: {fed:?}");
        } else {
            assert!(
                before.total + 60 > limit && fed.total <= limit - limit / 4,
                "{before:?} {fed:?}"
            );
            again += 1;
        }
        before = fed;
    }
    assert!((1..4).contains(&again), "{again} times");

    // The newest turn may use the reserve; if it does not fit at all, that is an error.
    let overflow = Overflow::DropTurns { reserve: 500 };
    let mut lenient =
        Session::new(&model, SessionOptions { overflow, ..refusing.clone() }).unwrap();
    let fed = lenient.feed_chat(&turns(&texts), ChatEncoding::Safe).unwrap();
    assert_eq!(fed.dropped_messages, 24);
    let long = "long ".repeat(400);
    let before = lenient.tokens().to_vec();
    for texts in [vec![("user", &*long)], vec![("user", "a"), ("user", &*long)]] {
        let error = lenient.feed_chat(&turns(&texts), ChatEncoding::Safe).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ContextOverflow);
        assert_eq!(lenient.tokens(), before, "nothing was consumed");
        assert_eq!(lenient.last_fed().total, 0);
    }
}

#[test]
fn plain_feeds_drop_turns_too() {
    let (_directory, model) = model();
    let encode = |text: &str| {
        let mut ids = Vec::new();
        model.tokenizer().encode(text, AddedTokens::Honour, &mut ids);
        ids
    };
    let turn = |text: &str| encode(&format!("<|im_start|>user\n{text}<|im_end|>\n"));
    let reply = encode("<|im_start|>assistant\nok<|im_end|>\n");
    let system = encode("<|im_start|>system\nThe code is BLUE-17.<|im_end|>\n");
    let context_limit = 256;
    let overflow = Overflow::DropTurns { reserve: 0 };
    for in_steps in [false, true] {
        let options = SessionOptions { context_limit, overflow, ..options() };
        let mut session = Session::new(&model, options).unwrap();
        let feed = |session: &mut Session, ids: &[u32]| match in_steps {
            false => session.feed(ids),
            true => session.enqueue(ids).and_then(|()| {
                loop {
                    if session.step_input(Duration::from_millis(5))? == Step::Ready {
                        return Ok(());
                    }
                }
            }),
        };
        feed(&mut session, &system).unwrap();
        let (mut held, mut times) = (system.clone(), 0);
        for n in 0..20 {
            let more = [turn(&format!("question {n} ").repeat(3)), reply.clone()].concat();
            feed(&mut session, &more).unwrap();
            held.extend_from_slice(&more);
            let fed = session.last_fed();
            if held.len() <= context_limit {
                assert_eq!((fed.dropped_tokens, fed.kept_tokens), (0, 0));
            } else {
                // What is in front of the first question stays, whole turns go.
                assert_eq!(fed.kept_tokens, system.len());
                assert!(fed.dropped_tokens > 0);
                held.drain(fed.kept_tokens..fed.kept_tokens + fed.dropped_tokens);
                assert!(held.len() <= context_limit * 3 / 4);
                times += 1;
            }
            assert_eq!((session.tokens(), fed.total), (&held[..], held.len()));
        }
        assert!(times > 1);
        assert!(logits(&mut session) == plain(&model, &held));
        // Without turns, or with a newest one that does not fit, it is refused whole.
        let before = session.tokens().to_vec();
        for more in [encode(&"long ".repeat(300)), turn(&"long ".repeat(300))] {
            assert_eq!(kind(feed(&mut session, &more)), ErrorKind::ContextOverflow);
            assert_eq!(session.tokens(), before);
        }
        session.reset().unwrap();
        feed(&mut session, &ids(250, 1)).unwrap();
        assert_eq!(kind(feed(&mut session, &ids(10, 2))), ErrorKind::ContextOverflow);
        assert_eq!(session.tokens(), ids(250, 1));
    }
}
