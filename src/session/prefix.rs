//! Going on from what is computed already.
//!
//! A session that is to hold given tokens keeps the longest beginning that something has a
//! state for: its own end, one of its marks, or an entry of the model's prefix cache. By
//! the determinism of the kernels the result is bit for bit that of computing everything.

use super::Session;
use super::fork::copy;
use crate::Result;
use crate::model::State;

/// What bringing a session to given tokens took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fed {
    /// Tokens asked for: of the rendered conversation, say.
    pub total: usize,
    /// Of these, those computed by the call; the others were there already.
    pub computed: usize,
    /// Of these, those taken over from the model's prefix cache.
    pub cached: usize,
    /// Messages left out because the conversation did not fit ([`super::Overflow`]): the
    /// oldest ones after the system messages.
    pub dropped_messages: usize,
    /// Messages at the start that stayed: the first one dropped has this index.
    pub kept_messages: usize,
    /// Tokens left out of a sequence that was fed as tokens or text ([`Session::feed`]).
    pub dropped_tokens: usize,
    /// Tokens at its start that stayed: the first one dropped had this index.
    pub kept_tokens: usize,
}

/// Positions of a conversation that are worth a mark, and whether it is shared.
pub(super) type Turns = [Option<(usize, bool)>; 3];

impl Session {
    /// Makes the session hold exactly `tokens`, computing what it does not hold already: see
    /// [`Fed`]. Marks are made where turns begin, as by [`Session::feed_chat`].
    ///
    /// # Errors
    /// `InvalidArgument` for an id without a row in the embedding and `ContextOverflow`,
    /// before anything is changed; `Cancelled` and `OutOfMemory` (the session then holds a
    /// beginning of the tokens, and the same call again completes it).
    pub fn set_tokens(&mut self, tokens: &[u32]) -> Result<Fed> {
        self.last_fed = Fed::default();
        self.check_ids(tokens)?;
        self.check_room(0, tokens.len())?;
        self.last_fed = self.hold(tokens)?;
        Ok(self.last_fed)
    }

    /// [`Session::set_tokens`] for checked tokens.
    pub(super) fn hold(&mut self, ids: &[u32]) -> Result<Fed> {
        let fed = self.begin_hold(ids)?;
        let before = self.state.position;
        self.compute_input()?;
        Ok(Fed { computed: self.state.position - before, ..fed })
    }

    /// Goes back to the best beginning of `ids` and queues the rest of them, which
    /// `computed` of the result counts.
    pub(super) fn begin_hold(&mut self, ids: &[u32]) -> Result<Fed> {
        let common = self.tokens.iter().zip(ids).take_while(|(a, b)| a == b).count();
        let cached = self.go_back(common, ids)?;
        let held = self.tokens.len();
        self.queue(&ids[held..])?;
        self.stepping.turns = self.turns_to_mark(ids);
        self.mark_turn()?;
        self.count_bytes();
        let computed = self.remaining();
        self.meter.reused(ids.len() - computed, cached);
        Ok(Fed { total: ids.len(), computed, cached, ..Fed::default() })
    }

    /// After a restoration: the marks that input which waits is worth.
    pub(super) fn mark_queued_turns(&mut self) {
        let first = self.tokens.len() - self.queued();
        let mut turns = if self.has_input() { self.turns_to_mark(&self.tokens) } else { [None; 3] };
        // What was computed before has its marks already.
        turns.iter_mut().for_each(|turn| *turn = turn.filter(|(at, _)| *at > first));
        self.stepping.turns = turns;
    }

    /// Makes the mark that belongs to the state's position, if one does.
    pub(super) fn mark_turn(&mut self) -> Result<()> {
        let here = self.state.position;
        let turns = &mut self.stepping.turns;
        let found = turns.iter_mut().find(|turn| turn.is_some_and(|(at, _)| at == here));
        if let Some((_, shared)) = found.and_then(Option::take) {
            self.mark_automatically()?;
            if shared {
                self.publish()?;
            }
        }
        Ok(())
    }

    /// Where `ids` are worth a mark, ascending, and whether other sessions may want to begin
    /// there: after the first turn (the system prompt, as a rule), before the newest question
    /// (which this session may want to ask anew), and before the header of the answer.
    ///
    /// Turns begin with a control token, which in safe encoding the template alone can write;
    /// where a caller forged one, a mark is less useful, never wrong.
    fn turns_to_mark(&self, ids: &[u32]) -> Turns {
        let Some(start) = self.model.turn_start_id() else { return [None; 3] };
        let starts = || (1..ids.len()).filter(|&at| ids[at] == start);
        let first = starts().next();
        let mut last = starts().rev().take_while(|at| Some(*at) != first);
        let (header, question) = (last.next(), last.next());
        [first.map(|at| (at, true)), question.map(|at| (at, false)), header.map(|at| (at, true))]
    }

    /// Cuts the sequence, of which the first `common` tokens are those of `wanted`, to the
    /// longest beginning of `wanted` that there is a state for. Returns the tokens taken over
    /// from the prefix cache. The caller queues what is left of `wanted`: marks among its first
    /// `common` tokens stay.
    pub(super) fn go_back(&mut self, common: usize, wanted: &[u32]) -> Result<usize> {
        let own = match common >= self.state.position {
            true => self.state.position,
            false => self.marks.before(common).map_or(0, |mark| mark.state.position),
        };
        if let Some(state) = self.cached_state(wanted, own)? {
            self.tokens = copy(&wanted[..state.position], "the sequence")?.into();
            self.output_start = self.tokens.len();
            self.logits_position = None;
            self.resume_queue(0, None);
            self.state = state;
            self.cut_marks(common);
            return Ok(self.state.position - own);
        }
        if common >= self.state.position {
            // Tokens behind the state are not computed yet and can simply be dropped.
            self.cut_queue(common);
        } else {
            let (state, length, queued, before) = match self.marks.before(common) {
                Some(mark) => {
                    (mark.state.try_clone()?, mark.info.position, mark.queued, mark.before)
                }
                None => (self.empty_state()?, 0, 0, None),
            };
            self.state = state;
            self.tokens.truncate(length);
            self.resume_queue(queued, before);
            self.logits_position = None;
        }
        self.output_start = self.output_start.min(self.tokens.len());
        self.cut_marks(common);
        Ok(0)
    }

    /// The longest state of the prefix cache for a beginning of `wanted`, if it is longer
    /// than `own` tokens.
    fn cached_state(&self, wanted: &[u32], own: usize) -> Result<Option<State>> {
        let (Some(namespace), Some(cache)) = (self.namespace, self.model.prefix_cache()) else {
            return Ok(None);
        };
        cache.find(namespace, wanted, own, &self.state)
    }

    /// Puts the state at the end of the sequence into the prefix cache.
    fn publish(&self) -> Result<()> {
        let (Some(namespace), Some(cache)) = (self.namespace, self.model.prefix_cache()) else {
            return Ok(());
        };
        cache.insert(namespace, &self.tokens[..self.state.position], &self.state)
    }
}
