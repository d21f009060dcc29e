//! Products of few tokens with quantized weights, at the speed of the memory: tiles go through
//! registers once, for one token those of four places of a matrix together, or of two of each of
//! two matrices; for up to eight tokens one after the other.
#![allow(clippy::needless_range_loop)] // the loops over registers, see `direct`

use super::format::{Format, Inputs, Int4, Int8, Rows, Sums};
use super::planes::{Int4Planes, Int8Planes};
use super::runs::{self, Runs, STREAMS};
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
/// How far ahead of its use a weight is asked for where tiles follow each other, in bytes.
const AHEAD: usize = 8 << 10;

/// Sums of the rows of a tile for each token.
type TileSums = [Line; FEW_TOKENS];

/// Where a tile begins.
#[derive(Clone, Copy)]
struct Place<'a> {
    format: TileFormat,
    /// All of the matrix.
    tiles: &'a [u8],
    /// The first row of the tile.
    row: usize,
}

/// Computes `runs` of `product`, all of whose matrices are quantized, for all tokens, at most
/// [`FEW_TOKENS`].
#[inline(always)]
pub(super) fn compute<D: Dots>(
    d: D,
    product: &Product,
    input: &Input,
    quantized: &QuantizedInput,
    runs: Runs,
) {
    let (cols, tokens, matrices) = (product.matrix.cols, input.tokens, product.matrices().count());
    let mut places = [Place { format: TileFormat::Int8, tiles: &[], row: 0 }; 2 * STREAMS];
    for (n, matrix) in product.matrices().enumerate() {
        let Weights::Tiles(format, tiles) = matrix.weights else { return };
        for r in 0..runs.many {
            places[n * runs.many + r] = Place { format, tiles, row: runs.run(r).start };
        }
    }
    let places = &mut places[..matrices * runs.many];
    // All places of a matrix, or both matrices together.
    let alike = places.iter().all(|place| place.format == places[0].format);
    let together = if alike { STREAMS } else { runs.many };
    let mut sums = [[Line([0.0; TILE_ROWS]); FEW_TOKENS]; 2 * STREAMS];
    let (turns, of_turn) = (runs.count.div_ceil(TILE_ROWS), places.len().div_ceil(together));
    for at in (0..runs.count).step_by(TILE_ROWS) {
        for (n, places) in places.chunks(together).enumerate() {
            let turn = at / TILE_ROWS * of_turn + n;
            let asks = input.asks.map(|asks| asks.part(turn, 1, turns * of_turn));
            let sums = &mut sums[n * together..][..places.len()];
            tiles_of(d, cols, places, quantized, tokens, asks, sums);
        }
        let rows = TILE_ROWS.min(runs.count - at);
        for n in 0..runs.many {
            for token in 0..tokens {
                let ups = match matrices {
                    1 => &[],
                    _ => &sums[runs.many + n][token].0[..rows],
                };
                let (row, sums) = (runs.run(n).start + at, &sums[n][token].0[..rows]);
                // SAFETY: these rows belong to the calling task.
                unsafe { product.out.put(d.simd(), token, row, sums, ups) };
            }
        }
        for place in &mut *places {
            place.row += TILE_ROWS;
        }
    }
}

/// `sums[place][token]` of a tile at each of up to [`STREAMS`] places, all in one format.
#[inline(always)]
fn tiles_of<D: Dots>(
    d: D,
    cols: usize,
    places: &[Place],
    quantized: &QuantizedInput,
    tokens: usize,
    asks: Option<ahead::Part>,
    sums: &mut [TileSums],
) {
    let work = Work { cols, places, quantized, tokens, asks };
    match places[0].format {
        TileFormat::Int8 => work.sums::<D, Int8>(d, sums),
        TileFormat::Int4 => work.sums::<D, Int4>(d, sums),
        TileFormat::Int8Planes => work.sums::<D, Int8Planes>(d, sums),
        TileFormat::Int4Planes => work.sums::<D, Int4Planes>(d, sums),
    }
}

/// A tile at each of some places.
struct Work<'a> {
    cols: usize,
    places: &'a [Place<'a>],
    quantized: &'a QuantizedInput,
    tokens: usize,
    /// What is asked for meanwhile.
    asks: Option<ahead::Part<'a>>,
}

impl Work<'_> {
    #[inline(always)]
    fn sums<D: Dots, F: Format>(self, d: D, sums: &mut [TileSums]) {
        let mut rows = [Rows::none(); STREAMS];
        for (rows, place) in rows.iter_mut().zip(self.places) {
            let (tile, rest) = F::FORMAT.tile(place.tiles, self.cols, place.row / TILE_ROWS);
            *rows = Rows::new(tile, rest, 0);
        }
        let groups = self.quantized.groups();
        assert!(groups == self.cols.div_ceil(GROUP) && self.tokens <= FEW_TOKENS);
        assert_eq!(F::FORMAT.input_groups(), self.quantized.block());
        if self.tokens == 1 && self.places.len() == STREAMS {
            self.one_token::<D, F>(d, rows, sums);
        } else {
            self.in_turn::<D, F>(d, rows, sums);
        }
    }

    /// All places go on together, group by group, because memory answers to so many at once, and
    /// because the products of one tile would wait for each other.
    #[inline(always)]
    fn one_token<D: Dots, F: Format>(&self, d: D, rows: [Rows; STREAMS], sums: &mut [TileSums]) {
        let groups = self.quantized.groups();
        let x = inputs(self.quantized, 0, 1);
        let block = F::FORMAT.input_groups();
        let mut next = [Next::after(rows[0], runs::AHEAD); STREAMS];
        for r in 0..STREAMS {
            next[r] = Next::after(rows[r], runs::AHEAD);
        }
        // Where a tile is two registers, few registers are left for more than one tile at a time.
        let mut whole = Sums::<D, STREAMS, 1>::new(d);
        let mut halves = [Sums::<D, 2, 1>::new(d); STREAMS];
        for group in 0..groups {
            for next in &mut next {
                next.ask::<F>(group);
            }
            // SAFETY: `x` holds `groups` groups, and the tiles of `rows` as many.
            unsafe {
                let x = x.group(group);
                if const { D::ROWS == TILE_ROWS } {
                    F::add_group(d, &mut whole.block, &rows, x, group);
                } else {
                    for r in 0..STREAMS {
                        let rows = [rows[r], rows[r].below(D::ROWS)];
                        F::add_group(d, &mut halves[r].block, &rows, x, group);
                    }
                }
                // A loop of its own for each block, as for more tokens, took 3 % longer.
                if (group + 1).is_multiple_of(block) || group + 1 == groups {
                    if const { D::ROWS == TILE_ROWS } {
                        whole.end_block(d, block, x.scales, groups);
                    } else {
                        for r in 0..STREAMS {
                            halves[r].end_block(d, block, x.scales, groups);
                        }
                    }
                }
            }
        }
        for r in 0..STREAMS {
            let out = &mut sums[r][0].0;
            // SAFETY: as many numbers.
            unsafe {
                if const { D::ROWS == TILE_ROWS } {
                    d.store(out.as_mut_ptr(), whole.row[0][r]);
                } else {
                    d.store(out.as_mut_ptr(), halves[r].row[0][0]);
                    d.store(out[D::ROWS..].as_mut_ptr(), halves[r].row[0][1]);
                }
            }
        }
    }

    /// One place after the other: what limits several tokens is rather arithmetic.
    #[inline(always)]
    fn in_turn<D: Dots, F: Format>(&self, d: D, rows: [Rows; STREAMS], sums: &mut [TileSums]) {
        for (n, sums) in sums.iter_mut().enumerate() {
            let asks = self.asks.map(|asks| asks.part(n, 1, self.places.len()));
            let mut ask = Some(Ask::new(rows[n], asks, self.quantized.groups()));
            let mut token = 0;
            while token < self.tokens {
                // Parts of about the same size: rather 3 and 3 than 4 and 2.
                let left = self.tokens - token;
                let count = left.div_ceil(left.div_ceil(D::SINGLE));
                for first_row in (0..TILE_ROWS).step_by(D::ROWS) {
                    let rows = rows[n].below(first_row);
                    // Only one of the passes over the same memory asks for it.
                    let part = Part { work: self, rows, first_row, token, ask: ask.take() };
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
}

/// The inputs of `count` tokens from `token` on.
#[inline(always)]
pub(super) fn inputs(quantized: &QuantizedInput, token: usize, count: usize) -> Inputs {
    let groups = quantized.groups();
    let (values, scales) = (quantized.values(token), quantized.scales(token));
    let corrections = quantized.corrections(token);
    assert!(values.len() >= count * groups * GROUP && scales.len() >= count * groups);
    assert!(corrections.len() >= count * groups);
    Inputs {
        values: values.as_ptr(),
        scales: scales.as_ptr(),
        corrections: corrections.as_ptr(),
        groups,
    }
}

/// A register of rows of a tile, and the tokens from `token` on.
struct Part<'a> {
    work: &'a Work<'a>,
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
        let quantized = self.work.quantized;
        let (groups, block) = (quantized.groups(), F::FORMAT.input_groups());
        let x = inputs(quantized, self.token, T);
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
    next: Next,
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
        let (beside, lines) = beside.map_or((std::ptr::null(), 0), ahead::Part::lines);
        Self { next: Next::after(rows, AHEAD), beside, lines, each: lines.div_ceil(groups) }
    }

    #[inline(always)]
    fn group<F: Format>(&mut self, group: usize) {
        self.next.ask::<F>(group);
        let count = self.each.min(self.lines);
        for _ in 0..count {
            prefetch_far(self.beside);
            self.beside = self.beside.wrapping_add(LINE);
        }
        self.lines -= count;
    }
}

/// What is asked for next at a place, in each of the planes.
#[derive(Clone, Copy)]
struct Next([*const u8; 2]);

impl Next {
    /// `ahead` bytes ahead of the tile of `rows`.
    #[inline(always)]
    fn after(rows: Rows, ahead: usize) -> Self {
        Self([rows.scales, rows.rest].map(|plane| plane.wrapping_add(ahead)))
    }

    /// Asks for as much as group `group` has.
    #[inline(always)]
    fn ask<F: Format>(&mut self, group: usize) {
        // The scales of two groups are a line.
        for _ in 0..F::FORMAT.group_bytes() / LINE + (group + 1) % 2 {
            prefetch_far(self.0[0]);
            self.0[0] = self.0[0].wrapping_add(LINE);
        }
        if F::FORMAT.is_planes() {
            for _ in 0..F::FORMAT.group_bytes() / LINE {
                prefetch_far(self.0[1]);
                self.0[1] = self.0[1].wrapping_add(LINE);
            }
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
    let mut all = [[Line([0.0; TILE_ROWS]); FEW_TOKENS]];
    let place = Place { format, tiles, row: index * TILE_ROWS };
    tiles_of(d, cols, &[place], quantized, 1, None, &mut all);
    sums.copy_from_slice(&all[0][0].0);
}
