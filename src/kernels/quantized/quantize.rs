//! From weights as stored to the [layout](super::layout).
//!
//! The scale of each row of a group is the one of sixteen candidates (and of what least
//! squares then makes of the best) with the smallest sum of squared errors, measured with
//! the scale as it is stored. Operations are the same in every instruction set, without
//! fused ones, so that all make the same bytes.
#![allow(unsafe_code)]

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use half::f16;

use super::layout::{GROUP, LINE, TILE_ROWS, TileFormat};
use crate::dispatch;
use crate::kernels::simd::{LANES, Simd};
use crate::kernels::{Compute, Matrix, Weights};
use crate::{Error, Result};

/// Which weights are made of given ones. It counts on whenever a change makes other bytes
/// (a test compares them), because what was computed with one is not gone on with by another:
/// saved sessions are bound to it. 0 is what is not quantized.
pub const REVISION: u32 = 2;

/// Tiles of one task: enough that it takes some 100 us, so that a cancel is soon seen.
const TASK_ELEMENTS: usize = 32 << 10;

/// What the element of largest magnitude in a group is divided by, for the candidates. A
/// positive scale maps a positive element to positive numbers; codes reach one further on
/// the negative side. The largest element may be clipped, which pays where it is far from
/// the others; rounding errors of candidates that differ a little are as good as random,
/// of which the best is a gain.
const INT4_DIVISORS: [f32; LANES] =
    [-8.0, -7.0, -7.3, -7.6, -8.4, -8.8, -9.3, -9.9, -10.6, 7.0, 7.3, 7.6, 8.0, 8.5, 9.1, 6.6];
/// As above. Clipping never pays with so many steps.
const INT8_DIVISORS: [f32; LANES] = [
    -128.5, -128.0, -127.5, -127.0, -126.5, -126.0, -125.5, -125.0, -124.5, -124.0, -123.5, -123.0,
    -122.5, -122.0, -121.5, -121.0,
];

/// Quantizes the rows `rows` of `matrix` into `out`, the bytes of their tiles in a format of
/// one plane (for two, see [`split`](super::split())). The range
/// begins at a multiple of 16, and ends at one or at the last row, so that a large matrix
/// can be done piece by piece.
///
/// # Errors
/// `Format` if a weight is not finite or too large for the format, naming its row; what
/// stopped `c`. `out` then holds garbage.
///
/// # Panics
/// If `rows` or the length of `out` is not as said, or `matrix` is quantized already.
pub fn quantize(
    c: &Compute,
    matrix: &Matrix,
    rows: Range<usize>,
    format: TileFormat,
    out: &mut [u8],
) -> Result<()> {
    assert!(!format.is_planes(), "quantize: {format:?} is made of one plane");
    assert!(rows.start.is_multiple_of(TILE_ROWS) && rows.end <= matrix.rows, "quantize: rows");
    assert!(rows.end == matrix.rows || rows.end.is_multiple_of(TILE_ROWS), "quantize: rows");
    assert_eq!(Some(out.len()), format.bytes(rows.len(), matrix.cols), "quantize: output");
    let tile = format.tile_bytes(matrix.cols);
    let per_task = (TASK_ELEMENTS / (TILE_ROWS * matrix.cols)).max(1);
    let bad_row = AtomicUsize::new(usize::MAX);
    c.run_chunks(out, per_task * tile, |task, out| {
        for (n, out) in out.chunks_exact_mut(tile).enumerate() {
            let first = rows.start + (task * per_task + n) * TILE_ROWS;
            let tile_rows = first..rows.end.min(first + TILE_ROWS);
            let bad = dispatch!(c.isa, s => quantize_tile(s, matrix, tile_rows, format, out));
            if let Some(row) = bad {
                bad_row.fetch_min(row, Ordering::Relaxed);
            }
        }
    });
    c.check()?;
    match bad_row.into_inner() {
        usize::MAX => Ok(()),
        row => Err(Error::format(format!(
            "row {row} holds a weight that is not finite or too large to be quantized"
        ))),
    }
}

/// Quantizes up to sixteen rows; returns the first that cannot be.
#[inline(always)]
fn quantize_tile<S: Simd>(
    s: S,
    matrix: &Matrix,
    rows: Range<usize>,
    format: TileFormat,
    out: &mut [u8],
) -> Option<usize> {
    let groups = matrix.cols.div_ceil(GROUP);
    let zero = if format.is_int8() { 128 } else { 0x88 };
    for group in 0..groups {
        let weights = format.weights_at(group);
        out[weights..][..format.group_bytes()].fill(zero);
        if group % 2 == 0 {
            out[weights - LINE..weights].fill(0);
        }
    }
    let mut bad = None;
    for (r, row) in rows.enumerate() {
        for group in 0..groups {
            let w = load_group(s, matrix, row, group * GROUP);
            let Some((scale, codes)) = choose(s, format, w) else {
                bad = bad.or(Some(row));
                continue;
            };
            let at = format.scales_at(group) + 2 * r;
            out[at..at + 2].copy_from_slice(&scale.to_le_bytes());
            let weights = &mut out[format.weights_at(group)..][..format.group_bytes()];
            put_group(s, format, codes, r, weights);
        }
    }
    bad
}

/// The 32 weights of row `row` from column `col` on, zeros beyond the last.
#[inline(always)]
fn load_group<S: Simd>(s: S, matrix: &Matrix, row: usize, col: usize) -> [S::F32; 2] {
    let (start, count) = (row * matrix.cols + col, GROUP.min(matrix.cols - col));
    let range = start..start + count;
    if count == GROUP {
        match matrix.weights {
            Weights::Bf16(w) => {
                let w = w[range].as_ptr();
                // SAFETY: 32 elements, by the range.
                return unsafe { [s.load_bf16_ptr(w), s.load_bf16_ptr(w.add(LANES))] };
            }
            Weights::F16(w) => {
                let w = w[range].as_ptr();
                // SAFETY: 32 elements, by the range.
                return unsafe { [s.load_f16_ptr(w), s.load_f16_ptr(w.add(LANES))] };
            }
            Weights::F32(w) => {
                let w = w[range].as_ptr();
                // SAFETY: 32 elements, by the range.
                return unsafe { [s.load_ptr(w), s.load_ptr(w.add(LANES))] };
            }
            Weights::Tiles(..) => unreachable!("quantized weights are not quantized again"),
        }
    }
    let mut wide = [0.0; GROUP];
    match matrix.weights {
        Weights::Bf16(w) => wide.iter_mut().zip(&w[range]).for_each(|(o, w)| *o = w.to_f32()),
        Weights::F16(w) => {
            wide.iter_mut().zip(&w[range]).for_each(|(o, w)| *o = w.to_f32_const());
        }
        Weights::F32(w) => wide[..count].copy_from_slice(&w[range]),
        Weights::Tiles(..) => unreachable!("quantized weights are not quantized again"),
    }
    [s.load(&wide), s.load(&wide[LANES..])]
}

/// The scale and the signed codes, as `f32`, of 32 weights; `None` if they have none.
#[inline(always)]
fn choose<S: Simd>(s: S, format: TileFormat, w: [S::F32; 2]) -> Option<(f16, [S::F32; 2])> {
    let zero = s.splat(0.0);
    // Zero times anything finite is zero.
    let finite = s.sum(s.add(s.mul(w[0], zero), s.mul(w[1], zero))) == 0.0;
    let highest = s.max_lane(s.max(w[0], w[1]));
    let lowest = -s.max_lane(s.max(s.sub(zero, w[0]), s.sub(zero, w[1])));
    let extreme = if highest >= -lowest { highest } else { lowest };
    let (least, most, divisors) = match format.is_int8() {
        true => (-128.0, 127.0, &INT8_DIVISORS),
        false => (-8.0, 7.0, &INT4_DIVISORS),
    };
    // No candidate may be too large for a half.
    if !finite || extreme.abs() > 6.5 * 65504.0 {
        return None;
    }
    if extreme == 0.0 {
        return Some((f16::ZERO, [zero; 2]));
    }
    let limits = (s.splat(least), s.splat(most));
    let mut halves = [f16::ZERO; LANES];
    let exact = s.div(s.splat(extreme), s.load(divisors));
    // SAFETY: sixteen elements.
    unsafe { s.store_f16_ptr(halves.as_mut_ptr(), exact) };
    for half in &mut halves {
        // The smallest number that a half can be, rather than none.
        if half.to_bits() & 0x7fff == 0 {
            *half = f16::from_bits(half.to_bits() | 1);
        }
    }
    // SAFETY: as above.
    let stored = unsafe { s.load_f16_ptr(halves.as_ptr()) };
    let scales = s.to_array(stored);
    let inverses = s.to_array(s.div(s.splat(1.0), stored));
    let (mut best, mut least_error) = (0, f32::INFINITY);
    for four in 0..LANES / 4 {
        let mut errors = [zero; 4];
        for (i, error) in errors.iter_mut().enumerate() {
            let (scale, inverse) = (scales[4 * four + i], inverses[4 * four + i]);
            *error = squared_error(s, w, encode(s, w, inverse, limits), scale);
        }
        for (i, error) in s.sum4(errors).into_iter().enumerate() {
            if error < least_error {
                (best, least_error) = (4 * four + i, error);
            }
        }
    }
    let mut scale = halves[best];
    let mut codes = encode(s, w, inverses[best], limits);
    for _ in 0..2 {
        // The scale that fits these codes best, and then the codes that fit it.
        let products = s.add(s.mul(w[0], codes[0]), s.mul(w[1], codes[1]));
        let squares = s.add(s.mul(codes[0], codes[0]), s.mul(codes[1], codes[1]));
        let sums = s.sum4([products, squares, zero, zero]);
        let refitted = f16::from_f32(sums[0] / sums[1]);
        let wide = refitted.to_f32();
        // Not so for NaN, where all codes are zero.
        if !(wide.is_finite() && wide != 0.0) {
            break;
        }
        let refitted_codes = encode(s, w, 1.0 / wide, limits);
        let error = s.sum4([squared_error(s, w, refitted_codes, wide), zero, zero, zero])[0];
        if error >= least_error {
            break;
        }
        (scale, codes, least_error) = (refitted, refitted_codes, error);
    }
    Some((scale, codes))
}

/// The nearest codes.
#[inline(always)]
fn encode<S: Simd>(
    s: S,
    w: [S::F32; 2],
    inverse: f32,
    (least, most): (S::F32, S::F32),
) -> [S::F32; 2] {
    let inverse = s.splat(inverse);
    [
        s.min(s.max(s.round(s.mul(w[0], inverse)), least), most),
        s.min(s.max(s.round(s.mul(w[1], inverse)), least), most),
    ]
}

/// The squared errors, to be summed over the lanes.
#[inline(always)]
fn squared_error<S: Simd>(s: S, w: [S::F32; 2], codes: [S::F32; 2], scale: f32) -> S::F32 {
    let scale = s.splat(scale);
    let errors = [s.sub(w[0], s.mul(codes[0], scale)), s.sub(w[1], s.mul(codes[1], scale))];
    s.add(s.mul(errors[0], errors[0]), s.mul(errors[1], errors[1]))
}

/// Writes the codes of row `r` of a group, which holds zeros there.
#[inline(always)]
fn put_group<S: Simd>(s: S, format: TileFormat, codes: [S::F32; 2], r: usize, weights: &mut [u8]) {
    // Added to this, an integer is in the lowest bits of the sum.
    let base = s.splat(12_582_912.0 + format.offset() as f32);
    let (mut low, mut bytes) = ([0.0; GROUP], [0; GROUP]);
    s.store(&mut low, s.add(codes[0], base));
    s.store(&mut low[LANES..], s.add(codes[1], base));
    for (byte, code) in bytes.iter_mut().zip(&low) {
        *byte = code.to_bits() as u8;
    }
    let quad = |j: usize| {
        u32::from_le_bytes([bytes[4 * j], bytes[4 * j + 1], bytes[4 * j + 2], bytes[4 * j + 3]])
    };
    for (j, line) in weights.chunks_exact_mut(LINE).enumerate() {
        let word = if format.is_int8() { quad(j) } else { quad(j) | quad(j + 4) << 4 };
        line[4 * r..4 * r + 4].copy_from_slice(&word.to_le_bytes());
    }
}
