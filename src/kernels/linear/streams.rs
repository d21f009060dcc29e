//! Products of one token with quantized weights: rows of four places of a matrix, or of two of
//! each of two matrices, go on together, at the speed of the memory.
#![allow(clippy::needless_range_loop)] // the loops over registers, see `direct`

use super::Product;
use super::format::{Format, Inputs, Int4, Int8, Rows, Sums};
use super::planes::{Int4Planes, Int8Planes};
use super::runs::{self, Runs, STREAMS};
use super::scratch::Scratch;
use crate::kernels::Weights;
use crate::kernels::quantized::dots::Dots;
use crate::kernels::quantized::inputs::QuantizedInput;
use crate::kernels::quantized::layout::{GROUP, LINE};
use crate::kernels::quantized::{TILE_ROWS, TileFormat};
use crate::kernels::simd::prefetch_far;

/// Computes `runs` of `product` for one token.
#[inline(always)]
pub(super) fn one_token<D: Dots>(
    d: D,
    product: &Product,
    quantized: &QuantizedInput,
    runs: Runs,
    scratch: &mut Scratch,
) {
    let (_, sums, _) = scratch.parts(0, 2 * runs.len());
    let (cols, count) = (product.matrix.cols, runs.count);
    let mut matrices = [(TileFormat::Int4, &[][..]); 2];
    for (of, matrix) in matrices.iter_mut().zip(product.matrices()) {
        let Weights::Tiles(format, tiles) = matrix.weights else { return };
        *of = (format, tiles);
    }
    // All places of a matrix, or both matrices together.
    let all = product.matrices().count() * runs.many;
    for (n, sums) in sums.chunks_exact_mut(STREAMS * count).take(all / STREAMS).enumerate() {
        let first = n * STREAMS;
        let mut places = [(&[][..], 0); STREAMS];
        for r in 0..STREAMS {
            let at = first + r;
            places[r] = (matrices[at / runs.many].1, runs.run(at % runs.many).start);
        }
        match matrices[first / runs.many].0 {
            TileFormat::Int8 => streams::<D, Int8>(d, cols, places, count, quantized, sums),
            TileFormat::Int4 => streams::<D, Int4>(d, cols, places, count, quantized, sums),
            TileFormat::Int8Planes => {
                streams::<D, Int8Planes>(d, cols, places, count, quantized, sums);
            }
            TileFormat::Int4Planes => {
                streams::<D, Int4Planes>(d, cols, places, count, quantized, sums);
            }
        }
    }
    let (first, second) = sums.split_at(runs.len());
    let second = second.chunks_exact(count);
    for (n, (sums, ups)) in first.chunks_exact(count).zip(second).enumerate() {
        // SAFETY: these rows belong to the calling task.
        unsafe { product.out.put(d.simd(), 0, runs.run(n).start, sums, ups) };
    }
}

/// `sums[n * count + row]` of `count` rows, whole tiles, from each of some places for one token:
/// the tiles of a matrix, all of them, and the first row there.
#[inline(always)]
fn streams<D: Dots, F: Format>(
    d: D,
    cols: usize,
    places: [(&[u8], usize); STREAMS],
    count: usize,
    quantized: &QuantizedInput,
    sums: &mut [f32],
) {
    let groups = quantized.groups();
    let x = Inputs::new(quantized, 0, 1);
    assert!(groups == cols.div_ceil(GROUP));
    let block = F::FORMAT.input_groups();
    assert_eq!(block, quantized.block());
    for at in (0..count).step_by(TILE_ROWS) {
        let mut rows = [Rows::new(places[0].0, places[0].0, 0); STREAMS];
        let mut next = [[places[0].0.as_ptr(); 2]; STREAMS];
        for r in 0..STREAMS {
            let (tiles, first) = places[r];
            let (tile, rest) = F::FORMAT.tile(tiles, cols, (first + at) / TILE_ROWS);
            rows[r] = Rows::new(tile, rest, 0);
            next[r] = [tile, rest].map(|plane| plane.as_ptr().wrapping_add(runs::AHEAD));
        }
        // All runs go on together, because memory answers to so many places at once. Where a
        // tile is two registers, few registers are left for more than one tile at a time.
        let mut whole = Sums::<D, STREAMS, 1>::new(d);
        let mut halves = [Sums::<D, 2, 1>::new(d); STREAMS];
        for group in 0..groups {
            for next in &mut next {
                for _ in 0..F::FORMAT.group_bytes() / LINE + (group + 1) % 2 {
                    prefetch_far(next[0]);
                    next[0] = next[0].wrapping_add(LINE);
                }
                if F::FORMAT.is_planes() {
                    for _ in 0..F::FORMAT.group_bytes() / LINE {
                        prefetch_far(next[1]);
                        next[1] = next[1].wrapping_add(LINE);
                    }
                }
            }
            // SAFETY: the inputs hold `groups` groups, and the tiles of `rows` as many.
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
            let out = &mut sums[r * count + at..][..TILE_ROWS];
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
}
