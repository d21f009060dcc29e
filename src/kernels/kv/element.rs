//! The storage formats of keys and values.
#![allow(unsafe_code)]

use half::f16;

use super::super::buffer::Plain;
use super::super::simd::{LANES, Simd};

/// A storage format of keys and values.
pub(in crate::kernels) trait Element: Plain {
    /// All zero bits.
    const ZERO: Self;
    /// Whether an element stands for itself times the scale of its token and head.
    const SCALED: bool;

    /// Sixteen elements, without their scales.
    ///
    /// # Safety
    /// `p` points to 16 readable elements.
    unsafe fn load<S: Simd>(s: S, p: *const Self) -> S::F32;
    /// Writes sixteen elements; `inverse` is the second of [`Element::scale_of`].
    ///
    /// # Safety
    /// `p` points to 16 writable elements.
    unsafe fn store<S: Simd>(s: S, p: *mut Self, v: S::F32, inverse: f32);

    /// The scale for a row, and what its elements are multiplied by to be stored.
    #[inline(always)]
    fn scale_of<S: Simd>(_: S, _row: &[f32]) -> (f32, f32) {
        (1.0, 1.0)
    }
}

impl Element for f32 {
    const ZERO: Self = 0.0;
    const SCALED: bool = false;
    #[inline(always)]
    unsafe fn load<S: Simd>(s: S, p: *const Self) -> S::F32 {
        // SAFETY: the caller's contract.
        unsafe { s.load_ptr(p) }
    }
    #[inline(always)]
    unsafe fn store<S: Simd>(s: S, p: *mut Self, v: S::F32, _: f32) {
        // SAFETY: the caller's contract.
        unsafe { s.store_ptr(p, v) }
    }
}

impl Element for f16 {
    const ZERO: Self = f16::ZERO;
    const SCALED: bool = false;
    #[inline(always)]
    unsafe fn load<S: Simd>(s: S, p: *const Self) -> S::F32 {
        // SAFETY: the caller's contract.
        unsafe { s.load_f16_ptr(p) }
    }
    #[inline(always)]
    unsafe fn store<S: Simd>(s: S, p: *mut Self, v: S::F32, _: f32) {
        // An infinity in the cache would turn the masked products of earlier rows into NaN.
        // The operand order lets NaN through.
        let max = s.splat(f16::MAX.to_f32_const());
        let min = s.splat(f16::MIN.to_f32_const());
        let v = s.max(min, s.min(max, v));
        // SAFETY: the caller's contract.
        unsafe { s.store_f16_ptr(p, v) }
    }
}

/// The largest magnitude of an 8-bit element.
const I8_MAX: f32 = 127.0;
/// Rows of smaller magnitudes become zeros: the inverse of their scale might overflow.
const I8_SMALLEST: f32 = 1e-30;

impl Element for i8 {
    const ZERO: Self = 0;
    const SCALED: bool = true;
    #[inline(always)]
    unsafe fn load<S: Simd>(s: S, p: *const Self) -> S::F32 {
        // SAFETY: the caller's contract.
        unsafe { s.load_i8_ptr(p) }
    }
    #[inline(always)]
    unsafe fn store<S: Simd>(s: S, p: *mut Self, v: S::F32, inverse: f32) {
        let max = s.splat(I8_MAX);
        let min = s.splat(-I8_MAX);
        // The operand order makes NaN, whose scale is NaN too, a number here.
        let v = s.max(s.min(s.mul(v, s.splat(inverse)), max), min);
        let lanes = s.to_array(s.round(v));
        // SAFETY: the caller's contract.
        let to = unsafe { std::slice::from_raw_parts_mut(p, LANES) };
        for (to, lane) in to.iter_mut().zip(lanes) {
            *to = lane as i8;
        }
    }
    #[inline(always)]
    fn scale_of<S: Simd>(s: S, row: &[f32]) -> (f32, f32) {
        let zero = s.splat(0.0);
        let (mut largest, mut unsound) = (zero, zero);
        for part in row.chunks(LANES) {
            let v = s.load_part(part);
            largest = s.max(largest, s.max(v, s.sub(zero, v)));
            // What is not finite is NaN times zero, and stays so in the sum.
            unsound = s.mul_add(v, zero, unsound);
        }
        let largest = s.max_lane(largest);
        if s.sum(unsound) != 0.0 {
            return (f32::NAN, 0.0);
        }
        if largest < I8_SMALLEST {
            return (0.0, 0.0);
        }
        (largest / I8_MAX, I8_MAX / largest)
    }
}
