use super::super::simd::Isa;
use super::super::testing::Random;
use super::super::{Cancel, Compute};
use super::*;
use crate::pool::Pool;

/// Runs `test` with every instruction set.
fn everywhere(test: impl Fn(&Compute, &mut Random)) {
    let pool = Pool::new(3).unwrap();
    let cancel = Cancel::new();
    for isa in Isa::available() {
        let c = Compute::new(isa, &pool, &cancel);
        test(&c, &mut Random(7));
        c.check().unwrap();
    }
}

fn close(actual: &[f32], expected: impl Iterator<Item = f64>, relative: f64) {
    let mut count = 0;
    for (&a, e) in actual.iter().zip(expected) {
        assert!((f64::from(a) - e).abs() <= relative * e.abs() + 1e-30, "{a} {e}");
        count += 1;
    }
    assert_eq!(count, actual.len());
}

fn wide(x: &[f32]) -> impl Iterator<Item = f64> + Clone {
    x.iter().map(|&x| f64::from(x))
}

fn mean_square(x: &[f32]) -> f64 {
    wide(x).map(|x| x * x).sum::<f64>() / x.len() as f64
}

const WIDTHS: [usize; 8] = [1, 7, 16, 31, 128, 250, 1024, 1030];

#[test]
fn rms_norm_is_right() {
    everywhere(|c, random| {
        for width in WIDTHS {
            for tokens in [1, 3, 70] {
                let x = random.vector(tokens * width + 1, 3.0);
                let (x, weight) = (&x[1..], random.vector(width, 1.5));
                let mut out = vec![f32::NAN; x.len()];
                rms_norm(c, x, &weight, 1e-6, &mut out);
                for (x, out) in x.chunks(width).zip(out.chunks(width)) {
                    let scale = 1.0 / (mean_square(x) + 1e-6).sqrt();
                    close(out, wide(x).zip(wide(&weight)).map(|(x, w)| x * scale * w), 5e-7);
                }
            }
        }
    });
}

#[test]
fn gated_rms_norm_is_right() {
    everywhere(|c, random| {
        for width in WIDTHS {
            for rows in [1, 5, 300] {
                let (o, z) = (random.vector(rows * width, 2.0), random.vector(rows * width, 6.0));
                let weight = random.vector(width, 1.5);
                let mut out = o.clone();
                gated_rms_norm(c, &mut out, &z, &weight, 1e-6);
                for ((o, z), out) in o.chunks(width).zip(z.chunks(width)).zip(out.chunks(width)) {
                    let scale = 1.0 / (mean_square(o) + 1e-6).sqrt();
                    let silu = wide(z).map(|z| z / (1.0 + (-z).exp()));
                    let normed = wide(o).zip(wide(&weight)).map(|(o, w)| o * scale * w);
                    close(out, normed.zip(silu).map(|(o, z)| o * z), 1.5e-6);
                }
            }
        }
    });
}

#[test]
fn gates_are_right() {
    everywhere(|c, random| {
        for (tokens, heads, dim) in [(1, 2, 5), (3, 4, 64), (90, 8, 70)] {
            let o = random.vector(tokens * heads * dim, 2.0);
            let gated = random.vector(2 * tokens * heads * dim, 4.0);
            let mut out = o.clone();
            sigmoid_gate(c, &mut out, &gated, dim);
            for ((o, gated), out) in o.chunks(dim).zip(gated.chunks(2 * dim)).zip(out.chunks(dim)) {
                let gate = wide(&gated[dim..]).map(|g| 1.0 / (1.0 + (-g).exp()));
                close(out, wide(o).zip(gate).map(|(o, g)| o * g), 6e-7);
            }
        }
        for (tokens, heads) in [(1, 16), (5, 48), (9, 3)] {
            let (a, b) = (random.vector(tokens * heads, 9.0), random.vector(tokens * heads, 9.0));
            let (decay, bias) = (random.vector(heads, 8.0), random.vector(heads, 2.0));
            let (mut g, mut beta) = (vec![0.0; a.len()], vec![0.0; a.len()]);
            delta_gates(c, (&a, &b), (&decay, &bias), &mut g, &mut beta);
            let expected = (0..a.len()).map(|i| {
                let x = f64::from(a[i] + bias[i % heads]);
                f64::from(decay[i % heads]) * (x.max(0.0) + (-x.abs()).exp().ln_1p())
            });
            close(&g, expected, 6e-7);
            close(&beta, wide(&b).map(|b| 1.0 / (1.0 + (-b).exp())), 6e-7);
        }
    });
}

#[test]
fn rotary_positions_are_right() {
    let frequencies = rope_frequencies(1e7, 64);
    assert_eq!((frequencies.len(), frequencies[0]), (32, 1.0));
    for (i, f) in frequencies.iter().enumerate() {
        let exact = 1e7f64.powf(-2.0 * i as f64 / 64.0);
        assert!((f64::from(*f) - exact).abs() < exact * 1e-6);
    }
    everywhere(|c, random| {
        for (tokens, heads, dim, stride, pairs) in
            [(1, 8, 256, 512, 32), (5, 2, 40, 40, 20), (33, 3, 70, 100, 17), (2, 1, 16, 16, 0)]
        {
            let frequencies: Vec<f32> = (0..pairs).map(|i| 1.0 / (1.0 + i as f32)).collect();
            let (mut cos, mut sin) = (vec![0.0; tokens * pairs], vec![0.0; tokens * pairs]);
            for t in 0..tokens {
                let range = t * pairs..(t + 1) * pairs;
                rope_angles(&frequencies, 1000 + t, &mut cos[range.clone()], &mut sin[range]);
            }
            let x = random.vector(tokens * heads * stride, 2.0);
            let weight = random.vector(dim, 1.5);
            let mut out = vec![f32::NAN; tokens * heads * dim];
            norm_rope(c, &x, heads, stride, &weight, 1e-6, (&cos, &sin), &mut out);
            for (n, (x, out)) in x.chunks(stride).zip(out.chunks(dim)).enumerate() {
                let scale = 1.0 / (mean_square(&x[..dim]) + 1e-6).sqrt();
                let y: Vec<f64> =
                    wide(&x[..dim]).zip(wide(&weight)).map(|(x, w)| x * scale * w).collect();
                for i in 0..dim {
                    let pair = i % pairs.max(1);
                    let angle = f64::from(
                        (1000 + n / heads) as f32 * frequencies.get(pair).unwrap_or(&0.0),
                    );
                    let expected = if i < pairs {
                        y[i] * angle.cos() - y[i + pairs] * angle.sin()
                    } else if i < 2 * pairs {
                        y[i] * angle.cos() + y[i - pairs] * angle.sin()
                    } else {
                        y[i]
                    };
                    assert!(
                        (f64::from(out[i]) - expected).abs() < 2e-6,
                        "{i}: {} {expected}",
                        out[i]
                    );
                }
            }
        }
    });
}

/// A row's result is the same whatever rows are beside it, and in AVX2 and AVX-512.
#[test]
fn rows_are_independent() {
    let pool = Pool::new(3).unwrap();
    let cancel = Cancel::new();
    let mut random = Random(3);
    let (tokens, width) = (64, 1030);
    let (x, z) = (random.vector(tokens * width, 2.0), random.vector(tokens * width, 2.0));
    let weight = random.vector(width, 1.0);
    let mut first: Option<Vec<f32>> = None;
    for isa in Isa::available().filter(|isa| !matches!(isa, Isa::Scalar(_))) {
        let c = Compute::new(isa, &pool, &cancel);
        let mut all = x.clone();
        gated_rms_norm(&c, &mut all, &z, &weight, 1e-6);
        for t in [0, 17, 63] {
            let range = t * width..(t + 1) * width;
            let mut one = x[range.clone()].to_vec();
            gated_rms_norm(&c, &mut one, &z[range.clone()], &weight, 1e-6);
            assert_eq!(one, all[range]);
        }
        assert_eq!(first.get_or_insert_with(|| all.clone()), &all);
    }
}
