//! What the library has to do with the model's output: tokens that it writes in the model's place,
//! such as it does not let it choose, and how a reply knows its sequence again.

use super::Session;
use crate::Result;

impl Session {
    /// Queues `tokens` as part of the model's own output, which penalties count. They are to fit:
    /// in the middle of a reply no turn goes to make room for them ([`super::Overflow`]), as none
    /// goes for a token that the model chooses.
    ///
    /// # Errors
    /// Before anything is queued: `InvalidArgument` for an id without a row in the embedding,
    /// `ContextOverflow`, `OutOfMemory`.
    pub(crate) fn enqueue_output(&mut self, tokens: &[u32]) -> Result<()> {
        self.check_ids(tokens)?;
        self.check_room(self.tokens.len(), tokens.len())?;
        let start = self.output_start;
        let result = self.queue(tokens);
        self.output_start = start;
        self.meter.input_ends();
        result
    }

    /// What tells the sequence from others, see [`Sequence`](super::sequence::Sequence).
    pub(crate) fn sequence_number(&self) -> u64 {
        self.tokens.number()
    }

    /// Has `token` not chosen until this is called again; `None` ends that. It is neither saved
    /// nor forked.
    pub(crate) fn ban_token(&mut self, token: Option<u32>) {
        self.sampler.ban(token);
    }
}
