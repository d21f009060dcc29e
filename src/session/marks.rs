//! Positions a session can go back to.
//!
//! The recurrent state cannot be cut back, so going back needs one that was kept on the way.
//! Keeping it costs nothing at first (see [`State::try_clone`]); once the session has moved
//! on, a mark holds a recurrent state of its own (19 MB at 0.8B), and shares the pages of
//! keys and values with the session, except the one that was being filled.
//!
//! A conversation makes marks by itself, before each assistant header above all: the
//! template writes that header, and the think block behind it, differently once the turn is
//! history, so the next turn agrees with this one up to there and no further.

use super::Session;
use super::step::BeforeInput;
use crate::model::State;
use crate::sampling::Rng;
use crate::{Error, Result};

/// Marks a session holds unless its options say otherwise.
pub const DEFAULT_MARKS: usize = 4;

/// A mark, as [`Session::marks`] lists it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarkInfo {
    /// Its name. No other mark of the session ever has the same.
    pub id: u64,
    /// Where it stands: the length of the sequence when it was made.
    pub position: usize,
    /// Whether the library made it. Such marks go when there is no room for a new one.
    pub automatic: bool,
}

/// One kept position.
pub(super) struct Mark {
    pub(super) info: MarkInfo,
    /// The network's state; its position may be less than the mark's, as a session's.
    pub(super) state: State,
    /// How many of the tokens up to the mark were input that was not computed.
    pub(super) queued: usize,
    /// What was there before that input.
    pub(super) before: Option<BeforeInput>,
    pub(super) output_start: usize,
    pub(super) rng: Rng,
}

impl Mark {
    fn try_clone(&self) -> Result<Self> {
        let Self { info, output_start, queued, before, .. } = *self;
        Ok(Self {
            info,
            output_start,
            queued,
            before,
            state: self.state.try_clone()?,
            rng: self.rng.clone(),
        })
    }
}

/// The marks of a session, in order of position.
pub(super) struct Marks {
    pub(super) held: Vec<Mark>,
    pub(super) limit: usize,
    pub(super) next_id: u64,
}

/// The largest name that the next mark of a saved session may have: enough for as many more as
/// there will ever be.
pub(super) const LAST_NAME: u64 = 1 << 63;

impl Marks {
    /// None yet; `limit` at most, 0 for the default.
    pub(super) fn new(limit: usize) -> Self {
        let limit = if limit == 0 { DEFAULT_MARKS } else { limit };
        Self { held: Vec::new(), limit, next_id: 1 }
    }

    pub(super) fn try_clone(&self) -> Result<Self> {
        let held = self.held.iter().map(Mark::try_clone).collect::<Result<_>>()?;
        Ok(Self { held, ..*self })
    }

    /// Makes room for one more: drops an automatic mark. The first of them stays longest (it
    /// follows the system prompt), and of the others the oldest goes. `false` if all are the
    /// caller's.
    fn make_room(&mut self) -> bool {
        while self.held.len() >= self.limit {
            let mut automatic =
                self.held.iter().enumerate().filter(|(_, mark)| mark.info.automatic);
            let (first, second) = (automatic.next(), automatic.next());
            match second.or(first) {
                Some((index, _)) => drop(self.held.remove(index)),
                None => return false,
            }
        }
        true
    }

    fn add(&mut self, mut mark: Mark) -> u64 {
        mark.info.id = self.next_id;
        self.next_id += 1;
        let at = self.held.partition_point(|held| held.info.position <= mark.info.position);
        self.held.insert(at, mark);
        self.next_id - 1
    }

    /// The mark called `id`.
    fn find(&self, id: u64) -> Result<usize> {
        self.held.iter().position(|mark| mark.info.id == id).ok_or_else(|| {
            Error::invalid_argument(format!(
                "mark {id} is not held: it was never made, was dropped, or lies behind a \
                 position the session went back from"
            ))
        })
    }

    /// The last mark whose state is at or before `position`.
    pub(super) fn before(&self, position: usize) -> Option<&Mark> {
        self.held
            .iter()
            .filter(|mark| mark.info.position <= position)
            .max_by_key(|mark| mark.state.position)
    }

    /// Bytes held beside `state`, the session's.
    pub(super) fn bytes(&self, state: &State) -> usize {
        let mut last = state;
        let mut bytes = 0;
        for mark in &self.held {
            bytes += mark.state.bytes_beside(state, last);
            last = &mark.state;
        }
        bytes
    }
}

impl Session {
    /// Forgets the marks behind `position`, and those whose state is ahead of the session's:
    /// what is saved of a mark is a beginning of what is saved of the session.
    pub(super) fn cut_marks(&mut self, position: usize) {
        let computed = self.state.position;
        self.marks
            .held
            .retain(|mark| mark.info.position <= position && mark.state.position <= computed);
    }

    /// Keeps the present position, to be gone back to by [`Session::rewind`]. Returns the
    /// name of the mark. Nothing is computed.
    ///
    /// # Errors
    /// `InvalidState` if the session holds as many of the caller's marks as its options allow
    /// (see [`Session::unmark`]); `OutOfMemory`.
    pub fn mark(&mut self) -> Result<u64> {
        let mark = self.mark_here()?;
        if !self.marks.make_room() {
            return Err(Error::invalid_state(format!(
                "the session holds {} marks, as many as its options allow: drop one first",
                self.marks.held.len()
            )));
        }
        let id = self.marks.add(mark);
        self.count_bytes();
        Ok(id)
    }

    /// As [`Session::mark`] for the library's own use, at the position of the state: where
    /// there is a mark already, or no room, none is made.
    pub(super) fn mark_automatically(&mut self) -> Result<()> {
        let here = self.state.position;
        let there = |mark: &Mark| mark.info.position == here && mark.state.position == here;
        if self.marks.held.iter().any(there) || !self.marks.make_room() {
            return Ok(());
        }
        let info = MarkInfo { id: 0, position: here, automatic: true };
        let mark = Mark { info, output_start: here, queued: 0, before: None, ..self.mark_here()? };
        self.marks.add(mark);
        Ok(())
    }

    fn mark_here(&self) -> Result<Mark> {
        Ok(Mark {
            info: MarkInfo { id: 0, position: self.tokens.len(), automatic: false },
            state: self.state.try_clone()?,
            output_start: self.output_start,
            queued: self.queued(),
            before: self.before_input(),
            rng: self.sampler.rng().clone(),
        })
    }

    /// Drops a mark; the library's own too.
    ///
    /// # Errors
    /// `InvalidArgument` if it is not held.
    pub fn unmark(&mut self, id: u64) -> Result<()> {
        let index = self.marks.find(id)?;
        self.marks.held.remove(index);
        self.count_bytes();
        Ok(())
    }

    /// The marks held, in order of position.
    pub fn marks(&self) -> impl ExactSizeIterator<Item = MarkInfo> + '_ {
        self.marks.held.iter().map(|mark| mark.info)
    }

    /// Goes back to a mark: sequence and state are bit for bit what they were there. Later
    /// marks are dropped, and those whose state is ahead of its own; this one stays. The random
    /// stream goes back too if `random`, so that the same calls give the same tokens; else it
    /// goes on, so that another attempt gives others. Sampling options stay as they are. Nothing
    /// is computed.
    ///
    /// # Errors
    /// `InvalidArgument` if the mark is not held, `OutOfMemory`; the session is as before.
    pub fn rewind(&mut self, id: u64, random: bool) -> Result<()> {
        let index = self.marks.find(id)?;
        let mark = &self.marks.held[index];
        self.state = mark.state.try_clone()?;
        self.output_start = mark.output_start;
        if random {
            self.sampler.set_rng(mark.rng.clone());
        }
        let (position, queued, before) = (mark.info.position, mark.queued, mark.before);
        self.tokens.truncate(position);
        self.resume_queue(queued, before);
        self.marks.held.truncate(index + 1);
        self.cut_marks(position);
        self.logits_position = None;
        self.count_bytes();
        Ok(())
    }

    /// Cuts the sequence to its first `position` tokens, by going back to the nearest mark
    /// before (or what the model's prefix cache holds, or the start) and computing the rest
    /// again. Returns how many tokens were computed.
    ///
    /// # Errors
    /// `InvalidArgument` if the sequence is shorter, `OutOfMemory` before anything was
    /// changed; `Cancelled` and `OutOfMemory` later: the session then holds fewer tokens,
    /// see [`Session::position`], and the same call does not complete it (the rest is to be
    /// fed again).
    pub fn truncate(&mut self, position: usize) -> Result<usize> {
        let length = self.tokens.len();
        if position > length {
            return Err(Error::invalid_argument(format!(
                "cannot cut the sequence to {position} tokens: it has {length}"
            )));
        }
        if position == length {
            return Ok(0);
        }
        let wanted = super::fork::copy(&self.tokens[..position], "the sequence")?;
        // Computing tokens again does not make them the caller's.
        let output_start = self.output_before(position);
        self.go_back(position, &wanted)?;
        let held = self.state.position;
        let result = match self.tokens.len() < position {
            true => self.append(&wanted[self.tokens.len()..]),
            false => Ok(()),
        };
        self.output_start = output_start.min(self.tokens.len());
        self.count_bytes();
        result.map(|()| self.state.position - held)
    }
}
