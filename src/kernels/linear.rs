//! Products with weight matrices, in `f32` arithmetic over the weights as stored.
//!
//! A dot product has one definition, whatever computes it: sixteen lanes, lane `j` adding
//! the products of the elements `j, j + 16, ...` in order, the last sixteen padded with
//! zeros, and then the lanes by the tree of [`Simd::sum`].
#![allow(unsafe_code)]

use half::{bf16, f16};

use super::simd::{LANES, Simd};
use super::{Compute, Matrix, Weights, math};
use crate::dispatch;
use crate::pool::SharedMut;

/// What becomes of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// It replaces the output.
    Store,
    /// It is added to the output.
    Accumulate,
}

/// One product of a [`linear`] call.
pub struct Job<'a> {
    /// The weights, `[rows, cols]`.
    pub matrix: Matrix<'a>,
    /// The result, `[tokens, rows]`.
    pub out: &'a mut [f32],
    /// Whether it is stored or added.
    pub mode: Mode,
}

impl<'a> Job<'a> {
    /// A product that replaces `out`.
    pub fn store(matrix: Matrix<'a>, out: &'a mut [f32]) -> Self {
        Self { matrix, out, mode: Mode::Store }
    }

    /// A product that is added to `out`.
    pub fn accumulate(matrix: Matrix<'a>, out: &'a mut [f32]) -> Self {
        Self { matrix, out, mode: Mode::Accumulate }
    }
}

/// An element type of weights.
trait Element: Copy + Send + Sync {
    /// # Safety
    /// `p` points to 16 readable elements.
    unsafe fn load<S: Simd>(s: S, p: *const Self) -> S::F32;
    const ZERO: Self;
}

impl Element for f32 {
    #[inline(always)]
    unsafe fn load<S: Simd>(s: S, p: *const Self) -> S::F32 {
        // SAFETY: by the contract.
        unsafe { s.load_ptr(p) }
    }
    const ZERO: Self = 0.0;
}
impl Element for bf16 {
    #[inline(always)]
    unsafe fn load<S: Simd>(s: S, p: *const Self) -> S::F32 {
        // SAFETY: by the contract.
        unsafe { s.load_bf16_ptr(p) }
    }
    const ZERO: Self = bf16::ZERO;
}
impl Element for f16 {
    #[inline(always)]
    unsafe fn load<S: Simd>(s: S, p: *const Self) -> S::F32 {
        // SAFETY: by the contract.
        unsafe { s.load_f16_ptr(p) }
    }
    const ZERO: Self = f16::ZERO;
}

/// Rows of one task.
const TASK_ROWS: usize = 32;

/// `out[t][n] = sum over k of x[t][k] * w[n][k]` for every job, all of which share `x`
/// (`[tokens, cols]`), in one parallel region.
pub fn linear(c: &Compute, x: &[f32], tokens: usize, jobs: &mut [Job]) {
    let mut total = 0;
    for job in jobs.iter() {
        check(x, tokens, &job.matrix, job.out);
        total += job.matrix.rows.div_ceil(TASK_ROWS);
    }
    let mut parts = Vec::with_capacity(jobs.len());
    for job in jobs.iter_mut() {
        parts.push((job.matrix, job.mode, SharedMut::new(job.out)));
    }
    c.run(total, |mut task| {
        for (matrix, mode, out) in &parts {
            let tasks = matrix.rows.div_ceil(TASK_ROWS);
            if task < tasks {
                let first = task * TASK_ROWS;
                let rows = TASK_ROWS.min(matrix.rows - first);
                for n in first..first + rows {
                    for t in 0..tokens {
                        let x = &x[t * matrix.cols..(t + 1) * matrix.cols];
                        let y = dot_row(c, x, matrix, n);
                        // SAFETY: element (t, n) belongs to this task alone.
                        let out = unsafe { out.part(t * matrix.rows + n, 1) };
                        match mode {
                            Mode::Store => out[0] = y,
                            Mode::Accumulate => out[0] += y,
                        }
                    }
                }
                return;
            }
            task -= tasks;
        }
    });
}

/// `out[t][n] = silu(gate x_t)[n] * (up x_t)[n]`: `x` is `[tokens, cols]`, `out` is
/// `[tokens, rows]`.
pub fn linear_swiglu(
    c: &Compute,
    x: &[f32],
    tokens: usize,
    gate: Matrix,
    up: Matrix,
    out: &mut [f32],
) {
    check(x, tokens, &gate, out);
    check(x, tokens, &up, out);
    let rows = gate.rows;
    let out = SharedMut::new(out);
    c.run(rows.div_ceil(TASK_ROWS), |task| {
        for n in task * TASK_ROWS..rows.min((task + 1) * TASK_ROWS) {
            for t in 0..tokens {
                let x = &x[t * gate.cols..(t + 1) * gate.cols];
                let (g, u) = (dot_row(c, x, &gate, n), dot_row(c, x, &up, n));
                // SAFETY: element (t, n) belongs to this task alone.
                let out = unsafe { out.part(t * rows + n, 1) };
                dispatch!(c.isa, s => {
                    let y = s.mul(math::silu(s, s.splat(g)), s.splat(u));
                    s.store_part(out, y);
                });
            }
        }
    });
}

fn check(x: &[f32], tokens: usize, matrix: &Matrix, out: &[f32]) {
    assert_eq!(x.len(), tokens * matrix.cols, "linear: input [{tokens}, {}]", matrix.cols);
    assert_eq!(out.len(), tokens * matrix.rows, "linear: output [{tokens}, {}]", matrix.rows);
    assert_eq!(matrix.weights.len(), matrix.rows * matrix.cols, "linear: weights");
}

fn dot_row(c: &Compute, x: &[f32], matrix: &Matrix, n: usize) -> f32 {
    let range = n * matrix.cols..(n + 1) * matrix.cols;
    match matrix.weights {
        Weights::Bf16(w) => dispatch!(c.isa, s => dot(s, x, &w[range])),
        Weights::F16(w) => dispatch!(c.isa, s => dot(s, x, &w[range])),
        Weights::F32(w) => dispatch!(c.isa, s => dot(s, x, &w[range])),
    }
}

#[inline(always)]
fn dot<S: Simd, E: Element>(s: S, x: &[f32], w: &[E]) -> f32 {
    let mut sum = s.splat(0.0);
    let whole = x.len() / LANES * LANES;
    for k in (0..whole).step_by(LANES) {
        // SAFETY: k + 16 <= whole <= w.len().
        let w = unsafe { E::load(s, w.as_ptr().add(k)) };
        sum = s.mul_add(s.load(&x[k..]), w, sum);
    }
    if whole < x.len() {
        let mut last = [E::ZERO; LANES];
        last[..x.len() - whole].copy_from_slice(&w[whole..]);
        // SAFETY: a whole array.
        let w = unsafe { E::load(s, last.as_ptr()) };
        sum = s.mul_add(s.load_part(&x[whole..]), w, sum);
    }
    s.sum(sum)
}
