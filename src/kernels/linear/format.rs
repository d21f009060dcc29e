//! Products of one group of weights, in each format, and the sums they are added to.
//!
//! A result has one definition, whatever computes it. Sums of groups are exact integers; all
//! additions are fused multiply-adds, from 0 on, in the order of the columns:
//!
//! - INT8: to the result is added, for each group, its sum times (scale of the weights times
//!   scale of the inputs).
//! - INT4, where the inputs of four groups share a scale ([`TileFormat::input_groups`]; the last
//!   block of a row may have fewer): to the sum of a block is added, for each of its groups, the
//!   sum of the group times the scale of the weights. To the result is added, for each block,
//!   its sum times the scale of the inputs. That is five multiplications instead of eight, by
//!   instructions that would else multiply weights.
//!
//! Sixteen rows are in the lanes of a register (or two), so that nothing is summed across lanes.
#![allow(clippy::needless_range_loop)] // the loops over registers, see `direct`

use crate::kernels::TileFormat;
use crate::kernels::quantized::dots::Dots;
use crate::kernels::quantized::inputs::QuantizedInput;
use crate::kernels::quantized::layout::{GROUP, LINE};

/// Which results products have in [`ComputeMode::Fast`](crate::kernels::ComputeMode). It counts
/// on whenever their bits change (a test compares some), because a state that was computed with
/// one is not gone on with by another: saved sessions are bound to it.
pub const fn products_revision(format: TileFormat) -> u32 {
    if format.is_int8() { 1 } else { 2 }
}

/// A register of rows of a tile: where their first scale and weights are, less what
/// [`TileFormat::scales_at`] and [`TileFormat::weights_at`] say of a group.
#[derive(Clone, Copy)]
pub(super) struct Rows {
    pub scales: *const u8,
    pub weights: *const u8,
    /// Their first weights in the second plane, if there is one: groups follow each other.
    pub rest: *const u8,
}

impl Rows {
    /// The rows from `row` on of a tile, in each of its planes.
    #[inline(always)]
    pub fn new(tile: &[u8], rest: &[u8], row: usize) -> Self {
        let scales = tile[2 * row..].as_ptr();
        let rest = rest.as_ptr().wrapping_add(4 * row);
        Self { scales, weights: tile[4 * row..].as_ptr(), rest }
    }

    /// Those `count` rows further on.
    #[inline(always)]
    pub fn below(self, count: usize) -> Self {
        Self {
            scales: self.scales.wrapping_add(2 * count),
            weights: self.weights.wrapping_add(4 * count),
            rest: self.rest.wrapping_add(4 * count),
        }
    }
}

/// The sums of `R` registers of rows and `T` tokens.
#[derive(Clone, Copy)]
pub(super) struct Sums<D: Dots, const R: usize, const T: usize> {
    /// Of the row so far, up to the last whole block.
    pub row: [[D::F32; R]; T],
    /// Of the block, without the scale of its inputs; where a block is one group, of the row.
    pub block: [[D::F32; R]; T],
}

impl<D: Dots, const R: usize, const T: usize> Sums<D, R, T> {
    #[inline(always)]
    pub fn new(d: D) -> Self {
        Self { row: [[d.zero(); R]; T], block: [[d.zero(); R]; T] }
    }

    /// Adds a block of (at most) `block` groups to the row, and begins the next one. `scales`
    /// are those of one of its groups, `groups` apart from token to token.
    ///
    /// # Safety
    /// There are scales of `T` tokens.
    #[inline(always)]
    pub unsafe fn end_block(&mut self, d: D, block: usize, scales: *const f32, groups: usize) {
        if block == 1 {
            self.row = self.block;
            return;
        }
        for t in 0..T {
            // SAFETY: by the contract.
            let scale = unsafe { d.same(scales.add(t * groups)) };
            for r in 0..R {
                self.row[t][r] = d.mul_add(self.block[t][r], scale, self.row[t][r]);
                self.block[t][r] = d.zero();
            }
        }
    }
}

/// One group of the inputs of some tokens, which are `groups` groups apart.
#[derive(Clone, Copy)]
pub(super) struct Inputs {
    pub values: *const i8,
    pub scales: *const f32,
    pub corrections: *const i32,
    pub groups: usize,
}

impl Inputs {
    /// Those of `count` tokens from `token` on, from their first group on.
    #[inline(always)]
    pub fn new(quantized: &QuantizedInput, token: usize, count: usize) -> Self {
        let groups = quantized.groups();
        let (values, scales) = (quantized.values(token), quantized.scales(token));
        let corrections = quantized.corrections(token);
        assert!(values.len() >= count * groups * GROUP && scales.len() >= count * groups);
        assert!(corrections.len() >= count * groups);
        Self {
            values: values.as_ptr(),
            scales: scales.as_ptr(),
            corrections: corrections.as_ptr(),
            groups,
        }
    }

    /// Those `group` groups further on.
    ///
    /// # Safety
    /// There are so many.
    #[inline(always)]
    pub unsafe fn group(self, group: usize) -> Self {
        // SAFETY: by the contract.
        unsafe {
            Self {
                values: self.values.add(group * GROUP),
                scales: self.scales.add(group),
                corrections: self.corrections.add(group),
                groups: self.groups,
            }
        }
    }
}

/// A format of weights.
pub(super) trait Format {
    const FORMAT: TileFormat;

    /// Adds the products of group `group` to sums of a block, see [`Sums`].
    ///
    /// # Safety
    /// `rows` point to tiles that have such a group, `x` to `T` tokens of inputs.
    unsafe fn add_group<D: Dots, const R: usize, const T: usize>(
        d: D,
        lanes: &mut [[D::F32; R]; T],
        rows: &[Rows; R],
        x: Inputs,
        group: usize,
    );
}

/// Where sums are many, [`Dots::in_order8`] for all of them.
#[inline(always)]
pub(super) fn in_order8<D: Dots, const R: usize, const T: usize>(
    d: D,
    sums: &mut [[D::Sums8; R]; T],
) {
    if const { R * T > 4 } {
        for t in 0..T {
            for r in 0..R {
                sums[t][r] = d.in_order8(sums[t][r]);
            }
        }
    }
}

/// Where sums are many, [`Dots::in_order4`] for all of them.
#[inline(always)]
pub(super) fn in_order4<D: Dots, const R: usize, const T: usize>(
    d: D,
    sums: &mut [[D::Sums4; R]; T],
) {
    if const { R * T > 4 } {
        for t in 0..T {
            for r in 0..R {
                sums[t][r] = d.in_order4(sums[t][r]);
            }
        }
    }
}

/// The sums of a group before its products, from the corrections of its inputs.
///
/// # Safety
/// `x` points to `T` tokens of inputs.
#[inline(always)]
pub(super) unsafe fn start8<D: Dots, const R: usize, const T: usize>(
    d: D,
    x: Inputs,
) -> [[D::Sums8; R]; T] {
    // SAFETY: by the contract.
    unsafe {
        let mut sums = [[d.start8(x.corrections); R]; T];
        for t in 1..T {
            sums[t] = [d.start8(x.corrections.add(t * x.groups)); R];
        }
        sums
    }
}

/// As [`start8`], for INT4.
///
/// # Safety
/// As there.
#[inline(always)]
pub(super) unsafe fn start4<D: Dots, const R: usize, const T: usize>(
    d: D,
    x: Inputs,
) -> [[D::Sums4; R]; T] {
    // SAFETY: by the contract.
    unsafe {
        let mut sums = [[d.start4(x.corrections); R]; T];
        for t in 1..T {
            sums[t] = [d.start4(x.corrections.add(t * x.groups)); R];
        }
        sums
    }
}

/// Adds `sums` of a group, whose scales are `scales_at` bytes behind the first ones of `rows`,
/// to sums of a block.
///
/// # Safety
/// `rows` and `x` are as for [`Format::add_group`].
#[inline(always)]
pub(super) unsafe fn finish8<D: Dots, const R: usize, const T: usize>(
    d: D,
    lanes: &mut [[D::F32; R]; T],
    sums: &[[D::Sums8; R]; T],
    rows: &[Rows; R],
    scales_at: usize,
    x: Inputs,
) {
    for r in 0..R {
        // SAFETY: by the contract.
        unsafe {
            let scales = d.scales(rows[r].scales.add(scales_at));
            for t in 0..T {
                let scale = d.scaled(scales, x.scales.add(t * x.groups));
                lanes[t][r] = d.mul_add(d.finish8(sums[t][r]), scale, lanes[t][r]);
            }
        }
    }
}

/// As [`finish8`], for INT4, whose blocks have the scale of their inputs still to come.
///
/// # Safety
/// As there.
#[inline(always)]
pub(super) unsafe fn finish4<D: Dots, const R: usize, const T: usize>(
    d: D,
    lanes: &mut [[D::F32; R]; T],
    sums: &[[D::Sums4; R]; T],
    rows: &[Rows; R],
    scales_at: usize,
    x: Inputs,
) {
    for r in 0..R {
        // SAFETY: by the contract.
        unsafe {
            let scales = d.scales(rows[r].scales.add(scales_at));
            for t in 0..T {
                let sum = d.finish4(sums[t][r], x.corrections.add(t * x.groups));
                lanes[t][r] = d.mul_add(sum, scales, lanes[t][r]);
            }
        }
    }
}

pub(super) struct Int8;
pub(super) struct Int4;

// Plain loops throughout, as in `direct`.
impl Format for Int8 {
    const FORMAT: TileFormat = TileFormat::Int8;

    #[inline(always)]
    unsafe fn add_group<D: Dots, const R: usize, const T: usize>(
        d: D,
        lanes: &mut [[D::F32; R]; T],
        rows: &[Rows; R],
        x: Inputs,
        group: usize,
    ) {
        let (scales_at, weights_at) =
            (Self::FORMAT.scales_at(group), Self::FORMAT.weights_at(group));
        // SAFETY: by the contract.
        unsafe {
            let mut sums = start8(d, x);
            for j in 0..GROUP / 4 {
                let mut w = [d.bytes(rows[0].weights.add(weights_at + j * LINE)); R];
                for r in 1..R {
                    w[r] = d.bytes(rows[r].weights.add(weights_at + j * LINE));
                }
                for t in 0..T {
                    let x = d.inputs(x.values.add(t * x.groups * GROUP + 4 * j));
                    for r in 0..R {
                        sums[t][r] = d.dot8(sums[t][r], w[r], x);
                    }
                }
                in_order8(d, &mut sums);
            }
            finish8(d, lanes, &sums, rows, scales_at, x);
        }
    }
}

impl Format for Int4 {
    const FORMAT: TileFormat = TileFormat::Int4;

    #[inline(always)]
    unsafe fn add_group<D: Dots, const R: usize, const T: usize>(
        d: D,
        lanes: &mut [[D::F32; R]; T],
        rows: &[Rows; R],
        x: Inputs,
        group: usize,
    ) {
        let (scales_at, weights_at) =
            (Self::FORMAT.scales_at(group), Self::FORMAT.weights_at(group));
        // SAFETY: by the contract.
        unsafe {
            let mut sums = start4(d, x);
            for j in 0..GROUP / 8 {
                let mut w = [d.nibbles(rows[0].weights.add(weights_at + j * LINE)); R];
                for r in 1..R {
                    w[r] = d.nibbles(rows[r].weights.add(weights_at + j * LINE));
                }
                for half in 0..2 {
                    for t in 0..T {
                        let at = t * x.groups * GROUP + half * GROUP / 2 + 4 * j;
                        let x = d.inputs(x.values.add(at));
                        for r in 0..R {
                            sums[t][r] = d.dot4(sums[t][r], w[r][half], x);
                        }
                    }
                    in_order4(d, &mut sums);
                }
            }
            finish4(d, lanes, &sums, rows, scales_at, x);
        }
    }
}
