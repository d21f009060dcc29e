//! Stopping a computation from another thread. `tests/loom` runs it with a pool in every order.

use crate::pool::sync::{AtomicBool, Ordering};

/// A flag by which another thread asks the computation to stop.
#[derive(Debug, Default)]
pub struct Cancel(AtomicBool);

impl Cancel {
    /// A flag that is not set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks for the stop.
    pub fn set(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Takes the wish back, before the next computation.
    pub fn clear(&self) {
        self.0.store(false, Ordering::Release);
    }

    /// Whether a stop was asked for; the wish is then used up.
    pub fn take(&self) -> bool {
        self.0.swap(false, Ordering::AcqRel)
    }

    /// Whether a stop was asked for.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
