//! The state of one sequence: what a session owns and a fork copies.

use std::sync::Arc;

use super::pass::Unfinished;
use crate::checkpoint::{Config, LayerKind};
use crate::kernels::{Buffer, KvElement, KvPages, KvShape};
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

/// The fixed-size memory of the linear layers. It cannot be cut back to an earlier
/// position, only copied beforehand.
#[derive(Default)]
pub struct Recurrent {
    /// `[linear layers][VH, DK, DV]`, `f32`: 16-bit states lose long-range memory.
    pub delta: Buffer<f32>,
    /// `[linear layers][width - 1, C]`: the last inputs of the convolution, before its
    /// activation, oldest first.
    pub conv: Buffer<f32>,
}

/// Sizes of one layer's part of a [`Recurrent`].
#[derive(Clone, Copy, Debug)]
pub struct RecurrentShape {
    /// Linear layers.
    pub layers: usize,
    /// `f32` values of delta state in a layer.
    pub delta: usize,
    /// `f32` values of convolution history in a layer.
    pub conv: usize,
}

impl RecurrentShape {
    /// The sizes that `config` asks for.
    pub fn new(config: &Config) -> Self {
        let layers = config.layer_kinds.iter().filter(|kind| **kind == LayerKind::Linear).count();
        Self {
            layers,
            delta: config.value_width() * config.linear_key_head_dim,
            conv: (config.linear_conv_kernel_dim - 1) * config.conv_channels(),
        }
    }

    /// Bytes of a [`Recurrent`] of this shape.
    pub fn bytes(&self) -> usize {
        self.layers * (self.delta + self.conv) * size_of::<f32>()
    }
}

impl Recurrent {
    /// All zero: the state before the first token.
    pub fn zeros(shape: RecurrentShape) -> Result<Self> {
        Ok(Self {
            delta: Buffer::zeroed(shape.layers * shape.delta, "the recurrent state")?,
            conv: Buffer::zeroed(shape.layers * shape.conv, "the convolution state")?,
        })
    }
}

impl Recurrent {
    /// Makes `held` one of this shape that nobody shares, its values of no matter.
    pub(super) fn ensure(held: &mut Arc<Self>, shape: RecurrentShape) -> Result<()> {
        let fits = |held: &mut Self| {
            held.delta.len() == shape.layers * shape.delta
                && held.conv.len() == shape.layers * shape.conv
        };
        if !Arc::get_mut(held).is_some_and(fits) {
            *held = Arc::new(Self::zeros(shape)?);
        }
        Ok(())
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        (self.delta.len() + self.conv.len()) * size_of::<f32>()
    }
}

impl State {
    /// Takes `pending` over as its recurrent state. In exchange `pending` has the memory of
    /// the old one, unless a fork or a mark keeps that; then the next pass takes new memory.
    pub(super) fn take_recurrent(&mut self, pending: &mut Arc<Recurrent>) {
        std::mem::swap(&mut self.recurrent, pending);
        if Arc::get_mut(pending).is_none() {
            *pending = Arc::default();
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
