//! AVX-512: sixteen lanes are one register.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use half::{bf16, f16};

use super::Simd;
use super::avx2::{Avx2, sum8};

/// AVX-512 F, BW, DQ and VL.
#[derive(Clone, Copy, Debug)]
pub struct Avx512(());

impl Avx512 {
    /// The proof, if this CPU and operating system support AVX-512 F, BW, DQ and VL
    /// (and what [`Avx2`] needs).
    pub fn detect() -> Option<Self> {
        (Avx2::detect().is_some()
            && is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl"))
        .then_some(Self(()))
    }
}

// SAFETY of all blocks in this impl: an `Avx512` exists only where `detect` has found the
// instructions; pointers are valid by the contracts of the trait.
#[allow(clippy::undocumented_unsafe_blocks)]
impl Simd for Avx512 {
    type F32 = __m512;
    type Integers = __m512i;
    type Part = __m512;
    const PARTS: usize = 1;
    const NAME: &'static str = "avx512";
    const FUSED: bool = true;

    #[inline(always)]
    fn run<R>(self, f: impl FnOnce() -> R) -> R {
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")]
        fn enter<R>(f: impl FnOnce() -> R) -> R {
            f()
        }
        unsafe { enter(f) }
    }
    #[inline(always)]
    fn run_alone<R>(self, f: impl FnOnce() -> R) -> R {
        #[inline(never)]
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")]
        fn enter<R>(f: impl FnOnce() -> R) -> R {
            f()
        }
        unsafe { enter(f) }
    }
    #[inline(always)]
    fn splat(self, x: f32) -> Self::F32 {
        unsafe { _mm512_set1_ps(x) }
    }
    #[inline(always)]
    unsafe fn load_ptr(self, x: *const f32) -> Self::F32 {
        unsafe { _mm512_loadu_ps(x) }
    }
    #[inline(always)]
    unsafe fn load_bf16_ptr(self, x: *const bf16) -> Self::F32 {
        unsafe {
            let v = _mm512_cvtepu16_epi32(_mm256_loadu_si256(x.cast()));
            _mm512_castsi512_ps(_mm512_slli_epi32::<16>(v))
        }
    }
    #[inline(always)]
    unsafe fn load_f16_ptr(self, x: *const f16) -> Self::F32 {
        unsafe { _mm512_cvtph_ps(_mm256_loadu_si256(x.cast())) }
    }
    #[inline(always)]
    unsafe fn load_i8_ptr(self, x: *const i8) -> Self::F32 {
        unsafe { _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(x.cast()))) }
    }
    #[inline(always)]
    unsafe fn store_ptr(self, x: *mut f32, v: Self::F32) {
        unsafe { _mm512_storeu_ps(x, v) }
    }
    #[inline(always)]
    unsafe fn stream_ptr(self, x: *mut f32, v: Self::F32) {
        unsafe { _mm512_stream_ps(x, v) }
    }
    #[inline(always)]
    unsafe fn store_f16_ptr(self, x: *mut f16, v: Self::F32) {
        unsafe {
            _mm256_storeu_si256(x.cast(), _mm512_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(v));
        }
    }
    #[inline(always)]
    unsafe fn store_i8_ptr(self, x: *mut i8, v: Self::F32) {
        unsafe { _mm_storeu_si128(x.cast(), _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(v))) }
    }
    #[inline(always)]
    fn add(self, a: Self::F32, b: Self::F32) -> Self::F32 {
        unsafe { _mm512_add_ps(a, b) }
    }
    #[inline(always)]
    fn sub(self, a: Self::F32, b: Self::F32) -> Self::F32 {
        unsafe { _mm512_sub_ps(a, b) }
    }
    #[inline(always)]
    fn mul(self, a: Self::F32, b: Self::F32) -> Self::F32 {
        unsafe { _mm512_mul_ps(a, b) }
    }
    #[inline(always)]
    fn div(self, a: Self::F32, b: Self::F32) -> Self::F32 {
        unsafe { _mm512_div_ps(a, b) }
    }
    #[inline(always)]
    fn mul_add(self, a: Self::F32, b: Self::F32, c: Self::F32) -> Self::F32 {
        unsafe { _mm512_fmadd_ps(a, b, c) }
    }
    #[inline(always)]
    fn max(self, a: Self::F32, b: Self::F32) -> Self::F32 {
        unsafe { _mm512_max_ps(a, b) }
    }
    #[inline(always)]
    fn min(self, a: Self::F32, b: Self::F32) -> Self::F32 {
        unsafe { _mm512_min_ps(a, b) }
    }
    #[inline(always)]
    fn round(self, a: Self::F32) -> Self::F32 {
        const MODE: i32 = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
        unsafe { _mm512_roundscale_ps::<MODE>(a) }
    }
    #[inline(always)]
    fn exp2_int(self, a: Self::F32) -> Self::F32 {
        unsafe {
            let biased = _mm512_add_epi32(_mm512_cvtps_epi32(a), _mm512_set1_epi32(127));
            _mm512_castsi512_ps(_mm512_slli_epi32::<23>(biased))
        }
    }
    #[inline(always)]
    fn scale_by_exp2(self, a: Self::F32, n: Self::F32) -> Self::F32 {
        unsafe { _mm512_scalef_ps(a, n) }
    }
    #[inline(always)]
    fn sum(self, a: Self::F32) -> f32 {
        unsafe { sum8(_mm256_add_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps::<1>(a))) }
    }
    #[inline(always)]
    fn max_lane(self, a: Self::F32) -> f32 {
        unsafe { _mm512_reduce_max_ps(a) }
    }
    #[inline(always)]
    fn sum4(self, [a, b, c, d]: [Self::F32; 4]) -> [f32; 4] {
        unsafe {
            // Lane i and i + 8: the halves of a and b, and of c and d, side by side.
            let halves = |a, b| {
                let low = _mm512_shuffle_f32x4::<0b01_00_01_00>(a, b);
                _mm512_add_ps(low, _mm512_shuffle_f32x4::<0b11_10_11_10>(a, b))
            };
            let (ab, cd) = (halves(a, b), halves(c, d));
            // Lane i and i + 4: the quarters of a, b, c and d.
            let quarters = _mm512_add_ps(
                _mm512_shuffle_f32x4::<0b10_00_10_00>(ab, cd),
                _mm512_shuffle_f32x4::<0b11_01_11_01>(ab, cd),
            );
            // Lane i and i + 2, then i and i + 1, in each quarter.
            let pairs = _mm512_add_ps(quarters, _mm512_permute_ps::<0b01_00_11_10>(quarters));
            let sums = _mm512_add_ps(pairs, _mm512_permute_ps::<0b10_11_00_01>(pairs));
            let first = _mm512_setr_epi32(0, 4, 8, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
            let abcd = _mm512_castps512_ps128(_mm512_permutexvar_ps(first, sums));
            std::mem::transmute::<__m128, [f32; 4]>(abcd)
        }
    }
    #[inline(always)]
    fn integers_zero(self) -> Self::Integers {
        unsafe { _mm512_setzero_si512() }
    }
    #[inline(always)]
    unsafe fn integers_mul_add(
        self,
        a: *const i8,
        b: *const i16,
        sums: Self::Integers,
    ) -> Self::Integers {
        unsafe {
            let a = _mm512_cvtepi8_epi16(_mm256_loadu_si256(a.cast()));
            let products = _mm512_madd_epi16(a, _mm512_loadu_si512(b.cast()));
            _mm512_add_epi32(sums, products)
        }
    }
    #[inline(always)]
    fn integers_sum(self, sums: Self::Integers) -> i32 {
        unsafe { _mm512_reduce_add_epi32(sums) }
    }
    #[inline(always)]
    fn part_zero(self) -> Self::Part {
        unsafe { _mm512_setzero_ps() }
    }
    #[inline(always)]
    unsafe fn part_load_ptr(self, x: *const f32) -> Self::Part {
        unsafe { _mm512_loadu_ps(x) }
    }
    #[inline(always)]
    fn part_mul_add(self, a: Self::Part, b: Self::Part, c: Self::Part) -> Self::Part {
        unsafe { _mm512_fmadd_ps(a, b, c) }
    }
    #[inline(always)]
    fn join(self, part: impl Fn(usize) -> Self::Part) -> Self::F32 {
        part(0)
    }
}
