//! Ending the reading of a tokenizer from another thread.
//!
//! Reading takes some tenths of a second, most of it inside a JSON parser that calls back with
//! nothing but its own arguments; so what is watched is a matter of the thread that reads.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::{Error, Result};

/// Entries read between two looks.
const ENTRIES: usize = 1024;

/// The wish that reading a tokenizer should end. Clones are the same wish.
#[derive(Clone, Default)]
pub struct Stop(Arc<AtomicBool>);

thread_local!(static WATCHED: RefCell<Stop> = RefCell::default());

impl Stop {
    /// Expresses it.
    pub fn ask(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Calls `read`; a tokenizer that is read in it, on this thread, ends with `Cancelled` within
    /// a millisecond after [`Stop::ask`].
    pub fn watch<R>(&self, read: impl FnOnce() -> R) -> R {
        let before = WATCHED.with(|watched| watched.replace(self.clone()));
        let result = read();
        WATCHED.with(|watched| watched.replace(before));
        result
    }
}

/// To be asked for each entry, with its number.
///
/// # Errors
/// `Cancelled`.
pub(super) fn check(entry: usize) -> Result<()> {
    let is_asked = || WATCHED.with(|watched| watched.borrow().0.load(Ordering::Relaxed));
    if entry.is_multiple_of(ENTRIES) && is_asked() {
        return Err(Error::cancelled("reading the tokenizer was cancelled"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_ends_what_is_read_in_it_and_nothing_else() {
        let stop = Stop::default();
        assert!(stop.watch(|| check(0)).is_ok());
        stop.ask();
        stop.watch(|| {
            assert!(check(0).is_err() && check(1).is_ok() && check(ENTRIES).is_err());
            assert!(Stop::default().watch(|| check(0)).is_ok());
            assert!(check(0).is_err());
        });
        assert!(check(0).is_ok());
    }
}
