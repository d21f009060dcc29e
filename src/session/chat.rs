//! Feeding a conversation.

use super::{Fed, Session};
use crate::Result;
use crate::chat::ChatRequest;
use crate::engine::ChatEncoding;

impl Session {
    /// Makes the session hold exactly the rendered conversation. Tokens that are computed
    /// already, by this session or by others that share its namespace in the model's prefix
    /// cache, are not computed again: see [`Fed`].
    ///
    /// A conversation longer than the context is refused, or shortened if the session's
    /// options say so ([`super::Overflow`]).
    ///
    /// # Errors
    /// `Template`; `Unsupported` for images and videos; `ContextOverflow` (nothing was consumed); `Cancelled` and `OutOfMemory`
    /// (the session then holds a beginning of the conversation, and the same call again
    /// completes it).
    pub fn feed_chat(&mut self, request: &ChatRequest, encoding: ChatEncoding) -> Result<Fed> {
        self.last_fed = Fed::default();
        let fitted = self.fit(request, encoding)?;
        self.check_ids(&fitted.ids)?;
        let fed = Fed {
            dropped_messages: fitted.dropped,
            kept_messages: fitted.kept,
            ..self.hold(&fitted.ids)?
        };
        self.last_fed = fed;
        Ok(fed)
    }

    /// As [`Session::feed_chat`], but leaves the rest of the conversation to be computed by
    /// [`Session::step`]. `computed` of the result counts what is still to be computed.
    ///
    /// # Errors
    /// As [`Session::feed_chat`], but for `Cancelled`.
    pub fn enqueue_chat(&mut self, request: &ChatRequest, encoding: ChatEncoding) -> Result<Fed> {
        self.last_fed = Fed::default();
        let fitted = self.fit(request, encoding)?;
        self.check_ids(&fitted.ids)?;
        let fed = Fed {
            dropped_messages: fitted.dropped,
            kept_messages: fitted.kept,
            ..self.begin_hold(&fitted.ids)?
        };
        self.last_fed = fed;
        Ok(fed)
    }

    /// What the last [`Session::feed_chat`] or [`Session::set_tokens`] did; zeros if it failed.
    pub fn last_fed(&self) -> Fed {
        self.last_fed
    }
}
