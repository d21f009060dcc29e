//! Positions a session can go back to.
//!
//! The recurrent state cannot be cut back, so going back needs a copy made on the way. A
//! chat makes one before each assistant header: the template writes that header, and the
//! think block behind it, differently once the turn is history, so the next turn agrees
//! with this one up to there and no further.

use crate::Result;
use crate::model::State;

/// Most marks kept; the oldest goes first.
const MOST: usize = 2;

/// Copies of the state at earlier positions, oldest first.
#[derive(Default)]
pub(super) struct Marks {
    states: Vec<State>,
}

impl Marks {
    /// Remembers `state`.
    pub(super) fn push(&mut self, state: State) {
        self.states.retain(|mark| mark.position < state.position);
        if self.states.len() == MOST {
            self.states.remove(0);
        }
        self.states.push(state);
    }

    /// A copy of the last mark at or before `position`; those behind it are forgotten.
    pub(super) fn rewind(&mut self, position: usize) -> Result<Option<State>> {
        self.states.retain(|mark| mark.position <= position);
        self.states.last().map(State::try_clone).transpose()
    }

    /// Forgets all.
    pub(super) fn clear(&mut self) {
        self.states.clear();
    }
}
