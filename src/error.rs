//! The one error type of the crate.
//!
//! An [`Error`] has a class, which the C ABI maps to a status code, and a message for a
//! person: what failed, on what (file, tensor, offset, argument), what was expected and
//! what was found.

use std::fmt;
use std::path::Path;

/// Shorthand for results of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// The class of an [`Error`]: what a program can decide on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// An argument is null, out of range, not UTF-8, or does not fit the others.
    InvalidArgument,
    /// A call in the wrong order, such as asking for logits before any token was fed.
    InvalidState,
    /// A file could not be opened, mapped or read.
    Io,
    /// A file was read but its contents are damaged or not what they must be.
    Format,
    /// Well-formed, but not something this library runs.
    Unsupported,
    /// The prompt does not fit into the context; nothing of it was consumed.
    ContextOverflow,
    /// The chat template refused the messages or could not be run.
    Template,
    /// Logits or an embedding hold NaN or infinity, or no token is left to choose from.
    Numeric,
    /// Memory could not be reserved.
    OutOfMemory,
    /// The object is in use by another thread.
    Busy,
    /// The call was cancelled; the object stands at its last completed position.
    Cancelled,
    /// The process forked after the worker threads were made.
    Forked,
    /// A defect in this library.
    Internal,
}

/// What went wrong, for a program ([`Error::kind`]) and for a person ([`fmt::Display`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    message: String,
}

impl Error {
    /// An error of class `kind` with a message for a person.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    /// The class.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The message.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The same error with `context` (a file, say) in front of its message.
    pub fn within(self, context: impl fmt::Display) -> Self {
        Self { message: format!("{context}: {}", self.message), ..self }
    }

    /// The operating system refused `action` on `path`.
    pub fn io(path: &Path, action: &str, error: &std::io::Error) -> Self {
        Self::new(ErrorKind::Io, format!("{}: cannot {action}: {error}", shown(path)))
    }

    /// An allocation of `bytes` for `what` failed.
    pub fn out_of_memory(what: &str, bytes: usize) -> Self {
        Self::new(ErrorKind::OutOfMemory, format!("cannot allocate {bytes} bytes for {what}"))
    }
}

/// A path as it can be shown in one line of a message: control characters escaped, bytes that
/// are not UTF-8 replaced.
pub fn shown(path: &Path) -> String {
    let mut out = String::new();
    for c in path.to_string_lossy().chars() {
        if c.is_control() { out.extend(c.escape_default()) } else { out.push(c) }
    }
    out
}

macro_rules! constructors {
    ($($(#[$doc:meta])* $name:ident => $kind:ident;)*) => {
        impl Error {
            $($(#[$doc])* pub fn $name(message: impl Into<String>) -> Self {
                Self::new(ErrorKind::$kind, message)
            })*
        }
    };
}

constructors! {
    /// See [`ErrorKind::InvalidArgument`].
    invalid_argument => InvalidArgument;
    /// See [`ErrorKind::InvalidState`].
    invalid_state => InvalidState;
    /// See [`ErrorKind::Format`].
    format => Format;
    /// See [`ErrorKind::Unsupported`].
    unsupported => Unsupported;
    /// See [`ErrorKind::ContextOverflow`].
    context_overflow => ContextOverflow;
    /// See [`ErrorKind::Template`].
    template => Template;
    /// See [`ErrorKind::Numeric`].
    numeric => Numeric;
    /// See [`ErrorKind::Busy`].
    busy => Busy;
    /// See [`ErrorKind::Cancelled`].
    cancelled => Cancelled;
    /// See [`ErrorKind::Forked`].
    forked => Forked;
    /// See [`ErrorKind::Internal`].
    internal => Internal;
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}
