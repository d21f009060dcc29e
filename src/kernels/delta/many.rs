//! The rule for many tokens: head by head, chunk by chunk, and within a chunk block by block.

use std::cell::RefCell;
use std::ops::Range;
use std::ptr::null;

use super::block::{BLOCK_TOKENS, Token};
use super::change::{Change, DeltaAfter, DeltaState, Shared};
use super::sweep::{Columns, Reads, Update, pass};
use super::{DeltaInputs, DeltaShape, STRIP, VECTORS, load, normalise, store, streams};
use crate::dispatch;
use crate::kernels::buffer::{Buffer, Scratch, with_scratch};
use crate::kernels::simd::{LANES, Simd, fence, prefetch};
use crate::kernels::{Compute, math};
use crate::pool::SharedMut;

/// Tokens prepared at a time, and computed between two looks at the cancel flag: whole blocks.
const CHUNK: usize = 64;
/// Tokens of the last chunk at most: with those of a block that is not complete.
const LAST_CHUNK: usize = CHUNK + BLOCK_TOKENS;
/// Up to here a call is bound by memory.
const FEW_TOKENS: usize = 8;

thread_local!(static SCRATCH: Scratch = const { RefCell::new(Buffer::empty()) });

/// Runs the rule over `tokens` tokens.
///
/// - `inputs`: queries and keys are normalised here (`x / sqrt(sum x^2 + 1e-6)`), queries also
///   divided by `sqrt(key_dim)`.
/// - `g`, `beta`: `[tokens, value_heads]`, logarithm of the decay (at most 0) and rate.
/// - `before`, `after`: the states before and after.
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
    after: DeltaAfter,
    out: &mut [f32],
) {
    shape.check();
    before.check(shape);
    inputs.check(shape, tokens);
    assert_eq!(g.len(), tokens * shape.value_heads);
    assert_eq!(beta.len(), tokens * shape.value_heads);
    after.check(shape, before, tokens);
    assert_eq!(out.len(), tokens * shape.value_heads * shape.value_dim);
    if tokens == 0 {
        return;
    }
    let stream = streams(shape, before.base, after.base.as_ptr());
    let call = Call {
        shape,
        tokens,
        inputs,
        g,
        beta,
        before,
        after: after.share(),
        out: SharedMut::new(out),
        c,
        stream,
    };
    // The unit is a key head with its value heads; when those do not spread evenly over the
    // threads, a part of their columns. With few tokens most of the time goes into fetching
    // states: then a task is a run of units, so that the next state is known.
    let strips = shape.value_dim.div_ceil(STRIP);
    let threads = c.pool.threads();
    let parts = if shape.key_heads.is_multiple_of(threads) || shape.key_heads >= 4 * threads {
        1
    } else {
        strips.min(threads)
    };
    let units = shape.key_heads * parts;
    let tasks = if tokens <= FEW_TOKENS { units.min(2 * threads) } else { units };
    c.run(tasks, |task| {
        for unit in task * units / tasks..(task + 1) * units / tasks {
            let (head, part) = (unit / parts, unit % parts);
            let range = part * strips / parts..(part + 1) * strips / parts;
            c.note(with_scratch(&SCRATCH, call.scratch_len(range.len()), |scratch| {
                dispatch!(c.isa, s => call.key_head(s, head, range, scratch));
            }));
        }
        if call.stream {
            fence();
        }
    });
}

/// The arguments of one call.
struct Call<'a> {
    shape: DeltaShape,
    tokens: usize,
    inputs: DeltaInputs<'a>,
    g: &'a [f32],
    beta: &'a [f32],
    before: DeltaState<'a>,
    after: Shared<'a>,
    out: SharedMut<'a, f32>,
    c: &'a Compute<'a>,
    /// Write the last state past the caches.
    stream: bool,
}

/// Some tokens of one value head, and the numbers of each. The first may be of the block that was
/// begun before; all others begin with a block.
struct Chunk<'a> {
    /// The first of them, counted from the begin of that block.
    first: usize,
    /// `[tokens, key_dim]`, normalised; whole blocks.
    keys: &'a [f32],
    /// `[tokens, key_dim]`, normalised and scaled; whole blocks.
    queries: &'a [f32],
    tokens: &'a [Token],
    /// `[tokens, columns of the task]`
    values: &'a [f32],
    /// Columns of the task.
    width: usize,
}

impl Call<'_> {
    /// Tokens, with those of the block that was begun before.
    fn all(&self) -> usize {
        self.before.changes.count() + self.tokens
    }

    /// Floats of scratch memory for a task over `strips` strips of columns.
    fn scratch_len(&self, strips: usize) -> usize {
        let chunk = LAST_CHUNK.min(self.all().next_multiple_of(BLOCK_TOKENS));
        let key_dim = self.shape.key_dim;
        let states = self.shape.group() * strips * key_dim * STRIP;
        LAST_CHUNK.next_multiple_of(LANES)
            + key_dim
            + chunk * (2 * key_dim + strips * STRIP)
            + states
    }

    /// All value heads of key head `head`, strips `strips`.
    #[inline(always)]
    fn key_head<S: Simd>(&self, s: S, head: usize, strips: Range<usize>, scratch: &mut [f32]) {
        let DeltaShape { key_heads, value_heads, key_dim, value_dim } = self.shape;
        let width = self.shape.qkv_width();
        // The columns of this task.
        let columns = strips.start * STRIP..value_dim.min(strips.end * STRIP);
        let (all, known) = (self.all(), self.before.changes.count());
        let most = LAST_CHUNK.min(all.next_multiple_of(BLOCK_TOKENS));
        let (decays, rest) = scratch.split_at_mut(LAST_CHUNK.next_multiple_of(LANES));
        let (keys, rest) = rest.split_at_mut(most * key_dim);
        let (queries, rest) = rest.split_at_mut(most * key_dim);
        let (row, rest) = rest.split_at_mut(key_dim);
        let (values, states) = rest.split_at_mut(most * columns.len());
        let scale = 1.0 / (key_dim as f32).sqrt();
        let mut next = 0;
        while next < all {
            let (first, left) = (next, all - next);
            let n = if left < LAST_CHUNK { left } else { CHUNK };
            next += n;
            // The first that is new.
            let new = if first == 0 { known } else { 0 };
            // One after the other: their places in the first-level cache are the same.
            for t in new..n {
                self.inputs.copy(s, width, first + t - known, head * key_dim, row);
                normalise(s, row, scale, &mut queries[t * key_dim..][..key_dim]);
            }
            for t in 0..new {
                let change = Change::new(self.shape, self.before.changes.get(t));
                keys[t * key_dim..][..key_dim].copy_from_slice(change.key(head));
            }
            for t in new..n {
                self.inputs.copy(s, width, first + t - known, (key_heads + head) * key_dim, row);
                normalise(s, row, 1.0, &mut keys[t * key_dim..][..key_dim]);
            }
            let mut products = [([0.0; BLOCK_TOKENS], [0.0; BLOCK_TOKENS]); LAST_CHUNK];
            for (t, (with_key, with_query)) in products[..n].iter_mut().enumerate().skip(new) {
                let block = t / BLOCK_TOKENS * BLOCK_TOKENS;
                let block_keys = &keys[block * key_dim..(block + BLOCK_TOKENS) * key_dim];
                *with_key = dots(s, block_keys, &keys[t * key_dim..][..key_dim]);
                *with_query = dots(s, block_keys, &queries[t * key_dim..][..key_dim]);
                with_key[t % BLOCK_TOKENS + 1..].fill(0.0);
                with_query[t % BLOCK_TOKENS + 1..].fill(0.0);
            }
            for member in 0..self.shape.group() {
                let value_head = head * self.shape.group() + member;
                decays[..n.next_multiple_of(LANES)].fill(0.0);
                for (t, decay) in decays[..n].iter_mut().enumerate().skip(new) {
                    *decay = self.g[(first + t - known) * value_heads + value_head];
                }
                for group in decays[..n.next_multiple_of(LANES)].chunks_exact_mut(LANES) {
                    s.store(group, math::exp(s, s.load(group)));
                }
                let mut tokens = [Token::default(); LAST_CHUNK];
                for t in 0..n {
                    let mut rate = 0.0;
                    if t < new {
                        let change = Change::new(self.shape, self.before.changes.get(t));
                        decays[t] = change.decay(value_head);
                    } else {
                        rate = self.beta[(first + t - known) * value_heads + value_head];
                    }
                    let (with_key, with_query) = products[t];
                    let before = tokens[t.saturating_sub(1)];
                    let gates = (decays[t], rate);
                    tokens[t] = Token::new(t % BLOCK_TOKENS, before, gates, with_key, with_query);
                }
                let channel = 2 * key_heads * key_dim + value_head * value_dim + columns.start;
                for t in new..n {
                    let to = &mut values[t * columns.len()..(t + 1) * columns.len()];
                    self.inputs.copy(s, width, first + t - known, channel, to);
                }
                self.put_down(head, value_head, strips.start == 0, first, n, keys, decays);
                let chunk = Chunk {
                    first,
                    keys,
                    queries,
                    tokens: &tokens[..n],
                    values: &values[..n * columns.len()],
                    width: columns.len(),
                };
                for (index, strip) in strips.clone().enumerate() {
                    if self.c.is_over() {
                        return;
                    }
                    let at = (member * strips.len() + index) * key_dim * STRIP;
                    let local = &mut states[at..at + key_dim * STRIP];
                    self.strip(s, &chunk, value_head, strip, columns.start, local);
                }
            }
        }
    }

    /// The change of token `t`, counted from the begin of the first block, if one is kept.
    fn change(&self, t: usize) -> Option<&SharedMut<'_, f32>> {
        let (all, known) = (self.all(), self.before.changes.count());
        let from = (all / BLOCK_TOKENS * BLOCK_TOKENS).max(known);
        t.checked_sub(from).map(|n| &self.after.changes[n])
    }

    /// Keys and decays of the tokens of a chunk, `first..first + n`, whose changes are kept.
    #[allow(clippy::too_many_arguments)]
    fn put_down(
        &self,
        head: usize,
        value_head: usize,
        leads: bool,
        first: usize,
        n: usize,
        keys: &[f32],
        decays: &[f32],
    ) {
        let key_dim = self.shape.key_dim;
        for (t, decay) in decays[..n].iter().enumerate() {
            if let Some(change) = self.change(first + t).filter(|_| leads) {
                // SAFETY: of the tasks of this head, that with its first columns writes these.
                let to = unsafe { change.part(head * key_dim, key_dim) };
                to.copy_from_slice(&keys[t * key_dim..][..key_dim]);
                // SAFETY: as above.
                let to = unsafe { change.part(self.shape.decays_at() + value_head, 1) };
                to[0] = *decay;
            }
        }
    }

    /// One chunk of tokens of one strip of columns; the chunk's values begin with column
    /// `values_at`. `local` holds the columns between chunks.
    #[inline(always)]
    fn strip<S: Simd>(
        &self,
        s: S,
        chunk: &Chunk,
        value_head: usize,
        strip: usize,
        values_at: usize,
        local: &mut [f32],
    ) {
        let DeltaShape { value_heads, key_dim, value_dim, .. } = self.shape;
        let column = strip * STRIP;
        let columns = STRIP.min(value_dim - column);
        let whole = columns == STRIP;
        let (n, known) = (chunk.tokens.len(), self.before.changes.count());
        let is_first = chunk.first == 0;
        let is_last = chunk.first + n == self.all();
        let matrix = value_head * key_dim * value_dim + column;
        if is_first && !whole {
            // Few columns are computed on a copy that is padded with zeros.
            for (i, row) in local.chunks_exact_mut(STRIP).enumerate() {
                row[..columns]
                    .copy_from_slice(&self.before.base[matrix + i * value_dim..][..columns]);
                row[columns..].fill(0.0);
            }
        }
        let here = Columns { data: local.as_mut_ptr(), stride: STRIP };
        let mut source = here;
        if is_first && whole {
            // Only read from. The last row ends within the state: its length was checked.
            let data = self.before.base[matrix..].as_ptr().cast_mut();
            source = Columns { data, stride: value_dim };
        }
        let mut target = here;
        if is_last && whole && self.after.base.len() > 0 {
            // SAFETY: `matrix` lies within the states, whose length was checked.
            let data = unsafe { self.after.base.as_mut_ptr().add(matrix) };
            target = Columns { data, stride: value_dim };
        }
        let stream = self.stream && is_last && whole;
        // In the first pass over these columns, as many lines of the next head: when this head
        // is done, the next one is near.
        let at = matrix - column + (key_dim * value_dim + strip * key_dim * STRIP);
        let mut ahead =
            self.before.base.get(at..).filter(|_| is_first).map_or(null(), <[f32]>::as_ptr);
        let none = [[s.splat(0.0); VECTORS]; BLOCK_TOKENS];
        let mut update: Option<Update<S::F32, VECTORS>> = None;
        for at in (0..n).step_by(BLOCK_TOKENS) {
            let many = BLOCK_TOKENS.min(n - at);
            let reads = Reads {
                keys: chunk.keys[at * key_dim..][..BLOCK_TOKENS * key_dim].as_ptr(),
                queries: chunk.queries[at * key_dim..][..BLOCK_TOKENS * key_dim].as_ptr(),
            };
            // The outputs of the next block are pages away, where no cache foresees them.
            for t in at + BLOCK_TOKENS..n.min(at + 2 * BLOCK_TOKENS) {
                let to = ((chunk.first + t - known) * value_heads + value_head) * value_dim;
                for n in 0..VECTORS {
                    prefetch(self.out.as_mut_ptr().wrapping_add(to + column + n * LANES));
                }
            }
            // Behind a block that is not complete, no other changes the state.
            let to = if many < BLOCK_TOKENS { target } else { here };
            // SAFETY: `source`, `here` and `target` hold `key_dim` rows of STRIP columns that no
            // other task writes. Lines where `stream` writes begin at cache lines.
            let (by_key, by_query) = unsafe {
                match &update {
                    None => {
                        let none = Update { keys: null(), left: s.splat(0.0), changes: none };
                        let places = (source, here);
                        pass::<S, false, true, false>(s, key_dim, places, &none, reads, ahead)
                    }
                    Some(update) => {
                        let places = (source, to);
                        source = to;
                        pass::<S, true, true, false>(s, key_dim, places, update, reads, ahead)
                    }
                }
            };
            ahead = null();
            let new = if is_first && at == 0 { known } else { 0 };
            let mut deltas = none;
            for (t, delta) in deltas[..new].iter_mut().enumerate() {
                let change = Change::new(self.shape, self.before.changes.get(t));
                *delta = load(s, &change.delta(value_head)[column..][..columns]);
            }
            let place = Place { chunk, value_head, column, columns, values_at };
            let j = new..many;
            if j.contains(&0) {
                self.read::<S, 0>(s, &place, at, &mut deltas, (by_key[0], by_query[0]));
            }
            if j.contains(&1) {
                self.read::<S, 1>(s, &place, at, &mut deltas, (by_key[1], by_query[1]));
            }
            if j.contains(&2) {
                self.read::<S, 2>(s, &place, at, &mut deltas, (by_key[2], by_query[2]));
            }
            if j.contains(&3) {
                self.read::<S, 3>(s, &place, at, &mut deltas, (by_key[3], by_query[3]));
            }
            update = None;
            if many == BLOCK_TOKENS {
                let last = &chunk.tokens[at + BLOCK_TOKENS - 1];
                let changes = last.changes(s, deltas);
                update = Some(Update { keys: reads.keys, left: s.splat(last.left), changes });
            }
        }
        if let Some(update) = update {
            let reads = Reads { keys: null(), queries: null() };
            let places = (source, target);
            // SAFETY: as above.
            unsafe {
                if stream {
                    pass::<S, true, false, true>(s, key_dim, places, &update, reads, null());
                } else {
                    pass::<S, true, false, false>(s, key_dim, places, &update, reads, null());
                }
            }
        }
        if is_last && !whole && self.after.base.len() > 0 {
            for (i, row) in local.chunks_exact(STRIP).enumerate() {
                let to = matrix + i * value_dim;
                // SAFETY: each task writes its own columns of its own heads.
                let to = unsafe { self.after.base.part(to, columns) };
                to.copy_from_slice(&row[..columns]);
            }
        }
    }

    /// Token `J` of the block that begins with token `at` of a chunk: its output, its delta, and
    /// what of it is kept.
    #[inline(always)]
    fn read<S: Simd, const J: usize>(
        &self,
        s: S,
        place: &Place,
        at: usize,
        deltas: &mut [[S::F32; VECTORS]; BLOCK_TOKENS],
        products: ([S::F32; VECTORS], [S::F32; VECTORS]),
    ) {
        let Place { chunk, value_head, column, columns, values_at } = *place;
        let DeltaShape { value_heads, value_dim, .. } = self.shape;
        let (t, known) = (at + J, self.before.changes.count());
        let value = &chunk.values[t * chunk.width..];
        let value = load(s, &value[column - values_at..][..columns]);
        let read = chunk.tokens[t].read::<S, J, VECTORS>(s, deltas, products, value);
        let to = ((chunk.first + t - known) * value_heads + value_head) * value_dim + column;
        // SAFETY: each task writes its own columns of its own heads.
        store(s, unsafe { self.out.part(to, columns) }, read);
        if let Some(change) = self.change(chunk.first + t) {
            let to = self.shape.deltas_at() + value_head * value_dim + column;
            // SAFETY: as above.
            store(s, unsafe { change.part(to, columns) }, deltas[J]);
        }
    }
}

/// The columns of a strip, and the chunk of tokens that they are computed for.
struct Place<'a> {
    chunk: &'a Chunk<'a>,
    value_head: usize,
    column: usize,
    columns: usize,
    /// The first column of the chunk's values.
    values_at: usize,
}

/// The products of the keys of a block with `x`, each as by [`dot`](super::dot).
#[inline(always)]
fn dots<S: Simd>(s: S, keys: &[f32], x: &[f32]) -> [f32; BLOCK_TOKENS] {
    let mut sums = [s.splat(0.0); BLOCK_TOKENS];
    for at in (0..x.len()).step_by(LANES) {
        let end = x.len().min(at + LANES);
        let part = s.load_part(&x[at..end]);
        for n in 0..BLOCK_TOKENS {
            let key = s.load_part(&keys[n * x.len() + at..n * x.len() + end]);
            sums[n] = s.mul_add(key, part, sums[n]);
        }
    }
    s.sum4(sums)
}
