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
//!
//! Everything below `run` has to be inlined into it: `#[inline(always)]` functions and plain
//! loops. A closure handed to `array::from_fn`, `map` or `fold` may be compiled on its own,
//! without the instruction set, and then each operation in it is a function call. Whether
//! that happened is easily seen: `nm -C libqwen35.so | grep core_arch` lists `_xgetbv` alone.
#![allow(unsafe_code)]

mod avx2;
mod avx512;
mod scalar;

use std::arch::x86_64::{_MM_HINT_T0, _MM_HINT_T1, _mm_prefetch, _mm_sfence};

use half::{bf16, f16};

pub use avx2::Avx2;
pub use avx512::Avx512;
pub use scalar::Scalar;

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
    /// Sums of products of integers, in any number of 32-bit lanes.
    type Integers: Copy;
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
    /// As [`Simd::run`], in a function of its own: for a loop that fills all registers, some of
    /// which a compiler keeps for what is around it otherwise.
    fn run_alone<R>(self, f: impl FnOnce() -> R) -> R;

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
    /// Sixteen integers of 8 bits, widened.
    ///
    /// # Safety
    /// `x` points to 16 readable elements, of any alignment.
    unsafe fn load_i8_ptr(self, x: *const i8) -> Self::F32;
    /// Writes the lanes to `x[0..16]`.
    ///
    /// # Safety
    /// `x` points to 16 writable elements, of any alignment.
    unsafe fn store_ptr(self, x: *mut f32, v: Self::F32);
    /// Writes the lanes to `x[0..16]` past the caches, where the instruction set can. To be
    /// followed by a [`fence`] before anyone else is told about the data.
    ///
    /// # Safety
    /// `x` points to 16 writable elements, aligned to 64 bytes.
    unsafe fn stream_ptr(self, x: *mut f32, v: Self::F32);
    /// Writes the lanes, rounded to nearest even, as F16.
    ///
    /// # Safety
    /// `x` points to 16 writable elements, of any alignment.
    unsafe fn store_f16_ptr(self, x: *mut f16, v: Self::F32);

    /// Writes the lanes, integers from -128 to 127, as bytes.
    ///
    /// # Safety
    /// `x` points to 16 writable elements.
    unsafe fn store_i8_ptr(self, x: *mut i8, v: Self::F32);

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
    /// `a * 2^n`, rounded once, for `a` about 1 and integral `n` in -151..=128.
    #[inline(always)]
    fn scale_by_exp2(self, a: Self::F32, n: Self::F32) -> Self::F32 {
        // In two factors, as one would not be a number. Only the second can round.
        let half = self.round(self.mul(n, self.splat(0.5)));
        self.mul(self.mul(a, self.exp2_int(half)), self.exp2_int(self.sub(n, half)))
    }
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

    /// Sums that are zero.
    fn integers_zero(self) -> Self::Integers;
    /// Adds the products of 32 pairs to `sums`. The caller sees to it that no lane overflows.
    ///
    /// # Safety
    /// `a` and `b` point to 32 readable elements, of any alignment.
    unsafe fn integers_mul_add(
        self,
        a: *const i8,
        b: *const i16,
        sums: Self::Integers,
    ) -> Self::Integers;
    /// The sum of the lanes.
    fn integers_sum(self, sums: Self::Integers) -> i32;

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

/// Orders the writes of [`Simd::stream_ptr`] before all later ones.
#[inline(always)]
pub fn fence() {
    // SAFETY: part of every x86-64 CPU.
    unsafe { _mm_sfence() }
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
