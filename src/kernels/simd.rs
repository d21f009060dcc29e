//! One interface over the vector instruction sets.
