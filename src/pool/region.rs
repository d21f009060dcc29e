//! Regions: how a caller and the workers meet, share the tasks out, and part.
//!
//! # Why it is sound
//! One word, the gate, governs the region: a bit that says it is open, the number of
//! workers inside, and a generation. The region's closure is written only by the caller
//! that holds `busy`, while the gate is closed and nobody is inside. A worker reads it only
//! after it has counted itself in by a compare-exchange that requires the open bit, and it
//! counts itself out when it will not touch it again. The caller closes the gate, after
//! which nobody can enter, and leaves only when the count is zero. So the closure and all
//! it borrows outlive every use. Opening the gate is a release that the entering
//! compare-exchange acquires, so workers see the closure; counting out is a release that
//! the caller's last look at the gate acquires, so the caller sees what the tasks wrote
//! (all changes in between are read-modify-writes, which keep the release sequences
//! whole). Claims need no ordering of their own: each task index goes to exactly one
//! participant because it lies in the range of one atomic addition to the cursor of one share.
//!
//! `tests/loom` runs this file in every order in which the steps of a few threads can come.

use std::any::Any;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::futex;
use super::spin::Spin;
use super::sync::{AtomicBool, AtomicU32, AtomicUsize, Cell, Ordering};

/// How long a worker looks for the next region before it sleeps: longer than the serial
/// steps between the regions of one token, too short to matter as load.
const WORKER_SPIN: Duration = Duration::from_micros(60);
/// How long the caller looks for the last workers to leave before it sleeps.
const CALLER_SPIN: Duration = Duration::from_micros(40);

/// Gate: workers inside the region.
const INSIDE: u32 = (1 << 10) - 1;
/// Gate: workers may enter.
const OPEN: u32 = 1 << 10;
/// Gate: the caller sleeps until the last worker has left.
const AWAITED: u32 = 1 << 11;
/// Gate: workers end.
const STOP: u32 = 1 << 12;
/// Gate: one generation. It only spares a worker from entering a region twice, which
/// would be harmless, so that it may wrap.
const GENERATION: u32 = 1 << 13;

/// Keeps what it holds off the cache lines of its neighbours.
#[repr(align(128))]
struct Apart<T>(T);

/// The tasks of a region: called with the numbers of some.
pub(crate) type Task<'a> = dyn Fn(Range<usize>) + Sync + 'a;

/// The tasks of a region, with the closure's lifetime erased.
#[derive(Clone, Copy)]
struct Region {
    task: *const Task<'static>,
    tasks: usize,
    /// The most tasks of one call.
    most: usize,
    /// The threads that have shares, the caller's included.
    threads: usize,
}

/// What a caller and its workers share.
pub(crate) struct Regions {
    gate: Apart<AtomicU32>,
    /// For each thread, the next task of its share.
    cursors: Box<[Apart<AtomicUsize>]>,
    sleepers: AtomicU32,
    busy: AtomicBool,
    region: Cell<Option<Region>>,
    panic: Mutex<Option<String>>,
}

// SAFETY: everything but `region` is `Sync`; `region` and the closure in it, which is
// `Sync`, are used as the module comment describes.
unsafe impl Sync for Regions {}
// SAFETY: nothing in it belongs to a thread; the pointer in `region` is used only within
// the region that wrote it.
unsafe impl Send for Regions {}

impl Regions {
    /// For `threads` threads at most, the caller included.
    pub(crate) fn new(threads: usize) -> Self {
        Self {
            gate: Apart(AtomicU32::new(0)),
            cursors: (0..threads).map(|_| Apart(AtomicUsize::new(0))).collect(),
            sleepers: AtomicU32::new(0),
            busy: AtomicBool::new(false),
            region: Cell::new(None),
            panic: Mutex::new(None),
        }
    }

    /// Does `tasks` tasks, at most `most` in one call of `task`, on this thread and those of the
    /// `workers` first workers that come, and returns when all are done: the message of the first
    /// panic, if there was one. `None`: another caller has the workers, and nothing was done.
    pub(crate) fn run(
        &self,
        workers: usize,
        tasks: usize,
        most: usize,
        task: &Task,
    ) -> Option<Result<(), String>> {
        if self.busy.swap(true, Ordering::Acquire) {
            return None;
        }
        let region = self.open(tasks, most, task, workers + 1);
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| self.claim(0, region, task))) {
            self.record_panic(&*payload);
        }
        self.close();
        let failure = self.panic.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.busy.store(false, Ordering::Release);
        Some(failure.map_or(Ok(()), Err))
    }

    /// Opens a region. The caller holds `busy`.
    fn open(&self, tasks: usize, most: usize, task: &Task, threads: usize) -> Region {
        // SAFETY: only the lifetime changes; the module comment says why no use outlives it.
        let task: *const Task<'static> =
            unsafe { std::mem::transmute::<&Task, &'static Task<'static>>(task) };
        let region = Region { task, tasks, most, threads };
        // SAFETY: `busy` keeps other callers out, and the gate is closed with nobody
        // inside, so that no worker looks at the cell.
        unsafe { self.region.set(Some(region)) };
        for (thread, cursor) in self.cursors.iter().take(threads).enumerate() {
            cursor.0.store(share(thread, threads, tasks).start, Ordering::Relaxed);
        }
        let gate = self.gate.0.load(Ordering::Relaxed) & !(AWAITED | INSIDE);
        // Sequentially consistent with `sleepers`: either this thread sees the sleeper, or
        // the sleeper's futex call sees the new gate and does not sleep.
        self.gate.0.swap(gate.wrapping_add(GENERATION) | OPEN, Ordering::SeqCst);
        let sleepers = self.sleepers.load(Ordering::SeqCst) as usize;
        if sleepers > 0 {
            let useful = sleepers.min(tasks - 1).min(threads - 1);
            futex::wake(&self.gate.0, useful as u32, futex::WORKERS);
        }
        region
    }

    /// Closes the region and waits until the workers inside have left.
    fn close(&self) {
        let mut gate = self.gate.0.fetch_and(!OPEN, Ordering::AcqRel) & !OPEN;
        let mut spin = Spin::new(CALLER_SPIN);
        while gate & INSIDE != 0 {
            if spin.again() {
                gate = self.gate.0.load(Ordering::Acquire);
                continue;
            }
            let asleep = gate | AWAITED;
            match self.gate.0.compare_exchange(gate, asleep, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => {
                    futex::wait(&self.gate.0, asleep, futex::CALLER);
                    gate = self.gate.0.load(Ordering::Acquire);
                }
                Err(now) => gate = now,
            }
        }
    }

    /// Does tasks until none is left: those of this thread's share, then of the others'. Where
    /// calls may be of several tasks, each is of half of what a share has left, so that calls are
    /// few and all threads end together still.
    fn claim(&self, thread: usize, region: Region, task: &Task) {
        let Region { tasks, most, threads, .. } = region;
        for owner in (thread..threads).chain(0..thread) {
            let (cursor, end) = (&self.cursors[owner].0, share(owner, threads, tasks).end);
            loop {
                // A look before the addition leaves the line of a finished share in peace.
                let left = end.saturating_sub(cursor.load(Ordering::Relaxed));
                if left == 0 {
                    break;
                }
                let count = left.div_ceil(2).min(most);
                let first = cursor.fetch_add(count, Ordering::Relaxed);
                if first >= end {
                    break;
                }
                task(first..end.min(first + count));
            }
        }
    }

    /// The body of worker `thread`, from 1 on; returns when the pool ends.
    pub(crate) fn work(&self, thread: usize) {
        let mut seen = None;
        while self.enter(&mut seen) {
            // SAFETY: this worker is counted in, so that the region is neither replaced
            // nor left before it counts itself out below.
            let region = unsafe { self.region.get() };
            if let Some(region) = region {
                // SAFETY: as above: the caller keeps the closure until all have left.
                let task = unsafe { &*region.task };
                let claim = || self.claim(thread, region, task);
                if let Err(payload) = catch_unwind(AssertUnwindSafe(claim)) {
                    self.record_panic(&*payload);
                }
            }
            let before = self.gate.0.fetch_sub(1, Ordering::AcqRel);
            if before & INSIDE == 1 && before & AWAITED != 0 {
                futex::wake(&self.gate.0, 1, futex::CALLER);
            }
        }
    }

    /// Waits for a region of another generation than `seen` and counts this worker in;
    /// false when the pool ends.
    fn enter(&self, seen: &mut Option<u32>) -> bool {
        let mut spin = Spin::new(WORKER_SPIN);
        loop {
            let gate = self.gate.0.load(Ordering::Acquire);
            if gate & STOP != 0 {
                return false;
            }
            let generation = gate / GENERATION;
            if gate & OPEN != 0 && *seen != Some(generation) {
                let entered = self.gate.0.compare_exchange(
                    gate,
                    gate + 1,
                    Ordering::AcqRel,
                    Ordering::Relaxed,
                );
                if entered.is_ok() {
                    *seen = Some(generation);
                    return true;
                }
            } else if !spin.again() {
                self.sleepers.fetch_add(1, Ordering::SeqCst);
                futex::wait(&self.gate.0, gate, futex::WORKERS);
                self.sleepers.fetch_sub(1, Ordering::SeqCst);
                spin = Spin::new(WORKER_SPIN);
            }
        }
    }

    /// Ends the workers. No caller is in a region, and none comes.
    pub(crate) fn stop(&self) {
        self.gate.0.fetch_or(STOP, Ordering::SeqCst);
        futex::wake(&self.gate.0, u32::MAX, futex::WORKERS);
    }

    /// Workers that sleep, or are about to.
    #[cfg(test)]
    pub(super) fn sleepers(&self) -> u32 {
        self.sleepers.load(Ordering::SeqCst)
    }

    /// Keeps the message of the first panic of a region and hands out no more tasks.
    fn record_panic(&self, payload: &(dyn Any + Send)) {
        for cursor in &self.cursors {
            // Beyond the end of every share, and far from where additions wrap around.
            cursor.0.store(usize::MAX / 2, Ordering::Relaxed);
        }
        let mut first = self.panic.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert_with(|| panic_message(payload));
    }
}

/// The tasks that are first meant for `thread` of `threads`.
pub(super) fn share(thread: usize, threads: usize, tasks: usize) -> Range<usize> {
    let (each, more) = (tasks / threads, tasks % threads);
    let start = |thread: usize| thread * each + thread.min(more);
    start(thread)..start(thread + 1)
}

/// What a panic says.
pub(super) fn panic_message(payload: &(dyn Any + Send)) -> String {
    payload
        .downcast_ref::<&str>()
        .map(|s| (*s).to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no message".to_owned())
}
