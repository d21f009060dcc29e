//! Probabilities and embeddings against Transformers in FP32 (tests/data/golden/judge.json, made
//! by tests/reference/make_judge.py), and that judging leaves a session as it was.

mod support {
    pub mod golden;
    pub mod synthetic;
    pub mod temp;
    pub mod tiny_tokenizer;
}

use qwen35::session::Pooling;
use qwen35::{ErrorKind, Session};
use serde_json::Value;
use support::golden::{Golden, instruction_sets, open, session, take};

/// Largest difference of a log-probability, and of a number of an embedding (their size is about
/// one before normalizing). The logits agree within 3e-4, see tests/golden.rs.
const TOLERANCE: f64 = 3e-4;

fn golden(name: &str) -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/golden/judge.json");
    let all: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    all[name].clone()
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect()
}

fn close(found: &[f32], expected: &[f64], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    let differences = found.iter().zip(expected).map(|(&a, b)| (f64::from(a) - b).abs());
    let most = differences.fold(0.0, f64::max);
    println!("{what}: {most:.1e}");
    assert!(most <= TOLERANCE, "{what} differs by {most}");
}

#[test]
fn as_transformers() {
    for name in ["small-equal", "small-grouped", "small-odd"] {
        let (golden, expected) = (Golden::read(name), golden(name));
        let context = expected["context"].as_u64().unwrap() as usize;
        let score = numbers(&expected["score"]);
        let all = golden.prompt(context + score.len());
        for isa in instruction_sets() {
            let model = open(&golden, isa, 2);
            let mut session = session(&model);
            for (pooling, key) in [(Pooling::Mean, "mean"), (Pooling::Last, "last")] {
                for (normalize, suffix) in [(false, ""), (true, "_unit")] {
                    let key = format!("{key}{suffix}");
                    let found = session.embed(&all[..score.len()], pooling, normalize).unwrap();
                    close(&found, &numbers(&expected[&key]), &format!("{name} {isa} {key}"));
                }
            }
            session.feed(&all[..context]).unwrap();
            let found = session.score(&all[context..], false).unwrap();
            close(&found.each, &score, &format!("{name} {isa} score"));
            let mean = score.iter().sum::<f64>() / score.len() as f64;
            assert!((found.perplexity().ln() + mean).abs() < TOLERANCE);

            let top = session.top_logprobs(8).unwrap();
            let ids: Vec<u64> = top.iter().map(|(id, _)| u64::from(*id)).collect();
            let wanted = expected["top"].as_array().unwrap();
            let wanted_ids: Vec<u64> = wanted.iter().map(|e| e[0].as_u64().unwrap()).collect();
            assert_eq!(ids, wanted_ids, "{name} {isa}");
            let values: Vec<f64> = wanted.iter().map(|e| e[1].as_f64().unwrap()).collect();
            let found: Vec<f32> = top.iter().map(|(_, logprob)| *logprob).collect();
            close(&found, &values, &format!("{name} {isa} top"));
            let ids: Vec<u32> = top.iter().map(|(id, _)| *id).collect();
            assert_eq!(session.logprobs(&ids).unwrap(), found);
        }
    }
}

fn logits(session: &mut Session) -> Vec<f32> {
    session.logits().unwrap().to_vec()
}

#[test]
fn scores_are_those_of_feeding_one_by_one() {
    let golden = Golden::read("small-grouped");
    let model = open(&golden, instruction_sets().last().unwrap(), 2);
    let all = golden.prompt(330);
    for count in [1, 2, 8, 9, 10, 255, 256, 257, 311] {
        let (context, text) = (&all[..19], &all[19..19 + count]);
        let mut by_one = session(&model);
        by_one.feed(context).unwrap();
        let mut expected = Vec::new();
        for token in text {
            expected.push(by_one.logprobs(&[*token]).unwrap()[0]);
            by_one.feed(&[*token]).unwrap();
        }
        let mut scored = session(&model);
        scored.feed(context).unwrap();
        let before = logits(&mut scored);
        assert_eq!(scored.score(text, false).unwrap().each, expected, "{count} tokens");
        // The session is as before, and goes on as if nothing had been.
        assert_eq!(logits(&mut scored), before);
        assert_eq!(scored.tokens(), context);
        scored.embed(text, Pooling::Mean, false).unwrap();
        let mut untouched = session(&model);
        untouched.feed(context).unwrap();
        assert_eq!(take(&mut scored, 12), take(&mut untouched, 12));

        let mut kept = session(&model);
        kept.feed(context).unwrap();
        assert_eq!(kept.score(text, true).unwrap().each, expected);
        assert_eq!(kept.tokens(), &all[..19 + count]);
        assert_eq!(take(&mut kept, 12), take(&mut by_one, 12));
    }
}

#[test]
fn the_token_just_chosen() {
    let golden = Golden::read("small-equal");
    let model = open(&golden, instruction_sets().last().unwrap(), 1);
    let mut session = session(&model);
    assert_eq!(session.chosen_logprobs(1).unwrap_err().kind(), ErrorKind::InvalidState);
    session.feed(&golden.prompt(19)).unwrap();
    assert_eq!(session.chosen_logprobs(1).unwrap_err().kind(), ErrorKind::InvalidState);
    for _ in 0..5 {
        let top = session.top_logprobs(4).unwrap();
        let chosen = take(&mut session, 1)[0];
        assert_eq!(session.chosen_logprobs(4).unwrap(), (top[0].1, top.clone()));
        assert_eq!(top[0].0, chosen);
    }
    // Scoring what was chosen, one after the other, finds the most likely each time.
    let chosen = session.tokens()[19..].to_vec();
    let mut again = support::golden::session(&model);
    again.feed(&golden.prompt(19)).unwrap();
    assert_eq!(again.score(&chosen, false).unwrap().best, [true; 5]);
    // A chosen token that is not computed yet is part of what is scored after.
    let more = session.score(&chosen, false).unwrap();
    again.feed(&chosen).unwrap();
    assert_eq!(again.score(&chosen, false).unwrap(), more);
    assert_eq!(session.tokens(), again.tokens());
}

#[test]
fn what_cannot_be_judged_changes_nothing() {
    let golden = Golden::read("small-equal");
    let model = open(&golden, instruction_sets().last().unwrap(), 1);
    let mut session = Session::new(&model, support::golden::greedy_options(32)).unwrap();
    let kind = |result: qwen35::Result<()>| result.unwrap_err().kind();
    assert_eq!(kind(session.score(&[1, 2], false).map(drop)), ErrorKind::InvalidState);
    assert_eq!(kind(session.embed(&[], Pooling::Last, true).map(drop)), ErrorKind::InvalidArgument);
    session.feed(&golden.prompt(10)).unwrap();
    let before = logits(&mut session);
    let rows = golden.vocabulary() as u32;
    assert_eq!(kind(session.score(&[1, rows], true).map(drop)), ErrorKind::InvalidArgument);
    assert_eq!(kind(session.logprobs(&[rows]).map(drop)), ErrorKind::InvalidArgument);
    let long = golden.prompt(23);
    assert_eq!(kind(session.score(&long, true).map(drop)), ErrorKind::ContextOverflow);
    assert_eq!(
        kind(session.embed(&long, Pooling::Mean, true).map(drop)),
        ErrorKind::ContextOverflow
    );
    assert!(session.score(&[], true).unwrap().each.is_empty());
    assert_eq!(session.score(&long[..22], false).unwrap().each.len(), 22);
    session.cancel_handle().cancel();
    assert_eq!(kind(session.score(&long[..22], true).map(drop)), ErrorKind::Cancelled);
    assert_eq!((session.position(), logits(&mut session)), (10, before));
}

#[test]
fn what_is_not_finite_is_an_error() {
    const BAD: u32 = 7;
    let golden = Golden::read("small-equal");
    let folder = support::temp::TempDir::new();
    golden.write(folder.path());
    let path = folder.join("model.safetensors");
    let mut bytes = std::fs::read(&path).unwrap();
    let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let header: Value = serde_json::from_slice(&bytes[8..8 + length]).unwrap();
    let mut entries = header.as_object().unwrap().iter();
    let entry = entries.find(|(name, _)| name.ends_with("embed_tokens.weight")).unwrap().1;
    let [begin, end] = [0, 1].map(|i| entry["data_offsets"][i].as_u64().unwrap() as usize);
    let row = (end - begin) / golden.vocabulary();
    let begin = 8 + length + begin + BAD as usize * row;
    bytes[begin..begin + row].fill(0xFF); // NaN in every type
    std::fs::write(&path, bytes).unwrap();
    let options = qwen35::ModelOptions { threads: 1, ..Default::default() };
    let model = qwen35::Model::open(folder.path(), &options).unwrap();
    let mut session = session(&model);
    let good = session.embed(&[1, 2], Pooling::Mean, true).unwrap();
    for (pooling, normalize) in
        [(Pooling::Mean, true), (Pooling::Mean, false), (Pooling::Last, true)]
    {
        let error = session.embed(&[1, BAD], pooling, normalize).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Numeric);
        assert!(error.message().contains("number 0 of the embedding is NaN"), "{error}");
    }
    // Nothing has come of it.
    assert_eq!(session.embed(&[1, 2], Pooling::Mean, true).unwrap(), good);
    assert_eq!(session.position(), 0);
}

#[test]
fn a_hook_decides_on_tokens() {
    use std::ops::ControlFlow;
    let golden = Golden::read("small-equal");
    let model = open(&golden, instruction_sets().last().unwrap(), 1);
    let mut session = session(&model);
    session.feed(&golden.prompt(19)).unwrap();
    let free = logits(&mut session);
    let first = session.top_logprobs(3).unwrap();
    let banned = first[0].0 as usize;
    session.set_logits_hook(Some(Box::new(move |logits, tokens| {
        assert_eq!(tokens.len() % 20, 19);
        logits[banned] = f32::NEG_INFINITY;
        ControlFlow::Continue(())
    })));
    assert_eq!(take(&mut session, 1), [first[1].0]);
    // What was chosen from, and what others see, are the network's own.
    assert_eq!(session.chosen_logprobs(1).unwrap().1, first[..1]);
    session.set_logits_hook(Some(Box::new(|_, _| ControlFlow::Break(()))));
    assert_eq!(session.next_token().unwrap_err().kind(), ErrorKind::Cancelled);
    session.set_logits_hook(Some(Box::new(|logits, _| {
        logits.fill(f32::NAN);
        ControlFlow::Continue(())
    })));
    assert_eq!(session.next_token().unwrap_err().kind(), ErrorKind::Numeric);
    assert_eq!(session.position(), 20);
    session.set_logits_hook(None);
    session.reset().unwrap();
    session.feed(&golden.prompt(19)).unwrap();
    assert_eq!(logits(&mut session), free);
    assert_eq!(take(&mut session, 1), [first[0].0]);
}
