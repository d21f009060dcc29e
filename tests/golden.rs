//! The engine against Transformers in FP32.
//!
//! tests/data/golden/*.json holds what Transformers computes for small checkpoints (made by
//! tests/reference/make_golden.py, which says how); the weights are made again here, from the
//! same formula. The layer-* checkpoints are a single DeltaNet layer and a single attention
//! layer with the published head sizes, between an embedding and an output matrix with more rows
//! than columns, so that their logits determine the layer's output.

mod support {
    pub mod golden;
    pub mod synthetic;
    pub mod temp;
    pub mod tiny_tokenizer;
}

use support::golden::{Golden, instruction_sets, open, session};

/// Largest difference from Transformers' logits, whose own standard deviation is about one.
/// Measured here: 3e-5 in general, 1.2e-4 at one position of small-odd, where Transformers differs
/// from itself by 1.3e-4 when it computes the same prompt in other pieces.
const TOLERANCE: f32 = 3e-4;

/// Largest difference of a mean loss over up to 4,096 tokens, in nats.
const LOSS_TOLERANCE: f64 = 1e-5;

const NAMES: [&str; 7] = [
    "small-equal",
    "small-grouped",
    "small-odd",
    "small-flat",
    "small-mixed",
    "layer-linear",
    "layer-attention",
];

fn largest_difference(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    // A NaN must not pass for a small difference.
    assert!(a.iter().chain(b).all(|v| v.is_finite()));
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

#[test]
fn logits_after_prompts_of_every_length() {
    for name in NAMES {
        let golden = Golden::read(name);
        for isa in instruction_sets() {
            let model = open(&golden, isa, 1);
            for (position, expected) in &golden.rows {
                let mut session = session(&model);
                session.feed(&golden.prompt(position + 1)).unwrap();
                let difference = largest_difference(session.logits().unwrap(), expected);
                println!("{name} {isa}: {} tokens: {difference:.1e}", position + 1);
                assert!(
                    difference <= TOLERANCE,
                    "{name} {isa}: logits after {} tokens differ by {difference}",
                    position + 1
                );
            }
        }
    }
}

#[test]
fn logits_at_every_position() {
    for name in NAMES {
        let golden = Golden::read(name);
        for isa in instruction_sets() {
            let model = open(&golden, isa, 1);
            let mut session = session(&model);
            for (position, token) in golden.prompt(golden.best.len()).into_iter().enumerate() {
                session.feed(&[token]).unwrap();
                let logits = session.logits().unwrap();
                let best = &golden.best[position];
                for &(id, expected) in best {
                    let difference = (logits[id] - expected).abs();
                    assert!(
                        difference <= TOLERANCE,
                        "{name} {isa}: logit {id} at position {position} differs by {difference}"
                    );
                }
                // Nothing else may rise above the eighth.
                let eighth = best.last().unwrap().1;
                let above = logits.iter().filter(|&&v| v > eighth + TOLERANCE).count();
                assert!(above < best.len(), "{name} {isa}: best at position {position}");
            }
        }
    }
}

#[test]
fn greedy_continuations() {
    for name in NAMES {
        let golden = Golden::read(name);
        for isa in instruction_sets() {
            // The scalar kernels take most of the time; the pool is the same for all.
            for threads in if isa == "scalar" { 2..3 } else { 1..4 } {
                let model = open(&golden, isa, threads);
                for (length, expected) in &golden.greedy {
                    let mut session = session(&model);
                    session.feed(&golden.prompt(*length)).unwrap();
                    let found = support::golden::take(&mut session, expected.len());
                    assert_eq!(
                        &found, expected,
                        "{name} {isa}, {threads} threads, after {length} tokens"
                    );
                }
            }
        }
    }
}

/// A query scale left out, a state in too few bits or a wrong decay shows over length.
#[test]
fn loss_does_not_drift_over_length() {
    for name in NAMES {
        let golden = Golden::read(name);
        let longest = golden.losses.iter().map(|(n, _)| *n).max().unwrap();
        let sets = instruction_sets();
        for isa in &sets {
            let model = open(&golden, isa, 1);
            let mut session = session(&model);
            // Going all the way takes seconds: by one instruction set, for a whole network and
            // for a DeltaNet layer with the published head size.
            let far = ["small-grouped", "layer-linear"].contains(&name) && sets.last() == Some(isa);
            let prompt = golden.prompt(if far { longest } else { 256 });
            let mut sum = 0.0;
            for (i, &token) in prompt.iter().enumerate() {
                if i > 0 {
                    sum += loss(session.logits().unwrap(), token);
                }
                session.feed(&[token]).unwrap();
                if let Some((_, expected)) = golden.losses.iter().find(|(n, _)| *n == i + 1) {
                    let mean = sum / i as f64;
                    println!("{name} {isa}: loss over {} tokens {mean}", i + 1);
                    assert!(
                        (mean - expected).abs() <= LOSS_TOLERANCE,
                        "{name} {isa}: mean loss over {} tokens is {mean}, expected {expected}",
                        i + 1
                    );
                }
            }
        }
    }
}

/// Negative logarithm of the probability of `token`.
fn loss(logits: &[f32], token: u32) -> f64 {
    let most = logits.iter().fold(f32::NEG_INFINITY, |a, &b| a.max(b)) as f64;
    let sum: f64 = logits.iter().map(|&v| (v as f64 - most).exp()).sum();
    most + sum.ln() - logits[token as usize] as f64
}
