//! Arithmetic for each instruction set; no knowledge of the model.
//!
//! Every operation takes a [`Compute`]: the instruction set, the worker pool and the
//! cancel flag. Values are `f32`, row-major and contiguous unless said otherwise.
//!
//! # The same bits
//! Each result is a function of its own inputs alone: it has the same bits however many
//! tokens are computed together, however many threads take part and however the work is
//! cut, and AVX2 and AVX-512 agree bit for bit (the scalar path, without fused
//! multiply-add, agrees within rounding).
//!
//! # Errors
//! Operations return nothing. When the cancel flag is set, a task panicked or the process
//! was forked, they return early and leave garbage in their outputs; [`Compute::check`]
//! says so afterwards. Lengths that do not fit together are a defect in the caller and
//! panic.

mod attention;
mod buffer;
mod cancel;
mod conv;
mod delta;
mod elementwise;
mod kv;
mod linear;
pub mod math;
mod pace;
pub mod quantized;
pub mod simd;

use std::ops::Range;
use std::sync::OnceLock;

use half::{bf16, f16};

pub use attention::{AttentionShape, attention};
pub use buffer::{Buffer, Parts, Plain};
pub(crate) use buffer::{as_bytes, as_bytes_mut};
pub use cancel::Cancel;
pub use conv::{ConvTaps, causal_conv_silu};
pub use delta::{
    DeltaAfter, DeltaInputs, DeltaRow, DeltaShape, DeltaState, DeltaTarget, DeltaWeights,
    MOST_CHANGES, ahead_of_step, delta_after, delta_rule, delta_step,
};
pub use elementwise::*;
pub use kv::{KvElement, KvPages, KvShape, PAGE_TOKENS};
pub use linear::{
    Ahead, BoundInputs, Job, Mode, SHORT_BLOCK, ShortRows, largest_of_tiles, linear, linear_exact,
    linear_rows, linear_swiglu, linear_tiles, products_revision, upper_bounds,
};
pub use pace::Pace;
pub use quantized::TileFormat;
pub use simd::Isa;

use crate::pool::Pool;
use crate::{Error, Result};
use quantized::dots::IntegerIsa;

/// How products with weights are computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ComputeMode {
    /// In FP32 over the weights, each widened exactly.
    #[default]
    Exact,
    /// In dot products of narrow numbers with FP32 sums, where the kernels have one for the
    /// type of the weights: inputs are rounded to INT8, with a scale for every 32 of a token for
    /// INT8 weights and every 128 for INT4, and to BF16 for BF16 weights where the CPU has
    /// AVX-512 BF16. Logits are computed exactly from weights as stored.
    Fast,
}

/// What computes: one of these lives as long as one forward pass.
pub struct Compute<'a> {
    /// The instruction set.
    pub isa: Isa,
    /// The threads.
    pub pool: &'a Pool,
    /// What finds dot products of integers.
    integers: IntegerIsa,
    /// The flag that stops the computation.
    pub cancel: &'a Cancel,
    /// How products with weights are computed.
    pub mode: ComputeMode,
    /// What lets it stop between tasks and go on later.
    pace: Option<&'a Pace>,
    /// What products of several tokens ask for.
    ahead: Option<&'a Ahead>,
    fault: OnceLock<Error>,
}

impl<'a> Compute<'a> {
    /// Computes exactly with `isa` on `pool` until `cancel` is set.
    pub fn new(isa: Isa, pool: &'a Pool, cancel: &'a Cancel) -> Self {
        Self {
            isa,
            pool,
            integers: IntegerIsa::of(isa),
            cancel,
            mode: ComputeMode::Exact,
            pace: None,
            ahead: None,
            fault: OnceLock::new(),
        }
    }

    /// The same in another mode.
    pub fn with_mode(self, mode: ComputeMode) -> Self {
        Self { mode, ..self }
    }

    /// The same for one call of a unit that `pace` accompanies. Its faults are its own.
    pub fn with_pace<'b>(&'b self, pace: &'b Pace) -> Compute<'b> {
        Compute { pace: Some(pace), ..self.without_pace() }
    }

    /// The same for products behind which `ahead` is read. Its faults are its own.
    pub fn with_ahead<'b>(&'b self, ahead: Option<&'b Ahead>) -> Compute<'b> {
        Compute { ahead, fault: OnceLock::new(), ..*self }
    }

    /// The same without one, with faults of its own.
    fn without_pace(&self) -> Compute<'_> {
        Compute { pace: None, fault: OnceLock::new(), ..*self }
    }

    /// True when the rest of the computation is pointless.
    #[inline]
    pub fn is_over(&self) -> bool {
        self.cancel.is_set() || self.fault.get().is_some()
    }

    /// What the operations so far could not return.
    ///
    /// # Errors
    /// `Cancelled`; `Internal` when a task panicked; `Forked` in a forked process.
    pub fn check(&self) -> Result<()> {
        match self.fault.get() {
            Some(fault) => Err(fault.clone()),
            None if self.cancel.is_set() => Err(Error::cancelled("the computation was cancelled")),
            None => Ok(()),
        }
    }

    /// Calls `task(i)` for every `i` in `0..tasks` on the pool. Tasks that have not
    /// started when the computation is over are left out.
    pub fn run(&self, tasks: usize, task: impl Fn(usize) + Sync) {
        let run = |task: &(dyn Fn(usize) + Sync)| {
            self.note(self.pool.run(tasks, |n| {
                if !self.is_over() {
                    task(n);
                }
            }));
        };
        match self.pace {
            None => run(&task),
            Some(pace) => {
                self.paced(pace, tasks, |region| run(&|n| region.task(n, || task(n))));
            }
        }
    }

    /// As [`Compute::run`], with calls for up to `most` neighbouring tasks.
    pub fn run_ranges(&self, tasks: usize, most: usize, task: impl Fn(Range<usize>) + Sync) {
        match self.pace {
            None => self.note(self.pool.run_ranges(tasks, most, |range| {
                if !self.is_over() {
                    task(range);
                }
            })),
            Some(_) => self.run(tasks, |n| task(n..n + 1)),
        }
    }

    /// Splits `data` into runs of `chunk` elements (the last may be shorter) and calls
    /// `task(index, run)` for each as in [`Compute::run`].
    ///
    /// # Panics
    /// If `chunk` is 0.
    pub fn run_chunks<T: Send>(
        &self,
        data: &mut [T],
        chunk: usize,
        task: impl Fn(usize, &mut [T]) + Sync,
    ) {
        let tasks = data.len().div_ceil(chunk);
        let mut run = |task: &(dyn Fn(usize, &mut [T]) + Sync)| {
            self.note(self.pool.run_chunks(data, chunk, |n, run| {
                if !self.is_over() {
                    task(n, run);
                }
            }));
        };
        match self.pace {
            None => run(&task),
            Some(pace) => self.paced(pace, tasks, |region| {
                run(&|n, part| region.task(n, || task(n, part)));
            }),
        }
    }

    /// Keeps the error of `result`, if it is the first, for [`Compute::check`].
    fn note(&self, result: Result<()>) {
        if let Err(error) = result {
            // Only the first one counts.
            let _ = self.fault.set(error);
        }
    }
}

/// Weights, borrowed: as the checkpoint stores them, or quantized.
#[derive(Clone, Copy, Debug)]
pub enum Weights<'a> {
    /// Brain floating point.
    Bf16(&'a [bf16]),
    /// IEEE half precision.
    F16(&'a [f16]),
    /// IEEE single precision.
    F32(&'a [f32]),
    /// Quantized, in the layout of [`quantized::layout`].
    Tiles(TileFormat, &'a [u8]),
}

impl Weights<'_> {
    /// Whether these are the weights of a matrix `[rows, cols]`.
    fn fit(&self, rows: usize, cols: usize) -> bool {
        let elements = rows.checked_mul(cols);
        match self {
            Self::Bf16(w) => elements == Some(w.len()),
            Self::F16(w) => elements == Some(w.len()),
            Self::F32(w) => elements == Some(w.len()),
            Self::Tiles(format, w) => format.bytes(rows, cols) == Some(w.len()),
        }
    }

    /// How many bytes they are.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Bf16(w) => size_of_val(*w),
            Self::F16(w) => size_of_val(*w),
            Self::F32(w) => size_of_val(*w),
            Self::Tiles(_, w) => w.len(),
        }
    }
}

/// A matrix of weights, `[rows, cols]`.
#[derive(Clone, Copy, Debug)]
pub struct Matrix<'a> {
    /// Row-major, or tiles.
    pub weights: Weights<'a>,
    /// Output width.
    pub rows: usize,
    /// Input width.
    pub cols: usize,
}

impl<'a> Matrix<'a> {
    /// A matrix over `weights`.
    ///
    /// # Panics
    /// If `weights` does not hold as much as such a matrix has.
    pub fn new(weights: Weights<'a>, rows: usize, cols: usize) -> Self {
        assert!(weights.fit(rows, cols), "matrix [{rows}, {cols}]: {} bytes", weights.bytes());
        Self { weights, rows, cols }
    }

    /// The rows `rows` as a matrix.
    ///
    /// # Panics
    /// If there are no such rows, or they are quantized.
    pub fn part(&self, rows: std::ops::Range<usize>) -> Self {
        assert!(rows.start <= rows.end && rows.end <= self.rows, "rows {rows:?} of {}", self.rows);
        let range = rows.start * self.cols..rows.end * self.cols;
        let weights = match self.weights {
            Weights::Bf16(w) => Weights::Bf16(&w[range]),
            Weights::F16(w) => Weights::F16(&w[range]),
            Weights::F32(w) => Weights::F32(&w[range]),
            Weights::Tiles(..) => panic!("a part of quantized weights"),
        };
        Self { weights, rows: rows.len(), cols: self.cols }
    }

    /// Writes row `row` as `f32` (an embedding lookup); `out` has `cols` elements.
    ///
    /// # Panics
    /// If there is no such row or `out` has another length.
    pub fn widen_row(&self, row: usize, out: &mut [f32]) {
        assert!(row < self.rows && out.len() == self.cols, "row {row} of {}", self.rows);
        let range = row * self.cols..(row + 1) * self.cols;
        match self.weights {
            Weights::Tiles(format, w) => format.widen_row(w, self.cols, row, out),
            Weights::Bf16(w) => {
                out.iter_mut().zip(&w[range]).for_each(|(o, w)| *o = w.to_f32());
            }
            Weights::F16(w) => {
                out.iter_mut().zip(&w[range]).for_each(|(o, w)| *o = w.to_f32_const());
            }
            Weights::F32(w) => out.copy_from_slice(&w[range]),
        }
    }
}

#[cfg(test)]
pub(crate) mod testing;
