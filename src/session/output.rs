//! Tokens that the caller writes in the model's place.

use super::Session;
use crate::Result;

impl Session {
    /// Queues `tokens` as [`Session::enqueue`] does, but as part of the model's own output, which
    /// penalties count.
    ///
    /// # Errors
    /// As [`Session::enqueue`].
    pub(crate) fn enqueue_output(&mut self, tokens: &[u32]) -> Result<()> {
        let start = self.output_start;
        let result = self.enqueue(tokens);
        self.output_start = start;
        result
    }
}
