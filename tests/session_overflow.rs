//! Conversations longer than the context: which turns are left out, and when.

#[path = "support/synthetic.rs"]
mod synthetic;
#[path = "support/temp.rs"]
mod temp;
#[path = "support/tiny_tokenizer.rs"]
mod tiny_tokenizer;
#[path = "support/toy.rs"]
mod toy;

use std::time::Duration;

use qwen35::chat::ChatRequest;
use qwen35::sampling::SamplingOptions;
use qwen35::session::{Overflow, SaveOptions, Step};
use qwen35::tokenizer::AddedTokens;
use qwen35::{ChatEncoding, ErrorKind, Model, ModelOptions, Session, SessionOptions};
use temp::TempDir;

fn model() -> (TempDir, Model) {
    let directory = toy::model();
    let options = ModelOptions { threads: 2, ..ModelOptions::default() };
    let model = Model::open(directory.path(), &options).unwrap();
    (directory, model)
}

fn options() -> SessionOptions {
    SessionOptions { sampling: SamplingOptions::greedy(), ..SessionOptions::default() }
}

/// A session that leaves turns out.
fn lenient(model: &Model, context_limit: usize, reserve: usize) -> Session {
    let overflow = Overflow::DropTurns { reserve };
    Session::new(model, SessionOptions { context_limit, overflow, ..options() }).unwrap()
}

fn ids(count: usize, salt: u32) -> Vec<u32> {
    (0..count as u32).map(|i| (i * 7919 + salt * 31 + 3) % 250).collect()
}

fn logits(session: &mut Session) -> Vec<f32> {
    session.logits().unwrap().to_vec()
}

/// The logits after `tokens`, computed plainly.
fn plain(model: &Model, tokens: &[u32]) -> Vec<f32> {
    let mut session = Session::new(model, options()).unwrap();
    session.feed(tokens).unwrap();
    logits(&mut session)
}

fn kind<T>(result: qwen35::Result<T>) -> ErrorKind {
    result.err().unwrap().kind()
}

fn turns(texts: &[(&str, &str)]) -> ChatRequest {
    ChatRequest::from_turns(texts.iter().copied())
}

/// A system message and `count` short turns of a conversation about `topic`.
fn conversation<'a>(system: &'a str, topic: &'a str, count: usize) -> Vec<(&'static str, &'a str)> {
    let mut texts = vec![("system", system)];
    for _ in 0..count {
        texts.extend([("user", topic), ("assistant", "ok")]);
    }
    texts.push(("user", topic));
    texts
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
            // Half of the reserve is the least that is left for the answer.
            let (most, all) = (limit - limit / 8, limit - limit / 4);
            assert!(before.total + 60 > most && fed.total <= all, "{before:?} {fed:?}");
            again += 1;
        }
        assert!(limit - fed.total >= limit / 8, "{fed:?}");
        before = fed;
    }
    assert!((1..6).contains(&again), "{again} times");

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

/// A conversation that fits but leaves no room for an answer is shortened as well.
#[test]
fn half_of_the_reserve_is_kept_for_the_answer() {
    let (_directory, model) = model();
    let (limit, reserve) = (400, 150);
    let mut seen = [false; 2];
    for count in 1..30 {
        let texts = conversation("Be brief.", "How are you today?", count);
        let whole = model.encode_chat(&turns(&texts), ChatEncoding::Safe).unwrap().len();
        let mut session = lenient(&model, limit, reserve);
        let fed = session.feed_chat(&turns(&texts), ChatEncoding::Safe).unwrap();
        let drops = whole > limit - reserve / 2;
        assert_eq!(fed.dropped_messages > 0, drops, "{whole} {fed:?}");
        let least = if drops { reserve } else { reserve / 2 };
        assert!(limit - fed.total >= least, "{whole} {fed:?}");
        seen[usize::from(drops && whole <= limit)] = true;
    }
    assert_eq!(seen, [true; 2], "both cases were met");
    // The newest turn alone is fed even if it leaves less.
    let long = "word ".repeat(60);
    let texts = conversation("Be brief.", &long, 0);
    let fed = lenient(&model, limit, reserve).feed_chat(&turns(&texts), ChatEncoding::Safe);
    let fed = fed.unwrap();
    assert!(fed.dropped_messages == 0 && limit - fed.total < reserve / 2, "{fed:?}");
}

/// What was left out belongs to a conversation: it is saved with the session, and another one
/// on the same session is not shortened by it.
#[test]
fn what_is_left_out_belongs_to_its_conversation() {
    let (_directory, model) = model();
    let (limit, reserve) = (500, 200);
    let system = "You are a helpful guide. ".repeat(6);
    let feed = |session: &mut Session, texts: &[(&str, &str)]| {
        session.feed_chat(&turns(texts), ChatEncoding::Safe).unwrap()
    };
    let first = conversation(&system, "Where is the castle, and who lives there?", 30);
    let second = conversation(&system, "What time is it?", 20);
    let mut session = lenient(&model, limit, reserve);
    let fed = feed(&mut session, &first);
    assert!(fed.dropped_messages > 0);

    // Saved and restored, the next turn leaves out the same.
    let saved = session.save_to_memory(SaveOptions::default()).unwrap();
    let mut restored = lenient(&model, limit, reserve);
    restored.restore_from_memory(&saved).unwrap();
    let mut longer = first.clone();
    longer.extend([("assistant", "ok"), ("user", "And then?")]);
    let went_on = feed(&mut session, &longer);
    assert_eq!(went_on.dropped_messages, fed.dropped_messages);
    assert_eq!(feed(&mut restored, &longer), went_on);
    assert_eq!(restored.tokens(), session.tokens());

    // Another conversation goes by itself, and so does the first one after a reset.
    let alone = feed(&mut lenient(&model, limit, reserve), &second);
    assert_eq!(feed(&mut session, &second).dropped_messages, alone.dropped_messages);
    let alone = feed(&mut lenient(&model, limit, reserve), &longer);
    restored.reset().unwrap();
    assert_eq!(feed(&mut restored, &longer).dropped_messages, alone.dropped_messages);
}

/// A cancelled feed that left turns out says which, although the sequence is incomplete.
#[test]
fn a_cancelled_feed_tells_what_it_left_out() {
    let (_directory, model) = model();
    let encode = |text: &str| {
        let mut ids = Vec::new();
        model.tokenizer().encode(text, AddedTokens::Honour, &mut ids);
        ids
    };
    let mut session = lenient(&model, 200, 100);
    let mut all = encode("<|im_start|>system\nBe brief.<|im_end|>\n");
    let system = all.len();
    let turn = encode("<|im_start|>user\nHow are you today?<|im_end|>\n");
    while all.len() + turn.len() <= 200 {
        all.extend_from_slice(&turn);
    }
    session.feed(&all).unwrap();
    session.cancel_handle().cancel();
    assert_eq!(kind(session.feed(&turn)), ErrorKind::Cancelled);
    let fed = session.last_fed();
    assert!(fed.dropped_tokens > 0 && fed.kept_tokens == system, "{fed:?}");
    all.extend_from_slice(&turn);
    all.drain(fed.kept_tokens..fed.kept_tokens + fed.dropped_tokens);
    assert_eq!(fed.total, all.len());
    assert!(all.starts_with(session.tokens()));
    session.feed(&all[session.position()..]).unwrap();
    assert!(logits(&mut session) == plain(&model, &all));
    // Ids that cannot be: nothing was fed.
    assert_eq!(kind(session.feed(&[u32::MAX])), ErrorKind::InvalidArgument);
    assert_eq!(session.last_fed().total, 0);
}
