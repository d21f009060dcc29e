//! Plain Rust: the definition that the other instruction sets are tested against.
#![allow(unsafe_code)]

use half::f16;

use super::super::layout::{join4, join8};
use super::Dots;
use crate::kernels::simd::{Scalar, Simd};

/// Plain Rust.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScalarDots(pub Scalar);

const ROWS: usize = 16;

// SAFETY of all blocks in this impl: pointers are valid by the contracts of the trait.
#[allow(clippy::undocumented_unsafe_blocks)]
impl Dots for ScalarDots {
    type Simd = Scalar;
    const ROWS: usize = ROWS;
    const SINGLE: usize = 1;
    const PANEL: (usize, usize) = (1, 1);
    const PANEL_COLUMNS: usize = 4;
    type Quads = [u8; 4 * ROWS];
    type Bytes = [u8; 4 * ROWS];
    type Sums8 = [i32; ROWS];
    type Sums4 = [i32; ROWS];
    type F32 = [f32; ROWS];
    type PanelWeight = u8;
    type PanelInput = i8;
    type PanelWeights = Self::Bytes;
    type PanelInputs = Self::Quads;

    fn simd(self) -> Scalar {
        self.0
    }
    #[inline(always)]
    fn run<R>(self, f: impl FnOnce() -> R) -> R {
        self.0.run(f)
    }
    #[inline(always)]
    unsafe fn inputs(self, p: *const i8) -> Self::Quads {
        let quad = unsafe { p.cast::<[u8; 4]>().read_unaligned() };
        std::array::from_fn(|i| quad[i % 4])
    }
    #[inline(always)]
    unsafe fn bytes(self, p: *const u8) -> Self::Bytes {
        unsafe { p.cast::<Self::Bytes>().read_unaligned() }
    }
    #[inline(always)]
    unsafe fn nibbles(self, p: *const u8) -> [Self::Quads; 2] {
        let both = unsafe { p.cast::<Self::Quads>().read_unaligned() };
        [both.map(|b| b & 15), both.map(|b| b >> 4)]
    }
    #[inline(always)]
    unsafe fn quarters(self, p: *const u8) -> [Self::Quads; 4] {
        let all = unsafe { p.cast::<Self::Quads>().read_unaligned() };
        [all.map(|b| b & 3), all.map(|b| b >> 2 & 3), all.map(|b| b >> 4 & 3), all.map(|b| b >> 6)]
    }
    #[inline(always)]
    unsafe fn join8(self, first: *const u8, rest: *const u8) -> [Self::Bytes; 2] {
        let (first, rest) = unsafe { (self.bytes(first), self.bytes(rest)) };
        let both: [[u8; 2]; 4 * ROWS] = std::array::from_fn(|i| join8(first[i], rest[i]));
        [both.map(|b| b[0]), both.map(|b| b[1])]
    }
    #[inline(always)]
    unsafe fn join4(self, first: *const u8, rest: *const u8) -> [Self::Quads; 4] {
        let (first, rest) = unsafe { (self.bytes(first), self.bytes(rest)) };
        let both: [[u8; 2]; 4 * ROWS] = std::array::from_fn(|i| join4(first[i], rest[i]));
        let (a, b) = (both.map(|b| b[0]), both.map(|b| b[1]));
        [a.map(|b| b & 15), b.map(|b| b & 15), a.map(|b| b >> 4), b.map(|b| b >> 4)]
    }
    #[inline(always)]
    unsafe fn start8(self, p: *const i32) -> Self::Sums8 {
        [unsafe { p.read_unaligned() }; ROWS]
    }
    #[inline(always)]
    fn dot8(self, mut sums: Self::Sums8, w: Self::Bytes, x: Self::Quads) -> Self::Sums8 {
        for (row, sum) in sums.iter_mut().enumerate() {
            for i in 4 * row..4 * row + 4 {
                *sum += i32::from(w[i]) * i32::from(x[i] as i8);
            }
        }
        sums
    }
    #[inline(always)]
    fn finish8(self, sums: Self::Sums8) -> Self::F32 {
        sums.map(|sum| sum as f32)
    }
    #[inline(always)]
    unsafe fn start4(self, p: *const i32) -> Self::Sums4 {
        [unsafe { p.read_unaligned() }; ROWS]
    }
    #[inline(always)]
    fn dot4(self, sums: Self::Sums4, w: Self::Quads, x: Self::Quads) -> Self::Sums4 {
        self.dot8(sums, w, x)
    }
    #[inline(always)]
    unsafe fn finish4(self, sums: Self::Sums4, _: *const i32) -> Self::F32 {
        self.finish8(sums)
    }
    #[inline(always)]
    unsafe fn fill_panel(self, stored: *const u8, to: *mut u8, _: usize) {
        unsafe { to.copy_from_nonoverlapping(stored, 4 * ROWS) }
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
        [0.0; ROWS]
    }
    #[inline(always)]
    unsafe fn load(self, p: *const f32) -> Self::F32 {
        unsafe { p.cast::<[f32; ROWS]>().read_unaligned() }
    }
    #[inline(always)]
    unsafe fn same(self, p: *const f32) -> Self::F32 {
        [unsafe { p.read_unaligned() }; ROWS]
    }
    #[inline(always)]
    unsafe fn scales(self, p: *const u8) -> Self::F32 {
        let halves = unsafe { p.cast::<[f16; ROWS]>().read_unaligned() };
        halves.map(f16::to_f32_const)
    }
    #[inline(always)]
    unsafe fn scaled(self, a: Self::F32, p: *const f32) -> Self::F32 {
        let factor = unsafe { p.read_unaligned() };
        a.map(|a| a * factor)
    }
    #[inline(always)]
    fn mul_add(self, a: Self::F32, b: Self::F32, c: Self::F32) -> Self::F32 {
        std::array::from_fn(|i| a[i] * b[i] + c[i])
    }
    #[inline(always)]
    unsafe fn store(self, p: *mut f32, v: Self::F32) {
        unsafe { p.cast::<Self::F32>().write_unaligned(v) }
    }
}
