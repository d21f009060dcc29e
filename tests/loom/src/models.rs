//! What is tried in every order.

use std::ops::Range;
use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::model::Builder;
use loom::thread::{JoinHandle, spawn};

use crate::cancel::CancelHandle;
use crate::pool::region::Regions;
use crate::{Error, ErrorKind};

/// Runs `model` in all orders, or in all those in which at most so many `switches` leave a
/// thread that could go on.
fn check(switches: Option<usize>, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = switches;
    builder.check(model);
}

/// What tasks write, each its own; loom finds every reader and writer that do not know of each
/// other.
struct Written(Vec<UnsafeCell<u32>>);

// SAFETY: loom panics where two threads use a cell at once.
unsafe impl Sync for Written {}
// SAFETY: as above.
unsafe impl Send for Written {}

impl Written {
    fn new(tasks: usize) -> Self {
        Self((0..tasks).map(|_| UnsafeCell::new(0)).collect())
    }

    fn add(&self, tasks: Range<usize>) {
        for cell in &self.0[tasks] {
            // SAFETY: each task has a cell of its own, and the caller looks when all are done.
            cell.with_mut(|place| unsafe { *place += 1 });
        }
    }

    fn values(&self) -> Vec<u32> {
        // SAFETY: as above.
        self.0.iter().map(|cell| cell.with(|place| unsafe { *place })).collect()
    }
}

fn workers(regions: &Arc<Regions>, count: usize) -> Vec<JoinHandle<()>> {
    let start = |n| {
        let regions = Arc::clone(regions);
        spawn(move || regions.work(n))
    };
    (1..=count).map(start).collect()
}

fn end(regions: &Regions, workers: Vec<JoinHandle<()>>) {
    regions.stop();
    workers.into_iter().for_each(|worker| worker.join().unwrap());
}

/// One caller with one worker: regions in a row, each task once, nobody sleeps for ever, and all
/// that is written is seen. The worker is met awake, entering, falling asleep and asleep.
#[test]
fn regions_in_a_row() {
    check(Some(3), || {
        let regions = Arc::new(Regions::new(2));
        let threads = workers(&regions, 1);
        for _ in 0..2 {
            let written = Written::new(2);
            regions.run(1, 2, 1, &|tasks| written.add(tasks)).unwrap().unwrap();
            assert_eq!(written.values(), [1, 1]);
            // The region is over: nobody looks at what it borrowed any more.
            drop(written);
        }
        end(&regions, threads);
    });
}

/// Tasks that may go together: the halves of what a share has left.
#[test]
fn ranges_of_tasks() {
    check(Some(2), || {
        let regions = Arc::new(Regions::new(2));
        let threads = workers(&regions, 1);
        let written = Written::new(5);
        regions.run(1, 5, 2, &|tasks| written.add(tasks)).unwrap().unwrap();
        assert_eq!(written.values(), [1; 5]);
        end(&regions, threads);
    });
}

/// With two workers, of which any number comes in time.
#[test]
fn two_workers() {
    check(Some(2), || {
        let regions = Arc::new(Regions::new(3));
        let threads = workers(&regions, 2);
        let written = Written::new(3);
        regions.run(2, 3, 1, &|tasks| written.add(tasks)).unwrap().unwrap();
        assert_eq!(written.values(), [1, 1, 1]);
        end(&regions, threads);
    });
}

/// The pool ends while its worker starts, looks for work, or sleeps.
#[test]
fn the_end() {
    check(None, || {
        let regions = Arc::new(Regions::new(2));
        let threads = workers(&regions, 1);
        end(&regions, threads);
    });
}

/// A worker whose task panics, or a caller: the others end, the message is there, and the next
/// region is whole.
#[test]
fn a_panic() {
    std::panic::set_hook(Box::new(|_| ()));
    check(Some(3), || {
        let regions = Arc::new(Regions::new(2));
        let threads = workers(&regions, 1);
        let result = regions.run(1, 2, 1, &|tasks| assert!(!tasks.contains(&1), "one"));
        assert_eq!(result, Some(Err("one".to_owned())));
        let written = Written::new(2);
        regions.run(1, 2, 1, &|tasks| written.add(tasks)).unwrap().unwrap();
        assert_eq!(written.values(), [1, 1]);
        end(&regions, threads);
    });
    let _ = std::panic::take_hook();
}

/// Two sessions come to one pool: one gets the worker, the other does its work alone, or after
/// it with the worker.
#[test]
fn two_callers() {
    check(Some(2), || {
        let regions = Arc::new(Regions::new(2));
        let threads = workers(&regions, 1);
        let call = |regions: &Regions| {
            let written = Written::new(2);
            match regions.run(1, 2, 1, &|tasks| written.add(tasks)) {
                Some(result) => result.unwrap(),
                None => written.add(0..2),
            }
            assert_eq!(written.values(), [1, 1]);
        };
        let other = {
            let regions = Arc::clone(&regions);
            spawn(move || call(&regions))
        };
        call(&regions);
        other.join().unwrap();
        end(&regions, threads);
    });
}

/// A call of a session, as `Session` and `kernels::Compute` make it: a request that waits is
/// answered; tasks that begin after one are left out; the flag is asked at the end.
fn call(regions: &Regions, handle: &CancelHandle, written: &Written) -> crate::Result<()> {
    let compute = || {
        handle.check()?;
        let flag = handle.flag();
        let task = |tasks| {
            if !flag.is_set() {
                written.add(tasks);
            }
        };
        regions.run(1, 2, 1, &task).unwrap().unwrap();
        if flag.is_set() { Err(Error::cancelled("cancelled")) } else { Ok(()) }
    };
    handle.settle(compute())
}

/// A cancel at any moment before, in and behind a call: either the call says so, once, or all
/// its tasks are done and the next call says so. It is never lost and never counts twice.
#[test]
fn a_cancel_is_answered_once() {
    check(Some(2), || {
        let regions = Arc::new(Regions::new(2));
        let threads = workers(&regions, 1);
        let handle = CancelHandle::default();
        let canceller = {
            let handle = handle.clone();
            spawn(move || handle.cancel())
        };
        let written = Written::new(2);
        let first = call(&regions, &handle, &written);
        canceller.join().unwrap();
        match first {
            Ok(()) => {
                assert_eq!(written.values(), [1, 1]);
                let next = handle.settle(handle.check());
                assert_eq!(next.unwrap_err().kind(), ErrorKind::Cancelled);
            }
            Err(error) => assert_eq!(error.kind(), ErrorKind::Cancelled),
        }
        assert!(!handle.take(), "it counts twice");
        let written = Written::new(2);
        call(&regions, &handle, &written).unwrap();
        assert_eq!(written.values(), [1, 1]);
        end(&regions, threads);
    });
}
