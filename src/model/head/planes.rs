//! The largest logits of a quantized head, from the first plane of its weights.
//!
//! The upper bits of all weights give a bound that hardly any logit exceeds (see
//! [`upper_bounds`]), in little more than half the bytes. The tiles with the highest bounds are
//! computed exactly; the k-th largest of what they hold is reached by k rows, and tiles whose
//! bound is below it hold none of the k largest. The rest of the tiles, mostly few, is computed
//! too. So what is chosen is what all logits would give.
//!
//! The bounds are not proven. Each row that is computed exactly is a test of them: where one
//! exceeds its bound, all logits are computed. So are they where too many tiles would be: with
//! distributions as flat as that, which often come in a row, the planes are given a rest, the
//! longer the more often it happens.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::kernels::quantized::TILE_ROWS;
use crate::kernels::{
    BoundInputs, Compute, ComputeMode, Matrix, Weights, largest_of_tiles, linear_tiles,
    upper_bounds,
};
use crate::{Error, Result};

/// Fewer rows fit the caches: reading them is not what takes time.
const MIN_ROWS: usize = 4096;
/// Tiles computed at once, beside one for each of the largest that are asked for.
const SEEDS: usize = 24;
/// Part of the tiles, as a divisor, above which computing all is as well.
const MOST_TILES: usize = 4;
/// Logits that are filled by one task.
const TASK_FILL: usize = 32 << 10;
/// Most choices from all logits before the planes are tried again.
const MAX_REST: usize = 63;

/// What is chosen from a row of logits.
pub struct Choice<'a> {
    /// The logits that can be chosen: the first ones.
    pub tokens: usize,
    /// How many of the largest decide.
    pub most: usize,
    /// Changes each of `tokens` logits by a function that never falls when the logit rises;
    /// what it makes of a logit may depend on nothing else but its index.
    pub adjust: &'a mut dyn FnMut(&mut [f32]),
}

/// What choices came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeadCounts {
    /// Choices from the first plane.
    pub choices: u64,
    /// Rows that were computed exactly for them.
    pub rows: u64,
    /// Choices that were tried so, and then made from all logits.
    pub failures: u64,
}

/// What is remembered from choice to choice.
#[derive(Default)]
pub(super) struct Planes {
    /// Choices to be made from all logits before the next try.
    rest: AtomicUsize,
    /// As many there were to be after the last failure.
    last_rest: AtomicUsize,
    choices: AtomicU64,
    rows: AtomicU64,
    failures: AtomicU64,
}

/// Memory of a choice, used again by the next.
#[derive(Default)]
pub(super) struct PlanesScratch {
    inputs: BoundInputs,
    /// The highest bound of each tile.
    tops: Vec<f32>,
    /// The highest of each 16 of them.
    peaks: Vec<f32>,
    /// Values in another order.
    work: Vec<f32>,
    /// Tiles to be computed.
    tiles: Vec<u32>,
    /// `[tiles, 16]`
    exact: Vec<f32>,
    /// `[tokens]`: exact logits, adjusted, where they are looked at.
    adjusted: Vec<f32>,
}

impl PlanesScratch {
    fn reserve(&mut self, tokens: usize) -> Result<()> {
        let refused = |_| Error::out_of_memory("scratch of the head", 8 * tokens);
        let tiles = tokens.div_ceil(TILE_ROWS);
        self.tops.clear();
        self.tops.try_reserve(tiles).map_err(refused)?;
        self.tops.resize(tiles, 0.0);
        self.peaks.clear();
        self.peaks.try_reserve(tiles.div_ceil(TILE_ROWS)).map_err(refused)?;
        self.peaks.resize(tiles.div_ceil(TILE_ROWS), 0.0);
        self.tiles.clear();
        self.tiles.try_reserve(tiles).map_err(refused)?;
        self.exact.clear();
        self.exact.try_reserve(tiles / MOST_TILES * TILE_ROWS).map_err(refused)?;
        self.work.clear();
        self.work.try_reserve(tiles.max(tiles / MOST_TILES * TILE_ROWS)).map_err(refused)?;
        if self.adjusted.len() != tokens {
            self.adjusted.clear();
            self.adjusted.try_reserve(tokens).map_err(refused)?;
            self.adjusted.resize(tokens, 0.0);
        }
        Ok(())
    }
}

impl Planes {
    /// Whether the logits of `choices` are to be sought in this way.
    pub fn are_of_use(&self, c: &Compute, matrix: &Matrix, choices: &[Choice]) -> bool {
        let Weights::Tiles(format, _) = matrix.weights else { return false };
        // A bound takes more arithmetic than a logit, and half the bytes: with more rows than
        // these, it is arithmetic that counts.
        let most_rows = if format.is_int8() { 6 } else { 3 };
        if !format.is_planes()
            || choices.len() > most_rows
            || c.mode != ComputeMode::Fast
            || matrix.rows < MIN_ROWS
        {
            return false;
        }
        let fit = |choice: &Choice| {
            let room = choice.tokens.div_ceil(TILE_ROWS) / MOST_TILES;
            choice.most > 0 && SEEDS + choice.most <= room / choices.len()
        };
        if !choices.iter().all(fit) {
            return false;
        }
        let less = |n: usize| n.checked_sub(1);
        self.rest.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_err()
    }

    /// What there is of [`HeadCounts`].
    pub fn counts(&self) -> HeadCounts {
        let get = |count: &AtomicU64| count.load(Ordering::Relaxed);
        HeadCounts {
            choices: get(&self.choices),
            rows: get(&self.rows),
            failures: get(&self.failures),
        }
    }

    /// For each of `choices`, those of its logits that can be among its largest, exactly, in
    /// its row of `logits` (`[choices, rows]`); the others are -infinity. `x` is `[choices,
    /// cols]`. Returns how many rows were computed; none, with garbage in `logits`, when all
    /// must be.
    ///
    /// # Errors
    /// Those of [`Compute::check`]; `OutOfMemory`.
    pub fn largest(
        &self,
        c: &Compute,
        matrix: &Matrix,
        x: &[f32],
        choices: &mut [Choice],
        scratch: &mut PlanesScratch,
        logits: &mut [f32],
    ) -> Result<Option<usize>> {
        let count = choices.len();
        let finite = upper_bounds(c, x, count, matrix, &mut scratch.inputs, logits)?;
        c.check()?;
        let mut good = finite;
        let rows = logits.chunks_exact_mut(matrix.rows).zip(x.chunks_exact(matrix.cols));
        let mut computed = 0;
        for (choice, (logits, x)) in choices.iter_mut().zip(rows) {
            if !good {
                break;
            }
            scratch.reserve(choice.tokens)?;
            let room = scratch.tops.len() / MOST_TILES / count;
            good = refine(c, matrix, x, choice, room, scratch, logits)?;
            computed += scratch.tiles.len() * TILE_ROWS;
        }
        if good {
            self.choices.fetch_add(count as u64, Ordering::Relaxed);
            self.rows.fetch_add(computed as u64, Ordering::Relaxed);
            self.last_rest.store(0, Ordering::Relaxed);
        } else {
            self.failures.fetch_add(count as u64, Ordering::Relaxed);
            let rest = (2 * self.last_rest.load(Ordering::Relaxed) + 1).min(MAX_REST);
            self.last_rest.store(rest, Ordering::Relaxed);
            self.rest.store(rest, Ordering::Relaxed);
        }
        Ok(good.then_some(computed))
    }
}

/// From the bounds of all logits in `logits` to the largest of them; see [`Planes::largest`].
/// At most `room` tiles are computed.
fn refine(
    c: &Compute,
    matrix: &Matrix,
    x: &[f32],
    choice: &mut Choice,
    room: usize,
    scratch: &mut PlanesScratch,
    logits: &mut [f32],
) -> Result<bool> {
    let PlanesScratch { tops, peaks, work, tiles, exact, adjusted, .. } = scratch;
    let (bounds, beyond) = logits.split_at_mut(choice.tokens);
    (choice.adjust)(bounds);
    largest_of_tiles(c, bounds, tops);
    largest_of_tiles(c, tops, peaks);
    c.check()?;

    let count = SEEDS + choice.most;
    // At least as many tiles reach the peak of that rank.
    work.extend_from_slice(peaks);
    let least = if count > work.len() { f32::NEG_INFINITY } else { nth_largest(work, count) };
    tiles.extend(reaching(tops, peaks, least));
    work.clear();
    work.extend(tiles.iter().map(|&tile| tops[tile as usize]));
    let least = nth_largest(work, count);
    // Of those that are just as high, the first ones.
    let mut equal = count - work.iter().filter(|&&top| top > least).count();
    tiles.retain(|&tile| {
        let top = tops[tile as usize];
        let kept = top > least || (top == least && equal > 0);
        equal -= usize::from(kept && top == least);
        kept
    });
    exact.resize(tiles.len() * TILE_ROWS, 0.0);
    linear_tiles(c, x, matrix, tiles, exact);
    c.check()?;
    if !holds(tiles, exact, bounds, adjusted, choice) {
        return Ok(false);
    }
    work.clear();
    for &tile in &*tiles {
        let rows = rows_of(tile, choice.tokens);
        work.extend_from_slice(&adjusted[rows]);
    }
    let least = nth_largest(work, choice.most);
    if least == f32::NEG_INFINITY {
        return Ok(false);
    }
    let seeds = tiles.len();
    for tile in reaching(tops, peaks, least) {
        if tiles[..seeds].binary_search(&tile).is_ok() {
            continue;
        }
        if tiles.len() >= room {
            return Ok(false);
        }
        tiles.push(tile);
    }
    exact.resize(tiles.len() * TILE_ROWS, 0.0);
    let (others, of_others) = (&tiles[seeds..], &mut exact[seeds * TILE_ROWS..]);
    linear_tiles(c, x, matrix, others, of_others);
    c.check()?;
    if !holds(others, of_others, bounds, adjusted, choice) {
        return Ok(false);
    }
    // A megabyte, of which each thread has had a part in its caches.
    for logits in [&mut *bounds, beyond] {
        c.run_chunks(logits, TASK_FILL, |_, logits| logits.fill(f32::NEG_INFINITY));
    }
    c.check()?;
    for (&tile, exact) in tiles.iter().zip(exact.chunks_exact(TILE_ROWS)) {
        let rows = rows_of(tile, choice.tokens);
        let count = rows.len();
        bounds[rows].copy_from_slice(&exact[..count]);
    }
    Ok(true)
}

/// Puts the exact logits of `tiles`, adjusted, in their places in `adjusted`; whether none
/// exceeds its bound or is not a number.
fn holds(
    tiles: &[u32],
    exact: &[f32],
    bounds: &[f32],
    adjusted: &mut [f32],
    choice: &mut Choice,
) -> bool {
    for (&tile, exact) in tiles.iter().zip(exact.chunks_exact(TILE_ROWS)) {
        let rows = rows_of(tile, choice.tokens);
        let count = rows.len();
        adjusted[rows].copy_from_slice(&exact[..count]);
    }
    (choice.adjust)(adjusted);
    tiles.iter().all(|&tile| {
        let rows = rows_of(tile, choice.tokens);
        adjusted[rows.clone()].iter().zip(&bounds[rows]).all(|(exact, bound)| exact <= bound)
    })
}

/// The rows of a tile that can be chosen.
fn rows_of(tile: u32, tokens: usize) -> std::ops::Range<usize> {
    let first = tile as usize * TILE_ROWS;
    first..tokens.min(first + TILE_ROWS)
}

/// The tiles, in order, whose highest bound reaches `least`.
fn reaching(tops: &[f32], peaks: &[f32], least: f32) -> impl Iterator<Item = u32> {
    let high = peaks.iter().zip(tops.chunks(TILE_ROWS)).zip((0..).step_by(TILE_ROWS));
    high.filter(move |&((&peak, _), _)| peak >= least).flat_map(move |((_, tops), first)| {
        let reach = tops.iter().zip(first..).filter(move |&(&top, _)| top >= least);
        reach.map(|(_, tile)| tile)
    })
}

/// The `n`-th largest of `values`, which are put in another order; `n` is at least 1 and there
/// are as many.
fn nth_largest(values: &mut [f32], n: usize) -> f32 {
    *values.select_nth_unstable_by(n - 1, |a, b| b.total_cmp(a)).1
}

#[cfg(test)]
mod tests;
