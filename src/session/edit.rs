//! A caller's say in the choice of tokens.

use std::ops::ControlFlow;

use super::Session;
use crate::{Error, Result};

/// Gets the logits of the tokens that can be chosen, to change, and the sequence so far; `Break`
/// cancels the call.
pub type LogitsHook = Box<dyn FnMut(&mut [f32], &[u32]) -> ControlFlow<()> + Send + Sync>;

impl Session {
    /// Calls `hook` before each token is chosen; `None` ends that. Its changes count for that
    /// choice only; bias, penalties and the rest of sampling come after it. A logit of -infinity
    /// bans a token.
    pub fn set_logits_hook(&mut self, hook: Option<LogitsHook>) {
        self.logits_hook = hook;
    }

    /// The next token, from the session's logits.
    pub(super) fn choose(&mut self) -> Result<u32> {
        let logits = std::mem::take(&mut self.logits);
        let token = self.choose_from(&logits);
        self.logits = logits;
        token
    }

    /// The next token, from `logits`.
    pub(super) fn choose_from(&mut self, logits: &[f32]) -> Result<u32> {
        let Self { sampler, tokens, output_start, logits_hook, .. } = self;
        let Some(hook) = logits_hook else {
            return sampler.sample(logits, tokens, *output_start);
        };
        sampler.sample_edited(logits, tokens, *output_start, |scores| match hook(scores, tokens) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(Error::cancelled("the logits callback cancelled")),
        })
    }
}
