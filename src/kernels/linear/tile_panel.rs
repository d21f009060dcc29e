//! Products of many tokens with quantized weights: a panel of weights, in the order in which
//! they are used, stays in the second-level cache while all tokens pass by.
//!
//! The numbers are those of [`format`](super::format), added in the same order, so that a
//! result does not depend on what made it. What a panel changes:
//!
//! - INT4 becomes bytes, once for all tokens; without VNNI, INT8 becomes 16 bits wide.
//! - Scales are widened, once for all tokens.
//! - The weights of some registers of rows lie side by side, so that a block of them by a few
//!   tokens, whose sums fill the registers, reads one stream.
#![allow(clippy::needless_range_loop)] // the loops over registers, see `direct`

use std::ops::Range;

use super::few::FEW_TOKENS;
use super::format::Sums;
use super::scratch::{Line, Scratch};
use super::{Finish, Input, Product};
use crate::kernels::quantized::dots::Dots;
use crate::kernels::quantized::inputs::QuantizedInput;
use crate::kernels::quantized::layout::{GROUP, LINE, join4, join8};
use crate::kernels::quantized::{TILE_ROWS, TileFormat};
use crate::kernels::simd::prefetch_far;
use crate::kernels::{Compute, Weights};

/// Bytes of a panel at most, unless it is of the fewest tiles: the more, the less often the
/// inputs are read; the fewer, the less one thread waits for another at the end.
const PANEL_BYTES: usize = 160 << 10;
/// Fewest tiles of a matrix in a panel: what the largest block takes.
const LEAST_TILES: usize = 4;
/// Most tiles of a matrix in a panel.
const MOST_TILES: usize = 16;
/// Over how many blocks of tokens the next panel's weights are asked for from memory.
const FETCH_BLOCKS: usize = 4;
/// How far ahead weights are asked for while a panel is filled, in bytes of a tile.
const AHEAD: usize = 2 << 10;

/// Bytes of a group of a register of rows in a panel: scales and weights.
const fn group_bytes<D: Dots>() -> usize {
    D::ROWS * (size_of::<f32>() + GROUP * size_of::<D::PanelWeight>())
}

/// Whether a panel has a byte for a weight.
const fn bytes<D: Dots>() -> bool {
    size_of::<D::PanelWeight>() == 1
}

/// Whether a panel of weights of `format` is of use with so many tokens. Where it has 16 bits
/// for each of them, products of nibbles are faster.
pub(super) fn helps<D: Dots>(_: D, format: TileFormat, tokens: usize) -> bool {
    tokens > FEW_TOKENS && (bytes::<D>() || format.is_int8())
}

/// Rows for one task of each of `matrices` matrices with `cols` columns.
pub(super) fn task_rows<D: Dots>(_: D, cols: usize, matrices: usize) -> usize {
    let tile = cols.div_ceil(GROUP) * group_bytes::<D>() * (TILE_ROWS / D::ROWS);
    let tiles = PANEL_BYTES / (tile * matrices) / LEAST_TILES * LEAST_TILES;
    tiles.clamp(LEAST_TILES, MOST_TILES) * TILE_ROWS
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
    let int4 = quantized.block() > 1;
    // The conditions are constants: only what occurs is compiled.
    if const { D::PANEL.0 == 4 } {
        if int4 {
            // Smaller ones, because there are three of each sum. With those of the row in memory,
            // blocks of four by three took 0 to 10 % longer, by where things happened to lie.
            blocks::<D, 2, 4, 4>(d, c, product, input, quantized, rows, scratch);
        } else {
            blocks::<D, 4, 3, 1>(d, c, product, input, quantized, rows, scratch);
        }
    } else if const { D::PANEL.0 == 2 } {
        if const { bytes::<D>() } && int4 {
            blocks::<D, 2, 3, 4>(d, c, product, input, quantized, rows, scratch);
        } else {
            blocks::<D, 2, 3, 1>(d, c, product, input, quantized, rows, scratch);
        }
    } else if int4 {
        blocks::<D, 1, 1, 4>(d, c, product, input, quantized, rows, scratch);
    } else {
        blocks::<D, 1, 1, 1>(d, c, product, input, quantized, rows, scratch);
    }
}

/// With blocks of `R` registers of rows by `T` tokens, the inputs of `B` groups having one scale.
#[inline(always)]
fn blocks<D: Dots, const R: usize, const T: usize, const B: usize>(
    d: D,
    c: &Compute,
    product: &Product,
    input: &Input,
    quantized: &QuantizedInput,
    rows: Range<usize>,
    scratch: &mut Scratch,
) {
    let groups = quantized.groups();
    // Registers of rows of each matrix, whole blocks of them.
    let registers = (rows.len().div_ceil(TILE_ROWS) * TILE_ROWS / D::ROWS).next_multiple_of(R);
    let padded = registers * D::ROWS;
    let matrices = product.matrices().count();
    let block_lines = (R * groups * group_bytes::<D>()).div_ceil(LINE);
    let lines = registers / R * block_lines;
    let width = matrices * padded;
    let wide_lines = (T * groups * GROUP * size_of::<D::PanelInput>()).div_ceil(LINE);
    let (all, sums, _) = scratch.parts(matrices * lines + wide_lines, T * width);
    let (panel, wide) = all.split_at_mut(matrices * lines);
    let mut next = [Next { at: std::ptr::null(), lines: 0 }; 2];
    for (n, (matrix, panel)) in product.matrices().zip(panel.chunks_exact_mut(lines)).enumerate() {
        let Weights::Tiles(format, tiles) = matrix.weights else { continue };
        let range = rows.start / TILE_ROWS..rows.end.div_ceil(TILE_ROWS);
        for (at, lines) in panel.chunks_exact_mut(block_lines).enumerate() {
            fill::<D, R>(d, format, tiles, matrix.cols, range.clone(), at * R, lines);
        }
        let tile = format.tile_bytes(matrix.cols);
        let tiles = &tiles[range.start * tile..range.end * tile];
        // The next task of this thread most likely has the next rows.
        next[n] = Next { at: tiles.as_ptr_range().end, lines: tiles.len() / LINE };
    }
    // Of so many rows, sums that are only stored go to the output at once.
    let stored = product.out.finish == Finish::Store && matrices == 1;
    let direct = if stored { rows.len() / (R * D::ROWS) * (R * D::ROWS) } else { 0 };
    let steps = lines / block_lines * groups;
    let count = input.tokens.div_ceil(T);
    let fetches = count.min(FETCH_BLOCKS);
    let mut token = 0;
    for block in 0..count {
        if block > 0 && c.is_over() {
            return;
        }
        // Blocks of about the same size.
        let many = (input.tokens - token).div_ceil(count - block);
        let x = panel_inputs::<D>(quantized.values(token), many * groups * GROUP, wide);
        for (n, panel) in panel.chunks_exact(lines).enumerate() {
            let each = next[n].lines.div_ceil(steps * fetches);
            let at = next[n].at.wrapping_add(block * steps * each * LINE);
            let mut fetch = Next { at, lines: if block < fetches { each } else { 0 } };
            for (at, lines) in panel.chunks_exact(block_lines).enumerate() {
                let row = at * R * D::ROWS;
                let (sums, width) = if row + R * D::ROWS <= direct {
                    let at = token * product.out.width + rows.start + row;
                    // SAFETY: an element of the output.
                    (unsafe { product.out.data.as_mut_ptr().add(at) }, product.out.width)
                } else {
                    (sums[n * padded + row..].as_mut_ptr(), width)
                };
                let pass = Pass { lines, x, quantized, token, groups, sums, width, fetch };
                // All of a block, or one less: there are more than eight tokens.
                assert!(many == T || (many + 1 == T && T > 2));
                // SAFETY: `x` holds `many` tokens. For each of them there are as many rows in
                // `sums`, or in the output, where they belong to the calling task.
                unsafe {
                    match many {
                        2 if const { T == 3 } => pass.sums::<D, R, 2, B>(d),
                        3 if const { T == 4 } => pass.sums::<D, R, 3, B>(d),
                        _ => pass.sums::<D, R, T, B>(d),
                    }
                }
                fetch.at = fetch.at.wrapping_add(groups * fetch.lines * LINE);
            }
        }
        for (t, sums) in sums.chunks_exact(width).take(many).enumerate() {
            let (first, second) = sums.split_at(padded);
            let ups = if second.is_empty() { second } else { &second[..rows.len()] };
            let sums = &first[direct..rows.len()];
            // SAFETY: these rows belong to the calling task.
            unsafe { product.out.put(d.simd(), token + t, rows.start + direct, sums, ups) };
        }
        token += many;
    }
}

/// What is asked for from memory: so many lines at each step, from here on.
#[derive(Clone, Copy)]
struct Next {
    at: *const u8,
    lines: usize,
}

/// The first `count` of `values` as inputs of a panel: these, or a copy in `wide`.
#[inline(always)]
fn panel_inputs<D: Dots>(values: &[i8], count: usize, wide: &mut [Line]) -> *const D::PanelInput {
    assert!(values.len() >= count);
    if const { size_of::<D::PanelInput>() == 1 } {
        return values.as_ptr().cast();
    }
    assert!(count * size_of::<D::PanelInput>() <= size_of_val(wide));
    let to = wide.as_mut_ptr().cast::<D::PanelInput>();
    for (n, &x) in values[..count].iter().enumerate() {
        // SAFETY: `count` inputs are in `wide`, as just checked.
        unsafe { to.add(n).write(D::panel_input(x)) };
    }
    to
}

/// Writes the registers of rows `first..first + R` of the tiles `range` of a matrix to `lines`:
/// group after group, first the scales of all registers, then their weights, step after step.
/// Registers beyond the last tile are zeros. INT4 has bytes here, see [`helps`].
#[inline(always)]
fn fill<D: Dots, const R: usize>(
    d: D,
    format: TileFormat,
    tiles: &[u8],
    cols: usize,
    range: Range<usize>,
    first: usize,
    lines: &mut [Line],
) {
    let groups = cols.div_ceil(GROUP);
    let scale_bytes = D::ROWS * size_of::<f32>();
    assert!(size_of_val(lines) >= groups * R * group_bytes::<D>());
    // From four columns to the next, and from a step to the next.
    let (quad, step) = (R * 4 * D::ROWS, R * D::PANEL_COLUMNS * D::ROWS);
    let to = lines.as_mut_ptr().cast::<u8>();
    for r in 0..R {
        let row = (first + r) * D::ROWS;
        let (at, row) = (range.start + row / TILE_ROWS, row % TILE_ROWS);
        let there = at < range.end;
        let none: (&[u8], &[u8]) = (&[], &[]);
        let (tile, rest) = if there { format.tile(tiles, cols, at) } else { none };
        for group in 0..groups {
            // SAFETY: group `group` of `R` registers is in `lines` (checked above): scales,
            // then weights.
            let (scales_to, to) = unsafe {
                let to = to.add(group * R * group_bytes::<D>());
                let weights = to.add(R * scale_bytes).cast::<D::PanelWeight>();
                (to.add(r * scale_bytes).cast(), weights.add(r * D::PANEL_COLUMNS * D::ROWS))
            };
            if !there {
                let none = [0; 4 * TILE_ROWS];
                for j in 0..GROUP / 4 {
                    // SAFETY: as above; `none` is long enough.
                    unsafe { d.fill_panel(none.as_ptr(), to.add(j * quad), step) };
                }
                // SAFETY: as above.
                unsafe { d.store(scales_to, d.zero()) };
                continue;
            }
            let scales = &tile[format.scales_at(group) + 2 * row..][..2 * D::ROWS];
            // SAFETY: as many halves; the rest as above.
            unsafe { d.store(scales_to, d.scales(scales.as_ptr())) };
            let from = &tile[format.weights_at(group)..][..format.group_bytes()];
            for line in 0..format.group_bytes() / LINE {
                prefetch_far(from.as_ptr().wrapping_add(AHEAD + line * LINE));
            }
            for (j, line) in from.chunks_exact(LINE).enumerate() {
                let line = &line[4 * row..][..4 * D::ROWS];
                let at = group * format.group_bytes() + j * LINE + 4 * row;
                let rest = if format.is_planes() { &rest[at..][..4 * D::ROWS] } else { rest };
                match format {
                    // SAFETY: as above.
                    TileFormat::Int8 => unsafe {
                        d.fill_panel(line.as_ptr(), to.add(j * quad), step);
                    },
                    TileFormat::Int4 => {
                        let (mut low, mut high) = ([0; 4 * TILE_ROWS], [0; 4 * TILE_ROWS]);
                        for i in 0..4 * D::ROWS {
                            low[i] = line[i] & 15;
                            high[i] = line[i] >> 4;
                        }
                        // SAFETY: as above: the high nibbles are those of 16 columns on.
                        unsafe {
                            d.fill_panel(low.as_ptr(), to.add(j * quad), step);
                            d.fill_panel(high.as_ptr(), to.add((j + GROUP / 8) * quad), step);
                        }
                    }
                    TileFormat::Int8Planes => {
                        let (mut low, mut high) = ([0; 4 * TILE_ROWS], [0; 4 * TILE_ROWS]);
                        for i in 0..4 * D::ROWS {
                            [low[i], high[i]] = join8(line[i], rest[i]);
                        }
                        // SAFETY: as above.
                        unsafe {
                            d.fill_panel(low.as_ptr(), to.add(j * quad), step);
                            d.fill_panel(high.as_ptr(), to.add((j + GROUP / 8) * quad), step);
                        }
                    }
                    TileFormat::Int4Planes => {
                        let mut quads = [[0; 4 * TILE_ROWS]; 4];
                        for i in 0..4 * D::ROWS {
                            let [a, b] = join4(line[i], rest[i]);
                            quads[0][i] = a & 15;
                            quads[1][i] = b & 15;
                            quads[2][i] = a >> 4;
                            quads[3][i] = b >> 4;
                        }
                        for (n, quads) in quads.iter().enumerate() {
                            let at = 2 * j + n % 2 + n / 2 * (GROUP / 8);
                            // SAFETY: as above.
                            unsafe { d.fill_panel(quads.as_ptr(), to.add(at * quad), step) };
                        }
                    }
                }
            }
        }
    }
}

/// A block of registers of rows of a panel, and some tokens.
struct Pass<'a, X> {
    lines: &'a [Line],
    /// The values of the tokens.
    x: *const X,
    quantized: &'a QuantizedInput,
    token: usize,
    groups: usize,
    /// The sum of the first row and token.
    sums: *mut f32,
    /// Distance of the sums of two tokens.
    width: usize,
    fetch: Next,
}

impl<X: Copy> Pass<'_, X> {
    /// `sums[t * width + row]` for `R` registers of rows and `T` tokens, the inputs of `B` groups
    /// having one scale.
    ///
    /// # Safety
    /// `x` points to the values of so many tokens, and that many sums can be written.
    #[inline(always)]
    unsafe fn sums<D, const R: usize, const T: usize, const B: usize>(&self, d: D)
    where
        D: Dots<PanelInput = X>,
    {
        let Self { lines, x, quantized, token, groups, width, fetch, .. } = *self;
        let (scales, corrections) = (quantized.scales(token), quantized.corrections(token));
        assert!(scales.len() >= T * groups && corrections.len() >= T * groups);
        assert!(size_of_val(lines) >= groups * R * group_bytes::<D>());
        assert_eq!(quantized.block(), B);
        let (scales, corrections) = (scales.as_ptr(), corrections.as_ptr());
        let panel = lines.as_ptr().cast::<u8>();
        let scale_bytes = D::ROWS * size_of::<f32>();
        let mut lanes = Sums::<D, R, T>::new(d);
        let mut next = fetch.at;
        for first in (0..groups).step_by(B) {
            for group in first..groups.min(first + B) {
                for _ in 0..fetch.lines {
                    prefetch_far(next);
                    next = next.wrapping_add(LINE);
                }
                // SAFETY: `x`, `scales` and `corrections` hold `T` tokens of `groups` groups, and
                // the panel has as many groups of `R` registers (checked above and by the caller).
                unsafe {
                    let panel = panel.add(group * R * group_bytes::<D>());
                    let weights = panel.add(R * scale_bytes).cast::<D::PanelWeight>();
                    let mut sums = [[d.start8(corrections.add(group)); R]; T];
                    for t in 1..T {
                        let start = d.start8(corrections.add(t * groups + group));
                        for r in 0..R {
                            sums[t][r] = start;
                        }
                    }
                    for j in 0..GROUP / D::PANEL_COLUMNS {
                        let from = weights.add(j * R * D::PANEL_COLUMNS * D::ROWS);
                        let mut w = [d.panel_weights(from); R];
                        for r in 1..R {
                            w[r] = d.panel_weights(from.add(r * D::PANEL_COLUMNS * D::ROWS));
                        }
                        for t in 0..T {
                            let at = (t * groups + group) * GROUP + j * D::PANEL_COLUMNS;
                            let x = d.panel_inputs(x.add(at));
                            for r in 0..R {
                                sums[t][r] = d.panel_dot(sums[t][r], w[r], x);
                            }
                        }
                    }
                    for r in 0..R {
                        let row_scales = d.load(panel.add(r * scale_bytes).cast());
                        for t in 0..T {
                            let mut scale = row_scales;
                            if B == 1 {
                                scale = d.scaled(scale, scales.add(t * groups + group));
                            }
                            let sum = d.finish8(sums[t][r]);
                            lanes.block[t][r] = d.mul_add(sum, scale, lanes.block[t][r]);
                        }
                    }
                }
            }
            // SAFETY: as above.
            unsafe { lanes.end_block(d, B, scales.add(first), groups) };
        }
        for t in 0..T {
            for r in 0..R {
                // SAFETY: by the contract.
                unsafe { d.store(self.sums.add(t * width + r * D::ROWS), lanes.row[t][r]) };
            }
        }
    }
}
