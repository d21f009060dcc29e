//! Independent copies of a session.

use super::statistics::Meter;
use super::{CancelHandle, Session};
use crate::{Error, Result};

impl Session {
    /// An independent session that stands where this one does: the same sequence, marks,
    /// attachment and sampling options, and its own copy of the random stream. What both do
    /// next does not reach the other.
    ///
    /// It costs microseconds and the list of tokens: recurrent state and pages of keys and
    /// values are shared until one of the two moves on. The first token that a fork computes
    /// then costs it a page (64 tokens) for each attention layer, the third at the latest a
    /// recurrent state (19 MB at 0.8B). The caller's hooks and a cancel that waits are not
    /// copied.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn fork(&self) -> Result<Self> {
        let mut fork = Self {
            model: self.model.clone(),
            state: self.state.try_clone()?,
            tokens: copy(&self.tokens, "a copy of the sequence")?.into(),
            logits: Vec::new(),
            logits_position: None,
            sampler: self.sampler.fork(),
            output_start: self.output_start,
            context_limit: self.context_limit,
            cancel: CancelHandle::default(),
            progress: None,
            logits_hook: None,
            kv: self.kv,
            marks: self.marks.try_clone()?,
            namespace: self.namespace,
            overflow: self.overflow,
            left_out: self.left_out,
            attachment: copy(&self.attachment, "a copy of the attachment")?,
            last_fed: self.last_fed,
            stepping: self.stepping.fork(),
            meter: Meter::new(&self.model),
        };
        fork.count_bytes();
        Ok(fork)
    }
}

/// A copy whose allocation can fail.
pub(super) fn copy<T: Copy>(from: &[T], what: &str) -> Result<Vec<T>> {
    let mut values = Vec::new();
    let refused = |_| Error::out_of_memory(what, size_of_val(from));
    values.try_reserve_exact(from.len()).map_err(refused)?;
    values.extend_from_slice(from);
    Ok(values)
}
