//! What choosing one token costs over the vocabulary of Qwen3.5, by options.
//!
//!     cargo bench --bench sampling

use std::time::{Duration, Instant};

use qwen35::sampling::{Rng, Sampler, SamplingOptions};

const TOKENS: usize = 248_077;
const ROUNDS: usize = 200;

fn main() {
    let mut rng = Rng::new(1);
    // Sums of uniform numbers are close to normal, which is about how logits look.
    let mut logits = |spread: f64| -> Vec<f32> {
        let normal = |rng: &mut Rng| (0..6).map(|_| rng.next_f64()).sum::<f64>() - 3.0;
        (0..TOKENS).map(|_| (normal(&mut rng) * spread) as f32).collect()
    };
    let cases = [("usual logits", logits(3.0)), ("flat logits", logits(0.01))];
    let sequence: Vec<u32> = (0..2048).map(|i| i * 97 % TOKENS as u32).collect();
    let off = SamplingOptions { temperature: 1.0, ..SamplingOptions::greedy() };
    let options = [
        ("greedy", SamplingOptions::greedy()),
        ("defaults (top-k 20, presence)", SamplingOptions::default()),
        ("top-k 20, top-p 0.95", SamplingOptions { top_k: 20, top_p: 0.95, ..off.clone() }),
        (
            "top-k 20, all penalties",
            SamplingOptions {
                top_k: 20,
                repetition_penalty: 1.1,
                frequency_penalty: 0.1,
                ..SamplingOptions::default()
            },
        ),
        ("no filter", off.clone()),
        ("top-p 0.95", SamplingOptions { top_p: 0.95, ..off.clone() }),
        ("min-p 0.05", SamplingOptions { min_p: 0.05, ..off }),
    ];
    println!("microseconds per token, {TOKENS} logits, {} tokens so far", sequence.len());
    println!("{:32}{:>12}{:>12}{:>12}{:>12}", "", "median", "worst", "median", "worst");
    for (name, options) in options {
        print!("{name:32}");
        for (_, logits) in &cases {
            let mut sampler = Sampler::new(options.clone(), TOKENS).expect("valid options");
            let mut times: Vec<Duration> = (0..ROUNDS)
                .map(|_| {
                    let start = Instant::now();
                    sampler.sample(logits, &sequence, 100).expect("good logits");
                    start.elapsed()
                })
                .collect();
            times.sort();
            let micros = |time: Duration| time.as_secs_f64() * 1e6;
            print!("{:12.0}{:12.0}", micros(times[ROUNDS / 2]), micros(times[ROUNDS - 1]));
        }
        println!();
    }
    println!("columns: {}, {}", cases[0].0, cases[1].0);
}
