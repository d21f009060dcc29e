//! After the first token no token allocates, whatever the options.

#[path = "support/counting.rs"]
mod counting;

use qwen35::sampling::{Rng, Sampler, SamplingOptions};

#[test]
fn tokens_do_not_allocate() {
    const TOKENS: usize = 30_000;
    let mut rng = Rng::new(3);
    let peaked: Vec<f32> = (0..TOKENS).map(|_| (rng.next_f64() * 20.0) as f32).collect();
    let flat = vec![0.0f32; TOKENS];
    let sequence: Vec<u32> = (0..5000).map(|_| (rng.next_u64() % TOKENS as u64) as u32).collect();
    let bias = (0..TOKENS as u32).map(|id| (id, 0.5)).collect();
    for options in [
        SamplingOptions::greedy(),
        SamplingOptions::default(),
        SamplingOptions { top_k: 0, top_p: 0.9, ..SamplingOptions::default() },
        SamplingOptions { top_k: 0, ..SamplingOptions::default() },
        SamplingOptions { top_k: 5000, top_p: 0.9, min_p: 0.1, ..SamplingOptions::default() },
        SamplingOptions {
            repetition_penalty: 1.1,
            frequency_penalty: 0.1,
            logit_bias: bias,
            ..SamplingOptions::default()
        },
    ] {
        let mut sampler = Sampler::new(options.clone(), TOKENS).unwrap();
        sampler.sample(&peaked, &sequence[..10], 5).unwrap();
        let before = counting::requests();
        for length in [11, 100, 5000] {
            for logits in [&peaked, &flat] {
                sampler.sample(logits, &sequence[..length], 5).unwrap();
            }
        }
        assert_eq!(counting::requests(), before, "{options:?}");
    }
}
