//! Waits of bounded length that keep the core.

use std::time::{Duration, Instant};

/// One such wait.
pub(super) struct Spin {
    limit: Duration,
    since: Option<Instant>,
    turns: u32,
}

impl Spin {
    pub(super) fn new(limit: Duration) -> Self {
        Self { limit, since: None, turns: 0 }
    }

    /// Waits a moment; false when the time is over. The clock is read only now and then.
    pub(super) fn again(&mut self) -> bool {
        std::hint::spin_loop();
        self.turns += 1;
        if !self.turns.is_multiple_of(32) {
            return true;
        }
        self.since.get_or_insert_with(Instant::now).elapsed() < self.limit
    }
}
