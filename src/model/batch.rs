//! One token of each of several sequences in one pass.
//!
//! The rows of the sequences are stacked: norms and products with weights take them all at
//! once, so that each weight is read once for all; what reads or writes a sequence's own
//! state is done for one row after the other. A row's result does not depend on the rows
//! beside it, so each sequence gets the bits it would get alone, and what goes wrong with
//! one does not touch the others.

use super::head::Choice;
use super::state::{Recurrent, RecurrentShape, State};
use super::weights::{Linear, Mixer};
use super::workspace::Workspace;
use super::{Network, attention, deltanet, mlp};
use crate::kernels::{Ahead, Buffer, Compute, ComputeMode, KvPages, ahead_of_step, rms_norm};
use crate::{Error, Result};

/// Sequences longer than this are not looked through by one thread alone.
const FAR: usize = 1024;

/// One sequence of a batch.
pub struct Row<'a> {
    /// Its next token, which the pass computes.
    pub token: u32,
    /// Its state.
    pub state: &'a mut State,
    /// Not `Ok` once something went wrong with it; it is then not committed.
    pub outcome: Result<()>,
}

/// What a batch needs beside the buffers of a pass.
#[derive(Default)]
pub(super) struct BatchScratch {
    /// The recurrent states after the pass, one for each row.
    pub(super) pending: Vec<Recurrent>,
    /// `[rows, H]`
    hidden: Buffer<f32>,
    /// `[rows, vocab_size]`
    logits: Buffer<f32>,
}

impl Network {
    /// Computes the token of each row and commits those whose outcome is still `Ok`.
    /// `between_layers` may end rows by setting their outcome; when none is left, the pass
    /// ends.
    ///
    /// # Errors
    /// What concerns all rows: `OutOfMemory`, or what the worker pool reports. No state is
    /// then changed.
    pub fn forward_batch(
        &self,
        c: &Compute,
        rows: &mut [Row],
        ws: &mut Workspace,
        mut between_layers: impl FnMut(&mut [Row]),
    ) -> Result<()> {
        self.begin_batch(rows, ws)?;
        let mut ahead = self.states_ahead(c, 0, false, rows);
        for layer in 0..self.layers() {
            between_layers(rows);
            if rows.iter().all(|row| row.outcome.is_err()) {
                return Ok(());
            }
            self.layer_batch(c, layer, rows, &mut ahead, ws)?;
        }
        between_layers(rows);
        self.commit_batch(c, rows, ws)
    }

    fn begin_batch(&self, rows: &mut [Row], ws: &mut Workspace) -> Result<()> {
        let (config, hidden) = (self.config(), self.config().hidden_size);
        ws.ensure(config, rows.len())?;
        ws.tokens = rows.len();
        let (pending, shape) = (&mut ws.batch.pending, RecurrentShape::new(config));
        ws.spare.expect(rows.len(), shape);
        pending.resize_with(rows.len().max(pending.len()), Recurrent::default);
        for (row, pending) in rows.iter().zip(pending) {
            pending.follow(&row.state.recurrent, shape, 1, &mut ws.spare)?;
        }
        self.weights.head.note_lookups(rows.len());
        let pairs = config.rotary_dim / 2;
        for (n, row) in rows.iter_mut().enumerate() {
            let x = &mut ws.x[n * hidden..(n + 1) * hidden];
            row.outcome = self.embed(row.token, x);
            let angles = n * pairs..(n + 1) * pairs;
            let (cos, sin) = (&mut ws.cos[angles.clone()], &mut ws.sin[angles]);
            self.rope.angles(row.state.position, 1, cos, sin);
        }
        Ok(())
    }

    fn layer_batch(
        &self,
        c: &Compute,
        layer: usize,
        rows: &mut [Row],
        ahead: &mut Option<Ahead>,
        ws: &mut Workspace,
    ) -> Result<()> {
        let (weights, index) = (&self.weights.layers[layer], self.index_of_kind[layer]);
        let (config, eps) = (self.config(), self.config().rms_norm_eps);
        let stream = ws.tokens * config.hidden_size;

        rms_norm(c, &ws.x[..stream], &weights.input_norm, eps, &mut ws.h[..stream]);
        let asking = c.with_ahead(ahead.as_ref());
        match &weights.mixer {
            Mixer::DeltaNet(w) => {
                deltanet::project(&asking, config, w, ws);
                asking.check()?;
                let committed = rows.iter().map(|row| &*row.state.recurrent);
                deltanet::step(c, config, w, index, committed, ws)?;
                *ahead = self.states_ahead(c, layer, true, rows);
                let asking = c.with_ahead(ahead.as_ref());
                deltanet::output(&asking, config, w, 0, ws);
                asking.check()?;
            }
            Mixer::Attention(w) => {
                attention::project(&asking, config, w, 0, ws);
                let positions = rows.iter().map(|row| row.state.position).collect::<Vec<_>>();
                let mixes = attention::rows(config, positions.into_iter(), ws);
                let mut mixes: Vec<_> = mixes
                    .zip(rows.iter_mut())
                    .filter(|(_, row)| row.outcome.is_ok())
                    .map(|(mix, row)| (mix, &mut row.state.kv[index], &mut row.outcome))
                    .collect();
                let work =
                    |(mix, kv, outcome): &mut (attention::Mix, &mut KvPages, &mut Result<()>)| {
                        **outcome = attention::mix(c, config, kv, mix);
                    };
                // Where one looks far back, all threads do so together: the others would
                // wait for it.
                mixes.sort_by_key(|(mix, ..)| mix.context());
                let far = mixes.partition_point(|(mix, ..)| mix.context() <= FAR);
                side_by_side(c, &mut mixes[..far], work);
                mixes[far..].iter_mut().for_each(work);
                drop(mixes);
                attention::output(&asking, config, w, 0, ws);
                asking.check()?;
            }
        }
        rms_norm(c, &ws.x[..stream], &weights.post_norm, eps, &mut ws.h[..stream]);
        let activation = &mut ws.activation[..ws.tokens * config.intermediate_size];
        let x = &mut ws.x[..stream];
        let asking = c.with_ahead(ahead.as_ref());
        mlp::forward(&asking, &weights.mlp, ws.tokens, &ws.h[..stream], activation, x);
        asking.check()?;
        c.check()
    }

    /// The states that the first linear layer from `layer` on reads, for products before it to
    /// ask for; with `behind`, that behind the rule of `layer`, which is such a layer. None where
    /// the memory limits the products, too, which then do not ask.
    fn states_ahead(&self, c: &Compute, layer: usize, behind: bool, rows: &[Row]) -> Option<Ahead> {
        if rows.len() < 2 || c.mode != ComputeMode::Fast {
            return None;
        }
        let (mut bytes, mut n, mut behind) = (0, layer, behind);
        loop {
            let weights = self.weights.layers.get(n)?;
            match &weights.mixer {
                Mixer::DeltaNet(w) if !behind => {
                    bytes += w.in_proj_qkv.bytes() + w.in_proj_z.bytes();
                    break;
                }
                Mixer::DeltaNet(w) => bytes += w.out_proj.bytes(),
                Mixer::Attention(w) => {
                    let before = [&w.q_proj, &w.k_proj, &w.v_proj, &w.o_proj];
                    bytes += before.map(Linear::bytes).iter().sum::<u64>();
                }
            }
            let mlp = &weights.mlp;
            bytes += mlp.gate_proj.bytes() + mlp.up_proj.bytes() + mlp.down_proj.bytes();
            (n, behind) = (n + 1, false);
        }
        let shape = RecurrentShape::new(self.config());
        let index = self.index_of_kind[n];
        let states = rows.iter().map(|row| row.state.recurrent.layer(shape, index));
        let bases: Vec<_> = states.map(|before| before.delta.base).collect();
        Some(ahead_of_step(c, shape.heads, &bases, bytes as usize))
    }

    fn commit_batch(&self, c: &Compute, rows: &mut [Row], ws: &mut Workspace) -> Result<()> {
        let (hidden, eps) = (self.config().hidden_size, self.config().rms_norm_eps);
        let stream = ws.tokens * hidden;
        let norm = &self.weights.final_norm;
        rms_norm(c, &ws.x[..stream], norm, eps, &mut ws.h[..stream]);
        c.check()?;
        let hidden = ws.h[..stream].chunks_exact(hidden);
        for ((row, hidden), pending) in rows.iter_mut().zip(hidden).zip(&mut ws.batch.pending) {
            if row.outcome.is_ok() {
                row.state.last_hidden.copy_from_slice(hidden);
                row.state.take_recurrent(pending, &mut ws.spare);
                row.state.unfinished = None;
                row.state.position += 1;
            }
        }
        Ok(())
    }

    /// Logits `[states, vocab_size]` of the token after each of some sequences. With
    /// `choices`, if there is one for each, only those that can be among the largest of each are
    /// computed and the others are -infinity, where that is of use; returns whether all were
    /// computed.
    ///
    /// # Errors
    /// `OutOfMemory`, or what the worker pool reports.
    pub fn head_batch<'w>(
        &self,
        c: &Compute,
        states: &[&State],
        choices: &mut [Choice],
        ws: &'w mut Workspace,
    ) -> Result<(&'w [f32], bool)> {
        let (width, vocab) = (self.config().hidden_size, self.config().vocab_size);
        let Workspace { batch: BatchScratch { hidden, logits, .. }, head, .. } = ws;
        grow(hidden, states.len() * width)?;
        grow(logits, states.len() * vocab)?;
        let hidden = &mut hidden[..states.len() * width];
        let logits = &mut logits[..states.len() * vocab];
        for (state, row) in states.iter().zip(hidden.chunks_exact_mut(width)) {
            row.copy_from_slice(&state.last_hidden);
        }
        let mut complete = true;
        if choices.len() == states.len() {
            complete = self.weights.head.largest_rows(c, hidden, choices, head, logits)?;
        } else {
            self.head(c, hidden, logits)?;
        }
        Ok((logits, complete))
    }
}

/// Calls `work` for each of `parts`, which are about equally long: as many as can be shared out
/// evenly in one parallel region, in which each is computed by one thread; the rest one after
/// the other, each by all threads.
fn side_by_side<T: Send>(c: &Compute, parts: &mut [T], work: impl Fn(&mut T) + Sync) {
    let threads = c.pool.threads();
    let (even, rest) = parts.split_at_mut(parts.len() / threads * threads);
    c.run_chunks(even, 1, |_, part| work(&mut part[0]));
    rest.iter_mut().for_each(work);
}

fn grow(buffer: &mut Buffer<f32>, len: usize) -> Result<()> {
    if buffer.len() < len {
        *buffer = Buffer::default();
        *buffer = Buffer::zeroed(len, "the workspace of a batch")?;
    }
    Ok(())
}

/// The error of a row whose session was cancelled.
pub fn cancelled() -> Error {
    Error::cancelled("the computation was cancelled")
}
