//! Reads tests/data/golden/*.json and opens the checkpoints they are about.
#![allow(dead_code)]

use std::path::Path;

use qwen35::checkpoint::Dtype;
use qwen35::kernels::Isa;
use qwen35::sampling::SamplingOptions;
use qwen35::{Model, ModelOptions, Next, Session, SessionOptions};
use serde_json::Value;

use super::synthetic::{self, PREFIX, Spec, Types};
use super::temp::TempDir;
use super::tiny_tokenizer;

/// What the reference computed for one checkpoint.
pub struct Golden {
    pub spec: Spec,
    prefix: String,
    shards: usize,
    multiplier: usize,
    offset: usize,
    /// The eight largest logits at every position.
    pub best: Vec<Vec<(usize, f32)>>,
    /// (position, all logits there).
    pub rows: Vec<(usize, Vec<f32>)>,
    /// (prompt length, greedy ids after it).
    pub greedy: Vec<(usize, Vec<u32>)>,
    /// (tokens, mean loss over them).
    pub losses: Vec<(usize, f64)>,
}

fn number(value: &Value) -> usize {
    value.as_u64().unwrap() as usize
}

fn float(value: &Value) -> f32 {
    value.as_f64().unwrap() as f32
}

fn array(value: &Value) -> &[Value] {
    value.as_array().unwrap()
}

impl Golden {
    pub fn read(name: &str) -> Golden {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/golden");
        let path = folder.join(format!("{name}.json"));
        let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path:?}: {e}"));
        let data: Value = serde_json::from_str(&text).unwrap();
        let mut spec = Spec::named(data["config"].as_str().unwrap());
        spec.seed = data["seed"].as_u64().unwrap();
        spec.types = match data["mix"].as_str().unwrap() {
            "published" => Types::Published,
            "mixed" => Types::Mixed,
            "F32" => Types::All(Dtype::F32),
            "F16" => Types::All(Dtype::F16),
            other => panic!("{name}: mix {other}"),
        };
        let keyed = |key: &str| -> Vec<(usize, Value)> {
            let object = data[key].as_object().unwrap();
            object.iter().map(|(k, v)| (k.parse().unwrap(), v.clone())).collect()
        };
        Golden {
            spec,
            prefix: data["prefix"].as_str().unwrap().to_owned(),
            shards: number(&data["shards"]),
            multiplier: number(&data["prompt"]["multiplier"]),
            offset: number(&data["prompt"]["offset"]),
            best: array(&data["best"])
                .iter()
                .map(|row| array(row).iter().map(|e| (number(&e[0]), float(&e[1]))).collect())
                .collect(),
            rows: keyed("rows")
                .into_iter()
                .map(|(position, row)| (position, array(&row).iter().map(float).collect()))
                .collect(),
            greedy: array(&data["greedy"])
                .iter()
                .map(|e| {
                    let ids = array(&e["ids"]).iter().map(|id| number(id) as u32).collect();
                    (number(&e["prompt"]), ids)
                })
                .collect(),
            losses: keyed("loss").into_iter().map(|(n, v)| (n, v.as_f64().unwrap())).collect(),
        }
    }

    pub fn vocabulary(&self) -> usize {
        self.spec.size("vocab_size")
    }

    /// The first `count` tokens of the sequence that the reference was computed for.
    pub fn prompt(&self, count: usize) -> Vec<u32> {
        let token = |i| ((self.multiplier * i + self.offset) % self.vocabulary()) as u32;
        (0..count).map(token).collect()
    }

    /// Writes the checkpoint, with a tokenizer that knows every row of the matrix.
    pub fn write(&self, directory: &Path) {
        let mut tensors = self.spec.tensors();
        for tensor in &mut tensors {
            tensor.stored = match tensor.name.strip_prefix(PREFIX) {
                Some(rest) => format!("{}{rest}", self.prefix),
                None if self.prefix == "language_model.model." => {
                    format!("language_model.{}", tensor.name)
                }
                None => tensor.name.clone(),
            };
        }
        self.spec.write_config(directory).unwrap();
        if self.shards == 1 {
            let path = directory.join("model.safetensors");
            synthetic::write_file(&path, &tensors, self.spec.seed).unwrap();
        } else {
            synthetic::write_shards(directory, &tensors, self.spec.seed, self.shards).unwrap();
        }
        tiny_tokenizer::write(directory, self.vocabulary());
    }
}

/// The instruction sets of this CPU, the scalar one first.
pub fn instruction_sets() -> Vec<&'static str> {
    ["scalar", "avx2", "avx512"].into_iter().filter(|name| Isa::named(name).is_ok()).collect()
}

/// Opens the checkpoint of `golden`, written to a folder that is gone again afterwards: the map
/// of an unlinked file stays.
pub fn open(golden: &Golden, isa: &str, threads: usize) -> Model {
    let folder = TempDir::new();
    golden.write(folder.path());
    let options = ModelOptions { threads, isa: Some(isa.to_owned()), ..Default::default() };
    Model::open(folder.path(), &options).unwrap()
}

pub fn greedy_options(context_limit: usize) -> SessionOptions {
    SessionOptions {
        context_limit,
        sampling: SamplingOptions::greedy(),
        ..SessionOptions::default()
    }
}

pub fn session(model: &Model) -> Session {
    Session::new(model, greedy_options(0)).unwrap()
}

/// The next `count` tokens, going on after an end of turn.
pub fn take(session: &mut Session, count: usize) -> Vec<u32> {
    let next = |_| match session.next_token().unwrap() {
        Next::Token(id) | Next::EndOfTurn(id) => id,
        Next::LimitReached => panic!("limit reached at {}", session.position()),
    };
    (0..count).map(next).collect()
}
