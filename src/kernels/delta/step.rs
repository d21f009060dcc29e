//! One token of each of some sequences, from the projections to the product behind the state:
//! convolution, gates, delta rule and norm of a head in one go.
//!
//! Nearly all the time goes into reading states, which come from memory, 64 KiB for each head.
//! Memory is fastest when it is read at several places at once (see `linear::runs`), so a task
//! takes a few heads that lie far from each other, of several sequences where there are some,
//! and while it computes them, those of the next task are on their way into the second-level
//! cache, line by line of all in turn. What a token changes is put down beside the state (see
//! `change`); only the last token of a block writes it.

mod strip;

use std::cell::RefCell;

use super::block::{BLOCK_TOKENS, Token};
use super::change::{Change, DeltaState, MOST_CHANGES};
use super::share::{PLACES, together};
use super::{DeltaShape, dot, normalise};
use crate::dispatch;
use crate::kernels::buffer::{Buffer, Parts, Scratch, with_scratch};
use crate::kernels::conv::{ConvTaps, convolve};
use crate::kernels::elementwise::gated_rms_norm_row;
use crate::kernels::simd::{LANES, Simd, fence, prefetch_far};
use crate::kernels::{Compute, math};
use crate::pool::SharedMut;

use strip::Strip;

thread_local!(static SCRATCH: Scratch = const { RefCell::new(Buffer::empty()) });

/// The weights of a layer that take part.
#[derive(Clone, Copy)]
pub struct DeltaWeights<'a> {
    /// The convolution, over queries, keys and values.
    pub taps: &'a ConvTaps,
    /// `[value_heads]`: -exp(A_log).
    pub decay: &'a [f32],
    /// `[value_heads]`
    pub dt_bias: &'a [f32],
    /// `[value_dim]`: of the norm behind the rule.
    pub norm: &'a [f32],
    /// Of the norm.
    pub eps: f32,
}

/// Where the state after a token goes.
pub enum DeltaTarget<'a> {
    /// What it changes ([`DeltaShape::change_len`]) is put down.
    Change(SharedMut<'a, f32>),
    /// The states are written, `[value_heads, key_dim, value_dim]`; there are
    /// [`MOST_CHANGES`] before.
    State(SharedMut<'a, f32>),
}

/// One token of one sequence.
pub struct DeltaRow<'a> {
    /// `[qkv_width]`: queries, keys and values before the convolution.
    pub projected: &'a [f32],
    /// `[value_heads, value_dim]`: the gate of the norm.
    pub z: &'a [f32],
    /// `[value_heads]`: the projection for the decay.
    pub a: &'a [f32],
    /// `[value_heads]`: the projection for the rate.
    pub b: &'a [f32],
    /// `projected` of the tokens before.
    pub history: Parts<'a>,
    /// A copy of `projected`, for the tokens after; empty where there is no history.
    pub kept: SharedMut<'a, f32>,
    /// The states before.
    pub before: DeltaState<'a>,
    /// The states after.
    pub target: DeltaTarget<'a>,
    /// `[value_heads, value_dim]`: the result, behind the norm.
    pub out: SharedMut<'a, f32>,
}

impl DeltaRow<'_> {
    fn check(&self, shape: DeltaShape, weights: &DeltaWeights) {
        let (heads, values) = (shape.value_heads, shape.value_heads * shape.value_dim);
        assert_eq!(self.projected.len(), shape.qkv_width());
        assert!(self.z.len() == values && self.out.len() == values);
        assert!(self.a.len() == heads && self.b.len() == heads);
        let keeps = self.history.count() > 0;
        assert_eq!(self.kept.len(), if keeps { shape.qkv_width() } else { 0 });
        weights.taps.check(self.history);
        self.before.check(shape);
        match &self.target {
            DeltaTarget::Change(change) => assert_eq!(change.len(), shape.change_len()),
            DeltaTarget::State(state) => {
                assert_eq!(state.len(), shape.state_len());
                assert_eq!(self.before.changes.count(), MOST_CHANGES);
            }
        }
    }
}

/// Computes one token of each of `rows`: the same bits as by the operations that are made for
/// many tokens.
///
/// Short of scratch memory, it fails with `OutOfMemory`.
///
/// # Panics
/// When a length is not as said above.
pub fn delta_step(c: &Compute, shape: DeltaShape, weights: &DeltaWeights, rows: &[DeltaRow]) {
    shape.check();
    let heads = shape.value_heads;
    assert_eq!(weights.taps.channels(), shape.qkv_width());
    assert!(weights.decay.len() == heads && weights.dt_bias.len() == heads);
    assert_eq!(weights.norm.len(), shape.value_dim);
    rows.iter().for_each(|row| row.check(shape, weights));
    let units = rows.len() * shape.key_heads;
    let together = together(units, c.pool.threads());
    let call = Call { c, shape, weights, rows, together, apart: units / together };
    c.run(call.apart, |task| {
        c.note(with_scratch(&SCRATCH, call.scratch_len(), |scratch| {
            dispatch!(c.isa, s => call.task(s, task, scratch));
        }));
        // What was written past the caches.
        fence();
    });
}

/// The arguments of one call.
struct Call<'a> {
    c: &'a Compute<'a>,
    shape: DeltaShape,
    weights: &'a DeltaWeights<'a>,
    rows: &'a [DeltaRow<'a>],
    /// Units of a task; a unit is a key head, with its value heads, of one row.
    together: usize,
    /// Units from one of a task to the next, and tasks.
    apart: usize,
}

/// Where the lines to be asked for are.
type Next = [*const u8; PLACES];

impl Call<'_> {
    /// Floats of the states of a unit.
    fn unit_len(&self) -> usize {
        self.shape.group() * self.shape.key_dim * self.shape.value_dim
    }

    fn scratch_len(&self) -> usize {
        let DeltaShape { key_dim, value_dim, .. } = self.shape;
        4 * key_dim + self.shape.group() * value_dim + key_dim * 4 * LANES
    }

    /// The states of a unit.
    fn states(&self, unit: usize) -> *const f32 {
        let (row, head) = (unit / self.shape.key_heads, unit % self.shape.key_heads);
        self.rows[row].before.base[head * self.unit_len()..].as_ptr()
    }

    /// The states of the units of `task`, as places of the same length.
    fn places(&self, task: usize) -> Next {
        let each = PLACES / self.together;
        let mut places = [std::ptr::null(); PLACES];
        for (place, at) in places.iter_mut().enumerate() {
            let states = self.states(task + place / each * self.apart);
            *at = states.wrapping_add(place % each * (self.unit_len() / each)).cast();
        }
        places
    }

    #[inline(always)]
    fn task<S: Simd>(&self, s: S, task: usize, scratch: &mut [f32]) {
        let (pool, tasks) = (self.c.pool, self.apart);
        let bytes = self.together * self.unit_len() * size_of::<f32>() / PLACES;
        if pool.begins_share(task, tasks) {
            // Nobody has asked for these.
            let places = self.places(task);
            for line in (0..bytes).step_by(64) {
                for place in places {
                    prefetch_far(place.wrapping_add(line));
                }
            }
        }
        let more = task + 1 < tasks && !pool.begins_share(task + 1, tasks);
        // Asking for what is there already does no harm.
        let ahead = self.places(if more { task + 1 } else { task });
        for n in 0..self.together {
            if self.c.is_over() {
                return;
            }
            let unit = task + n * self.apart;
            let next = if n + 1 < self.together { unit + self.apart } else { task + 1 };
            if next < self.rows.len() * self.shape.key_heads {
                self.fetch_inputs(next);
            }
            let mut ahead = ahead;
            for place in &mut ahead {
                *place = place.wrapping_add(n * bytes / self.together);
            }
            let (row, head) = (unit / self.shape.key_heads, unit % self.shape.key_heads);
            // As many registers as leave room for sums and changes.
            if const { S::PARTS == 1 } {
                self.unit::<S, 4>(s, &self.rows[row], head, ahead, scratch);
            } else {
                self.unit::<S, 2>(s, &self.rows[row], head, ahead, scratch);
            }
        }
    }

    /// Where the channels of key head `head` begin, and how many they are: queries, keys,
    /// values.
    #[inline(always)]
    fn channels(&self, head: usize) -> [(usize, usize); 3] {
        let DeltaShape { key_heads, key_dim, value_dim, .. } = self.shape;
        let values = self.shape.group() * value_dim;
        [
            (head * key_dim, key_dim),
            ((key_heads + head) * key_dim, key_dim),
            (2 * key_heads * key_dim + head * values, values),
        ]
    }

    /// Asks for what a unit needs beside its states.
    #[inline(always)]
    fn fetch_inputs(&self, unit: usize) {
        let (row, head) = (unit / self.shape.key_heads, unit % self.shape.key_heads);
        let DeltaRow { history, before, projected, z, kept, .. } = &self.rows[row];
        let values = self.shape.group() * self.shape.value_dim;
        fetch(&z[head * values..][..values]);
        for (channel, many) in self.channels(head) {
            // Another core may have written it just now.
            fetch(&projected[channel..][..many]);
            for n in 0..history.count() {
                fetch(&history.get(n)[channel..][..many]);
            }
            if history.count() > 0 {
                fetch_at(kept.as_mut_ptr().wrapping_add(channel), many);
            }
        }
        for n in 0..before.changes.count() {
            let change = Change::new(self.shape, before.changes.get(n));
            fetch(change.key(head));
            for value_head in head * self.shape.group()..(head + 1) * self.shape.group() {
                fetch(change.delta(value_head));
            }
        }
    }

    /// Key head `head` of one row.
    #[inline(always)]
    fn unit<S: Simd, const V: usize>(
        &self,
        s: S,
        row: &DeltaRow,
        head: usize,
        ahead: Next,
        scratch: &mut [f32],
    ) {
        let DeltaShape { key_dim, value_dim, .. } = self.shape;
        let (query, rest) = scratch.split_at_mut(key_dim);
        let (key, rest) = rest.split_at_mut(key_dim);
        let (mixed, local) = rest.split_at_mut(2 * key_dim + self.shape.group() * value_dim);
        let mut at = 0;
        for (channel, many) in self.channels(head) {
            let out = &mut mixed[at..at + many];
            convolve(s, self.weights.taps, row.history, row.projected, 0, channel, out);
            if row.history.count() > 0 {
                // SAFETY: these channels belong to this unit.
                let kept = unsafe { row.kept.part(channel, many) };
                kept.copy_from_slice(&row.projected[channel..channel + many]);
            }
            at += many;
        }
        let (mixed_query, rest) = mixed.split_at(key_dim);
        let (mixed_key, values) = rest.split_at(key_dim);
        normalise(s, mixed_query, 1.0 / (key_dim as f32).sqrt(), query);
        normalise(s, mixed_key, 1.0, key);
        // The block's keys, this one last, and their products with this key and query.
        let (changes, shape) = (row.before.changes, self.shape);
        let last = changes.count();
        let (mut keys, mut with_key) = ([key.as_ptr(); BLOCK_TOKENS], [0.0; BLOCK_TOKENS]);
        let mut with_query = with_key;
        for n in 0..last {
            let before = Change::new(shape, changes.get(n)).key(head);
            keys[n] = before.as_ptr();
            (with_key[n], with_query[n]) = (dot(s, before, key), dot(s, before, query));
        }
        with_query[last] = dot(s, key, query);
        if let DeltaTarget::Change(change) = &row.target {
            // SAFETY: the key of this head belongs to this unit.
            let to = unsafe { change.part(head * key_dim, key_dim) };
            to.copy_from_slice(key);
        }
        for member in 0..self.shape.group() {
            let value_head = head * self.shape.group() + member;
            let (decay, rate) = self.gates(s, row, value_head);
            if let DeltaTarget::Change(change) = &row.target {
                // SAFETY: the decay of this head belongs to this unit.
                let to = unsafe { change.part(self.shape.decays_at() + value_head, 1) };
                to[0] = decay;
            }
            let mut token = Token::default();
            for n in 0..last {
                let gates = (Change::new(shape, changes.get(n)).decay(value_head), 0.0);
                token = Token::new(n, token, gates, [0.0; BLOCK_TOKENS], [0.0; BLOCK_TOKENS]);
            }
            let token = Token::new(last, token, (decay, rate), with_key, with_query);
            // SAFETY: the output of this head belongs to this unit.
            let out = unsafe { row.out.part(value_head * value_dim, value_dim) };
            let value = &values[member * value_dim..][..value_dim];
            let strips = value_dim.div_ceil(V * LANES);
            for strip in 0..strips {
                let lines = (member * strips + strip) * key_dim * V / PLACES;
                let mut ahead = ahead;
                for place in &mut ahead {
                    *place = place.wrapping_add(lines * 64);
                }
                let work = Strip {
                    call: self,
                    row,
                    head: value_head,
                    column: strip * V * LANES,
                    key,
                    query,
                    keys: &keys,
                    token: &token,
                };
                work.compute::<S, V>(s, value, out, ahead, local);
            }
            let z = &row.z[value_head * value_dim..][..value_dim];
            gated_rms_norm_row(s, out, z, self.weights.norm, self.weights.eps);
        }
    }

    /// Decay and rate of value head `head`, as `delta_gates` and `delta_rule` find them.
    #[inline(always)]
    fn gates<S: Simd>(&self, s: S, row: &DeltaRow, head: usize) -> (f32, f32) {
        let one = head..head + 1;
        let bias = s.load_part(&self.weights.dt_bias[one.clone()]);
        let step = math::softplus(s, s.add(s.load_part(&row.a[one.clone()]), bias));
        let g = s.mul(s.load_part(&self.weights.decay[one.clone()]), step);
        let rate = math::sigmoid(s, s.load_part(&row.b[one]));
        (s.to_array(math::exp(s, g))[0], s.to_array(rate)[0])
    }
}

/// Asks for the lines of `values`.
#[inline(always)]
fn fetch(values: &[f32]) {
    fetch_at(values.as_ptr(), values.len());
}

/// Asks for the lines of `count` values from `first` on.
#[inline(always)]
fn fetch_at(first: *const f32, count: usize) {
    for line in (0..count).step_by(LANES) {
        prefetch_far(first.wrapping_add(line));
    }
}

#[cfg(test)]
mod tests;
