//! The double of `src/pool/spin.rs`: time is over at once.

use std::time::Duration;

pub(crate) struct Spin;

impl Spin {
    pub(crate) fn new(_limit: Duration) -> Self {
        Self
    }

    pub(crate) fn again(&mut self) -> bool {
        false
    }
}
