//! AVX-VNNI: the dot products of VNNI in 256 bits, on CPUs without AVX-512.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use super::avx2::joined_bytes;
use super::{Avx2Dots, Dots};
use crate::kernels::simd::Avx2;

/// AVX-VNNI and AVX2.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AvxVnni(Avx2Dots);

impl AvxVnni {
    /// The proof, if this CPU has AVX-VNNI and AVX2.
    pub fn detect() -> Option<Self> {
        let avx2 = Avx2::detect()?;
        is_x86_feature_detected!("avxvnni").then_some(Self(Avx2Dots(avx2)))
    }
}

// SAFETY of all blocks in this impl: an `AvxVnni` exists only where `detect` has found the
// instructions; pointers are valid by the contracts of the trait.
#[allow(clippy::undocumented_unsafe_blocks)]
impl Dots for AvxVnni {
    type Simd = Avx2;
    const ROWS: usize = 8;
    const SINGLE: usize = 4;
    const PANEL: (usize, usize) = (2, 3);
    const PANEL_COLUMNS: usize = 4;
    type Quads = __m256i;
    type Bytes = __m256i;
    type Sums8 = __m256i;
    type Sums4 = __m256i;
    type F32 = __m256;
    type PanelWeight = u8;
    type PanelInput = i8;
    type PanelWeights = Self::Bytes;
    type PanelInputs = Self::Quads;

    #[inline(always)]
    fn simd(self) -> Avx2 {
        self.0.simd()
    }
    #[inline(always)]
    fn run<R>(self, f: impl FnOnce() -> R) -> R {
        #[target_feature(enable = "avx2,fma,f16c,avxvnni")]
        fn enter<R>(f: impl FnOnce() -> R) -> R {
            f()
        }
        unsafe { enter(f) }
    }
    #[inline(always)]
    unsafe fn inputs(self, p: *const i8) -> Self::Quads {
        unsafe { self.0.inputs(p) }
    }
    #[inline(always)]
    unsafe fn bytes(self, p: *const u8) -> Self::Bytes {
        unsafe { _mm256_loadu_si256(p.cast()) }
    }
    #[inline(always)]
    unsafe fn nibbles(self, p: *const u8) -> [Self::Quads; 2] {
        unsafe { self.0.nibbles(p) }
    }
    #[inline(always)]
    unsafe fn quarters(self, p: *const u8) -> [Self::Quads; 4] {
        unsafe { self.0.quarters(p) }
    }
    #[inline(always)]
    unsafe fn join8(self, first: *const u8, rest: *const u8) -> [Self::Bytes; 2] {
        unsafe { joined_bytes(first, rest) }
    }
    #[inline(always)]
    unsafe fn join4(self, first: *const u8, rest: *const u8) -> [Self::Quads; 4] {
        unsafe { self.0.join4(first, rest) }
    }
    #[inline(always)]
    unsafe fn start8(self, p: *const i32) -> Self::Sums8 {
        unsafe { _mm256_set1_epi32(p.read_unaligned()) }
    }
    #[inline(always)]
    fn dot8(self, sums: Self::Sums8, w: Self::Bytes, x: Self::Quads) -> Self::Sums8 {
        unsafe { _mm256_dpbusd_avx_epi32(sums, w, x) }
    }
    #[inline(always)]
    fn finish8(self, sums: Self::Sums8) -> Self::F32 {
        unsafe { _mm256_cvtepi32_ps(sums) }
    }
    #[inline(always)]
    unsafe fn start4(self, p: *const i32) -> Self::Sums4 {
        unsafe { _mm256_set1_epi32(p.read_unaligned()) }
    }
    #[inline(always)]
    fn dot4(self, sums: Self::Sums4, w: Self::Quads, x: Self::Quads) -> Self::Sums4 {
        unsafe { _mm256_dpbusd_avx_epi32(sums, w, x) }
    }
    #[inline(always)]
    unsafe fn finish4(self, sums: Self::Sums4, _: *const i32) -> Self::F32 {
        unsafe { _mm256_cvtepi32_ps(sums) }
    }
    #[inline(always)]
    unsafe fn fill_panel(self, stored: *const u8, to: *mut u8, _: usize) {
        unsafe { to.copy_from_nonoverlapping(stored, 32) }
    }
    #[inline(always)]
    fn panel_input(x: i8) -> i8 {
        x
    }
    #[inline(always)]
    unsafe fn panel_weights(self, p: *const u8) -> Self::PanelWeights {
        unsafe { self.bytes(p) }
    }
    #[inline(always)]
    unsafe fn panel_inputs(self, p: *const i8) -> Self::PanelInputs {
        unsafe { self.inputs(p) }
    }
    #[inline(always)]
    fn panel_dot(
        self,
        sums: Self::Sums8,
        w: Self::PanelWeights,
        x: Self::PanelInputs,
    ) -> Self::Sums8 {
        self.dot8(sums, w, x)
    }
    #[inline(always)]
    fn zero(self) -> Self::F32 {
        self.0.zero()
    }
    #[inline(always)]
    unsafe fn load(self, p: *const f32) -> Self::F32 {
        unsafe { self.0.load(p) }
    }
    #[inline(always)]
    unsafe fn same(self, p: *const f32) -> Self::F32 {
        unsafe { self.0.same(p) }
    }
    #[inline(always)]
    unsafe fn scales(self, p: *const u8) -> Self::F32 {
        unsafe { self.0.scales(p) }
    }
    #[inline(always)]
    unsafe fn scaled(self, a: Self::F32, p: *const f32) -> Self::F32 {
        unsafe { self.0.scaled(a, p) }
    }
    #[inline(always)]
    fn mul_add(self, a: Self::F32, b: Self::F32, c: Self::F32) -> Self::F32 {
        self.0.mul_add(a, b, c)
    }
    #[inline(always)]
    unsafe fn store(self, p: *mut f32, v: Self::F32) {
        unsafe { self.0.store(p, v) }
    }
}
