//! What a host hands to its own callbacks.

use std::ffi::c_void;

/// A pointer that only the host's own callback looks at, on the thread that calls.
pub(super) struct User(*mut c_void);

// SAFETY: the library never looks at what it points to.
unsafe impl Send for User {}
// SAFETY: as above.
unsafe impl Sync for User {}

impl User {
    pub(super) fn new(user: *mut c_void) -> Self {
        Self(user)
    }

    pub(super) fn get(&self) -> *mut c_void {
        self.0
    }
}
