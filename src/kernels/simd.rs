//! One interface over the vector instruction sets.
//!
//! Every kernel is written once, over [`Simd`]: sixteen virtual `f32` lanes, which are one
//! register in AVX-512, two in AVX2 and a plain array elsewhere. Because AVX2 and AVX-512
//! then perform the same operations on the same lanes in the same order, they give the
//! same bits.
//!
//! An instruction set is a value that can only be made on a CPU that has it
//! ([`Avx2::detect`], [`Avx512::detect`]); holding it is the proof that its instructions
//! may run. [`Simd::run`] enters a function compiled for them: call it once, above the
//! loops. [`crate::dispatch!`] does so for the instruction set in an [`Isa`].
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use half::{bf16, f16};

use crate::{Error, Result};

/// Lanes of a [`Simd::F32`].
pub const LANES: usize = 16;

/// Sixteen `f32` lanes of one instruction set, and what can be done with them.
///
/// Slices given to `load*` and `store*` hold at least [`LANES`] elements (the `_part`
/// forms: any number, missing lanes are zero); this is checked by `debug_assert!` in the
/// vector implementations, where a check would cost more than the load.
///
/// # Safety of the methods
/// They are safe to call because a value of the type proves that the CPU has the
/// instructions. Outside of [`Simd::run`] they work too, only slowly.
pub trait Simd: Copy + Send + Sync + 'static {
    /// Sixteen lanes.
    type F32: Copy;
    /// One register: `16 / PARTS` neighbouring lanes. Kernels that need many accumulators
    /// go through their data once per part.
    type Part: Copy;
    /// Parts of an [`Simd::F32`].
    const PARTS: usize;
    /// The name in options and reports.
    const NAME: &'static str;
    /// True when `mul_add` rounds once (FMA).
    const FUSED: bool;

    /// Runs `f` compiled for this instruction set.
    fn run<R>(self, f: impl FnOnce() -> R) -> R;

    /// All lanes `x`.
    fn splat(self, x: f32) -> Self::F32;
    /// `x[0..16]`. Reading fewer is undefined: the caller has checked the length.
    ///
    /// # Safety
    /// `x` points to 16 readable elements, of any alignment.
    unsafe fn load_ptr(self, x: *const f32) -> Self::F32;
    /// Sixteen BF16 values, widened.
    ///
    /// # Safety
    /// `x` points to 16 readable elements, of any alignment.
    unsafe fn load_bf16_ptr(self, x: *const bf16) -> Self::F32;
    /// Sixteen F16 values, widened.
    ///
    /// # Safety
    /// `x` points to 16 readable elements, of any alignment.
    unsafe fn load_f16_ptr(self, x: *const f16) -> Self::F32;
    /// Writes the lanes to `x[0..16]`.
    ///
    /// # Safety
    /// `x` points to 16 writable elements, of any alignment.
    unsafe fn store_ptr(self, x: *mut f32, v: Self::F32);
    /// Writes the lanes, rounded to nearest even, as F16.
    ///
    /// # Safety
    /// `x` points to 16 writable elements, of any alignment.
    unsafe fn store_f16_ptr(self, x: *mut f16, v: Self::F32);

    /// `a + b`
    fn add(self, a: Self::F32, b: Self::F32) -> Self::F32;
    /// `a - b`
    fn sub(self, a: Self::F32, b: Self::F32) -> Self::F32;
    /// `a * b`
    fn mul(self, a: Self::F32, b: Self::F32) -> Self::F32;
    /// `a / b`
    fn div(self, a: Self::F32, b: Self::F32) -> Self::F32;
    /// `a * b + c`, fused where [`Simd::FUSED`].
    fn mul_add(self, a: Self::F32, b: Self::F32, c: Self::F32) -> Self::F32;
    /// Lane by lane maximum.
    fn max(self, a: Self::F32, b: Self::F32) -> Self::F32;
    /// Lane by lane minimum.
    fn min(self, a: Self::F32, b: Self::F32) -> Self::F32;
    /// Nearest integer, ties to even, as `f32`.
    fn round(self, a: Self::F32) -> Self::F32;
    /// `2^a` for integral `a` in -126..=127.
    fn exp2_int(self, a: Self::F32) -> Self::F32;
    /// The sum of the lanes by a fixed tree: halves are added until one is left
    /// (lane i with lane i+8, then i+4, i+2, i+1).
    fn sum(self, a: Self::F32) -> f32;
    /// The largest lane.
    fn max_lane(self, a: Self::F32) -> f32;

    /// The sums of four vectors, each exactly as by [`Simd::sum`].
    #[inline(always)]
    fn sum4(self, a: [Self::F32; 4]) -> [f32; 4] {
        a.map(|a| self.sum(a))
    }

    /// All lanes of a part zero.
    fn part_zero(self) -> Self::Part;
    /// The lanes of one part.
    ///
    /// # Safety
    /// `x` points to `16 / PARTS` readable elements, of any alignment.
    unsafe fn part_load_ptr(self, x: *const f32) -> Self::Part;
    /// `a * b + c`, fused where [`Simd::FUSED`].
    fn part_mul_add(self, a: Self::Part, b: Self::Part, c: Self::Part) -> Self::Part;
    /// Puts the parts `part(0)`, `part(1)`, ... together, the lowest lanes first.
    fn join(self, part: impl Fn(usize) -> Self::Part) -> Self::F32;

    /// `x[0..16]`.
    #[inline(always)]
    fn load(self, x: &[f32]) -> Self::F32 {
        debug_assert!(x.len() >= LANES);
        // SAFETY: callers pass at least LANES elements, checked in debug builds.
        unsafe { self.load_ptr(x.as_ptr()) }
    }
    /// `x[0..16]`.
    #[inline(always)]
    fn load_bf16(self, x: &[bf16]) -> Self::F32 {
        debug_assert!(x.len() >= LANES);
        // SAFETY: as in `load`.
        unsafe { self.load_bf16_ptr(x.as_ptr()) }
    }
    /// `x[0..16]`.
    #[inline(always)]
    fn load_f16(self, x: &[f16]) -> Self::F32 {
        debug_assert!(x.len() >= LANES);
        // SAFETY: as in `load`.
        unsafe { self.load_f16_ptr(x.as_ptr()) }
    }
    /// Writes `x[0..16]`.
    #[inline(always)]
    fn store(self, x: &mut [f32], v: Self::F32) {
        debug_assert!(x.len() >= LANES);
        // SAFETY: as in `load`.
        unsafe { self.store_ptr(x.as_mut_ptr(), v) }
    }
    /// Up to 16 elements; missing lanes are zero.
    #[inline(always)]
    fn load_part(self, x: &[f32]) -> Self::F32 {
        if x.len() >= LANES {
            return self.load(x);
        }
        let mut lanes = [0.0; LANES];
        lanes[..x.len()].copy_from_slice(x);
        self.load(&lanes)
    }
    /// Writes the first `min(16, x.len())` lanes.
    #[inline(always)]
    fn store_part(self, x: &mut [f32], v: Self::F32) {
        if x.len() >= LANES {
            return self.store(x, v);
        }
        let mut lanes = [0.0; LANES];
        self.store(&mut lanes, v);
        let n = x.len();
        x.copy_from_slice(&lanes[..n]);
    }
    /// The lanes as an array.
    #[inline(always)]
    fn to_array(self, v: Self::F32) -> [f32; LANES] {
        let mut lanes = [0.0; LANES];
        self.store(&mut lanes, v);
        lanes
    }
}

/// Asks for the cache line at `p` to be brought into the first-level cache. Any address
/// will do.
#[inline(always)]
pub fn prefetch<T>(p: *const T) {
    // SAFETY: a prefetch of any address has no effect but on the caches; SSE is part of
    // x86-64.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(p.cast()) }
}

/// Asks for the cache line at `p` to be brought into the second-level cache: for data that
/// comes from memory, of which much must be on the way. Any address will do.
#[inline(always)]
pub fn prefetch_far<T>(p: *const T) {
    // SAFETY: as in `prefetch`.
    unsafe { _mm_prefetch::<_MM_HINT_T1>(p.cast()) }
}

/// Plain Rust, for any x86-64 CPU.
#[derive(Clone, Copy, Debug)]
pub struct Scalar;

impl Simd for Scalar {
    type F32 = [f32; LANES];
    type Part = [f32; 4];
    const PARTS: usize = 4;
    const NAME: &'static str = "scalar";
    const FUSED: bool = false;

    #[inline(always)]
    fn run<R>(self, f: impl FnOnce() -> R) -> R {
        f()
    }
    #[inline(always)]
    fn splat(self, x: f32) -> Self::F32 {
        [x; LANES]
    }
    #[inline(always)]
    unsafe fn load_ptr(self, x: *const f32) -> Self::F32 {
        // SAFETY: 16 readable elements, by the contract; an array has its element's layout.
        unsafe { x.cast::<[f32; LANES]>().read_unaligned() }
    }
    #[inline(always)]
    unsafe fn load_bf16_ptr(self, x: *const bf16) -> Self::F32 {
        // SAFETY: as above.
        unsafe { x.cast::<[bf16; LANES]>().read_unaligned() }
            .map(|v| f32::from_bits(u32::from(v.to_bits()) << 16))
    }
    #[inline(always)]
    unsafe fn load_f16_ptr(self, x: *const f16) -> Self::F32 {
        // SAFETY: as above.
        unsafe { x.cast::<[f16; LANES]>().read_unaligned() }.map(f16::to_f32_const)
    }
    #[inline(always)]
    unsafe fn store_ptr(self, x: *mut f32, v: Self::F32) {
        // SAFETY: 16 writable elements, by the contract.
        unsafe { x.cast::<[f32; LANES]>().write_unaligned(v) }
    }
    #[inline(always)]
    unsafe fn store_f16_ptr(self, x: *mut f16, v: Self::F32) {
        // SAFETY: 16 writable elements, by the contract.
        unsafe { x.cast::<[f16; LANES]>().write_unaligned(v.map(f16::from_f32_const)) }
    }
    #[inline(always)]
    fn add(self, a: Self::F32, b: Self::F32) -> Self::F32 {
        std::array::from_fn(|i| a[i] + b[i])
    }
    #[inline(always)]
    fn sub(self, a: Self::F32, b: Self::F32) -> Self::F32 {
        std::array::from_fn(|i| a[i] - b[i])
    }
    #[inline(always)]
    fn mul(self, a: Self::F32, b: Self::F32) -> Self::F32 {
        std::array::from_fn(|i| a[i] * b[i])
    }
    #[inline(always)]
    fn div(self, a: Self::F32, b: Self::F32) -> Self::F32 {
        std::array::from_fn(|i| a[i] / b[i])
    }
    #[inline(always)]
    fn mul_add(self, a: Self::F32, b: Self::F32, c: Self::F32) -> Self::F32 {
        // Not `f32::mul_add`: without FMA in the CPU that is a slow library call.
        std::array::from_fn(|i| a[i] * b[i] + c[i])
    }
    #[inline(always)]
    fn max(self, a: Self::F32, b: Self::F32) -> Self::F32 {
        // The operand order of MAXPS: the second one when either is NaN.
        std::array::from_fn(|i| if a[i] > b[i] { a[i] } else { b[i] })
    }
    #[inline(always)]
    fn min(self, a: Self::F32, b: Self::F32) -> Self::F32 {
        std::array::from_fn(|i| if a[i] < b[i] { a[i] } else { b[i] })
    }
    #[inline(always)]
    fn round(self, a: Self::F32) -> Self::F32 {
        a.map(f32::round_ties_even)
    }
    #[inline(always)]
    fn exp2_int(self, a: Self::F32) -> Self::F32 {
        a.map(|x| f32::from_bits(((x as i32 + 127) << 23) as u32))
    }
    #[inline(always)]
    fn sum(self, a: Self::F32) -> f32 {
        let b: [f32; 8] = std::array::from_fn(|i| a[i] + a[i + 8]);
        let c: [f32; 4] = std::array::from_fn(|i| b[i] + b[i + 4]);
        (c[0] + c[2]) + (c[1] + c[3])
    }
    #[inline(always)]
    fn max_lane(self, a: Self::F32) -> f32 {
        a.into_iter().fold(f32::NEG_INFINITY, |m, x| if x > m { x } else { m })
    }
    #[inline(always)]
    fn part_zero(self) -> Self::Part {
        [0.0; 4]
    }
    #[inline(always)]
    unsafe fn part_load_ptr(self, x: *const f32) -> Self::Part {
        // SAFETY: 4 readable elements, by the contract.
        unsafe { x.cast::<[f32; 4]>().read_unaligned() }
    }
    #[inline(always)]
    fn part_mul_add(self, a: Self::Part, b: Self::Part, c: Self::Part) -> Self::Part {
        std::array::from_fn(|i| a[i] * b[i] + c[i])
    }
    #[inline(always)]
    fn join(self, part: impl Fn(usize) -> Self::Part) -> Self::F32 {
        let parts: [Self::Part; 4] = std::array::from_fn(part);
        std::array::from_fn(|i| parts[i / 4][i % 4])
    }
}

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
fn sum8(v: __m256) -> f32 {
    let c = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps::<1>(v));
    let d = _mm_add_ps(c, _mm_movehl_ps(c, c));
    _mm_cvtss_f32(_mm_add_ss(d, _mm_shuffle_ps::<1>(d, d)))
}

// SAFETY of all blocks in this impl: an `Avx2` exists only where `detect` has found the
// instructions; pointers are valid by the contracts of the trait.
#[allow(clippy::undocumented_unsafe_blocks)]
impl Simd for Avx2 {
    type F32 = (__m256, __m256);
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
    unsafe fn store_ptr(self, x: *mut f32, v: Self::F32) {
        unsafe {
            _mm256_storeu_ps(x, v.0);
            _mm256_storeu_ps(x.add(8), v.1);
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
    unsafe fn store_ptr(self, x: *mut f32, v: Self::F32) {
        unsafe { _mm512_storeu_ps(x, v) }
    }
    #[inline(always)]
    unsafe fn store_f16_ptr(self, x: *mut f16, v: Self::F32) {
        unsafe {
            _mm256_storeu_si256(x.cast(), _mm512_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(v));
        }
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

/// The instruction set that computes, chosen once.
#[derive(Clone, Copy, Debug)]
pub enum Isa {
    /// Any x86-64 CPU.
    Scalar(Scalar),
    /// AVX2 with FMA.
    Avx2(Avx2),
    /// AVX-512.
    Avx512(Avx512),
}

impl Isa {
    /// The widest one this CPU has.
    pub fn best() -> Self {
        if let Some(isa) = Avx512::detect() {
            Self::Avx512(isa)
        } else if let Some(isa) = Avx2::detect() {
            Self::Avx2(isa)
        } else {
            Self::Scalar(Scalar)
        }
    }

    /// All that this CPU has, `scalar` first.
    pub fn available() -> impl Iterator<Item = Self> {
        [
            Some(Self::Scalar(Scalar)),
            Avx2::detect().map(Self::Avx2),
            Avx512::detect().map(Self::Avx512),
        ]
        .into_iter()
        .flatten()
    }

    /// The one called `name` (`scalar`, `avx2`, `avx512`).
    ///
    /// # Errors
    /// `InvalidArgument` for an unknown name, `Unsupported` when this CPU lacks it.
    pub fn named(name: &str) -> Result<Self> {
        let found = match name {
            Scalar::NAME => Some(Self::Scalar(Scalar)),
            Avx2::NAME => Avx2::detect().map(Self::Avx2),
            Avx512::NAME => Avx512::detect().map(Self::Avx512),
            _ => {
                return Err(Error::invalid_argument(format!(
                    "instruction set {name:?}: expected scalar, avx2 or avx512"
                )));
            }
        };
        found.ok_or_else(|| Error::unsupported(format!("this CPU has no {name}")))
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Scalar(_) => Scalar::NAME,
            Self::Avx2(_) => Avx2::NAME,
            Self::Avx512(_) => Avx512::NAME,
        }
    }
}

/// Runs an expression once for the instruction set in an [`Isa`], with `$s` bound to the
/// [`Simd`] value and the code compiled for it: `dispatch!(isa, s => sum_of(s, x))`.
/// The functions called must be `#[inline(always)]` to be compiled for it too.
#[macro_export]
macro_rules! dispatch {
    ($isa:expr, $s:ident => $body:expr) => {
        match $isa {
            $crate::kernels::simd::Isa::Scalar($s) => $body,
            $crate::kernels::simd::Isa::Avx2($s) => $crate::kernels::simd::Simd::run(
                $s,
                #[inline(always)]
                || $body,
            ),
            $crate::kernels::simd::Isa::Avx512($s) => $crate::kernels::simd::Simd::run(
                $s,
                #[inline(always)]
                || $body,
            ),
        }
    };
}
