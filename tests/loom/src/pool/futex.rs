//! The double of `src/pool/futex.rs`: the kernel looks at the word and puts the thread among the
//! sleepers under one lock, which wakers take as well. It serves one word at a time.

use loom::sync::atomic::{Ordering, fence};
use loom::sync::{Condvar, Mutex};

use super::sync::AtomicU32;

pub(crate) const WORKERS: u32 = 1;
pub(crate) const CALLER: u32 = 2;

struct Queue {
    lock: Mutex<()>,
    workers: Condvar,
    caller: Condvar,
}

loom::lazy_static! {
    static ref QUEUE: Queue =
        Queue { lock: Mutex::new(()), workers: Condvar::new(), caller: Condvar::new() };
}

impl Queue {
    fn group(&self, group: u32) -> &Condvar {
        if group == WORKERS { &self.workers } else { &self.caller }
    }
}

pub(crate) fn wait(word: &AtomicU32, expected: u32, group: u32) {
    let held = QUEUE.lock.lock().unwrap();
    // A full barrier, as the system call has it.
    fence(Ordering::SeqCst);
    if word.load(Ordering::Relaxed) == expected {
        drop(QUEUE.group(group).wait(held).unwrap());
    }
}

pub(crate) fn wake(_word: &AtomicU32, count: u32, group: u32) {
    let _held = QUEUE.lock.lock().unwrap();
    match count {
        u32::MAX => QUEUE.group(group).notify_all(),
        count => (0..count).for_each(|_| QUEUE.group(group).notify_one()),
    }
}
