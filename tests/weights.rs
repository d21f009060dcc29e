//! Quantized weights and compute modes, end to end: every configuration kind opens and
//! computes, results are near those of the weights as stored, and do not depend on how the
//! work is cut.

#[path = "support/synthetic.rs"]
mod synthetic;
#[path = "support/temp.rs"]
mod temp;
#[path = "support/tiny_tokenizer.rs"]
mod tiny_tokenizer;

use std::ops::ControlFlow::Continue;
use std::path::Path;

use qwen35::pack::{PackOptions, pack};
use qwen35::sampling::SamplingOptions;
use qwen35::{
    ComputeMode, ErrorKind, Model, ModelOptions, Next, Session, SessionOptions, WeightFormat,
};

const CONFIGS: [&str; 4] = ["small-equal", "small-grouped", "small-odd", "small-flat"];
const QUANTIZED: [WeightFormat; 2] = [WeightFormat::Int8, WeightFormat::Int4];

fn synthetic_model(name: &str) -> temp::TempDir {
    let directory = temp::TempDir::new();
    let spec = synthetic::Spec::named(name);
    spec.write(directory.path()).unwrap();
    tiny_tokenizer::write(directory.path(), spec.size("vocab_size"));
    directory
}

fn options(weights: WeightFormat) -> ModelOptions {
    ModelOptions { threads: 2, weights, ..ModelOptions::default() }
}

fn greedy(model: &Model) -> Session {
    let sampling = SamplingOptions::greedy();
    Session::new(model, SessionOptions { sampling, ..SessionOptions::default() }).unwrap()
}

/// The logits after each of `ids`, fed in pieces of `step`.
fn logits(path: &Path, options: &ModelOptions, ids: &[u32], step: usize) -> Vec<Vec<f32>> {
    let model = Model::open(path, options).unwrap();
    let mut session = greedy(&model);
    ids.chunks(step)
        .map(|piece| {
            session.feed(piece).unwrap();
            session.logits().unwrap().to_vec()
        })
        .collect()
}

/// Root of the mean squared difference, over the standard deviation of `a`.
fn distance(a: &[f32], b: &[f32]) -> f64 {
    let mean = a.iter().map(|&x| f64::from(x)).sum::<f64>() / a.len() as f64;
    let spread: f64 = a.iter().map(|&x| (f64::from(x) - mean).powi(2)).sum();
    let error: f64 = a.iter().zip(b).map(|(&a, &b)| (f64::from(a) - f64::from(b)).powi(2)).sum();
    (error / spread).sqrt()
}

#[test]
fn every_configuration_is_near_the_weights_as_stored() {
    let ids: Vec<u32> = (1..40).collect();
    for name in CONFIGS {
        let directory = synthetic_model(name);
        let path = directory.path();
        let stored = logits(path, &options(WeightFormat::Stored), &ids, 13).pop().unwrap();
        for (format, compute, most) in [
            (WeightFormat::Int8, None, 0.15),
            (WeightFormat::Int8, Some(ComputeMode::Exact), 0.15),
            // Random weights are the hardest case. Unrelated logits would be 1.41 apart.
            (WeightFormat::Int4, None, 1.1),
            (WeightFormat::Int4, Some(ComputeMode::Exact), 1.1),
        ] {
            let options = ModelOptions { compute, ..options(format) };
            let got = logits(path, &options, &ids, 13).pop().unwrap();
            let distance = distance(&stored, &got);
            println!("{name} {format:?} {compute:?}: {distance:.4}");
            assert!(distance < most, "{name} {format:?} {compute:?}: {distance}");
        }
    }
}

#[test]
fn no_cutting_threads_or_instruction_set_changes_a_bit() {
    let ids: Vec<u32> = (1..30).collect();
    let directory = synthetic_model("small-odd");
    let bits = |logits: &[f32]| logits.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    for format in QUANTIZED {
        let mut first: Option<Vec<u32>> = None;
        for isa in ["avx2", "avx512"] {
            for (threads, step) in [(1, 29), (2, 1), (2, 7)] {
                let options =
                    ModelOptions { threads, isa: Some(isa.to_owned()), ..options(format) };
                match Model::open(directory.path(), &options) {
                    Err(error) if error.kind() == ErrorKind::Unsupported => continue,
                    model => drop(model.unwrap()),
                }
                let last = logits(directory.path(), &options, &ids, step).pop().unwrap();
                let expected = first.get_or_insert_with(|| bits(&last));
                assert_eq!(&bits(&last), expected, "{format:?} {isa} {threads} {step}");
            }
        }
    }
}

#[test]
fn a_model_says_what_its_weights_are() {
    let directory = synthetic_model("small-grouped");
    let open = |options: &ModelOptions| Model::open(directory.path(), options).unwrap();
    let stored = open(&options(WeightFormat::Stored));
    assert_eq!(stored.weight_format(), Some(WeightFormat::Stored));
    assert_eq!(stored.compute_mode(), Some(ComputeMode::Exact));
    for format in QUANTIZED {
        let model = open(&options(format));
        assert_eq!(model.weight_format(), Some(format));
        assert_eq!(model.compute_mode(), Some(ComputeMode::Fast));
        assert!(model.weight_bytes() < stored.weight_bytes());
        let exact = ModelOptions { compute: Some(ComputeMode::Exact), ..options(format) };
        assert_eq!(open(&exact).compute_mode(), Some(ComputeMode::Exact));
    }
}

#[test]
fn a_weight_that_is_not_finite_is_named() {
    for (tensor, place) in [
        ("layers.0.mlp.up_proj.weight", "row 0 "),
        ("layers.0.input_layernorm.weight", "weight 0 "),
        ("layers.0.linear_attn.A_log", "weight 0 "),
        ("layers.0.linear_attn.dt_bias", "weight 0 "),
        ("layers.0.linear_attn.in_proj_a.weight", "weight 0 "),
        ("norm.weight", "weight 0 "),
    ] {
        let directory = synthetic_model("small-equal");
        let path = directory.join("model.safetensors");
        let mut bytes = std::fs::read(&path).unwrap();
        let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
        let header: serde_json::Value = serde_json::from_slice(&bytes[8..8 + length]).unwrap();
        let entry = &header[format!("model.language_model.{tensor}")];
        let begin = 8 + length + entry["data_offsets"][0].as_u64().unwrap() as usize;
        let infinite: &[u8] = match entry["dtype"].as_str().unwrap() {
            "BF16" => &[0x80, 0x7F],
            "F32" => &[0, 0, 0x80, 0x7F],
            other => panic!("{other}"),
        };
        bytes[begin..begin + infinite.len()].copy_from_slice(infinite);
        std::fs::write(&path, bytes).unwrap();
        for weights in QUANTIZED {
            let opened = Model::open(directory.path(), &options(weights)).map(drop);
            let packing = PackOptions { weights, threads: 1 };
            let file = directory.join("packed");
            let packed = pack(directory.path(), &file, &packing, &mut |_, _| Continue(()));
            for error in [opened.unwrap_err(), packed.unwrap_err()] {
                assert_eq!(error.kind(), ErrorKind::Format);
                for part in ["model.safetensors", tensor, place, "not finite"] {
                    assert!(error.message().contains(part), "{error}");
                }
            }
        }
        // Weights as stored are not looked through.
        Model::open(directory.path(), &options(WeightFormat::Stored)).unwrap();
    }
}

#[test]
fn opening_tells_its_progress_and_can_be_cancelled() {
    let directory = synthetic_model("small-flat");
    for format in [WeightFormat::Stored, WeightFormat::Int4] {
        let mut told = Vec::new();
        let mut note = |done, total| {
            told.push((done, total));
            true
        };
        Model::open_with_progress(directory.path(), &options(format), &mut note).unwrap();
        assert!(told.windows(2).all(|pair| pair[0].0 <= pair[1].0 && pair[0].1 == pair[1].1));
        // While the tokenizer is missing, the last is told again.
        told.dedup();
        let (done, total) = *told.last().unwrap();
        // A count in whole bytes of pieces may miss a few.
        assert!(done <= total && done + 64 >= total, "{done} of {total}");
        for calls in [0, 3, told.len() - 1] {
            let mut left = calls;
            let mut stop = |_, _| {
                left = usize::wrapping_sub(left, 1);
                left != usize::MAX
            };
            let error = Model::open_with_progress(directory.path(), &options(format), &mut stop)
                .err()
                .unwrap();
            assert_eq!(error.kind(), ErrorKind::Cancelled);
        }
    }
}

#[test]
fn the_demo_model_says_much_the_same() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/demo-model");
    let model = Model::open(&path, &options(WeightFormat::Stored)).unwrap();
    let mut ids = Vec::new();
    let text = "What can you do?";
    model.tokenizer().encode(text, qwen35::tokenizer::AddedTokens::AsText, &mut ids);
    let prompt = ids.len();
    let mut session = greedy(&model);
    session.feed(&ids).unwrap();
    while ids.len() < prompt + 60 {
        match session.next_token().unwrap() {
            Next::Token(id) | Next::EndOfTurn(id) => ids.push(id),
            Next::LimitReached => break,
        }
    }
    let best = |logits: &[f32]| {
        (0..logits.len()).max_by(|&a, &b| logits[a].total_cmp(&logits[b])).unwrap() as u32
    };
    for (format, least) in [(WeightFormat::Int8, 0.93), (WeightFormat::Int4, 0.75)] {
        let all = logits(&path, &options(format), &ids, 1);
        let same = (prompt..ids.len()).filter(|&n| best(&all[n - 1]) == ids[n]).count();
        let share = same as f64 / (ids.len() - prompt) as f64;
        println!("{format:?}: {share:.3} of {} tokens", ids.len() - prompt);
        assert!(share >= least, "{format:?}: {share}");
    }
}

/// What a configuration says of layers that its network does not have costs nothing and changes
/// nothing.
#[test]
fn absent_kinds_of_layers_take_no_memory() {
    let linear = ["linear_num_key_heads", "linear_num_value_heads", "linear_key_head_dim"];
    let full = ["num_attention_heads", "num_key_value_heads"];
    for (name, sizes) in [("layer-attention", &linear[..]), ("layer-linear", &full)] {
        let found: Vec<_> = [None, Some(2048)]
            .into_iter()
            .map(|size| {
                let directory = temp::TempDir::new();
                let mut spec = synthetic::Spec::named(name);
                spec.write(directory.path()).unwrap();
                for key in sizes.iter().filter(|_| size.is_some()) {
                    spec.text_mut()[*key] = size.into();
                }
                spec.write_config(directory.path()).unwrap();
                tiny_tokenizer::write(directory.path(), spec.size("vocab_size"));
                let options = options(WeightFormat::Stored);
                let estimate = Model::estimate(directory.path(), &options, 100).unwrap();
                let ids: Vec<u32> = (1..30).collect();
                (estimate, logits(directory.path(), &options, &ids, 20))
            })
            .collect();
        assert!(found[0] == found[1], "{name}: {:?}, {:?}", found[0].0, found[1].0);
    }
}
