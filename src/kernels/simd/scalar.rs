//! Plain Rust.
#![allow(unsafe_code)]

use half::{bf16, f16};

use super::{LANES, Simd};

/// Plain Rust, for any x86-64 CPU.
#[derive(Clone, Copy, Debug)]
pub struct Scalar;

impl Simd for Scalar {
    type F32 = [f32; LANES];
    type Integers = i32;
    type Part = [f32; 4];
    const PARTS: usize = 4;
    const NAME: &'static str = "scalar";
    const FUSED: bool = false;

    #[inline(always)]
    fn run<R>(self, f: impl FnOnce() -> R) -> R {
        f()
    }
    #[inline(always)]
    fn run_alone<R>(self, f: impl FnOnce() -> R) -> R {
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
    unsafe fn load_i8_ptr(self, x: *const i8) -> Self::F32 {
        // SAFETY: as above.
        unsafe { x.cast::<[i8; LANES]>().read_unaligned() }.map(f32::from)
    }
    #[inline(always)]
    unsafe fn store_ptr(self, x: *mut f32, v: Self::F32) {
        // SAFETY: 16 writable elements, by the contract.
        unsafe { x.cast::<[f32; LANES]>().write_unaligned(v) }
    }
    #[inline(always)]
    unsafe fn stream_ptr(self, x: *mut f32, v: Self::F32) {
        // SAFETY: as above.
        unsafe { self.store_ptr(x, v) }
    }
    #[inline(always)]
    unsafe fn store_f16_ptr(self, x: *mut f16, v: Self::F32) {
        // SAFETY: 16 writable elements, by the contract.
        unsafe { x.cast::<[f16; LANES]>().write_unaligned(v.map(f16::from_f32_const)) }
    }
    #[inline(always)]
    unsafe fn store_i8_ptr(self, x: *mut i8, v: Self::F32) {
        // Added to this, an integer is in the lowest bits of the sum.
        let bytes = v.map(|v| (v + 12_582_912.0).to_bits() as i8);
        // SAFETY: 16 writable elements, by the contract.
        unsafe { x.cast::<[i8; LANES]>().write_unaligned(bytes) }
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
    fn integers_zero(self) -> Self::Integers {
        0
    }
    #[inline(always)]
    unsafe fn integers_mul_add(
        self,
        a: *const i8,
        b: *const i16,
        sums: Self::Integers,
    ) -> Self::Integers {
        // SAFETY: 32 readable elements each, by the contract.
        let (a, b) = unsafe {
            (
                a.cast::<[i8; 2 * LANES]>().read_unaligned(),
                b.cast::<[i16; 2 * LANES]>().read_unaligned(),
            )
        };
        let mut sum = sums;
        for k in 0..2 * LANES {
            sum += i32::from(a[k]) * i32::from(b[k]);
        }
        sum
    }
    #[inline(always)]
    fn integers_sum(self, sums: Self::Integers) -> i32 {
        sums
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
