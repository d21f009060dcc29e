//! The gated delta rule: a matrix per head that is decayed, corrected and read at each token.
//!
//! For every value head, with its state `S` (`[key_dim, value_dim]`), the key `k` and query
//! `q` of its key head (normalised), value `v`, decay `a = exp(g)` and rate `b`:
//!
//! ```text
//! d = b (v - a S^T k)        what the state does not know yet about v
//! o = a S^T q + d (k . q)    the same as reading the new state with q
//! S = a S + k d^T
//! ```
//!
//! Columns of `S` are independent, so a block of 32 columns stays in the first level cache
//! for many tokens. Each pass over it applies the update of one token and reads for the
//! next. The operations on an element are always the same, in the same order, so the bits
//! do not depend on how tokens are grouped into calls, nor on threads.
#![allow(unsafe_code)]

mod change;
mod inputs;
mod share;
mod step;

use std::cell::RefCell;
use std::ops::Range;
use std::ptr::null;

use super::buffer::{Buffer, Scratch, with_scratch};
use super::simd::{LANES, Simd, fence, prefetch, prefetch_far};
use super::{Compute, math};
use crate::dispatch;
use crate::pool::SharedMut;
use change::Change;
pub use change::{DeltaState, MOST_CHANGES, settle};
pub use inputs::DeltaInputs;
pub use share::ahead_of_step;
pub use step::{DeltaRow, DeltaTarget, DeltaWeights, delta_step};

/// Added to the sum of squares when keys and queries are normalised.
const NORM_EPSILON: f32 = 1e-6;
/// Vectors of a column block.
const VECTORS: usize = 2;
/// Columns of a block: 16 KiB of state at 128 rows.
const BLOCK: usize = VECTORS * LANES;
/// Tokens prepared at a time, and computed between two looks at the cancel flag.
const CHUNK: usize = 64;
/// Up to here a call is bound by memory.
const FEW_TOKENS: usize = 8;
/// Bytes of state in one layer from which on the new state is written past the caches.
const STREAM_BYTES: usize = 512 << 10;

thread_local!(static SCRATCH: Scratch = const { RefCell::new(Buffer::empty()) });

/// Heads and their sizes. Value head `h` uses key head `h / (value_heads / key_heads)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeltaShape {
    /// Heads of keys and queries.
    pub key_heads: usize,
    /// Heads of values; a multiple of `key_heads`.
    pub value_heads: usize,
    /// Elements of a key or query; rows of a state.
    pub key_dim: usize,
    /// Elements of a value; columns of a state.
    pub value_dim: usize,
}

impl DeltaShape {
    /// Elements of a token in `qkv`: queries, keys, values.
    pub fn qkv_width(&self) -> usize {
        2 * self.key_heads * self.key_dim + self.value_heads * self.value_dim
    }
    /// Elements of the states of all heads.
    pub fn state_len(&self) -> usize {
        self.value_heads * self.key_dim * self.value_dim
    }
    fn group(&self) -> usize {
        self.value_heads / self.key_heads
    }
    fn check(&self) {
        assert!(self.key_heads > 0 && self.value_heads.is_multiple_of(self.key_heads));
    }
}

/// Runs the rule over `tokens` tokens.
///
/// - `inputs`: queries and keys are normalised here (`x / sqrt(sum x^2 + 1e-6)`), queries also
///   divided by `sqrt(key_dim)`.
/// - `g`, `beta`: `[tokens, value_heads]`, logarithm of the decay (at most 0) and rate.
/// - `before`, `state_out`: the states before and after, `[value_heads, key_dim, value_dim]`.
/// - `out`: `[tokens, value_heads, value_dim]`.
///
/// Short of scratch memory, it fails with `OutOfMemory`.
///
/// # Panics
/// When a slice does not have the length said above.
#[allow(clippy::too_many_arguments)]
pub fn delta_rule(
    c: &Compute,
    shape: DeltaShape,
    tokens: usize,
    inputs: DeltaInputs,
    g: &[f32],
    beta: &[f32],
    before: DeltaState,
    state_out: &mut [f32],
    out: &mut [f32],
) {
    shape.check();
    before.check(shape);
    inputs.check(shape, tokens);
    assert_eq!(g.len(), tokens * shape.value_heads);
    assert_eq!(beta.len(), tokens * shape.value_heads);
    assert_eq!(state_out.len(), shape.state_len());
    assert_eq!(out.len(), tokens * shape.value_heads * shape.value_dim);
    if tokens == 0 {
        return settle(c.isa, shape, before, state_out);
    }
    let stream = streams(shape, before.base, state_out.as_ptr());
    let call = Call {
        shape,
        tokens,
        inputs,
        g,
        beta,
        before,
        state_out: SharedMut::new(state_out),
        out: SharedMut::new(out),
        c,
        stream,
    };
    // The unit is a key head with its value heads; when those do not spread evenly over the
    // threads, a part of their columns. With few tokens most of the time goes into fetching
    // states: then a task is a run of units, so that the next state is known.
    let blocks = shape.value_dim.div_ceil(BLOCK);
    let threads = c.pool.threads();
    let parts = if shape.key_heads.is_multiple_of(threads) || shape.key_heads >= 4 * threads {
        1
    } else {
        blocks.min(threads)
    };
    let units = shape.key_heads * parts;
    let tasks = if tokens <= FEW_TOKENS { units.min(2 * threads) } else { units };
    c.run(tasks, |task| {
        for unit in task * units / tasks..(task + 1) * units / tasks {
            let (head, part) = (unit / parts, unit % parts);
            let range = part * blocks / parts..(part + 1) * blocks / parts;
            c.note(with_scratch(&SCRATCH, call.scratch_len(range.len()), |scratch| {
                dispatch!(c.isa, s => call.key_head(s, head, range, scratch));
            }));
        }
        if call.stream {
            fence();
        }
    });
}

/// Whether the states of a layer after a pass are written past the caches: what is larger than
/// a share of these will not be in them when it is needed again, a token later.
fn streams(shape: DeltaShape, before: &[f32], after: *const f32) -> bool {
    size_of_val(before) >= STREAM_BYTES
        && shape.value_dim.is_multiple_of(LANES)
        && before.as_ptr().addr().is_multiple_of(64)
        && after.addr().is_multiple_of(64)
}

/// The arguments of one call.
struct Call<'a> {
    shape: DeltaShape,
    tokens: usize,
    inputs: DeltaInputs<'a>,
    g: &'a [f32],
    beta: &'a [f32],
    before: DeltaState<'a>,
    state_out: SharedMut<'a, f32>,
    out: SharedMut<'a, f32>,
    c: &'a Compute<'a>,
    /// Write the last state past the caches.
    stream: bool,
}

/// A block of columns in memory: its first element and the distance between rows.
#[derive(Clone, Copy)]
struct Columns {
    data: *mut f32,
    stride: usize,
}

/// Keys, queries and scalars of some tokens for one value head.
struct Chunk<'a> {
    key_dim: usize,
    /// `[tokens, key_dim]`, normalised.
    keys: &'a [f32],
    /// `[tokens, key_dim]`, normalised and scaled.
    queries: &'a [f32],
    /// Key times query.
    products: &'a [f32],
    decays: &'a [f32],
    rates: &'a [f32],
    /// `[tokens, columns of the task]`
    values: &'a [f32],
}

/// The change that a token makes to a block of columns.
struct Update<'a, V> {
    key: &'a [f32],
    decay: V,
    delta: [V; VECTORS],
}

impl Call<'_> {
    /// Floats of scratch memory for a task over `blocks` column blocks.
    fn scratch_len(&self, blocks: usize) -> usize {
        let chunk = CHUNK.min(self.tokens);
        let key_dim = self.shape.key_dim;
        let states = self.shape.group() * blocks * key_dim * BLOCK;
        3 * CHUNK + key_dim + chunk * (2 * key_dim + blocks * BLOCK) + states
    }

    /// All value heads of key head `head`, column blocks `blocks`.
    #[inline(always)]
    fn key_head<S: Simd>(&self, s: S, head: usize, blocks: Range<usize>, scratch: &mut [f32]) {
        let DeltaShape { key_heads, value_heads, key_dim, value_dim } = self.shape;
        let width = self.shape.qkv_width();
        // The columns of this task.
        let columns = blocks.start * BLOCK..value_dim.min(blocks.end * BLOCK);
        let most = CHUNK.min(self.tokens);
        let (products, rest) = scratch.split_at_mut(CHUNK);
        let (decays, rest) = rest.split_at_mut(CHUNK);
        let (rates, rest) = rest.split_at_mut(CHUNK);
        let (keys, rest) = rest.split_at_mut(most * key_dim);
        let (queries, rest) = rest.split_at_mut(most * key_dim);
        let (row, rest) = rest.split_at_mut(key_dim);
        let (values, states) = rest.split_at_mut(most * columns.len());
        let scale = 1.0 / (key_dim as f32).sqrt();
        for first in (0..self.tokens).step_by(most) {
            let n = most.min(self.tokens - first);
            // One after the other: their places in the first-level cache are the same.
            for t in 0..n {
                self.inputs.copy(s, width, first + t, head * key_dim, row);
                normalise(s, row, scale, &mut queries[t * key_dim..][..key_dim]);
            }
            for t in 0..n {
                self.inputs.copy(s, width, first + t, (key_heads + head) * key_dim, row);
                let key = &mut keys[t * key_dim..][..key_dim];
                normalise(s, row, 1.0, key);
                products[t] = dot(s, key, &queries[t * key_dim..][..key_dim]);
            }
            for member in 0..self.shape.group() {
                let value_head = head * self.shape.group() + member;
                decays[..n.next_multiple_of(LANES)].fill(0.0);
                for t in 0..n {
                    let at = (first + t) * value_heads + value_head;
                    decays[t] = self.g[at];
                    rates[t] = self.beta[at];
                }
                for group in decays[..n.next_multiple_of(LANES)].chunks_exact_mut(LANES) {
                    s.store(group, math::exp(s, s.load(group)));
                }
                let channel = 2 * key_heads * key_dim + value_head * value_dim + columns.start;
                let values = &mut values[..n * columns.len()];
                for (t, value) in values.chunks_exact_mut(columns.len()).enumerate() {
                    self.inputs.copy(s, width, first + t, channel, value);
                }
                let chunk = Chunk {
                    key_dim,
                    values,
                    keys: &keys[..n * key_dim],
                    queries: &queries[..n * key_dim],
                    products: &products[..n],
                    decays: &decays[..n],
                    rates: &rates[..n],
                };
                for (index, block) in blocks.clone().enumerate() {
                    if self.c.is_over() {
                        return;
                    }
                    let at = (member * blocks.len() + index) * key_dim * BLOCK;
                    let local = &mut states[at..at + key_dim * BLOCK];
                    self.block(s, &chunk, first, value_head, block, columns.start, local);
                }
            }
        }
    }

    /// One chunk of tokens of one block of columns; the chunk's values begin with column
    /// `values_at`. `local` holds the block between chunks.
    #[inline(always)]
    #[allow(clippy::too_many_arguments)]
    fn block<S: Simd>(
        &self,
        s: S,
        chunk: &Chunk,
        first: usize,
        value_head: usize,
        block: usize,
        values_at: usize,
        local: &mut [f32],
    ) {
        let DeltaShape { value_heads, key_dim, value_dim, .. } = self.shape;
        let column = block * BLOCK;
        let columns = BLOCK.min(value_dim - column);
        let whole = columns == BLOCK;
        let tokens = chunk.rates.len();
        let is_first = first == 0;
        let is_last = first + tokens == self.tokens;
        let matrix = value_head * key_dim * value_dim + column;
        if is_first && !whole {
            // A narrow block is computed on a copy that is padded with zeros.
            for (i, row) in local.chunks_exact_mut(BLOCK).enumerate() {
                row[..columns]
                    .copy_from_slice(&self.before.base[matrix + i * value_dim..][..columns]);
                row[columns..].fill(0.0);
            }
        }
        let here = Columns { data: local.as_mut_ptr(), stride: BLOCK };
        let mut source = here;
        if is_first && whole {
            // Only read from. The last row ends within the state: its length was checked.
            let data = self.before.base[matrix..].as_ptr().cast_mut();
            source = Columns { data, stride: value_dim };
        }
        if is_first {
            for n in 0..self.before.changes.count() {
                let change = Change::new(self.shape, self.before.changes.get(n));
                let key = change.key(value_head / self.shape.group());
                let from = &change.delta(value_head)[column..][..columns];
                let mut delta = [s.splat(0.0); VECTORS];
                #[allow(clippy::needless_range_loop)] // a loop over registers
                for n in 0..VECTORS {
                    delta[n] = s.load_part(from.get(n * LANES..).unwrap_or(&[]));
                }
                let update = Update { key, decay: s.splat(change.decay(value_head)), delta };
                // SAFETY: `source` and `here` hold `key_dim` rows of BLOCK columns that no
                // other task writes.
                unsafe {
                    pass::<S, true, false, false>(s, source, here, &update, &[], &[], null());
                }
                source = here;
            }
        }
        let mut target = here;
        if is_last && whole {
            // SAFETY: `matrix` lies within the states, whose length was checked.
            let data = unsafe { self.state_out.as_mut_ptr().add(matrix) };
            target = Columns { data, stride: value_dim };
        }
        // In the first two passes over this block, one line of the next head for each row:
        // when this head is done, the next one is near.
        let lines = key_dim * VECTORS;
        let ahead = matrix - column + key_dim * value_dim + block * lines * LANES;
        let ahead = |pass: usize| {
            let at = ahead + pass * key_dim * LANES;
            if is_first && pass < 2 && at < self.before.base.len() {
                self.before.base.as_ptr().wrapping_add(at)
            } else {
                null()
            }
        };
        let mut update = None;
        for t in 0..tokens {
            let values = &chunk.values[t * (chunk.values.len() / tokens)..];
            let value = &values[column - values_at..][..columns];
            let to = ((first + t) * value_heads + value_head) * value_dim + column;
            // SAFETY: each task writes its own columns of its own heads.
            let out = unsafe { self.out.part(to, columns) };
            // That of the next token is pages away, where no cache foresees it.
            for n in 0..VECTORS {
                let out = self.out.as_mut_ptr();
                prefetch(out.wrapping_add(to + value_heads * value_dim + n * LANES));
            }
            // SAFETY: `source` and `here` hold `key_dim` rows of BLOCK columns that no
            // other task writes.
            let next =
                unsafe { chunk.token(s, t, source, here, update.as_ref(), value, out, ahead(t)) };
            if update.is_some() {
                source = here;
            }
            update = Some(next);
        }
        if let Some(update) = update {
            // SAFETY: as above, and `target` are columns that only this task touches.
            unsafe {
                if self.stream && is_last {
                    pass::<S, true, false, true>(
                        s,
                        source,
                        target,
                        &update,
                        &[],
                        &[],
                        ahead(tokens),
                    );
                } else {
                    pass::<S, true, false, false>(
                        s,
                        source,
                        target,
                        &update,
                        &[],
                        &[],
                        ahead(tokens),
                    );
                }
            }
        }
        if is_last && !whole {
            for (i, row) in local.chunks_exact(BLOCK).enumerate() {
                let to = matrix + i * value_dim;
                // SAFETY: each task writes its own columns of its own heads.
                let to = unsafe { self.state_out.part(to, columns) };
                to.copy_from_slice(&row[..columns]);
            }
        }
    }
}

impl Chunk<'_> {
    /// Applies the update of the token before (if one is pending, from `source` to `here`),
    /// reads for token `t`, writes its output and returns its update.
    ///
    /// # Safety
    /// `source` and `here` hold `key_dim` rows of `BLOCK` columns; nobody else writes there.
    #[inline(always)]
    #[allow(clippy::too_many_arguments)]
    unsafe fn token<'s, S: Simd>(
        &'s self,
        s: S,
        t: usize,
        source: Columns,
        here: Columns,
        before: Option<&Update<'s, S::F32>>,
        value: &[f32],
        out: &mut [f32],
        ahead: *const f32,
    ) -> Update<'s, S::F32> {
        let key = &self.keys[t * self.key_dim..][..self.key_dim];
        let query = &self.queries[t * self.key_dim..][..self.key_dim];
        let decay = s.splat(self.decays[t]);
        let none = Update { key, decay, delta: [s.splat(0.0); VECTORS] };
        // SAFETY: the caller's contract.
        let (by_key, by_query) = unsafe {
            match before {
                Some(update) => {
                    pass::<S, true, true, false>(s, source, here, update, key, query, ahead)
                }
                None => pass::<S, false, true, false>(s, source, here, &none, key, query, ahead),
            }
        };
        let (rate, product) = (s.splat(self.rates[t]), s.splat(self.products[t]));
        let mut delta = none.delta;
        for n in 0..VECTORS {
            let from = value.get(n * LANES..).unwrap_or(&[]);
            let known = s.mul(decay, by_key[n]);
            delta[n] = s.mul(rate, s.sub(s.load_part(from), known));
            let read = s.mul_add(delta[n], product, s.mul(decay, by_query[n]));
            if let Some(to) = out.get_mut(n * LANES..) {
                s.store_part(to, read);
            }
        }
        Update { key, decay, delta }
    }
}

/// One pass over a block of columns: with `UPDATE` writes the changed elements of `source`
/// to `target`, past the caches if `STREAM`; with `READ` returns the (changed) block times
/// `key` and times `query`. Prefetches from `ahead`, a line for each row, unless it is null.
///
/// # Safety
/// `source`, and `target` if `UPDATE`, hold `BLOCK` columns of as many rows as the keys
/// have elements (all of the same length), and nobody else writes there.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
unsafe fn pass<S: Simd, const UPDATE: bool, const READ: bool, const STREAM: bool>(
    s: S,
    source: Columns,
    target: Columns,
    update: &Update<S::F32>,
    key: &[f32],
    query: &[f32],
    ahead: *const f32,
) -> ([S::F32; VECTORS], [S::F32; VECTORS]) {
    let mut by_key = [s.splat(0.0); VECTORS];
    let mut by_query = by_key;
    // Copies, so that the compiler knows that the stores leave them alone.
    let (decay, delta) = (update.decay, update.delta);
    let rows = update.key.len();
    debug_assert!(!READ || (key.len() == rows && query.len() == rows));
    for i in 0..rows {
        if !ahead.is_null() {
            prefetch_far(ahead.wrapping_add(i * LANES));
        }
        // SAFETY: row `i` exists in every block and vector, by the contract.
        unsafe {
            for n in 0..VECTORS {
                let mut x = s.load_ptr(source.data.add(i * source.stride + n * LANES));
                if UPDATE {
                    let kept = s.mul(decay, x);
                    x = s.mul_add(s.splat(*update.key.get_unchecked(i)), delta[n], kept);
                    let to = target.data.add(i * target.stride + n * LANES);
                    if STREAM {
                        s.stream_ptr(to, x);
                    } else {
                        s.store_ptr(to, x);
                    }
                }
                if READ {
                    by_key[n] = s.mul_add(x, s.splat(*key.get_unchecked(i)), by_key[n]);
                    by_query[n] = s.mul_add(x, s.splat(*query.get_unchecked(i)), by_query[n]);
                }
            }
        }
    }
    (by_key, by_query)
}

/// The sum of products, by the sixteen lanes and their fixed tree.
#[inline(always)]
fn dot<S: Simd>(s: S, a: &[f32], b: &[f32]) -> f32 {
    let mut sum = s.splat(0.0);
    for (a, b) in a.chunks(LANES).zip(b.chunks(LANES)) {
        sum = s.mul_add(s.load_part(a), s.load_part(b), sum);
    }
    s.sum(sum)
}

/// `to = scale x / sqrt(sum x^2 + epsilon)`
#[inline(always)]
fn normalise<S: Simd>(s: S, x: &[f32], scale: f32, to: &mut [f32]) {
    let factor = s.splat(scale / (dot(s, x, x) + NORM_EPSILON).sqrt());
    for (x, to) in x.chunks(LANES).zip(to.chunks_mut(LANES)) {
        s.store_part(to, s.mul(s.load_part(x), factor));
    }
}

#[cfg(test)]
mod tests;
