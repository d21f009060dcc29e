//! How large products can be, from the first plane of quantized weights; and exact products of
//! chosen tiles.
//!
//! A weight is `scale (stored - offset)`, and the first plane has the upper bits of `stored`.
//! With the middle of what the lower bits can be in their place, a product of the row `w` with
//! the inputs `x` (in INT8, as always with quantized weights) is off by the sum of
//! `scale r_k x_k` over the columns, where each `r_k` lies within half a step of the upper bits:
//! one of `n` values around 0 that are 1 apart, `n` = 16 for INT8 and 4 for INT4.
//!
//! That sum is bounded as one of independent numbers. If all values of `r_k` are equally
//! likely, it is sub-Gaussian with the variance
//!
//! ```text
//! sigma^2 = (n^2 - 1) / 12  sum over groups  scale^2  sum over their columns  x_k^2
//! ```
//!
//! (what is uniform, discretely too, is strictly sub-Gaussian), so that it exceeds `t sigma`
//! with a probability of at most `exp(-t^2 / 2)`. This is no proof, because weights are what
//! they are; [`deviations`] is chosen so that chance plays no part: 6 for INT4, at most 1.5e-8,
//! and 1e-9 by the tails of a normal distribution, which many columns give; 7 for INT8, at most
//! 2.3e-11 and 1.3e-12. Who uses the bounds can compare them with the products that he computes
//! exactly; weights for which they are of no use show themselves there. A few large inputs
//! cannot break a bound: all of `r_k` together are at most 1.63 times as large as their standard
//! deviation, so that it takes more than a dozen columns of the same size and sign to come to 6.
//!
//! The residual `r` of a row belongs to the row: where the inputs resemble the weights, as they
//! do in the largest products, it points the same way, and the estimate is on the small side by
//! a share of the product. Measured with random weights, that is 4.4 % (INT4) and 0.8 % (INT8) of it;
//! [`growth`] makes up for it.
#![allow(clippy::needless_range_loop)] // the loops over registers, see `direct`

use std::sync::atomic::{AtomicBool, Ordering};

use super::JOINED_TASKS;
use super::format::Rows;
use super::planes::column_of;
use super::runs::{AHEAD, Runs, STREAMS, Share};
use super::{few, tiles};
use crate::dispatch;
use crate::kernels::quantized::dots::{Dots, dispatch_dots};
use crate::kernels::quantized::inputs::{QuantizedInput, with_inputs};
use crate::kernels::quantized::layout::{GROUP, LINE};
use crate::kernels::quantized::{TILE_ROWS, TileFormat};
use crate::kernels::simd::{LANES, Simd, prefetch_far};
use crate::kernels::{Compute, Matrix, Weights};
use crate::pool::SharedMut;
use crate::{Error, Result};

/// How many standard deviations a bound is above its estimate.
const fn deviations(format: TileFormat) -> f32 {
    if format.is_int8() { 7.0 } else { 6.0 }
}

/// What estimates above 0 are multiplied by.
const fn growth(format: TileFormat) -> f32 {
    if format.is_int8() { 1.01 } else { 1.0625 }
}

/// Covers roundings, of which that of [`BoundInputs::starts`] to integers is the largest: of
/// groups whose inputs share a scale, it is less than a hundredth of the deviations where their
/// weights have scales of about the same size.
const SLACK: f32 = 1.01;
/// Tiles of one task of [`linear_tiles`].
const TASK_TILES: usize = 4;
/// Tiles of one task of [`largest_of_tiles`].
const TASK_TOPS: usize = 1024;

/// What [`upper_bounds`] makes of its inputs, `[tokens, groups]` each; kept from call to call.
#[derive(Default)]
pub struct BoundInputs {
    /// What the sum of a group starts from, for the offset of the weights.
    starts: Vec<i32>,
    /// What an integer of the sum is worth, but for the scale of the weights.
    factors: Vec<f32>,
    /// So many deviations, but for the scale of the weights.
    spreads: Vec<f32>,
}

impl BoundInputs {
    fn set(&mut self, format: TileFormat, x: &QuantizedInput, tokens: usize) -> Result<()> {
        let groups = tokens * x.groups();
        let refused = |_| Error::out_of_memory("scratch of the head", 12 * groups);
        self.starts.clear();
        self.starts.try_reserve(groups).map_err(refused)?;
        self.factors.clear();
        self.factors.try_reserve(groups).map_err(refused)?;
        self.spreads.clear();
        self.spreads.try_reserve(groups).map_err(refused)?;
        // Of the stored number, the upper bits are worth `step`, the lower ones 0 to `step - 1`.
        let step = if format.is_int8() { 16.0 } else { 4.0 };
        let middle = (step - 1.0) / 2.0;
        let zero = (format.offset() as f32 - middle) / step;
        let variance = (step * step - 1.0) / 12.0;
        let most = SLACK * deviations(format) * f32::sqrt(variance);
        let values = x.values(0).chunks_exact(GROUP).take(groups);
        for ((values, &scale), &correction) in values.zip(x.scales(0)).zip(x.corrections(0)) {
            let squares: i32 = values.iter().map(|&v| i32::from(v) * i32::from(v)).sum();
            self.starts.push((correction as f32 / format.offset() as f32 * zero).round() as i32);
            self.factors.push(scale * step);
            self.spreads.push(scale * most * (squares as f32).sqrt());
        }
        Ok(())
    }
}

/// `out[t][n]`: what the product of row `n` of `matrix`, whose weights are in two planes, with
/// the row `t` of `x` (`[tokens, cols]`) in [`ComputeMode::Fast`](crate::kernels::ComputeMode)
/// hardly exceeds; see the module. False, with garbage in `out`, when some bound is not
/// finite. Where the computation was given up, see [`Compute::check`].
///
/// # Errors
/// `OutOfMemory`.
///
/// # Panics
/// If lengths do not fit or the weights are not in two planes.
pub fn upper_bounds(
    c: &Compute,
    x: &[f32],
    tokens: usize,
    matrix: &Matrix,
    inputs: &mut BoundInputs,
    out: &mut [f32],
) -> Result<bool> {
    let Weights::Tiles(format, tiles) = matrix.weights else { panic!("bounds: no planes") };
    assert!(format.is_planes() && x.len() == tokens * matrix.cols && tokens > 0);
    assert!(out.len() == tokens * matrix.rows && matrix.weights.fit(matrix.rows, matrix.cols));
    let step = tiles::task_rows(tokens, format, matrix.cols, 1);
    let share = match tokens {
        1 => Share::in_runs(matrix.rows, step, STREAMS),
        _ => Share::whole(matrix.rows, step),
    };
    let finite = AtomicBool::new(true);
    let mut result = Ok(());
    with_inputs(c, format, x, tokens, matrix.cols, |quantized| {
        result = inputs.set(format, quantized, tokens);
        if result.is_err() {
            return;
        }
        let x = quantized.values(0);
        let bounds = Bounds { matrix, tiles, x, inputs, tokens, out: SharedMut::new(out) };
        c.run_ranges(share.tasks(), JOINED_TASKS, |mut left| {
            while !left.is_empty() {
                let runs;
                (runs, left) = share.runs(left);
                let good = dispatch_dots!(c.integers, d => {
                    match format.is_int8() {
                        true => bounds.rows::<_, Nibbles>(d, runs),
                        false => bounds.rows::<_, Quarters>(d, runs),
                    }
                });
                if !good {
                    finite.store(false, Ordering::Relaxed);
                }
            }
        });
    });
    result.map(|()| finite.into_inner())
}

/// A format of the first plane.
trait First {
    const FORMAT: TileFormat;

    /// Half a group of weights, the first or the second: in the order of [`Dots::quarters`].
    ///
    /// # Safety
    /// Its lines are readable, of as many rows as a register has.
    unsafe fn quads<D: Dots>(d: D, weights: *const u8, half: usize) -> [D::Quads; 4];
}

struct Nibbles;
struct Quarters;

impl First for Nibbles {
    const FORMAT: TileFormat = TileFormat::Int8Planes;

    #[inline(always)]
    unsafe fn quads<D: Dots>(d: D, weights: *const u8, half: usize) -> [D::Quads; 4] {
        // SAFETY: by the contract.
        let [a, b] = unsafe {
            let line = weights.add(2 * half * LINE);
            [d.nibbles(line), d.nibbles(line.add(LINE))]
        };
        [a[0], b[0], a[1], b[1]]
    }
}

impl First for Quarters {
    const FORMAT: TileFormat = TileFormat::Int4Planes;

    #[inline(always)]
    unsafe fn quads<D: Dots>(d: D, weights: *const u8, half: usize) -> [D::Quads; 4] {
        // SAFETY: by the contract.
        unsafe { d.quarters(weights.add(half * LINE)) }
    }
}

/// A matrix and what its rows are multiplied with.
struct Bounds<'a> {
    matrix: &'a Matrix<'a>,
    tiles: &'a [u8],
    /// `[tokens, groups, 32]`
    x: &'a [i8],
    inputs: &'a BoundInputs,
    tokens: usize,
    /// `[tokens, rows]`
    out: SharedMut<'a, f32>,
}

impl Bounds<'_> {
    /// The bounds of `runs`, which belong to the calling task; false if one is not finite.
    #[inline(always)]
    fn rows<D: Dots, F: First>(&self, d: D, runs: Runs) -> bool {
        if runs.many == STREAMS {
            return self.streams::<D, F>(d, runs);
        }
        let mut good = true;
        let rows = runs.as_one();
        for row in (rows.start..rows.end).step_by(D::ROWS) {
            let mut token = 0;
            while token < self.tokens {
                // The conditions are constants: only blocks that occur are compiled.
                let left = self.tokens - token;
                token += match left.min(D::SINGLE) {
                    8.. if const { D::SINGLE >= 8 } => {
                        good &= self.block::<D, F, 8>(d, row, token);
                        8
                    }
                    4.. if const { D::SINGLE >= 4 } => {
                        good &= self.block::<D, F, 4>(d, row, token);
                        4
                    }
                    2.. if const { D::SINGLE >= 2 } => {
                        good &= self.block::<D, F, 2>(d, row, token);
                        2
                    }
                    _ => {
                        good &= self.block::<D, F, 1>(d, row, token);
                        1
                    }
                };
            }
        }
        good
    }

    /// The bounds of runs of whole tiles for one token; as in
    /// [`streams`](super::streams), all runs go on together.
    #[inline(always)]
    fn streams<D: Dots, F: First>(&self, d: D, runs: Runs) -> bool {
        let (cols, groups) = (self.matrix.cols, self.matrix.cols.div_ceil(GROUP));
        self.check(groups, 0, 1);
        let mut good = true;
        for at in (0..runs.count).step_by(TILE_ROWS) {
            let mut rows = [Rows::new(self.tiles, self.tiles, 0); STREAMS];
            let mut next = [self.tiles.as_ptr(); STREAMS];
            for r in 0..STREAMS {
                let index = (runs.run(r).start + at) / TILE_ROWS;
                let (tile, rest) = F::FORMAT.tile(self.tiles, cols, index);
                rows[r] = Rows::new(tile, rest, 0);
                next[r] = tile.as_ptr().wrapping_add(AHEAD);
            }
            let mut whole = Sums { lanes: [[d.zero(); STREAMS]], squares: [[d.zero(); STREAMS]] };
            let none = Sums { lanes: [[d.zero(); 2]], squares: [[d.zero(); 2]] };
            let mut halves = [none; STREAMS];
            for group in 0..groups {
                for next in &mut next {
                    for _ in 0..F::FORMAT.group_bytes() / LINE + (group + 1) % 2 {
                        prefetch_far(*next);
                        *next = next.wrapping_add(LINE);
                    }
                }
                // SAFETY: the tiles of `rows` have `groups` groups, and so has the token.
                unsafe {
                    if const { D::ROWS == TILE_ROWS } {
                        self.add_group::<D, F, STREAMS, 1>(d, &mut whole, &rows, 0, group);
                    } else {
                        for r in 0..STREAMS {
                            let rows = [rows[r], rows[r].below(D::ROWS)];
                            self.add_group::<D, F, 2, 1>(d, &mut halves[r], &rows, 0, group);
                        }
                    }
                }
            }
            for r in 0..STREAMS {
                let row = runs.run(r).start + at;
                if const { D::ROWS == TILE_ROWS } {
                    good &= self.put::<D, F>(d, whole.lanes[0][r], whole.squares[0][r], 0, row);
                } else {
                    for half in 0..2 {
                        let (lanes, squares) = (halves[r].lanes[0], halves[r].squares[0]);
                        let row = row + half * D::ROWS;
                        good &= self.put::<D, F>(d, lanes[half], squares[half], 0, row);
                    }
                }
            }
        }
        good
    }

    /// The bounds of the register of rows that begins at `row`, for the tokens from `token` on.
    #[inline(always)]
    fn block<D: Dots, F: First, const T: usize>(&self, d: D, row: usize, token: usize) -> bool {
        let (cols, groups) = (self.matrix.cols, self.matrix.cols.div_ceil(GROUP));
        self.check(groups, token, T);
        let (tile, rest) = F::FORMAT.tile(self.tiles, cols, row / TILE_ROWS);
        let rows = [Rows::new(tile, rest, row % TILE_ROWS)];
        let mut next = tile.as_ptr().wrapping_add(AHEAD);
        let mut sums = Sums { lanes: [[d.zero(); 1]; T], squares: [[d.zero(); 1]; T] };
        for group in 0..groups {
            // Of the registers of one tile, the first asks for it.
            if row.is_multiple_of(TILE_ROWS) && token == 0 {
                for _ in 0..F::FORMAT.group_bytes() / LINE + (group + 1) % 2 {
                    prefetch_far(next);
                    next = next.wrapping_add(LINE);
                }
            }
            // SAFETY: the tile has `groups` groups, and so have the tokens (checked above).
            unsafe { self.add_group::<D, F, 1, T>(d, &mut sums, &rows, token, group) };
        }
        let mut good = true;
        for t in 0..T {
            good &= self.put::<D, F>(d, sums.lanes[t][0], sums.squares[t][0], token + t, row);
        }
        good
    }

    /// That inputs have `groups` groups for `count` tokens from `token` on.
    #[inline(always)]
    fn check(&self, groups: usize, token: usize, count: usize) {
        let BoundInputs { starts, factors, spreads } = self.inputs;
        let all = self.tokens * groups;
        assert!(self.x.len() >= all * GROUP && starts.len() == all && factors.len() == all);
        assert!(spreads.len() == all && token + count <= self.tokens);
    }

    /// Adds group `group` of `rows` for `T` tokens from `token` on.
    ///
    /// # Safety
    /// `rows` point to tiles that have such a group; [`Bounds::check`] has looked at the tokens.
    #[inline(always)]
    unsafe fn add_group<D: Dots, F: First, const R: usize, const T: usize>(
        &self,
        d: D,
        to: &mut Sums<D, R, T>,
        rows: &[Rows; R],
        token: usize,
        group: usize,
    ) {
        let groups = self.matrix.cols.div_ceil(GROUP);
        let (scales_at, weights_at) = (F::FORMAT.scales_at(group), F::FORMAT.weights_at(group));
        // SAFETY: by the contract.
        unsafe {
            let from = token * groups + group;
            let x = self.x.as_ptr().add(from * GROUP);
            let starts = self.inputs.starts.as_ptr().add(from);
            let factors = self.inputs.factors.as_ptr().add(from);
            let spreads = self.inputs.spreads.as_ptr().add(from);
            let mut sums = [[d.start4(starts); R]; T];
            for t in 1..T {
                let start = d.start4(starts.add(t * groups));
                for r in 0..R {
                    sums[t][r] = start;
                }
            }
            for half in 0..2 {
                let mut w = [F::quads(d, rows[0].weights.add(weights_at), half); R];
                for r in 1..R {
                    w[r] = F::quads(d, rows[r].weights.add(weights_at), half);
                }
                for n in 0..4 {
                    for t in 0..T {
                        let x = d.inputs(x.add(t * groups * GROUP + column_of(half, n)));
                        for r in 0..R {
                            sums[t][r] = d.dot4(sums[t][r], w[r][n], x);
                        }
                    }
                }
            }
            for r in 0..R {
                let scales = d.scales(rows[r].scales.add(scales_at));
                for t in 0..T {
                    let scale = d.scaled(scales, factors.add(t * groups));
                    let sum = d.finish4(sums[t][r], starts.add(t * groups));
                    to.lanes[t][r] = d.mul_add(sum, scale, to.lanes[t][r]);
                    let spread = d.scaled(scales, spreads.add(t * groups));
                    to.squares[t][r] = d.mul_add(spread, spread, to.squares[t][r]);
                }
            }
        }
    }

    /// Writes the bounds of the register of rows that begins at `row`, which belong to the
    /// calling task; false if one is not finite.
    #[inline(always)]
    fn put<D: Dots, F: First>(
        &self,
        d: D,
        lanes: D::F32,
        squares: D::F32,
        token: usize,
        row: usize,
    ) -> bool {
        let (mut values, mut spreads) = ([0.0_f32; TILE_ROWS], [0.0_f32; TILE_ROWS]);
        // SAFETY: as many numbers at least.
        unsafe {
            d.store(values.as_mut_ptr(), lanes);
            d.store(spreads.as_mut_ptr(), squares);
        }
        // All in one number, so that no row needs a branch; rows beyond the last are 0, or what
        // the inputs have made of all rows.
        let mut most = 0;
        for n in 0..D::ROWS {
            let grown = values[n] * growth(F::FORMAT);
            let value = if grown > values[n] { grown } else { values[n] };
            values[n] = value + spreads[n].sqrt();
            most = most.max(values[n].abs().to_bits());
        }
        let count = D::ROWS.min(self.matrix.rows.saturating_sub(row));
        let first = token * self.matrix.rows + row;
        // SAFETY: these rows belong to the calling task.
        let out = unsafe { self.out.part(first.min(self.out.len()), count) };
        if count == D::ROWS {
            // Of a known length: no call of `memcpy`.
            out[..D::ROWS].copy_from_slice(&values[..D::ROWS]);
        } else {
            out.copy_from_slice(&values[..count]);
        }
        most < f32::INFINITY.to_bits()
    }
}

/// Of `R` registers of rows and `T` tokens: estimates, and the sums of what they can be off.
#[derive(Clone, Copy)]
struct Sums<D: Dots, const R: usize, const T: usize> {
    lanes: [[D::F32; R]; T],
    squares: [[D::F32; R]; T],
}

/// `out[n]`: the largest of the values of tile `n`, 16 rows of `values`. Values are not NaN.
///
/// # Panics
/// If lengths do not fit.
pub fn largest_of_tiles(c: &Compute, values: &[f32], out: &mut [f32]) {
    assert_eq!(out.len(), values.len().div_ceil(TILE_ROWS), "one value for a tile");
    c.run_chunks(out, TASK_TOPS, |task, out| {
        let values = &values[task * TASK_TOPS * TILE_ROWS..];
        dispatch!(c.isa, s => largest_of(s, values, out));
    });
}

#[inline(always)]
fn largest_of<S: Simd>(s: S, values: &[f32], out: &mut [f32]) {
    const { assert!(TILE_ROWS == LANES) };
    for (values, out) in values.chunks(TILE_ROWS).zip(out) {
        *out = match values.len() {
            TILE_ROWS => s.max_lane(s.load(values)),
            _ => values.iter().fold(f32::NEG_INFINITY, |m, &v| if v > m { v } else { m }),
        };
    }
}

/// `out[i][n]`: the product of row `16 tiles[i] + n` of `matrix`, which is quantized, with `x`
/// (`[cols]`), the same bits as [`linear`](super::linear) computes in
/// [`ComputeMode::Fast`](crate::kernels::ComputeMode). Rows beyond the last are worth 0.
///
/// # Panics
/// If there is no such tile, lengths do not fit or weights are not quantized.
pub fn linear_tiles(c: &Compute, x: &[f32], matrix: &Matrix, tiles: &[u32], out: &mut [f32]) {
    let Weights::Tiles(format, bytes) = matrix.weights else { panic!("tiles of no tiles") };
    assert!(out.len() == tiles.len() * TILE_ROWS && x.len() == matrix.cols);
    assert!(tiles.iter().all(|&tile| (tile as usize) < matrix.rows.div_ceil(TILE_ROWS)));
    with_inputs(c, format, x, 1, matrix.cols, |quantized| {
        c.run_chunks(out, TASK_TILES * TILE_ROWS, |task, out| {
            let tiles = &tiles[task * TASK_TILES..];
            for (n, sums) in out.chunks_exact_mut(TILE_ROWS).enumerate() {
                if let Some(&next) = tiles.get(n + 1) {
                    let (tile, rest) = format.tile(bytes, matrix.cols, next as usize);
                    for plane in [tile, rest] {
                        plane.chunks(LINE).for_each(|line| prefetch_far(line.as_ptr()));
                    }
                }
                let (cols, tile) = (matrix.cols, tiles[n] as usize);
                dispatch_dots!(c.integers, d => {
                    few::one_tile(d, format, bytes, cols, tile, quantized, sums);
                });
            }
        });
    });
}

#[cfg(test)]
mod tests;
