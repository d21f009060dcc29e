//! The whole network, from token ids to logits.
//!
//! ```text
//! x = embed_tokens[ids]
//! for each layer:  x += mixer(norm(x));  x += mlp(norm(x))
//! logits = head(norm(x))
//! ```
//!
//! Prefill of many tokens and decoding of one are the same function. A pass can stop
//! between layers: [`Network::begin`], [`Network::layer`] for each layer, then
//! [`Network::commit`]; [`Network::forward`] does all three. Until `commit`, the state of
//! the sequence is as it was before.

use super::head::{Choice, HeadCounts};
use super::loader::Loader;
use super::rope::Rope;
use super::state::{RecurrentShape, State};
use super::weights::{Mixer, NetworkWeights};
use super::workspace::Workspace;
use super::{attention, deltanet, mlp};
use crate::checkpoint::Config;
use crate::kernels::{Compute, rms_norm};
use crate::{Error, Result};

/// The text network of one checkpoint: read only, shared by all sessions.
pub struct Network {
    config: Config,
    pub(super) weights: NetworkWeights,
    pub(super) rope: Rope,
    /// For each layer, how many layers of its kind come before it: where its state is.
    pub(super) index_of_kind: Vec<usize>,
}

impl Network {
    /// The network of a checkpoint, which stays mapped where weights are used as stored.
    ///
    /// # Errors
    /// A tensor is absent or not as the configuration says, or cannot be quantized;
    /// `Cancelled`; `OutOfMemory`.
    pub fn load(loader: &mut Loader) -> Result<Self> {
        let config = loader.config().clone();
        let weights = NetworkWeights::load(loader)?;
        let index_of_kind = (0..config.layer_kinds.len())
            .map(|layer| {
                let (before, kind) = (&config.layer_kinds[..layer], config.layer_kinds[layer]);
                before.iter().filter(|k| **k == kind).count()
            })
            .collect();
        Ok(Self { rope: Rope::new(&config), config, weights, index_of_kind })
    }

    /// The configuration.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Layers to run in a pass.
    pub fn layers(&self) -> usize {
        self.weights.layers.len()
    }

    /// Computes `tokens` behind `state` and commits them. `between_layers` is asked before
    /// each layer whether to go on.
    ///
    /// # Errors
    /// `Cancelled`, `OutOfMemory`, `InvalidArgument` (an id outside the vocabulary), or what
    /// the worker pool reports. `state` is then unchanged.
    pub fn forward(
        &self,
        c: &Compute,
        tokens: &[u32],
        state: &mut State,
        ws: &mut Workspace,
        between_layers: impl FnMut(usize) -> Result<()>,
    ) -> Result<()> {
        self.pass(c, tokens, state, ws, false, between_layers)
    }

    /// As [`Network::forward`], for [`Network::hidden_rows`] afterwards: the others leave out
    /// what only the hidden states of tokens before the last need.
    ///
    /// # Errors
    /// As [`Network::forward`].
    pub fn forward_rows(
        &self,
        c: &Compute,
        tokens: &[u32],
        state: &mut State,
        ws: &mut Workspace,
        between_layers: impl FnMut(usize) -> Result<()>,
    ) -> Result<()> {
        self.pass(c, tokens, state, ws, true, between_layers)
    }

    /// A pass, whole; `every_row` as in [`Workspace`].
    fn pass(
        &self,
        c: &Compute,
        tokens: &[u32],
        state: &mut State,
        ws: &mut Workspace,
        every_row: bool,
        mut between_layers: impl FnMut(usize) -> Result<()>,
    ) -> Result<()> {
        self.begin(tokens, state, ws)?;
        ws.every_row = every_row;
        for layer in 0..self.layers() {
            between_layers(layer)?;
            self.layer(c, layer, state, ws)?;
        }
        self.commit(c, state, ws)
    }

    /// Starts a pass over `tokens`: looks up their embeddings and positions.
    ///
    /// # Errors
    /// `OutOfMemory`; `InvalidArgument` for an id outside the vocabulary.
    pub fn begin(&self, tokens: &[u32], state: &State, ws: &mut Workspace) -> Result<()> {
        let hidden = self.config.hidden_size;
        ws.ensure(&self.config, tokens.len())?;
        let shape = RecurrentShape::new(&self.config);
        ws.spare.expect(1, shape);
        ws.pending.follow(&state.recurrent, shape, tokens.len(), &mut ws.spare)?;
        ws.tokens = tokens.len();
        ws.every_row = false;
        ws.first_position = state.position;
        for (token, x) in tokens.iter().zip(ws.x.chunks_exact_mut(hidden)) {
            self.embed(*token, x)?;
        }
        self.weights.head.note_lookups(tokens.len());
        self.rope.angles(state.position, tokens.len(), &mut ws.cos, &mut ws.sin);
        Ok(())
    }

    /// Looks up the embedding of `token`.
    pub(super) fn embed(&self, token: u32, x: &mut [f32]) -> Result<()> {
        let (row, embeddings) = (token as usize, self.weights.embed_tokens.matrix());
        if row >= embeddings.rows {
            return Err(Error::invalid_argument(format!(
                "token id {token}: the vocabulary has {} rows",
                embeddings.rows
            )));
        }
        embeddings.widen_row(row, x);
        Ok(())
    }

    /// Runs layer `layer` of the pass in progress.
    ///
    /// # Errors
    /// `Cancelled`, `OutOfMemory`, or what the worker pool reports. The pass is then lost,
    /// the state is not.
    pub fn layer(
        &self,
        c: &Compute,
        layer: usize,
        state: &mut State,
        ws: &mut Workspace,
    ) -> Result<()> {
        let weights = &self.weights.layers[layer];
        let eps = self.config.rms_norm_eps;
        let (tokens, index) = (ws.tokens, self.index_of_kind[layer]);
        let hidden = self.config.hidden_size;
        let stream = tokens * hidden;
        // Behind the last layer, only the last token's hidden state is of use: what the others
        // leave for later tokens are the recurrent state, keys and values.
        let last = layer + 1 == self.layers() && !ws.every_row;
        let first = if last { tokens - 1 } else { 0 };

        rms_norm(c, &ws.x[..stream], &weights.input_norm, eps, &mut ws.h[..stream]);
        match &weights.mixer {
            Mixer::DeltaNet(w) => {
                deltanet::forward(c, &self.config, w, first, index, &state.recurrent, ws)?;
            }
            Mixer::Attention(w) => {
                attention::forward(c, &self.config, w, first, &mut state.kv[index], ws)?;
            }
        }
        let (rows, x) = (tokens - first, &mut ws.x[first * hidden..stream]);
        let h = &mut ws.h[..rows * hidden];
        rms_norm(c, x, &weights.post_norm, eps, h);
        let activation = &mut ws.activation[..rows * self.config.intermediate_size];
        mlp::forward(c, &weights.mlp, rows, h, activation, x);
        c.check()
    }

    /// Makes the pass's tokens part of the sequence.
    ///
    /// # Errors
    /// `Cancelled`; the state is then as before.
    pub fn commit(&self, c: &Compute, state: &mut State, ws: &mut Workspace) -> Result<()> {
        let hidden = self.config.hidden_size;
        let last = (ws.tokens - 1) * hidden..ws.tokens * hidden;
        let eps = self.config.rms_norm_eps;
        rms_norm(c, &ws.x[last], &self.weights.final_norm, eps, &mut ws.h[..hidden]);
        // A cancel that came just now may have kept the norm from being computed.
        c.check()?;
        state.last_hidden.copy_from_slice(&ws.h[..hidden]);
        state.take_recurrent(&mut ws.pending, &mut ws.spare);
        state.unfinished = None;
        state.position += ws.tokens;
        Ok(())
    }

    /// Logits `[vocab_size]` of the token after the last one of a sequence, from its
    /// [`State::last_hidden`]; or those of several, one after the other.
    ///
    /// # Errors
    /// `Cancelled`, or what the worker pool reports; `logits` then holds garbage.
    pub fn head(&self, c: &Compute, last_hidden: &[f32], logits: &mut [f32]) -> Result<()> {
        let rows = last_hidden.len() / self.config.hidden_size;
        self.weights.head.all(c, last_hidden, rows, logits);
        c.check()
    }

    /// Those of the logits that can be among the largest that `choice` asks for, the same bits
    /// as by [`Network::head`]; the others become -infinity. Returns whether all logits were
    /// computed after all.
    ///
    /// # Errors
    /// `Cancelled`, `OutOfMemory`, or what the worker pool reports; `logits` then holds
    /// garbage.
    pub fn head_largest(
        &self,
        c: &Compute,
        last_hidden: &[f32],
        choice: &mut Choice,
        ws: &mut Workspace,
        logits: &mut [f32],
    ) -> Result<bool> {
        self.weights.head.largest(c, last_hidden, choice, &mut ws.head, logits)
    }

    /// What choices came to that were made from part of quantized logits.
    pub fn head_counts(&self) -> HeadCounts {
        self.weights.head.counts()
    }
}
