//! The measurements of one weight format with one number of threads.

use std::path::Path;
use std::time::Instant;

use qwen35::checkpoint::{Config, LayerKind};
use qwen35::sampling::SamplingOptions;
use qwen35::{
    ComputeMode, KvElement, Model, ModelOptions, Next, Session, SessionOptions, WeightFormat,
};

use crate::limits::{Limits, Reader};
use crate::report::{Figure, Report};
use crate::{Arguments, fail};

/// One format and thread count.
pub struct Bench<'a> {
    arguments: &'a Arguments,
    directory: &'a Path,
    weights: &'a str,
    /// `exact` or `fast`, where that is not what goes with the weights.
    compute: Option<&'a str>,
    threads: usize,
    limits: Limits,
}

impl<'a> Bench<'a> {
    pub fn new(
        arguments: &'a Arguments,
        directory: &'a Path,
        format: &'a str,
        threads: usize,
        limits: Limits,
    ) -> Self {
        let (weights, compute) = match format.split_once(':') {
            Some((weights, compute)) => (weights, Some(compute)),
            None => (format, arguments.compute.as_deref()),
        };
        Self { arguments, directory, weights, compute, threads, limits }
    }

    pub fn open(&self, report: &mut Report) {
        let figure = self.figure("open", 0, "ms", None);
        self.measure(report, figure, || {
            let start = Instant::now();
            drop(self.model());
            start.elapsed().as_secs_f64() * 1e3
        });
    }

    pub fn first_token(&self, report: &mut Report) {
        let figure = self.figure("first token", 19, "ms", None);
        if report.has(&figure) {
            return;
        }
        let model = self.model();
        let (tokens, mut session) = (prompt(&model, 19), self.session(&model));
        self.measure(report, figure, || {
            or_fail(session.reset());
            let start = Instant::now();
            or_fail(session.feed(&tokens));
            next(&mut session);
            start.elapsed().as_secs_f64() * 1e3
        });
    }

    pub fn prefill(&self, report: &mut Report) {
        let lengths = &self.arguments.prompts;
        if lengths.iter().all(|&n| report.has(&self.figure("prefill", n, "tok/s", None))) {
            return;
        }
        let model = self.model();
        let mut session = self.session(&model);
        let (peak, name) = self.arithmetic_limit();
        for &length in lengths {
            let tokens = prompt(&model, length);
            let config = model.config().unwrap_or_else(|| fail("no weights"));
            let share = 2.0 * layer_elements(config) as f64 / peak;
            let share = (peak > 0.0).then(|| (share, format!("the {name} peak")));
            let figure = self.figure("prefill", length, "tok/s", share);
            self.measure(report, figure, || {
                or_fail(session.reset());
                let start = Instant::now();
                or_fail(session.feed(&tokens));
                or_fail(session.logits().map(|_| ()));
                length as f64 / start.elapsed().as_secs_f64()
            });
        }
    }

    /// Decodes at each depth in turn, in one session that grows. Where the first depth is 0
    /// the prompt has 19 tokens. Memory is read before each run and after the last: a machine
    /// may have another speed some seconds later.
    pub fn decode(&self, report: &mut Report) {
        let depths = &self.arguments.depths;
        if depths.iter().all(|&n| report.has(&self.figure("decode", n, "tok/s", None))) {
            return;
        }
        let model = self.model();
        let mut session = self.session(&model);
        let config = model.config().unwrap_or_else(|| fail("no weights"));
        let reader = Reader::new(self.threads);
        for &depth in depths {
            let figure = self.figure("decode", depth, "tok/s", None);
            if report.has(&figure) {
                continue;
            }
            let wanted = depth.max(19);
            if wanted > session.position() {
                let more = prompt(&model, wanted - session.position());
                or_fail(session.feed(&more));
            }
            next(&mut session);
            let bytes = self.weight_bytes(&model) + state_bytes(config, session.kv(), wanted);
            let mut reads = Vec::new();
            let values = self.runs(|| {
                reads.push(reader.read());
                let start = Instant::now();
                for _ in 1..self.arguments.output {
                    next(&mut session);
                }
                (self.arguments.output - 1) as f64 / start.elapsed().as_secs_f64()
            });
            reads.push(reader.read());
            let read = reads.iter().sum::<f64>() / reads.len() as f64;
            let share = Some((bytes / read, "the read bandwidth".to_owned()));
            self.add(report, Figure { share, read: Some(read / 1e9), ..figure }, &values);
        }
    }

    /// Resident memory in a session of 2,048 tokens. Measured last is measured most: pages
    /// of models closed before may still count, so this needs a process of its own to be
    /// exact (`--measure memory --weights int4`).
    pub fn memory(&self, report: &mut Report) {
        let figure = self.figure("resident", 2048, "MB", None);
        let of_files = self.figure("mapped files in it", 2048, "MB", None);
        if report.has(&figure) && report.has(&of_files) {
            return;
        }
        let model = self.model();
        let mut session = self.session(&model);
        let tokens = prompt(&model, 2048);
        or_fail(session.feed(&tokens));
        next(&mut session);
        let (resident, mapped) = resident_bytes();
        report.add(figure, &[resident / 1e6]);
        report.add(of_files, &[mapped / 1e6]);
        crate::write(self.arguments, report);
    }

    /// Bytes of weights that one greedy token reads: of the head, what goes before the few rows
    /// that are computed exactly (docs/performance.md), and of the embedding nothing to speak of.
    fn weight_bytes(&self, model: &Model) -> f64 {
        let config = model.config().unwrap_or_else(|| fail("no weights"));
        let head = (config.vocab_size * config.hidden_size) as f64;
        let (whole, read) = match (self.weights, model.compute_mode()) {
            // A copy of 8 bits.
            ("bf16", _) => (2.0, 1.0),
            // The first of two planes, and scales.
            ("int8", Some(ComputeMode::Fast)) => (8.5 / 8.0, 4.5 / 8.0),
            ("int4", Some(ComputeMode::Fast)) => (4.5 / 8.0, 2.5 / 8.0),
            ("int8", _) => (8.5 / 8.0, 8.5 / 8.0),
            _ => (4.5 / 8.0, 4.5 / 8.0),
        };
        let unread = if config.tie_word_embeddings { whole } else { 2.0 * whole };
        model.weight_bytes() as f64 + (read - unread) * head
    }

    fn model(&self) -> Model {
        let mut options = ModelOptions {
            threads: self.threads,
            isa: self.arguments.isa.clone(),
            ..ModelOptions::default()
        };
        options.weights = match self.weights {
            "bf16" => WeightFormat::Stored,
            "int8" => WeightFormat::Int8,
            "int4" => WeightFormat::Int4,
            other => fail(&format!("--weights {other}: bf16, int8 or int4")),
        };
        options.compute = match self.compute {
            None => None,
            Some("exact") => Some(ComputeMode::Exact),
            Some("fast") => Some(ComputeMode::Fast),
            Some(other) => fail(&format!("--compute {other}: exact or fast")),
        };
        or_fail(Model::open(self.directory, &options))
    }

    fn session(&self, model: &Model) -> Session {
        let kv = self.arguments.kv.as_deref().map(|name| {
            let known = [KvElement::F32, KvElement::F16, KvElement::I8];
            let found = known.into_iter().find(|kv| kv.name() == name);
            found.unwrap_or_else(|| fail(&format!("--kv {name}: fp32, fp16 or int8")))
        });
        let sampling = SamplingOptions::greedy();
        or_fail(Session::new(model, SessionOptions { sampling, kv, ..SessionOptions::default() }))
    }

    /// Adds a figure that is not there yet.
    fn measure(&self, report: &mut Report, figure: Figure, run: impl FnMut() -> f64) {
        if !report.has(&figure) {
            let values = self.runs(run);
            self.add(report, figure, &values);
        }
    }

    /// One warm-up, then the measured runs, fewer of them if the time is over, and none but the
    /// first if that alone takes so long.
    fn runs(&self, mut run: impl FnMut() -> f64) -> Vec<f64> {
        let start = Instant::now();
        let over = || start.elapsed().as_secs_f64() > self.arguments.seconds;
        let mut values = vec![run()];
        if !over() {
            values.clear();
        }
        while values.is_empty() || (values.len() < self.arguments.runs && !over()) {
            values.push(run());
        }
        values
    }

    fn add(&self, report: &mut Report, figure: Figure, values: &[f64]) {
        report.add(figure, values);
        crate::write(self.arguments, report);
    }

    fn figure(
        &self,
        what: &str,
        tokens: usize,
        unit: &str,
        share: Option<(f64, String)>,
    ) -> Figure {
        let mut engine = format!("libqwen35 {}", self.weights);
        let Arguments { isa, kv, .. } = self.arguments;
        for part in [self.compute, isa.as_deref()].into_iter().flatten() {
            engine = format!("{engine} {part}");
        }
        if let Some(kv) = kv {
            engine = format!("{engine}, {kv} KV");
        }
        Figure {
            engine,
            what: what.to_owned(),
            tokens,
            threads: self.threads,
            unit: unit.to_owned(),
            median: 0.0,
            min: 0.0,
            max: 0.0,
            runs: 0,
            share,
            read: None,
        }
    }

    /// The limit of the arithmetic that this format and mode use.
    fn arithmetic_limit(&self) -> (f64, &'static str) {
        match (self.weights, self.compute) {
            ("bf16", Some("fast")) if self.limits.bf16 > 0.0 => (self.limits.bf16, "BF16"),
            ("bf16", _) | (_, Some("exact")) => (self.limits.fma, "FP32"),
            _ if self.limits.int8 > 0.0 => (self.limits.int8, "INT8"),
            _ => (self.limits.fma, "FP32"),
        }
    }
}

fn prompt(model: &Model, length: usize) -> Vec<u32> {
    let rows = model.config().map_or(1, |c| c.vocab_size) as u64;
    (0..length as u64).map(|i| (i * 7919 % rows.min(50_000)) as u32).collect()
}

fn next(session: &mut Session) {
    match session.next_token() {
        Ok(Next::LimitReached) => fail("the context is full"),
        Ok(_) => {}
        Err(error) => fail(&error.to_string()),
    }
}

fn or_fail<T, E: std::fmt::Display>(result: Result<T, E>) -> T {
    result.unwrap_or_else(|e| fail(&e.to_string()))
}

/// Weights that every token of a prefill is multiplied with: the layers' matrices. Scores of
/// attention and the delta rule are not counted.
fn layer_elements(config: &Config) -> usize {
    let (hidden, values) = (config.hidden_size, config.value_width());
    let queries = config.num_attention_heads * config.head_dim;
    let keys = config.num_key_value_heads * config.head_dim;
    let mixer = |kind: &LayerKind| match kind {
        LayerKind::Linear => {
            let gates = 2 * config.linear_num_value_heads;
            hidden * (config.conv_channels() + values + gates) + values * hidden
        }
        LayerKind::Full => hidden * (2 * queries + 2 * keys) + queries * hidden,
    };
    let mlp = 3 * hidden * config.intermediate_size;
    config.layer_kinds.iter().map(|kind| mixer(kind) + mlp).sum()
}

/// Bytes of state that one token at `depth` reads or writes beside the weights: the recurrent
/// state once and, every third token, the other way; keys and values once.
fn state_bytes(config: &Config, kv: KvElement, depth: usize) -> f64 {
    let delta = config.linear_num_value_heads
        * config.linear_key_head_dim
        * config.linear_value_head_dim
        * size_of::<f32>();
    let keys = config.num_key_value_heads * config.head_dim * kv.bytes();
    let of_layer = |kind: &LayerKind| match kind {
        LayerKind::Linear => delta + delta / 3,
        LayerKind::Full => 2 * keys * depth,
    };
    config.layer_kinds.iter().map(of_layer).sum::<usize>() as f64
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
