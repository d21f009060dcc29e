//! The double of `src/pool/sync.rs`.

use std::fmt;
use std::sync::atomic::Ordering::SeqCst;

pub(crate) use loom::sync::atomic::{AtomicUsize, Ordering};

/// Loom's atomic, but for one thing: loom takes sequentially consistent loads for acquiring
/// ones, and so does not know their one order. All its users come to such a load, or to a
/// sleep, behind a read-modify-write that is sequentially consistent as well, so that a fence
/// in front of the load says the same.
pub(crate) struct AtomicU32(loom::sync::atomic::AtomicU32);

impl AtomicU32 {
    pub(crate) fn new(value: u32) -> Self {
        Self(loom::sync::atomic::AtomicU32::new(value))
    }

    pub(crate) fn load(&self, order: Ordering) -> u32 {
        if order == SeqCst {
            loom::sync::atomic::fence(SeqCst);
        }
        self.0.load(order)
    }

    pub(crate) fn swap(&self, value: u32, order: Ordering) -> u32 {
        self.0.swap(value, order)
    }

    pub(crate) fn fetch_add(&self, value: u32, order: Ordering) -> u32 {
        self.0.fetch_add(value, order)
    }

    pub(crate) fn fetch_sub(&self, value: u32, order: Ordering) -> u32 {
        self.0.fetch_sub(value, order)
    }

    pub(crate) fn fetch_and(&self, value: u32, order: Ordering) -> u32 {
        self.0.fetch_and(value, order)
    }

    pub(crate) fn fetch_or(&self, value: u32, order: Ordering) -> u32 {
        self.0.fetch_or(value, order)
    }

    pub(crate) fn compare_exchange(
        &self,
        current: u32,
        new: u32,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u32, u32> {
        self.0.compare_exchange(current, new, success, failure)
    }
}

impl fmt::Debug for AtomicU32 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Loom's atomic, but for one thing: where a read-modify-write and a store do not know of each
/// other, loom lets a later read-modify-write find either, although the store must come behind
/// one that has not read it. A swap in place of the store has its order.
#[derive(Debug, Default)]
pub(crate) struct AtomicBool(loom::sync::atomic::AtomicBool);

impl AtomicBool {
    pub(crate) fn new(value: bool) -> Self {
        Self(loom::sync::atomic::AtomicBool::new(value))
    }

    pub(crate) fn load(&self, order: Ordering) -> bool {
        self.0.load(order)
    }

    pub(crate) fn store(&self, value: bool, order: Ordering) {
        self.0.swap(value, order);
    }

    pub(crate) fn swap(&self, value: bool, order: Ordering) -> bool {
        self.0.swap(value, order)
    }
}

/// A value whose readers and writers know of each other by other means, which loom checks.
pub(crate) struct Cell<T>(loom::cell::UnsafeCell<T>);

impl<T: Copy> Cell<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(loom::cell::UnsafeCell::new(value))
    }

    /// # Safety
    /// No other thread reads or writes it meanwhile.
    pub(crate) unsafe fn set(&self, value: T) {
        // SAFETY: the caller's promise; loom panics if it is broken.
        self.0.with_mut(|place| unsafe { *place = value });
    }

    /// # Safety
    /// No other thread writes it meanwhile.
    pub(crate) unsafe fn get(&self) -> T {
        // SAFETY: the caller's promise; loom panics if it is broken.
        self.0.with(|place| unsafe { *place })
    }
}
