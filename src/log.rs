//! What a model tells its host, if the host wants to hear it. Silent by default.

use std::fmt;
use std::sync::Arc;

/// How important a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Something does not work that a caller may need.
    Warning = 1,
    /// What was opened and how.
    Info = 2,
    /// How long each step took.
    Debug = 3,
}

/// Takes messages: UTF-8, one line, no line break at the end. Called on the thread that makes
/// the call that the message is about.
pub type Sink = Arc<dyn Fn(Level, &str) + Send + Sync>;

/// Where messages go.
#[derive(Clone, Default)]
pub struct Log(Option<(Level, Sink)>);

impl Log {
    /// Messages up to `level` go to `sink`.
    pub fn new(level: Level, sink: Sink) -> Self {
        Self(Some((level, sink)))
    }

    /// Gives the message to the host, if it wants this level. The text is made only then.
    pub fn write(&self, level: Level, text: impl FnOnce() -> String) {
        if let Some((most, sink)) = &self.0
            && level <= *most
        {
            sink(level, &text().replace(['\n', '\r'], " "));
        }
    }
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            None => f.write_str("Log(silent)"),
            Some((level, _)) => write!(f, "Log({level:?})"),
        }
    }
}
