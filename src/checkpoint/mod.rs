//! Checkpoint files to checked, memory-mapped views.
