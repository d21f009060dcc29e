//! What the tokens of a block that is not complete change of a state, kept beside it.
//!
//! A token multiplies the state of a head with its decay and adds the product of a column and a
//! row: 257 numbers at 128 rows and columns, where the state has 16,384. The state is written once
//! for a block of tokens (see `block`); until then what each of them changes is put down, and
//! whoever reads the state adds what that makes of his products.

use super::DeltaShape;
use super::block::BLOCK_TOKENS;
use crate::kernels::buffer::Parts;
use crate::kernels::simd::LANES;
use crate::pool::SharedMut;

/// Most changes beside a state.
pub const MOST_CHANGES: usize = BLOCK_TOKENS - 1;

/// The states of a layer.
#[derive(Clone, Copy)]
pub struct DeltaState<'a> {
    /// `[value_heads, key_dim, value_dim]`: before the block of tokens that comes next or has
    /// been begun.
    pub base: &'a [f32],
    /// What the tokens of that block have changed so far, oldest first:
    /// [`DeltaShape::change_len`] each.
    pub changes: Parts<'a>,
}

impl DeltaState<'_> {
    /// Panics unless it is of `shape`.
    pub(super) fn check(&self, shape: DeltaShape) {
        assert_eq!(self.base.len(), shape.state_len());
        assert!(self.changes.count() <= MOST_CHANGES, "changes of a state");
        assert!(self.changes.count() == 0 || self.changes.len() == shape.change_len());
    }
}

impl DeltaShape {
    /// Elements of a change of the states of all heads: `[key_heads, key_dim]` keys,
    /// `[value_heads, value_dim]` what is added along them, `[value_heads]` decays; whole cache
    /// lines.
    pub fn change_len(&self) -> usize {
        (self.decays_at() + self.value_heads).next_multiple_of(LANES)
    }
    pub(super) fn deltas_at(&self) -> usize {
        self.key_heads * self.key_dim
    }
    pub(super) fn decays_at(&self) -> usize {
        self.deltas_at() + self.value_heads * self.value_dim
    }
}

/// A change of the states of all heads.
#[derive(Clone, Copy)]
pub(super) struct Change<'a> {
    shape: DeltaShape,
    values: &'a [f32],
}

impl<'a> Change<'a> {
    /// `values` are as [`DeltaShape::change_len`] says.
    #[inline(always)]
    pub fn new(shape: DeltaShape, values: &'a [f32]) -> Self {
        assert!(values.len() == shape.change_len());
        Self { shape, values }
    }
    /// The key of key head `head`.
    #[inline(always)]
    pub fn key(self, head: usize) -> &'a [f32] {
        &self.values[head * self.shape.key_dim..][..self.shape.key_dim]
    }
    /// What is added to each row of value head `head`, times the key's element.
    #[inline(always)]
    pub fn delta(self, head: usize) -> &'a [f32] {
        let dim = self.shape.value_dim;
        &self.values[self.shape.deltas_at() + head * dim..][..dim]
    }
    /// What value head `head` is multiplied with before.
    #[inline(always)]
    pub fn decay(self, head: usize) -> f32 {
        self.values[self.shape.decays_at() + head]
    }
}

/// Where the states of a layer after some tokens go.
pub struct DeltaAfter<'a> {
    /// Those before the last block begun, `[value_heads, key_dim, value_dim]`; empty where that is
    /// the block that was begun before these tokens.
    pub base: &'a mut [f32],
    /// The changes by these tokens since, oldest first, [`DeltaShape::change_len`] each; those
    /// that are not needed are empty.
    pub changes: [&'a mut [f32]; MOST_CHANGES],
}

/// How many of `tokens` tokens behind `changes` changes leave changes of their own, and whether
/// the states are written.
pub fn delta_after(changes: usize, tokens: usize) -> (usize, bool) {
    let all = changes + tokens;
    if all < BLOCK_TOKENS { (tokens, false) } else { (all % BLOCK_TOKENS, true) }
}

/// As [`DeltaAfter`], for tasks that each write a part.
pub(super) struct Shared<'a> {
    pub base: SharedMut<'a, f32>,
    pub changes: [SharedMut<'a, f32>; MOST_CHANGES],
}

impl<'a> DeltaAfter<'a> {
    /// Panics unless it fits `tokens` tokens behind `before`.
    pub(super) fn check(&self, shape: DeltaShape, before: DeltaState, tokens: usize) {
        let (changes, writes) = delta_after(before.changes.count(), tokens);
        assert_eq!(self.base.len(), if writes { shape.state_len() } else { 0 });
        for (n, change) in self.changes.iter().enumerate() {
            assert_eq!(change.len(), if n < changes { shape.change_len() } else { 0 });
        }
    }

    pub(super) fn share(self) -> Shared<'a> {
        Shared { base: SharedMut::new(self.base), changes: self.changes.map(SharedMut::new) }
    }
}
