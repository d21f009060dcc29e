//! What a pass computed for all of its tokens, for judging text.

use super::decoder::Network;
use super::workspace::Workspace;
use crate::kernels::{Compute, rms_norm};
use crate::{Error, Result};

impl Network {
    /// The hidden states `[tokens, H]` of the pass that was committed last, after the final
    /// norm, if that was by [`Network::forward_rows`]; `rows` is filled with them.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn hidden_rows(&self, c: &Compute, ws: &Workspace, rows: &mut Vec<f32>) -> Result<()> {
        let length = ws.tokens * self.config().hidden_size;
        rows.clear();
        rows.try_reserve(length).map_err(|_| Error::out_of_memory("hidden states", length * 4))?;
        rows.resize(length, 0.0);
        rms_norm(c, &ws.x[..length], &self.weights.final_norm, self.config().rms_norm_eps, rows);
        Ok(())
    }

    /// Logits `[n, vocab_size]` of the tokens after `n` rows of hidden states.
    ///
    /// # Errors
    /// `Cancelled`, or what the worker pool reports; `logits` then holds garbage.
    pub fn head_rows(&self, c: &Compute, rows: &[f32], logits: &mut [f32]) -> Result<()> {
        let tokens = rows.len() / self.config().hidden_size;
        self.weights.head.all(c, rows, tokens, logits);
        c.check()
    }
}
