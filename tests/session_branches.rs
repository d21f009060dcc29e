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
use qwen35::session::{DEFAULT_MARKS, SaveOptions};
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

/// Of marks at one position the later ones go with a rewind to an earlier: their state may be
/// ahead of the session's, and no saved session could hold that.
#[test]
fn what_is_saved_after_a_rewind_can_be_restored() {
    let (_directory, model) = model();
    let mut original = session(&model);
    original.feed(&ids(30, 0)).unwrap();
    generate(&mut original, 1);
    let first = original.mark().unwrap();
    logits(&mut original);
    let second = original.mark().unwrap();
    original.rewind(first, true).unwrap();
    assert_eq!(kind(original.rewind(second, true)), ErrorKind::InvalidArgument);
    let saved = original.save_to_memory(SaveOptions::default()).unwrap();
    let mut restored = session(&model);
    restored.restore_from_memory(&saved).unwrap();
    assert_eq!(generate(&mut restored, 5), generate(&mut original, 5));
}

/// A mark of the caller stays where going back computes the tokens around it again.
#[test]
fn marks_before_a_cut_stay() {
    let (_directory, model) = model();
    let texts = [("system", "Be brief."), ("user", "How are you today?")];
    let mut session = session(&model);
    session.enqueue_chat(&turns(&texts), ChatEncoding::Safe).unwrap();
    let length = session.position();
    let mark = session.mark().unwrap();
    generate(&mut session, 30);
    let tokens = session.tokens().to_vec();
    session.truncate(length + 10).unwrap();
    assert_eq!(session.tokens(), &tokens[..length + 10]);
    session.rewind(mark, true).unwrap();
    // Marks that were made on the way are ahead of this one's state: what is saved has none.
    let saved = session.save_to_memory(SaveOptions::default()).unwrap();
    let mut restored = self::session(&model);
    restored.restore_from_memory(&saved).unwrap();
    assert!(logits(&mut session) == plain(&model, &tokens[..length]));
    assert!(logits(&mut restored) == plain(&model, &tokens[..length]));
}

/// What was fed and taken back leaves no trace: penalties count the output from where it began.
#[test]
fn input_that_is_dropped_does_not_end_the_output() {
    let (_directory, model) = model();
    let sampling = SamplingOptions {
        presence_penalty: 8.0,
        repetition_penalty: 3.0,
        ..SamplingOptions::greedy()
    };
    let options = SessionOptions { sampling, ..SessionOptions::default() };
    let mut original = Session::new(&model, options).unwrap();
    original.feed(&ids(20, 0)).unwrap();
    generate(&mut original, 12);
    let mut cancelled = original.fork().unwrap();
    cancelled.cancel_handle().cancel();
    assert_eq!(kind(cancelled.feed(&ids(9, 1))), ErrorKind::Cancelled);
    let mut queued = original.fork().unwrap();
    queued.enqueue(&ids(9, 1)).unwrap();
    let mut cut = queued.fork().unwrap();
    cut.truncate(original.position()).unwrap();
    // The same after a save, a rewind, and a part of the input cut off.
    let saved = queued.save_to_memory(SaveOptions::default()).unwrap();
    let mut restored = session(&model);
    restored.restore_from_memory(&saved).unwrap();
    let mut back = queued.fork().unwrap();
    let mark = back.mark().unwrap();
    back.logits().unwrap();
    back.rewind(mark, true).unwrap();
    let mut part = queued.fork().unwrap();
    part.truncate(original.position() + 4).unwrap();
    let expected = generate(&mut original, 12);
    assert_eq!(generate(&mut cancelled, 12), expected);
    assert_eq!(generate(&mut cut, 12), expected);
    for mut other in [restored, back, part] {
        assert!(other.remaining() > 0, "{}", other.position());
        other.cancel_handle().cancel();
        assert_eq!(kind(other.step(Duration::ZERO)), ErrorKind::Cancelled);
        assert_eq!(other.position(), original.position() - 12);
        assert_eq!(generate(&mut other, 12), expected);
    }
}
