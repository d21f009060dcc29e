//! Products of many tokens with quantized weights where a [panel](super::tile_panel) is of no use:
//! the tiles of a task stay in the second-level cache while all tokens pass by, in blocks whose
//! sums fill the registers. The numbers are those of [`format`](super::format).
#![allow(clippy::needless_range_loop)] // the loops over registers, see `direct`

use std::ops::Range;

use super::few::FEW_TOKENS;
use super::format::{Format, Inputs, Int4, Int8, Rows, Sums};
use super::planes::{Int4Planes, Int8Planes};
use super::scratch::Scratch;
use super::{Input, Product};
use crate::kernels::quantized::dots::Dots;
use crate::kernels::quantized::inputs::QuantizedInput;
use crate::kernels::quantized::layout::GROUP;
use crate::kernels::quantized::{TILE_ROWS, TileFormat};
use crate::kernels::{Compute, Matrix, Weights};

/// Tokens of a block, at most.
const BLOCK: usize = 4;

/// Rows for one task of each of `matrices` matrices like `matrix`.
pub(super) fn task_rows(tokens: usize, format: TileFormat, cols: usize, matrices: usize) -> usize {
    let tile = format.tile_bytes(cols) * matrices;
    // Short enough that all threads finish together, for several such tasks are done in one
    // call; or what stays in the second-level cache beside the inputs.
    let (bytes, least) = if tokens <= FEW_TOKENS { (32 << 10, 1) } else { (192 << 10, 2) };
    (bytes / tile).clamp(least, 8).next_multiple_of(least) * TILE_ROWS
}

/// Computes `rows` of `product`, all of whose matrices are quantized, for all tokens.
#[inline(always)]
pub(super) fn compute<D: Dots>(
    d: D,
    c: &Compute,
    product: &Product,
    input: &Input,
    quantized: &QuantizedInput,
    rows: Range<usize>,
    scratch: &mut Scratch,
) {
    let padded = rows.len().next_multiple_of(TILE_ROWS);
    let width = product.matrices().count() * padded;
    let (_, sums, _) = scratch.parts(0, BLOCK * width);
    let mut token = 0;
    while token < input.tokens && !(c.is_over() && token > 0) {
        let count = BLOCK.min(D::SINGLE).min(input.tokens - token);
        for (matrix, at) in product.matrices().zip([0, padded]) {
            let Weights::Tiles(format, tiles) = matrix.weights else { continue };
            let rows = rows.clone();
            let work = Work { matrix, tiles, rows, quantized, token, count, width };
            let sums = &mut sums[at..];
            match format {
                TileFormat::Int8 => work.sums::<D, Int8>(d, sums),
                TileFormat::Int4 => work.sums::<D, Int4>(d, sums),
                TileFormat::Int8Planes => work.sums::<D, Int8Planes>(d, sums),
                TileFormat::Int4Planes => work.sums::<D, Int4Planes>(d, sums),
            }
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
struct Work<'a> {
    matrix: &'a Matrix<'a>,
    /// All of the matrix.
    tiles: &'a [u8],
    /// Whole tiles, the last one of the matrix perhaps not.
    rows: Range<usize>,
    quantized: &'a QuantizedInput,
    token: usize,
    /// At most [`BLOCK`].
    count: usize,
    /// Distance of the sums of two tokens.
    width: usize,
}

impl Work<'_> {
    /// `sums[t * width + row]` for all rows and tokens.
    #[inline(always)]
    fn sums<D: Dots, F: Format>(self, d: D, sums: &mut [f32]) {
        for row in self.rows.clone().step_by(D::ROWS) {
            // The conditions are constants: only blocks that occur are compiled.
            match self.count {
                2 if const { D::SINGLE >= 2 } => self.block::<D, F, 2>(d, row, sums),
                3 if const { D::SINGLE >= 3 } => self.block::<D, F, 3>(d, row, sums),
                4 if const { D::SINGLE >= 4 } => self.block::<D, F, 4>(d, row, sums),
                _ => self.block::<D, F, 1>(d, row, sums),
            }
        }
    }

    /// The sums of the register of rows from `row` on and `T` tokens.
    #[inline(always)]
    fn block<D: Dots, F: Format, const T: usize>(&self, d: D, row: usize, sums: &mut [f32]) {
        let (groups, cols) = (self.quantized.groups(), self.matrix.cols);
        let x = Inputs::new(self.quantized, self.token, T);
        assert!(groups == cols.div_ceil(GROUP));
        let block = F::FORMAT.input_groups();
        assert_eq!(block, self.quantized.block());
        let (tile, rest) = F::FORMAT.tile(self.tiles, cols, row / TILE_ROWS);
        let rows = [Rows::new(tile, rest, row % TILE_ROWS)];
        let mut lanes = Sums::<D, 1, T>::new(d);
        for begin in (0..groups).step_by(block) {
            for group in begin..groups.min(begin + block) {
                // SAFETY: the inputs hold `T` tokens of `groups` groups, and the tile as many.
                unsafe { F::add_group(d, &mut lanes.block, &rows, x.group(group), group) };
            }
            // SAFETY: as above.
            unsafe { lanes.end_block(d, block, x.group(begin).scales, groups) };
        }
        for t in 0..T {
            let out = &mut sums[t * self.width + row - self.rows.start..][..D::ROWS];
            // SAFETY: as many numbers.
            unsafe { d.store(out.as_mut_ptr(), lanes.row[t][0]) };
        }
    }
}
