//! How fast the engine is: opening, prefill, decode, memory.
//!
//! ```text
//! cargo bench --bench engine -- [--model DIR] [--threads 1,2] [--isa NAME] [--prompt 512]
//!     [--output 32] [--depth N] [--runs 5] [--measure open,prefill,decode,memory] [--json]
//! ```
//!
//! Without `--model` it writes (once) a checkpoint of the published 0.8B shapes with seeded
//! random weights. Figures are medians with minimum and maximum. The machine's own limits
//! are measured by `--bench kernels`; on shared machines compare figures of one run only.

#[path = "../tests/support/synthetic.rs"]
mod synthetic;

use std::path::{Path, PathBuf};
use std::time::Instant;

use qwen35::sampling::SamplingOptions;
use qwen35::{Model, ModelOptions, Next, Session, SessionOptions};

struct Arguments {
    model: Option<PathBuf>,
    threads: Vec<usize>,
    isa: Option<String>,
    prompt: usize,
    output: usize,
    depth: usize,
    runs: usize,
    measure: Vec<String>,
    json: bool,
}

fn main() {
    let arguments = parse();
    let directory = match &arguments.model {
        Some(directory) => directory.clone(),
        None => synthetic_model(),
    };
    let mut report = Report { json: arguments.json };
    for &threads in &arguments.threads {
        for what in &arguments.measure {
            match what.as_str() {
                "open" => open(&arguments, &directory, threads, &mut report),
                "prefill" => prefill(&arguments, &directory, threads, &mut report),
                "decode" => decode(&arguments, &directory, threads, &mut report),
                "memory" => memory(&arguments, &directory, threads, &mut report),
                other => fail(&format!("--measure {other}: open, prefill, decode or memory")),
            }
        }
    }
}

/// The published shapes, and a tokenizer if the environment names one.
fn synthetic_model() -> PathBuf {
    let directory = synthetic::full_0_8b().unwrap_or_else(|e| fail(&format!("writing: {e}")));
    let small = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/demo-model");
    let source = std::env::var_os("QWEN35_REAL_TOKENIZER").map_or(small, PathBuf::from);
    for name in ["tokenizer.json", "tokenizer_config.json"] {
        let (from, to) = (source.join(name), directory.join(name));
        if let Err(error) = std::fs::copy(&from, &to) {
            fail(&format!("{}: {error}", from.display()));
        }
    }
    directory
}

fn open_model(arguments: &Arguments, directory: &Path, threads: usize) -> Model {
    let options = ModelOptions { threads, isa: arguments.isa.clone(), ..ModelOptions::default() };
    Model::open(directory, &options).unwrap_or_else(|e| fail(&e.to_string()))
}

fn new_session(model: &Model) -> Session {
    let sampling = SamplingOptions::greedy();
    Session::new(model, SessionOptions { sampling, ..SessionOptions::default() })
        .unwrap_or_else(|e| fail(&e.to_string()))
}

fn prompt(model: &Model, length: usize) -> Vec<u32> {
    let rows = model.config().map_or(1, |c| c.vocab_size) as u64;
    (0..length as u64).map(|i| (i * 7919 % rows.min(50_000)) as u32).collect()
}

fn open(arguments: &Arguments, directory: &Path, threads: usize, report: &mut Report) {
    let times: Vec<f64> = (0..=arguments.runs)
        .map(|_| {
            let start = Instant::now();
            drop(open_model(arguments, directory, threads));
            start.elapsed().as_secs_f64() * 1e3
        })
        .skip(1)
        .collect();
    report.add("open", "ms", threads, &times);
}

fn prefill(arguments: &Arguments, directory: &Path, threads: usize, report: &mut Report) {
    let model = open_model(arguments, directory, threads);
    let tokens = prompt(&model, arguments.prompt);
    let mut session = new_session(&model);
    let rates: Vec<f64> = (0..=arguments.runs)
        .map(|_| {
            session.reset().unwrap_or_else(|e| fail(&e.to_string()));
            let start = Instant::now();
            session.feed(&tokens).unwrap_or_else(|e| fail(&e.to_string()));
            session.logits().unwrap_or_else(|e| fail(&e.to_string()));
            tokens.len() as f64 / start.elapsed().as_secs_f64()
        })
        .skip(1)
        .collect();
    report.add(&format!("prefill {}", tokens.len()), "tok/s", threads, &rates);
}

/// `output` tokens after `depth` tokens (19 if none are named); the first one is not timed.
fn decode(arguments: &Arguments, directory: &Path, threads: usize, report: &mut Report) {
    let model = open_model(arguments, directory, threads);
    let depth = if arguments.depth == 0 { 19 } else { arguments.depth };
    let tokens = prompt(&model, depth);
    let mut session = new_session(&model);
    let mut first_token = Vec::new();
    let rates: Vec<f64> = (0..=arguments.runs)
        .map(|run| {
            session.reset().unwrap_or_else(|e| fail(&e.to_string()));
            let start = Instant::now();
            session.feed(&tokens).unwrap_or_else(|e| fail(&e.to_string()));
            next(&mut session);
            if run > 0 {
                first_token.push(start.elapsed().as_secs_f64() * 1e3);
            }
            let start = Instant::now();
            for _ in 1..arguments.output {
                next(&mut session);
            }
            (arguments.output - 1) as f64 / start.elapsed().as_secs_f64()
        })
        .skip(1)
        .collect();
    report.add(&format!("first token after {depth}"), "ms", threads, &first_token);
    report.add(&format!("decode {} at {depth}", arguments.output), "tok/s", threads, &rates);
}

fn next(session: &mut Session) {
    match session.next_token() {
        Ok(Next::LimitReached) => fail("the context is full"),
        Ok(_) => {}
        Err(error) => fail(&error.to_string()),
    }
}

/// Resident memory beyond the weights, in a session of 2,048 tokens.
fn memory(arguments: &Arguments, directory: &Path, threads: usize, report: &mut Report) {
    let model = open_model(arguments, directory, threads);
    let mut session = new_session(&model);
    let tokens = prompt(&model, 2048);
    session.feed(&tokens).unwrap_or_else(|e| fail(&e.to_string()));
    next(&mut session);
    let (resident, mapped) = resident_bytes();
    report.add("resident at 2048", "MB", threads, &[resident / 1e6]);
    report.add("of these mapped files", "MB", threads, &[mapped / 1e6]);
}

/// Resident memory of this process, and how much of it is mapped files.
fn resident_bytes() -> (f64, f64) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let field = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name))?;
        line.split_whitespace().nth(1)?.parse::<f64>().ok()
    };
    let kib = |name| field(name).unwrap_or(f64::NAN) * 1024.0;
    (kib("VmRSS:"), kib("RssFile:"))
}

struct Report {
    json: bool,
}

impl Report {
    fn add(&mut self, what: &str, unit: &str, threads: usize, values: &[f64]) {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (low, high) = (sorted[0], sorted[sorted.len() - 1]);
        let median = sorted[sorted.len() / 2];
        if self.json {
            println!(
                "{}",
                serde_json::json!({
                    "what": what, "unit": unit, "threads": threads,
                    "median": median, "min": low, "max": high, "runs": values.len(),
                })
            );
        } else {
            println!(
                "{what:<24} {threads} threads  {median:>9.2} {unit:<6} ({low:.2} to {high:.2})"
            );
        }
    }
}

fn parse() -> Arguments {
    let mut parsed = Arguments {
        model: None,
        threads: vec![1, 2],
        isa: None,
        prompt: 512,
        output: 32,
        depth: 0,
        runs: 5,
        measure: ["open", "prefill", "decode", "memory"].map(String::from).to_vec(),
        json: false,
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(option) = arguments.next() {
        let mut value =
            || arguments.next().unwrap_or_else(|| fail(&format!("{option} needs a value")));
        match option.as_str() {
            "--model" => parsed.model = Some(value().into()),
            "--threads" => parsed.threads = value().split(',').map(number).collect(),
            "--isa" => parsed.isa = Some(value()),
            "--prompt" => parsed.prompt = number(&value()),
            "--output" => parsed.output = number(&value()).max(2),
            "--depth" => parsed.depth = number(&value()),
            "--runs" => parsed.runs = number(&value()).max(1),
            "--measure" => parsed.measure = value().split(',').map(String::from).collect(),
            "--json" => parsed.json = true,
            // Cargo adds this one.
            "--bench" => {}
            other => fail(&format!("unknown option {other}; see the head of benches/engine.rs")),
        }
    }
    parsed
}

fn number(text: &str) -> usize {
    text.parse().unwrap_or_else(|_| fail(&format!("{text:?} is not a number")))
}

fn fail(message: &str) -> ! {
    eprintln!("engine: {message}");
    std::process::exit(2)
}
