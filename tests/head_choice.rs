//! The choice of a token by the head's 8-bit copy, or by the upper bits of its quantized weights,
//! is the choice by all logits: the same tokens from the same random stream, whatever the options
//! and the weights.

#[path = "support/synthetic.rs"]
mod synthetic;
#[path = "support/temp.rs"]
mod temp;
#[path = "support/tiny_tokenizer.rs"]
mod tiny_tokenizer;

use std::path::Path;

use half::bf16;
use qwen35::sampling::SamplingOptions;
use qwen35::session::batch_step;
use qwen35::{Model, ModelOptions, Next, Session, SessionOptions, WeightFormat};

/// Three blocks of the copy, which is complete after as many choices.
const ROWS: usize = 5000;
/// The last rows have no token.
const TOKENS: usize = 4950;

fn model(name: &str, isa: &str, change: impl Fn(&Path)) -> Model {
    model_of(name, isa, WeightFormat::Stored, change)
}

fn model_of(name: &str, isa: &str, weights: WeightFormat, change: impl Fn(&Path)) -> Model {
    let directory = temp::TempDir::new();
    let mut spec = synthetic::Spec::named(name);
    spec.text_mut()["vocab_size"] = ROWS.into();
    spec.write(directory.path()).unwrap();
    write_tokenizer(directory.path());
    change(directory.path());
    let isa = Some(isa.to_owned());
    let options = ModelOptions { threads: 2, isa, weights, ..ModelOptions::default() };
    Model::open(directory.path(), &options).unwrap()
}

/// The tiny tokenizer, with tokens that no text gives beyond those it has.
fn write_tokenizer(directory: &Path) {
    const TINY: usize = 935;
    tiny_tokenizer::write(directory, TINY);
    let path = directory.join("tokenizer.json");
    let mut tokenizer: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    for id in TINY..TOKENS {
        tokenizer["model"]["vocab"][format!("more{id}")] = id.into();
    }
    std::fs::write(path, tokenizer.to_string()).unwrap();
}

/// Rewrites the rows of a BF16 matrix.
fn change_rows(directory: &Path, tensor: &str, change: impl Fn(usize, &mut [bf16])) {
    let path = directory.join("model.safetensors");
    let mut file = std::fs::read(&path).unwrap();
    let header = u64::from_le_bytes(file[..8].try_into().unwrap()) as usize;
    let entries: serde_json::Value = serde_json::from_slice(&file[8..8 + header]).unwrap();
    let entry = &entries[tensor];
    assert_eq!(entry["dtype"], "BF16");
    let cols = entry["shape"][1].as_u64().unwrap() as usize;
    let at = |n: usize| entry["data_offsets"][n].as_u64().unwrap() as usize;
    let bytes = &mut file[8 + header..][at(0)..at(1)];
    for (row, bytes) in bytes.chunks_exact_mut(2 * cols).enumerate() {
        let mut values: Vec<bf16> =
            bytes.chunks_exact(2).map(|b| bf16::from_le_bytes([b[0], b[1]])).collect();
        change(row, &mut values);
        bytes.copy_from_slice(&values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<_>>());
    }
    std::fs::write(path, file).unwrap();
}

fn ways() -> Vec<SamplingOptions> {
    let card = SamplingOptions { seed: Some(5), ..SamplingOptions::default() };
    let biased = vec![(7, 3.0), (8, 3.0), (100, -2.0), (11, f32::NEG_INFINITY), (4949, 2.5)];
    vec![
        SamplingOptions::greedy(),
        SamplingOptions { logit_bias: biased.clone(), ..SamplingOptions::greedy() },
        SamplingOptions { repetition_penalty: 1.3, ..SamplingOptions::greedy() },
        card.clone(),
        SamplingOptions { top_k: 1, ..card.clone() },
        SamplingOptions { top_k: 200, temperature: 3.0, top_p: 0.9, ..card.clone() },
        SamplingOptions { top_k: 5, min_p: 0.05, frequency_penalty: 0.7, ..card.clone() },
        SamplingOptions { repetition_penalty: 0.8, logit_bias: biased, top_k: 40, ..card.clone() },
        // These need all logits.
        SamplingOptions { top_k: 0, top_p: 0.8, ..card.clone() },
        SamplingOptions { top_k: 0, min_p: 0.1, ..card },
    ]
}

/// Tokens chosen by `session`; with `all`, from all logits, which asking for them computes.
fn choices(model: &Model, sampling: &SamplingOptions, all: bool, count: usize) -> Vec<u32> {
    let options = SessionOptions { sampling: sampling.clone(), ..SessionOptions::default() };
    let mut session = Session::new(model, options).unwrap();
    session.feed(&[1, 2, 3]).unwrap();
    (0..count)
        .map(|_| {
            if all {
                let logits = session.logits().unwrap();
                assert!(logits.iter().all(|logit| logit.is_finite()));
            }
            match session.next_token().unwrap() {
                Next::Token(token) | Next::EndOfTurn(token) => token,
                Next::LimitReached => panic!("no limit"),
            }
        })
        .collect()
}

fn compare(model: &Model) {
    for (way, sampling) in ways().iter().enumerate() {
        let few = choices(model, sampling, false, 40);
        let all = choices(model, sampling, true, 40);
        assert_eq!(few, all, "way {way}: {sampling:?}");
    }
}

#[test]
fn choices_are_those_of_all_logits() {
    for isa in qwen35::kernels::Isa::available() {
        compare(&model("small-equal", isa.name(), |_| ()));
    }
    compare(&model("small-odd", "scalar", |_| ()));
}

fn equal_and_odd_rows(directory: &Path) {
    change_rows(directory, "lm_head.weight", |row, values| match row % 5 {
        // Equal to each other: ties everywhere.
        0 | 1 => (0..values.len()).for_each(|k| {
            values[k] = bf16::from_f32(((row / 20 * 31 + k * 7) % 13) as f32 / 26.0 - 0.25);
        }),
        2 if row % 40 == 2 => values.fill(bf16::ZERO),
        3 if row % 50 == 3 => values.iter_mut().for_each(|v| *v *= bf16::from_f32(30.0)),
        _ => {}
    });
}

#[test]
fn equal_and_odd_rows_change_nothing() {
    for isa in qwen35::kernels::Isa::available() {
        compare(&model("small-odd", isa.name(), equal_and_odd_rows));
    }
}

#[test]
fn quantized_choices_are_those_of_all_logits() {
    for weights in [WeightFormat::Int8, WeightFormat::Int4] {
        for isa in qwen35::kernels::Isa::available() {
            let ordinary = model_of("small-equal", isa.name(), weights, |_| ());
            compare(&ordinary);
            let odd = model_of("small-odd", isa.name(), weights, equal_and_odd_rows);
            compare(&odd);
            for model in [ordinary, odd] {
                let counts = model.head_counts().unwrap();
                println!("{weights:?} {}: {counts:?}", isa.name());
                // So few random rows are all alike for two bits.
                assert!(counts.choices > 0 || weights == WeightFormat::Int4, "{counts:?}");
            }
        }
    }
}

/// Sessions together choose what they choose alone, whatever they ask of the logits.
#[test]
fn quantized_choices_of_a_batch() {
    for weights in [WeightFormat::Int8, WeightFormat::Int4] {
        let model =
            model_of("small-odd", qwen35::kernels::Isa::best().name(), weights, equal_and_odd_rows);
        let ways = ways();
        // One of the second five needs all logits; with it, all are computed.
        for chosen in [&ways[..4], &ways[4..9]] {
            let alone: Vec<_> = chosen.iter().map(|way| choices(&model, way, false, 20)).collect();
            let mut sessions: Vec<Session> = chosen
                .iter()
                .map(|way| {
                    let sampling = way.clone();
                    let options = SessionOptions { sampling, ..SessionOptions::default() };
                    let mut session = Session::new(&model, options).unwrap();
                    session.feed(&[1, 2, 3]).unwrap();
                    session
                })
                .collect();
            let before = model.head_counts().unwrap();
            let mut together = vec![Vec::new(); chosen.len()];
            for _ in 0..20 {
                let mut all: Vec<&mut Session> = sessions.iter_mut().collect();
                for (made, next) in together.iter_mut().zip(batch_step(&mut all).unwrap()) {
                    match next.unwrap() {
                        Next::Token(token) | Next::EndOfTurn(token) => made.push(token),
                        Next::LimitReached => panic!("no limit"),
                    }
                }
            }
            assert_eq!(together, alone, "{weights:?}");
            let after = model.head_counts().unwrap();
            println!("{weights:?}: {before:?}, then {after:?}");
            for (session, made) in sessions.iter_mut().zip(&together) {
                assert!(session.logits().unwrap().iter().all(|logit| logit.is_finite()));
                assert_eq!(session.tokens()[3..], made[..]);
            }
        }
    }
}

/// Where a weight is not a number, no bound is given, and the error is that of all logits.
#[test]
fn what_is_not_a_number_is_found() {
    let change = |directory: &Path| {
        change_rows(directory, "lm_head.weight", |row, values| {
            if row == 4321 {
                values[0] = bf16::NAN;
            }
        });
    };
    let model = model("small-odd", "scalar", change);
    let mut session = Session::new(&model, SessionOptions::default()).unwrap();
    session.feed(&[1, 2, 3]).unwrap();
    for _ in 0..5 {
        let error = session.next_token().unwrap_err();
        assert_eq!(error.kind(), qwen35::ErrorKind::Numeric);
        assert!(error.to_string().contains("4321"), "{error}");
    }
}

/// All logits can be had after a choice was made from some.
#[test]
fn all_logits_after_a_choice() {
    let model = model("small-equal", "scalar", |_| ());
    let mut session = Session::new(&model, SessionOptions::default()).unwrap();
    session.set_sampling(SamplingOptions::greedy()).unwrap();
    session.feed(&[1, 2, 3]).unwrap();
    for _ in 0..6 {
        session.next_token().unwrap();
    }
    let logits = session.logits().unwrap().to_vec();
    assert!(logits.iter().all(|logit| logit.is_finite()));
    let next = session.next_token().unwrap();
    let largest = (0..TOKENS).max_by(|&a, &b| logits[a].total_cmp(&logits[b]).then(b.cmp(&a)));
    assert!(matches!(next, Next::Token(t) | Next::EndOfTurn(t) if Some(t as usize) == largest));
}
