//! What sessions and models say of what they have done.

#[path = "support/synthetic.rs"]
mod synthetic;
#[path = "support/temp.rs"]
mod temp;
#[path = "support/tiny_tokenizer.rs"]
mod tiny_tokenizer;
#[path = "support/toy.rs"]
mod toy;

use std::time::Duration;

use qwen35::sampling::SamplingOptions;
use qwen35::session::{SaveOptions, Step, batch_step};
use qwen35::{ErrorKind, Model, ModelOptions, Session, SessionOptions};
use temp::TempDir;

fn model() -> (TempDir, Model) {
    let directory = toy::model();
    let options = ModelOptions { threads: 2, ..ModelOptions::default() };
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

/// Steps count as the calls that do not return before the end.
#[test]
fn steps_are_counted() {
    let (_directory, model) = model();
    let mut session = session(&model);
    session.enqueue(&ids(300)).unwrap();
    let (mut tokens, mut steps) = (0, 0);
    while tokens < 10 {
        steps += 1;
        match session.step(Duration::from_micros(200)).unwrap() {
            Step::Working => {}
            Step::Token(_) | Step::EndOfTurn(_) => tokens += 1,
            step => panic!("{step:?}"),
        }
    }
    assert!(steps > 11);
    for statistics in [session.statistics(), model.statistics()] {
        assert_eq!((statistics.input_tokens, statistics.output_tokens), (300, 10));
        assert!(statistics.input_time > Duration::ZERO && statistics.output_time > Duration::ZERO);
        assert!(statistics.input_rate() > 0.0 && statistics.output_rate() > 0.0);
    }
    // Input that is judged and kept is input.
    session.score(&ids(20), true).unwrap();
    assert_eq!(session.statistics().input_tokens, 320);
}

#[test]
fn the_first_token_is_behind_the_newest_input() {
    let (_directory, model) = model();
    let mut session = session(&model);
    let pause = Duration::from_millis(300);
    session.feed(&ids(5)).unwrap();
    std::thread::sleep(pause);
    session.feed(&ids(5)).unwrap();
    session.next_token().unwrap();
    assert!(session.statistics().first_token_time < pause);
    session.feed(&ids(5)).unwrap();
    session.reset().unwrap();
    std::thread::sleep(pause);
    session.feed(&ids(5)).unwrap();
    session.next_token().unwrap();
    assert!(session.statistics().first_token_time < pause);
}

/// The model's bytes are those of its sessions, whatever they do.
#[test]
fn a_model_knows_what_its_sessions_use() {
    let (_directory, model) = model();
    let same = |sessions: &[&Session], when: &str| {
        let sum: u64 = sessions.iter().map(|session| session.statistics().bytes).sum();
        assert_eq!(model.statistics().bytes, sum, "{when}");
    };
    let mut one = session(&model);
    same(&[&one], "new");
    one.feed(&ids(150)).unwrap();
    same(&[&one], "fed");
    let mut two = one.fork().unwrap();
    same(&[&one, &two], "forked");
    let mark = two.mark().unwrap();
    same(&[&one, &two], "marked");
    batch_step(&mut [&mut one, &mut two]).unwrap();
    same(&[&one, &two], "batch");
    two.enqueue(&ids(100)).unwrap();
    two.step(Duration::from_nanos(1)).unwrap();
    same(&[&one, &two], "stepped");
    two.rewind(mark, true).unwrap();
    same(&[&one, &two], "gone back");
    let saved = one.save_to_memory(SaveOptions::default()).unwrap();
    two.restore_from_memory(&saved).unwrap();
    same(&[&one, &two], "restored");
    two.enqueue(&ids(100)).unwrap();
    two.cancel_handle().cancel();
    two.step(Duration::ZERO).unwrap_err();
    same(&[&one, &two], "cancelled");
    two.truncate(10).unwrap();
    same(&[&one, &two], "cut");
    two.truncate(0).unwrap();
    same(&[&one, &two], "cut to nothing");
    one.reset().unwrap();
    same(&[&one, &two], "reset");
    drop(one);
    same(&[&two], "freed");
}

/// Marks where the session stands cost nothing beside it; later each has its own recurrent
/// state, and no pages but the last.
#[test]
fn marks_count_what_they_hold_alone() {
    let (_directory, model) = model();
    let mut session = session(&model);
    session.feed(&ids(1000)).unwrap();
    session.logits().unwrap();
    let before = session.statistics().bytes;
    for _ in 0..4 {
        session.mark().unwrap();
    }
    assert_eq!(session.statistics().bytes, before);
    for _ in 0..8 {
        session.next_token().unwrap();
    }
    let after = session.statistics().bytes;
    assert!(after > before && after < 2 * before, "{before} {after}");
}

/// Only of a token that was chosen can be said how likely it was.
#[test]
fn queued_input_was_not_chosen() {
    let (_directory, model) = model();
    let mut session = session(&model);
    session.feed(&ids(20)).unwrap();
    session.enqueue(&[7]).unwrap();
    let error = session.chosen_logprobs(1).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidState);
    session.next_token().unwrap();
    session.chosen_logprobs(1).unwrap();
}
