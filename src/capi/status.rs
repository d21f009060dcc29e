//! Status codes, their names, and the last error of a thread.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char};

use crate::error::{Error, ErrorKind};

/// What a call came to: QWEN_OK, a positive outcome that is no error, or a negative error.
pub type qwen_status = i32;

/// The call did what it is for.
pub const QWEN_OK: qwen_status = 0;
/// The token just produced ends the turn. The session can be fed and continued.
pub const QWEN_END_OF_TURN: qwen_status = 1;
/// The context is full: no token was produced. The session stands as it was.
pub const QWEN_LIMIT_REACHED: qwen_status = 2;
/// qwen_session_cancel() or a progress callback ended the call. The session stands at
/// the position qwen_session_position() reports and can be used on.
pub const QWEN_CANCELLED: qwen_status = 3;
/// The time given to qwen_session_step() is over, and there is more to do.
pub const QWEN_WORKING: qwen_status = 4;

/// An argument is NULL, out of range, not UTF-8, or does not fit the others.
pub const QWEN_ERROR_INVALID_ARGUMENT: qwen_status = -1;
/// A handle is NULL, of another kind, or was freed.
pub const QWEN_ERROR_INVALID_HANDLE: qwen_status = -2;
/// A call in the wrong order, such as asking for a token before any was fed.
pub const QWEN_ERROR_INVALID_STATE: qwen_status = -3;
/// The caller's buffer is too small; `*needed` says how large it must be. Nothing was
/// written to it.
pub const QWEN_ERROR_BUFFER_TOO_SMALL: qwen_status = -4;
/// Another thread (or the callback of this one) is using the handle.
pub const QWEN_ERROR_BUSY: qwen_status = -5;
/// A file could not be opened, mapped or read.
pub const QWEN_ERROR_IO: qwen_status = -6;
/// A file was read, but it is damaged or not what it must be.
pub const QWEN_ERROR_FORMAT: qwen_status = -7;
/// Well-formed, but not something this library (or this CPU) runs.
pub const QWEN_ERROR_UNSUPPORTED: qwen_status = -8;
/// The prompt does not fit into the context. Nothing of it was consumed.
pub const QWEN_ERROR_CONTEXT_OVERFLOW: qwen_status = -9;
/// The chat template refused the messages or could not be run.
pub const QWEN_ERROR_TEMPLATE: qwen_status = -10;
/// Logits or an embedding hold NaN or infinity, or no token is left to choose from.
pub const QWEN_ERROR_NUMERIC: qwen_status = -11;
/// Memory could not be reserved.
pub const QWEN_ERROR_OUT_OF_MEMORY: qwen_status = -12;
/// The process has forked since the model was opened: open it again in the child.
pub const QWEN_ERROR_FORKED: qwen_status = -13;
/// A defect in this library. The handle refuses further use; freeing it still works.
pub const QWEN_ERROR_INTERNAL: qwen_status = -14;

const NAMES: &[(qwen_status, &CStr)] = &[
    (QWEN_OK, c"QWEN_OK"),
    (QWEN_END_OF_TURN, c"QWEN_END_OF_TURN"),
    (QWEN_LIMIT_REACHED, c"QWEN_LIMIT_REACHED"),
    (QWEN_CANCELLED, c"QWEN_CANCELLED"),
    (QWEN_WORKING, c"QWEN_WORKING"),
    (QWEN_ERROR_INVALID_ARGUMENT, c"QWEN_ERROR_INVALID_ARGUMENT"),
    (QWEN_ERROR_INVALID_HANDLE, c"QWEN_ERROR_INVALID_HANDLE"),
    (QWEN_ERROR_INVALID_STATE, c"QWEN_ERROR_INVALID_STATE"),
    (QWEN_ERROR_BUFFER_TOO_SMALL, c"QWEN_ERROR_BUFFER_TOO_SMALL"),
    (QWEN_ERROR_BUSY, c"QWEN_ERROR_BUSY"),
    (QWEN_ERROR_IO, c"QWEN_ERROR_IO"),
    (QWEN_ERROR_FORMAT, c"QWEN_ERROR_FORMAT"),
    (QWEN_ERROR_UNSUPPORTED, c"QWEN_ERROR_UNSUPPORTED"),
    (QWEN_ERROR_CONTEXT_OVERFLOW, c"QWEN_ERROR_CONTEXT_OVERFLOW"),
    (QWEN_ERROR_TEMPLATE, c"QWEN_ERROR_TEMPLATE"),
    (QWEN_ERROR_NUMERIC, c"QWEN_ERROR_NUMERIC"),
    (QWEN_ERROR_OUT_OF_MEMORY, c"QWEN_ERROR_OUT_OF_MEMORY"),
    (QWEN_ERROR_FORKED, c"QWEN_ERROR_FORKED"),
    (QWEN_ERROR_INTERNAL, c"QWEN_ERROR_INTERNAL"),
];

/// A status that is not QWEN_OK, with its message.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) status: qwen_status,
    pub(super) message: String,
}

pub(super) type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    pub(super) fn new(status: qwen_status, message: impl Into<String>) -> Self {
        Self { status, message: message.into() }
    }

    pub(super) fn argument(message: impl Into<String>) -> Self {
        Self::new(QWEN_ERROR_INVALID_ARGUMENT, message)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let status = match error.kind() {
            ErrorKind::InvalidArgument => QWEN_ERROR_INVALID_ARGUMENT,
            ErrorKind::InvalidState => QWEN_ERROR_INVALID_STATE,
            ErrorKind::Io => QWEN_ERROR_IO,
            ErrorKind::Format => QWEN_ERROR_FORMAT,
            ErrorKind::Unsupported => QWEN_ERROR_UNSUPPORTED,
            ErrorKind::ContextOverflow => QWEN_ERROR_CONTEXT_OVERFLOW,
            ErrorKind::Template => QWEN_ERROR_TEMPLATE,
            ErrorKind::Numeric => QWEN_ERROR_NUMERIC,
            ErrorKind::OutOfMemory => QWEN_ERROR_OUT_OF_MEMORY,
            ErrorKind::Busy => QWEN_ERROR_BUSY,
            ErrorKind::Cancelled => QWEN_CANCELLED,
            ErrorKind::Forked => QWEN_ERROR_FORKED,
            ErrorKind::Internal => QWEN_ERROR_INTERNAL,
        };
        Self::new(status, error.message())
    }
}

thread_local! {
    static LAST_ERROR: RefCell<Option<CString>> = const { RefCell::new(None) };
}

/// Keeps the message of an error for qwen_last_error() and gives the status. Positive
/// outcomes leave the last error alone.
pub(super) fn record(failure: Failure) -> qwen_status {
    if failure.status < 0 {
        let text = failure.message.replace('\0', "\\0");
        let text = CString::new(text).unwrap_or_default();
        // Fails only while the thread is being torn down; the status still gets through.
        let _ = LAST_ERROR.try_with(|slot| slot.replace(Some(text)));
    }
    failure.status
}

/// What went wrong in the last call of this thread that failed: what, on what (file,
/// tensor, offset, argument), what was expected and what was found. Empty before the
/// first failure.
///
/// UTF-8, ends with a NUL, never NULL. Borrowed: valid until the next call of this thread
/// that fails, or the end of the thread. Successful calls and positive outcomes leave it.
#[unsafe(no_mangle)]
pub extern "C" fn qwen_last_error() -> *const c_char {
    LAST_ERROR
        .try_with(|slot| slot.borrow().as_ref().map(|text| text.as_ptr()))
        .ok()
        .flatten()
        .unwrap_or(c"".as_ptr())
}

/// The name of a status as it is written in this header, such as "QWEN_ERROR_IO", or
/// "unknown status".
///
/// The text is static.
#[unsafe(no_mangle)]
pub extern "C" fn qwen_status_name(status: qwen_status) -> *const c_char {
    let name = NAMES.iter().find(|(value, _)| *value == status).map(|(_, name)| *name);
    name.unwrap_or(c"unknown status").as_ptr()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn last_error() -> String {
        // SAFETY: qwen_last_error() gives a NUL-terminated string that no failing call
        // of this thread replaces before it is copied here.
        unsafe { CStr::from_ptr(qwen_last_error()) }.to_str().unwrap().to_owned()
    }

    #[test]
    fn every_status_has_its_own_name_and_number() {
        for (i, (status, name)) in NAMES.iter().enumerate() {
            assert!(NAMES[..i].iter().all(|(s, n)| s != status && n != name));
            assert!(name.to_str().unwrap().starts_with("QWEN_"));
            assert_eq!(name.to_str().unwrap().contains("ERROR"), *status < 0);
        }
    }

    #[test]
    fn errors_are_kept_for_this_thread_and_outcomes_are_not() {
        assert_eq!(record(Failure::argument("a\0b")), QWEN_ERROR_INVALID_ARGUMENT);
        assert_eq!(last_error(), "a\\0b");
        assert_eq!(record(Failure::from(Error::cancelled("stop"))), QWEN_CANCELLED);
        assert_eq!(last_error(), "a\\0b");
        std::thread::spawn(|| assert_eq!(last_error(), "")).join().unwrap();
    }
}
