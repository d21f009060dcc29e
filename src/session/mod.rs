//! A sequence being continued: feed tokens, take the next one.
