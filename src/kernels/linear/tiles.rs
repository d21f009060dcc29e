//! Products with quantized weights and inputs in INT8: integer dot products of groups of 32
//! columns, whose sums are scaled and added in `f32`.
//!
//! A result has one definition, whatever computes it. Sums of groups are exact integers; all
//! additions are fused multiply-adds, from 0 on, in the order of the columns:
//!
//! - INT8: to the result is added, for each group, its sum times (scale of the weights times
//!   scale of the inputs).
//! - INT4, where the inputs of four groups share a scale ([`TileFormat::input_groups`]; the last
//!   block of a row may have fewer): to the sum of a block is added, for each of its groups, the
//!   sum of the group times the scale of the weights. To the result is added, for each block,
//!   its sum times the scale of the inputs. That is five multiplications instead of eight, by
//!   instructions that would else multiply weights.
//!
//! Sixteen rows are in the lanes of a register (or two), so that nothing is summed across lanes.
//!
//! With few tokens, tiles go from memory through registers once for up to eight tokens, at
//! the speed of the memory. With many, the tiles of a task stay in the second-level cache
//! while all tokens pass by, in blocks whose sums fill the registers.
#![allow(clippy::needless_range_loop)] // the loops over registers, see `direct`

use std::ops::Range;

use super::ahead;
use super::planes::{Int4Planes, Int8Planes};
use super::runs::Runs;
use super::scratch::Scratch;
use super::streams::one_token;
use super::{Input, Product};
use crate::kernels::quantized::dots::Dots;
use crate::kernels::quantized::inputs::QuantizedInput;
use crate::kernels::quantized::layout::{GROUP, LINE};
use crate::kernels::quantized::{TILE_ROWS, TileFormat};
use crate::kernels::simd::prefetch_far;
use crate::kernels::{Compute, Matrix, Weights};

/// Which results products have in [`ComputeMode::Fast`](crate::kernels::ComputeMode). It counts
/// on whenever their bits change (a test compares some), because a state that was computed with
/// one is not gone on with by another: saved sessions are bound to it.
pub const fn products_revision(format: TileFormat) -> u32 {
    if format.is_int8() { 1 } else { 2 }
}

/// Up to how many tokens a task is a long run of memory.
pub(super) const FEW_TOKENS: usize = 8;
/// How far ahead of its use a weight is asked for, in bytes.
const AHEAD: usize = 8 << 10;

/// Rows for one task of each of `matrices` matrices like `matrix`.
pub(super) fn task_rows(tokens: usize, format: TileFormat, cols: usize, matrices: usize) -> usize {
    let tile = format.tile_bytes(cols) * matrices;
    // Long runs for the memory, short enough that all threads finish together; or what stays
    // in the second-level cache beside the inputs.
    let (bytes, least) = match tokens {
        // Several such tasks are done in one call.
        1 => (32 << 10, 1),
        2..=FEW_TOKENS => (64 << 10, 1),
        _ => (192 << 10, 2),
    };
    (bytes / tile).clamp(least, 8).next_multiple_of(least) * TILE_ROWS
}

/// Computes `runs` of `product`, all of whose matrices are quantized, for all tokens.
#[inline(always)]
pub(super) fn compute<D: Dots>(
    d: D,
    c: &Compute,
    product: &Product,
    input: &Input,
    quantized: &QuantizedInput,
    runs: Runs,
    scratch: &mut Scratch,
) {
    if runs.many > 1 {
        return one_token(d, product, quantized, runs, scratch);
    }
    let rows = runs.as_one();
    let padded = rows.len().next_multiple_of(TILE_ROWS);
    let matrices = product.matrices().count();
    let width = matrices * padded;
    let few = input.tokens <= FEW_TOKENS;
    let block = if few { FEW_TOKENS } else { D::PAIR.1.max(4) };
    let (_, sums, _) = scratch.parts(0, block * width);
    let mut token = 0;
    while token < input.tokens && !(c.is_over() && token > 0) {
        let count = block.min(input.tokens - token);
        for (n, (matrix, at)) in product.matrices().zip([0, padded]).enumerate() {
            let Weights::Tiles(format, tiles) = matrix.weights else { continue };
            let asks = input.asks.filter(|_| few).map(|asks| asks.part(n, 1, matrices));
            let rows = rows.clone();
            let work = Work { matrix, tiles, rows, quantized, token, count, width, asks };
            work.sums_of(d, format, few, &mut sums[at..]);
        }
        for (t, sums) in sums.chunks(width).take(count).enumerate() {
            let (first, second) = sums.split_at(padded);
            let ups = if second.is_empty() { second } else { &second[..rows.len()] };
            let sums = &first[..rows.len()];
            // SAFETY: these rows belong to the calling task.
            unsafe { product.out.put(d.simd(), token + t, rows.start, sums, ups) };
        }
        token += count;
    }
}

/// Some rows of a matrix for some tokens.
pub(super) struct Work<'a> {
    pub matrix: &'a Matrix<'a>,
    /// All of the matrix.
    pub tiles: &'a [u8],
    /// Whole tiles, the last one of the matrix perhaps not.
    pub rows: Range<usize>,
    pub quantized: &'a QuantizedInput,
    pub token: usize,
    pub count: usize,
    /// Distance of the sums of two tokens.
    pub width: usize,
    /// What is asked for meanwhile.
    pub asks: Option<ahead::Part<'a>>,
}

impl Work<'_> {
    /// `sums[t * width + row]` for all rows and tokens of a matrix in `format`. With `few`,
    /// what follows is asked for from memory.
    #[inline(always)]
    pub fn sums_of<D: Dots>(self, d: D, format: TileFormat, few: bool, sums: &mut [f32]) {
        match format {
            TileFormat::Int8 => self.sums::<D, Int8>(d, few, sums),
            TileFormat::Int4 => self.sums::<D, Int4>(d, few, sums),
            TileFormat::Int8Planes => self.sums::<D, Int8Planes>(d, few, sums),
            TileFormat::Int4Planes => self.sums::<D, Int4Planes>(d, few, sums),
        }
    }

    /// `sums[t * width + row]` for all rows and tokens.
    #[inline(always)]
    fn sums<D: Dots, F: Format>(self, d: D, few: bool, sums: &mut [f32]) {
        let tiles = self.rows.end.div_ceil(TILE_ROWS) - self.rows.start / TILE_ROWS;
        // Registers of rows: tiles, or their halves.
        let per_tile = TILE_ROWS / D::ROWS;
        let mut n = 0;
        while n < tiles * per_tile {
            let mut token = 0;
            // Two registers at a time where there are enough for that many sums, else one.
            let left = tiles * per_tile - n;
            let pair = left >= 2 && self.count >= D::PAIR.0 && self.count <= D::PAIR.1;
            while token < self.count {
                let count = if pair { self.count } else { D::SINGLE.min(self.count - token) };
                let asks = self.asks.filter(|_| token == 0);
                let each = if pair { 2 } else { 1 };
                let asks = asks.map(|asks| asks.part(n, each, tiles * per_tile));
                let part = Part { work: &self, n, token, few, asks };
                // The conditions are constants: only blocks that occur are compiled.
                match count {
                    1 if const { D::PAIR.0 == 1 } && pair => part.block::<D, F, 2, 1>(d, sums),
                    6 if const { D::PAIR.1 == 6 } && pair => part.block::<D, F, 2, 6>(d, sums),
                    2 if const { D::SINGLE >= 2 } => part.block::<D, F, 1, 2>(d, sums),
                    3 if const { D::SINGLE >= 3 } => part.block::<D, F, 1, 3>(d, sums),
                    4 if const { D::SINGLE >= 4 } => part.block::<D, F, 1, 4>(d, sums),
                    5 if const { D::SINGLE >= 5 } => part.block::<D, F, 1, 5>(d, sums),
                    6 if const { D::SINGLE >= 6 } => part.block::<D, F, 1, 6>(d, sums),
                    7 if const { D::SINGLE >= 7 } => part.block::<D, F, 1, 7>(d, sums),
                    8 if const { D::SINGLE >= 8 } => part.block::<D, F, 1, 8>(d, sums),
                    _ => part.block::<D, F, 1, 1>(d, sums),
                }
                token += count;
            }
            n += if pair { 2 } else { 1 };
        }
    }
}

/// Some registers of rows, from register `n` on, for some tokens of a [`Work`].
struct Part<'a> {
    work: &'a Work<'a>,
    n: usize,
    token: usize,
    few: bool,
    asks: Option<ahead::Part<'a>>,
}

impl Part<'_> {
    /// The sums of `R` registers of rows and `T` tokens.
    #[inline(always)]
    fn block<D: Dots, F: Format, const R: usize, const T: usize>(self, d: D, sums: &mut [f32]) {
        let Self { work, n, token, few, asks } = self;
        let (groups, cols) = (work.quantized.groups(), work.matrix.cols);
        let (tile, rest) = (F::FORMAT.tile_bytes(cols), F::FORMAT.rest_bytes(cols));
        let first = work.token + token;
        let (x, scales) = (work.quantized.values(first), work.quantized.scales(first));
        let corrections = work.quantized.corrections(first);
        assert!(x.len() >= T * groups * GROUP && scales.len() >= T * groups);
        assert!(corrections.len() >= T * groups && groups == cols.div_ceil(GROUP));
        let block = F::FORMAT.input_groups();
        assert_eq!(block, work.quantized.block());
        let mut rows = [Rows::new(work.tiles, work.tiles, 0); R];
        for r in 0..R {
            let row = work.rows.start + (n + r) * D::ROWS;
            let (tile, rest) = F::FORMAT.tile(work.tiles, cols, row / TILE_ROWS);
            rows[r] = Rows::new(tile, rest, row % TILE_ROWS);
        }
        let mut lanes = Sums::<D, R, T>::new(d);
        // Of the two halves of a tile, one pass asks for the first and one for the second.
        let half = n * D::ROWS % TILE_ROWS;
        let mut next = rows[0].scales.wrapping_add(AHEAD + half * tile / TILE_ROWS);
        let mut next_rest = rows[0].rest.wrapping_add(AHEAD + half * rest / TILE_ROWS);
        // Only one of the passes over the same memory asks for it.
        let fetch = few && token == 0;
        let (mut beside, mut left) = asks.map_or((std::ptr::null(), 0), ahead::Part::lines);
        let each = left.div_ceil(groups);
        for begin in (0..groups).step_by(block) {
            for group in begin..groups.min(begin + block) {
                if fetch {
                    for _ in 0..R * D::ROWS * F::FORMAT.group_bytes() / (TILE_ROWS * LINE) {
                        prefetch_far(next);
                        next = next.wrapping_add(LINE);
                    }
                    if F::FORMAT.is_planes() {
                        for _ in 0..R * D::ROWS * F::FORMAT.group_bytes() / (TILE_ROWS * LINE) {
                            prefetch_far(next_rest);
                            next_rest = next_rest.wrapping_add(LINE);
                        }
                    }
                    // The scales: half a line for each tile.
                    if group % 2 == 0 {
                        prefetch_far(next);
                        next = next.wrapping_add(LINE);
                    }
                }
                if T > 1 {
                    for _ in 0..each.min(left) {
                        prefetch_far(beside);
                        beside = beside.wrapping_add(LINE);
                    }
                    left = left.saturating_sub(each);
                }
                // SAFETY: `x`, `scales` and `corrections` hold `T` tokens of `groups` groups,
                // and the tiles of `rows` as many (checked above).
                unsafe {
                    let x = Inputs {
                        values: x.as_ptr().add(group * GROUP),
                        scales: scales.as_ptr().add(group),
                        corrections: corrections.as_ptr().add(group),
                        groups,
                    };
                    F::add_group(d, &mut lanes.block, &rows, x, group);
                }
            }
            // SAFETY: as above.
            unsafe { lanes.end_block(d, block, scales.as_ptr().add(begin), groups) };
        }
        for t in 0..T {
            for r in 0..R {
                let at = (token + t) * work.width + (n + r) * D::ROWS;
                let out = &mut sums[at..at + D::ROWS];
                // SAFETY: as many numbers.
                unsafe { d.store(out.as_mut_ptr(), lanes.row[t][r]) };
            }
        }
    }
}

/// A register of rows of a tile: where their first scale and weights are, less what
/// [`TileFormat::scales_at`] and [`TileFormat::weights_at`] say of a group.
#[derive(Clone, Copy)]
pub(super) struct Rows {
    pub scales: *const u8,
    pub weights: *const u8,
    /// Their first weights in the second plane, if there is one: groups follow each other.
    pub rest: *const u8,
}

impl Rows {
    /// The rows from `row` on of a tile, in each of its planes.
    #[inline(always)]
    pub fn new(tile: &[u8], rest: &[u8], row: usize) -> Self {
        let scales = tile[2 * row..].as_ptr();
        let rest = rest.as_ptr().wrapping_add(4 * row);
        Self { scales, weights: tile[4 * row..].as_ptr(), rest }
    }

    /// Those `count` rows further on.
    #[inline(always)]
    pub fn below(self, count: usize) -> Self {
        Self {
            scales: self.scales.wrapping_add(2 * count),
            weights: self.weights.wrapping_add(4 * count),
            rest: self.rest.wrapping_add(4 * count),
        }
    }
}

/// The sums of `R` registers of rows and `T` tokens.
#[derive(Clone, Copy)]
pub(super) struct Sums<D: Dots, const R: usize, const T: usize> {
    /// Of the row so far, up to the last whole block.
    pub row: [[D::F32; R]; T],
    /// Of the block, without the scale of its inputs; where a block is one group, of the row.
    pub block: [[D::F32; R]; T],
}

impl<D: Dots, const R: usize, const T: usize> Sums<D, R, T> {
    #[inline(always)]
    pub fn new(d: D) -> Self {
        Self { row: [[d.zero(); R]; T], block: [[d.zero(); R]; T] }
    }

    /// Adds a block of (at most) `block` groups to the row, and begins the next one. `scales`
    /// are those of one of its groups, `groups` apart from token to token.
    ///
    /// # Safety
    /// There are scales of `T` tokens.
    #[inline(always)]
    pub unsafe fn end_block(&mut self, d: D, block: usize, scales: *const f32, groups: usize) {
        if block == 1 {
            self.row = self.block;
            return;
        }
        for t in 0..T {
            // SAFETY: by the contract.
            let scale = unsafe { d.same(scales.add(t * groups)) };
            for r in 0..R {
                self.row[t][r] = d.mul_add(self.block[t][r], scale, self.row[t][r]);
                self.block[t][r] = d.zero();
            }
        }
    }
}

/// One group of the inputs of some tokens, which are `groups` groups apart.
#[derive(Clone, Copy)]
pub(super) struct Inputs {
    pub values: *const i8,
    pub scales: *const f32,
    pub corrections: *const i32,
    pub groups: usize,
}

/// A format of weights.
pub(super) trait Format {
    const FORMAT: TileFormat;

    /// Adds the products of group `group` to sums of a block, see [`Sums`].
    ///
    /// # Safety
    /// `rows` point to tiles that have such a group, `x` to `T` tokens of inputs.
    unsafe fn add_group<D: Dots, const R: usize, const T: usize>(
        d: D,
        lanes: &mut [[D::F32; R]; T],
        rows: &[Rows; R],
        x: Inputs,
        group: usize,
    );
}

/// Where sums are many, [`Dots::in_order8`] for all of them.
#[inline(always)]
pub(super) fn in_order8<D: Dots, const R: usize, const T: usize>(
    d: D,
    sums: &mut [[D::Sums8; R]; T],
) {
    if const { R * T > 4 } {
        for t in 0..T {
            for r in 0..R {
                sums[t][r] = d.in_order8(sums[t][r]);
            }
        }
    }
}

/// Where sums are many, [`Dots::in_order4`] for all of them.
#[inline(always)]
pub(super) fn in_order4<D: Dots, const R: usize, const T: usize>(
    d: D,
    sums: &mut [[D::Sums4; R]; T],
) {
    if const { R * T > 4 } {
        for t in 0..T {
            for r in 0..R {
                sums[t][r] = d.in_order4(sums[t][r]);
            }
        }
    }
}

pub(super) struct Int8;
pub(super) struct Int4;

// Plain loops throughout, as in `direct`.
impl Format for Int8 {
    const FORMAT: TileFormat = TileFormat::Int8;

    #[inline(always)]
    unsafe fn add_group<D: Dots, const R: usize, const T: usize>(
        d: D,
        lanes: &mut [[D::F32; R]; T],
        rows: &[Rows; R],
        x: Inputs,
        group: usize,
    ) {
        let (scales_at, weights_at) =
            (Self::FORMAT.scales_at(group), Self::FORMAT.weights_at(group));
        // SAFETY: by the contract.
        unsafe {
            let mut sums = [[d.start8(x.corrections); R]; T];
            for t in 1..T {
                let start = d.start8(x.corrections.add(t * x.groups));
                for r in 0..R {
                    sums[t][r] = start;
                }
            }
            for j in 0..GROUP / 4 {
                let mut w = [d.bytes(rows[0].weights.add(weights_at + j * LINE)); R];
                for r in 1..R {
                    w[r] = d.bytes(rows[r].weights.add(weights_at + j * LINE));
                }
                for t in 0..T {
                    let x = d.inputs(x.values.add(t * x.groups * GROUP + 4 * j));
                    for r in 0..R {
                        sums[t][r] = d.dot8(sums[t][r], w[r], x);
                    }
                }
                in_order8(d, &mut sums);
            }
            for r in 0..R {
                let scales = d.scales(rows[r].scales.add(scales_at));
                for t in 0..T {
                    let scale = d.scaled(scales, x.scales.add(t * x.groups));
                    lanes[t][r] = d.mul_add(d.finish8(sums[t][r]), scale, lanes[t][r]);
                }
            }
        }
    }
}

impl Format for Int4 {
    const FORMAT: TileFormat = TileFormat::Int4;

    #[inline(always)]
    unsafe fn add_group<D: Dots, const R: usize, const T: usize>(
        d: D,
        lanes: &mut [[D::F32; R]; T],
        rows: &[Rows; R],
        x: Inputs,
        group: usize,
    ) {
        let (scales_at, weights_at) =
            (Self::FORMAT.scales_at(group), Self::FORMAT.weights_at(group));
        // SAFETY: by the contract.
        unsafe {
            let mut sums = [[d.start4(x.corrections); R]; T];
            for t in 1..T {
                let start = d.start4(x.corrections.add(t * x.groups));
                for r in 0..R {
                    sums[t][r] = start;
                }
            }
            for j in 0..GROUP / 8 {
                let mut w = [d.nibbles(rows[0].weights.add(weights_at + j * LINE)); R];
                for r in 1..R {
                    w[r] = d.nibbles(rows[r].weights.add(weights_at + j * LINE));
                }
                for half in 0..2 {
                    for t in 0..T {
                        let at = t * x.groups * GROUP + half * GROUP / 2 + 4 * j;
                        let x = d.inputs(x.values.add(at));
                        for r in 0..R {
                            sums[t][r] = d.dot4(sums[t][r], w[r][half], x);
                        }
                    }
                    in_order4(d, &mut sums);
                }
            }
            for r in 0..R {
                let scales = d.scales(rows[r].scales.add(scales_at));
                for t in 0..T {
                    let sum = d.finish4(sums[t][r], x.corrections.add(t * x.groups));
                    lanes[t][r] = d.mul_add(sum, scales, lanes[t][r]);
                }
            }
        }
    }
}
