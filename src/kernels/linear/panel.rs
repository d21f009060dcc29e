//! Products with many tokens: a panel of widened weights stays in the second-level cache
//! while all tokens pass by.
//!
//! Blocks of `R` rows by `T` tokens are summed in registers over all of `cols`. Where a
//! register holds only a part of the sixteen lanes, a block goes through a segment of its
//! columns once per part: the second time the data is in the first-level cache.
#![allow(clippy::needless_range_loop)] // the loops over registers, see `direct`

use std::ops::Range;

use super::direct::put_sums;
use super::element::Element;
use super::scratch::{Line, Scratch};
use super::{Input, Product, widen_tiles};
use crate::kernels::simd::{LANES, Simd, prefetch, prefetch_far};
use crate::kernels::{Compute, Weights};

/// How far ahead weights are asked for while a panel is filled, in bytes.
const AHEAD: usize = 8 << 10;
/// Groups of sixteen columns in a segment.
const SEGMENT: usize = 16;

/// Computes `rows` of `product` for all tokens.
#[inline(always)]
pub(super) fn compute<S: Simd>(
    s: S,
    c: &Compute,
    product: &Product,
    input: &Input,
    rows: Range<usize>,
    scratch: &mut Scratch,
) {
    // As many sums as there are registers, less those for the operands.
    match S::PARTS {
        1 => blocks::<S, 4, 6>(s, c, product, input, rows, scratch),
        _ => blocks::<S, 3, 4>(s, c, product, input, rows, scratch),
    }
}

#[inline(always)]
fn blocks<S: Simd, const R: usize, const T: usize>(
    s: S,
    c: &Compute,
    product: &Product,
    input: &Input,
    rows: Range<usize>,
    scratch: &mut Scratch,
) {
    let cols = product.matrix.cols;
    let groups = cols.div_ceil(LANES);
    let padded = rows.len().next_multiple_of(R);
    let matrices = product.matrices().count();
    let (panel, sums, wide) = scratch.parts(matrices * padded * groups, T * matrices * padded);
    for (matrix, panel) in product.matrices().zip(panel.chunks_mut(padded * groups)) {
        let range = rows.start * cols..rows.end * cols;
        match matrix.weights {
            Weights::Bf16(w) => widen::<S, _, R>(s, &w[range], cols, panel),
            Weights::F16(w) => widen::<S, _, R>(s, &w[range], cols, panel),
            Weights::F32(w) => widen::<S, _, R>(s, &w[range], cols, panel),
            Weights::Tiles(format, w) => {
                widen::<S, _, R>(s, widen_tiles(format, w, cols, rows.clone(), wide), cols, panel);
            }
        }
    }
    let width = matrices * padded;
    let mut token = 0;
    while token < input.tokens && !c.is_over() {
        let count = T.min(input.tokens - token);
        let x = &input.x[token * cols..(token + count) * cols];
        match count {
            2 if T > 2 => pass::<S, R, 2>(s, panel, x, cols, sums, width),
            3 if T > 3 => pass::<S, R, 3>(s, panel, x, cols, sums, width),
            4 if T > 4 => pass::<S, R, 4>(s, panel, x, cols, sums, width),
            5 if T > 5 => pass::<S, R, 5>(s, panel, x, cols, sums, width),
            1 => pass::<S, R, 1>(s, panel, x, cols, sums, width),
            _ => pass::<S, R, T>(s, panel, x, cols, sums, width),
        }
        for (t, sums) in sums.chunks(width).take(count).enumerate() {
            let (first, second) = sums.split_at(padded);
            let ups = if second.is_empty() { second } else { &second[..rows.len()] };
            // SAFETY: these rows belong to the calling task.
            unsafe { product.out.put(s, token + t, rows.start, &first[..rows.len()], ups) };
        }
        token += count;
    }
}

/// Writes the rows `w` (`[rows, cols]`) as blocks of `R` rows: group after group of
/// sixteen columns, row after row in it. Missing columns and rows are zero.
#[inline(always)]
fn widen<S: Simd, E: Element, const R: usize>(s: S, w: &[E], cols: usize, panel: &mut [Line]) {
    let groups = cols.div_ceil(LANES);
    for (block, lines) in panel.chunks_mut(R * groups).enumerate() {
        for r in 0..R {
            let start = ((block * R + r) * cols).min(w.len());
            let row = &w[start..(start + cols).min(w.len())];
            for group in 0..groups {
                let k = group * LANES;
                // From memory, row after row.
                prefetch_far(row.as_ptr().wrapping_add(k).cast::<u8>().wrapping_add(AHEAD));
                let v = if row.len() >= k + LANES {
                    // SAFETY: 16 elements, just checked.
                    unsafe { E::load(s, row.as_ptr().add(k)) }
                } else {
                    E::load_part(s, &row[k.min(row.len())..])
                };
                s.store(&mut lines[group * R + r].0, v);
            }
        }
    }
}

/// The sums of all blocks of the panel with the `T` tokens of `x`:
/// `sums[t * width + row]`.
#[inline(always)]
fn pass<S: Simd, const R: usize, const T: usize>(
    s: S,
    panel: &[Line],
    x: &[f32],
    cols: usize,
    sums: &mut [f32],
    width: usize,
) {
    for (block, lines) in panel.chunks(R * cols.div_ceil(LANES)).enumerate() {
        // While the first blocks are summed, the next tokens come nearer, one per block.
        let next =
            if block < T { x.as_ptr().wrapping_add((T + block) * cols) } else { std::ptr::null() };
        let lanes = block_lanes::<S, R, T>(s, lines, x, cols, next);
        for t in 0..T {
            put_sums(s, &lanes[t], &mut sums[t * width + block * R..][..R]);
        }
    }
}

/// The sums, lane by lane, of one block of rows with `T` tokens. Asks for the `cols`
/// elements at `next`, unless that is null.
#[inline(always)]
fn block_lanes<S: Simd, const R: usize, const T: usize>(
    s: S,
    lines: &[Line],
    x: &[f32],
    cols: usize,
    next: *const f32,
) -> [[S::F32; R]; T] {
    let whole = cols / LANES;
    let segment = if S::PARTS == 1 { whole.max(1) } else { SEGMENT };
    assert!(x.len() >= T * cols && lines.len() >= R * cols.div_ceil(LANES));
    let mut parts = [[[s.part_zero(); R]; T]; MAX_PARTS];
    for first in (0..whole).step_by(segment) {
        let groups = first..whole.min(first + segment);
        for part in 0..S::PARTS {
            let fetch = if part > 0 && part + 1 == S::PARTS {
                Fetch::NextSegment
            } else if part == 0 && !next.is_null() {
                Fetch::Line(next)
            } else {
                Fetch::Nothing
            };
            let (lines, x) = (lines.as_ptr(), x.as_ptr());
            let groups = groups.clone();
            // SAFETY: the groups are whole ones of `cols`, and `x` and `lines` hold T rows
            // of `cols` and R rows of as many groups (just checked).
            unsafe { add_groups(s, &mut parts[part], lines, x, cols, groups, part, fetch) };
        }
    }
    if !cols.is_multiple_of(LANES) {
        let mut rest = [Line([0.0; LANES]); T];
        for t in 0..T {
            let tail = &x[t * cols + whole * LANES..(t + 1) * cols];
            rest[t].0[..tail.len()].copy_from_slice(tail);
        }
        for part in 0..S::PARTS {
            // SAFETY: one group: T rows of 16 columns, and the last R lines.
            unsafe {
                let lines = lines.as_ptr().add(whole * R);
                let x = rest.as_ptr().cast();
                add_groups(s, &mut parts[part], lines, x, LANES, 0..1, part, Fetch::Nothing);
            }
        }
    }
    let mut lanes = [[s.splat(0.0); R]; T];
    for t in 0..T {
        for r in 0..R {
            lanes[t][r] = s.join(
                #[inline(always)]
                |part| parts[part][t][r],
            );
        }
    }
    lanes
}

/// The largest [`Simd::PARTS`].
const MAX_PARTS: usize = 4;

/// What a pass over some groups asks for meanwhile.
#[derive(Clone, Copy)]
enum Fetch {
    Nothing,
    /// One line for each group, from here on.
    Line(*const f32),
    /// The `x` of as many groups after these.
    NextSegment,
}

/// Adds the products of `groups` of sixteen columns to one part of the lanes.
///
/// # Safety
/// `x` points to `T` rows of `cols` elements and `lines` to a block of `R` rows, all of
/// which have these groups.
#[allow(clippy::too_many_arguments)]
#[inline(always)]
unsafe fn add_groups<S: Simd, const R: usize, const T: usize>(
    s: S,
    sums: &mut [[S::Part; R]; T],
    lines: *const Line,
    x: *const f32,
    cols: usize,
    groups: Range<usize>,
    part: usize,
    fetch: Fetch,
) {
    let lane = part * (LANES / S::PARTS);
    let ahead = groups.len() * LANES;
    let mut lanes = *sums;
    for group in groups {
        if let Fetch::Line(next) = fetch {
            prefetch_far(next.wrapping_add(group * LANES));
        }
        let mut w = [s.part_zero(); R];
        for r in 0..R {
            // SAFETY: by the contract.
            w[r] = unsafe { s.part_load_ptr(lines.add(group * R + r).cast::<f32>().add(lane)) };
        }
        for t in 0..T {
            // SAFETY: by the contract.
            let p = unsafe { x.add(t * cols + group * LANES + lane) };
            // SAFETY: by the contract.
            let x = unsafe { s.part_load_ptr(p) };
            if let Fetch::NextSegment = fetch {
                prefetch(p.wrapping_add(ahead));
            }
            for r in 0..R {
                lanes[t][r] = s.part_mul_add(x, w[r], lanes[t][r]);
            }
        }
    }
    *sums = lanes;
}
