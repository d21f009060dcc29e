//! Steps that touch each value once: norms, gates, rotary positions.
//!
//! Each has a per-row function, generic over the instruction set, and an operation over
//! all tokens that spreads rows over the pool when there is enough to do.

use super::simd::{LANES, Simd};
use super::{Compute, math};
use crate::dispatch;
use crate::pool::SharedMut;

/// Elements that a task should at least touch: less is done sooner by the caller alone
/// than it takes a worker to begin.
const TASK_ELEMENTS: usize = 16 << 10;

/// Calls `f(first row, rows)` for runs of rows of `width` elements that cover `0..rows`.
fn by_rows(c: &Compute, rows: usize, width: usize, f: impl Fn(usize, usize) + Sync) {
    let run = TASK_ELEMENTS.div_ceil(width.max(1)).max(1);
    if rows <= run {
        c.whole(|| f(0, rows));
    } else {
        c.run(rows.div_ceil(run), |n| f(n * run, run.min(rows - n * run)));
    }
}

/// The sum of squares: lane j sums the elements j, j + 16, ... in order, then the lanes
/// are added by the tree of [`Simd::sum`].
#[inline(always)]
pub fn sum_of_squares<S: Simd>(s: S, x: &[f32]) -> f32 {
    let mut sum = s.splat(0.0);
    for part in x.chunks(LANES) {
        let v = s.load_part(part);
        sum = s.mul_add(v, v, sum);
    }
    s.sum(sum)
}

/// `out[i] = x[i] / sqrt(mean(x^2) + eps) * weight[i]`; all three of one length.
#[inline(always)]
pub fn rms_norm_row<S: Simd>(s: S, x: &[f32], weight: &[f32], eps: f32, out: &mut [f32]) {
    let scale = s.splat(1.0 / (sum_of_squares(s, x) / x.len() as f32 + eps).sqrt());
    for ((x, w), out) in x.chunks(LANES).zip(weight.chunks(LANES)).zip(out.chunks_mut(LANES)) {
        let y = s.mul(s.mul(s.load_part(x), scale), s.load_part(w));
        s.store_part(out, y);
    }
}

/// RMS norm of each row: `x` and `out` are `[tokens, width]`, `weight` is `[width]` and
/// multiplied as it is (a model that stores `w - 1` adds the one before).
pub fn rms_norm(c: &Compute, x: &[f32], weight: &[f32], eps: f32, out: &mut [f32]) {
    let width = weight.len();
    assert!(width > 0 && x.len().is_multiple_of(width) && x.len() == out.len(), "rms_norm");
    let shared = SharedMut::new(out);
    by_rows(c, x.len() / width, width, |first, rows| {
        let (start, len) = (first * width, rows * width);
        let out = part(&shared, start, len);
        dispatch!(c.isa, s => {
            for (x, out) in x[start..start + len].chunks(width).zip(out.chunks_mut(width)) {
                rms_norm_row(s, x, weight, eps, out);
            }
        });
    });
}

/// `o <- o / sqrt(mean(o^2) + eps) * weight * silu(z)` for each row of `weight.len()`
/// elements: `o` and `z` are `[tokens, heads, dim]`, `weight` is `[dim]`.
pub fn gated_rms_norm(c: &Compute, o: &mut [f32], z: &[f32], weight: &[f32], eps: f32) {
    let width = weight.len();
    assert!(width > 0 && o.len().is_multiple_of(width) && o.len() == z.len(), "gated_rms_norm");
    let rows = o.len() / width;
    let shared = SharedMut::new(o);
    by_rows(c, rows, width, |first, rows| {
        let (start, len) = (first * width, rows * width);
        let o = part(&shared, start, len);
        dispatch!(c.isa, s => {
            for (o, z) in o.chunks_mut(width).zip(z[start..start + len].chunks(width)) {
                gated_rms_norm_row(s, o, z, weight, eps);
            }
        });
    });
}

/// [`gated_rms_norm`] of one row.
#[inline(always)]
pub(super) fn gated_rms_norm_row<S: Simd>(
    s: S,
    o: &mut [f32],
    z: &[f32],
    weight: &[f32],
    eps: f32,
) {
    let scale = s.splat(1.0 / (sum_of_squares(s, o) / o.len() as f32 + eps).sqrt());
    for ((o, z), w) in o.chunks_mut(LANES).zip(z.chunks(LANES)).zip(weight.chunks(LANES)) {
        let y = s.mul(s.mul(s.load_part(o), scale), s.load_part(w));
        s.store_part(o, s.mul(y, math::silu(s, s.load_part(z))));
    }
}

/// `o <- o * sigmoid(gate)`: `o` is `[tokens, heads, dim]`; `gated` is
/// `[tokens, heads, 2 * dim]`, of which the second half of each head is the gate (the
/// first is its query).
pub fn sigmoid_gate(c: &Compute, o: &mut [f32], gated: &[f32], dim: usize) {
    assert!(dim > 0 && o.len().is_multiple_of(dim) && gated.len() == 2 * o.len(), "sigmoid_gate");
    let rows = o.len() / dim;
    let shared = SharedMut::new(o);
    by_rows(c, rows, dim, |first, rows| {
        let o = part(&shared, first * dim, rows * dim);
        let gated = &gated[2 * first * dim..2 * (first + rows) * dim];
        dispatch!(c.isa, s => {
            for (o, gated) in o.chunks_mut(dim).zip(gated.chunks(2 * dim)) {
                for (o, gate) in o.chunks_mut(LANES).zip(gated[dim..].chunks(LANES)) {
                    let y = s.mul(s.load_part(o), math::sigmoid(s, s.load_part(gate)));
                    s.store_part(o, y);
                }
            }
        });
    });
}

/// Log decay and write strength of the gated delta rule:
/// `g = -exp(a_log) * softplus(a + dt_bias)`, `beta = sigmoid(b)`; `a`, `b`, `g` and `beta`
/// are `[tokens, heads]`, `decay = -exp(a_log)` and `dt_bias` are `[heads]`.
pub fn delta_gates(
    c: &Compute,
    (a, b): (&[f32], &[f32]),
    (decay, dt_bias): (&[f32], &[f32]),
    g: &mut [f32],
    beta: &mut [f32],
) {
    let heads = decay.len();
    assert!(heads > 0 && a.len().is_multiple_of(heads) && dt_bias.len() == heads, "delta_gates");
    assert!(b.len() == a.len() && g.len() == a.len() && beta.len() == a.len(), "delta_gates");
    if c.is_stopped() {
        return;
    }
    dispatch!(c.isa, s => {
        for (a, g) in a.chunks(heads).zip(g.chunks_mut(heads)) {
            let parts = a.chunks(LANES).zip(dt_bias.chunks(LANES)).zip(decay.chunks(LANES));
            for (((a, bias), decay), g) in parts.zip(g.chunks_mut(LANES)) {
                let step = math::softplus(s, s.add(s.load_part(a), s.load_part(bias)));
                s.store_part(g, s.mul(s.load_part(decay), step));
            }
        }
        for (b, beta) in b.chunks(LANES).zip(beta.chunks_mut(LANES)) {
            s.store_part(beta, math::sigmoid(s, s.load_part(b)));
        }
    });
}

/// The rotation speeds of rotary positions, as Transformers computes them in `f32`:
/// pair `i` of `pairs = rotary_dim / 2` turns by `theta^(-2i / rotary_dim)` per position.
pub fn rope_frequencies(theta: f64, rotary_dim: usize) -> Vec<f32> {
    (0..rotary_dim / 2)
        .map(|i| {
            let exponent = (2 * i) as f32 / rotary_dim as f32;
            1.0 / (f64::from(theta as f32).powf(f64::from(exponent)) as f32)
        })
        .collect()
}

/// Cosines and sines of one position: `cos` and `sin` have the length of `frequencies`.
///
/// The angle is the `f32` product of position and frequency, as in Transformers; its
/// cosine and sine are computed in `f64` and rounded.
pub fn rope_angles(frequencies: &[f32], position: usize, cos: &mut [f32], sin: &mut [f32]) {
    assert!(cos.len() == frequencies.len() && sin.len() == frequencies.len(), "rope_angles");
    for ((f, cos), sin) in frequencies.iter().zip(cos).zip(sin) {
        let (s, c) = f64::from(position as f32 * f).sin_cos();
        (*cos, *sin) = (c as f32, s as f32);
    }
}

/// Rotates the first `2 * cos.len()` elements of a head: pair `(i, i + cos.len())` becomes
/// `(a cos_i - b sin_i, b cos_i + a sin_i)`.
#[inline(always)]
pub fn rope_row<S: Simd>(s: S, row: &mut [f32], cos: &[f32], sin: &[f32]) {
    let (first, rest) = row.split_at_mut(cos.len());
    let second = &mut rest[..cos.len()];
    let halves = first.chunks_mut(LANES).zip(second.chunks_mut(LANES));
    for ((a, b), (cos, sin)) in halves.zip(cos.chunks(LANES).zip(sin.chunks(LANES))) {
        let (x, y, cos, sin) = (s.load_part(a), s.load_part(b), s.load_part(cos), s.load_part(sin));
        let minus = s.sub(s.splat(0.0), sin);
        s.store_part(a, s.mul_add(x, cos, s.mul(y, minus)));
        s.store_part(b, s.mul_add(y, cos, s.mul(x, sin)));
    }
}

/// RMS norm of each head and rotation: reads head `h` of token `t` at
/// `x[(t * heads + h) * stride..][..dim]` with `dim = weight.len()` (a stride of `2 * dim`
/// skips the gates between queries) and writes `out[tokens, heads, dim]`. `cos` and `sin`
/// are `[tokens, pairs]` with `2 * pairs <= dim`; the elements beyond pass through.
#[allow(clippy::too_many_arguments)]
pub fn norm_rope(
    c: &Compute,
    x: &[f32],
    heads: usize,
    stride: usize,
    weight: &[f32],
    eps: f32,
    (cos, sin): (&[f32], &[f32]),
    out: &mut [f32],
) {
    let dim = weight.len();
    assert!(
        heads > 0 && 0 < dim && dim <= stride && x.len().is_multiple_of(heads * stride),
        "norm_rope"
    );
    let tokens = x.len() / (heads * stride);
    assert!(out.len() == tokens * heads * dim, "norm_rope: output");
    if tokens == 0 {
        return;
    }
    let pairs = cos.len() / tokens;
    assert!(cos.len() == tokens * pairs && sin.len() == cos.len() && 2 * pairs <= dim, "rope");
    let shared = SharedMut::new(out);
    by_rows(c, tokens, heads * dim, |first, count| {
        let out = part(&shared, first * heads * dim, count * heads * dim);
        let x = &x[first * heads * stride..(first + count) * heads * stride];
        dispatch!(c.isa, s => {
            for (n, (x, out)) in x.chunks(stride).zip(out.chunks_mut(dim)).enumerate() {
                let at = (first + n / heads) * pairs;
                rms_norm_row(s, &x[..dim], weight, eps, out);
                rope_row(s, out, &cos[at..at + pairs], &sin[at..at + pairs]);
            }
        });
    });
}

/// The part of a row-wise operation's output that belongs to one task.
#[allow(unsafe_code, clippy::mut_from_ref)]
fn part<'a, T>(shared: &SharedMut<'a, T>, start: usize, len: usize) -> &'a mut [T] {
    // SAFETY: only called from `by_rows` tasks, with the rows of the task, which are
    // disjoint and given to one call each.
    unsafe { shared.part(start, len) }
}

#[cfg(test)]
mod tests;
