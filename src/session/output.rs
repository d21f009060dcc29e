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
        result
    }

    /// A number that sequences of other tokens do not have, but for a chance of one in 2^64: by
    /// it a reply in progress knows its own sequence, also when it was saved and restored. It
    /// takes microseconds where a token takes milliseconds.
    pub(crate) fn sequence_number(&self) -> u64 {
        const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;
        let mix = |number: u64, pair: &[u32]| {
            let pair = pair.iter().fold(0, |pair, token| pair << 32 | u64::from(*token));
            let product = u128::from(number ^ pair ^ FACTOR) * u128::from(FACTOR);
            (product >> 64) as u64 ^ product as u64
        };
        self.tokens.chunks(2).fold(self.tokens.len() as u64, mix)
    }

    /// Has `token` not chosen until this is called again; `None` ends that. It is neither saved
    /// nor forked.
    pub(crate) fn ban_token(&mut self, token: Option<u32>) {
        self.sampler.ban(token);
    }
}
