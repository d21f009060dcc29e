//! A forward pass, or the head, made in steps.
//!
//! Each layer is one unit of a [`Pace`]: it can stop between any two tasks of its kernels
//! and go on later, on another thread too. What is unfinished belongs to the [`State`] that
//! it will change and is gone when that is replaced; the state itself stays as it was before
//! until the last layer is done.

use std::time::{Duration, Instant};

use super::{Network, State, Workspace};
use crate::Result;
use crate::kernels::{Compute, Pace};

/// What has been begun on a state and is to go on.
// It is always in a box of its own.
#[allow(clippy::large_enum_variant)]
pub enum Unfinished {
    /// A pass over the next tokens.
    Pass(Pass),
    /// The logits after the last token.
    Head(Head),
}

impl Unfinished {
    /// Bytes held.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Pass(pass) => pass.workspace.bytes(),
            Self::Head(head) => size_of_val(&*head.logits),
        }
    }
}

/// A pass over some tokens.
pub struct Pass {
    tokens: Vec<u32>,
    workspace: Workspace,
    pace: Pace,
    /// The layer in progress.
    layer: usize,
}

impl Pass {
    /// Begins a pass over `tokens` behind `state`.
    ///
    /// # Errors
    /// As [`Network::begin`].
    pub fn begin(
        network: &Network,
        tokens: &[u32],
        state: &State,
        mut workspace: Workspace,
    ) -> Result<Self> {
        network.begin(tokens, state, &mut workspace)?;
        Ok(Self { tokens: tokens.to_vec(), workspace, pace: Pace::default(), layer: 0 })
    }

    /// The tokens it is over.
    pub fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    /// Goes on until `deadline`, or to the end; true if the pass is complete and part of
    /// `state`. `between_layers` is asked whether to go on, with the layers done.
    ///
    /// # Errors
    /// As [`Network::layer`], and those of `between_layers`. The pass is then lost.
    pub fn advance(
        &mut self,
        c: &Compute,
        network: &Network,
        state: &mut State,
        deadline: Option<Instant>,
        mut between_layers: impl FnMut(usize) -> Result<()>,
    ) -> Result<bool> {
        self.pace.start(deadline);
        while self.layer < network.layers() {
            between_layers(self.layer)?;
            let paced = c.with_pace(&self.pace);
            network.layer(&paced, self.layer, state, &mut self.workspace)?;
            if paced.is_stopped() {
                return Ok(false);
            }
            self.pace.next_unit();
            self.layer += 1;
        }
        network.commit(c, state, &mut self.workspace)?;
        Ok(true)
    }

    /// What a long task took, typically: so far a step goes beyond its deadline.
    pub fn task_time(&mut self) -> Duration {
        self.pace.task_time()
    }

    /// The workspace of a pass that is complete or lost, for other passes.
    pub fn take_workspace(&mut self) -> Workspace {
        std::mem::take(&mut self.workspace)
    }
}

/// The logits after a state's last token.
pub struct Head {
    logits: Vec<f32>,
    pace: Pace,
}

impl Head {
    /// Begins; the logits come to be in `logits` `[vocab_size]`, whose contents do not
    /// matter.
    pub fn begin(logits: Vec<f32>) -> Self {
        Self { logits, pace: Pace::default() }
    }

    /// Goes on until `deadline`, or to the end; true if the logits are complete.
    ///
    /// # Errors
    /// As [`Network::head`].
    pub fn advance(
        &mut self,
        c: &Compute,
        network: &Network,
        state: &State,
        deadline: Option<Instant>,
    ) -> Result<bool> {
        self.pace.start(deadline);
        let paced = c.with_pace(&self.pace);
        network.head(&paced, &state.last_hidden, &mut self.logits)?;
        Ok(!paced.is_stopped())
    }

    /// The memory that it was begun with.
    pub fn into_logits(self) -> Vec<f32> {
        self.logits
    }
}
