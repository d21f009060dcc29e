//! AVX2: products of pairs of bytes go through 16-bit sums, which must not overflow.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use super::Dots;
use crate::kernels::simd::{Avx2, Simd};

/// AVX2.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Avx2Dots(pub Avx2);

/// The bits of `a` where those of `mask` are set, else those of `b`.
///
/// # Safety
/// The CPU has AVX2.
#[inline(always)]
unsafe fn select(mask: __m256i, a: __m256i, b: __m256i) -> __m256i {
    // SAFETY: by the contract.
    unsafe { _mm256_or_si256(_mm256_and_si256(mask, a), _mm256_andnot_si256(mask, b)) }
}

/// INT8 weights of two planes: from the low nibbles and from the high ones.
///
/// # Safety
/// The CPU has AVX2; 32 readable bytes at each place.
#[inline(always)]
pub(super) unsafe fn joined_bytes(first: *const u8, rest: *const u8) -> [__m256i; 2] {
    // SAFETY: by the contract.
    unsafe {
        let (first, rest) = (_mm256_loadu_si256(first.cast()), _mm256_loadu_si256(rest.cast()));
        let low = _mm256_set1_epi8(15);
        [
            select(low, rest, _mm256_slli_epi16::<4>(first)),
            select(low, _mm256_srli_epi16::<4>(rest), first),
        ]
    }
}

/// Weights that are stored with an offset of 128: magnitudes and signed values.
///
/// # Safety
/// The CPU has AVX2.
#[inline(always)]
unsafe fn signed(stored: __m256i) -> (__m256i, __m256i) {
    // SAFETY: by the contract.
    unsafe {
        let signed = _mm256_xor_si256(stored, _mm256_set1_epi8(-128));
        (_mm256_abs_epi8(signed), signed)
    }
}

// SAFETY of all blocks in this impl: the `Avx2` inside is the proof that the instructions
// are there; pointers are valid by the contracts of the trait.
#[allow(clippy::undocumented_unsafe_blocks)]
impl Dots for Avx2Dots {
    type Simd = Avx2;
    const ROWS: usize = 8;
    const SINGLE: usize = 4;
    const PANEL: (usize, usize) = (2, 3);
    const PANEL_COLUMNS: usize = 2;
    type Quads = __m256i;
    /// Magnitudes, at most 128, and signed values.
    type Bytes = (__m256i, __m256i);
    type Sums8 = __m256i;
    /// Sixteen 16-bit sums: products are at most 2 * 15 * 127 in magnitude, of which eight
    /// are far from overflow.
    type Sums4 = __m256i;
    type F32 = __m256;
    type PanelWeight = i16;
    type PanelInput = i16;
    type PanelWeights = __m256i;
    type PanelInputs = __m256i;

    #[inline(always)]
    fn simd(self) -> Avx2 {
        self.0
    }
    #[inline(always)]
    fn run<R>(self, f: impl FnOnce() -> R) -> R {
        self.0.run(f)
    }
    #[inline(always)]
    unsafe fn inputs(self, p: *const i8) -> Self::Quads {
        unsafe { _mm256_set1_epi32(p.cast::<i32>().read_unaligned()) }
    }
    #[inline(always)]
    unsafe fn bytes(self, p: *const u8) -> Self::Bytes {
        unsafe { signed(_mm256_loadu_si256(p.cast())) }
    }
    #[inline(always)]
    unsafe fn nibbles(self, p: *const u8) -> [Self::Quads; 2] {
        unsafe {
            let both = _mm256_loadu_si256(p.cast());
            let mask = _mm256_set1_epi8(15);
            let high = _mm256_and_si256(_mm256_srli_epi16::<4>(both), mask);
            [_mm256_and_si256(both, mask), high]
        }
    }
    #[inline(always)]
    unsafe fn quarters(self, p: *const u8) -> [Self::Quads; 4] {
        unsafe {
            let (all, mask) = (_mm256_loadu_si256(p.cast()), _mm256_set1_epi8(3));
            [
                _mm256_and_si256(all, mask),
                _mm256_and_si256(_mm256_srli_epi16::<2>(all), mask),
                _mm256_and_si256(_mm256_srli_epi16::<4>(all), mask),
                _mm256_and_si256(_mm256_srli_epi16::<6>(all), mask),
            ]
        }
    }
    #[inline(always)]
    unsafe fn join8(self, first: *const u8, rest: *const u8) -> [Self::Bytes; 2] {
        unsafe {
            let [low, high] = joined_bytes(first, rest);
            [signed(low), signed(high)]
        }
    }
    #[inline(always)]
    unsafe fn join4(self, first: *const u8, rest: *const u8) -> [Self::Quads; 4] {
        unsafe {
            let (first, rest) = (_mm256_loadu_si256(first.cast()), _mm256_loadu_si256(rest.cast()));
            let (low, mask) = (_mm256_set1_epi8(0x33), _mm256_set1_epi8(15));
            let a = select(low, rest, _mm256_slli_epi16::<2>(first));
            let b = select(low, _mm256_srli_epi16::<2>(rest), first);
            [
                _mm256_and_si256(a, mask),
                _mm256_and_si256(b, mask),
                _mm256_and_si256(_mm256_srli_epi16::<4>(a), mask),
                _mm256_and_si256(_mm256_srli_epi16::<4>(b), mask),
            ]
        }
    }
    #[inline(always)]
    unsafe fn start8(self, _: *const i32) -> Self::Sums8 {
        // Weights are signed here.
        unsafe { _mm256_setzero_si256() }
    }
    #[inline(always)]
    fn dot8(self, sums: Self::Sums8, (magnitude, w): Self::Bytes, x: Self::Quads) -> Self::Sums8 {
        unsafe {
            // The sign goes to the input, of magnitude 127 at most. Two products of 128 and
            // 127 are just less than 2^15.
            let pairs = _mm256_maddubs_epi16(magnitude, _mm256_sign_epi8(x, w));
            _mm256_add_epi32(sums, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)))
        }
    }
    #[inline(always)]
    fn finish8(self, sums: Self::Sums8) -> Self::F32 {
        unsafe { _mm256_cvtepi32_ps(sums) }
    }
    #[inline(always)]
    unsafe fn start4(self, _: *const i32) -> Self::Sums4 {
        unsafe { _mm256_setzero_si256() }
    }
    #[inline(always)]
    fn dot4(self, sums: Self::Sums4, w: Self::Quads, x: Self::Quads) -> Self::Sums4 {
        unsafe { _mm256_add_epi16(sums, _mm256_maddubs_epi16(w, x)) }
    }
    #[inline(always)]
    unsafe fn finish4(self, sums: Self::Sums4, p: *const i32) -> Self::F32 {
        unsafe {
            let wide = _mm256_madd_epi16(sums, _mm256_set1_epi16(1));
            _mm256_cvtepi32_ps(_mm256_add_epi32(wide, _mm256_set1_epi32(p.read_unaligned())))
        }
    }
    #[inline(always)]
    unsafe fn fill_panel(self, stored: *const u8, to: *mut i16, step: usize) {
        unsafe {
            let stored = _mm256_loadu_si256(stored.cast());
            let offset = _mm256_set1_epi16(128);
            // Of each row, the first two columns and the last two, widened.
            let first = _mm256_set1_epi64x(0x8005_8004_8001_8000_u64 as i64);
            let rows = _mm256_set_epi64x(0x0808_0808_0808_0808, 0, 0x0808_0808_0808_0808, 0);
            let first = _mm256_add_epi8(first, rows);
            let last = _mm256_add_epi8(first, _mm256_set1_epi16(2));
            let first = _mm256_sub_epi16(_mm256_shuffle_epi8(stored, first), offset);
            let last = _mm256_sub_epi16(_mm256_shuffle_epi8(stored, last), offset);
            _mm256_storeu_si256(to.cast(), first);
            _mm256_storeu_si256(to.add(step).cast(), last);
        }
    }
    #[inline(always)]
    fn panel_input(x: i8) -> i16 {
        i16::from(x)
    }
    #[inline(always)]
    unsafe fn panel_weights(self, p: *const i16) -> __m256i {
        unsafe { _mm256_loadu_si256(p.cast()) }
    }
    #[inline(always)]
    unsafe fn panel_inputs(self, p: *const i16) -> __m256i {
        unsafe { _mm256_set1_epi32(p.cast::<i32>().read_unaligned()) }
    }
    #[inline(always)]
    fn panel_dot(self, sums: Self::Sums8, w: __m256i, x: __m256i) -> Self::Sums8 {
        // Products of bytes in pairs would have to be kept from overflow, which costs as
        // much as twice as many of 16 bits.
        unsafe { _mm256_add_epi32(sums, _mm256_madd_epi16(w, x)) }
    }
    #[inline(always)]
    fn zero(self) -> Self::F32 {
        unsafe { _mm256_setzero_ps() }
    }
    #[inline(always)]
    unsafe fn load(self, p: *const f32) -> Self::F32 {
        unsafe { _mm256_loadu_ps(p) }
    }
    #[inline(always)]
    unsafe fn same(self, p: *const f32) -> Self::F32 {
        unsafe { _mm256_set1_ps(p.read_unaligned()) }
    }
    #[inline(always)]
    unsafe fn scales(self, p: *const u8) -> Self::F32 {
        unsafe { _mm256_cvtph_ps(_mm_loadu_si128(p.cast())) }
    }
    #[inline(always)]
    unsafe fn scaled(self, a: Self::F32, p: *const f32) -> Self::F32 {
        unsafe { _mm256_mul_ps(a, _mm256_set1_ps(p.read_unaligned())) }
    }
    #[inline(always)]
    fn mul_add(self, a: Self::F32, b: Self::F32, c: Self::F32) -> Self::F32 {
        unsafe { _mm256_fmadd_ps(a, b, c) }
    }
    #[inline(always)]
    unsafe fn store(self, p: *mut f32, v: Self::F32) {
        unsafe { _mm256_storeu_ps(p, v) }
    }
}
