use half::{bf16, f16};

use super::*;
use crate::kernels::simd::Isa;
use crate::kernels::testing::{Random, bits, compute};
use crate::kernels::{Job, linear};

/// Rows of many kinds: ordinary, zero, huge, tiny, equal to another, with an outlier.
fn weights(random: &mut Random, rows: usize, cols: usize) -> Vec<f32> {
    let mut w = Vec::new();
    for row in 0..rows {
        let scale = match row % 8 {
            3 => 1e4,
            4 => 1e-9,
            5 => 1e-14,
            _ => 1.0,
        };
        let mut values = random.vector(cols, scale);
        match row % 8 {
            1 => values.fill(0.0),
            2 => values[random.below(cols)] = 50.0,
            6 => values.copy_from_slice(&w[(row - 6) * cols..][..cols]),
            _ => {}
        }
        w.extend(values);
    }
    w
}

fn check(c: &Compute, matrix: &Matrix, x: &[f32]) {
    let mut exact = vec![0.0; matrix.rows];
    linear(c, x, 1, &mut [Job::store(*matrix, &mut exact)]);
    let mut short = ShortRows::new(matrix.rows, matrix.cols);
    while short.ready() < matrix.rows {
        short.extend(c, matrix, 1).unwrap();
    }
    let (mut lows, mut highs) = (vec![0.0; matrix.rows], vec![0.0; matrix.rows]);
    assert!(short.bounds(c, x, &mut Vec::new(), &mut lows, &mut highs));
    for row in 0..matrix.rows {
        let (low, high, exact) = (lows[row], highs[row], exact[row]);
        assert!(low <= exact && exact <= high, "row {row}: {exact} not in {low}..={high}");
    }
    // The same product of the rows alone, out of order.
    let rows: Vec<u32> = (0..matrix.rows as u32).rev().step_by(3).collect();
    let mut some = vec![0.0; rows.len()];
    linear_rows(c, x, matrix, &rows, &mut some);
    let want: Vec<f32> = rows.iter().map(|&row| exact[row as usize]).collect();
    assert_eq!(bits(&some), bits(&want));
}

#[test]
fn exact_products_lie_within_the_bounds() {
    let mut random = Random(1);
    for isa in Isa::available() {
        for (rows, cols) in [(1, 1), (17, 7), (40, 16), (300, 33), (64, 1024), (2100, 48)] {
            let w = weights(&mut random, rows, cols);
            let as_bf16: Vec<bf16> = w.iter().map(|&w| bf16::from_f32(w)).collect();
            let as_f16: Vec<f16> = w.iter().map(|&w| f16::from_f32(w)).collect();
            for outlier in [0.0, 300.0] {
                let mut x = random.vector(cols, 2.0);
                x[cols / 2] += outlier;
                compute(isa, 2, |c| {
                    check(c, &Matrix::new(Weights::F32(&w), rows, cols), &x);
                    check(c, &Matrix::new(Weights::Bf16(&as_bf16), rows, cols), &x);
                    check(c, &Matrix::new(Weights::F16(&as_f16), rows, cols), &x);
                });
            }
        }
    }
}

/// Rows that are a multiple of the vector: nothing cancels, so that rounding is largest. A
/// residual that points the same way makes the bound of Cauchy and Schwarz an equation.
#[test]
fn bounds_hold_where_they_are_tight() {
    let mut random = Random(2);
    let cols = 512;
    for isa in Isa::available() {
        let x: Vec<f32> =
            (0..cols).map(|_| if random.below(2) == 0 { 1.0 } else { -1.0 }).collect();
        let mut w = Vec::new();
        for row in 0..64 {
            // All but one of the weights lie between two integers of the row's scale.
            let part = row as f32 / 63.0;
            w.extend(x.iter().map(|x| x * (40.0 + part) / 127.0));
            w[row * cols] = 1.0;
        }
        compute(isa, 1, |c| check(c, &Matrix::new(Weights::F32(&w), 64, cols), &x));
    }
}

#[test]
fn bounds_are_narrow_for_ordinary_weights() {
    let mut random = Random(3);
    let (rows, cols) = (256, 1024);
    let (w, x) = (random.vector(rows * cols, 1.0), random.vector(cols, 1.0));
    compute(Isa::best(), 1, |c| {
        let mut short = ShortRows::new(rows, cols);
        short.extend(c, &Matrix::new(Weights::F32(&w), rows, cols), 1).unwrap();
        let (mut lows, mut highs) = (vec![0.0; rows], vec![0.0; rows]);
        assert!(short.bounds(c, &x, &mut Vec::new(), &mut lows, &mut highs));
        for row in 0..rows {
            let size = |v: &[f32]| norm(v.iter().map(|&v| f64::from(v)));
            let product = size(&w[row * cols..][..cols]) * size(&x);
            assert!(f64::from(highs[row] - lows[row]) < 0.01 * product);
        }
    });
}

#[test]
fn no_bounds_without_numbers() {
    let good = vec![0.5f32; 64];
    for bad in [f32::NAN, f32::INFINITY, 1e32] {
        for at in [0, 1, 32, 63] {
            let mut w = good.clone();
            w[at] = bad;
            compute(Isa::best(), 1, |c| {
                let given = |w: &[f32], x: &[f32]| {
                    let mut short = ShortRows::new(2, 32);
                    short.extend(c, &Matrix::new(Weights::F32(w), 2, 32), 1).unwrap();
                    short.bounds(c, x, &mut Vec::new(), &mut [0.0; 2], &mut [0.0; 2])
                };
                assert!(!given(&w, &good[..32]), "{bad} at {at}");
                assert!(!given(&good, &w[at / 32 * 32..][..32]), "{bad} at {at} of x");
                assert!(!given(&good, &[0.0; 32]));
                assert!(given(&good, &good[..32]));
            });
        }
    }
}
