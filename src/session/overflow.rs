//! Conversations longer than the context.

use super::Session;
use crate::chat::ChatRequest;
use crate::engine::Model;
use crate::tokenizer::AddedTokens;
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
    /// The same goes for tokens and text that are fed to a sequence in which turns can be told
    /// apart, see [`Session::feed`].
    ///
    /// Leaving turns out changes all tokens behind the system messages, so all of them are
    /// computed again; the free room makes that rare, because as long as what the session
    /// holds already is a shortened form that still fits, the same turns are left out again.
    DropTurns {
        /// Tokens to keep free for the answer and the turns to come.
        reserve: usize,
    },
}

/// A conversation that fits.
pub(super) struct Fitted {
    pub(super) ids: Vec<u32>,
    /// Turns left out.
    pub(super) turns: usize,
    /// Messages left out.
    pub(super) dropped: usize,
    /// Messages in front of those.
    pub(super) kept: usize,
}

/// A plain sequence that fits.
pub(super) struct Shortened {
    pub(super) ids: Vec<u32>,
    /// Tokens in front of those left out.
    pub(super) kept: usize,
    /// Tokens left out.
    pub(super) dropped: usize,
}

impl Session {
    /// The tokens that `render` makes of `request`, shortened as the session's options say.
    pub(super) fn fit(
        &self,
        request: &ChatRequest,
        render: impl Fn(&Model, &ChatRequest) -> Result<Vec<u32>>,
    ) -> Result<Fitted> {
        if let Some(place) = request.first_media() {
            return Err(Error::unsupported(format!(
                "chat request: {place} is an image or a video; this version reads text only"
            )));
        }
        let whole = render(&self.model, request)?;
        let kept = request.leading_system_messages();
        let Err(refusal) = self.check_room(0, whole.len()) else {
            return Ok(Fitted { ids: whole, turns: 0, dropped: 0, kept });
        };
        let Overflow::DropTurns { reserve } = self.overflow else { return Err(refusal) };
        let limit = self.context_limit;
        let wanted = limit.saturating_sub(if reserve == 0 { limit / 4 } else { reserve });

        let starts = request.turn_starts();
        let shorter =
            |turns: usize| render(&self.model, &request.without_messages(kept..starts[turns]));
        if (1..starts.len()).contains(&self.left_out) {
            let ids = shorter(self.left_out)?;
            if ids.len() <= limit && self.holds_much_of(&ids) {
                let dropped = starts[self.left_out] - kept;
                return Ok(Fitted { ids, turns: self.left_out, dropped, kept });
            }
        }
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
            Some((turns, ids)) => Ok(Fitted { ids, turns, dropped: starts[turns] - kept, kept }),
            None => Err(Error::context_overflow(format!(
                "the conversation has {} tokens and the context {limit} positions; the system \
                 messages and the newest turn alone do not fit either; nothing was consumed",
                whole.len(),
            ))),
        }
    }

    /// Where the sequence with `more` behind it does not fit, and the session's options let
    /// turns go: what it is to hold instead. `None` if it fits.
    ///
    /// Turns of a plain sequence are found by the control token that begins them and the role
    /// behind it; a tool's result, which has the user's role, begins none.
    pub(super) fn shortened(&self, more: &[u32]) -> Result<Option<Shortened>> {
        let Err(refusal) = self.check_room(self.tokens.len(), more.len()) else { return Ok(None) };
        let Overflow::DropTurns { reserve } = self.overflow else { return Err(refusal) };
        let limit = self.context_limit;
        let wanted = limit.saturating_sub(if reserve == 0 { limit / 4 } else { reserve });
        let mut ids = super::fork::copy(&self.tokens, "the sequence")?;
        ids.try_reserve(more.len())
            .map_err(|_| Error::out_of_memory("the sequence", size_of_val(more)))?;
        ids.extend_from_slice(more);

        let turns = self.user_turns(&ids);
        let [kept, later @ ..] = &turns[..] else { return Err(refusal) };
        let length = ids.len();
        let left = |next: usize| length - (next - kept);
        let first = later.iter().find(|next| left(**next) <= wanted);
        let Some(next) = first.or_else(|| later.last().filter(|next| left(**next) <= limit)) else {
            return Err(refusal);
        };
        let (kept, dropped) = (*kept, next - kept);
        ids.drain(kept..kept + dropped);
        Ok(Some(Shortened { ids, kept, dropped }))
    }

    fn user_turns(&self, ids: &[u32]) -> Vec<usize> {
        let tokenizer = self.model.tokenizer();
        let Some(start) = self.model.turn_start_id() else { return Vec::new() };
        let result = tokenizer.token_id("<tool_response>");
        let mut role = Vec::new();
        tokenizer.encode("user", AddedTokens::AsText, &mut role);
        let begins = |at: usize| {
            // Behind the role comes a line break.
            let contents = ids.get(at + 1 + role.len() + 1).copied();
            ids[at] == start
                && ids[at + 1..].starts_with(&role)
                && (result.is_none() || contents != result)
        };
        (0..ids.len()).filter(|&at| begins(at)).collect()
    }

    /// Whether half of `ids`, and so more than a system message that other conversations
    /// have too, is what the session holds.
    fn holds_much_of(&self, ids: &[u32]) -> bool {
        let common = self.tokens.iter().zip(ids).take_while(|(a, b)| a == b).count();
        2 * common >= ids.len()
    }
}
