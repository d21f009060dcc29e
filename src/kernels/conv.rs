//! The causal depthwise convolution before the delta rule.
#![allow(unsafe_code)]

use super::buffer::{Buffer, Parts};
use super::simd::{LANES, Simd};
use super::{Compute, math};
use crate::pool::SharedMut;
use crate::{Result, dispatch};

/// Tokens and channels of a task: about a hundred microseconds of work.
const TASK_TOKENS: usize = 32;
const TASK_CHANNELS: usize = 1024;

/// The filters of a depthwise convolution, one for each channel.
pub struct ConvTaps {
    /// `[width, channels]`: channels side by side, as they are computed.
    taps: Buffer<f32>,
    channels: usize,
    width: usize,
}

impl ConvTaps {
    /// From `[channels, width]`, as in a checkpoint; the last tap of a channel multiplies
    /// the current token.
    ///
    /// # Errors
    /// `OutOfMemory`.
    ///
    /// # Panics
    /// When `taps` is not `channels * width` long, or `width` is 0.
    pub fn new(taps: &[f32], channels: usize, width: usize) -> Result<Self> {
        assert!(width > 0 && taps.len() == channels * width);
        let mut by_tap = Buffer::zeroed(taps.len(), "convolution taps")?;
        for (channel, taps) in taps.chunks_exact(width).enumerate() {
            for (j, &tap) in taps.iter().enumerate() {
                by_tap[j * channels + channel] = tap;
            }
        }
        Ok(Self { taps: by_tap, channels, width })
    }

    /// Channels.
    pub fn channels(&self) -> usize {
        self.channels
    }

    /// Tokens that an output depends on, the current one included.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Panics unless `history` is that of such a convolution.
    pub(super) fn check(&self, history: Parts) {
        assert_eq!(history.count(), self.width - 1, "tokens before a convolution");
        assert!(history.count() == 0 || history.len() == self.channels, "their channels");
    }
}

/// `out[t][ch] = silu(sum_j taps[ch][j] * x[t - (width - 1) + j][ch])`, where `x` is
/// `history` followed by `u`. The definition: the model computes the same head by head where the
/// delta rule needs it ([`DeltaInputs`](super::DeltaInputs)).
///
/// - `u`, `out`: `[tokens, channels]`.
/// - `history`: the inputs of the `width - 1` tokens before the first, `[channels]` each, oldest
///   first. Zeros at the start of a sequence.
///
/// # Panics
/// When a slice does not have the length said above.
pub fn causal_conv_silu(c: &Compute, u: &[f32], taps: &ConvTaps, history: Parts, out: &mut [f32]) {
    let ConvTaps { channels, .. } = *taps;
    taps.check(history);
    assert_eq!(out.len(), u.len());
    if channels == 0 {
        return;
    }
    assert!(u.len().is_multiple_of(channels));
    let tokens = u.len() / channels;

    let tiles = channels.div_ceil(TASK_CHANNELS);
    let shared = SharedMut::new(out);
    c.run(tokens.div_ceil(TASK_TOKENS) * tiles, |task| {
        let first = task / tiles * TASK_TOKENS;
        let channel = task % tiles * TASK_CHANNELS;
        let n = TASK_CHANNELS.min(channels - channel);
        dispatch!(c.isa, s => {
            for t in first..(first + TASK_TOKENS).min(tokens) {
                // SAFETY: each task writes its own channels of its own tokens.
                let row = unsafe { shared.part(t * channels + channel, n) };
                convolve(s, taps, history, u, t, channel, row);
            }
        });
    });
}

/// Channels `channel..channel + out.len()` of token `t`.
#[inline(always)]
pub(super) fn convolve<S: Simd>(
    s: S,
    taps: &ConvTaps,
    history: Parts,
    u: &[f32],
    t: usize,
    channel: usize,
    out: &mut [f32],
) {
    let ConvTaps { channels, width, .. } = *taps;
    let columns = out.len();
    let row = |j: usize| {
        // Row t - (width - 1) + j of the new rows; before them, of the history.
        match (t + j).checked_sub(width - 1) {
            Some(row) => &u[row * channels + channel..][..columns],
            None => &history.get(t + j)[channel..][..columns],
        }
    };
    let tap = |j: usize| &taps.taps[j * channels + channel..][..columns];
    if width == 4 {
        let (rows, taps) = ([row(0), row(1), row(2), row(3)], [tap(0), tap(1), tap(2), tap(3)]);
        for (n, to) in out.chunks_mut(LANES).enumerate() {
            let at = n * LANES;
            let mut sum = s.splat(0.0);
            if to.len() == LANES {
                for j in 0..4 {
                    // SAFETY: rows and taps are as long as `out`, which has sixteen here.
                    let (row, tap) = unsafe {
                        (s.load_ptr(rows[j].as_ptr().add(at)), s.load_ptr(taps[j].as_ptr().add(at)))
                    };
                    sum = s.mul_add(row, tap, sum);
                }
            } else {
                for j in 0..4 {
                    sum = s.mul_add(s.load_part(&rows[j][at..]), s.load_part(&taps[j][at..]), sum);
                }
            }
            s.store_part(to, math::silu(s, sum));
        }
        return;
    }
    for n in 0..columns.div_ceil(LANES) {
        let at = n * LANES;
        let mut sum = s.splat(0.0);
        for j in 0..width {
            sum = s.mul_add(s.load_part(&row(j)[at..]), s.load_part(&tap(j)[at..]), sum);
        }
        let end = columns.min(at + LANES);
        s.store_part(&mut out[at..end], math::silu(s, sum));
    }
}

#[cfg(test)]
mod tests;
