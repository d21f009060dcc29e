//! An allocator that counts, to hold code to its word about memory.
#![allow(unsafe_code, dead_code)] // an allocator is unsafe by nature

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts what each thread holds, so that tests can run side by side, and how often any
/// thread asked for memory.
struct Counting;

static REQUESTS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

fn count(change: isize) {
    // A thread that is ending has no counters any more, and nobody asks for them.
    let _ = HELD.try_with(|held| {
        held.set(held.get() + change);
        let _ = PEAK.try_with(|peak| peak.set(peak.get().max(held.get())));
    });
}

// SAFETY: memory comes from and goes to the system's allocator, unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        REQUESTS.fetch_add(1, Ordering::Relaxed);
        count(layout.size() as isize);
        // SAFETY: as the caller promised.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: as the caller promised.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// How often memory was asked for so far, by all threads.
pub fn requests() -> usize {
    REQUESTS.load(Ordering::Relaxed)
}

/// Bytes that this thread has allocated and not freed.
pub fn held() -> isize {
    HELD.get()
}

/// The result of `body` and the most memory it held at a time.
pub fn peak<R>(body: impl FnOnce() -> R) -> (R, usize) {
    let before = HELD.get();
    PEAK.set(before);
    let result = body();
    (result, (PEAK.get() - before) as usize)
}
