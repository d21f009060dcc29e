//! Stopping a computation between tasks, and going on later where it stopped.
//!
//! A [`Pace`] accompanies one *unit* of computation, such as a layer: a function that does
//! all its work through [`Compute::run`] and [`Compute::whole`], with outputs in memory that
//! outlives the call. When the time is over, the tasks that have not begun are left out, and
//! the rest of the unit falls through without effect. To go on, the same unit is called
//! again with the same arguments: regions that were completed are passed over, and of the
//! one that was cut the missing tasks are done. So the code of the unit is the plain
//! sequence of its steps; nothing in it knows that it can be interrupted.
//!
//! What a unit must keep to: everything it does outside of `run` and `whole` may happen
//! again, and on half-made data, so it must be harmless (computing sizes, cutting slices);
//! its regions and their numbers of tasks depend on its arguments alone; and memory that
//! carries data from one region to the next is an argument, or [`Compute::kept`], or filled
//! by [`Compute::prepare`].

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use super::Compute;
use super::buffer::{Buffer, Scratch, with_scratch};
use crate::{Error, Result};

/// Where a unit stands, and until when it may go on. See the module.
#[derive(Default)]
pub struct Pace {
    book: Mutex<Book>,
    clock: Clock,
    /// What [`Compute::kept`] lends.
    kept: Mutex<Buffer<f32>>,
}

/// Which regions of the unit are done. Held by the region that runs: one that begins while
/// it is held is nested in a task, and part of that task.
#[derive(Default)]
struct Book {
    /// Regions completed since the unit began.
    completed: usize,
    /// Regions met since the unit was last called.
    met: usize,
    /// Of the region in progress, if there is one: which tasks are done.
    tasks: Vec<AtomicBool>,
    in_progress: bool,
}

struct Clock {
    deadline: Option<Instant>,
    /// The deadline has passed and a task was left out for it.
    stopped: AtomicBool,
    /// Something was done since the clock was set: even the shortest time gets it forward.
    moved: AtomicBool,
    /// How many tasks took how long: four counts to each doubling of the nanoseconds.
    durations: [AtomicU32; 4 * 40],
}

/// So much of the tasks are no longer than what [`Pace::task_time`] says. The others are
/// mostly those that the system took the core away from.
const TYPICAL: f64 = 0.9;

impl Default for Clock {
    fn default() -> Self {
        Self {
            deadline: None,
            stopped: AtomicBool::new(false),
            moved: AtomicBool::new(false),
            durations: [const { AtomicU32::new(0) }; 4 * 40],
        }
    }
}

impl Pace {
    /// Goes on, with the unit that was cut short or a new one, until `deadline`, but with
    /// one task at least; `None`: to the end.
    pub fn start(&mut self, deadline: Option<Instant>) {
        self.clock.deadline = deadline;
        *self.clock.stopped.get_mut() = false;
        *self.clock.moved.get_mut() = false;
        self.book.get_mut().unwrap_or_else(PoisonError::into_inner).met = 0;
    }

    /// Between a completed unit and the next one.
    pub fn next_unit(&mut self) {
        let book = self.book.get_mut().unwrap_or_else(PoisonError::into_inner);
        (book.completed, book.met, book.in_progress) = (0, 0, false);
    }

    /// Whether the last call was cut short.
    pub fn is_stopped(&self) -> bool {
        self.clock.stopped.load(Ordering::Relaxed)
    }

    /// Whether the region that comes next was completed by an earlier call. Within a task
    /// nothing is known of that: no.
    fn is_next_completed(&self) -> bool {
        self.book.try_lock().is_ok_and(|book| book.met < book.completed)
    }

    /// What a long task took, typically, since this was last asked; zero if there were none.
    pub fn task_time(&mut self) -> Duration {
        let counts = self.clock.durations.each_mut().map(|count| std::mem::take(count.get_mut()));
        let most = TYPICAL * counts.iter().map(|&count| f64::from(count)).sum::<f64>();
        let mut sum = 0.0;
        let found = counts.iter().position(|&count| {
            sum += f64::from(count);
            sum > 0.0 && sum >= most
        });
        found.map_or(Duration::ZERO, |at| {
            // The middle of what is counted there.
            Duration::from_nanos(
                (2f64.powi(at as i32 / 4) * (1.125 + (at % 4) as f64 / 4.0)) as u64,
            )
        })
    }
}

impl Clock {
    /// Whether a task may begin; when, for [`Clock::end`].
    fn begin(&self) -> Option<Instant> {
        let now = Instant::now();
        let late = self.deadline.is_some_and(|deadline| now >= deadline);
        // The first of all may always begin: `moved` is set by one task only.
        if late && self.moved.swap(true, Ordering::Relaxed) {
            self.stopped.store(true, Ordering::Relaxed);
            return None;
        }
        Some(now)
    }

    fn end(&self, began: Instant) {
        self.moved.store(true, Ordering::Relaxed);
        let took = began.elapsed().as_nanos().max(4) as u64;
        let doubling = took.ilog2();
        let quarter = (took >> (doubling - 2)) & 3;
        let at = (4 * doubling as usize + quarter as usize).min(self.durations.len() - 1);
        self.durations[at].fetch_add(1, Ordering::Relaxed);
    }
}

impl Book {
    /// Whether the region that begins now was completed by an earlier call. If not, its
    /// tasks are listed.
    fn is_completed(&mut self, tasks: usize) -> Result<bool> {
        self.met += 1;
        if self.met <= self.completed {
            return Ok(true);
        }
        if !self.in_progress {
            self.tasks.clear();
            self.tasks
                .try_reserve(tasks)
                .map_err(|_| Error::out_of_memory("the list of tasks", tasks))?;
            self.tasks.resize_with(tasks, || AtomicBool::new(false));
            self.in_progress = true;
        }
        assert_eq!(self.tasks.len(), tasks, "a unit went on with other arguments");
        Ok(false)
    }
}

impl Compute<'_> {
    /// Calls `region` with what tells whether a task is still to be done, which then must be
    /// done; passes over a region that an earlier call completed.
    pub(super) fn paced(&self, pace: &Pace, tasks: usize, region: impl FnOnce(&Paced)) {
        let mut book = match pace.book.try_lock() {
            Ok(book) => book,
            Err(TryLockError::Poisoned(poison)) => poison.into_inner(),
            Err(TryLockError::WouldBlock) => {
                return region(&Paced { clock: &pace.clock, tasks: &[] });
            }
        };
        if self.is_stopped() {
            return;
        }
        match book.is_completed(tasks) {
            Ok(true) => return,
            Ok(false) => {}
            Err(error) => return self.note(Err(error)),
        }
        region(&Paced { clock: &pace.clock, tasks: &book.tasks });
        if !self.is_stopped() {
            book.completed += 1;
            book.in_progress = false;
        }
    }

    /// Does `work` on this thread as one task that is never cut, with all regions in it;
    /// `None` if it was done before or is not to be done. For steps that are short, or whose
    /// data would not outlive a pause.
    pub fn whole<R>(&self, work: impl FnOnce() -> R) -> Option<R> {
        let mut result = None;
        let work = || result = Some(work());
        match self.pace {
            None if self.is_over() => {}
            None => work(),
            Some(pace) => self.paced(pace, 1, |region| {
                if !self.is_over() {
                    region.task(0, work);
                }
            }),
        }
        result
    }

    /// Calls `work` with what computes, to make data that the next region needs and that does
    /// not outlive a pause: again whenever that region goes on, in full, and not at all
    /// (`None`) when it is completed.
    pub(super) fn prepare<R>(&self, work: impl FnOnce(&Compute) -> R) -> Option<R> {
        let Some(pace) = self.pace else { return Some(work(self)) };
        if self.is_stopped() || pace.is_next_completed() {
            return None;
        }
        let plain = self.without_pace();
        let result = work(&plain);
        self.note(plain.fault.into_inner().map_or(Ok(()), Err));
        Some(result)
    }

    /// Calls `work` with `len` floats that keep their values while the unit is interrupted:
    /// the thread's own `scratch` if it cannot be. One piece of memory serves a unit.
    ///
    /// # Errors
    /// As [`with_scratch`].
    pub(super) fn kept(
        &self,
        scratch: &'static std::thread::LocalKey<Scratch>,
        len: usize,
        work: impl FnOnce(&mut [f32]),
    ) -> Result<()> {
        let Some(pace) = self.pace else { return with_scratch(scratch, len, work) };
        match pace.kept.try_lock() {
            Ok(mut kept) => {
                if kept.len() < len {
                    *kept = Buffer::empty();
                    *kept = Buffer::zeroed(len, "kernel scratch")?;
                }
                work(&mut kept[..len]);
                Ok(())
            }
            // Within a task that is done as a whole, on another thread.
            Err(_) => with_scratch(scratch, len, work),
        }
    }

    /// Whether the computation may be cut short: tasks should then be short, too.
    pub(crate) fn is_paced(&self) -> bool {
        self.pace.is_some()
    }

    /// Whether the computation is over or cut short: the outputs so far are incomplete.
    pub fn is_stopped(&self) -> bool {
        self.is_over() || self.pace.is_some_and(Pace::is_stopped)
    }
}

/// The tasks of a region that may be cut short.
pub(super) struct Paced<'a> {
    clock: &'a Clock,
    /// Which are done; empty for a region within a task, which is never cut.
    tasks: &'a [AtomicBool],
}

impl Paced<'_> {
    /// Does task `n` unless it is done already or the time is over.
    pub(super) fn task(&self, n: usize, work: impl FnOnce()) {
        let Some(done) = self.tasks.get(n) else { return work() };
        if done.load(Ordering::Relaxed) {
            return;
        }
        if let Some(began) = self.clock.begin() {
            work();
            self.clock.end(began);
            done.store(true, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::super::{Cancel, Isa};
    use super::*;
    use crate::pool::Pool;

    /// Two regions and a step between them whose repetition would show, and data for the
    /// first that do not outlive the call.
    fn unit(c: &Compute, counts: &[AtomicUsize], sums: &Mutex<[usize; 2]>) {
        let half = counts.len() / 2;
        let data: Vec<_> = (0..3).map(|_| AtomicUsize::new(0)).collect();
        c.prepare(|c| c.run(3, |n| data[n].store(n + 1, Ordering::Relaxed)));
        c.run(half, |n| {
            assert_eq!(data[n % 3].load(Ordering::Relaxed), n % 3 + 1);
            counts[n].fetch_add(1, Ordering::Relaxed);
        });
        c.whole(|| {
            c.run(3, |_| ());
            sums.lock().unwrap()[0] += counts[..half].len();
        });
        c.run(counts.len() - half, |n| {
            counts[half + n].fetch_add(1, Ordering::Relaxed);
        });
        c.whole(|| sums.lock().unwrap()[1] += 1);
    }

    #[test]
    fn every_task_is_done_once_however_often_it_is_interrupted() {
        for threads in [1, 2, 3] {
            let (pool, cancel) = (Pool::new(threads).unwrap(), Cancel::new());
            let counts: Vec<_> = (0..40).map(|_| AtomicUsize::new(0)).collect();
            let sums = Mutex::new([0; 2]);
            let mut pace = Pace::default();
            for units in 1..3 {
                let mut calls = 0;
                pace.next_unit();
                loop {
                    // A deadline that has passed already: one task for each call.
                    pace.start(Some(Instant::now()));
                    let c = Compute::new(Isa::best(), &pool, &cancel);
                    let c = c.with_pace(&pace);
                    unit(&c, &counts, &sums);
                    calls += 1;
                    if !c.is_stopped() {
                        break;
                    }
                }
                assert!(calls > 40, "{calls} calls");
                assert!(counts.iter().all(|n| n.load(Ordering::Relaxed) == units));
                assert_eq!(*sums.lock().unwrap(), [20 * units, units]);
            }
        }
    }

    #[test]
    fn task_time_is_not_that_of_the_odd_one() {
        let mut pace = Pace::default();
        assert_eq!(pace.task_time(), Duration::ZERO);
        let ago = |us| Instant::now() - Duration::from_micros(us);
        (0..95).for_each(|_| pace.clock.end(ago(1_000)));
        (0..5).for_each(|_| pace.clock.end(ago(1_000_000)));
        let time = pace.task_time();
        assert!((Duration::from_micros(900)..Duration::from_millis(100)).contains(&time));
        assert_eq!(pace.task_time(), Duration::ZERO);
    }

    #[test]
    fn without_a_deadline_it_is_finished() {
        let (pool, cancel) = (Pool::new(2).unwrap(), Cancel::new());
        let counts: Vec<_> = (0..40).map(|_| AtomicUsize::new(0)).collect();
        let sums = Mutex::new([0; 2]);
        let mut pace = Pace::default();
        for deadline in [Some(Instant::now()), None] {
            pace.start(deadline);
            let c = Compute::new(Isa::best(), &pool, &cancel);
            let c = c.with_pace(&pace);
            unit(&c, &counts, &sums);
            assert_eq!(c.is_stopped(), deadline.is_some());
        }
        assert!(counts.iter().all(|n| n.load(Ordering::Relaxed) == 1));
        assert_eq!(*sums.lock().unwrap(), [20, 1]);
    }
}
