//! AVX2 with FMA: sixteen lanes are two registers.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use half::{bf16, f16};

use super::Simd;

/// AVX2, FMA and F16C.
#[derive(Clone, Copy, Debug)]
pub struct Avx2(());

impl Avx2 {
    /// The proof, if this CPU and operating system support AVX2, FMA and F16C.
    pub fn detect() -> Option<Self> {
        (is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("f16c"))
        .then_some(Self(()))
    }
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn sum8(v: __m256) -> f32 {
    let c = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps::<1>(v));
    let d = _mm_add_ps(c, _mm_movehl_ps(c, c));
    _mm_cvtss_f32(_mm_add_ss(d, _mm_shuffle_ps::<1>(d, d)))
}

// SAFETY of all blocks in this impl: an `Avx2` exists only where `detect` has found the
// instructions; pointers are valid by the contracts of the trait.
#[allow(clippy::undocumented_unsafe_blocks)]
impl Simd for Avx2 {
    type F32 = (__m256, __m256);
    type Integers = (__m256i, __m256i);
    type Part = __m256;
    const PARTS: usize = 2;
    const NAME: &'static str = "avx2";
    const FUSED: bool = true;

    #[inline(always)]
    fn run<R>(self, f: impl FnOnce() -> R) -> R {
        #[target_feature(enable = "avx2,fma,f16c")]
        fn enter<R>(f: impl FnOnce() -> R) -> R {
            f()
        }
        unsafe { enter(f) }
    }
    #[inline(always)]
    fn run_alone<R>(self, f: impl FnOnce() -> R) -> R {
        #[inline(never)]
        #[target_feature(enable = "avx2,fma,f16c")]
        fn enter<R>(f: impl FnOnce() -> R) -> R {
            f()
        }
        unsafe { enter(f) }
    }
    #[inline(always)]
    fn splat(self, x: f32) -> Self::F32 {
        unsafe { (_mm256_set1_ps(x), _mm256_set1_ps(x)) }
    }
    #[inline(always)]
    unsafe fn load_ptr(self, x: *const f32) -> Self::F32 {
        unsafe { (_mm256_loadu_ps(x), _mm256_loadu_ps(x.add(8))) }
    }
    #[inline(always)]
    unsafe fn load_bf16_ptr(self, x: *const bf16) -> Self::F32 {
        unsafe {
            let widen = |p: *const bf16| {
                let v = _mm256_cvtepu16_epi32(_mm_loadu_si128(p.cast()));
                _mm256_castsi256_ps(_mm256_slli_epi32::<16>(v))
            };
            (widen(x), widen(x.add(8)))
        }
    }
    #[inline(always)]
    unsafe fn load_f16_ptr(self, x: *const f16) -> Self::F32 {
        unsafe {
            (
                _mm256_cvtph_ps(_mm_loadu_si128(x.cast())),
                _mm256_cvtph_ps(_mm_loadu_si128(x.add(8).cast())),
            )
        }
    }
    #[inline(always)]
    unsafe fn load_i8_ptr(self, x: *const i8) -> Self::F32 {
        unsafe {
            let all = _mm_loadu_si128(x.cast());
            let low = _mm256_cvtepi8_epi32(all);
            let high = _mm256_cvtepi8_epi32(_mm_unpackhi_epi64(all, all));
            (_mm256_cvtepi32_ps(low), _mm256_cvtepi32_ps(high))
        }
    }
    #[inline(always)]
    unsafe fn store_ptr(self, x: *mut f32, v: Self::F32) {
        unsafe {
            _mm256_storeu_ps(x, v.0);
            _mm256_storeu_ps(x.add(8), v.1);
        }
    }
    #[inline(always)]
    unsafe fn stream_ptr(self, x: *mut f32, v: Self::F32) {
        unsafe {
            _mm256_stream_ps(x, v.0);
            _mm256_stream_ps(x.add(8), v.1);
        }
    }
    #[inline(always)]
    unsafe fn store_f16_ptr(self, x: *mut f16, v: Self::F32) {
        unsafe {
            _mm_storeu_si128(x.cast(), _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(v.0));
            _mm_storeu_si128(x.add(8).cast(), _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(v.1));
        }
    }
    #[inline(always)]
    unsafe fn store_i8_ptr(self, x: *mut i8, v: Self::F32) {
        unsafe {
            // Packed within each half of the register, which are then put in order.
            let words = _mm256_packs_epi32(_mm256_cvtps_epi32(v.0), _mm256_cvtps_epi32(v.1));
            let words = _mm256_permute4x64_epi64::<0b11_01_10_00>(words);
            let (low, high) = (_mm256_castsi256_si128(words), _mm256_extracti128_si256::<1>(words));
            _mm_storeu_si128(x.cast(), _mm_packs_epi16(low, high));
        }
    }
    #[inline(always)]
    fn add(self, a: Self::F32, b: Self::F32) -> Self::F32 {
        unsafe { (_mm256_add_ps(a.0, b.0), _mm256_add_ps(a.1, b.1)) }
    }
    #[inline(always)]
    fn sub(self, a: Self::F32, b: Self::F32) -> Self::F32 {
        unsafe { (_mm256_sub_ps(a.0, b.0), _mm256_sub_ps(a.1, b.1)) }
    }
    #[inline(always)]
    fn mul(self, a: Self::F32, b: Self::F32) -> Self::F32 {
        unsafe { (_mm256_mul_ps(a.0, b.0), _mm256_mul_ps(a.1, b.1)) }
    }
    #[inline(always)]
    fn div(self, a: Self::F32, b: Self::F32) -> Self::F32 {
        unsafe { (_mm256_div_ps(a.0, b.0), _mm256_div_ps(a.1, b.1)) }
    }
    #[inline(always)]
    fn mul_add(self, a: Self::F32, b: Self::F32, c: Self::F32) -> Self::F32 {
        unsafe { (_mm256_fmadd_ps(a.0, b.0, c.0), _mm256_fmadd_ps(a.1, b.1, c.1)) }
    }
    #[inline(always)]
    fn max(self, a: Self::F32, b: Self::F32) -> Self::F32 {
        unsafe { (_mm256_max_ps(a.0, b.0), _mm256_max_ps(a.1, b.1)) }
    }
    #[inline(always)]
    fn min(self, a: Self::F32, b: Self::F32) -> Self::F32 {
        unsafe { (_mm256_min_ps(a.0, b.0), _mm256_min_ps(a.1, b.1)) }
    }
    #[inline(always)]
    fn round(self, a: Self::F32) -> Self::F32 {
        const MODE: i32 = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
        unsafe { (_mm256_round_ps::<MODE>(a.0), _mm256_round_ps::<MODE>(a.1)) }
    }
    #[inline(always)]
    fn exp2_int(self, a: Self::F32) -> Self::F32 {
        unsafe {
            let power = |v: __m256| {
                let biased = _mm256_add_epi32(_mm256_cvtps_epi32(v), _mm256_set1_epi32(127));
                _mm256_castsi256_ps(_mm256_slli_epi32::<23>(biased))
            };
            (power(a.0), power(a.1))
        }
    }
    #[inline(always)]
    fn sum(self, a: Self::F32) -> f32 {
        unsafe { sum8(_mm256_add_ps(a.0, a.1)) }
    }
    #[inline(always)]
    fn max_lane(self, a: Self::F32) -> f32 {
        unsafe {
            let b = _mm256_max_ps(a.0, a.1);
            let c = _mm_max_ps(_mm256_castps256_ps128(b), _mm256_extractf128_ps::<1>(b));
            let d = _mm_max_ps(c, _mm_movehl_ps(c, c));
            _mm_cvtss_f32(_mm_max_ss(d, _mm_shuffle_ps::<1>(d, d)))
        }
    }
    #[inline(always)]
    fn sum4(self, a: [Self::F32; 4]) -> [f32; 4] {
        unsafe {
            let [a, b, c, d] = a;
            let (a, b) = (_mm256_add_ps(a.0, a.1), _mm256_add_ps(b.0, b.1));
            let (c, d) = (_mm256_add_ps(c.0, c.1), _mm256_add_ps(d.0, d.1));
            // Lane i and i + 4: the halves of a and b, and of c and d, side by side.
            let halves = |a, b| {
                let low = _mm256_permute2f128_ps::<0x20>(a, b);
                _mm256_add_ps(low, _mm256_permute2f128_ps::<0x31>(a, b))
            };
            let (ab, cd) = (halves(a, b), halves(c, d));
            // Lane i and i + 2, then i and i + 1, in each half: a0 a1 c0 c1 | b0 b1 d0 d1.
            let pairs = _mm256_add_ps(
                _mm256_shuffle_ps::<0b01_00_01_00>(ab, cd),
                _mm256_shuffle_ps::<0b11_10_11_10>(ab, cd),
            );
            let sums = _mm256_add_ps(pairs, _mm256_permute_ps::<0b10_11_00_01>(pairs));
            let (ac, bd) = (_mm256_castps256_ps128(sums), _mm256_extractf128_ps::<1>(sums));
            // a . c . with b . d . gives a b c d.
            let abcd = _mm_blend_ps::<0b1010>(ac, bd);
            std::mem::transmute::<__m128, [f32; 4]>(abcd)
        }
    }
    #[inline(always)]
    fn integers_zero(self) -> Self::Integers {
        unsafe { (_mm256_setzero_si256(), _mm256_setzero_si256()) }
    }
    #[inline(always)]
    unsafe fn integers_mul_add(
        self,
        a: *const i8,
        b: *const i16,
        sums: Self::Integers,
    ) -> Self::Integers {
        unsafe {
            let low = _mm256_cvtepi8_epi16(_mm_loadu_si128(a.cast()));
            let high = _mm256_cvtepi8_epi16(_mm_loadu_si128(a.add(16).cast()));
            let low = _mm256_madd_epi16(low, _mm256_loadu_si256(b.cast()));
            let high = _mm256_madd_epi16(high, _mm256_loadu_si256(b.add(16).cast()));
            (_mm256_add_epi32(sums.0, low), _mm256_add_epi32(sums.1, high))
        }
    }
    #[inline(always)]
    fn integers_sum(self, sums: Self::Integers) -> i32 {
        unsafe {
            let v = _mm256_add_epi32(sums.0, sums.1);
            let v = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256::<1>(v));
            let v = _mm_add_epi32(v, _mm_shuffle_epi32::<0b01_00_11_10>(v));
            _mm_cvtsi128_si32(_mm_add_epi32(v, _mm_shuffle_epi32::<0b10_11_00_01>(v)))
        }
    }
    #[inline(always)]
    fn part_zero(self) -> Self::Part {
        unsafe { _mm256_setzero_ps() }
    }
    #[inline(always)]
    unsafe fn part_load_ptr(self, x: *const f32) -> Self::Part {
        unsafe { _mm256_loadu_ps(x) }
    }
    #[inline(always)]
    fn part_mul_add(self, a: Self::Part, b: Self::Part, c: Self::Part) -> Self::Part {
        unsafe { _mm256_fmadd_ps(a, b, c) }
    }
    #[inline(always)]
    fn join(self, part: impl Fn(usize) -> Self::Part) -> Self::F32 {
        (part(0), part(1))
    }
}
