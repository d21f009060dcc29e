//! Sessions advanced in steps: every cut of the work gives the bits of the calls that do
//! not return before the end, and other calls in between finish or drop what is unfinished.

#[path = "support/synthetic.rs"]
mod synthetic;
#[path = "support/temp.rs"]
mod temp;
#[path = "support/tiny_tokenizer.rs"]
mod tiny_tokenizer;

use std::time::Duration;

use qwen35::sampling::SamplingOptions;
use qwen35::session::Step;
use qwen35::{ErrorKind, Model, ModelOptions, Next, Session, SessionOptions, WeightFormat};
use temp::TempDir;

fn model(threads: usize) -> (TempDir, Model) {
    model_of(threads, WeightFormat::Stored)
}

fn model_of(threads: usize, weights: WeightFormat) -> (TempDir, Model) {
    let directory = TempDir::new();
    let spec = synthetic::Spec::named("small-equal");
    spec.write(directory.path()).unwrap();
    tiny_tokenizer::write(directory.path(), spec.size("vocab_size"));
    let options = ModelOptions { threads, weights, ..ModelOptions::default() };
    let model = Model::open(directory.path(), &options).unwrap();
    (directory, model)
}

fn session(model: &Model) -> Session {
    let sampling = SamplingOptions::greedy();
    Session::new(model, SessionOptions { sampling, ..SessionOptions::default() }).unwrap()
}

fn ids(count: usize) -> Vec<u32> {
    (0..count as u32).map(|i| (i * 7919 + 3) % 250).collect()
}

fn generate(session: &mut Session, count: usize) -> Vec<u32> {
    (0..count)
        .map(|_| match session.next_token().unwrap() {
            Next::Token(id) | Next::EndOfTurn(id) => id,
            Next::LimitReached => panic!("limit reached"),
        })
        .collect()
}

/// Steps until something other than [`Step::Working`] comes; how often that came.
fn steps(session: &mut Session, budget: Duration) -> (Step, usize) {
    let mut working = 0;
    loop {
        match session.step(budget).unwrap() {
            Step::Working => working += 1,
            step => return (step, working),
        }
    }
}

fn stepped(session: &mut Session, budget: Duration, count: usize) -> Vec<u32> {
    (0..count)
        .map(|_| match steps(session, budget).0 {
            Step::Token(id) | Step::EndOfTurn(id) => id,
            other => panic!("{other:?}"),
        })
        .collect()
}

#[test]
fn steps_of_any_length_give_the_same_bits() {
    let stored = WeightFormat::Stored;
    for (threads, weights) in [(1, stored), (2, stored), (2, WeightFormat::Int4)] {
        let (_directory, model) = model_of(threads, weights);
        let tokens = ids(450);
        let mut whole = session(&model);
        whole.feed(&tokens).unwrap();
        let expected = generate(&mut whole, 4);
        let logits = whole.logits().unwrap().to_vec();
        for microseconds in [0, 200, 1_000_000] {
            let budget = Duration::from_micros(microseconds);
            let mut session = session(&model);
            session.enqueue(&tokens[..300]).unwrap();
            session.enqueue(&tokens[300..]).unwrap();
            assert_eq!((session.position(), session.remaining()), (450, 450));
            let (first, working) = steps(&mut session, budget);
            assert_eq!(first, Step::Token(expected[0]));
            assert!(microseconds > 0 || working > 100, "the smallest steps: {working}");
            assert_eq!(stepped(&mut session, budget, 3), expected[1..]);
            assert!(session.logits().unwrap() == logits, "{microseconds} us, {threads} threads");
        }
    }
}

#[test]
fn other_calls_finish_or_drop_what_is_unfinished() {
    let (_directory, model) = model(2);
    let tokens = ids(300);
    let expected = |count: usize| {
        let mut session = session(&model);
        session.feed(&tokens[..count]).unwrap();
        session.logits().unwrap().to_vec()
    };
    let begun = |steps: usize| {
        let mut session = session(&model);
        session.enqueue(&tokens).unwrap();
        (0..steps).for_each(|_| assert_eq!(session.step(Duration::ZERO).unwrap(), Step::Working));
        session
    };
    for steps in [0, 1, 7, 40, 90] {
        // Logits, a token, and feeding need all that is queued, and finish it.
        assert!(begun(steps).logits().unwrap() == expected(300));
        let mut session = begun(steps);
        session.next_token().unwrap();
        assert_eq!((session.position(), session.remaining()), (301, 1));
        let mut session = begun(steps);
        session.feed(&[7, 8]).unwrap();
        assert_eq!((session.position(), session.remaining()), (302, 0));
        // A reset drops it; nothing of it is left in what follows.
        let mut session = begun(steps);
        session.reset().unwrap();
        session.enqueue(&tokens[..32]).unwrap();
        assert!(session.logits().unwrap() == expected(32));
    }
}

#[test]
fn input_alone_comes_to_ready() {
    let (_directory, model) = model(2);
    let mut session = session(&model);
    assert_eq!(session.step(Duration::ZERO).unwrap_err().kind(), ErrorKind::InvalidState);
    session.enqueue(&ids(50)).unwrap();
    while session.step_input(Duration::ZERO).unwrap() == Step::Working {}
    assert_eq!((session.position(), session.remaining()), (50, 0));
    assert_eq!(session.step_input(Duration::ZERO).unwrap(), Step::Ready);
    let long = Duration::MAX;
    assert!(matches!(session.step(long).unwrap(), Step::Token(_) | Step::EndOfTurn(_)));
    assert_eq!(session.remaining(), 1);
}

#[test]
fn the_limit_is_kept() {
    let (_directory, model) = model(1);
    let sampling = SamplingOptions::greedy();
    let options = SessionOptions { context_limit: 20, sampling, ..SessionOptions::default() };
    let mut session = Session::new(&model, options).unwrap();
    assert_eq!(session.enqueue(&ids(21)).unwrap_err().kind(), ErrorKind::ContextOverflow);
    assert_eq!(session.enqueue(&[1, 9999]).unwrap_err().kind(), ErrorKind::InvalidArgument);
    session.enqueue(&ids(19)).unwrap();
    assert_eq!(session.enqueue(&ids(2)).unwrap_err().kind(), ErrorKind::ContextOverflow);
    assert!(matches!(steps(&mut session, Duration::MAX).0, Step::Token(_)));
    assert_eq!(steps(&mut session, Duration::MAX).0, Step::LimitReached);
    assert_eq!(session.position(), 20);
}

#[test]
fn cancel_drops_the_queue_and_keeps_the_generated_token() {
    let (_directory, model) = model(2);
    let mut session = session(&model);
    session.feed(&ids(10)).unwrap();
    let token = generate(&mut session, 1);
    session.enqueue(&ids(300)).unwrap();
    for _ in 0..9 {
        session.step(Duration::ZERO).unwrap();
    }
    session.cancel_handle().cancel();
    let error = session.step(Duration::ZERO).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    assert_eq!(session.tokens(), [ids(10), token.clone()].concat());
    // It is reusable, and goes on as if nothing had been queued.
    let mut other = self::session(&model);
    other.feed(&[ids(10), token].concat()).unwrap();
    assert_eq!(stepped(&mut session, Duration::ZERO, 3), generate(&mut other, 3));
}
