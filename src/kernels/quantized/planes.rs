//! From tiles in one plane to tiles in two.
#![allow(unsafe_code)]

use super::layout::{GROUP, LINE, TileFormat};
use crate::kernels::Compute;
use crate::pool::SharedMut;

/// Tiles of one task.
const TASK_TILES: usize = 16;

/// Writes `tiles`, of a matrix of `cols` columns in the format `whole` of one plane, in two:
/// `first` and `rest` are as long as so many tiles are in each. What stopped `c` is told by
/// [`Compute::check`].
///
/// # Panics
/// If lengths do not fit or `whole` has two planes.
pub fn split(
    c: &Compute,
    whole: TileFormat,
    cols: usize,
    tiles: &[u8],
    first: &mut [u8],
    rest: &mut [u8],
) {
    assert!(!whole.is_planes(), "split: {whole:?}");
    let (planes, tile) = (whole.planes(), whole.tile_bytes(cols));
    let (first_tile, rest_tile) = (planes.tile_bytes(cols), planes.rest_bytes(cols));
    let count = tiles.len() / tile;
    assert!(tiles.len() == count * tile && first.len() == count * first_tile);
    assert!(rest.len() == count * rest_tile);
    let rest = SharedMut::new(rest);
    c.run_chunks(first, TASK_TILES * first_tile, |task, first| {
        for (n, first) in first.chunks_exact_mut(first_tile).enumerate() {
            let at = task * TASK_TILES + n;
            // SAFETY: each tile belongs to one task.
            let rest = unsafe { rest.part(at * rest_tile, rest_tile) };
            split_tile(whole, cols, &tiles[at * tile..][..tile], first, rest);
        }
    });
}

fn split_tile(whole: TileFormat, cols: usize, tile: &[u8], first: &mut [u8], rest: &mut [u8]) {
    let planes = whole.planes();
    let bytes = planes.group_bytes();
    for (group, rest) in (0..cols.div_ceil(GROUP)).zip(rest.chunks_exact_mut(bytes)) {
        if group % 2 == 0 {
            let (from, to) = (whole.scales_at(group), planes.scales_at(group));
            first[to..to + LINE].copy_from_slice(&tile[from..from + LINE]);
        }
        let weights = &tile[whole.weights_at(group)..][..whole.group_bytes()];
        let first = &mut first[planes.weights_at(group)..][..bytes];
        let lines = first.chunks_exact_mut(LINE).zip(rest.chunks_exact_mut(LINE));
        for (j, (first, rest)) in lines.enumerate() {
            // See `join8` and `join4` of the layout.
            let (a, b) = match whole.is_int8() {
                true => (j, j + GROUP / 8),
                false => (2 * j, 2 * j + 1),
            };
            let (a, b) = (&weights[a * LINE..][..LINE], &weights[b * LINE..][..LINE]);
            for (((first, rest), &a), &b) in first.iter_mut().zip(rest).zip(a).zip(b) {
                (*first, *rest) = match whole.is_int8() {
                    true => (a >> 4 | b & 0xf0, a & 15 | b << 4),
                    false => (a >> 2 & 0x33 | b & 0xcc, a & 0x33 | (b & 0x33) << 2),
                };
            }
        }
    }
}
