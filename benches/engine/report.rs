//! What was measured, as lines for a person and as JSON for programs.
//!
//! The same form is written by `benches/peers/run.py` for other engines.

use std::path::Path;

use serde_json::{Map, Value, json};

use crate::limits::Limits;

/// One figure: the median of several runs.
pub struct Figure {
    /// Who, such as `libqwen35 int4`.
    pub engine: String,
    /// `open`, `first token`, `prefill`, `decode` or `resident`.
    pub what: String,
    /// Prompt length of a prefill, depth of a decode; 0 for others.
    pub tokens: usize,
    /// Threads that computed.
    pub threads: usize,
    /// `ms`, `tok/s` or `MB`.
    pub unit: String,
    /// Median, minimum, maximum.
    pub median: f64,
    pub min: f64,
    pub max: f64,
    pub runs: usize,
    /// The share of a limit of the machine, and of which, where one applies.
    pub share: Option<(f64, String)>,
    /// What the memory gave beside the runs, in GB/s: the mean, which the share is of.
    pub read: Option<f64>,
}

/// All figures of one sitting.
pub struct Report {
    /// What computed: CPU, instruction set and the like.
    pub machine: Map<String, Value>,
    pub figures: Vec<Figure>,
}

impl Report {
    pub fn new(model: &Path) -> Self {
        let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let name = cpu.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
        let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let seconds = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let mut machine = Map::new();
        let mut add = |key: &str, value: Value| machine.insert(key.into(), value);
        add("cpu", json!(name.map_or("unknown", |(_, name)| name)));
        add("isa", json!(qwen35::kernels::Isa::best().name()));
        add("processors", json!(std::thread::available_parallelism().map_or(0, usize::from)));
        add("load_before", json!(load.split(' ').next()));
        add("unix_time", json!(seconds.map_or(0, |s| s.as_secs())));
        add("model", json!(model.file_name().map(|name| name.to_string_lossy())));
        Self { machine, figures: Vec::new() }
    }

    /// Takes over the figures of an earlier run of the same.
    pub fn go_on_from(&mut self, earlier: Self) {
        self.figures = earlier.figures;
    }

    /// Whether there is such a figure already.
    pub fn has(&self, figure: &Figure) -> bool {
        let same = |f: &Figure| {
            f.engine == figure.engine
                && f.what == figure.what
                && f.tokens == figure.tokens
                && f.threads == figure.threads
        };
        self.figures.iter().any(same)
    }

    /// Notes the machine's limits with `threads` threads.
    pub fn limits(&mut self, threads: usize, limits: &Limits) {
        if limits.read == 0.0 {
            return;
        }
        let giga = |value: f64| (value / 1e8).round() / 10.0;
        let (fma, bf16) = (giga(limits.fma), giga(limits.bf16));
        let (int8, read) = (giga(limits.int8), giga(limits.read));
        println!(
            "limits, {threads} threads: FP32 {fma} GFLOP/s, BF16 {bf16}, INT8 {int8} GOP/s, \
             read {read} GB/s"
        );
        self.machine.insert(
            format!("limits_{threads}_threads"),
            json!({
                "fp32_gflops": fma, "bf16_gflops": bf16, "int8_gops": int8, "read_gb_per_s": read,
            }),
        );
    }

    /// Adds a figure from its runs, and prints it.
    pub fn add(&mut self, mut figure: Figure, runs: &[f64]) {
        let mut sorted = runs.to_vec();
        sorted.sort_by(f64::total_cmp);
        let Some((&min, &max)) = sorted.first().zip(sorted.last()) else { return };
        (figure.min, figure.median, figure.max) = (min, sorted[sorted.len() / 2], max);
        figure.runs = sorted.len();
        let what = match figure.tokens {
            0 => figure.what.clone(),
            tokens => format!("{} {tokens}", figure.what),
        };
        let share = figure.share.as_mut().map_or(String::new(), |(share, of)| {
            // Given for one unit of the figure.
            *share *= figure.median;
            let read = figure.read.map_or(String::new(), |read| format!(", {read:.1} GB/s"));
            format!("  {:3.0}% of {of}{read}", *share * 100.0)
        });
        println!(
            "{:<22} {what:<18} {} threads {:>10.2} {:<6} ({min:.2} to {max:.2}){share}",
            figure.engine, figure.threads, figure.median, figure.unit
        );
        self.figures.push(figure);
    }

    pub fn json(&self) -> String {
        let round = |value: f64| (value * 1000.0).round() / 1000.0;
        let results: Vec<Value> = self
            .figures
            .iter()
            .map(|f| {
                let mut value = json!({
                    "engine": f.engine, "what": f.what, "tokens": f.tokens, "threads": f.threads,
                    "unit": f.unit, "median": round(f.median), "min": round(f.min),
                    "max": round(f.max), "runs": f.runs,
                });
                if let Some((share, of)) = &f.share {
                    value["share"] = json!(round(*share));
                    value["share_of"] = json!(of);
                }
                if let Some(read) = f.read {
                    value["read_gb_per_s"] = json!(round(read));
                }
                value
            })
            .collect();
        let all = json!({ "machine": self.machine, "results": results });
        serde_json::to_string_pretty(&all).unwrap_or_default() + "\n"
    }

    /// What [`Report::json`] wrote.
    pub fn read(path: &Path) -> Result<Self, String> {
        let named = |e: &dyn std::fmt::Display| format!("{}: {e}", path.display());
        let text = std::fs::read_to_string(path).map_err(|e| named(&e))?;
        let value: Value = serde_json::from_str(&text).map_err(|e| named(&e))?;
        let machine = value["machine"].as_object().cloned().unwrap_or_default();
        let results = value["results"].as_array().ok_or_else(|| named(&"no results"))?;
        let figures = results.iter().map(|f| {
            let word = |key: &str| f[key].as_str().unwrap_or_default().to_owned();
            let count = |key: &str| f[key].as_u64().unwrap_or(0) as usize;
            let number = |key: &str| f[key].as_f64().unwrap_or(f64::NAN);
            Figure {
                engine: word("engine"),
                what: word("what"),
                tokens: count("tokens"),
                threads: count("threads"),
                unit: word("unit"),
                median: number("median"),
                min: number("min"),
                max: number("max"),
                runs: count("runs"),
                share: f["share"].as_f64().map(|share| (share, word("share_of"))),
                read: f["read_gb_per_s"].as_f64(),
            }
        });
        Ok(Self { machine, figures: figures.collect() })
    }
}
