use super::*;
use crate::kernels::simd::Isa;
use crate::kernels::testing::{Random, bits, compute, error};

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
                let mut kept = vec![0.0; history.len()];
                compute(isa, 2, |c| {
                    causal_conv_silu(c, &u, &taps, &history, &mut kept, &mut out);
                });
                assert!(error(&out, &want, 1.0) < 1e-6);
                let all: Vec<f32> = history.iter().chain(&u).copied().collect();
                assert_eq!(kept, all[all.len() - history.len()..]);

                let (mut before, mut pieces, mut at) = (history.clone(), Vec::new(), 0);
                for n in random.split(tokens, 4) {
                    let mut out = vec![0.0; n * channels];
                    let mut after = vec![0.0; history.len()];
                    let u = &u[at * channels..][..n * channels];
                    compute(isa, 1, |c| {
                        causal_conv_silu(c, u, &taps, &before, &mut after, &mut out);
                    });
                    pieces.extend(out);
                    before = after;
                    at += n;
                }
                assert_eq!(bits(&pieces), bits(&out));
                assert_eq!(bits(&before), bits(&kept));
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
    causal_conv_silu(&c, &[1.0; 160], &taps, &[0.0; 48], &mut [0.0; 48], &mut out);
    assert!(out.iter().all(|&x| x == 7.0));
}
