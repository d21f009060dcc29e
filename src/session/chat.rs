//! Feeding a conversation.

use super::{Fed, Session};
use crate::Result;
use crate::chat::ChatRequest;
use crate::engine::ChatEncoding;

/// What of a conversation a session is to hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Extent {
    /// All of it, ready for the answer.
    #[default]
    Prompt,
    /// What comes before the next message of the user, whatever that is: see
    /// [`crate::Model::encode_history`]. Feeding it while the user is typing leaves only the
    /// message to be computed then, although the template writes the newest answer differently
    /// once it is history.
    History,
}

impl Session {
    /// Makes the session hold exactly the rendered conversation. Tokens that are computed
    /// already, by this session or by others that share its namespace in the model's prefix
    /// cache, are not computed again: see [`Fed`].
    ///
    /// A conversation longer than the context is refused, or shortened if the session's
    /// options say so ([`super::Overflow`]).
    ///
    /// # Errors
    /// `Template`; `Unsupported` for images and videos; `ContextOverflow` (nothing was
    /// consumed); `Cancelled` and `OutOfMemory` (the session then holds a beginning of the
    /// conversation, and the same call again completes it).
    pub fn feed_chat(&mut self, request: &ChatRequest, encoding: ChatEncoding) -> Result<Fed> {
        self.feed_extent(request, encoding, Extent::Prompt)
    }

    /// As [`Session::feed_chat`], for as much of the conversation as `extent` says.
    ///
    /// # Errors
    /// As [`Session::feed_chat`].
    pub fn feed_extent(
        &mut self,
        request: &ChatRequest,
        encoding: ChatEncoding,
        extent: Extent,
    ) -> Result<Fed> {
        self.bring(request, encoding, extent, Self::hold)
    }

    /// As [`Session::feed_chat`], but leaves the rest of the conversation to be computed by
    /// [`Session::step`]. `computed` of the result counts what is still to be computed.
    ///
    /// # Errors
    /// As [`Session::feed_chat`], but for `Cancelled`.
    pub fn enqueue_chat(&mut self, request: &ChatRequest, encoding: ChatEncoding) -> Result<Fed> {
        self.enqueue_extent(request, encoding, Extent::Prompt)
    }

    /// As [`Session::enqueue_chat`], for as much of the conversation as `extent` says.
    ///
    /// # Errors
    /// As [`Session::enqueue_chat`].
    pub fn enqueue_extent(
        &mut self,
        request: &ChatRequest,
        encoding: ChatEncoding,
        extent: Extent,
    ) -> Result<Fed> {
        self.bring(request, encoding, extent, Self::begin_hold)
    }

    /// Renders, shortens if need be, and brings the session there by `hold`.
    fn bring(
        &mut self,
        request: &ChatRequest,
        encoding: ChatEncoding,
        extent: Extent,
        hold: impl FnOnce(&mut Self, &[u32]) -> Result<Fed>,
    ) -> Result<Fed> {
        self.last_fed = Fed::default();
        let fitted = self.fit(request, |model, request| match extent {
            Extent::Prompt => model.encode_chat(request, encoding),
            Extent::History => model.encode_history(request, encoding),
        })?;
        self.check_ids(&fitted.ids)?;
        self.left_out = fitted.left_out;
        let fed = hold(self, &fitted.ids)?;
        self.last_fed = Fed { dropped_messages: fitted.dropped, kept_messages: fitted.kept, ..fed };
        Ok(self.last_fed)
    }

    /// What the last call that fed something did; zeros if it failed.
    pub fn last_fed(&self) -> Fed {
        self.last_fed
    }
}
