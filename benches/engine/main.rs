//! How fast the engine is: opening, time to first token, prefill, decode, memory, and what
//! share that is of the machine's limits.
//!
//! ```text
//! cargo bench --bench engine -- [--model DIR_OR_FILE] [--weights bf16,bf16:fast,int8,int4]
//!     [--compute exact|fast] [--kv fp16|fp32|int8] [--threads 2,1] [--isa NAME] [--prompts 32,512,...]
//!     [--depths 0,4096,...] [--output 32] [--runs 5] [--seconds 40] [--quick]
//!     [--measure limits,open,first,prefill,decode,memory]
//!     [--json benchmark-results.json] [--picture benchmark-results.svg] [--resume]
//! cargo bench --bench engine -- --draw FILE.json --picture FILE.svg
//! ```
//!
//! Without `--model` it writes (once) a checkpoint of the published 0.8B shapes with seeded
//! random weights: speed hardly depends on what the weights are. What is measured:
//!
//! | what | unit | how |
//! |---|---|---|
//! | open | ms | the folder or file, with a warm page cache, quantization included |
//! | first token | ms | 19 tokens fed, one token chosen |
//! | prefill | tok/s | tokens fed / time until the logits of the last one are there |
//! | decode | tok/s | (output - 1) / time from the first to the last output token |
//! | resident | MB | the process, and the mapped files in it, after 2,048 tokens |
//!
//! One warm-up, then `--runs` measured runs, fewer where one takes so long that `--seconds` are
//! over; figures are medians with minimum and maximum. Greedy decoding. On shared machines
//! compare figures of one run only. A decode's share of the read bandwidth is one of the mean of
//! what was read before each of its runs and after the last: the memory of some machines has
//! another speed every few seconds (docs/performance.md, "Batches").
//!
//! Files are written after each figure: a run that was ended early leaves those it has, and
//! `--resume` goes on from them.

mod limits;
mod measure;
mod picture;
mod report;
#[path = "../../tests/support/synthetic.rs"]
mod synthetic;

use std::path::{Path, PathBuf};

use limits::Limits;
use report::Report;

/// What the command line asks for.
pub struct Arguments {
    model: Option<PathBuf>,
    /// Formats, each with `:exact` or `:fast` behind it or not.
    weights: Vec<String>,
    compute: Option<String>,
    kv: Option<String>,
    threads: Vec<usize>,
    isa: Option<String>,
    prompts: Vec<usize>,
    depths: Vec<usize>,
    output: usize,
    runs: usize,
    seconds: f64,
    measure: Vec<String>,
    resume: bool,
    json: Option<PathBuf>,
    picture: Option<PathBuf>,
    draw: Option<PathBuf>,
}

fn main() {
    let arguments = parse();
    match &arguments.draw {
        Some(file) => write(&arguments, &Report::read(file).unwrap_or_else(|e| fail(&e))),
        None => run(&arguments),
    }
    for path in [&arguments.json, &arguments.picture].into_iter().flatten() {
        println!("wrote {}", path.display());
    }
}

/// Writes what is asked for of the figures so far.
fn write(arguments: &Arguments, report: &Report) {
    let write = |path: &Path, text: String| {
        std::fs::write(path, text).unwrap_or_else(|e| fail(&format!("{}: {e}", path.display())));
    };
    if let Some(path) = &arguments.json {
        write(path, report.json());
    }
    if let Some(path) = &arguments.picture {
        write(path, picture::svg(report));
    }
}

fn run(arguments: &Arguments) {
    let directory = match &arguments.model {
        Some(directory) => directory.clone(),
        None => synthetic_model(),
    };
    let mut report = Report::new(&directory);
    if let (true, Some(file)) = (arguments.resume, &arguments.json)
        && file.exists()
    {
        report.go_on_from(Report::read(file).unwrap_or_else(|e| fail(&e)));
    }
    for &threads in &arguments.threads {
        let limits = match arguments.measure.iter().any(|what| what == "limits") {
            true => limits::measure(threads),
            false => Limits::default(),
        };
        report.limits(threads, &limits);
        for format in &arguments.weights {
            let bench = measure::Bench::new(arguments, &directory, format, threads, limits);
            for what in arguments.measure.iter().filter(|what| *what != "limits") {
                match what.as_str() {
                    "open" => bench.open(&mut report),
                    "first" => bench.first_token(&mut report),
                    "prefill" => bench.prefill(&mut report),
                    "decode" => bench.decode(&mut report),
                    "memory" => bench.memory(&mut report),
                    other => fail(&format!(
                        "--measure {other}: limits, open, first, prefill, decode or memory"
                    )),
                }
            }
        }
    }
    write(arguments, &report);
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

fn parse() -> Arguments {
    let words = |text: &str| text.split(',').map(String::from).collect::<Vec<_>>();
    let numbers = |text: &str| text.split(',').map(number).collect::<Vec<_>>();
    let mut parsed = Arguments {
        model: None,
        weights: words("bf16,bf16:fast,int8,int4"),
        compute: None,
        kv: None,
        threads: vec![2, 1],
        isa: None,
        prompts: vec![32, 128, 512, 2048, 4096, 8192],
        depths: vec![0, 1024, 4096, 16384, 32768],
        output: 32,
        runs: 5,
        seconds: 40.0,
        measure: words("limits,open,first,prefill,decode,memory"),
        resume: false,
        json: None,
        picture: None,
        draw: None,
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(option) = arguments.next() {
        let mut value =
            || arguments.next().unwrap_or_else(|| fail(&format!("{option} needs a value")));
        match option.as_str() {
            "--model" => parsed.model = Some(value().into()),
            "--weights" => parsed.weights = words(&value()),
            "--compute" => parsed.compute = Some(value()),
            "--kv" => parsed.kv = Some(value()),
            "--threads" => parsed.threads = numbers(&value()),
            "--isa" => parsed.isa = Some(value()),
            "--prompts" => parsed.prompts = numbers(&value()),
            "--depths" => parsed.depths = numbers(&value()),
            "--output" => parsed.output = number(&value()).max(2),
            "--runs" => parsed.runs = number(&value()).max(1),
            "--seconds" => parsed.seconds = number(&value()) as f64,
            "--resume" => parsed.resume = true,
            "--measure" => parsed.measure = words(&value()),
            "--json" => parsed.json = Some(value().into()),
            "--picture" => parsed.picture = Some(value().into()),
            "--draw" => parsed.draw = Some(value().into()),
            "--quick" => {
                (parsed.prompts, parsed.depths, parsed.runs) = (vec![512], vec![0], 3);
            }
            // Cargo adds this one.
            "--bench" => {}
            other => {
                fail(&format!("unknown option {other}; see the head of benches/engine/main.rs"))
            }
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
