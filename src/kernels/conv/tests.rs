use super::*;
use crate::kernels::simd::Isa;
use crate::kernels::testing::{Random, bits, compute, error, rows};

/// The convolution by definition, in `f64`.
fn oracle(u: &[f32], taps: &[f32], history: &[f32], channels: usize, width: usize) -> Vec<f64> {
    let all: Vec<f64> = history.iter().chain(u).map(|&x| f64::from(x)).collect();
    (0..u.len())
        .map(|n| {
            let (t, ch) = (n / channels, n % channels);
            let sum: f64 = (0..width)
                .map(|j| f64::from(taps[ch * width + j]) * all[(t + j) * channels + ch])
                .sum();
            sum / (1.0 + (-sum).exp())
        })
        .collect()
}

#[test]
fn follows_the_definition_under_any_chunking() {
    let mut random = Random(1);
    for (channels, width) in [(1, 4), (16, 4), (37, 4), (2100, 4), (40, 1), (33, 2), (21, 7)] {
        for tokens in [1, 2, 3, 5, 70] {
            let taps = random.vector(channels * width, 1.0);
            let u = random.vector(tokens * channels, 3.0);
            let history = random.vector((width - 1) * channels, 3.0);
            let want = oracle(&u, &taps, &history, channels, width);
            let taps = ConvTaps::new(&taps, channels, width).unwrap();
            let mut results = Vec::new();
            for isa in Isa::available() {
                let mut out = vec![0.0; u.len()];
                let before = rows(&history, channels);
                compute(isa, 2, |c| {
                    let before = Parts::new(&before, 0, channels);
                    causal_conv_silu(c, &u, &taps, before, &mut out);
                });
                assert!(error(&out, &want, 1.0) < 1e-6);

                let all: Vec<f32> = history.iter().chain(&u).copied().collect();
                let (mut pieces, mut at) = (Vec::new(), 0);
                for n in random.split(tokens, 4) {
                    let mut out = vec![0.0; n * channels];
                    let before = rows(&all[at * channels..][..history.len()], channels);
                    let u = &u[at * channels..][..n * channels];
                    compute(isa, 1, |c| {
                        let before = Parts::new(&before, 0, channels);
                        causal_conv_silu(c, u, &taps, before, &mut out);
                    });
                    pieces.extend(out);
                    at += n;
                }
                assert_eq!(bits(&pieces), bits(&out));
                results.push(out);
            }
            if let [_, avx2, avx512] = &results[..] {
                assert_eq!(bits(avx2), bits(avx512));
            }
        }
    }
}

#[test]
fn a_cancelled_call_returns() {
    let (pool, cancel) = (crate::pool::Pool::new(2).unwrap(), crate::kernels::Cancel::new());
    cancel.set();
    let c = Compute::new(Isa::best(), &pool, &cancel);
    let taps = ConvTaps::new(&[1.0; 64], 16, 4).unwrap();
    let mut out = vec![7.0; 160];
    let before = rows(&[0.0; 48], 16);
    causal_conv_silu(&c, &[1.0; 160], &taps, Parts::new(&before, 0, 16), &mut out);
    assert!(out.iter().all(|&x| x == 7.0));
}
