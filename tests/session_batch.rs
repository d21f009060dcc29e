//! Sessions advanced together: each gets the bits it would get alone, whatever the others
//! are and whatever becomes of them.

#[path = "support/synthetic.rs"]
mod synthetic;
#[path = "support/temp.rs"]
mod temp;
#[path = "support/tiny_tokenizer.rs"]
mod tiny_tokenizer;

use qwen35::sampling::SamplingOptions;
use qwen35::session::batch_step;
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

fn session(model: &Model, seed: u64) -> Session {
    let sampling = SamplingOptions { seed: Some(seed), ..SamplingOptions::default() };
    Session::new(model, SessionOptions { sampling, ..SessionOptions::default() }).unwrap()
}

fn ids(count: usize, start: usize) -> Vec<u32> {
    (0..count).map(|i| ((start + i) * 7919 % 250) as u32).collect()
}

fn id(next: Next) -> u32 {
    match next {
        Next::Token(id) | Next::EndOfTurn(id) => id,
        Next::LimitReached => panic!("limit reached"),
    }
}

#[test]
fn each_session_gets_what_it_gets_alone() {
    let stored = WeightFormat::Stored;
    for (threads, weights) in [(1, stored), (2, stored), (2, WeightFormat::Int4)] {
        let (_directory, model) = model_of(threads, weights);
        for count in [1, 2, 5, 9] {
            // Prompts of many lengths: some beyond a page, one beyond a segment.
            let prompt = |n: usize| ids(1 + n * n * 37 % 600, n);
            let (mut expected, mut logits) = (Vec::new(), Vec::new());
            for n in 0..count {
                let mut session = session(&model, n as u64);
                session.feed(&prompt(n)).unwrap();
                let made: Vec<u32> = (0..10).map(|_| id(session.next_token().unwrap())).collect();
                expected.push(made);
                logits.push(session.logits().unwrap().to_vec());
            }
            let mut sessions: Vec<Session> =
                (0..count).map(|n| session(&model, n as u64)).collect();
            for (n, session) in sessions.iter_mut().enumerate() {
                if n % 3 == 0 {
                    session.enqueue(&prompt(n)).unwrap();
                } else {
                    session.feed(&prompt(n)).unwrap();
                }
            }
            let mut made = vec![Vec::new(); count];
            for _ in 0..10 {
                let mut together: Vec<&mut Session> = sessions.iter_mut().collect();
                for (n, outcome) in batch_step(&mut together).unwrap().into_iter().enumerate() {
                    made[n].push(id(outcome.unwrap()));
                }
            }
            assert_eq!(made, expected, "{count} sessions");
            for (session, logits) in sessions.iter_mut().zip(&logits) {
                assert!(session.logits().unwrap() == logits);
            }
        }
    }
}

#[test]
fn one_that_cannot_go_on_does_not_disturb_the_others() {
    let (_directory, model) = model(2);
    let mut alone = session(&model, 1);
    alone.feed(&ids(20, 0)).unwrap();
    let expected: Vec<u32> = (0..6).map(|_| id(alone.next_token().unwrap())).collect();

    let (mut good, mut empty) = (session(&model, 1), session(&model, 2));
    good.feed(&ids(20, 0)).unwrap();
    let sampling = SamplingOptions::greedy();
    let options = SessionOptions { context_limit: 22, sampling, ..SessionOptions::default() };
    let mut short = Session::new(&model, options).unwrap();
    short.feed(&ids(20, 5)).unwrap();
    let mut cancelled = session(&model, 3);
    cancelled.feed(&ids(30, 5)).unwrap();
    for (step, expected) in expected.into_iter().enumerate() {
        if step >= 2 {
            cancelled.cancel_handle().cancel();
        }
        let before = cancelled.position();
        let mut together = [&mut empty, &mut good, &mut short, &mut cancelled];
        let outcomes = batch_step(&mut together).unwrap();
        let kind = |n: usize| outcomes[n].as_ref().unwrap_err().kind();
        assert_eq!(kind(0), ErrorKind::InvalidState);
        assert_eq!(id(*outcomes[1].as_ref().unwrap()), expected);
        assert_eq!(outcomes[2] == Ok(Next::LimitReached), step >= 2);
        if step >= 2 {
            assert_eq!(kind(3), ErrorKind::Cancelled);
            assert_eq!(cancelled.position(), before);
        }
    }
    // The cancelled one stands where it was and goes on.
    let mut other = session(&model, 3);
    other.feed(&ids(30, 5)).unwrap();
    let all: Vec<u32> = (0..3).map(|_| id(other.next_token().unwrap())).collect();
    assert_eq!(cancelled.tokens()[30..], all[..2]);
    assert_eq!(id(cancelled.next_token().unwrap()), all[2]);
}

#[test]
fn a_batch_is_of_one_model() {
    let ((_a, one), (_b, other)) = (model(1), model(1));
    let (mut first, mut second) = (session(&one, 0), session(&other, 0));
    first.feed(&[1]).unwrap();
    second.feed(&[1]).unwrap();
    let error = batch_step(&mut [&mut first, &mut second]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert_eq!((first.position(), second.position()), (1, 1));
    assert!(batch_step(&mut []).unwrap().is_empty());
    assert_eq!(one.statistics().sessions, 1);
}
