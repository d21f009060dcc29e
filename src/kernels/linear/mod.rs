//! Products with weight matrices, in `f32` arithmetic over the weights as stored.
//!
//! A dot product has one definition, whatever computes it: sixteen lanes, lane `j` adding
//! the products of the elements `j, j + 16, ...` in order, the last sixteen padded with
//! zeros, and then the lanes by the tree of [`Simd::sum`]. Two ways give it:
//!
//! - [`direct`], for few tokens: weights go from memory through registers, each widened
//!   once for up to six tokens. The speed is that of the memory.
//! - [`panel`], for many: some rows of weights are widened into a panel that stays in the
//!   core's second-level cache, and all tokens pass by it in blocks whose sums fill the
//!   registers. The speed is that of the multiply-add units.
//!
//! In [`ComputeMode::Fast`], [`narrow`] takes the place of both for BF16 weights, and
//! for quantized ones [`streams`] (one token), [`few`], and [`tile_panel`] or [`tiles`] (many).
//!
//! Who wants only the largest products of many rows gets bounds from part of the bits, by
//! [`short`] for weights as stored and by [`upper`] for those in two planes, and computes the
//! rows that matter alone.
//!
//! A task computes a few rows of the output's width for all tokens, so that each weight
//! is read from memory once; for one token, rows of four places of the matrix (see [`runs`]).
#![allow(unsafe_code)]

mod ahead;
mod direct;
mod element;
mod few;
mod format;
mod narrow;
mod panel;
mod planes;
mod runs;
mod scratch;
mod short;
mod streams;
#[cfg(test)]
mod tests;
mod tile_panel;
mod tiles;
mod upper;

use std::ops::Range;

use super::quantized::dots::dispatch_dots;
use super::quantized::inputs::{QuantizedInput, with_inputs};
use super::simd::{Isa, LANES, Simd};
use super::{Compute, ComputeMode, Matrix, TileFormat, Weights, math};
use crate::dispatch;
use crate::pool::SharedMut;
pub use ahead::Ahead;
use ahead::{Asks, Part};
use few::FEW_TOKENS;
pub use format::products_revision;
use narrow::{Narrow, Rounded, with_rounded};
use runs::{Runs, STREAMS, STREAMS_OF_TWO, Share};
use scratch::with_scratch;
pub use short::{SHORT_BLOCK, ShortRows, linear_rows};
pub use upper::{BoundInputs, largest_of_tiles, linear_tiles, upper_bounds};

/// What becomes of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// It replaces the output.
    Store,
    /// It is added to the output.
    Accumulate,
}

/// One product of a [`linear`] call.
pub struct Job<'a> {
    /// The weights, `[rows, cols]`.
    pub matrix: Matrix<'a>,
    /// The result, `[tokens, rows]`.
    pub out: &'a mut [f32],
    /// Whether it is stored or added.
    pub mode: Mode,
}

impl<'a> Job<'a> {
    /// A product that replaces `out`.
    pub fn store(matrix: Matrix<'a>, out: &'a mut [f32]) -> Self {
        Self { matrix, out, mode: Mode::Store }
    }

    /// A product that is added to `out`.
    pub fn accumulate(matrix: Matrix<'a>, out: &'a mut [f32]) -> Self {
        Self { matrix, out, mode: Mode::Accumulate }
    }
}

/// Up to how many tokens weights are widened in registers, and not into a panel. Where a
/// register holds all sixteen lanes, registers are so many that widening each weight once
/// for six tokens costs little.
fn direct_tokens(isa: Isa) -> usize {
    match isa {
        Isa::Avx512(_) => 96,
        Isa::Avx2(_) | Isa::Scalar(_) => 16,
    }
}

/// Bytes of weights that one task reads with few tokens: long runs for the memory, short
/// enough that all threads finish together.
const DIRECT_BYTES: usize = 64 << 10;
/// Most rows of a panel, a multiple of what the blocks of every instruction set take.
const PANEL_ROWS: usize = 60;
/// Most elements of a panel (384 KiB) of more than 12 rows.
const PANEL_ELEMENTS: usize = 96 << 10;

/// Most tasks of few tokens that are done in one call: half a megabyte and more.
const JOINED_TASKS: usize = 16;

/// Most jobs of one call; it spares an allocation.
const MAX_JOBS: usize = 8;

/// `out[t][n] = sum over k of x[t][k] * w[n][k]` for every job, all of which share `x`
/// (`[tokens, cols]`), in one parallel region. (Two where weights are quantized in formats that
/// have scales of inputs of their own: inputs are rounded for one at a time.)
///
/// # Panics
/// If lengths do not fit, or for more than 8 jobs.
pub fn linear(c: &Compute, x: &[f32], tokens: usize, jobs: &mut [Job]) {
    assert!(jobs.len() <= MAX_JOBS, "linear: {} jobs", jobs.len());
    let first = jobs.iter().find_map(|job| quantized(c, &job.matrix));
    let narrow = Narrow::of(c).filter(|n| jobs.iter().any(|job| n.takes([&job.matrix])));
    let groups = |format: Option<TileFormat>| format.map(TileFormat::input_groups);
    let is_other = |job: &Job| {
        let own = groups(quantized(c, &job.matrix));
        own.is_some() && own != groups(first)
    };
    let mut other = jobs.iter().filter(|job| is_other(job));
    let other = other.find_map(|job| quantized(c, &job.matrix));
    with_input(c, x, tokens, first, narrow, |input| {
        linear_of(c, input, jobs.iter_mut().filter(|job| !is_other(job)));
    });
    if other.is_some() {
        with_input(c, x, tokens, other, None, |input| {
            linear_of(c, input, jobs.iter_mut().filter(|job| is_other(job)));
        });
    }
}

/// As [`linear`], as in [`ComputeMode::Exact`] whatever the mode.
///
/// # Panics
/// As [`linear`].
pub fn linear_exact(c: &Compute, x: &[f32], tokens: usize, jobs: &mut [Job]) {
    assert!(jobs.len() <= MAX_JOBS, "linear: {} jobs", jobs.len());
    with_input(c, x, tokens, None, None, |input| linear_of(c, input, jobs.iter_mut()));
}

/// Calls `f` with the input `x`, and its forms quantized for a format and rounded if they are
/// asked for.
fn with_input(
    c: &Compute,
    x: &[f32],
    tokens: usize,
    quantized: Option<TileFormat>,
    narrow: Option<Narrow>,
    f: impl FnOnce(Input),
) {
    if tokens == 0 {
        return;
    }
    let cols = x.len() / tokens;
    with_rounded(c, narrow, x, cols, |rounded| {
        if let Some(format) = quantized {
            with_inputs(c, format, x, tokens, cols, |inputs| {
                f(Input { x, tokens, quantized: Some(inputs), rounded, asks: None });
            });
        } else {
            f(Input { x, tokens, quantized: None, rounded, asks: None });
        }
    });
}

/// The format of `matrix` if it is multiplied with inputs in INT8.
fn quantized(c: &Compute, matrix: &Matrix) -> Option<TileFormat> {
    match matrix.weights {
        Weights::Tiles(format, _) if c.mode == ComputeMode::Fast => Some(format),
        _ => None,
    }
}

/// At most [`MAX_JOBS`].
fn linear_of<'j, 'a: 'j>(c: &Compute, input: Input, jobs: impl Iterator<Item = &'j mut Job<'a>>) {
    let mut products = [const { None }; MAX_JOBS];
    let mut tasks = 0;
    for (job, product) in jobs.zip(&mut products) {
        check(&input, &job.matrix, job.out);
        let finish = match job.mode {
            Mode::Store => Finish::Store,
            Mode::Accumulate => Finish::Accumulate,
        };
        let out = Output { data: SharedMut::new(job.out), width: job.matrix.rows, finish };
        let share = share(c, &input, &job.matrix, None);
        *product = Some(Product { first_task: tasks, share, matrix: job.matrix, up: None, out });
        tasks += share.tasks();
    }
    let asks = asks(c, &input, products.iter().flatten());
    c.run_ranges(tasks, most_tasks(&input), |range| {
        let asks = asks.as_ref().map(|asks| asks.part(range.clone(), tasks));
        for product in products.iter().flatten() {
            product.compute(c, &Input { asks, ..input }, range.clone());
        }
    });
}

/// `out[t][n] = silu(gate x_t)[n] * (up x_t)[n]`: `x` is `[tokens, cols]`, `out` is
/// `[tokens, rows]`.
///
/// # Panics
/// If lengths do not fit.
pub fn linear_swiglu(
    c: &Compute,
    x: &[f32],
    tokens: usize,
    gate: Matrix,
    up: Matrix,
    out: &mut [f32],
) {
    // Where only one is quantized, or each asks for inputs of its own, both are computed exactly.
    let quantized = quantized(c, &gate).filter(|gate| {
        quantized(c, &up).is_some_and(|up| up.input_groups() == gate.input_groups())
    });
    let narrow = Narrow::of(c).filter(|narrow| narrow.takes([&gate, &up]));
    with_input(c, x, tokens, quantized, narrow, |input| {
        check(&input, &gate, out);
        check(&input, &up, out);
        let out = Output { data: SharedMut::new(out), width: gate.rows, finish: Finish::SwiGlu };
        let share = share(c, &input, &gate, Some(&up));
        let product = Product { first_task: 0, share, matrix: gate, up: Some(up), out };
        let asks = asks(c, &input, [&product]);
        c.run_ranges(share.tasks(), most_tasks(&input), |range| {
            let asks = asks.as_ref().map(|asks| asks.part(range.clone(), share.tasks()));
            product.compute(c, &Input { asks, ..input }, range);
        });
    });
}

/// How many tasks are done in one call at most. With few tokens, where the memory's speed
/// counts, each call costs what it takes until the memory is busy again; with many, inputs
/// and sums of one task are as much as the caches hold.
fn most_tasks(input: &Input) -> usize {
    if input.tokens <= FEW_TOKENS { JOINED_TASKS } else { 1 }
}

/// What a region of `products` asks for.
fn asks<'p>(
    c: &Compute,
    input: &Input,
    products: impl IntoIterator<Item = &'p Product<'p>>,
) -> Option<Asks> {
    let ahead = c.ahead?;
    input.quantized?;
    let tiles = products.into_iter().flat_map(Product::matrices);
    let tiles = tiles.filter(|matrix| matches!(matrix.weights, Weights::Tiles(..)));
    Some(ahead.take(tiles.map(|matrix| matrix.weights.bytes()).sum()))
}

fn check(input: &Input, matrix: &Matrix, out: &[f32]) {
    let Input { x, tokens, .. } = *input;
    assert!(matrix.cols > 0, "linear: no columns");
    assert_eq!(x.len(), tokens * matrix.cols, "linear: input [{tokens}, {}]", matrix.cols);
    assert_eq!(out.len(), tokens * matrix.rows, "linear: output [{tokens}, {}]", matrix.rows);
    assert!(matrix.weights.fit(matrix.rows, matrix.cols), "linear: weights");
}

/// How the rows of `matrix`, and of `up` if there is one, are shared among tasks.
fn share(c: &Compute, input: &Input, matrix: &Matrix, up: Option<&Matrix>) -> Share {
    let step = task_rows(c, input, matrix, 1 + usize::from(up.is_some()));
    let together = match (matrix.weights, up.map(|up| up.weights)) {
        (Weights::Tiles(a, _), Some(Weights::Tiles(b, _))) => input.quantized.is_some() && a == b,
        _ => false,
    };
    match input.tokens {
        1 if together => Share::in_runs(matrix.rows, step, STREAMS_OF_TWO),
        1 => Share::in_runs(matrix.rows, step, STREAMS),
        _ => Share::whole(matrix.rows, step),
    }
}

/// Rows for one task of each of `matrices` matrices like `matrix`: a multiple of the rows
/// of a block in every instruction set.
fn task_rows(c: &Compute, input: &Input, matrix: &Matrix, matrices: usize) -> usize {
    if let (Weights::Tiles(format, _), Some(_)) = (matrix.weights, input.quantized) {
        return dispatch_dots!(c.integers, d => {
            if tile_panel::helps(d, format, input.tokens) {
                tile_panel::task_rows(d, matrix.cols, matrices)
            } else {
                tiles::task_rows(input.tokens, format, matrix.cols, matrices)
            }
        });
    }
    let row = matrix.cols * matrices;
    let narrow = input.rounded.is_some_and(|rounded| rounded.narrow.takes([matrix]));
    if input.tokens <= direct_tokens(c.isa) {
        let size = match matrix.weights {
            Weights::Bf16(_) | Weights::F16(_) => 2,
            // Tiles are widened to the same.
            Weights::F32(_) | Weights::Tiles(..) => 4,
        };
        (DIRECT_BYTES / (size * row)).next_multiple_of(8).clamp(8, 256)
    } else if narrow {
        // As stored, they take half the room.
        (2 * PANEL_ELEMENTS / row / 12 * 12).clamp(12, PANEL_ROWS)
    } else {
        (PANEL_ELEMENTS / row / 12 * 12).clamp(12, PANEL_ROWS)
    }
}

/// The rows `rows` of quantized weights as `[rows, cols]`, in `wide`.
#[inline(always)]
fn widen_tiles<'a>(
    format: TileFormat,
    tiles: &[u8],
    cols: usize,
    rows: Range<usize>,
    wide: &'a mut Vec<f32>,
) -> &'a [f32] {
    if wide.len() < rows.len() * cols {
        wide.resize(rows.len() * cols, 0.0);
    }
    let wide = &mut wide[..rows.len() * cols];
    for (row, out) in rows.zip(wide.chunks_exact_mut(cols)) {
        format.widen_row(tiles, cols, row, out);
    }
    wide
}

/// What is multiplied with the weights.
#[derive(Clone, Copy)]
struct Input<'a> {
    /// `[tokens, cols]`
    x: &'a [f32],
    tokens: usize,
    /// The same in INT8, where a matrix is to be multiplied with that.
    quantized: Option<&'a QuantizedInput>,
    /// The same in BF16, where a matrix is to be multiplied with that.
    rounded: Option<Rounded<'a>>,
    /// What a task asks for beside the weights.
    asks: Option<Part<'a>>,
}

/// What happens to sums.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Finish {
    Store,
    Accumulate,
    SwiGlu,
}

/// Where results go: `[tokens, width]`.
struct Output<'a> {
    data: SharedMut<'a, f32>,
    width: usize,
    finish: Finish,
}

impl Output<'_> {
    /// Finishes sums of one token: those of the rows from `row` on, and for SwiGLU those
    /// of the same rows of the other matrix.
    ///
    /// # Safety
    /// These elements of the output belong to the calling task.
    #[inline(always)]
    unsafe fn put<S: Simd>(&self, s: S, token: usize, row: usize, sums: &[f32], ups: &[f32]) {
        // SAFETY: by the contract.
        let out = unsafe { self.data.part(token * self.width + row, sums.len()) };
        match self.finish {
            // They are few: calling `memcpy` for them takes longer than copying them.
            Finish::Store => {
                for (sums, out) in sums.chunks(LANES).zip(out.chunks_mut(LANES)) {
                    s.store_part(out, s.load_part(sums));
                }
            }
            Finish::Accumulate => {
                for (sums, out) in sums.chunks(LANES).zip(out.chunks_mut(LANES)) {
                    s.store_part(out, s.add(s.load_part(out), s.load_part(sums)));
                }
            }
            Finish::SwiGlu => {
                let parts = sums.chunks(LANES).zip(ups.chunks(LANES));
                for ((gate, up), out) in parts.zip(out.chunks_mut(LANES)) {
                    let gate = math::silu(s, s.load_part(gate));
                    s.store_part(out, s.mul(gate, s.load_part(up)));
                }
            }
        }
    }
}

/// A matrix, or two of one shape for SwiGLU, with the output of the product.
struct Product<'a> {
    /// The first of its tasks in the region.
    first_task: usize,
    /// Which rows a task computes.
    share: Share,
    matrix: Matrix<'a>,
    up: Option<Matrix<'a>>,
    out: Output<'a>,
}

impl Product<'_> {
    /// The rows of those of the tasks `tasks` of the region that are this product's, for all
    /// tokens.
    fn compute(&self, c: &Compute, input: &Input, tasks: Range<usize>) {
        let of_product = |task: usize| task.saturating_sub(self.first_task);
        let mut left = of_product(tasks.start)..of_product(tasks.end).min(self.share.tasks());
        while !left.is_empty() {
            let first = self.first_task + left.start - tasks.start;
            let (runs, rest) = self.share.runs(left.clone());
            let many = rest.start - left.start;
            let asks = input.asks.map(|asks| asks.part(first, many, tasks.len()));
            self.compute_runs(c, &Input { asks, ..*input }, runs);
            left = rest;
        }
    }

    fn compute_runs(&self, c: &Compute, input: &Input, runs: Runs) {
        with_scratch(|scratch| {
            if let (Weights::Tiles(format, _), Some(quantized)) =
                (self.matrix.weights, input.quantized)
            {
                return dispatch_dots!(c.integers, d => {
                    if runs.many > 1 {
                        streams::one_token(d, self, quantized, runs, scratch);
                    } else if input.tokens <= FEW_TOKENS {
                        few::compute(d, self, input, quantized, runs.as_one());
                    } else if tile_panel::helps(d, format, input.tokens) {
                        let rows = runs.as_one();
                        tile_panel::compute(d, c, self, input, quantized, rows, scratch);
                    } else {
                        let rows = runs.as_one();
                        tiles::compute(d, c, self, input, quantized, rows, scratch);
                    }
                });
            }
            if let Some(rounded) = input.rounded
                && rounded.narrow.takes(self.matrices())
            {
                return narrow::compute(c, self, rounded, runs, scratch);
            }
            dispatch!(c.isa, s => {
                if input.tokens <= direct_tokens(c.isa) {
                    direct::compute(s, self, input, runs, scratch);
                } else {
                    panel::compute(s, c, self, input, runs.as_one(), scratch);
                }
            });
        });
    }

    /// The matrices in the order of [`Output::put`].
    fn matrices(&self) -> impl Iterator<Item = &Matrix<'_>> {
        std::iter::once(&self.matrix).chain(&self.up)
    }
}
