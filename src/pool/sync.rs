//! What the protocol of the pool is made of. `tests/loom` has a double of this file, of `futex`
//! and of `spin`, with which the protocol is tried in every order of its steps.

use std::cell::UnsafeCell;

pub(crate) use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

/// A value whose readers and writers know of each other by other means.
pub(super) struct Cell<T>(UnsafeCell<T>);

impl<T: Copy> Cell<T> {
    pub(super) fn new(value: T) -> Self {
        Self(UnsafeCell::new(value))
    }

    /// # Safety
    /// No other thread reads or writes it meanwhile.
    pub(super) unsafe fn set(&self, value: T) {
        // SAFETY: the caller's promise.
        unsafe { *self.0.get() = value }
    }

    /// # Safety
    /// No other thread writes it meanwhile.
    pub(super) unsafe fn get(&self) -> T {
        // SAFETY: the caller's promise.
        unsafe { *self.0.get() }
    }
}
