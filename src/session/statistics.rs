//! What a session has done, in numbers.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::Session;
use crate::engine::Model;
use crate::statistics::{Statistics, Totals};

/// Counts for one session, and adds to the sums of its model.
pub(super) struct Meter {
    own: Statistics,
    totals: Arc<Totals>,
    /// When the input was queued that no token has followed yet.
    input_since: Option<Instant>,
}

impl Meter {
    /// For a new session on `model`.
    pub(super) fn new(model: &Model) -> Self {
        let totals = model.totals().clone();
        totals.sessions.fetch_add(1, Ordering::Relaxed);
        let own = Statistics { sessions: 1, ..Statistics::default() };
        Self { own, totals, input_since: None }
    }

    /// Input was fed or queued.
    pub(super) fn input_begins(&mut self) {
        self.input_since = Some(Instant::now());
    }

    /// What was fed is gone.
    pub(super) fn input_ends(&mut self) {
        self.input_since = None;
    }

    /// A token was generated.
    pub(super) fn token(&mut self) {
        self.own.output_tokens += 1;
        self.totals.output_tokens.fetch_add(1, Ordering::Relaxed);
        if let Some(since) = self.input_since.take() {
            self.own.first_token_time = since.elapsed();
        }
    }

    /// A conversation was fed without computing so many of its tokens, of which `cached`
    /// came from the prefix cache.
    pub(super) fn reused(&mut self, tokens: usize, cached: usize) {
        let (own, cached) = (tokens.saturating_sub(cached) as u64, cached as u64);
        self.own.reused_tokens += own;
        self.own.cached_tokens += cached;
        self.totals.reused_tokens.fetch_add(own, Ordering::Relaxed);
        self.totals.cached_tokens.fetch_add(cached, Ordering::Relaxed);
    }

    /// A call that generated took `time`, of which `share` is the session's.
    pub(super) fn output_time(&mut self, time: Duration, share: Duration) {
        self.own.output_time += time;
        self.totals.output_nanoseconds.fetch_add(nanoseconds(share), Ordering::Relaxed);
    }

    /// A call computed `tokens` of input in `time`.
    pub(super) fn input_time(&mut self, tokens: u64, time: Duration) {
        self.own.input_tokens += tokens;
        self.own.input_time += time;
        self.totals.input_tokens.fetch_add(tokens, Ordering::Relaxed);
        self.totals.input_nanoseconds.fetch_add(nanoseconds(time), Ordering::Relaxed);
    }

    fn set_bytes(&mut self, bytes: u64) {
        // Wraps around and back: the sum of all changes is what counts.
        self.totals.bytes.fetch_add(bytes.wrapping_sub(self.own.bytes), Ordering::Relaxed);
        self.own.bytes = bytes;
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        self.set_bytes(0);
        self.totals.sessions.fetch_sub(1, Ordering::Relaxed);
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl Session {
    /// What this session has done.
    pub fn statistics(&self) -> Statistics {
        Statistics { bytes: self.bytes(), ..self.meter.own }
    }

    fn bytes(&self) -> u64 {
        let logits = (self.logits.len() + self.stepping.logits_len()) * size_of::<f32>();
        let unfinished = self.state.unfinished.as_ref().map_or(0, |unfinished| unfinished.bytes());
        let tokens = self.tokens.capacity() * size_of::<u32>();
        (self.state.bytes() + self.marks.bytes(&self.state) + logits + unfinished + tokens) as u64
    }

    /// Does `work`, a whole call of the session, and counts what it computed and its time.
    pub(super) fn metered<R>(&mut self, work: impl FnOnce(&mut Self) -> R) -> R {
        let (began, position) = (Instant::now(), self.state.position);
        let has_input = self.has_input();
        let result = work(self);
        let time = began.elapsed();
        if has_input {
            let tokens = self.state.position.saturating_sub(position) as u64;
            self.meter.input_time(tokens, time);
        } else {
            self.meter.output_time(time, time);
        }
        self.count_bytes();
        result
    }

    /// Tells the model how much memory the session uses: behind whatever changes that.
    pub(super) fn count_bytes(&mut self) {
        self.meter.set_bytes(self.bytes());
    }
}
