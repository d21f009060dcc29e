//! The head: the last hidden state to logits, or to the few that can be chosen.
//!
//! The head is a third of the bytes that decoding reads, and a choice looks at its largest
//! logits only. So the head gets a copy in 8 bits ([`ShortRows`]), which bounds every logit
//! in half the bytes; the rows whose upper bound reaches the k-th largest lower bound are
//! computed from the weights as stored, with the same bits as by [`Network::head`]. What is
//! left out is provably not among the k largest: the choice is the same.
//!
//! The copy grows by a part of the rows with each choice, from the first one on: opening
//! costs nothing, nor do those who never choose. As it grows, the pages of the weights that it stands for are
//! given back to the system, so that resident memory becomes less, not more; the few rows
//! that are computed exactly are mapped again when they are touched, and given back when
//! they have become many. Who asks for all logits beside choices reads the weights part by
//! part, and each part is given back behind him; who asks for nothing else for long has no use
//! for the copy, which then goes.
//!
//! Quantized weights have no copy: they lie in two planes, of which the first serves the same
//! purpose; see [`planes`].
//!
//! [`Network::head`]: super::Network::head

mod planes;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{PoisonError, RwLock};

use super::weights::Linear;
pub use planes::{Choice, HeadCounts};
use planes::{Planes, PlanesScratch};

use crate::kernels::{
    Compute, Job, SHORT_BLOCK, ShortRows, Weights, linear, linear_exact, linear_rows,
};
use crate::{ErrorKind, Result};

/// The copy is complete after so many choices.
const STEPS: usize = 8;
/// Rows looked up until pages are given back. The system maps some 64 KiB around each, so
/// this is about as many MiB as there are blocks of 16 rows.
const MAX_TOUCHED: usize = 1024;
/// Rows computed for one choice from two planes above which they do not count as looked up:
/// what the next choice would only have mapped again is not worth giving back.
const MAX_COUNTED: usize = 4096;
/// Choices without a pass over all rows until pages are given back: whoever asks for all
/// logits now and then would only have them mapped again.
const MIN_QUIET: usize = 16;
/// Parts in which all rows are read where there is a copy: what is mapped at a time.
const PARTS: usize = 32;
/// Passes over all rows without a choice after which the copy goes.
const MAX_PASSES: usize = 16;
/// Rows looked at together when the k-th largest is sought.
const GROUP: usize = 16;
/// Part of the rows, as a divisor, above which computing all is as well.
const MOST_CANDIDATES: usize = 4;

/// What can be said about the copy.
enum Short {
    /// Being made, or complete.
    Growing(ShortRows),
    /// None: there is no memory for it, or the weights are quantized or not in a mapped file.
    Off,
}

/// The output matrix with its copy. Logits of weights as stored are computed exactly in every
/// mode: the bounds are made for that, and it costs nothing, for the speed is that of the memory.
pub(super) struct Head {
    weights: Linear,
    planes: Planes,
    copy: RwLock<Short>,
    /// Rows looked up since pages were given back.
    touched: AtomicUsize,
    /// Choices since all rows were read.
    quiet: AtomicUsize,
    /// Passes over all rows since the last choice.
    passes: AtomicUsize,
}

/// Memory of a choice, used again by the next.
#[derive(Default)]
pub(super) struct HeadScratch {
    integers: Vec<i16>,
    /// `[tokens that can be chosen]`
    lows: Vec<f32>,
    /// The lower bounds of groups, or of candidates.
    bounds: Vec<f32>,
    candidates: Vec<u32>,
    logits: Vec<f32>,
    planes: PlanesScratch,
}

impl HeadScratch {
    fn reserve(&mut self, tokens: usize, cols: usize) -> Result<()> {
        let refused = |_| crate::Error::out_of_memory("scratch of the head", 8 * tokens);
        self.integers.try_reserve(2 * cols).map_err(refused)?;
        if self.lows.len() != tokens {
            self.lows.clear();
            self.lows.try_reserve(tokens).map_err(refused)?;
            self.lows.resize(tokens, 0.0);
        }
        let most = tokens / MOST_CANDIDATES + 1;
        self.bounds.clear();
        self.bounds.try_reserve(most.max(tokens.div_ceil(GROUP))).map_err(refused)?;
        self.candidates.clear();
        self.candidates.try_reserve(most).map_err(refused)?;
        self.logits.clear();
        self.logits.try_reserve(most).map_err(refused)
    }
}

impl Head {
    /// The head with the output matrix `weights`.
    pub fn new(weights: Linear) -> Self {
        let (matrix, is_planes) = (weights.matrix(), weights.is_planes());
        // Where pages cannot be given back, a copy would only add to them.
        let copy = match weights.is_stored_in_file() {
            true => Short::Growing(ShortRows::new(matrix.rows, matrix.cols)),
            false => Short::Off,
        };
        Self {
            copy: RwLock::new(copy),
            weights,
            planes: Planes::default(),
            touched: AtomicUsize::new(0),
            // The second plane is given back from the first choice on: it is hardly read again.
            quiet: AtomicUsize::new(if is_planes { MIN_QUIET } else { 0 }),
            passes: AtomicUsize::new(0),
        }
    }

    /// All logits (`[tokens, vocab_size]`) of the hidden states `x` (`[tokens, H]`). See
    /// [`Compute::check`] for what went wrong.
    pub fn all(&self, c: &Compute, x: &[f32], tokens: usize, logits: &mut [f32]) {
        self.quiet.store(0, Ordering::Relaxed);
        let matrix = self.weights.matrix();
        if matches!(matrix.weights, Weights::Tiles(..)) {
            // What is lost is lost already: in the mode of the model.
            return linear(c, x, tokens, &mut [Job::store(matrix, logits)]);
        }
        if !self.has_copy_to_keep() {
            return linear_exact(c, x, tokens, &mut [Job::store(matrix, logits)]);
        }
        // A computation that is cut short and goes on must find the same regions again.
        if tokens > 1 || c.is_paced() {
            linear_exact(c, x, tokens, &mut [Job::store(matrix, logits)]);
            if !c.is_stopped() {
                self.weights.release(0..matrix.rows);
            }
            return;
        }
        let each = matrix.rows.div_ceil(PARTS);
        for (n, logits) in logits[..matrix.rows].chunks_mut(each).enumerate() {
            let rows = n * each..n * each + logits.len();
            linear_exact(c, x, 1, &mut [Job::store(matrix.part(rows.clone()), logits)]);
            if c.is_stopped() {
                return;
            }
            self.weights.release(rows);
        }
    }

    /// Counts a pass over all rows, and says whether there is a copy that later choices will
    /// want.
    fn has_copy_to_keep(&self) -> bool {
        let passes = self.passes.fetch_add(1, Ordering::Relaxed) + 1;
        if passes >= MAX_PASSES
            && let Ok(mut copy) = self.copy.try_write()
            && matches!(&*copy, Short::Growing(rows) if rows.ready() > 0)
        {
            let matrix = self.weights.matrix();
            *copy = Short::Growing(ShortRows::new(matrix.rows, matrix.cols));
        }
        let copy = self.copy.read().unwrap_or_else(PoisonError::into_inner);
        matches!(&*copy, Short::Growing(rows) if rows.ready() > 0)
    }

    /// Those of the logits that `choice` can be made of, exactly; the others become -infinity.
    /// Returns true when all logits were computed, none left out.
    ///
    /// # Errors
    /// Those of [`Compute::check`]; `OutOfMemory`.
    pub fn largest(
        &self,
        c: &Compute,
        x: &[f32],
        choice: &mut Choice,
        scratch: &mut HeadScratch,
        logits: &mut [f32],
    ) -> Result<bool> {
        let choices = std::slice::from_mut(choice);
        if matches!(self.weights.matrix().weights, Weights::Tiles(..)) {
            return self.largest_rows(c, x, choices, scratch, logits);
        }
        let left_out = {
            let copy = self.copy.read().unwrap_or_else(PoisonError::into_inner);
            match &*copy {
                Short::Growing(rows) if rows.ready() > 0 => {
                    self.bounded(c, rows, x, &mut choices[0], scratch, logits)?
                }
                _ => false,
            }
        };
        if !left_out {
            self.all(c, x, 1, logits);
        }
        c.check()?;
        self.quiet.fetch_add(1, Ordering::Relaxed);
        self.passes.store(0, Ordering::Relaxed);
        self.grow(c)?;
        self.release_if_many();
        Ok(!left_out)
    }

    /// As [`Head::largest`] for several hidden states `x` (`[choices, H]`), with `logits`
    /// `[choices, vocab_size]`; each row is what it is alone.
    ///
    /// # Errors
    /// As [`Head::largest`].
    pub fn largest_rows(
        &self,
        c: &Compute,
        x: &[f32],
        choices: &mut [Choice],
        scratch: &mut HeadScratch,
        logits: &mut [f32],
    ) -> Result<bool> {
        let matrix = self.weights.matrix();
        if self.planes.are_of_use(c, &matrix, choices)
            && let Some(rows) =
                self.planes.largest(c, &matrix, x, choices, &mut scratch.planes, logits)?
        {
            self.note_rows(rows);
            return Ok(false);
        }
        self.all(c, x, choices.len(), logits);
        c.check()?;
        Ok(true)
    }

    /// What choices from the first plane of quantized weights came to.
    pub fn counts(&self) -> HeadCounts {
        self.planes.counts()
    }

    /// As [`Head::largest`], from the copy; false, with garbage in `logits`, when it cannot
    /// tell.
    fn bounded(
        &self,
        c: &Compute,
        rows: &ShortRows,
        x: &[f32],
        choice: &mut Choice,
        scratch: &mut HeadScratch,
        logits: &mut [f32],
    ) -> Result<bool> {
        let matrix = self.weights.matrix();
        let Choice { tokens, most, ref mut adjust } = *choice;
        scratch.reserve(tokens, matrix.cols)?;
        let HeadScratch { integers, lows, bounds, candidates, logits: exact, .. } = scratch;
        let (highs, beyond) = logits.split_at_mut(tokens);
        let ready = rows.ready().min(tokens);
        if !rows.bounds(c, x, integers, &mut lows[..ready], &mut highs[..ready]) {
            return Ok(false);
        }
        if ready < tokens {
            // Rows that are not copied yet: a value is its own bounds.
            let part = matrix.part(ready..tokens);
            linear_exact(c, x, 1, &mut [Job::store(part, &mut highs[ready..])]);
            lows[ready..].copy_from_slice(&highs[ready..]);
        }
        c.check()?;
        adjust(lows);
        adjust(highs);
        if !candidates_of(lows, highs, most, bounds, candidates) {
            return Ok(false);
        }
        exact.resize(candidates.len(), 0.0);
        linear_rows(c, x, &matrix, candidates, exact);
        c.check()?;
        self.touched.fetch_add(candidates.len(), Ordering::Relaxed);
        highs.fill(f32::NEG_INFINITY);
        beyond.fill(f32::NEG_INFINITY);
        for (&row, &logit) in candidates.iter().zip(&*exact) {
            highs[row as usize] = logit;
        }
        Ok(true)
    }

    /// Copies the next rows, unless somebody is just using or making the copy.
    fn grow(&self, c: &Compute) -> Result<()> {
        let Ok(mut copy) = self.copy.try_write() else { return Ok(()) };
        let Short::Growing(rows) = &mut *copy else { return Ok(()) };
        let matrix = self.weights.matrix();
        if rows.ready() == matrix.rows {
            return Ok(());
        }
        let blocks = matrix.rows.div_ceil(SHORT_BLOCK).div_ceil(STEPS);
        let mut result = Ok(());
        for _ in 0..blocks {
            // Block by block, so that hardly anything is there twice.
            let start = rows.ready();
            result = rows.extend(c, &matrix, 1);
            self.weights.release(start..rows.ready());
            if result.is_err() || rows.ready() == matrix.rows {
                break;
            }
        }
        match result {
            // A choice needs no copy.
            Err(error) if error.kind() == ErrorKind::OutOfMemory => *copy = Short::Off,
            result => return result,
        }
        Ok(())
    }

    /// Counts `rows` embedding rows that were looked up, in case they are those of the head.
    pub fn note_lookups(&self, rows: usize) {
        self.touched.fetch_add(rows, Ordering::Relaxed);
    }

    /// Counts `rows` rows of a head in two planes that were computed for a choice, and gives
    /// the second plane back when many were looked up.
    fn note_rows(&self, rows: usize) {
        if rows < MAX_COUNTED {
            // They lie together by 16.
            self.touched.fetch_add(rows / 16, Ordering::Relaxed);
        }
        let quiet = self.quiet.fetch_add(1, Ordering::Relaxed) + 1;
        if quiet >= MIN_QUIET && self.touched.load(Ordering::Relaxed) >= MAX_TOUCHED {
            self.touched.store(0, Ordering::Relaxed);
            self.weights.release_second_plane();
        }
    }

    fn release_if_many(&self) {
        if self.quiet.load(Ordering::Relaxed) < MIN_QUIET {
            return;
        }
        let Ok(copy) = self.copy.try_read() else { return };
        let Short::Growing(rows) = &*copy else { return };
        let many = self.touched.load(Ordering::Relaxed) >= MAX_TOUCHED
            || self.quiet.load(Ordering::Relaxed) == MIN_QUIET;
        if many && self.touched.swap(0, Ordering::Relaxed) > 0 {
            self.weights.release(0..rows.ready());
        }
    }
}

/// Finds the rows that can be among the `most` largest. False when that cannot be said or
/// when they are too many.
fn candidates_of(
    lows: &[f32],
    highs: &[f32],
    most: usize,
    bounds: &mut Vec<f32>,
    candidates: &mut Vec<u32>,
) -> bool {
    // At least `most` rows reach the `most`-th largest of the groups' largest.
    let (mut sound, mut largest) = (true, f32::NEG_INFINITY);
    for group in lows.chunks(GROUP) {
        let mut max = f32::NEG_INFINITY;
        for &low in group {
            sound &= !low.is_nan();
            max = if low > max { low } else { max };
        }
        largest = if max > largest { max } else { largest };
        bounds.push(max);
    }
    if !sound || most == 0 || most > bounds.len() {
        return false;
    }
    let mut bound = if most == 1 { largest } else { nth_largest(bounds, most) };
    if bound == f32::NEG_INFINITY {
        return false;
    }
    let room = lows.len() / MOST_CANDIDATES;
    for (group, highs) in highs.chunks(GROUP).enumerate() {
        let mut reached = false;
        for &high in highs {
            // What is not a number does not fall short.
            let short = high < bound;
            reached |= !short;
        }
        if !reached {
            continue;
        }
        for (n, &high) in highs.iter().enumerate() {
            let short = high < bound;
            if !short {
                if candidates.len() == room {
                    return false;
                }
                candidates.push((group * GROUP + n) as u32);
            }
        }
    }
    // All rows whose lower bound reaches the bound are among them, so that the same can be
    // said again, now of single rows.
    if candidates.len() > most {
        bounds.clear();
        bounds.extend(candidates.iter().map(|&row| lows[row as usize]));
        bound = nth_largest(bounds, most);
        candidates.retain(|&row| {
            let short = highs[row as usize] < bound;
            !short
        });
    }
    true
}

/// The `n`-th largest of `values`, which are put in another order; `n` is at least 1.
fn nth_largest(values: &mut [f32], n: usize) -> f32 {
    *values.select_nth_unstable_by(n - 1, |a, b| b.total_cmp(a)).1
}

#[cfg(test)]
mod tests;
