//! Passes over some columns of a state: its products with keys and queries, and its change.

use super::VECTORS;
use super::block::BLOCK_TOKENS;
use crate::kernels::simd::{LANES, Simd, prefetch_far};

/// A strip of columns in memory: its first element and the distance between rows.
#[derive(Clone, Copy)]
pub(super) struct Columns {
    pub data: *mut f32,
    pub stride: usize,
}

/// What a complete block of tokens changes.
#[derive(Clone, Copy)]
pub(super) struct Update<F, const V: usize> {
    /// Their keys, one after the other.
    pub keys: *const f32,
    /// What is left of the state.
    pub left: F,
    /// What is added along the keys.
    pub changes: [[F; V]; BLOCK_TOKENS],
}

/// Keys and queries of the tokens of a block, one after the other.
#[derive(Clone, Copy)]
pub(super) struct Reads {
    pub keys: *const f32,
    pub queries: *const f32,
}

/// For each token, products of some columns with its key and its query.
pub(super) type Products<F> = ([[F; VECTORS]; BLOCK_TOKENS], [[F; VECTORS]; BLOCK_TOKENS]);

/// One pass over `VECTORS` vectors of columns: with `UPDATE` writes the changed elements of
/// `source` to `target`, past the caches if `STREAM`; with `READ` returns the products of the
/// (changed) elements with the keys and queries of a block of tokens. Asks for `VECTORS` lines
/// from `ahead` on for each row, unless it is null.
///
/// # Safety
/// `source`, and `target` if `UPDATE`, hold `rows` rows of `VECTORS` vectors, and nobody else
/// writes there. The keys of `update` and `reads`, and its queries, are [`BLOCK_TOKENS`] times
/// `rows` elements. With `STREAM` each vector of `target` begins at a cache line.
#[inline(always)]
pub(super) unsafe fn pass<S: Simd, const UPDATE: bool, const READ: bool, const STREAM: bool>(
    s: S,
    rows: usize,
    (source, target): (Columns, Columns),
    update: &Update<S::F32, VECTORS>,
    reads: Reads,
    ahead: *const f32,
) -> Products<S::F32> {
    let zeros = [[s.splat(0.0); VECTORS]; BLOCK_TOKENS];
    let mut products = (zeros, zeros);
    // As many sums as fit the registers at a time.
    if const { S::PARTS == 1 } {
        // SAFETY: by the contract.
        s.run_alone(
            #[inline(always)]
            || unsafe {
                sweep::<S, UPDATE, READ, STREAM, VECTORS, BLOCK_TOKENS>(
                    s,
                    rows,
                    source,
                    target,
                    update,
                    reads,
                    ahead,
                    0,
                    0,
                    &mut products,
                );
            },
        );
    } else {
        let (none, changed) = (std::ptr::null(), if UPDATE { target } else { source });
        // SAFETY: by the contract.
        s.run_alone(
            #[inline(always)]
            || unsafe {
                for v in 0..VECTORS {
                    if UPDATE {
                        sweep::<S, true, false, STREAM, 1, 0>(
                            s,
                            rows,
                            source,
                            target,
                            update,
                            reads,
                            none,
                            v,
                            0,
                            &mut products,
                        );
                    }
                    // Two tokens at a time.
                    for token in (0..BLOCK_TOKENS).step_by(2) {
                        if READ {
                            let ahead = if v + token == 0 { ahead } else { none };
                            sweep::<S, false, true, false, 1, 2>(
                                s,
                                rows,
                                changed,
                                changed,
                                update,
                                reads,
                                ahead,
                                v,
                                token,
                                &mut products,
                            );
                        }
                    }
                }
            },
        );
    }
    products
}

/// The vectors from `first` on and the tokens from `token` on of a [`pass`].
///
/// # Safety
/// As [`pass`].
#[inline(always)]
#[allow(clippy::too_many_arguments)]
#[allow(clippy::needless_range_loop)] // the loops over registers, see `linear::direct`
unsafe fn sweep<
    S: Simd,
    const UPDATE: bool,
    const READ: bool,
    const STREAM: bool,
    const V: usize,
    const T: usize,
>(
    s: S,
    rows: usize,
    source: Columns,
    target: Columns,
    update: &Update<S::F32, VECTORS>,
    reads: Reads,
    ahead: *const f32,
    first: usize,
    token: usize,
    products: &mut Products<S::F32>,
) {
    // Copies, so that the compiler knows that the stores leave them alone.
    let (left, mut changes) = (update.left, [[s.splat(0.0); V]; BLOCK_TOKENS]);
    for n in 0..BLOCK_TOKENS {
        for v in 0..V {
            changes[n][v] = update.changes[n][first + v];
        }
    }
    let mut by_key = [[s.splat(0.0); V]; T];
    let mut by_query = by_key;
    let (keys, queries) =
        (reads.keys.wrapping_add(token * rows), reads.queries.wrapping_add(token * rows));
    let (source, target) = (
        Columns { data: source.data.wrapping_add(first * LANES), ..source },
        Columns { data: target.data.wrapping_add(first * LANES), ..target },
    );
    for i in 0..rows {
        if !ahead.is_null() {
            for line in 0..VECTORS {
                prefetch_far(ahead.wrapping_add((i * VECTORS + line) * LANES));
            }
        }
        // SAFETY: row `i` exists in every block and vector, by the contract.
        unsafe {
            let mut x = [s.splat(0.0); V];
            for v in 0..V {
                x[v] = s.load_ptr(source.data.add(i * source.stride + v * LANES));
            }
            if UPDATE {
                for v in 0..V {
                    x[v] = s.mul(left, x[v]);
                }
                for n in 0..BLOCK_TOKENS {
                    let key = s.splat(*update.keys.add(n * rows + i));
                    for v in 0..V {
                        x[v] = s.mul_add(key, changes[n][v], x[v]);
                    }
                }
                for v in 0..V {
                    let to = target.data.add(i * target.stride + v * LANES);
                    if STREAM {
                        s.stream_ptr(to, x[v]);
                    } else {
                        s.store_ptr(to, x[v]);
                    }
                }
            }
            if READ {
                for t in 0..T {
                    let key = s.splat(*keys.add(t * rows + i));
                    let query = s.splat(*queries.add(t * rows + i));
                    for v in 0..V {
                        by_key[t][v] = s.mul_add(x[v], key, by_key[t][v]);
                        by_query[t][v] = s.mul_add(x[v], query, by_query[t][v]);
                    }
                }
            }
        }
    }
    for t in 0..T {
        for v in 0..V {
            products.0[token + t][first + v] = by_key[t][v];
            products.1[token + t][first + v] = by_query[t][v];
        }
    }
}
