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
#![allow(unsafe_code)]

mod cpus;
mod futex;
mod region;
mod spin;
mod split;
pub(crate) mod sync;

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;

pub use cpus::default_threads;
pub use split::SharedMut;

use crate::{Error, Result};
use region::{Regions, panic_message};

/// The most threads of one pool, the caller included.
pub const MAX_THREADS: usize = 512;

/// Tasks need little stack (scratch memory is on the heap); unoptimised builds need much more.
const STACK_BYTES: usize = if cfg!(debug_assertions) { 4 << 20 } else { 512 << 10 };

/// Worker threads; see the [module](self). Dropping it ends and joins them.
pub struct Pool {
    shared: Arc<Regions>,
    workers: Vec<JoinHandle<()>>,
    process: u32,
    shortage: Option<String>,
}

impl Pool {
    /// A pool in which `threads` threads compute, the caller of [`Pool::run`] being one of
    /// them; 0 means [`default_threads`]. Where the system starts no more threads, the pool has
    /// those it could get, down to the caller alone: see [`Pool::shortage`].
    ///
    /// # Errors
    /// `InvalidArgument` above [`MAX_THREADS`].
    pub fn new(threads: usize) -> Result<Self> {
        Self::start(threads, |n, shared| {
            with_signals_blocked(|| {
                std::thread::Builder::new()
                    .name(format!("qwen35-{n}"))
                    .stack_size(STACK_BYTES)
                    .spawn(move || shared.work(n))
            })
        })
    }

    /// As [`Pool::new`]; `spawn` starts the worker of a number.
    fn start(
        threads: usize,
        mut spawn: impl FnMut(usize, Arc<Regions>) -> std::io::Result<JoinHandle<()>>,
    ) -> Result<Self> {
        if threads > MAX_THREADS {
            return Err(Error::invalid_argument(format!(
                "{threads} threads: expected at most {MAX_THREADS}"
            )));
        }
        let threads = if threads == 0 { default_threads() } else { threads };
        let mut pool = Self {
            shared: Arc::new(Regions::new(threads)),
            workers: Vec::new(),
            process: std::process::id(),
            shortage: None,
        };
        for n in 1..threads {
            match spawn(n, Arc::clone(&pool.shared)) {
                Ok(worker) => pool.workers.push(worker),
                Err(error) => {
                    pool.shortage = Some(format!(
                        "{n} of {threads} threads compute: the system starts no more ({error})"
                    ));
                    break;
                }
            }
        }
        Ok(pool)
    }

    /// Why there are fewer threads than were asked for, if that is so.
    pub fn shortage(&self) -> Option<&str> {
        self.shortage.as_deref()
    }

    /// Threads that compute, the caller included.
    pub fn threads(&self) -> usize {
        self.workers.len() + 1
    }

    /// Whether the tasks that a thread does first, of a region of `tasks` tasks, begin with
    /// `task`: otherwise it has most likely just done the one before.
    pub fn begins_share(&self, task: usize, tasks: usize) -> bool {
        (0..self.threads()).any(|thread| self.share(thread, tasks).start == task)
    }

    /// The tasks, of a region of `tasks` tasks, that thread `thread` does first.
    pub fn share(&self, thread: usize, tasks: usize) -> Range<usize> {
        region::share(thread, self.threads(), tasks)
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
        self.run_ranges(tasks, 1, |tasks| tasks.for_each(&task))
    }

    /// As [`Pool::run`], with calls for up to `most` neighbouring tasks, for whom it costs
    /// something to begin: each of half of what a thread still has to do.
    ///
    /// # Errors
    /// Those of [`Pool::run`].
    pub fn run_ranges(
        &self,
        tasks: usize,
        most: usize,
        task: impl Fn(Range<usize>) + Sync,
    ) -> Result<()> {
        if std::process::id() != self.process {
            return Err(Error::forked(
                "the worker threads belong to the process that this one was forked from",
            ));
        }
        let most = most.max(1);
        if !self.workers.is_empty()
            && tasks > 1
            && let Some(result) = self.shared.run(self.workers.len(), tasks, most, &task)
        {
            return result.map_err(|message| panicked(&message));
        }
        let ranges = (0..tasks).step_by(most).map(|first| first..tasks.min(first + most));
        catch_unwind(AssertUnwindSafe(|| ranges.for_each(task)))
            .map_err(|payload| panicked(&panic_message(&*payload)))
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        if std::process::id() != self.process {
            // The threads do not exist in this process: nothing can be joined.
            self.workers.drain(..).for_each(std::mem::forget);
            return;
        }
        self.shared.stop();
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

fn panicked(message: &str) -> Error {
    Error::internal(format!("a computation panicked: {message}"))
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
