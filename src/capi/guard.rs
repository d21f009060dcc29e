//! The wall that no panic passes: every exported function's body runs inside [`call`].

use std::any::Any;
use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

use super::status::{Failure, QWEN_ERROR_INTERNAL, QWEN_OK, Result, qwen_status, record};

thread_local! {
    /// How many guarded calls this thread is in (a progress callback may call back).
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// Runs the body of an exported function: its failure becomes the thread's last error,
/// its panic becomes QWEN_ERROR_INTERNAL.
pub(super) fn call(body: impl FnOnce() -> Result<qwen_status>) -> qwen_status {
    quiet(body).unwrap_or_else(record)
}

/// As [`call`], for functions that return nothing.
pub(super) fn call_void(body: impl FnOnce()) {
    call(|| {
        body();
        Ok(QWEN_OK)
    });
}

fn quiet<T>(body: impl FnOnce() -> Result<T>) -> Result<T> {
    silence_panics();
    let _ = DEPTH.try_with(|depth| depth.set(depth.get() + 1));
    // Unwind safety: handles in use are poisoned while the panic passes them, so what it
    // left half done is never looked at again.
    let result = panic::catch_unwind(AssertUnwindSafe(body));
    let _ = DEPTH.try_with(|depth| depth.set(depth.get() - 1));
    result.unwrap_or_else(|payload| {
        let text = format!("defect in libqwen35: {}", describe(&*payload));
        // Dropping a payload may itself panic; forgetting it costs a few bytes, once.
        std::mem::forget(payload);
        Err(Failure::new(QWEN_ERROR_INTERNAL, text))
    })
}

/// The text a panic was raised with.
fn describe(payload: &(dyn Any + Send)) -> &str {
    if let Some(text) = payload.downcast_ref::<&str>() {
        text
    } else if let Some(text) = payload.downcast_ref::<String>() {
        text
    } else {
        "panic without a message"
    }
}

/// The standard panic hook writes to standard error, which belongs to the host. Panics of
/// this library's calls and workers are reported as errors instead; any other (of a Rust
/// host that shares this standard library) goes to the hook that was there before.
fn silence_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let previous = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let inside = DEPTH.try_with(Cell::get).unwrap_or(0) > 0;
            let worker = std::thread::current().name().is_some_and(|n| n.starts_with("qwen35"));
            if !inside && !worker {
                previous(info);
            }
        }));
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_a_status() {
        let text = String::from("index 7");
        assert_eq!(call(|| panic!("{text}")), QWEN_ERROR_INTERNAL);
        assert_eq!(call(|| panic!("plain")), QWEN_ERROR_INTERNAL);
        assert_eq!(call(|| panic::panic_any(5)), QWEN_ERROR_INTERNAL);
        assert_eq!(DEPTH.get(), 0);
        call_void(|| panic!("void"));
        assert_eq!(call(|| Ok(QWEN_OK)), QWEN_OK);
    }
}
