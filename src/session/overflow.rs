//! Conversations longer than the context.

use super::Session;
use crate::chat::ChatRequest;
use crate::engine::ChatEncoding;
use crate::{Error, Result};

/// What happens to a conversation that does not fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overflow {
    /// `ContextOverflow`, before anything is consumed.
    #[default]
    Refuse,
    /// The system messages and the newest turns stay; the oldest whole turns are left out, as
    /// few as leave `reserve` tokens free (0: a quarter of the context). A turn is a user
    /// message with all that follows up to the next one. The newest turn is fed even if it
    /// leaves less, as long as it fits.
    ///
    /// Leaving turns out changes all tokens behind the system messages, so all of them are
    /// computed again; the free room makes that rare.
    DropTurns {
        /// Tokens to keep free for the answer and the turns to come.
        reserve: usize,
    },
}

/// A conversation that fits.
pub(super) struct Fitted {
    pub(super) ids: Vec<u32>,
    /// Messages left out.
    pub(super) dropped: usize,
    /// Messages in front of those.
    pub(super) kept: usize,
}

impl Session {
    /// The tokens of `request`, shortened as the session's options say.
    pub(super) fn fit(&self, request: &ChatRequest, encoding: ChatEncoding) -> Result<Fitted> {
        if let Some(place) = request.first_media() {
            return Err(Error::unsupported(format!(
                "chat request: {place} is an image or a video; this version reads text only"
            )));
        }
        let whole = self.model.encode_chat(request, encoding)?;
        let kept = request.leading_system_messages();
        let Err(refusal) = self.check_room(0, whole.len()) else {
            return Ok(Fitted { ids: whole, dropped: 0, kept });
        };
        let Overflow::DropTurns { reserve } = self.overflow else { return Err(refusal) };
        let limit = self.context_limit;
        let wanted = limit.saturating_sub(if reserve == 0 { limit / 4 } else { reserve });

        let starts = request.turn_starts();
        let shorter = |turns: usize| {
            let request = request.without_messages(kept..starts[turns]);
            self.model.encode_chat(&request, encoding)
        };
        // The fewest turns to leave out, by halving: leaving out more never makes more tokens.
        let (mut low, mut high) = (1, starts.len());
        let mut best = None;
        while low < high {
            let middle = low.midpoint(high);
            let ids = shorter(middle)?;
            if ids.len() <= wanted {
                best = Some((middle, ids));
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        if best.is_none() && starts.len() > 1 {
            let newest = starts.len() - 1;
            best = Some((newest, shorter(newest)?)).filter(|(_, ids)| ids.len() <= limit);
        }
        match best {
            Some((turns, ids)) => Ok(Fitted { ids, dropped: starts[turns] - kept, kept }),
            None => Err(Error::context_overflow(format!(
                "the conversation has {} tokens and the context {limit} positions; the system \
                 messages and the newest turn alone do not fit either; nothing was consumed",
                whole.len(),
            ))),
        }
    }
}
