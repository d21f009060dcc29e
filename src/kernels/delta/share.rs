//! Which states a task of a step reads, and who will read which.

use super::DeltaShape;
use crate::kernels::{Ahead, Compute};

/// Places of memory that are read at once.
pub(super) const PLACES: usize = 4;

/// How many of `units` units are one task.
pub(super) fn together(units: usize, threads: usize) -> usize {
    // As many places as leave each thread something to fetch while it computes.
    let fits =
        |together: &usize| units.is_multiple_of(*together) && units / together >= PLACES * threads;
    [PLACES, 2].into_iter().find(fits).unwrap_or(1)
}

/// The states that [`delta_step`](super::delta_step) reads of rows whose states are `bases`, for
/// products before it to ask for: each thread for those it will most likely read itself. Those
/// products read `before` bytes of weights.
///
/// # Panics
/// If the states are not of `shape`.
pub fn ahead_of_step<'r>(
    c: &Compute,
    shape: DeltaShape,
    bases: &[&'r [f32]],
    before: usize,
) -> Ahead {
    let unit = shape.group() * shape.key_dim * shape.value_dim;
    let units = bases.len() * shape.key_heads;
    let together = together(units, c.pool.threads());
    let apart = units / together;
    let mut runs = Vec::<&'r [f32]>::new();
    for thread in 0..c.pool.threads() {
        let share = c.pool.share(thread, apart);
        for n in 0..together {
            let (mut from, to) = (n * apart + share.start, n * apart + share.end);
            while from < to {
                let (row, head) = (from / shape.key_heads, from % shape.key_heads);
                let heads = (to - from).min(shape.key_heads - head);
                runs.push(&bases[row][head * unit..][..heads * unit]);
                from += heads;
            }
        }
    }
    Ahead::new(runs.into_iter(), before)
}
