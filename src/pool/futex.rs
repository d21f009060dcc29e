//! Sleeping on a 32-bit word (Linux futex), with two groups of sleepers on one word.

use super::sync::AtomicU32;

/// The group of idle workers.
pub(super) const WORKERS: u32 = 1;
/// The group of the caller that waits for workers to leave.
pub(super) const CALLER: u32 = 2;

/// Sleeps while `word` holds `expected`, until a [`wake`] of `group`. May return early.
pub(super) fn wait(word: &AtomicU32, expected: u32, group: u32) {
    // SAFETY: the word outlives the call; no timeout and no second word are passed. Any
    // failure (value changed, signal) is an early return, which callers expect.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT_BITSET | libc::FUTEX_PRIVATE_FLAG,
            expected,
            std::ptr::null::<libc::timespec>(),
            std::ptr::null::<u32>(),
            group,
        );
    }
}

/// Wakes up to `count` sleepers of `group`.
pub(super) fn wake(word: &AtomicU32, count: u32, group: u32) {
    // SAFETY: waking has no effect on memory; the kernel uses the address as a key only.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAKE_BITSET | libc::FUTEX_PRIVATE_FLAG,
            count.min(i32::MAX as u32),
            std::ptr::null::<libc::timespec>(),
            std::ptr::null::<u32>(),
            group,
        );
    }
}
