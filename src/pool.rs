//! Worker threads.
