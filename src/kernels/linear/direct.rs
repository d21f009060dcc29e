//! Products with few tokens: each weight goes from memory through registers.
#![allow(clippy::needless_range_loop)] // the loops over registers, see `block`

use std::ops::Range;

use super::element::Element;
use super::scratch::Scratch;
use super::{Input, Product};
use crate::kernels::Weights;
use crate::kernels::simd::{LANES, Simd, prefetch};

/// How far ahead of its use a weight is asked for, in bytes of the matrix.
const AHEAD: usize = 4096;

/// Computes `rows` of `product` for all tokens.
#[inline(always)]
pub(super) fn compute<S: Simd>(
    s: S,
    product: &Product,
    input: &Input,
    rows: Range<usize>,
    scratch: &mut Scratch,
) {
    let (count, tokens) = (rows.len(), input.tokens);
    let (_, sums) = scratch.parts(0, 2 * count * tokens);
    let (first, second) = sums.split_at_mut(count * tokens);
    for (matrix, sums) in product.matrices().zip([&mut *first, &mut *second]) {
        let range = rows.start * matrix.cols..rows.end * matrix.cols;
        match matrix.weights {
            Weights::Bf16(w) => matrix_rows(s, &w[range], matrix.cols, input, sums),
            Weights::F16(w) => matrix_rows(s, &w[range], matrix.cols, input, sums),
            Weights::F32(w) => matrix_rows(s, &w[range], matrix.cols, input, sums),
        }
    }
    for (token, (sums, ups)) in first.chunks(count).zip(second.chunks(count)).enumerate() {
        // SAFETY: these rows belong to the calling task.
        unsafe { product.out.put(s, token, rows.start, sums, ups) };
    }
}

/// `sums[t][n]` for the rows `w` (`[rows, cols]`) and all tokens.
#[inline(always)]
fn matrix_rows<S: Simd, E: Element>(s: S, w: &[E], cols: usize, input: &Input, sums: &mut [f32]) {
    let rows = sums.len() / input.tokens;
    let mut row = 0;
    // Blocks whose sums fit the registers.
    while row < rows {
        row += match rows - row {
            4.. if S::PARTS == 1 => tokens::<S, E, 4, 6>(s, w, cols, input, sums, row),
            4.. if input.tokens == 1 => tokens::<S, E, 4, 1>(s, w, cols, input, sums, row),
            _ => tokens::<S, E, 1, 4>(s, w, cols, input, sums, row),
        };
    }
}

/// `R` rows from `row` on for all tokens, up to `T` at a time; returns `R`.
#[inline(always)]
fn tokens<S: Simd, E: Element, const R: usize, const T: usize>(
    s: S,
    w: &[E],
    cols: usize,
    input: &Input,
    sums: &mut [f32],
    row: usize,
) -> usize {
    let mut token = 0;
    while token < input.tokens {
        let left = input.tokens - token;
        // Blocks of about the same size: rather 4 and 4 than 6 and 2.
        let count = left.div_ceil(left.div_ceil(T));
        let x = &input.x[token * cols..(token + count) * cols];
        let w = &w[row * cols..];
        let rows = sums.len() / input.tokens;
        let sums = &mut sums[token * rows + row..];
        match count {
            2 if T >= 2 => block::<S, E, R, 2>(s, w, x, cols, sums, rows),
            3 if T >= 3 => block::<S, E, R, 3>(s, w, x, cols, sums, rows),
            4 if T >= 4 => block::<S, E, R, 4>(s, w, x, cols, sums, rows),
            5 if T >= 5 => block::<S, E, R, 5>(s, w, x, cols, sums, rows),
            6 if T >= 6 => block::<S, E, R, 6>(s, w, x, cols, sums, rows),
            _ => block::<S, E, R, 1>(s, w, x, cols, sums, rows),
        }
        token += count;
    }
    R
}

/// `sums[t * width + r]` for the first `R` rows of `w` and the `T` tokens of `x`.
#[inline(always)]
fn block<S: Simd, E: Element, const R: usize, const T: usize>(
    s: S,
    w: &[E],
    x: &[f32],
    cols: usize,
    sums: &mut [f32],
    width: usize,
) {
    assert!(w.len() >= R * cols && x.len() >= T * cols && sums.len() >= (T - 1) * width + R);
    let groups = cols / LANES;
    let ahead = (AHEAD / size_of::<E>() / R).min(cols);
    let mut lanes = [[s.splat(0.0); R]; T];
    for group in 0..groups {
        let k = group * LANES;
        // What follows the end of these rows is the next block of rows.
        let next = k + ahead + if k + ahead < cols { 0 } else { (R - 1) * cols };
        // Plain loops throughout: a closure passed to `from_fn` would be compiled without
        // the instruction set.
        let mut inputs = [s.splat(0.0); T];
        for t in 0..T {
            // SAFETY: k + 16 <= cols, and all rows are inside of their slices (checked).
            inputs[t] = unsafe { s.load_ptr(x.as_ptr().add(t * cols + k)) };
        }
        for r in 0..R {
            let p = w.as_ptr().wrapping_add(r * cols);
            prefetch(p.wrapping_add(next));
            // SAFETY: as above.
            let w = unsafe { E::load(s, p.add(k)) };
            for t in 0..T {
                lanes[t][r] = s.mul_add(inputs[t], w, lanes[t][r]);
            }
        }
    }
    if cols % LANES != 0 {
        let k = groups * LANES;
        for r in 0..R {
            let w = E::load_part(s, &w[r * cols + k..(r + 1) * cols]);
            for t in 0..T {
                let x = s.load_part(&x[t * cols + k..(t + 1) * cols]);
                lanes[t][r] = s.mul_add(x, w, lanes[t][r]);
            }
        }
    }
    for t in 0..T {
        put_sums(s, &lanes[t], &mut sums[t * width..t * width + R]);
    }
}

/// The sums of up to four vectors.
#[inline(always)]
pub(super) fn put_sums<S: Simd>(s: S, lanes: &[S::F32], sums: &mut [f32]) {
    match *lanes {
        [a, b, c, d] => sums.copy_from_slice(&s.sum4([a, b, c, d])),
        [a, b, c] => sums.copy_from_slice(&s.sum4([a, b, c, c])[..3]),
        _ => {
            for i in 0..lanes.len() {
                sums[i] = s.sum(lanes[i]);
            }
        }
    }
}
