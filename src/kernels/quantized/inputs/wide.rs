//! Inputs as INT8 with AVX-512, sixteen groups at a time: what is one number for each group is
//! then a lane of a register, and needs no sums and maxima across lanes of its own. Where four
//! groups share a scale, they are lanes next to each other.
//!
//! The operations on each number are those of the general way, and so are the results.
#![allow(clippy::needless_range_loop)] // loops over registers

use std::arch::x86_64::*;

use super::{GROUP, LANES, LARGEST, SMALLEST, TileFormat, make_nan};
use crate::kernels::simd::Avx512;

/// As the general way, for a number of whole groups that sixteen divides, in blocks of one or
/// four.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")]
pub(super) fn quantize_token(
    _: Avx512,
    format: TileFormat,
    x: &[f32],
    values: &mut [i8],
    scales: &mut [f32],
    corrections: &mut [i32],
) {
    let groups = scales.len();
    assert!(groups.is_multiple_of(LANES) && corrections.len() == groups);
    assert!(x.len() == groups * GROUP && values.len() == groups * GROUP);
    let block = format.input_groups();
    assert!(block == 1 || block == 4);
    let offset = _mm512_set1_epi32(format.offset());
    let mut most = _mm512_setzero_si512();
    for first in (0..groups).step_by(LANES) {
        // SAFETY: sixteen groups are in each slice from here on, as just checked.
        let (x, values, scales, corrections) = unsafe {
            (
                x.as_ptr().add(first * GROUP),
                values.as_mut_ptr().add(first * GROUP),
                scales.as_mut_ptr().add(first),
                corrections.as_mut_ptr().add(first),
            )
        };
        let mut lanes = [_mm512_setzero_si512(); LANES];
        for g in 0..LANES {
            // SAFETY: as above.
            let (a, b) = unsafe { load(x.add(g * GROUP)) };
            // As integers, magnitudes are in the same order, with infinity and NaN above all.
            let sign = _mm512_set1_epi32(i32::MIN);
            let a = _mm512_andnot_si512(sign, _mm512_castps_si512(a));
            let b = _mm512_andnot_si512(sign, _mm512_castps_si512(b));
            lanes[g] = _mm512_max_epi32(a, b);
        }
        let mut largest = across::<true>(lanes);
        if block == 4 {
            largest = _mm512_max_epi32(largest, _mm512_shuffle_epi32::<0b10_11_00_01>(largest));
            largest = _mm512_max_epi32(largest, _mm512_shuffle_epi32::<0b01_00_11_10>(largest));
        }
        most = _mm512_max_epi32(most, largest);
        let largest = _mm512_castsi512_ps(largest);
        let some = _mm512_cmp_ps_mask::<_CMP_GE_OQ>(largest, _mm512_set1_ps(SMALLEST));
        let limit = _mm512_set1_ps(LARGEST);
        let mut inverses = [0.0; LANES];
        // SAFETY: as above.
        unsafe {
            _mm512_storeu_ps(inverses.as_mut_ptr(), _mm512_maskz_div_ps(some, limit, largest));
            _mm512_storeu_ps(scales, _mm512_maskz_div_ps(some, largest, limit));
        }
        for g in (0..LANES).step_by(2) {
            let mut parts = [_mm512_setzero_si512(); 4];
            for n in 0..2 {
                // SAFETY: as above.
                let (a, b) = unsafe { load(x.add((g + n) * GROUP)) };
                let inverse = _mm512_set1_ps(inverses[g + n]);
                // Rounded to nearest, ties to even.
                parts[2 * n] = _mm512_cvtps_epi32(_mm512_mul_ps(a, inverse));
                parts[2 * n + 1] = _mm512_cvtps_epi32(_mm512_mul_ps(b, inverse));
                lanes[g + n] = _mm512_add_epi32(parts[2 * n], parts[2 * n + 1]);
            }
            // SAFETY: as above.
            unsafe { _mm512_storeu_si512(values.add(g * GROUP).cast(), bytes(parts)) };
        }
        let minus = _mm512_sub_epi32(_mm512_setzero_si512(), across::<false>(lanes));
        // SAFETY: as above.
        unsafe { _mm512_storeu_si512(corrections.cast(), _mm512_mullo_epi32(minus, offset)) };
    }
    if _mm512_reduce_max_epi32(most) >= f32::INFINITY.to_bits() as i32 {
        make_nan(values, scales, corrections);
    }
}

/// A group.
///
/// # Safety
/// `x` points to one.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")]
unsafe fn load(x: *const f32) -> (__m512, __m512) {
    // SAFETY: by the contract.
    unsafe { (_mm512_loadu_ps(x), _mm512_loadu_ps(x.add(LANES))) }
}

/// The lanes of `parts`, which are -127 to 127, as bytes, one after the other.
///
/// Not one register at a time: `vpmovdb`, which compilers join with the store, is where two fifths
/// of this file's time were by a profile on Zen 4.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")]
fn bytes(parts: [__m512i; 4]) -> __m512i {
    let (first, second) =
        (_mm512_packs_epi32(parts[0], parts[1]), _mm512_packs_epi32(parts[2], parts[3]));
    // Packing takes quarters of registers by turns: each quarter holds four lanes of each part.
    let order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    _mm512_permutexvar_epi32(order, _mm512_packs_epi16(first, second))
}

/// In lane `n`, the largest lane (`MAX`) or the sum of the lanes of `lanes[n]`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")]
fn across<const MAX: bool>(lanes: [__m512i; LANES]) -> __m512i {
    let (mut pairs, mut fours) = ([lanes[0]; 8], [lanes[0]; 4]);
    // In each quarter of a register: two lanes of two, one of four.
    for n in 0..8 {
        let (a, b) = (lanes[2 * n], lanes[2 * n + 1]);
        pairs[n] = join::<MAX>(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
    }
    for n in 0..4 {
        let (a, b) = (pairs[2 * n], pairs[2 * n + 1]);
        fours[n] = join::<MAX>(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
    }
    // Quarters of two registers, then of four.
    let (first, second) =
        (quarters::<MAX>(fours[0], fours[1]), quarters::<MAX>(fours[2], fours[3]));
    quarters::<MAX>(first, second)
}

/// The quarters 0 and 1, and 2 and 3, of `a`, and the same of `b`, joined.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")]
fn quarters<const MAX: bool>(a: __m512i, b: __m512i) -> __m512i {
    let even = _mm512_shuffle_i32x4::<0b10_00_10_00>(a, b);
    join::<MAX>(even, _mm512_shuffle_i32x4::<0b11_01_11_01>(a, b))
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")]
fn join<const MAX: bool>(a: __m512i, b: __m512i) -> __m512i {
    if MAX { _mm512_max_epi32(a, b) } else { _mm512_add_epi32(a, b) }
}
