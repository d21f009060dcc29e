//! Queries, keys and values of the delta rule, before or after their convolution.

use super::DeltaShape;
use crate::kernels::Parts;
use crate::kernels::conv::{ConvTaps, convolve};
use crate::kernels::simd::{LANES, Simd, prefetch};

/// How many tokens ahead queries and keys are asked for.
const AHEAD_TOKENS: usize = 4;

/// What the rule is about: `[tokens, qkv_width]`, query heads, then key heads, then value heads.
#[derive(Clone, Copy)]
pub enum DeltaInputs<'a> {
    /// As they are: the rule alone, as tests and benches look at it.
    Mixed(&'a [f32]),
    /// Before their convolution, which is computed where its result is needed: in the caches,
    /// and for each head by itself. This is what the model has.
    Projected(&'a [f32], &'a ConvTaps, Parts<'a>),
}

impl DeltaInputs<'_> {
    pub(super) fn check(&self, shape: DeltaShape, tokens: usize) {
        let (Self::Mixed(rows) | Self::Projected(rows, ..)) = self;
        assert_eq!(rows.len(), tokens * shape.qkv_width());
        if let Self::Projected(_, taps, history) = self {
            assert_eq!(taps.channels(), shape.qkv_width());
            taps.check(*history);
        }
    }

    /// `out.len()` elements of token `t` from `channel` on; asks for those of a token that comes
    /// soon, which lie pages away.
    #[inline(always)]
    pub(super) fn copy<S: Simd>(
        &self,
        s: S,
        width: usize,
        t: usize,
        channel: usize,
        out: &mut [f32],
    ) {
        let (Self::Mixed(rows) | Self::Projected(rows, ..)) = *self;
        let soon = rows.as_ptr().wrapping_add((t + AHEAD_TOKENS) * width + channel);
        for at in (0..out.len()).step_by(LANES) {
            prefetch(soon.wrapping_add(at));
        }
        match *self {
            Self::Mixed(rows) => out.copy_from_slice(&rows[t * width + channel..][..out.len()]),
            Self::Projected(rows, taps, history) => {
                convolve(s, taps, history, rows, t, channel, out);
            }
        }
    }
}
