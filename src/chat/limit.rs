//! A bound on the processor time of a template.
//!
//! The engine's fuel counts what a template makes and writes, but hardly what it looks at:
//! comparing two long texts costs as much as adding two numbers, and so does asking for the
//! last character of one. A template that does little else would run for an hour on the fuel of
//! a short message. The bound is hundreds of times what conversations take, so that no honest
//! template meets it on the slowest machine; and it is the thread's own time, so that other
//! programs, or a pause of the process, do not count.
#![allow(unsafe_code)]

use std::cell::Cell;
use std::time::Duration;

use minijinja::{Error, ErrorKind, Value};

/// The name of the filter that passes its value on, or ends the template.
pub(super) const PACED: &str = "__paced";

/// For any request.
const BASE: Duration = Duration::from_millis(500);
/// For each byte of the request.
const PER_BYTE: Duration = Duration::from_micros(10);
/// The clock is looked at once in so many checks.
const EVERY: u32 = 16;

thread_local! {
    /// When the template that this thread runs must end, in the thread's time.
    static END: Cell<Option<Duration>> = const { Cell::new(None) };
    static CHECKS: Cell<u32> = const { Cell::new(0) };
}

/// Runs `f`, during which [`check`] fails after the time that a request of `bytes` bytes may
/// take.
pub(super) fn within<R>(bytes: usize, f: impl FnOnce() -> R) -> R {
    struct Reset(Option<Duration>);
    impl Drop for Reset {
        fn drop(&mut self) {
            END.set(self.0);
        }
    }
    let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
    let end = thread_time() + BASE + PER_BYTE * bytes;
    let _reset = Reset(END.replace(Some(end)));
    f()
}

/// Whether there is time left.
pub(super) fn check() -> Result<(), Error> {
    let checks = CHECKS.get().wrapping_add(1);
    CHECKS.set(checks);
    if checks.is_multiple_of(EVERY) && END.get().is_some_and(|end| thread_time() > end) {
        return Err(Error::from(ErrorKind::OutOfFuel));
    }
    Ok(())
}

/// The filter [`PACED`].
pub(super) fn paced(value: Value) -> Result<Value, Error> {
    check().map(|()| value)
}

/// The processor time that this thread has used.
fn thread_time() -> Duration {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes one timespec to memory that is valid for it. Should a system lack
    // the clock, the zeros stay, and only fuel bounds the template.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut now) };
    Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs() as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_runs_out_within_the_call_only() {
        let spin = || (0..100_000_000u64).find_map(|_| check().err());
        assert!(within(0, spin).is_some(), "the time is over");
        END.with(|end| assert_eq!(end.get(), None));
        assert!((0..1000).all(|_| check().is_ok()));
    }
}
