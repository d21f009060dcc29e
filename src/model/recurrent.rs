//! What the linear layers of a sequence remember: of fixed size, whatever its length.
//!
//! It cannot be cut back to an earlier position, only kept beforehand. It is made of pieces that
//! are never changed once a pass is committed: states before a block of four tokens, what the
//! tokens of that block have changed so far (see [`DeltaState`]), and inputs of the convolution. A
//! pass shares with the state before it what stays as it was, and writes the other pieces anew.

use std::sync::Arc;

use crate::checkpoint::{Config, LayerKind};
use crate::kernels::{
    Buffer, DeltaAfter, DeltaShape, DeltaState, DeltaTarget, MOST_CHANGES, Parts, delta_after,
};
use crate::pool::SharedMut;
use crate::{Error, Result};

/// The memory of the linear layers.
#[derive(Default)]
pub struct Recurrent {
    /// `[linear layers][VH, DK, DV]`, before the changes; `f32`: 16-bit states lose long-range
    /// memory. None where it is no state yet.
    delta: Option<Arc<Buffer<f32>>>,
    /// What tokens have changed since, oldest first: `[linear layers][change]` each.
    changes: Vec<Arc<Buffer<f32>>>,
    /// The last inputs of the convolution, before its activation, oldest first:
    /// `[linear layers][C]` each.
    conv: Vec<Arc<Buffer<f32>>>,
}

/// Sizes of a [`Recurrent`].
#[derive(Clone, Copy, Debug)]
pub struct RecurrentShape {
    /// Linear layers.
    pub layers: usize,
    /// `f32` values of delta state in a layer.
    pub delta: usize,
    /// `f32` values of convolution history in a layer.
    pub conv: usize,
    /// Heads and their sizes.
    pub heads: DeltaShape,
}

impl RecurrentShape {
    /// The sizes that `config` asks for.
    pub fn new(config: &Config) -> Self {
        let layers = config.layer_kinds.iter().filter(|kind| **kind == LayerKind::Linear).count();
        let heads = DeltaShape {
            key_heads: config.linear_num_key_heads,
            value_heads: config.linear_num_value_heads,
            key_dim: config.linear_key_head_dim,
            value_dim: config.linear_value_head_dim,
        };
        let conv = (config.linear_conv_kernel_dim - 1) * heads.qkv_width();
        Self { layers, delta: heads.state_len(), conv, heads }
    }

    /// Bytes of a [`Recurrent`] of this shape without changes.
    pub fn bytes(&self) -> usize {
        self.layers * (self.delta + self.conv) * size_of::<f32>()
    }

    /// Changes of a state after `computed` tokens: blocks begin at fixed positions.
    pub fn changes_after(computed: u64) -> usize {
        (computed % (MOST_CHANGES as u64 + 1)) as usize
    }

    /// Bytes of a change.
    pub fn change_bytes(&self) -> usize {
        self.layers * self.heads.change_len() * size_of::<f32>()
    }

    /// Bytes of a [`Recurrent`] of this shape at most.
    pub fn most_bytes(&self) -> usize {
        self.bytes() + MOST_CHANGES * self.change_bytes()
    }

    /// Rows of convolution history.
    fn rows(&self) -> usize {
        self.conv / self.heads.qkv_width().max(1)
    }
}

/// Pieces that nobody uses, for the next passes.
#[derive(Default)]
pub(super) struct Spare {
    pieces: Vec<Arc<Buffer<f32>>>,
    /// How many of them are kept at most.
    limit: usize,
}

impl Spare {
    /// Keeps what so many sequences side by side need.
    pub fn expect(&mut self, sequences: usize, shape: RecurrentShape) {
        self.limit = self.limit.max(sequences * (1 + MOST_CHANGES + shape.rows()));
    }

    fn take(&mut self, len: usize, what: &str) -> Result<Arc<Buffer<f32>>> {
        match self.pieces.iter().position(|piece| piece.len() == len) {
            Some(at) => Ok(self.pieces.swap_remove(at)),
            None => Ok(Arc::new(Buffer::zeroed(len, what)?)),
        }
    }

    /// Takes a piece that somebody gives up, unless others use it.
    fn put(&mut self, mut piece: Arc<Buffer<f32>>) {
        if self.pieces.len() < self.limit && Arc::get_mut(&mut piece).is_some() {
            self.pieces.push(piece);
        }
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.pieces.iter().map(|piece| size_of_val(&piece[..])).sum()
    }
}

/// One layer of the state before a pass.
#[derive(Clone, Copy)]
pub(super) struct Before<'a> {
    pub delta: DeltaState<'a>,
    /// The inputs of the convolution of the tokens before.
    pub history: Parts<'a>,
}

impl Recurrent {
    /// All zero: the state before the first token.
    pub fn zeros(shape: RecurrentShape) -> Result<Self> {
        let row = || Buffer::zeroed(shape.layers * shape.heads.qkv_width(), CONV).map(Arc::new);
        Ok(Self {
            delta: Some(Arc::new(Buffer::zeroed(shape.layers * shape.delta, DELTA)?)),
            changes: Vec::with_capacity(MOST_CHANGES),
            conv: (0..shape.rows()).map(|_| row()).collect::<Result<_>>()?,
        })
    }

    /// Makes it what [`Recurrent::zeros`] makes, in the memory that it has; false, and nothing
    /// happens, where others use some of that.
    pub(super) fn clear(&mut self, shape: RecurrentShape) -> bool {
        let whole = self.delta.is_some() && self.conv.len() == shape.rows();
        let mut pieces = self.delta.iter_mut().chain(&mut self.conv);
        if !whole || !pieces.all(|piece| Arc::get_mut(piece).is_some()) {
            return false;
        }
        for piece in self.delta.iter_mut().chain(&mut self.conv).filter_map(Arc::get_mut) {
            piece.fill(0.0);
        }
        self.changes.clear();
        true
    }

    /// Makes it what a pass over `tokens` tokens behind `before` writes: what stays as it was is
    /// shared, the rest is this one's own, its values of no matter.
    ///
    /// # Errors
    /// `OutOfMemory`; it is then of no use.
    pub(super) fn follow(
        &mut self,
        before: &Self,
        shape: RecurrentShape,
        tokens: usize,
        spare: &mut Spare,
    ) -> Result<()> {
        self.give_back(spare);
        let (changes, writes) = delta_after(before.changes.len(), tokens);
        if writes {
            self.delta = Some(spare.take(shape.layers * shape.delta, DELTA)?);
        } else {
            self.delta.clone_from(&before.delta);
            self.changes.extend(before.changes.iter().cloned());
        }
        for _ in 0..changes {
            self.changes.push(spare.take(shape.layers * shape.heads.change_len(), DELTA)?);
        }
        let fresh = tokens.min(shape.rows());
        self.conv.extend(before.conv[fresh..].iter().cloned());
        for _ in 0..fresh {
            self.conv.push(spare.take(shape.layers * shape.heads.qkv_width(), CONV)?);
        }
        Ok(())
    }

    /// Gives up all pieces.
    pub(super) fn give_back(&mut self, spare: &mut Spare) {
        self.delta.take().into_iter().for_each(|piece| spare.put(piece));
        self.changes.drain(..).for_each(|piece| spare.put(piece));
        self.conv.drain(..).for_each(|piece| spare.put(piece));
    }

    fn delta(&self) -> &[f32] {
        match &self.delta {
            Some(delta) => delta,
            None => &[],
        }
    }

    /// Layer `layer` of the linear ones.
    pub(super) fn layer(&self, shape: RecurrentShape, layer: usize) -> Before<'_> {
        let RecurrentShape { delta, heads, .. } = shape;
        let (change, channels) = (heads.change_len(), heads.qkv_width());
        Before {
            delta: DeltaState {
                base: &self.delta()[layer * delta..(layer + 1) * delta],
                changes: Parts::new(&self.changes, layer * change, change),
            },
            history: Parts::new(&self.conv, layer * channels, channels),
        }
    }

    /// Where layer `layer` of the linear ones goes after one token: the states or the change,
    /// and the input of the convolution. It was made by [`Recurrent::follow`].
    ///
    /// # Errors
    /// `Internal` if somebody else holds these pieces.
    pub(super) fn after_one(
        &mut self,
        shape: RecurrentShape,
        layer: usize,
    ) -> Result<(DeltaTarget<'_>, SharedMut<'_, f32>)> {
        let Self { delta, changes, conv } = self;
        let target = match (changes.last_mut(), delta) {
            (Some(change), _) => {
                let change = part_of(change, layer, shape.heads.change_len())?;
                DeltaTarget::Change(SharedMut::new(change))
            }
            (None, Some(delta)) => {
                DeltaTarget::State(SharedMut::new(part_of(delta, layer, shape.delta)?))
            }
            (None, None) => return Err(no_memory()),
        };
        let kept: &mut [f32] = match conv.last_mut() {
            Some(row) => part_of(row, layer, shape.heads.qkv_width())?,
            None => &mut [],
        };
        Ok((target, SharedMut::new(kept)))
    }

    /// Where layer `layer` of the linear ones goes after several tokens behind `before`. The last
    /// of their `inputs` of the convolution are kept, as many as there is history of. It was made
    /// by [`Recurrent::follow`].
    ///
    /// # Errors
    /// As [`Recurrent::after_one`].
    pub(super) fn after_some(
        &mut self,
        before: &Self,
        shape: RecurrentShape,
        layer: usize,
        inputs: &[f32],
    ) -> Result<DeltaAfter<'_>> {
        let channels = shape.heads.qkv_width();
        let rows = inputs.chunks_exact(channels.max(1));
        let (fresh, writes) = delta_after(before.changes.len(), rows.len());
        for (row, input) in self.conv.iter_mut().rev().zip(rows.rev()) {
            part_of(row, layer, channels)?.copy_from_slice(input);
        }
        let mut after = DeltaAfter { base: &mut [], changes: Default::default() };
        if writes {
            let delta = self.delta.as_mut().ok_or_else(no_memory)?;
            after.base = part_of(delta, layer, shape.delta)?;
        }
        let kept = self.changes.len().saturating_sub(fresh);
        for (to, change) in after.changes.iter_mut().zip(&mut self.changes[kept..]) {
            *to = part_of(change, layer, shape.heads.change_len())?;
        }
        Ok(after)
    }

    /// How many changes it has.
    pub fn changes(&self) -> usize {
        self.changes.len()
    }

    /// Calls `put` with all that a saved session holds of it, part after part: the states of
    /// each layer and its changes, then the history of each.
    ///
    /// # Errors
    /// Those of `put`.
    pub fn store(
        &self,
        shape: RecurrentShape,
        put: &mut dyn FnMut(&[f32]) -> Result<()>,
    ) -> Result<()> {
        put(self.delta())?;
        self.changes.iter().try_for_each(|change| put(change))?;
        for layer in 0..shape.layers {
            let history = self.layer(shape, layer).history;
            (0..history.count()).try_for_each(|row| put(history.get(row)))?;
        }
        Ok(())
    }

    /// Fills one made by [`Recurrent::zeros`] with what [`Recurrent::store`] has put of one that
    /// had `changes` changes.
    ///
    /// # Errors
    /// `Internal` if it is shared or cannot have so many changes, `OutOfMemory`, and those of
    /// `get`.
    pub fn load(
        &mut self,
        shape: RecurrentShape,
        changes: usize,
        get: &mut dyn FnMut(&mut [f32]) -> Result<()>,
    ) -> Result<()> {
        if changes > MOST_CHANGES || !self.changes.is_empty() {
            return Err(Error::internal("changes of a saved state"));
        }
        let delta = self.delta.as_mut().ok_or_else(no_memory)?;
        get(Arc::get_mut(delta).ok_or_else(shared)?)?;
        for _ in 0..changes {
            let mut change = Buffer::zeroed(shape.layers * shape.heads.change_len(), DELTA)?;
            get(&mut change)?;
            self.changes.push(Arc::new(change));
        }
        for layer in 0..shape.layers {
            for row in &mut self.conv {
                get(part_of(row, layer, shape.heads.qkv_width())?)?;
            }
        }
        Ok(())
    }

    /// Bytes held, shared ones included.
    pub fn bytes(&self) -> usize {
        self.pieces().map(|(_, bytes)| bytes).sum()
    }

    /// What tells each piece from any other alive, with its bytes: states that share pieces
    /// count each once.
    pub fn pieces(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let all = self.delta.iter().chain(&self.changes).chain(&self.conv);
        all.map(|piece| (Arc::as_ptr(piece).addr(), size_of_val(&piece[..])))
    }
}

const DELTA: &str = "the recurrent state";
const CONV: &str = "the convolution state";

/// Part `n` of the parts of `len` elements of a piece that nobody shares.
fn part_of(piece: &mut Arc<Buffer<f32>>, n: usize, len: usize) -> Result<&mut [f32]> {
    let piece = Arc::get_mut(piece).ok_or_else(shared)?;
    Ok(&mut piece[n * len..(n + 1) * len])
}

fn no_memory() -> Error {
    Error::internal("a state without memory")
}

fn shared() -> Error {
    Error::internal("the state that a pass writes is shared")
}
