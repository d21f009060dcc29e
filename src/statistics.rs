//! What sessions have done, in numbers.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Counts since a session was made (a fork starts at zero), or of all sessions of a model
/// since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Input tokens computed.
    pub input_tokens: u64,
    /// Tokens generated.
    pub output_tokens: u64,
    /// Input tokens of conversations that did not need to be computed, because the session
    /// held them or had a mark.
    pub reused_tokens: u64,
    /// Input tokens of conversations taken over from the model's prefix cache.
    pub cached_tokens: u64,
    /// Time in calls that computed input.
    pub input_time: Duration,
    /// Time in calls that generated without computing input.
    pub output_time: Duration,
    /// From the newest input, since it was fed or queued, to the first token after it; zero
    /// if there was none. Not kept for a model.
    pub first_token_time: Duration,
    /// Bytes in use: states, keys and values, marks, logits, what is unfinished. Pages that are
    /// shared count for each holder. Weights do not count.
    pub bytes: u64,
    /// Sessions that are open; 1 for a session.
    pub sessions: u64,
}

impl Statistics {
    /// Input tokens per second; 0 before there were any.
    pub fn input_rate(&self) -> f64 {
        rate(self.input_tokens, self.input_time)
    }

    /// Generated tokens per second; 0 before there were any.
    pub fn output_rate(&self) -> f64 {
        rate(self.output_tokens, self.output_time)
    }
}

fn rate(tokens: u64, time: Duration) -> f64 {
    if tokens == 0 || time.is_zero() { 0.0 } else { tokens as f64 / time.as_secs_f64() }
}

/// The sums of all sessions of a model.
#[derive(Default)]
pub struct Totals {
    pub(crate) input_tokens: AtomicU64,
    pub(crate) output_tokens: AtomicU64,
    pub(crate) reused_tokens: AtomicU64,
    pub(crate) cached_tokens: AtomicU64,
    pub(crate) input_nanoseconds: AtomicU64,
    pub(crate) output_nanoseconds: AtomicU64,
    pub(crate) bytes: AtomicU64,
    pub(crate) sessions: AtomicU64,
}

impl Totals {
    /// The sums now.
    pub fn statistics(&self) -> Statistics {
        let get = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Statistics {
            input_tokens: get(&self.input_tokens),
            output_tokens: get(&self.output_tokens),
            reused_tokens: get(&self.reused_tokens),
            cached_tokens: get(&self.cached_tokens),
            input_time: Duration::from_nanos(get(&self.input_nanoseconds)),
            output_time: Duration::from_nanos(get(&self.output_nanoseconds)),
            first_token_time: Duration::ZERO,
            bytes: get(&self.bytes),
            sessions: get(&self.sessions),
        }
    }
}
