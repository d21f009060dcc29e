//! Products with weights in two planes: lines of both are joined in registers to those of one
//! plane, so that the numbers are the same and so are the sums.
#![allow(clippy::needless_range_loop)] // the loops over registers, see `direct`

use super::format::{Format, Inputs, Rows, finish4, finish8, in_order4, in_order8, start4, start8};
use crate::kernels::TileFormat;
use crate::kernels::quantized::dots::Dots;
use crate::kernels::quantized::layout::{GROUP, LINE};

pub(super) struct Int8Planes;
pub(super) struct Int4Planes;

// Plain loops throughout, as in `direct`.
impl Format for Int8Planes {
    const FORMAT: TileFormat = TileFormat::Int8Planes;

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
        let rest_at = group * Self::FORMAT.group_bytes();
        // SAFETY: by the contract.
        unsafe {
            let mut sums = start8(d, x);
            for j in 0..GROUP / 8 {
                let (first, rest) = (weights_at + j * LINE, rest_at + j * LINE);
                let mut w = [d.join8(rows[0].weights.add(first), rows[0].rest.add(rest)); R];
                for r in 1..R {
                    w[r] = d.join8(rows[r].weights.add(first), rows[r].rest.add(rest));
                }
                for half in 0..2 {
                    for t in 0..T {
                        let at = t * x.groups * GROUP + half * GROUP / 2 + 4 * j;
                        let x = d.inputs(x.values.add(at));
                        for r in 0..R {
                            sums[t][r] = d.dot8(sums[t][r], w[r][half], x);
                        }
                    }
                    in_order8(d, &mut sums);
                }
            }
            finish8(d, lanes, &sums, rows, scales_at, x);
        }
    }
}

impl Format for Int4Planes {
    const FORMAT: TileFormat = TileFormat::Int4Planes;

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
        let rest_at = group * Self::FORMAT.group_bytes();
        // SAFETY: by the contract.
        unsafe {
            let mut sums = start4(d, x);
            for j in 0..GROUP / 16 {
                let (first, rest) = (weights_at + j * LINE, rest_at + j * LINE);
                let mut w = [d.join4(rows[0].weights.add(first), rows[0].rest.add(rest)); R];
                for r in 1..R {
                    w[r] = d.join4(rows[r].weights.add(first), rows[r].rest.add(rest));
                }
                for n in 0..4 {
                    for t in 0..T {
                        let x = d.inputs(x.values.add(t * x.groups * GROUP + column_of(j, n)));
                        for r in 0..R {
                            sums[t][r] = d.dot4(sums[t][r], w[r][n], x);
                        }
                    }
                    in_order4(d, &mut sums);
                }
            }
            finish4(d, lanes, &sums, rows, scales_at, x);
        }
    }
}

/// The first column, within a group, of the numbers `n` of line `j` in the order of
/// [`Dots::quarters`].
#[inline(always)]
pub(super) const fn column_of(j: usize, n: usize) -> usize {
    8 * j + n % 2 * 4 + n / 2 * (GROUP / 2)
}
