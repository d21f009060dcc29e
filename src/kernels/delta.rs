//! The gated delta rule: a matrix per head that is decayed, corrected and read at each token.
//!
//! For every value head, with its state `S` (`[key_dim, value_dim]`), the key `k` and query
//! `q` of its key head (normalised), value `v`, decay `a = exp(g)` and rate `b`:
//!
//! ```text
//! d = b (v - a S^T k)        what the state does not know yet about v
//! o = a S^T q + d (k . q)    the same as reading the new state with q
//! S = a S + k d^T
//! ```
//!
//! It is computed in matrix form, block by block of four tokens: one pass over the state finds
//! its products with the keys and queries of all four and another, which is the first of the next
//! block, makes their four changes. What the tokens of a block are to each other comes on top
//! (`block`). Columns of `S` are independent, so a strip of 32 stays in the first level cache for
//! many tokens.
//!
//! Blocks begin at fixed positions of a sequence, and of one that is not complete the state before
//! it and what each token changes are kept (`change`). So the operations on an element are always
//! the same, in the same order, and the bits do not depend on how tokens are grouped into calls,
//! nor on threads.
#![allow(unsafe_code)]

mod block;
mod change;
#[cfg(test)]
mod held;
mod inputs;
mod many;
mod share;
mod step;
mod sweep;

use super::simd::{LANES, Simd};
#[cfg(test)]
use block::BLOCK_TOKENS;
pub use change::{DeltaAfter, DeltaState, MOST_CHANGES, delta_after};
pub use inputs::DeltaInputs;
pub use many::delta_rule;
pub use share::ahead_of_step;
pub use step::{DeltaRow, DeltaTarget, DeltaWeights, delta_step};

/// Added to the sum of squares when keys and queries are normalised.
const NORM_EPSILON: f32 = 1e-6;
/// Vectors of a strip.
const VECTORS: usize = 2;
/// Columns of a strip: 16 KiB of state at 128 rows.
const STRIP: usize = VECTORS * LANES;
/// Bytes of state in one layer from which on the new state is written past the caches.
const STREAM_BYTES: usize = 512 << 10;

/// Heads and their sizes. Value head `h` uses key head `h / (value_heads / key_heads)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeltaShape {
    /// Heads of keys and queries.
    pub key_heads: usize,
    /// Heads of values; a multiple of `key_heads`.
    pub value_heads: usize,
    /// Elements of a key or query; rows of a state.
    pub key_dim: usize,
    /// Elements of a value; columns of a state.
    pub value_dim: usize,
}

impl DeltaShape {
    /// Elements of a token in `qkv`: queries, keys, values.
    pub fn qkv_width(&self) -> usize {
        2 * self.key_heads * self.key_dim + self.value_heads * self.value_dim
    }
    /// Elements of the states of all heads.
    pub fn state_len(&self) -> usize {
        self.value_heads * self.key_dim * self.value_dim
    }
    fn group(&self) -> usize {
        self.value_heads / self.key_heads
    }
    fn check(&self) {
        assert!(self.key_heads > 0 && self.value_heads.is_multiple_of(self.key_heads));
    }
}

/// Whether the states of a layer after a pass are written past the caches: what is larger than
/// a share of these will not be in them when it is needed again, a token later.
fn streams(shape: DeltaShape, before: &[f32], after: *const f32) -> bool {
    size_of_val(before) >= STREAM_BYTES
        && shape.value_dim.is_multiple_of(LANES)
        && before.as_ptr().addr().is_multiple_of(64)
        && after.addr().is_multiple_of(64)
}

/// `x` and zeros behind it.
#[inline(always)]
fn load<S: Simd, const V: usize>(s: S, x: &[f32]) -> [S::F32; V] {
    let mut values = [s.splat(0.0); V];
    for (n, value) in values.iter_mut().enumerate() {
        *value = s.load_part(x.get(n * LANES..).unwrap_or(&[]));
    }
    values
}

/// The first of `values`, as many as there is room for in `to`.
#[inline(always)]
fn store<S: Simd, const V: usize>(s: S, to: &mut [f32], values: [S::F32; V]) {
    for (n, value) in values.into_iter().enumerate() {
        if let Some(to) = to.get_mut(n * LANES..) {
            s.store_part(to, value);
        }
    }
}

/// The sum of products, by the sixteen lanes and their fixed tree.
#[inline(always)]
fn dot<S: Simd>(s: S, a: &[f32], b: &[f32]) -> f32 {
    let mut sum = s.splat(0.0);
    for (a, b) in a.chunks(LANES).zip(b.chunks(LANES)) {
        sum = s.mul_add(s.load_part(a), s.load_part(b), sum);
    }
    s.sum(sum)
}

/// `to = scale x / sqrt(sum x^2 + epsilon)`
#[inline(always)]
fn normalise<S: Simd>(s: S, x: &[f32], scale: f32, to: &mut [f32]) {
    let factor = s.splat(scale / (dot(s, x, x) + NORM_EPSILON).sqrt());
    for (x, to) in x.chunks(LANES).zip(to.chunks_mut(LANES)) {
        s.store_part(to, s.mul(s.load_part(x), factor));
    }
}

#[cfg(test)]
mod tests;
