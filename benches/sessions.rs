//! What branching and keeping sessions costs: forks, marks, going back, saving, restoring.
//!
//! ```text
//! cargo bench --bench sessions -- [MODEL [TOKENS]]
//! ```
//!
//! Without MODEL it writes (once) a checkpoint of the published 0.8B shapes with seeded random
//! weights. TOKENS (default 2000) is the length of the prompt. Memory is that of the process,
//! so that pages of the allocator count too.

#[path = "../tests/support/synthetic.rs"]
mod synthetic;

use std::path::{Path, PathBuf};
use std::time::Instant;

use qwen35::model::state::RecurrentShape;
use qwen35::sampling::SamplingOptions;
use qwen35::session::SaveOptions;
use qwen35::{Model, ModelOptions, Session, SessionOptions};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    let directory = arguments.first().map_or_else(synthetic_model, PathBuf::from);
    let length = arguments.get(1).map_or(2000, |text| text.parse().expect("TOKENS is a number"));
    let model = Model::open(&directory, &ModelOptions::default()).expect("the model opens");
    let recurrent = RecurrentShape::new(model.config().expect("weights")).bytes();
    let rows = model.config().map_or(1, |c| c.vocab_size) as u64;
    let tokens: Vec<u32> =
        (0..length as u64).map(|i| (i * 7919 % rows.min(50_000)) as u32).collect();
    let options =
        SessionOptions { sampling: SamplingOptions::greedy(), ..SessionOptions::default() };
    let mut prompt = Session::new(&model, options).expect("a session");
    let (_, seconds) = timed(|| prompt.feed(&tokens).expect("fed"));
    println!("prompt of {length} tokens: {seconds:.2} s; recurrent state {recurrent} bytes");
    prompt.next_token().expect("a token");

    let before = resident();
    let mut slowest: f64 = 0.0;
    let mut forks: Vec<Session> = (0..100)
        .map(|_| {
            let (fork, seconds) = timed(|| prompt.fork().expect("a fork"));
            slowest = slowest.max(seconds);
            fork
        })
        .collect();
    let made = resident() - before;
    println!("100 forks: slowest {:.3} ms, {:.1} KB each", slowest * 1e3, made / 100e3);
    let moving = 10;
    let (_, seconds) = timed(|| {
        for (i, fork) in forks.iter_mut().take(moving).enumerate() {
            fork.feed(&[i as u32]).expect("fed");
        }
    });
    let moved = (resident() - before - made) / moving as f64;
    println!("a fork that moved on: {:.2} MB more, {:.1} ms", moved / 1e6, seconds * 1e3 / 10.0);
    drop(forks);

    let (mark, seconds) = timed(|| prompt.mark().expect("a mark"));
    println!("mark: {:.3} ms", seconds * 1e3);
    for _ in 0..4 {
        prompt.next_token().expect("a token");
    }
    let (_, seconds) = timed(|| prompt.rewind(mark, true).expect("rewound"));
    println!("rewind: {:.3} ms", seconds * 1e3);

    let file = std::env::temp_dir().join(format!("qwen35-bench-{}.state", std::process::id()));
    for without_marks in [false, true] {
        let options = SaveOptions { without_marks };
        let size = prompt.saved_bytes(options).expect("a size") as f64;
        let (_, memory) = timed(|| prompt.save_to_memory(options).expect("saved"));
        let (_, disk) = timed(|| prompt.save_to_file(options, &file).expect("saved"));
        let mut other = prompt.fork().expect("a fork");
        let (_, back) = timed(|| other.restore_from_file(&file).expect("restored"));
        println!(
            "{}: {:.1} MB; to memory {:.0} ms, to disk {:.0} ms, restored in {:.0} ms",
            if without_marks { "saved without marks" } else { "saved" },
            size / 1e6,
            memory * 1e3,
            disk * 1e3,
            back * 1e3
        );
    }
    let _ = std::fs::remove_file(&file);
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let start = Instant::now();
    let result = work();
    (result, start.elapsed().as_secs_f64())
}

/// Bytes of this process in memory that are no mapped file.
fn resident() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("RssAnon:"));
    let kib = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<f64>().ok());
    kib.unwrap_or(f64::NAN) * 1024.0
}

/// The published shapes, with the demo's tokenizer.
fn synthetic_model() -> PathBuf {
    let directory = synthetic::full_0_8b().expect("the synthetic checkpoint is written");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/demo-model");
    for name in ["tokenizer.json", "tokenizer_config.json"] {
        std::fs::copy(source.join(name), directory.join(name)).expect("the tokenizer is copied");
    }
    directory
}
