//! Quantized weights: their layout, how they are made, and products with them.
//!
//! | part | what it holds |
//! |---|---|
//! | [`layout`] | where each number lies; the definition of what a matrix's bytes mean |
//! | `quantize` | from stored weights to the layout, scales for the least squared error |
//! | [`split`](fn@split) | from one plane to two |
//! | `inputs` | what they are multiplied with, rounded to INT8 |
//! | `dots` | integer dot products for each instruction set |
//!
//! The products themselves are in [`linear`](super::linear).

pub(crate) mod dots;
pub(crate) mod inputs;
pub mod layout;
mod planes;
mod quantize;
#[cfg(test)]
mod tests;

pub use layout::{GROUP, TILE_ROWS, TileFormat};
pub use planes::split;
pub use quantize::{REVISION, quantize};
