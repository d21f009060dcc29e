//! Products of few tokens with quantized weights: tiles go from memory through registers once for
//! up to eight tokens. (For one token, those of several places together: [`streams`].)
//!
//! [`streams`]: super::streams
#![allow(clippy::needless_range_loop)] // the loops over registers, see `direct`

use std::ops::Range;

use super::format::{Format, Inputs, Int4, Int8, Rows, Sums};
use super::planes::{Int4Planes, Int8Planes};
use super::scratch::Line;
use super::{Input, Product, ahead};
use crate::kernels::Weights;
use crate::kernels::quantized::dots::Dots;
use crate::kernels::quantized::inputs::QuantizedInput;
use crate::kernels::quantized::layout::{GROUP, LINE};
use crate::kernels::quantized::{TILE_ROWS, TileFormat};
use crate::kernels::simd::prefetch_far;

/// Up to how many tokens weights are read in this way.
pub(super) const FEW_TOKENS: usize = 8;
/// How far ahead of its use a weight is asked for, in bytes.
const AHEAD: usize = 8 << 10;

/// Sums of the rows of a tile for each token.
type TileSums = [Line; FEW_TOKENS];

/// Computes `rows` of `product`, whole tiles of matrices that are all quantized, for all tokens,
/// at most [`FEW_TOKENS`].
#[inline(always)]
pub(super) fn compute<D: Dots>(
    d: D,
    product: &Product,
    input: &Input,
    quantized: &QuantizedInput,
    rows: Range<usize>,
) {
    let (cols, tokens) = (product.matrix.cols, input.tokens);
    let matrices = product.matrices().count();
    let parts = rows.len().div_ceil(TILE_ROWS) * matrices;
    let mut sums = [[Line([0.0; TILE_ROWS]); FEW_TOKENS]; 2];
    for (n, row) in rows.clone().step_by(TILE_ROWS).enumerate() {
        for (m, matrix) in product.matrices().enumerate() {
            let Weights::Tiles(format, tiles) = matrix.weights else { return };
            let asks = input.asks.map(|asks| asks.part(n * matrices + m, 1, parts));
            let tile = Tile { tiles, cols, index: row / TILE_ROWS, quantized, tokens, asks };
            tile.sums(d, format, &mut sums[m]);
        }
        let count = TILE_ROWS.min(rows.end - row);
        let [sums, ups] = &sums;
        for token in 0..tokens {
            let ups = if matrices == 1 { &[] } else { &ups[token].0[..count] };
            // SAFETY: these rows belong to the calling task.
            unsafe { product.out.put(d.simd(), token, row, &sums[token].0[..count], ups) };
        }
    }
}

/// `sums`: those of tile `index` of a matrix of `cols` columns for one token.
#[inline(always)]
pub(super) fn one_tile<D: Dots>(
    d: D,
    format: TileFormat,
    tiles: &[u8],
    cols: usize,
    index: usize,
    quantized: &QuantizedInput,
    sums: &mut [f32],
) {
    let mut all = [Line([0.0; TILE_ROWS]); FEW_TOKENS];
    Tile { tiles, cols, index, quantized, tokens: 1, asks: None }.sums(d, format, &mut all);
    sums.copy_from_slice(&all[0].0);
}

/// A tile and what it is multiplied with.
struct Tile<'a> {
    /// All of the matrix.
    tiles: &'a [u8],
    cols: usize,
    index: usize,
    quantized: &'a QuantizedInput,
    tokens: usize,
    /// What is asked for meanwhile.
    asks: Option<ahead::Part<'a>>,
}

impl Tile<'_> {
    /// `sums[token]` of a matrix in `format`.
    #[inline(always)]
    fn sums<D: Dots>(&self, d: D, format: TileFormat, sums: &mut TileSums) {
        match format {
            TileFormat::Int8 => self.sums_in::<D, Int8>(d, sums),
            TileFormat::Int4 => self.sums_in::<D, Int4>(d, sums),
            TileFormat::Int8Planes => self.sums_in::<D, Int8Planes>(d, sums),
            TileFormat::Int4Planes => self.sums_in::<D, Int4Planes>(d, sums),
        }
    }

    #[inline(always)]
    fn sums_in<D: Dots, F: Format>(&self, d: D, sums: &mut TileSums) {
        let groups = self.quantized.groups();
        assert!(groups == self.cols.div_ceil(GROUP) && self.tokens <= FEW_TOKENS);
        assert_eq!(F::FORMAT.input_groups(), self.quantized.block());
        let (tile, rest) = F::FORMAT.tile(self.tiles, self.cols, self.index);
        let rows = Rows::new(tile, rest, 0);
        let mut ask = Some(Ask::new(rows, self.asks, groups));
        let mut token = 0;
        while token < self.tokens {
            // Parts of about the same size: rather 3 and 3 than 4 and 2.
            let left = self.tokens - token;
            let count = left.div_ceil(left.div_ceil(D::SINGLE));
            for first_row in (0..TILE_ROWS).step_by(D::ROWS) {
                let rows = rows.below(first_row);
                // Only one of the passes over the same memory asks for it.
                let ask = ask.take();
                let part = Part { quantized: self.quantized, rows, first_row, token, ask };
                let sums = &mut sums[token..token + count];
                // The conditions are constants: only blocks that occur are compiled.
                match count {
                    2 if const { D::SINGLE >= 2 } => part.sums::<D, F, 2>(d, sums),
                    3 if const { D::SINGLE >= 3 } => part.sums::<D, F, 3>(d, sums),
                    4 if const { D::SINGLE >= 4 } => part.sums::<D, F, 4>(d, sums),
                    5 if const { D::SINGLE >= 5 } => part.sums::<D, F, 5>(d, sums),
                    6 if const { D::SINGLE >= 6 } => part.sums::<D, F, 6>(d, sums),
                    7 if const { D::SINGLE >= 7 } => part.sums::<D, F, 7>(d, sums),
                    8 if const { D::SINGLE >= 8 } => part.sums::<D, F, 8>(d, sums),
                    _ => part.sums::<D, F, 1>(d, sums),
                }
            }
            token += count;
        }
    }
}

/// A register of rows of a tile, and the tokens from `token` on.
struct Part<'a> {
    quantized: &'a QuantizedInput,
    rows: Rows,
    /// Of the tile.
    first_row: usize,
    token: usize,
    ask: Option<Ask>,
}

impl Part<'_> {
    /// The sums of `T` tokens.
    #[inline(always)]
    fn sums<D: Dots, F: Format, const T: usize>(mut self, d: D, sums: &mut [Line]) {
        let quantized = self.quantized;
        let (groups, block) = (quantized.groups(), F::FORMAT.input_groups());
        let x = Inputs::new(quantized, self.token, T);
        assert_eq!(sums.len(), T);
        let mut lanes = Sums::<D, 1, T>::new(d);
        for begin in (0..groups).step_by(block) {
            for group in begin..groups.min(begin + block) {
                if let Some(ask) = &mut self.ask {
                    ask.group::<F>(group);
                }
                // SAFETY: the inputs hold `T` tokens of `groups` groups, and the tile as many.
                unsafe { F::add_group(d, &mut lanes.block, &[self.rows], x.group(group), group) };
            }
            // SAFETY: as above.
            unsafe { lanes.end_block(d, block, x.group(begin).scales, groups) };
        }
        for t in 0..T {
            // SAFETY: a line has the rows of a tile.
            unsafe { d.store(sums[t].0[self.first_row..].as_mut_ptr(), lanes.row[t][0]) };
        }
    }
}

/// What is asked for with each group of a tile.
struct Ask {
    /// Weights, in each of the planes.
    next: [*const u8; 2],
    /// What others read.
    beside: *const u8,
    lines: usize,
    /// Lines of it with a group.
    each: usize,
}

impl Ask {
    /// Weights ahead of `rows`, and what is beside them, with `groups` groups.
    #[inline(always)]
    fn new(rows: Rows, beside: Option<ahead::Part>, groups: usize) -> Self {
        let next = [rows.scales, rows.rest].map(|plane| plane.wrapping_add(AHEAD));
        let (beside, lines) = beside.map_or((std::ptr::null(), 0), ahead::Part::lines);
        Self { next, beside, lines, each: lines.div_ceil(groups) }
    }

    #[inline(always)]
    fn group<F: Format>(&mut self, group: usize) {
        // The scales of two groups are a line.
        let lines = F::FORMAT.group_bytes() / LINE;
        ask(&mut self.next[0], lines + (group + 1) % 2);
        if F::FORMAT.is_planes() {
            ask(&mut self.next[1], lines);
        }
        let count = self.each.min(self.lines);
        ask(&mut self.beside, count);
        self.lines -= count;
    }
}

/// Asks for the next `count` lines.
#[inline(always)]
fn ask(next: &mut *const u8, count: usize) {
    for _ in 0..count {
        prefetch_far(*next);
        *next = next.wrapping_add(LINE);
    }
}
