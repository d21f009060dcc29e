//! Tokens that the caller writes in the model's place.

use super::Session;
use crate::Result;

impl Session {
    /// Appends `tokens` as [`Session::feed`] does, but as part of the model's own output, which
    /// penalties count.
    ///
    /// # Errors
    /// As [`Session::feed`].
    pub(crate) fn append_output(&mut self, tokens: &[u32]) -> Result<()> {
        let start = self.output_start;
        let result = self.feed(tokens);
        self.output_start = start;
        result
    }
}
