//! What forks cost: memory counted by the allocator, and time.

#[path = "support/counting.rs"]
mod counting;
#[path = "support/synthetic.rs"]
mod synthetic;
#[path = "support/temp.rs"]
mod temp;
#[path = "support/tiny_tokenizer.rs"]
mod tiny_tokenizer;

use std::time::{Duration, Instant};

use qwen35::model::state::RecurrentShape;
use qwen35::sampling::SamplingOptions;
use qwen35::{Model, ModelOptions, Session, SessionOptions};

#[test]
fn a_hundred_forks_cost_little() {
    let directory = temp::TempDir::new();
    let spec = synthetic::Spec::named("small-grouped");
    spec.write(directory.path()).unwrap();
    tiny_tokenizer::write(directory.path(), spec.size("vocab_size"));
    // One thread: the counting is by thread.
    let options = ModelOptions { threads: 1, ..ModelOptions::default() };
    let model = Model::open(directory.path(), &options).unwrap();
    let recurrent = RecurrentShape::new(model.config().unwrap()).bytes() as isize;
    let sampling = SamplingOptions { seed: Some(1), ..SamplingOptions::default() };
    let options = SessionOptions { sampling, ..SessionOptions::default() };
    let mut prompt = Session::new(&model, options).unwrap();
    let ids: Vec<u32> = (0..2000).map(|i| i * 7919 % 250).collect();
    prompt.feed(&ids).unwrap();
    prompt.mark().unwrap();

    let before = counting::held();
    let began = Instant::now();
    let mut forks: Vec<Session> = (0..100).map(|_| prompt.fork().unwrap()).collect();
    let took = began.elapsed();
    let held = counting::held() - before;
    // Nothing but the list of tokens, the tables of pages and the session itself.
    assert!(held < 100 * (16 << 10), "100 forks hold {held} bytes");
    assert!(took < Duration::from_secs(1), "100 forks took {took:?}");

    // Each moves on: a recurrent state, the page being filled, logits and scratch.
    for (i, fork) in forks.iter_mut().enumerate() {
        fork.feed(&[i as u32]).unwrap();
        fork.next_token().unwrap();
    }
    let moved = counting::held() - before;
    assert!(moved < 100 * (recurrent + (1 << 20)), "100 forks that moved on hold {moved} bytes");
    drop(forks);
    let left = counting::held() - before;
    assert!(left < recurrent + (1 << 20), "{left} bytes are left of the forks");
}
