//! The rows of a weight matrix in 8 bits, with a proof of how far their products can be off.
//!
//! Whoever wants only the largest products of many rows reads half the bytes this way, and
//! computes exactly only the rows that can be among them.
//!
//! A row `w` is kept as `s q`, one scale and integers of -127 to 127; the vector `x` is taken
//! as `t n + d`, integers of some 15 bits and a rest. Then
//!
//! ```text
//! w . x = s t (q . n)  +  (w - s q) . x  +  s q . d
//! ```
//!
//! The integer product is exact. By Cauchy and Schwarz the other two are at most
//! `|w - s q| |x|` and `s 127 sqrt(cols) |d|`. What [`linear`](super::linear) computes is not
//! `w . x` either: sums of `n` terms in `f32` are off by `n u` times the sum of the magnitudes
//! of the products (`u` is 2^-24), which is at most `|w| |x|`. That is added to the norm of
//! the residual once, when a row is made. All roundings of the bounds themselves are covered
//! by [`SLACK`] and [`TINY`].

#![allow(clippy::needless_range_loop)] // plain loops keep the instruction set, see `direct`

use std::ops::Range;

use super::super::buffer::Buffer;
use super::super::simd::{LANES, Simd, prefetch_far};
use super::super::{Compute, Matrix, Weights};
use super::direct;
use super::element::Element;
use super::runs::{AHEAD, STREAMS};
use crate::dispatch;
use crate::pool::SharedMut;
use crate::{Error, Result};

/// Rows made at a time: 2 MiB at 1,024 columns, a large page.
pub const SHORT_BLOCK: usize = 2048;
/// Rows of one task that makes rows.
const TASK_ROWS: usize = 256;
/// Rows of one task of [`ShortRows::bounds`]: its quarters are far enough apart, see
/// [`runs`](super::runs).
const BOUNDS_ROWS: usize = 1024;
/// Columns that an instruction takes; rows are padded to a multiple.
const STEP: usize = 2 * LANES;
/// Relative to a bound and to the value it surrounds: 16 u, for at most 6 roundings of either.
const SLACK: f32 = 1.0 / (1 << 20) as f32;
/// Covers what is lost below the smallest normal numbers.
const TINY: f32 = 1e-30;
/// The largest product of norms for which no sum can overflow by far.
const MOST: f64 = 1e30;
/// More columns, and a sum of magnitudes in `f32` is not an integer any more.
const MAX_COLS: usize = 1 << 16;
/// Largest magnitude of a row that is kept in integers; a smaller one is all residual.
const LEAST: f32 = 1e-12;

/// Rows `0..ready` of a matrix in 8 bits; see the module.
pub struct ShortRows {
    rows: usize,
    cols: usize,
    blocks: Vec<Block>,
    /// The largest sum of magnitudes of the integers of a row.
    sum: u32,
    /// The largest norm of a row. Not finite when some weight is not, or far too large.
    norm: f32,
}

struct Block {
    /// `[rows, stride]`
    data: Buffer<i8>,
    /// `[rows]`, padded with zeros to a multiple of 16.
    scales: Buffer<f32>,
    /// `[rows]`, padded: a bound on the norm of the residual and on rounding; times `|x|`.
    errors: Buffer<f32>,
}

/// What a row that was made says of itself.
struct Row {
    scale: f32,
    error: f32,
    sum: f32,
    norm: f32,
}

impl ShortRows {
    /// No rows yet of a matrix `[rows, cols]`.
    pub fn new(rows: usize, cols: usize) -> Self {
        Self { rows, cols, blocks: Vec::new(), sum: 0, norm: 0.0 }
    }

    /// Rows that are made: the first ones.
    pub fn ready(&self) -> usize {
        (self.blocks.len() * SHORT_BLOCK).min(self.rows)
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        let block = |b: &Block| b.data.len() + 4 * (b.scales.len() + b.errors.len());
        self.blocks.iter().map(block).sum()
    }

    /// Elements from one row to the next.
    fn stride(&self) -> usize {
        self.cols.next_multiple_of(STEP)
    }

    /// Makes the next `blocks` blocks of [`SHORT_BLOCK`] rows of `matrix`, with all threads.
    ///
    /// # Errors
    /// `OutOfMemory`, and those of [`Compute::check`]. The rows made before stay.
    pub fn extend(&mut self, c: &Compute, matrix: &Matrix, blocks: usize) -> Result<()> {
        assert!((matrix.rows, matrix.cols) == (self.rows, self.cols), "rows of another matrix");
        let first = self.ready();
        let end = (first + blocks * SHORT_BLOCK).min(self.rows);
        self.blocks
            .try_reserve(blocks)
            .map_err(|_| Error::out_of_memory("8-bit rows", blocks * size_of::<Block>()))?;
        for start in (first..end).step_by(SHORT_BLOCK) {
            let rows = start..(start + SHORT_BLOCK).min(end);
            let (block, sum, norm) = self.block(c, matrix, rows)?;
            self.sum = self.sum.max(sum);
            self.norm = larger(self.norm, norm);
            self.blocks.push(block);
        }
        Ok(())
    }

    fn block(&self, c: &Compute, matrix: &Matrix, rows: Range<usize>) -> Result<(Block, u32, f32)> {
        let (stride, cols, padded) = (self.stride(), self.cols, rows.len().next_multiple_of(LANES));
        let mut block = Block {
            data: Buffer::zeroed(rows.len() * stride, "8-bit rows")?,
            scales: Buffer::zeroed(padded, "8-bit rows")?,
            errors: Buffer::zeroed(padded, "8-bit rows")?,
        };
        // For each task: the largest sum and norm of its rows.
        let mut most = [(0.0f32, 0.0f32); SHORT_BLOCK / TASK_ROWS];
        let (most_out, scales) = (SharedMut::new(&mut most), SharedMut::new(&mut block.scales));
        let errors = SharedMut::new(&mut block.errors);
        c.run_chunks(&mut block.data, TASK_ROWS * stride, |task, data| {
            let count = data.len() / stride;
            let first = rows.start + task * TASK_ROWS;
            // SAFETY: each task has its own rows, and its own entry of `most`.
            let (scales, errors, most) = unsafe {
                let at = task * TASK_ROWS;
                (scales.part(at, count), errors.part(at, count), most_out.part(task, 1))
            };
            for (n, out) in data.chunks_exact_mut(stride).enumerate() {
                let range = (first + n) * cols..(first + n + 1) * cols;
                let row = dispatch!(c.isa, s => match matrix.weights {
                    Weights::Bf16(w) => shorten(s, &w[range], out),
                    Weights::F16(w) => shorten(s, &w[range], out),
                    Weights::F32(w) => shorten(s, &w[range], out),
                    Weights::Tiles(..) => panic!("quantized weights are short already"),
                });
                (scales[n], errors[n]) = (row.scale, row.error);
                most[0].0 = most[0].0.max(row.sum);
                most[0].1 = larger(most[0].1, row.norm);
            }
        });
        c.check()?;
        let sum = most.iter().fold(0.0, |a: f32, m| a.max(m.0)) as u32;
        let norm = most.iter().fold(0.0, |a, m| larger(a, m.1));
        Ok((block, sum, norm))
    }

    /// Bounds on the products that [`linear`](super::linear) computes of the rows made so far
    /// with `x` (`[cols]`): row `r` lies within `lows[r]..=highs[r]`. `integers` is scratch.
    /// False, with garbage in the bounds, when there is none to give: `x` is zero or holds
    /// numbers that are not finite, or weights do. Where the computation was given up, see
    /// [`Compute::check`].
    ///
    /// # Panics
    /// If `lows` and `highs` are longer than [`ShortRows::ready`], or not equally long.
    pub fn bounds(
        &self,
        c: &Compute,
        x: &[f32],
        integers: &mut Vec<i16>,
        lows: &mut [f32],
        highs: &mut [f32],
    ) -> bool {
        assert!(x.len() == self.cols && lows.len() == highs.len() && lows.len() <= self.ready());
        let Some(input) = self.input(x, integers) else { return false };
        let (rows, lows) = (lows.len(), SharedMut::new(lows));
        c.run_chunks(highs, BOUNDS_ROWS, |task, highs| {
            let first = task * BOUNDS_ROWS;
            debug_assert!(first + highs.len() <= rows);
            // SAFETY: each task has its own rows.
            let lows = unsafe { lows.part(first, highs.len()) };
            let (block, at) = (&self.blocks[first / SHORT_BLOCK], first % SHORT_BLOCK);
            dispatch!(c.isa, s => block.bounds(s, at, self.stride(), &input, lows, highs));
        });
        true
    }

    /// `x` in integers, which are left in `integers`, padded with zeros.
    fn input<'a>(&self, x: &[f32], integers: &'a mut Vec<i16>) -> Option<Input<'a>> {
        let most = x.iter().fold(0.0, |m, x| larger(m, x.abs()));
        let norm = norm(x.iter().map(|&x| f64::from(x)));
        // Not a number anywhere makes this false too.
        let sizes = most > TINY && norm < MOST && norm * f64::from(self.norm) < MOST;
        if !sizes || self.cols > MAX_COLS {
            return None;
        }
        // No sum of products of integers, nor any part of one, may overflow 31 bits.
        let largest = (i32::MAX as u32 / self.sum.max(1)).min(i16::MAX as u32);
        if largest < 256 {
            return None;
        }
        let scale = most / (largest - 1) as f32;
        let inverse = 1.0 / f64::from(scale);
        integers.clear();
        integers.resize(self.stride(), 0);
        let rest = norm_of_rest(x, integers, f64::from(scale), inverse);
        let unit = 127.0 * (self.cols as f64).sqrt();
        Some(Input { integers, scale, norm: above(norm), rest: above(rest * unit) })
    }
}

/// Writes `x / scale`, rounded, and returns the norm of what that leaves of `x`.
fn norm_of_rest(x: &[f32], integers: &mut [i16], scale: f64, inverse: f64) -> f64 {
    norm(x.iter().zip(integers).map(|(&x, n)| {
        *n = (f64::from(x) * inverse).round() as i16;
        f64::from(x) - f64::from(*n) * scale
    }))
}

/// The larger one; what is not a number is larger than all.
fn larger(a: f32, b: f32) -> f32 {
    if a.is_nan() || a >= b { a } else { b }
}

fn norm(x: impl Iterator<Item = f64>) -> f64 {
    x.map(|x| x * x).sum::<f64>().sqrt()
}

/// The next `f32` above `x` or one further; covers the rounding of `x` itself too.
fn above(x: f64) -> f32 {
    ((x * (1.0 + 1e-6)) as f32).next_up()
}

/// A vector in integers.
struct Input<'a> {
    /// `[stride]`
    integers: &'a [i16],
    /// What an integer stands for.
    scale: f32,
    /// At least the norm of the vector.
    norm: f32,
    /// At least `127 sqrt(cols)` times the norm of what the integers leave of it.
    rest: f32,
}

impl Block {
    /// Bounds of the rows from `first` on.
    #[inline(always)]
    fn bounds<S: Simd>(
        &self,
        s: S,
        first: usize,
        stride: usize,
        input: &Input,
        lows: &mut [f32],
        highs: &mut [f32],
    ) {
        let (scale, norm, rest) = (s.splat(input.scale), s.splat(input.norm), s.splat(input.rest));
        let (slack, tiny, zero) = (s.splat(SLACK), s.splat(TINY), s.splat(0.0));
        let mut products = [0.0; BOUNDS_ROWS];
        let rows = lows.len();
        let quarter = rows / STREAMS;
        let (data, x) = (&self.data[first * stride..][..rows * stride], input.integers);
        for row in 0..quarter {
            let all = products_of::<S, STREAMS>(s, &data[row * stride..], quarter * stride, x);
            for n in 0..STREAMS {
                products[n * quarter + row] = all[n] as f32;
            }
        }
        for row in STREAMS * quarter..rows {
            let [sum] = products_of::<S, 1>(s, &data[row * stride..], 0, x);
            products[row] = sum as f32;
        }
        let groups = lows.chunks_mut(LANES).zip(highs.chunks_mut(LANES));
        for (group, (lows, highs)) in groups.enumerate() {
            let row = first + group * LANES;
            let scales = s.load(&self.scales[row..row + LANES]);
            let errors = s.load(&self.errors[row..row + LANES]);
            let value = s.mul(s.mul(s.load(&products[group * LANES..]), scales), scale);
            let bound = s.mul_add(errors, norm, s.mul(scales, rest));
            let size = s.add(s.max(value, s.sub(zero, value)), bound);
            let bound = s.add(s.mul_add(size, slack, bound), tiny);
            s.store_part(lows, s.sub(value, bound));
            s.store_part(highs, s.add(value, bound));
        }
    }
}

/// The products of `N` rows, `apart` elements from each other, with integers, a multiple of
/// [`STEP`] of them.
#[inline(always)]
fn products_of<S: Simd, const N: usize>(s: S, rows: &[i8], apart: usize, x: &[i16]) -> [i32; N] {
    assert!(rows.len() >= (N - 1) * apart + x.len() && x.len().is_multiple_of(STEP));
    let mut sums = [s.integers_zero(); N];
    let (row_at, x_at) = (rows.as_ptr(), x.as_ptr());
    for step in 0..x.len() / STEP {
        let k = step * STEP;
        for n in 0..N {
            let row_at = row_at.wrapping_add(n * apart + k);
            if step % 2 == 0 {
                prefetch_far(row_at.wrapping_add(AHEAD));
            }
            // SAFETY: whole steps of rows and integers, whose lengths were just checked.
            sums[n] = unsafe { s.integers_mul_add(row_at, x_at.add(k), sums[n]) };
        }
    }
    let mut out = [0; N];
    for n in 0..N {
        out[n] = s.integers_sum(sums[n]);
    }
    out
}

/// Makes a row: `out` is as long as `w`, padding apart.
#[inline(always)]
fn shorten<S: Simd, E: Element>(s: S, w: &[E], out: &mut [i8]) -> Row {
    let zero = s.splat(0.0);
    let mut most = zero;
    for w in w.chunks(LANES) {
        let w = load(s, w);
        most = s.max(s.max(w, s.sub(zero, w)), most);
    }
    let most = s.max_lane(most);
    let kept = (LEAST..1e18).contains(&most);
    let (scale, inverse) = if kept { (most / 127.0, 127.0 / most) } else { (0.0, 0.0) };
    let (minus, inverse) = (s.splat(-scale), s.splat(inverse));
    let (mut rest, mut all, mut sum) = (zero, zero, zero);
    // Added to a small integer, it leaves that in the low bits.
    let bias = s.splat(12_582_912.0);
    for (w, out) in w.chunks(LANES).zip(out.chunks_mut(LANES)) {
        let w = load(s, w);
        let q = s.round(s.mul(w, inverse));
        let residual = s.mul_add(q, minus, w);
        rest = s.mul_add(residual, residual, rest);
        all = s.mul_add(w, w, all);
        sum = s.add(sum, s.max(q, s.sub(zero, q)));
        let lanes = s.to_array(s.add(q, bias));
        for n in 0..out.len().min(LANES) {
            out[n] = lanes[n].to_bits() as i8;
        }
    }
    // Sums of squares lose what is below the smallest normal number, and their rounding is
    // that of a product of the row with itself.
    let rounding = (w.len() / LANES + 16) as f64 / f64::from(1u32 << 23);
    let norm = |squares: f32| (f64::from(squares) + 1e-30).sqrt() * (1.0 + rounding);
    let (rest, all) = (norm(s.sum(rest)), norm(s.sum(all)));
    // `rounding` for the exact kernel (it is twice what is needed), 4 u for the residual where
    // multiply-add is not fused.
    let error = above(rest + all * (rounding + 4.0 / f64::from(1u32 << 24)));
    Row { scale, error, sum: s.sum(sum), norm: above(all) }
}

/// Up to sixteen weights; missing lanes are zero.
#[inline(always)]
fn load<S: Simd, E: Element>(s: S, w: &[E]) -> S::F32 {
    if w.len() == LANES {
        // SAFETY: sixteen elements, just checked.
        unsafe { E::load(s, w.as_ptr()) }
    } else {
        E::load_part(s, w)
    }
}

/// `out[i]`: the product of row `rows[i]` of `matrix` with `x` (`[cols]`), the same bits as
/// [`linear`](super::linear) computes.
///
/// # Panics
/// If there is no such row, lengths do not fit or weights are quantized.
pub fn linear_rows(c: &Compute, x: &[f32], matrix: &Matrix, rows: &[u32], out: &mut [f32]) {
    const ROWS: usize = 16;
    assert!(rows.len() == out.len() && x.len() == matrix.cols);
    assert!(rows.iter().all(|&row| (row as usize) < matrix.rows));
    c.run_chunks(out, ROWS, |task, out| {
        let rows = &rows[task * ROWS..][..out.len()];
        dispatch!(c.isa, s => match matrix.weights {
            Weights::Bf16(w) => direct::single_rows(s, w, matrix.cols, x, rows, out),
            Weights::F16(w) => direct::single_rows(s, w, matrix.cols, x, rows, out),
            Weights::F32(w) => direct::single_rows(s, w, matrix.cols, x, rows, out),
            Weights::Tiles(..) => panic!("single rows of quantized weights"),
        });
    });
}

#[cfg(test)]
mod tests;
