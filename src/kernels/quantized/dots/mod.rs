//! Integer dot products with lines of weights, for each instruction set.
//!
//! Sums of integers are exact, so that every instruction set may find them in its own way;
//! what follows in `f32` is the same operations on the same numbers everywhere, and so are
//! the results (those without fused multiply-add, within rounding).
#![allow(unsafe_code)]

mod avx2;
mod avx512;
mod avx_vnni;
mod scalar;

pub(crate) use avx_vnni::AvxVnni;
pub(crate) use avx2::Avx2Dots;
pub(crate) use avx512::Avx512Vnni;
pub(crate) use scalar::ScalarDots;

use crate::kernels::simd::{Avx2, Isa, Scalar, Simd};

/// Sums of some rows of a tile, one register of them at a time.
///
/// Weights are unsigned; the sum of a group starts from (or ends with) what their offset
/// adds too much, negated: that depends on the inputs alone and is the same for all rows.
///
/// # Safety of the methods
/// As in [`Simd`]: a value of the type proves that the CPU has the instructions.
pub(crate) trait Dots: Copy + Send + Sync {
    /// The instruction set for everything else.
    type Simd: Simd;
    /// Rows of a register: 16, or 8, of which a tile has two.
    const ROWS: usize;
    /// Up to how many tokens a register of rows is summed for side by side: as many sums as fit
    /// the registers.
    const SINGLE: usize;
    /// Registers of rows, and tokens, of a block of a panel of INT8: as many sums as fit the
    /// registers twice.
    const PANEL: (usize, usize);
    /// Columns that a step through a panel takes.
    const PANEL_COLUMNS: usize;
    /// Half a line, or a line: 4 columns of [`Dots::ROWS`] rows, of INT4 weights, one plane
    /// of nibbles; or four inputs, once for each row.
    type Quads: Copy;
    /// The same of INT8 weights, made ready.
    type Bytes: Copy;
    /// Sums of a group of INT8 weights.
    type Sums8: Copy;
    /// Sums of a group of INT4 weights.
    type Sums4: Copy;
    /// One `f32` per row.
    type F32: Copy;
    /// A weight of a panel.
    type PanelWeight: Copy;
    /// An input that goes with it.
    type PanelInput: Copy;
    /// [`Dots::PANEL_COLUMNS`] weights for each row.
    type PanelWeights: Copy;
    /// As many inputs, once for each row.
    type PanelInputs: Copy;

    /// What computes everything else.
    fn simd(self) -> Self::Simd;
    /// Runs `f` compiled for this instruction set.
    fn run<R>(self, f: impl FnOnce() -> R) -> R;

    /// Four inputs for all rows.
    ///
    /// # Safety
    /// Four readable bytes.
    unsafe fn inputs(self, p: *const i8) -> Self::Quads;
    /// INT8 weights.
    ///
    /// # Safety
    /// `4 * ROWS` readable bytes.
    unsafe fn bytes(self, p: *const u8) -> Self::Bytes;
    /// INT4 weights: low and high nibbles.
    ///
    /// # Safety
    /// `4 * ROWS` readable bytes.
    unsafe fn nibbles(self, p: *const u8) -> [Self::Quads; 2];
    /// Numbers of two bits: those in bits 0 and 1, in 2 and 3, in 4 and 5, in 6 and 7.
    ///
    /// # Safety
    /// `4 * ROWS` readable bytes.
    unsafe fn quarters(self, p: *const u8) -> [Self::Quads; 4];
    /// INT8 weights of two planes: from the low nibbles and from the high ones.
    ///
    /// # Safety
    /// `4 * ROWS` readable bytes at each place.
    unsafe fn join8(self, first: *const u8, rest: *const u8) -> [Self::Bytes; 2];
    /// INT4 weights of two planes, in the order of [`Dots::quarters`].
    ///
    /// # Safety
    /// `4 * ROWS` readable bytes at each place.
    unsafe fn join4(self, first: *const u8, rest: *const u8) -> [Self::Quads; 4];

    /// The start of a sum of INT8 weights; `p` is minus their offset times the sum of the group's
    /// inputs.
    ///
    /// # Safety
    /// A readable number.
    unsafe fn start8(self, p: *const i32) -> Self::Sums8;
    /// Adds the products of four columns.
    fn dot8(self, sums: Self::Sums8, w: Self::Bytes, x: Self::Quads) -> Self::Sums8;
    /// The sums as `f32`, exactly.
    fn finish8(self, sums: Self::Sums8) -> Self::F32;
    /// The start of a sum of INT4 weights; `p` as in [`Dots::start8`].
    ///
    /// # Safety
    /// A readable number.
    unsafe fn start4(self, p: *const i32) -> Self::Sums4;
    /// Adds the products of four columns; at most eight times.
    fn dot4(self, sums: Self::Sums4, w: Self::Quads, x: Self::Quads) -> Self::Sums4;
    /// The sums as `f32`, exactly; `p` as in [`Dots::start8`].
    ///
    /// # Safety
    /// A readable number.
    unsafe fn finish4(self, sums: Self::Sums4, p: *const i32) -> Self::F32;

    /// The sums, as they are; what they come from is computed before what is written behind this.
    /// Without it, a compiler may put all that is added to one sum together, a chain in which
    /// each instruction waits for the one before.
    #[inline(always)]
    fn in_order8(self, sums: Self::Sums8) -> Self::Sums8 {
        sums
    }
    /// As [`Dots::in_order8`].
    #[inline(always)]
    fn in_order4(self, sums: Self::Sums4) -> Self::Sums4 {
        sums
    }

    /// Writes INT8 weights, 4 columns of [`Dots::ROWS`] rows, for the steps of a panel; steps
    /// are `step` weights apart.
    ///
    /// # Safety
    /// As many readable bytes, and writable weights.
    unsafe fn fill_panel(self, stored: *const u8, to: *mut Self::PanelWeight, step: usize);
    /// An input of a panel.
    fn panel_input(x: i8) -> Self::PanelInput;
    /// The weights of a step.
    ///
    /// # Safety
    /// `PANEL_COLUMNS * ROWS` readable weights.
    unsafe fn panel_weights(self, p: *const Self::PanelWeight) -> Self::PanelWeights;
    /// The inputs of a step.
    ///
    /// # Safety
    /// [`Dots::PANEL_COLUMNS`] readable inputs.
    unsafe fn panel_inputs(self, p: *const Self::PanelInput) -> Self::PanelInputs;
    /// Adds the products of a step to sums that began with [`Dots::start8`].
    fn panel_dot(
        self,
        sums: Self::Sums8,
        w: Self::PanelWeights,
        x: Self::PanelInputs,
    ) -> Self::Sums8;

    /// Zeros.
    fn zero(self) -> Self::F32;
    /// [`Dots::ROWS`] numbers.
    ///
    /// # Safety
    /// As many readable numbers.
    unsafe fn load(self, p: *const f32) -> Self::F32;
    /// A number, once for each row.
    ///
    /// # Safety
    /// A readable number.
    unsafe fn same(self, p: *const f32) -> Self::F32;
    /// Scales, widened.
    ///
    /// # Safety
    /// `2 * ROWS` readable bytes.
    unsafe fn scales(self, p: *const u8) -> Self::F32;
    /// `a * *p`.
    ///
    /// # Safety
    /// A readable number.
    unsafe fn scaled(self, a: Self::F32, p: *const f32) -> Self::F32;
    /// `a * b + c`, fused where [`Simd::FUSED`].
    fn mul_add(self, a: Self::F32, b: Self::F32, c: Self::F32) -> Self::F32;
    /// Writes the numbers.
    ///
    /// # Safety
    /// [`Dots::ROWS`] writable numbers.
    unsafe fn store(self, p: *mut f32, v: Self::F32);
}

/// What finds integer dot products, chosen by [`IntegerIsa::of`].
#[derive(Clone, Copy, Debug)]
pub(crate) enum IntegerIsa {
    Scalar(ScalarDots),
    Avx2(Avx2Dots),
    AvxVnni(AvxVnni),
    Avx512Vnni(Avx512Vnni),
}

impl IntegerIsa {
    /// The best there is within `isa`. AVX-512 without VNNI has nothing that AVX2 lacks.
    pub fn of(isa: Isa) -> Self {
        let avx2 = |avx2| match AvxVnni::detect() {
            Some(vnni) => Self::AvxVnni(vnni),
            None => Self::Avx2(Avx2Dots(avx2)),
        };
        match isa {
            Isa::Scalar(scalar) => Self::Scalar(ScalarDots(scalar)),
            Isa::Avx2(isa) => avx2(isa),
            Isa::Avx512(_) => match (Avx512Vnni::detect(), Avx2::detect()) {
                (Some(vnni), _) => Self::Avx512Vnni(vnni),
                (None, Some(isa)) => avx2(isa),
                // A CPU with AVX-512 and without AVX2 does not exist.
                (None, None) => Self::Scalar(ScalarDots(Scalar)),
            },
        }
    }
}

/// Runs an expression for the instruction set in an [`IntegerIsa`], as
/// [`dispatch!`](crate::dispatch) does.
macro_rules! dispatch_dots {
    ($isa:expr, $d:ident => $body:expr) => {
        match $isa {
            $crate::kernels::quantized::dots::IntegerIsa::Scalar($d) => $body,
            $crate::kernels::quantized::dots::IntegerIsa::Avx2($d) => {
                $crate::kernels::quantized::dots::Dots::run(
                    $d,
                    #[inline(always)]
                    || $body,
                )
            }
            $crate::kernels::quantized::dots::IntegerIsa::AvxVnni($d) => {
                $crate::kernels::quantized::dots::Dots::run(
                    $d,
                    #[inline(always)]
                    || $body,
                )
            }
            $crate::kernels::quantized::dots::IntegerIsa::Avx512Vnni($d) => {
                $crate::kernels::quantized::dots::Dots::run(
                    $d,
                    #[inline(always)]
                    || $body,
                )
            }
        }
    };
}
pub(crate) use dispatch_dots;
