//! AVX-512 VNNI: one instruction multiplies a line of weights with four inputs.
#![allow(unsafe_code)]

use std::arch::asm;
use std::arch::x86_64::*;

use super::Dots;
use crate::kernels::simd::Avx512;

/// AVX-512 with VNNI.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Avx512Vnni(Avx512);

impl Avx512Vnni {
    /// The proof, if this CPU has AVX-512 with VNNI.
    pub fn detect() -> Option<Self> {
        let avx512 = Avx512::detect()?;
        is_x86_feature_detected!("avx512vnni").then_some(Self(avx512))
    }
}

/// The bits of `a` where those of `mask` are set, else those of `b`.
///
/// # Safety
/// The CPU has AVX-512.
#[inline(always)]
unsafe fn select(mask: __m512i, a: __m512i, b: __m512i) -> __m512i {
    // SAFETY: by the contract.
    unsafe { _mm512_ternarylogic_epi64::<0xca>(mask, a, b) }
}

/// `sums`, of which the compiler does not know that it is the same.
///
/// # Safety
/// The CPU has AVX-512.
#[target_feature(enable = "avx512f")]
#[inline]
unsafe fn in_order(mut sums: __m512i) -> __m512i {
    // SAFETY: no instruction. Such blocks stay in their order.
    unsafe {
        asm!("/* {0} */", inout(zmm_reg) sums, options(nomem, nostack, preserves_flags));
    }
    sums
}

// SAFETY of all blocks in this impl: an `Avx512Vnni` exists only where `detect` has found
// the instructions; pointers are valid by the contracts of the trait.
#[allow(clippy::undocumented_unsafe_blocks)]
impl Dots for Avx512Vnni {
    type Simd = Avx512;
    const ROWS: usize = 16;
    const SINGLE: usize = 8;
    const PANEL: (usize, usize) = (4, 3);
    const PANEL_COLUMNS: usize = 4;
    type Quads = __m512i;
    type Bytes = __m512i;
    type Sums8 = __m512i;
    type Sums4 = __m512i;
    type F32 = __m512;
    type PanelWeight = u8;
    type PanelInput = i8;
    type PanelWeights = Self::Bytes;
    type PanelInputs = Self::Quads;

    #[inline(always)]
    fn simd(self) -> Avx512 {
        self.0
    }
    #[inline(always)]
    fn run<R>(self, f: impl FnOnce() -> R) -> R {
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx2,fma,f16c")]
        fn enter<R>(f: impl FnOnce() -> R) -> R {
            f()
        }
        unsafe { enter(f) }
    }
    #[inline(always)]
    unsafe fn inputs(self, p: *const i8) -> Self::Quads {
        unsafe { _mm512_set1_epi32(p.cast::<i32>().read_unaligned()) }
    }
    #[inline(always)]
    unsafe fn bytes(self, p: *const u8) -> Self::Bytes {
        unsafe { _mm512_loadu_si512(p.cast()) }
    }
    #[inline(always)]
    unsafe fn nibbles(self, p: *const u8) -> [Self::Quads; 2] {
        unsafe {
            let both = _mm512_loadu_si512(p.cast());
            let mask = _mm512_set1_epi8(15);
            let high = _mm512_and_si512(_mm512_srli_epi16::<4>(both), mask);
            [_mm512_and_si512(both, mask), high]
        }
    }
    #[inline(always)]
    unsafe fn quarters(self, p: *const u8) -> [Self::Quads; 4] {
        unsafe {
            let (all, mask) = (_mm512_loadu_si512(p.cast()), _mm512_set1_epi8(3));
            [
                _mm512_and_si512(all, mask),
                _mm512_and_si512(_mm512_srli_epi16::<2>(all), mask),
                _mm512_and_si512(_mm512_srli_epi16::<4>(all), mask),
                _mm512_and_si512(_mm512_srli_epi16::<6>(all), mask),
            ]
        }
    }
    #[inline(always)]
    unsafe fn join8(self, first: *const u8, rest: *const u8) -> [Self::Bytes; 2] {
        unsafe {
            let (first, rest) = (_mm512_loadu_si512(first.cast()), _mm512_loadu_si512(rest.cast()));
            let low = _mm512_set1_epi8(15);
            [
                select(low, rest, _mm512_slli_epi16::<4>(first)),
                select(low, _mm512_srli_epi16::<4>(rest), first),
            ]
        }
    }
    #[inline(always)]
    unsafe fn join4(self, first: *const u8, rest: *const u8) -> [Self::Quads; 4] {
        unsafe {
            let (first, rest) = (_mm512_loadu_si512(first.cast()), _mm512_loadu_si512(rest.cast()));
            let (low, mask) = (_mm512_set1_epi8(0x33), _mm512_set1_epi8(15));
            let a = select(low, rest, _mm512_slli_epi16::<2>(first));
            let b = select(low, _mm512_srli_epi16::<2>(rest), first);
            [
                _mm512_and_si512(a, mask),
                _mm512_and_si512(b, mask),
                _mm512_and_si512(_mm512_srli_epi16::<4>(a), mask),
                _mm512_and_si512(_mm512_srli_epi16::<4>(b), mask),
            ]
        }
    }
    #[inline(always)]
    unsafe fn start8(self, p: *const i32) -> Self::Sums8 {
        unsafe { _mm512_set1_epi32(p.read_unaligned()) }
    }
    #[inline(always)]
    fn dot8(self, sums: Self::Sums8, w: Self::Bytes, x: Self::Quads) -> Self::Sums8 {
        unsafe { _mm512_dpbusd_epi32(sums, w, x) }
    }
    #[inline(always)]
    fn finish8(self, sums: Self::Sums8) -> Self::F32 {
        unsafe { _mm512_cvtepi32_ps(sums) }
    }
    #[inline(always)]
    unsafe fn start4(self, p: *const i32) -> Self::Sums4 {
        unsafe { _mm512_set1_epi32(p.read_unaligned()) }
    }
    #[inline(always)]
    fn dot4(self, sums: Self::Sums4, w: Self::Quads, x: Self::Quads) -> Self::Sums4 {
        unsafe { _mm512_dpbusd_epi32(sums, w, x) }
    }
    #[inline(always)]
    unsafe fn finish4(self, sums: Self::Sums4, _: *const i32) -> Self::F32 {
        unsafe { _mm512_cvtepi32_ps(sums) }
    }
    #[inline(always)]
    fn in_order8(self, sums: Self::Sums8) -> Self::Sums8 {
        unsafe { in_order(sums) }
    }
    #[inline(always)]
    fn in_order4(self, sums: Self::Sums4) -> Self::Sums4 {
        unsafe { in_order(sums) }
    }
    #[inline(always)]
    unsafe fn fill_panel(self, stored: *const u8, to: *mut u8, _: usize) {
        unsafe { to.copy_from_nonoverlapping(stored, 64) }
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
        unsafe { _mm512_setzero_ps() }
    }
    #[inline(always)]
    unsafe fn load(self, p: *const f32) -> Self::F32 {
        unsafe { _mm512_loadu_ps(p) }
    }
    #[inline(always)]
    unsafe fn same(self, p: *const f32) -> Self::F32 {
        unsafe { _mm512_set1_ps(p.read_unaligned()) }
    }
    #[inline(always)]
    unsafe fn scales(self, p: *const u8) -> Self::F32 {
        unsafe { _mm512_cvtph_ps(_mm256_loadu_si256(p.cast())) }
    }
    #[inline(always)]
    unsafe fn scaled(self, a: Self::F32, p: *const f32) -> Self::F32 {
        unsafe { _mm512_mul_ps(a, _mm512_set1_ps(p.read_unaligned())) }
    }
    #[inline(always)]
    fn mul_add(self, a: Self::F32, b: Self::F32, c: Self::F32) -> Self::F32 {
        unsafe { _mm512_fmadd_ps(a, b, c) }
    }
    #[inline(always)]
    unsafe fn store(self, p: *mut f32, v: Self::F32) {
        unsafe { _mm512_storeu_ps(p, v) }
    }
}
