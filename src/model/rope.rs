//! Rotary positions: the angles by which queries and keys are turned.
//!
//! The first `rotary_dim` dimensions of each head are rotated, pair (i, i + rotary_dim/2) by
//! the angle `position * theta^(-2i / rotary_dim)`; the others pass through. The model has
//! three position axes (time, height, width) whose pairs are interleaved; for text the three
//! are equal, so one angle per pair is enough.
//!
//! Frequencies and angles are rounded to `f32` as the reference does. At a position of
//! 200,000 that rounding moves an angle by up to 0.01, so keeping more digits would be
//! further from the model as it was trained and published, not nearer.

use crate::checkpoint::Config;
use crate::kernels::{rope_angles, rope_frequencies};

/// The frequencies of one configuration, `[rotary_dim / 2]`.
#[derive(Clone, Debug)]
pub struct Rope {
    frequencies: Vec<f32>,
}

impl Rope {
    /// Frequencies for `config`.
    pub fn new(config: &Config) -> Self {
        Self { frequencies: rope_frequencies(config.rope_theta, config.rotary_dim) }
    }

    /// Cosines and sines, each `[tokens, rotary_dim / 2]`, for `tokens` positions from `first`.
    pub fn angles(&self, first: usize, tokens: usize, cos: &mut [f32], sin: &mut [f32]) {
        let pairs = self.frequencies.len();
        let rows = cos.chunks_exact_mut(pairs).zip(sin.chunks_exact_mut(pairs));
        for (t, (cos, sin)) in rows.take(tokens).enumerate() {
            rope_angles(&self.frequencies, first + t, cos, sin);
        }
    }
}
