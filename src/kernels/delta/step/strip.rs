//! Some columns of a value head: read for one token, and written behind the last one of a block.
#![allow(clippy::needless_range_loop)] // the loops over registers, see `linear::direct`

use super::{Call, DeltaRow, DeltaTarget, Next, PLACES};
use crate::kernels::delta::block::{BLOCK_TOKENS, Token};
use crate::kernels::delta::change::Change;
use crate::kernels::delta::{DeltaShape, load, store, streams};
use crate::kernels::simd::{LANES, Simd, prefetch_far};

/// Columns of some rows in memory: the first element, and the distance between rows.
#[derive(Clone, Copy)]
struct Columns {
    data: *const f32,
    stride: usize,
}

/// Some columns of a value head.
pub(super) struct Strip<'a> {
    pub call: &'a Call<'a>,
    pub row: &'a DeltaRow<'a>,
    /// The value head.
    pub head: usize,
    /// The first column.
    pub column: usize,
    pub key: &'a [f32],
    pub query: &'a [f32],
    /// The keys of the block of tokens.
    pub keys: &'a [*const f32; BLOCK_TOKENS],
    pub token: &'a Token,
}

impl Strip<'_> {
    /// Reads the state, writes what is read out to `out` and the change, or the state after.
    #[inline(always)]
    pub fn compute<S: Simd, const V: usize>(
        &self,
        s: S,
        value: &[f32],
        out: &mut [f32],
        ahead: Next,
        local: &mut [f32],
    ) {
        let Self { row, head, column, .. } = *self;
        let DeltaShape { key_dim, value_dim, .. } = self.call.shape;
        let columns = (V * LANES).min(value_dim - column);
        let whole = columns == V * LANES;
        let matrix = head * key_dim * value_dim + column;
        let base = &row.before.base[matrix..];
        let local = &mut local[..key_dim * V * LANES];
        if !whole {
            // Few columns are computed on a copy that is padded with zeros.
            for (i, to) in local.chunks_exact_mut(V * LANES).enumerate() {
                to[..columns].copy_from_slice(&base[i * value_dim..][..columns]);
                to[columns..].fill(0.0);
            }
        }
        let padded = local.as_mut_ptr();
        let source = match whole {
            true => Columns { data: base.as_ptr(), stride: value_dim },
            false => Columns { data: padded, stride: V * LANES },
        };
        let changes = row.before.changes;
        let mut deltas = [[s.splat(0.0); V]; BLOCK_TOKENS];
        for n in 0..changes.count() {
            let change = Change::new(self.call.shape, changes.get(n));
            deltas[n] = load(s, &change.delta(head)[column..column + columns]);
        }
        // SAFETY: `source` holds `key_dim` rows of `V` vectors that nobody writes, and key and
        // query have as many elements.
        let products = unsafe { read::<S, V>(s, source, self.key, self.query, ahead) };
        let value = load(s, &value[column..column + columns]);
        let read = match changes.count() {
            0 => self.token.read::<S, 0, V>(s, &mut deltas, products, value),
            1 => self.token.read::<S, 1, V>(s, &mut deltas, products, value),
            2 => self.token.read::<S, 2, V>(s, &mut deltas, products, value),
            _ => self.token.read::<S, 3, V>(s, &mut deltas, products, value),
        };
        store(s, &mut out[column..column + columns], read);
        match &row.target {
            DeltaTarget::Change(change) => {
                let at = self.call.shape.deltas_at() + head * value_dim + column;
                // SAFETY: the columns of this head belong to this unit.
                let to = unsafe { change.part(at, columns) };
                store(s, to, deltas[changes.count()]);
            }
            DeltaTarget::State(state) => {
                let update = Update {
                    keys: *self.keys,
                    left: s.splat(self.token.left),
                    changes: self.token.changes(s, deltas),
                };
                // SAFETY: the columns of this head belong to this unit, and lie within the
                // states, whose length was checked.
                let to = unsafe { state.as_mut_ptr().add(matrix) };
                // SAFETY: as above, and as for `read`. `streams` has looked at what it takes to
                // write past the caches.
                unsafe {
                    if !whole {
                        write::<S, V, false>(s, source, padded, V * LANES, &update, key_dim);
                    } else if streams(self.call.shape, row.before.base, state.as_mut_ptr()) {
                        write::<S, V, true>(s, source, to, value_dim, &update, key_dim);
                    } else {
                        write::<S, V, false>(s, source, to, value_dim, &update, key_dim);
                    }
                }
                if !whole {
                    for (i, from) in local.chunks_exact(V * LANES).enumerate() {
                        // SAFETY: the columns of this head belong to this unit.
                        let to = unsafe { state.part(matrix + i * value_dim, columns) };
                        to.copy_from_slice(&from[..columns]);
                    }
                }
            }
        }
    }
}

/// What a complete block of tokens changes of some columns.
#[derive(Clone, Copy)]
struct Update<F, const V: usize> {
    keys: [*const f32; BLOCK_TOKENS],
    /// What is left of the state.
    left: F,
    /// What is added along the keys.
    changes: [[F; V]; BLOCK_TOKENS],
}

/// The products of `source` with `key` and `query`, column by column. Asks for as many lines
/// ahead as it reads, of each place in turn.
///
/// # Safety
/// `source` holds as many rows of `V` vectors as `key` and `query` have elements, and nobody
/// writes there.
#[inline(always)]
unsafe fn read<S: Simd, const V: usize>(
    s: S,
    source: Columns,
    key: &[f32],
    query: &[f32],
    ahead: Next,
) -> ([S::F32; V], [S::F32; V]) {
    let mut by_key = [s.splat(0.0); V];
    let mut by_query = by_key;
    debug_assert_eq!(key.len(), query.len());
    for i in 0..key.len() {
        for v in 0..V {
            let line = i * V + v;
            prefetch_far(ahead[line % PLACES].wrapping_add(line / PLACES * 64));
        }
        // SAFETY: row `i` is there by the contract.
        unsafe {
            let (k, q) = (s.splat(*key.get_unchecked(i)), s.splat(*query.get_unchecked(i)));
            for v in 0..V {
                let x = s.load_ptr(source.data.add(i * source.stride + v * LANES));
                by_key[v] = s.mul_add(x, k, by_key[v]);
                by_query[v] = s.mul_add(x, q, by_query[v]);
            }
        }
    }
    (by_key, by_query)
}

/// Writes `source`, after `update`, to `rows` rows at `to`, `stride` apart; past the caches if
/// `STREAM`.
///
/// # Safety
/// As for [`read`]; the keys have `rows` elements. As many rows can be written, which are `source`
/// or do not overlap it. With `STREAM`, each vector begins at a cache line.
#[inline(always)]
unsafe fn write<S: Simd, const V: usize, const STREAM: bool>(
    s: S,
    source: Columns,
    to: *mut f32,
    stride: usize,
    update: &Update<S::F32, V>,
    rows: usize,
) {
    // A copy, so that the compiler knows that the stores leave it alone.
    let update = *update;
    for i in 0..rows {
        // SAFETY: row `i` is there by the contract.
        unsafe {
            let mut x = [s.splat(0.0); V];
            for v in 0..V {
                x[v] = s.load_ptr(source.data.add(i * source.stride + v * LANES));
                x[v] = s.mul(update.left, x[v]);
            }
            for n in 0..BLOCK_TOKENS {
                let key = s.splat(*update.keys[n].add(i));
                for v in 0..V {
                    x[v] = s.mul_add(key, update.changes[n][v], x[v]);
                }
            }
            for v in 0..V {
                let to = to.add(i * stride + v * LANES);
                if STREAM {
                    s.stream_ptr(to, x[v]);
                } else {
                    s.store_ptr(to, x[v]);
                }
            }
        }
    }
}
