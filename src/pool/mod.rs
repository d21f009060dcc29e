//! A fixed set of worker threads that help a calling thread through parallel regions.
//!
//! A region is a number of independent tasks. The caller opens it, takes part in it, and
//! returns when every task is done. Each thread has a share of neighbouring tasks, so that
//! it reads one long run of memory, and when that is done it takes from the shares of the
//! others. Nobody waits for a worker that has not come: if the host's own threads keep the
//! other cores busy, the caller simply does more of the tasks itself. Results must not
//! depend on who computes what, which every kernel of this crate guarantees.
//!
//! Waiting is a short spin, long enough for the gaps inside one decoding step, and then a
//! futex, so that an idle pool uses no CPU time.
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
//! participant because it comes from one atomic addition to the cursor of one share.
#![allow(unsafe_code)]

mod cpus;
mod futex;
mod split;

use std::any::Any;
use std::cell::UnsafeCell;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub use cpus::default_threads;
pub use split::SharedMut;

use crate::{Error, ErrorKind, Result};

/// The most threads of one pool, the caller included.
pub const MAX_THREADS: usize = 512;

/// How long a worker looks for the next region before it sleeps: longer than the serial
/// steps between the regions of one token, too short to matter as load.
const WORKER_SPIN: Duration = Duration::from_micros(60);
/// How long the caller looks for the last workers to leave before it sleeps.
const CALLER_SPIN: Duration = Duration::from_micros(40);
/// Tasks need little stack (scratch memory is on the heap); unoptimised builds need much more.
const STACK_BYTES: usize = if cfg!(debug_assertions) { 4 << 20 } else { 512 << 10 };

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

/// The tasks of a region, with the closure's lifetime erased.
#[derive(Clone, Copy)]
struct Region {
    task: *const (dyn Fn(usize) + Sync),
    tasks: usize,
}

struct Shared {
    gate: Apart<AtomicU32>,
    /// For each thread, the next task of its share.
    cursors: Box<[Apart<AtomicUsize>]>,
    sleepers: AtomicU32,
    busy: AtomicBool,
    region: UnsafeCell<Option<Region>>,
    panic: Mutex<Option<String>>,
}

// SAFETY: everything but `region` is `Sync`; `region` and the closure in it, which is
// `Sync`, are used as the module comment describes.
unsafe impl Sync for Shared {}
// SAFETY: nothing in it belongs to a thread; the pointer in `region` is used only within
// the region that wrote it.
unsafe impl Send for Shared {}

/// Worker threads; see the [module](self). Dropping it ends and joins them.
pub struct Pool {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
    process: u32,
}

impl Pool {
    /// A pool in which `threads` threads compute, the caller of [`Pool::run`] being one of
    /// them; 0 means [`default_threads`].
    ///
    /// # Errors
    /// `InvalidArgument` above [`MAX_THREADS`]; `OutOfMemory` if the system starts no
    /// more threads.
    pub fn new(threads: usize) -> Result<Self> {
        if threads > MAX_THREADS {
            return Err(Error::invalid_argument(format!(
                "{threads} threads: expected at most {MAX_THREADS}"
            )));
        }
        let threads = if threads == 0 { default_threads() } else { threads };
        let shared = Arc::new(Shared {
            gate: Apart(AtomicU32::new(0)),
            cursors: (0..threads).map(|_| Apart(AtomicUsize::new(0))).collect(),
            sleepers: AtomicU32::new(0),
            busy: AtomicBool::new(false),
            region: UnsafeCell::new(None),
            panic: Mutex::new(None),
        });
        let mut pool = Self { shared, workers: Vec::new(), process: std::process::id() };
        for n in 1..threads {
            let shared = Arc::clone(&pool.shared);
            // If this fails, dropping `pool` ends the workers made so far.
            let worker = with_signals_blocked(|| {
                std::thread::Builder::new()
                    .name(format!("qwen35-{n}"))
                    .stack_size(STACK_BYTES)
                    .spawn(move || shared.work(n))
            })
            .map_err(|e| {
                Error::new(
                    ErrorKind::OutOfMemory,
                    format!("cannot start worker thread {n} of {}: {e}", threads - 1),
                )
            })?;
            pool.workers.push(worker);
        }
        Ok(pool)
    }

    /// Threads that compute, the caller included.
    pub fn threads(&self) -> usize {
        self.workers.len() + 1
    }

    /// Calls `task(i)` once for every `i` in `0..tasks`, on this thread and the workers,
    /// and returns when all calls have returned.
    ///
    /// Each thread tends to get one run of neighbouring tasks, in increasing order. If another
    /// thread is in a region of this pool (or this one, further up), the caller does all
    /// tasks alone.
    ///
    /// # Errors
    /// `Internal` with the message of the first task that panicked (others may then not
    /// have run); `Forked` in a process forked from the one that made the pool.
    pub fn run(&self, tasks: usize, task: impl Fn(usize) + Sync) -> Result<()> {
        if std::process::id() != self.process {
            return Err(Error::forked(
                "the worker threads belong to the process that this one was forked from",
            ));
        }
        let shared = &*self.shared;
        if self.workers.is_empty() || tasks < 2 || shared.busy.swap(true, Ordering::Acquire) {
            return catch_unwind(AssertUnwindSafe(|| (0..tasks).for_each(task)))
                .map_err(|payload| panicked(&panic_message(&*payload)));
        }
        shared.open(tasks, &task, self.workers.len());
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| shared.claim(0, tasks, &task))) {
            shared.record_panic(&*payload);
        }
        shared.close();
        let failure = shared.panic.lock().unwrap_or_else(PoisonError::into_inner).take();
        shared.busy.store(false, Ordering::Release);
        failure.map_or(Ok(()), |message| Err(panicked(&message)))
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        if std::process::id() != self.process {
            // The threads do not exist in this process: nothing can be joined.
            self.workers.drain(..).for_each(std::mem::forget);
            return;
        }
        self.shared.gate.0.fetch_or(STOP, Ordering::SeqCst);
        futex::wake(&self.shared.gate.0, u32::MAX, futex::WORKERS);
        for worker in self.workers.drain(..) {
            // Workers catch the panics of tasks; nothing else in them can fail.
            let _ = worker.join();
        }
    }
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Pool({} threads)", self.threads())
    }
}

impl Shared {
    /// Opens a region. The caller holds `busy`.
    fn open(&self, tasks: usize, task: &(dyn Fn(usize) + Sync), workers: usize) {
        // SAFETY: only the lifetime changes; the module comment says why no use outlives it.
        let task: *const (dyn Fn(usize) + Sync) = unsafe {
            std::mem::transmute::<&(dyn Fn(usize) + Sync), &'static (dyn Fn(usize) + Sync)>(task)
        };
        // SAFETY: `busy` keeps other callers out, and the gate is closed with nobody
        // inside, so that no worker looks at the cell.
        unsafe { *self.region.get() = Some(Region { task, tasks }) };
        for (thread, cursor) in self.cursors.iter().enumerate() {
            cursor.0.store(self.share(thread, tasks).start, Ordering::Relaxed);
        }
        let gate = self.gate.0.load(Ordering::Relaxed) & !(AWAITED | INSIDE);
        // Sequentially consistent with `sleepers`: either this thread sees the sleeper, or
        // the sleeper's futex call sees the new gate and does not sleep.
        self.gate.0.swap(gate.wrapping_add(GENERATION) | OPEN, Ordering::SeqCst);
        let sleepers = self.sleepers.load(Ordering::SeqCst) as usize;
        if sleepers > 0 {
            let useful = sleepers.min(tasks - 1).min(workers);
            futex::wake(&self.gate.0, useful as u32, futex::WORKERS);
        }
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

    /// The tasks that are first meant for `thread`.
    fn share(&self, thread: usize, tasks: usize) -> Range<usize> {
        let (each, more) = (tasks / self.cursors.len(), tasks % self.cursors.len());
        let start = |thread: usize| thread * each + thread.min(more);
        start(thread)..start(thread + 1)
    }

    /// Does tasks until none is left: those of this thread's share, then of the others'.
    fn claim(&self, thread: usize, tasks: usize, task: &(dyn Fn(usize) + Sync)) {
        let threads = self.cursors.len();
        for owner in (thread..threads).chain(0..thread) {
            let (cursor, end) = (&self.cursors[owner].0, self.share(owner, tasks).end);
            // A look before the addition leaves the line of a finished share in peace.
            while cursor.load(Ordering::Relaxed) < end {
                let n = cursor.fetch_add(1, Ordering::Relaxed);
                if n >= end {
                    break;
                }
                task(n);
            }
        }
    }

    /// The body of worker `thread`.
    fn work(&self, thread: usize) {
        let mut seen = None;
        while self.enter(&mut seen) {
            // SAFETY: this worker is counted in, so that the region is neither replaced
            // nor left before it counts itself out below.
            let region = unsafe { *self.region.get() };
            if let Some(Region { task, tasks }) = region {
                // SAFETY: as above: the caller keeps the closure until all have left.
                let task = unsafe { &*task };
                if let Err(payload) =
                    catch_unwind(AssertUnwindSafe(|| self.claim(thread, tasks, task)))
                {
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

/// A wait of bounded length that keeps the core.
struct Spin {
    limit: Duration,
    since: Option<Instant>,
    turns: u32,
}

impl Spin {
    fn new(limit: Duration) -> Self {
        Self { limit, since: None, turns: 0 }
    }

    /// Waits a moment; false when the time is over. The clock is read only now and then.
    fn again(&mut self) -> bool {
        std::hint::spin_loop();
        self.turns += 1;
        if !self.turns.is_multiple_of(32) {
            return true;
        }
        self.since.get_or_insert_with(Instant::now).elapsed() < self.limit
    }
}

fn panicked(message: &str) -> Error {
    Error::internal(format!("a computation panicked: {message}"))
}

fn panic_message(payload: &(dyn Any + Send)) -> String {
    payload
        .downcast_ref::<&str>()
        .map(|s| (*s).to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no message".to_owned())
}

/// Runs `f` (which makes a thread that inherits the mask) with all signals blocked that
/// are not raised by the thread itself, so that the host's handlers run on its own threads.
pub(crate) fn with_signals_blocked<R>(f: impl FnOnce() -> R) -> R {
    // SAFETY: the sets are local and initialised by `sigfillset` and `pthread_sigmask`;
    // the previous mask of this thread is put back.
    unsafe {
        let mut block: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut block);
        for own in [
            libc::SIGSEGV,
            libc::SIGBUS,
            libc::SIGFPE,
            libc::SIGILL,
            libc::SIGTRAP,
            libc::SIGABRT,
            libc::SIGSYS,
        ] {
            libc::sigdelset(&mut block, own);
        }
        let mut before: libc::sigset_t = std::mem::zeroed();
        let changed = libc::pthread_sigmask(libc::SIG_BLOCK, &block, &mut before) == 0;
        let result = f();
        if changed {
            libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut());
        }
        result
    }
}

#[cfg(test)]
mod tests;
