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
    /// The system messages and the newest turns stay. A conversation that would leave less than
    /// half of `reserve` tokens free (0: a quarter of the context) is fed without its oldest
    /// whole turns, as few as leave all of `reserve` free. A turn is a user message with all
    /// that follows up to the next one. The newest turn is fed even if it leaves less, as long
    /// as it fits.
    ///
    /// Leaving turns out changes all tokens behind the system messages, so all of them are
    /// computed again. The free room makes that rare: as long as the conversation without the
    /// turns that were left out last leaves half of `reserve`, the same are left out again.
    ///
    /// Tokens and text that are fed to a sequence in which turns can be told apart go by the
    /// same rule, but only when they would not fit at all, see [`Session::feed`].
    DropTurns {
        /// Tokens to keep free for the answer and the turns to come.
        reserve: usize,
    },
}

/// Which turns of a conversation were left out last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LeftOut {
    pub(super) turns: usize,
    /// Of their messages: another conversation is not shortened by as many turns as this one.
    pub(super) fingerprint: u64,
}

/// A conversation that fits.
pub(super) struct Fitted {
    pub(super) ids: Vec<u32>,
    pub(super) left_out: LeftOut,
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
        let limit = self.context_limit;
        let reserve = match self.overflow {
            Overflow::Refuse => 0,
            Overflow::DropTurns { reserve: 0 } => limit / 4,
            Overflow::DropTurns { reserve } => reserve,
        };
        let (wanted, most) = (limit.saturating_sub(reserve), limit.saturating_sub(reserve / 2));
        let all = |ids| Ok(Fitted { ids, left_out: LeftOut::default(), dropped: 0, kept });
        if whole.len() <= most {
            return all(whole);
        }
        if self.overflow == Overflow::Refuse {
            self.check_room(0, whole.len())?;
        }

        let starts = request.turn_starts();
        let shorter =
            |turns: usize| render(&self.model, &request.without_messages(kept..starts[turns]));
        let left_out =
            |turns: usize| LeftOut { turns, fingerprint: request.fingerprint(kept..starts[turns]) };
        let before = self.left_out.turns;
        if (1..starts.len()).contains(&before) && self.left_out == left_out(before) {
            let ids = shorter(before)?;
            if ids.len() <= most {
                let dropped = starts[before] - kept;
                return Ok(Fitted { ids, left_out: self.left_out, dropped, kept });
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
            Some((turns, ids)) => {
                let dropped = starts[turns] - kept;
                Ok(Fitted { ids, left_out: left_out(turns), dropped, kept })
            }
            None if whole.len() <= limit => all(whole),
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
}
