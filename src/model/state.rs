//! The state of one sequence: what a session owns and a fork copies.

use std::sync::Arc;

use super::pass::Unfinished;
use super::recurrent::Spare;
pub use super::recurrent::{Recurrent, RecurrentShape};
use crate::checkpoint::{Config, LayerKind};
use crate::kernels::{KvElement, KvPages, KvShape};
use crate::{Error, Result};

/// Everything the network remembers of the tokens it has seen.
pub struct State {
    /// Tokens seen, which is the position of the next one.
    pub position: usize,
    /// What the linear layers remember. Shared with copies of the state: a pass reads it and
    /// writes the next one elsewhere, so that a copy costs nothing until it moves on.
    pub recurrent: Arc<Recurrent>,
    /// Keys and values of each full attention layer, in layer order. Rows from `position`
    /// on are scratch of a pass that has not been committed.
    pub kv: Vec<KvPages>,
    /// `[H]`: the last token's hidden state after the final norm, which the head turns into
    /// logits. Kept so that logits can be computed when they are asked for, and again after
    /// going back. Meaningless at position 0.
    pub last_hidden: Vec<f32>,
    /// A pass or head that was begun and is to go on. It continues these very values:
    /// whatever changes them otherwise drops it.
    pub unfinished: Option<Box<Unfinished>>,
}

impl State {
    /// Takes `pending` over as its recurrent state, which is empty then. What the old one held
    /// alone goes to `spare`.
    pub(super) fn take_recurrent(&mut self, pending: &mut Recurrent, spare: &mut Spare) {
        match Arc::get_mut(&mut self.recurrent) {
            Some(held) => {
                std::mem::swap(held, pending);
                pending.give_back(spare);
            }
            // A fork or a mark keeps it.
            None => self.recurrent = Arc::new(std::mem::take(pending)),
        }
    }

    /// The state before the first token, with keys and values as `element`.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn new(config: &Config, element: KvElement) -> Result<Self> {
        let full = config.layer_kinds.iter().filter(|kind| **kind == LayerKind::Full).count();
        let shape = Self::kv_shape(config, element);
        Ok(Self {
            position: 0,
            recurrent: Arc::new(Recurrent::zeros(RecurrentShape::new(config))?),
            kv: (0..full).map(|_| KvPages::new(shape)).collect(),
            last_hidden: zeros(config.hidden_size, "the hidden state")?,
            unfinished: None,
        })
    }

    /// Goes back to before the first token, in the memory that it has, which is much to ask the
    /// system for; false, and nothing happens, where copies share some of it.
    pub fn clear(&mut self, config: &Config) -> bool {
        let shape = RecurrentShape::new(config);
        if !Arc::get_mut(&mut self.recurrent).is_some_and(|held| held.clear(shape)) {
            return false;
        }
        self.position = 0;
        self.release_beyond();
        true
    }

    /// What the cache of a full attention layer holds for each token.
    pub fn kv_shape(config: &Config, element: KvElement) -> KvShape {
        KvShape { kv_heads: config.num_key_value_heads, head_dim: config.head_dim, element }
    }

    /// A copy, without what is unfinished. Recurrent state and KV pages are shared until one
    /// of the two moves on.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn try_clone(&self) -> Result<Self> {
        Ok(Self {
            position: self.position,
            recurrent: self.recurrent.clone(),
            kv: self.kv.iter().map(KvPages::fork).collect::<Result<_>>()?,
            last_hidden: copy(&self.last_hidden, "a copy of the hidden state")?,
            unfinished: None,
        })
    }

    /// Gives back the pages that hold no token of the sequence.
    pub fn release_beyond(&mut self) {
        // What is unfinished has rows there.
        self.unfinished = None;
        self.kv.iter_mut().for_each(|kv| kv.truncate(self.position));
    }

    /// Bytes held, counting what is shared once per holder.
    pub fn bytes(&self) -> usize {
        self.recurrent.bytes() + self.kv.iter().map(KvPages::bytes).sum::<usize>()
    }

    /// Bytes held beside `other`, with which it may share a beginning, and its fixed part with
    /// `last`, too.
    pub fn bytes_beside(&self, other: &Self, last: &Self) -> usize {
        let held = |(id, _): &(usize, usize)| {
            let mut known = other.recurrent.pieces().chain(last.recurrent.pieces());
            !known.any(|(other, _)| other == *id)
        };
        let fixed: usize = self.recurrent.pieces().filter(held).map(|(_, bytes)| bytes).sum();
        let pages = self.kv.iter().zip(&other.kv).map(|(kv, other)| kv.bytes_beside(other));
        fixed + pages.sum::<usize>()
    }
}

/// `len` zeros, or `OutOfMemory` naming `what`.
pub(super) fn zeros(len: usize, what: &str) -> Result<Vec<f32>> {
    let mut values = Vec::new();
    values
        .try_reserve_exact(len)
        .map_err(|_| Error::out_of_memory(what, len.saturating_mul(size_of::<f32>())))?;
    values.resize(len, 0.0);
    Ok(values)
}

fn copy(from: &[f32], what: &str) -> Result<Vec<f32>> {
    let mut values = Vec::new();
    values
        .try_reserve_exact(from.len())
        .map_err(|_| Error::out_of_memory(what, size_of_val(from)))?;
    values.extend_from_slice(from);
    Ok(values)
}
