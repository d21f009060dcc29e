//! Products with few tokens: each weight goes from memory through registers.
#![allow(clippy::needless_range_loop)] // the loops over registers, see `add_group`

use super::element::Element;
use super::runs::{self, Runs, STREAMS};
use super::scratch::Scratch;
use super::{Input, Product, widen_tiles};
use crate::kernels::Weights;
use crate::kernels::simd::{LANES, Simd, prefetch_far};

/// How far ahead of its use a weight is asked for, in bytes of the matrix: what memory
/// delivers while it answers one request, several times over.
const AHEAD: usize = 32 << 10;

/// Computes `runs` of `product` for all tokens.
#[inline(always)]
pub(super) fn compute<S: Simd>(
    s: S,
    product: &Product,
    input: &Input,
    runs: Runs,
    scratch: &mut Scratch,
) {
    let (count, tokens) = (runs.len(), input.tokens);
    let (_, sums, wide) = scratch.parts(0, 2 * count * tokens);
    let (first, second) = sums.split_at_mut(count * tokens);
    for (matrix, sums) in product.matrices().zip([&mut *first, &mut *second]) {
        match matrix.weights {
            Weights::Bf16(w) => matrix_rows(s, w, matrix.cols, input, runs, sums),
            Weights::F16(w) => matrix_rows(s, w, matrix.cols, input, runs, sums),
            Weights::F32(w) => matrix_rows(s, w, matrix.cols, input, runs, sums),
            Weights::Tiles(format, w) => {
                for (n, sums) in sums.chunks_exact_mut(runs.count * tokens).enumerate() {
                    let w = widen_tiles(format, w, matrix.cols, runs.run(n), wide);
                    rows_of_all(s, w, matrix.cols, input, sums);
                }
            }
        }
    }
    let second = second.chunks_exact(runs.count);
    for (n, (sums, ups)) in first.chunks_exact(runs.count).zip(second).enumerate() {
        // Several runs are those of one token.
        let (token, run) = if runs.many > 1 { (0, n) } else { (n, 0) };
        // SAFETY: these rows belong to the calling task.
        unsafe { product.out.put(s, token, runs.run(run).start, sums, ups) };
    }
}

/// `sums[t][n]` for all rows of `runs` of `w` (`[.., cols]`) and all tokens.
#[inline(always)]
fn matrix_rows<S: Simd, E: Element>(
    s: S,
    w: &[E],
    cols: usize,
    input: &Input,
    runs: Runs,
    sums: &mut [f32],
) {
    if runs.many == 1 {
        let rows = runs.as_one();
        return rows_of_all(s, &w[rows.start * cols..rows.end * cols], cols, input, sums);
    }
    for row in 0..runs.count {
        let w = &w[(runs.first + row) * cols..];
        let [lanes] = block_lanes::<S, E, STREAMS, 1>(s, w, input.x, cols, runs.apart * cols);
        let all = s.sum4(lanes);
        for n in 0..STREAMS {
            sums[n * runs.count + row] = all[n];
        }
    }
}

/// `sums[t][n]` for the rows `w` (`[rows, cols]`) and all tokens.
#[inline(always)]
fn rows_of_all<S: Simd, E: Element>(s: S, w: &[E], cols: usize, input: &Input, sums: &mut [f32]) {
    let rows = sums.len() / input.tokens;
    let mut row = 0;
    // Blocks whose sums fit the registers and whose tokens fit the first-level cache.
    let one_register = S::PARTS == 1;
    while row < rows {
        row += match (input.tokens, rows - row) {
            (1, 4..) => rows_in_turn::<S, E>(s, w, cols, input.x, sums, row),
            (7 | 8, 2..) if one_register && cols <= 1024 => {
                tokens::<S, E, 2, 8>(s, w, cols, input, sums, row)
            }
            (_, 4..) if one_register => tokens::<S, E, 4, 6>(s, w, cols, input, sums, row),
            (_, 2..) if cols > 2048 => tokens::<S, E, 2, 2>(s, w, cols, input, sums, row),
            _ => tokens::<S, E, 1, 4>(s, w, cols, input, sums, row),
        };
    }
}

/// `out[i]`: row `rows[i]` of `w` (`[.., cols]`) for the one token `x`.
#[inline(always)]
pub(super) fn single_rows<S: Simd, E: Element>(
    s: S,
    w: &[E],
    cols: usize,
    x: &[f32],
    rows: &[u32],
    out: &mut [f32],
) {
    for n in 0..rows.len() {
        let row = &w[rows[n] as usize * cols..][..cols];
        let [[lanes]] = block_lanes::<S, E, 1, 1>(s, row, x, cols, cols);
        out[n] = s.sum(lanes);
    }
}

/// Four rows from `row` on for one token, one after the other, so that memory is read from
/// front to back; returns 4.
#[inline(always)]
fn rows_in_turn<S: Simd, E: Element>(
    s: S,
    w: &[E],
    cols: usize,
    x: &[f32],
    sums: &mut [f32],
    row: usize,
) -> usize {
    let mut lanes = [s.splat(0.0); 4];
    for r in 0..4 {
        [[lanes[r]]] = block_lanes::<S, E, 1, 1>(s, &w[(row + r) * cols..], x, cols, cols);
    }
    put_sums(s, &lanes, &mut sums[row..row + 4]);
    4
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
            7 if T >= 7 => block::<S, E, R, 7>(s, w, x, cols, sums, rows),
            8 if T >= 8 => block::<S, E, R, 8>(s, w, x, cols, sums, rows),
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
    let lanes = block_lanes::<S, E, R, T>(s, w, x, cols, cols);
    for t in 0..T {
        put_sums(s, &lanes[t], &mut sums[t * width..t * width + R]);
    }
}

/// The sums, lane by lane, with the `T` tokens of `x` of `R` rows of `w`, each `apart` elements
/// after the one before.
#[inline(always)]
fn block_lanes<S: Simd, E: Element, const R: usize, const T: usize>(
    s: S,
    w: &[E],
    x: &[f32],
    cols: usize,
    apart: usize,
) -> [[S::F32; R]; T] {
    assert!(w.len() >= (R - 1) * apart + cols && x.len() >= T * cols);
    let mut lanes = [[s.splat(0.0); R]; T];
    // Neighbouring rows are asked for from front to back, whatever the order of use: what lies
    // one block ahead if that is further than `AHEAD`. Others, each a little ahead.
    let neighbours = apart == cols;
    let block = R * cols * size_of::<E>();
    let ahead = if R == 1 { AHEAD } else { AHEAD.max(block) };
    let ahead = if neighbours { ahead } else { runs::AHEAD };
    let mut next = w.as_ptr().cast::<u8>().wrapping_add(ahead);
    let whole = cols / LANES;
    for pair in 0..whole / 2 {
        if neighbours {
            for _ in 0..R * 2 * LANES * size_of::<E>() / 64 {
                prefetch_far(next);
                next = next.wrapping_add(64);
            }
        } else {
            for r in 0..R {
                for line in 0..2 * LANES * size_of::<E>() / 64 {
                    prefetch_far(next.wrapping_add(r * apart * size_of::<E>() + line * 64));
                }
            }
            next = next.wrapping_add(2 * LANES * size_of::<E>());
        }
        for group in [2 * pair, 2 * pair + 1] {
            // SAFETY: whole groups of `cols`, in slices of enough rows (just checked).
            unsafe { add_group(s, &mut lanes, w.as_ptr(), x.as_ptr(), cols, apart, group) };
        }
    }
    if whole % 2 == 1 {
        // SAFETY: as above.
        unsafe { add_group(s, &mut lanes, w.as_ptr(), x.as_ptr(), cols, apart, whole - 1) };
    }
    if !cols.is_multiple_of(LANES) {
        let k = whole * LANES;
        for r in 0..R {
            let w = E::load_part(s, &w[r * apart + k..r * apart + cols]);
            for t in 0..T {
                let x = s.load_part(&x[t * cols + k..(t + 1) * cols]);
                lanes[t][r] = s.mul_add(x, w, lanes[t][r]);
            }
        }
    }
    lanes
}

/// Adds the products of group `group` of sixteen columns.
///
/// Plain loops throughout: a closure passed to `from_fn`, say, would be compiled without
/// the instruction set.
///
/// # Safety
/// `w` points to `R` rows, `apart` elements apart, and `x` to `T` rows of `cols` elements, all
/// of which have this whole group.
#[inline(always)]
unsafe fn add_group<S: Simd, E: Element, const R: usize, const T: usize>(
    s: S,
    lanes: &mut [[S::F32; R]; T],
    w: *const E,
    x: *const f32,
    cols: usize,
    apart: usize,
    group: usize,
) {
    let k = group * LANES;
    let mut inputs = [s.splat(0.0); T];
    for t in 0..T {
        // SAFETY: by the contract.
        inputs[t] = unsafe { s.load_ptr(x.add(t * cols + k)) };
    }
    for r in 0..R {
        // SAFETY: by the contract.
        let w = unsafe { E::load(s, w.add(r * apart + k)) };
        for t in 0..T {
            lanes[t][r] = s.mul_add(inputs[t], w, lanes[t][r]);
        }
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
