//! The sampler against a plain reference and against Transformers' own processors.

use qwen35::sampling::{Rng, Sampler, SamplingOptions};

/// Everything off: draws from the softmax of the logits.
fn plain() -> SamplingOptions {
    SamplingOptions { temperature: 1.0, seed: Some(1), ..SamplingOptions::greedy() }
}

fn sampler(options: SamplingOptions, tokens: usize) -> Sampler {
    Sampler::new(options, tokens).unwrap()
}

/// Logits of a believable shape: a few high, a long tail.
fn random_logits(seed: u64, n: usize) -> Vec<f32> {
    let mut rng = Rng::new(seed);
    (0..n)
        .map(|_| {
            let normal: f64 = (0..12).map(|_| rng.next_f64()).sum::<f64>() - 6.0;
            (normal * 3.0) as f32
        })
        .collect()
}

/// Temperature, top-k, top-p, min-p as Transformers' warpers define them: full sorts, f64.
fn reference(logits: &[f32], o: &SamplingOptions) -> Vec<(u32, f64)> {
    let mut left: Vec<(u32, f64)> = (logits.iter().enumerate())
        .map(|(i, &x)| (i as u32, f64::from(x) / f64::from(o.temperature) + 0.0)) // no -0
        .filter(|&(_, x)| x > f64::NEG_INFINITY)
        .collect();
    left.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    if o.top_k > 0 && o.top_k < left.len() {
        let kth = left[o.top_k - 1].1;
        left.retain(|&(_, x)| x >= kth);
    }
    let softmax = |left: &mut Vec<(u32, f64)>| {
        let max = left[0].1;
        let total: f64 = left.iter().map(|&(_, x)| (x - max).exp()).sum();
        left.iter().map(|&(_, x)| (x - max).exp() / total).collect::<Vec<f64>>()
    };
    if o.top_p < 1.0 {
        let probabilities = softmax(&mut left);
        let mut before = 0.0;
        let mut keep = 0;
        while keep < left.len() && (keep == 0 || before < f64::from(o.top_p)) {
            before += probabilities[keep];
            keep += 1;
        }
        left.truncate(keep);
    }
    let probabilities = softmax(&mut left);
    let bound = f64::from(o.min_p) * probabilities[0];
    let keep = probabilities.iter().filter(|&&p| p >= bound).count();
    left.truncate(keep);
    let probabilities = softmax(&mut left);
    let mut result: Vec<(u32, f64)> =
        left.iter().zip(probabilities).map(|(&(id, _), p)| (id, p)).collect();
    result.sort_by_key(|&(id, _)| id);
    result
}

#[test]
fn filters_agree_with_a_plain_reference() {
    let mut rng = Rng::new(77);
    for case in 0..400 {
        let n = [5, 40, 256, 257, 3000][case % 5];
        let mut logits = random_logits(case as u64, n);
        if case % 3 == 0 {
            // Many equal values.
            logits.iter_mut().for_each(|x| *x = x.round());
        }
        if case % 7 == 0 {
            logits.iter_mut().step_by(3).for_each(|x| *x = f32::NEG_INFINITY);
        }
        let options = SamplingOptions {
            temperature: [0.2, 0.7, 1.0, 1.7][case % 4],
            top_k: [0, 1, 3, 20, 100, 1000][case % 6],
            top_p: [1.0, 0.95, 0.5, 0.1, 0.999][(case / 6) % 5],
            min_p: [0.0, 0.05, 0.0, 0.5][(case / 3) % 4],
            seed: Some(rng.next_u64()),
            ..plain()
        };
        let got = sampler(options.clone(), n).distribution(&logits, &[], 0).unwrap();
        let mut want = reference(&logits, &options);
        // A weight below e^-87 counts as zero.
        want.retain(|&(_, p)| p > 1e-37);
        let ids = |list: &[(u32, f64)]| list.iter().map(|&(id, _)| id).collect::<Vec<_>>();
        assert_eq!(ids(&got), ids(&want), "case {case}: {options:?}");
        for (&(id, p), &(_, q)) in got.iter().zip(&want) {
            assert!((p - q).abs() <= 1e-5 * q, "case {case}, id {id}: {p} against {q}");
        }
    }
}

/// The distribution after Transformers' own processors (tests/reference/make_sampling.py).
#[test]
fn filters_agree_with_transformers() {
    let cases: serde_json::Value =
        serde_json::from_str(include_str!("data/sampling.json")).unwrap();
    let cases = cases.as_array().unwrap();
    assert!(cases.len() >= 100);
    for (i, case) in cases.iter().enumerate() {
        let floats = |key: &str| -> Vec<f64> {
            case[key].as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect()
        };
        let float = |key: &str| case[key].as_f64().unwrap() as f32;
        let logits: Vec<f32> = floats("logits").iter().map(|&x| x as f32).collect();
        let sequence: Vec<u32> = floats("sequence").iter().map(|&x| x as u32).collect();
        let bias = case["logit_bias"].as_array().unwrap().iter();
        let options = SamplingOptions {
            temperature: float("temperature"),
            top_k: case["top_k"].as_u64().unwrap() as usize,
            top_p: float("top_p"),
            min_p: float("min_p"),
            repetition_penalty: float("repetition_penalty"),
            logit_bias: bias
                .map(|b| (b[0].as_u64().unwrap() as u32, b[1].as_f64().unwrap() as f32))
                .collect(),
            ..plain()
        };
        let mut got = vec![0.0; logits.len()];
        let mut sampler = sampler(options, logits.len());
        for (id, p) in sampler.distribution(&logits, &sequence, sequence.len()).unwrap() {
            got[id as usize] = p;
        }
        for (id, (&p, &q)) in got.iter().zip(&floats("left")).enumerate() {
            let same = (p - q).abs() <= 2e-5 * q && (p == 0.0) == (q == 0.0);
            assert!(same, "case {i}, id {id}: {p} against {q}\n{case}");
        }
    }
}
