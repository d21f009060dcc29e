//! The element types of weights.

use half::{bf16, f16};

use crate::kernels::simd::{LANES, Simd};

/// A type that weights are stored in.
pub(super) trait Element: Copy {
    const ZERO: Self;

    /// Sixteen elements, widened.
    ///
    /// # Safety
    /// `p` points to 16 readable elements, of any alignment.
    unsafe fn load<S: Simd>(s: S, p: *const Self) -> S::F32;

    /// Up to sixteen elements, widened; missing lanes are zero.
    #[inline(always)]
    fn load_part<S: Simd>(s: S, w: &[Self]) -> S::F32 {
        let mut whole = [Self::ZERO; LANES];
        let n = w.len().min(LANES);
        whole[..n].copy_from_slice(&w[..n]);
        // SAFETY: a whole array.
        unsafe { Self::load(s, whole.as_ptr()) }
    }
}

impl Element for f32 {
    const ZERO: Self = 0.0;
    #[inline(always)]
    unsafe fn load<S: Simd>(s: S, p: *const Self) -> S::F32 {
        // SAFETY: by the contract.
        unsafe { s.load_ptr(p) }
    }
}

impl Element for bf16 {
    const ZERO: Self = bf16::ZERO;
    #[inline(always)]
    unsafe fn load<S: Simd>(s: S, p: *const Self) -> S::F32 {
        // SAFETY: by the contract.
        unsafe { s.load_bf16_ptr(p) }
    }
}

impl Element for f16 {
    const ZERO: Self = f16::ZERO;
    #[inline(always)]
    unsafe fn load<S: Simd>(s: S, p: *const Self) -> S::F32 {
        // SAFETY: by the contract.
        unsafe { s.load_f16_ptr(p) }
    }
}
