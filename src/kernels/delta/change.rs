//! What single tokens change of a state, kept beside it.
//!
//! A token multiplies the state of a head with its decay and adds the product of a column and a
//! row: 257 numbers at 128 rows and columns, where the state has 16,384. So one token after the
//! other does not write the state: the change is put down, and whoever reads the state makes
//! the changes in registers on the way, by the very operations that writing it would have
//! taken. With every third token the state is written, and the changes are forgotten. Of six
//! passes through memory, two are saved.

use super::DeltaShape;
use crate::dispatch;
use crate::kernels::buffer::Parts;
use crate::kernels::simd::{Isa, LANES, Simd};

/// Most changes beside a state: each costs those who read it two operations for each of its
/// elements.
pub const MOST_CHANGES: usize = 2;

/// The states of a layer.
#[derive(Clone, Copy)]
pub struct DeltaState<'a> {
    /// `[value_heads, key_dim, value_dim]`, before the changes.
    pub base: &'a [f32],
    /// What tokens have changed since, oldest first: [`DeltaShape::change_len`] each.
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

/// Writes the states of a layer, the changes made, to `out`.
///
/// # Panics
/// When a length is not as `shape` says.
pub fn settle(isa: Isa, shape: DeltaShape, state: DeltaState, out: &mut [f32]) {
    shape.check();
    state.check(shape);
    out.copy_from_slice(state.base);
    for n in 0..state.changes.count() {
        let change = Change::new(shape, state.changes.get(n));
        dispatch!(isa, s => apply(s, shape, change, out));
    }
}

#[inline(always)]
fn apply<S: Simd>(s: S, shape: DeltaShape, change: Change, states: &mut [f32]) {
    for (head, state) in states.chunks_exact_mut(shape.key_dim * shape.value_dim).enumerate() {
        let (decay, delta) = (s.splat(change.decay(head)), change.delta(head));
        let key = change.key(head / shape.group());
        for (row, key) in state.chunks_exact_mut(shape.value_dim).zip(key) {
            for (x, delta) in row.chunks_mut(LANES).zip(delta.chunks(LANES)) {
                let kept = s.mul(decay, s.load_part(x));
                s.store_part(x, s.mul_add(s.splat(*key), s.load_part(delta), kept));
            }
        }
    }
}
