use half::bf16;

use super::super::{Job, Matrix, linear, linear_swiglu};
use super::*;
use crate::kernels::Cancel;
use crate::kernels::testing::{Random, bits, error};
use crate::pool::Pool;

/// Runs `f` in fast mode; not at all where the CPU cannot.
fn fast(threads: usize, f: impl FnOnce(&Compute)) {
    let pool = Pool::new(threads).unwrap();
    let cancel = Cancel::new();
    let c = Compute::new(Isa::best(), &pool, &cancel).with_mode(ComputeMode::Fast);
    if Narrow::of(&c).is_none() {
        eprintln!("not run: this CPU has no AVX-512 BF16");
        return;
    }
    f(&c);
    c.check().unwrap();
}

fn weights(random: &mut Random, count: usize) -> Vec<bf16> {
    random.vector(count, 1.0).iter().map(|&w| bf16::from_f32(w)).collect()
}

fn product(c: &Compute, x: &[f32], w: &[bf16], rows: usize, cols: usize) -> Vec<f32> {
    let tokens = x.len() / cols;
    let mut out = vec![f32::NAN; tokens * rows];
    let matrix = Matrix::new(Weights::Bf16(w), rows, cols);
    linear(c, x, tokens, &mut [Job::store(matrix, &mut out)]);
    out
}

#[test]
fn products_of_rounded_inputs() {
    let mut random = Random(11);
    for (rows, cols) in [(64, 1), (65, 31), (67, 32), (130, 33), (64, 1000), (70, 2080), (66, 5000)]
    {
        for tokens in [1, 2, 5, 6, 7, 13, 100] {
            let (w, x) = (weights(&mut random, rows * cols), random.vector(tokens * cols, 1.0));
            let rounded: Vec<f64> =
                x.iter().map(|&x| f64::from(bf16::from_f32(x).to_f32())).collect();
            let mut want = Vec::new();
            for x in rounded.chunks_exact(cols) {
                for w in w.chunks_exact(cols) {
                    want.push(x.iter().zip(w).map(|(x, w)| x * w.to_f64()).sum());
                }
            }
            fast(2, |c| {
                let got = product(c, &x, &w, rows, cols);
                assert!(error(&got, &want, 1e-3) < 1e-5, "[{rows}, {cols}] x {tokens}");
            });
        }
    }
}

/// The bits of a row depend on no other row: any split gives the same.
#[test]
fn any_number_of_tokens_gives_the_same_bits() {
    let mut random = Random(12);
    for (rows, cols) in [(64, 96), (77, 1025), (100, 3584)] {
        let total = 40;
        let (w, x) = (weights(&mut random, rows * cols), random.vector(total * cols, 1.0));
        fast(1, |c| {
            let whole = product(c, &x, &w, rows, cols);
            for most in [1, 3, 9, 17] {
                let mut parts = Vec::new();
                let mut at = 0;
                for tokens in random.split(total, most) {
                    let x = &x[at * cols..(at + tokens) * cols];
                    fast(2, |c| parts.extend(product(c, x, &w, rows, cols)));
                    at += tokens;
                }
                assert_eq!(bits(&parts), bits(&whole));
            }
        });
    }
}

#[test]
fn swiglu_and_accumulation() {
    let mut random = Random(13);
    let (rows, cols, tokens) = (90, 160, 11);
    let (gate, up) = (weights(&mut random, rows * cols), weights(&mut random, rows * cols));
    let x = random.vector(tokens * cols, 0.3);
    fast(2, |c| {
        let (g, u) = (product(c, &x, &gate, rows, cols), product(c, &x, &up, rows, cols));
        let mut out = vec![f32::NAN; tokens * rows];
        let matrix = |w| Matrix::new(Weights::Bf16(w), rows, cols);
        linear_swiglu(c, &x, tokens, matrix(&gate), matrix(&up), &mut out);
        let want: Vec<f64> = g
            .iter()
            .zip(&u)
            .map(|(&g, &u)| f64::from(g) / (1.0 + (-f64::from(g)).exp()) * f64::from(u))
            .collect();
        assert!(error(&out, &want, 1e-3) < 1e-5);
        // Few rows are computed exactly, beside others that are not.
        let few = weights(&mut random, 8 * cols);
        let mut exact = vec![0.0; tokens * 8];
        let small = Matrix::new(Weights::Bf16(&few), 8, cols);
        let mut sums = out.clone();
        linear(
            c,
            &x,
            tokens,
            &mut [Job::accumulate(matrix(&gate), &mut sums), Job::store(small, &mut exact)],
        );
        for n in 0..sums.len() {
            assert_eq!(sums[n], out[n] + g[n]);
        }
        let mut alone = vec![0.0; tokens * 8];
        super::super::linear_exact(c, &x, tokens, &mut [Job::store(small, &mut alone)]);
        assert_eq!(bits(&exact), bits(&alone));
    });
}
