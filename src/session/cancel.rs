//! Cancelling a call from another thread.

use std::sync::Arc;

use crate::kernels::Cancel;
use crate::{Error, ErrorKind, Result};

/// Cancels the call in progress on a session, or the next one if none is. Any thread may do
/// so at any time; asking again changes nothing. The call that answers with `Cancelled`
/// uses the request up.
#[derive(Clone, Default)]
pub struct CancelHandle {
    flag: Arc<Cancel>,
}

impl CancelHandle {
    /// Asks for it. Returns at once.
    pub fn cancel(&self) {
        self.flag.set();
    }

    /// What the kernels look at.
    pub(crate) fn flag(&self) -> &Cancel {
        &self.flag
    }

    /// Answers a request made while no call was running.
    pub(crate) fn check(&self) -> Result<()> {
        if self.take() { Err(Error::cancelled("cancelled before it began")) } else { Ok(()) }
    }

    /// Whether there is a request, which is then used up.
    pub(crate) fn take(&self) -> bool {
        self.flag.take()
    }

    /// Uses up the request that ended a call. One that came too late to do so stays for the
    /// next call.
    pub(crate) fn settle<T>(&self, result: Result<T>) -> Result<T> {
        if matches!(&result, Err(error) if error.kind() == ErrorKind::Cancelled) {
            self.take();
        }
        result
    }
}
