//! Arithmetic for each instruction set; no knowledge of the model.

pub mod simd;
