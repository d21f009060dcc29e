//! A state that tests take from call to call.

use std::sync::Arc;

use super::{DeltaAfter, DeltaInputs, DeltaShape, DeltaState, delta_after, delta_rule};
use crate::kernels::buffer::{Buffer, Parts};
use crate::kernels::testing::bits;
use crate::kernels::{Compute, DeltaTarget, MOST_CHANGES};
use crate::pool::SharedMut;

#[derive(Clone)]
pub(super) struct Held {
    pub shape: DeltaShape,
    base: Arc<Buffer<f32>>,
    changes: Vec<Arc<Buffer<f32>>>,
}

impl Held {
    pub fn new(shape: DeltaShape, state: &[f32]) -> Self {
        let mut base = Buffer::zeroed(shape.state_len(), "test").unwrap();
        base.copy_from_slice(state);
        Self { shape, base: Arc::new(base), changes: Vec::new() }
    }

    pub fn before(&self) -> DeltaState<'_> {
        let changes = Parts::new(&self.changes, 0, self.shape.change_len());
        DeltaState { base: &self.base, changes }
    }

    /// The state before the block that has been begun.
    pub fn base(&self) -> &[f32] {
        &self.base
    }

    /// All that it is made of.
    pub fn bits(&self) -> Vec<u32> {
        let changes = self.changes.iter().flat_map(|change| bits(change));
        bits(&self.base).into_iter().chain(changes).collect()
    }

    /// The pieces that a call for `tokens` tokens writes.
    fn fresh(&self, tokens: usize) -> (Buffer<f32>, Vec<Buffer<f32>>) {
        let (changes, writes) = delta_after(self.changes.len(), tokens);
        let fresh = |len: usize| {
            let mut buffer = Buffer::zeroed(len, "test").unwrap();
            buffer.fill(f32::NAN);
            buffer
        };
        let base = fresh(if writes { self.shape.state_len() } else { 0 });
        // What fills a change up to whole cache lines is nobody's.
        let change = |_| Buffer::zeroed(self.shape.change_len(), "test").unwrap();
        (base, (0..changes).map(change).collect())
    }

    fn take(&mut self, (base, changes): (Buffer<f32>, Vec<Buffer<f32>>)) {
        if !base.is_empty() {
            (self.base, self.changes) = (Arc::new(base), Vec::new());
        }
        self.changes.extend(changes.into_iter().map(Arc::new));
    }

    /// [`delta_rule`]; the outputs of the tokens.
    pub fn rule(
        &mut self,
        c: &Compute,
        tokens: usize,
        inputs: DeltaInputs,
        g: &[f32],
        beta: &[f32],
    ) -> Vec<f32> {
        let mut out = vec![f32::NAN; tokens * self.shape.value_heads * self.shape.value_dim];
        let mut fresh = self.fresh(tokens);
        let mut after = DeltaAfter { base: &mut fresh.0, changes: Default::default() };
        for (to, change) in after.changes.iter_mut().zip(&mut fresh.1) {
            *to = change;
        }
        delta_rule(c, self.shape, tokens, inputs, g, beta, self.before(), after, &mut out);
        self.take(fresh);
        out
    }

    /// What `step` makes of each of `held` by one token.
    pub fn step<'h>(
        held: impl Iterator<Item = &'h mut Self>,
        step: impl FnOnce(&mut dyn Iterator<Item = (DeltaState, DeltaTarget)>),
    ) {
        let held: Vec<_> = held.collect();
        let mut fresh: Vec<_> = held.iter().map(|held| held.fresh(1)).collect();
        let targets = fresh.iter_mut().map(|(base, changes)| match changes.first_mut() {
            Some(change) => DeltaTarget::Change(SharedMut::new(change)),
            None => DeltaTarget::State(SharedMut::new(base)),
        });
        step(&mut held.iter().map(|held| held.before()).zip(targets));
        for (held, fresh) in held.into_iter().zip(fresh) {
            held.take(fresh);
            assert!(held.changes.len() <= MOST_CHANGES);
        }
    }
}
