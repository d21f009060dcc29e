use std::collections::HashSet;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Barrier, Mutex};
use std::time::{Duration, Instant};

use super::*;
use crate::ErrorKind;

/// Every task runs exactly once, for many shapes of regions in quick succession.
#[test]
fn each_task_runs_once() {
    for threads in [1, 2, 3, 7] {
        let pool = Pool::new(threads).unwrap();
        assert_eq!(pool.threads(), threads);
        for round in 0..3000 {
            let tasks = round % 37;
            let mut counts = vec![0u32; tasks];
            pool.run_parts(&mut counts, |n, count| *count += n as u32 + 1).unwrap();
            assert!(counts.iter().enumerate().all(|(n, &count)| count == n as u32 + 1));
        }
    }
}

/// So it does where a call may be for several, of which no thread takes more than half of what a
/// share has left.
#[test]
fn ranges_of_tasks_run_once() {
    for threads in [1, 2, 3, 7] {
        let pool = Pool::new(threads).unwrap();
        for round in 0..3000 {
            let (tasks, most) = (round % 37, round % 11);
            let counts: Vec<_> = (0..tasks).map(|_| AtomicU32::new(0)).collect();
            pool.run_ranges(tasks, most, |range| {
                assert!(!range.is_empty() && range.len() <= most.max(1));
                counts[range].iter().for_each(|count| _ = count.fetch_add(1, Ordering::Relaxed));
            })
            .unwrap();
            assert!(counts.iter().all(|count| count.load(Ordering::Relaxed) == 1));
        }
    }
}

/// Sleeping and waking between regions loses nobody.
#[test]
fn workers_sleep_and_wake() {
    let pool = Pool::new(3).unwrap();
    for round in 0..60 {
        std::thread::sleep(Duration::from_micros(round * 37 % 500));
        let mut data = vec![0usize; 1000];
        pool.run_chunks(&mut data, 17, |n, run| run.fill(n)).unwrap();
        assert!(data.iter().enumerate().all(|(i, &n)| n == i / 17));
        // A task long enough that the caller sleeps at the end of the region.
        pool.run(3, |n| std::thread::sleep(Duration::from_micros(n as u64 * 100))).unwrap();
    }
}

#[test]
fn workers_take_part() {
    let pool = Pool::new(3).unwrap();
    let barrier = Barrier::new(3);
    let names = Mutex::new(HashSet::new());
    pool.run(3, |_| {
        barrier.wait();
        names.lock().unwrap().insert(std::thread::current().name().map(str::to_owned));
    })
    .unwrap();
    let names = names.into_inner().unwrap();
    assert!(names.contains(&Some("qwen35-1".into())) && names.contains(&Some("qwen35-2".into())));
}

/// Many threads share one pool; whoever finds it taken works alone.
#[test]
fn sessions_do_not_fight() {
    let pool = Pool::new(3).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for round in 0..500 {
                    let mut data = vec![0usize; 100 + round];
                    pool.run_chunks(&mut data, 7, |n, run| {
                        run.fill(n);
                        // A region inside a region is done by its caller alone.
                        pool.run(2, |_| ()).unwrap();
                    })
                    .unwrap();
                    assert!(data.iter().enumerate().all(|(i, &n)| n == i / 7));
                }
            });
        }
    });
}

#[test]
fn a_panic_is_an_error_and_the_pool_goes_on() {
    for threads in [1, 4] {
        let pool = Pool::new(threads).unwrap();
        for _ in 0..20 {
            let error = pool.run(50, |n| assert!(n != 30, "thirty")).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Internal);
            assert!(error.message().contains("thirty"), "{error}");
            let mut data = [0; 64];
            pool.run_parts(&mut data, |n, value| *value = n).unwrap();
            assert_eq!(data[63], 63);
        }
    }
}

#[test]
fn idle_workers_sleep() {
    let pool = Pool::new(4).unwrap();
    pool.run(100, |_| ()).unwrap();
    // Within microseconds, but on a busy machine they have to get there first.
    let deadline = Instant::now() + Duration::from_secs(20);
    while pool.shared.sleepers() < 3 {
        assert!(Instant::now() < deadline, "workers spin");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn too_many_threads_are_refused() {
    let error = Pool::new(MAX_THREADS + 1).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
}

/// Where the system starts only some threads, those compute, and all is done.
#[test]
fn fewer_threads_than_asked_for() {
    for started in 0..4 {
        let pool = Pool::start(5, |n, shared| match n <= started {
            true => std::thread::Builder::new().spawn(move || shared.work(n)),
            false => Err(std::io::Error::from_raw_os_error(libc::EAGAIN)),
        });
        let pool = pool.unwrap();
        assert_eq!(pool.threads(), started + 1);
        let shortage = pool.shortage().unwrap();
        assert!(shortage.starts_with(&format!("{} of 5 threads", started + 1)), "{shortage}");
        for tasks in 0..40 {
            let mut counts = vec![0u32; tasks];
            pool.run_parts(&mut counts, |_, count| *count += 1).unwrap();
            assert!(counts.iter().all(|&count| count == 1));
        }
    }
    assert!(Pool::new(3).unwrap().shortage().is_none());
}

/// In a forked child a region is refused at once, and dropping the pool does not hang.
#[test]
fn a_forked_child_is_told() {
    let pool = Pool::new(2).unwrap();
    pool.run(10, |_| ()).unwrap();
    // SAFETY: the child calls nothing that needs another thread and ends by `_exit`.
    let child = unsafe { libc::fork() };
    assert!(child >= 0);
    if child == 0 {
        let refused = pool.run(10, |_| ()).is_err_and(|e| e.kind() == ErrorKind::Forked);
        drop(pool);
        // SAFETY: ends the child without running the test harness's exit code.
        unsafe { libc::_exit(i32::from(!refused)) };
    }
    let mut status = 0;
    // SAFETY: waits for the child made above.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0, "status {status}");
    pool.run(10, |_| ()).unwrap();
}
