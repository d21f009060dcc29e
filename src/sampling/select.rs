//! Finding the few tokens that matter among a quarter of a million, without sorting.
//!
//! Everything is a plain pass over `f32` slices that the compiler vectorises on any
//! CPU: block maxima first (they check for NaN on the way), then only the blocks that can
//! hold a candidate are looked at again.

use std::collections::TryReserveError;

use super::SamplingOptions;

/// Scores are looked at in blocks of this many.
const BLOCK: usize = 256;
/// Independent accumulators of a vectorised pass.
const LANES: usize = 16;

/// The largest score of each block.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    max: Vec<f32>,
    /// A copy of `max` to select in.
    work: Vec<f32>,
}

impl Blocks {
    /// Makes room for the blocks of `scores` scores.
    pub(super) fn reserve(&mut self, scores: usize) -> Result<(), TryReserveError> {
        let blocks = scores.div_ceil(BLOCK);
        self.max.clear();
        self.work.clear();
        self.max.try_reserve_exact(blocks)?;
        self.work.try_reserve_exact(blocks)
    }

    /// Finds the maximum of every block; returns the largest score, or `None` if a score
    /// is NaN or +infinity.
    pub(super) fn scan(&mut self, scores: &[f32]) -> Option<f32> {
        self.max.clear();
        let mut good = true;
        let mut largest = f32::NEG_INFINITY;
        for block in scores.chunks(BLOCK) {
            let (max, ok) = scan_block(block);
            good &= ok;
            self.max.push(max);
            largest = if max > largest { max } else { largest };
        }
        good.then_some(largest)
    }

    /// The lowest index whose score is `max`, the largest score.
    pub(super) fn first_at_max(&self, scores: &[f32], max: f32) -> u32 {
        let block = self.max.iter().position(|&m| m == max).unwrap_or(0);
        let start = block * BLOCK;
        let inside = scores[start..].iter().position(|&s| s == max).unwrap_or(0);
        (start + inside) as u32
    }

    /// A score that at least `k` scores reach: the k-th largest block maximum.
    fn reached_by(&mut self, k: usize) -> f32 {
        if k > self.max.len() {
            return f32::NEG_INFINITY;
        }
        self.work.clear();
        self.work.extend_from_slice(&self.max);
        let (_, kth, _) = self.work.select_nth_unstable_by(k - 1, |a, b| b.total_cmp(a));
        *kth
    }
}

/// No score to choose by: NaN or +infinity.
#[inline(always)]
pub(super) fn is_bad(score: f32) -> bool {
    score.is_nan() || score == f32::INFINITY
}

/// The maximum, and whether all are below +infinity (NaN is not).
fn scan_block(block: &[f32]) -> (f32, bool) {
    let mut max = [f32::NEG_INFINITY; LANES];
    let mut bad = [0u32; LANES];
    let mut chunks = block.chunks_exact(LANES);
    for chunk in &mut chunks {
        for lane in 0..LANES {
            let x = chunk[lane];
            max[lane] = if x > max[lane] { x } else { max[lane] };
            bad[lane] |= u32::from(is_bad(x));
        }
    }
    let mut largest = f32::NEG_INFINITY;
    let mut bad = bad.iter().any(|&b| b != 0);
    for &x in max.iter().chain(chunks.remainder()) {
        largest = if x > largest { x } else { largest };
        bad |= is_bad(x);
    }
    (largest, !bad)
}

/// The tokens still in play: `weights[i]` belongs to id `ids[i]`, ascending; 0 is removed.
///
/// Without top-k the weights of the whole vocabulary stand in the sampler's score buffer,
/// which every method therefore takes as `scores`, and `ids` is empty.
#[derive(Debug, Default)]
pub(super) struct Selection {
    dense: bool,
    ids: Vec<u32>,
    weights: Vec<f32>,
    /// (weight, index) pairs for selecting.
    work: Vec<(f32, u32)>,
    /// The mass of each class of weights.
    masses: Vec<f64>,
}

impl Selection {
    /// Reserves what a worst-case token needs, so that none allocates.
    pub(super) fn reserve(
        &mut self,
        options: &SamplingOptions,
        token_count: usize,
    ) -> Result<(), TryReserveError> {
        self.ids.clear();
        self.weights.clear();
        self.work.clear();
        if options.top_k > 0 {
            // Equal logits can make every token a candidate.
            self.ids.try_reserve_exact(token_count)?;
            self.weights.try_reserve_exact(token_count)?;
            self.work.try_reserve_exact(token_count)?;
        } else if options.top_p < 1.0 {
            self.work.try_reserve_exact(token_count)?;
        }
        self.masses.clear();
        self.masses.try_reserve_exact(CLASSES)
    }

    /// Keeps the `k` largest scores and those equal to the k-th. `k` > 0.
    pub(super) fn top_k(
        &mut self,
        scores: &[f32],
        blocks: &mut Blocks,
        k: usize,
        max: f32,
        temperature: f32,
    ) {
        self.dense = false;
        self.ids.clear();
        self.weights.clear();
        // Every score of the k largest reaches this bound, and on real logits little else.
        let bound = blocks.reached_by(k);
        for (index, block) in scores.chunks(BLOCK).enumerate() {
            if blocks.max[index] < bound {
                continue;
            }
            for (offset, &score) in block.iter().enumerate() {
                if score >= bound && score > f32::NEG_INFINITY {
                    self.ids.push((index * BLOCK + offset) as u32);
                    self.weights.push(score);
                }
            }
        }
        if self.ids.len() > k {
            self.work.clear();
            self.work.extend(self.weights.iter().map(|&w| (w, 0)));
            let (_, kth, _) = self.work.select_nth_unstable_by(k - 1, |a, b| b.0.total_cmp(&a.0));
            let bound = kth.0;
            let mut kept = 0;
            for i in 0..self.ids.len() {
                if self.weights[i] >= bound {
                    self.ids[kept] = self.ids[i];
                    self.weights[kept] = self.weights[i];
                    kept += 1;
                }
            }
            self.ids.truncate(kept);
            self.weights.truncate(kept);
        }
        weigh(&mut self.weights, max, temperature);
    }

    /// Keeps every token: turns `scores` into weights in place.
    pub(super) fn all(&mut self, scores: &mut [f32], max: f32, temperature: f32) {
        self.dense = true;
        weigh(scores, max, temperature);
    }

    fn weights<'a>(&'a self, scores: &'a [f32]) -> &'a [f32] {
        if self.dense { scores } else { &self.weights }
    }

    /// Keeps the most likely tokens, lower index first among equals, as long as the mass
    /// before a token is below `p` of the total; at least one.
    ///
    /// The masses of classes of similar weight tell in which class the last kept token is;
    /// only that class is put in order, and only as far as needed.
    pub(super) fn top_p(&mut self, scores: &mut [f32], p: f32) {
        let Self { dense, weights, work, masses, .. } = self;
        let weights: &mut [f32] = if *dense { scores } else { weights };
        masses.clear();
        masses.resize(CLASSES, 0.0);
        for &w in &*weights {
            masses[class(w)] += f64::from(w);
        }
        let target = f64::from(p) * masses.iter().sum::<f64>();
        // What is heavier than the class weighs `above`, and is all kept.
        let (mut last_class, mut above) = (0, 0.0);
        for (class, &mass) in masses.iter().enumerate().rev().filter(|&(_, &mass)| mass > 0.0) {
            last_class = class;
            if above + mass >= target {
                break;
            }
            above += mass;
        }
        work.clear();
        let members = weights.iter().zip(0u32..).filter(|&(&w, _)| class(w) == last_class);
        work.extend(members.map(|(&w, i)| (w, i)));
        // Halving search: what lies before `low` is kept and weighs `above`; what lies at
        // or after `high` is not kept.
        let (mut low, mut high) = (0, work.len());
        while high - low > 1 {
            let half = (high - low) / 2;
            let part = &mut work[low..high];
            part.select_nth_unstable_by(half, |a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
            let mass: f64 = part[..half].iter().map(|&(w, _)| f64::from(w)).sum();
            if above + mass >= target {
                high = low + half;
            } else {
                above += mass;
                low += half;
            }
        }
        let Some(&(last, last_index)) = work.get(low) else { return };
        for (w, i) in weights.iter_mut().zip(0u32..) {
            let keep = *w > last || (*w == last && i <= last_index);
            *w = if keep { *w } else { 0.0 };
        }
    }

    /// Keeps tokens at least `p` times as likely as the most likely, whose weight is 1.
    pub(super) fn min_p(&mut self, scores: &mut [f32], p: f32) {
        let weights: &mut [f32] = if self.dense { scores } else { &mut self.weights };
        for w in weights {
            *w = if *w >= p { *w } else { 0.0 };
        }
    }

    /// The id at `uniform` (in [0, 1)) of the total weight, walking in order of id.
    pub(super) fn draw(&self, scores: &[f32], uniform: f64) -> u32 {
        let weights = self.weights(scores);
        let target = uniform * sum(weights);
        let mut before = 0.0f64;
        let mut chosen = 0;
        for (block, part) in weights.chunks(BLOCK).enumerate() {
            let mass = sum_block(part);
            if before + mass <= target {
                before += mass;
                // Rounding may leave the target just beyond the last weight: then the
                // last token with any weight is the one.
                if let Some(last) = part.iter().rposition(|&w| w > 0.0) {
                    chosen = block * BLOCK + last;
                }
                continue;
            }
            for (i, &w) in part.iter().enumerate() {
                if w > 0.0 {
                    chosen = block * BLOCK + i;
                    before += f64::from(w);
                    if before > target {
                        break;
                    }
                }
            }
            break;
        }
        if self.dense { chosen as u32 } else { self.ids[chosen] }
    }

    /// The ids left and their probabilities.
    pub(super) fn distribution(&self, scores: &[f32]) -> Vec<(u32, f64)> {
        let weights = self.weights(scores);
        let total = sum(weights);
        let id = |i: usize| if self.dense { i as u32 } else { self.ids[i] };
        (weights.iter().enumerate().filter(|&(_, &w)| w > 0.0))
            .map(|(i, &w)| (id(i), f64::from(w) / total))
            .collect()
    }
}

/// Weights whose exponent and first four bits agree: the bits of a float of 0 to 1 without
/// their last 19.
fn class(weight: f32) -> usize {
    (weight.to_bits() >> 19) as usize & (CLASSES - 1)
}

const CLASSES: usize = 2048;

/// The total weight: f32 within a block, f64 over blocks.
fn sum(weights: &[f32]) -> f64 {
    weights.chunks(BLOCK).map(sum_block).sum()
}

fn sum_block(block: &[f32]) -> f64 {
    let mut lanes = [0.0f32; LANES];
    let mut chunks = block.chunks_exact(LANES);
    for chunk in &mut chunks {
        for lane in 0..LANES {
            lanes[lane] += chunk[lane];
        }
    }
    lanes.iter().chain(chunks.remainder()).map(|&x| f64::from(x)).sum()
}

/// score -> exp((score - max) / temperature), so that the heaviest weight is exactly 1:
/// no temperature, however small, can overflow.
fn weigh(scores: &mut [f32], max: f32, temperature: f32) {
    for score in scores {
        *score = exp_of_negative((*score - max) / temperature);
    }
}

/// e^x for x <= 0 (-infinity too), to about 1e-7 of the value; 0 below -87, where a
/// probability is far below 2^-53.
///
/// x = n ln 2 + r with |r| <= ln 2 / 2; e^r by its Taylor polynomial, 2^n by exponent
/// bits. Adding 1.5 * 2^23 rounds to an integer that then stands in the low bits.
#[inline(always)]
fn exp_of_negative(x: f32) -> f32 {
    const ROUND: f32 = 12_582_912.0;
    let clamped = if x > -87.0 { x } else { -87.0 };
    let shifted = clamped * std::f32::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    // ln 2 in two parts; the first has few enough bits that n times it is exact.
    let r = clamped - n * 0.693_359_4 - n * -2.121_944_4e-4;
    let mut e = 1.0 / 5040.0;
    e = e * r + 1.0 / 720.0;
    e = e * r + 1.0 / 120.0;
    e = e * r + 1.0 / 24.0;
    e = e * r + 1.0 / 6.0;
    e = e * r + 0.5;
    e = e * r + 1.0;
    e = e * r + 1.0;
    let power = f32::from_bits(shifted.to_bits().wrapping_add(127) << 23);
    if x > -87.0 { e * power } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_is_close_everywhere() {
        assert_eq!(exp_of_negative(0.0), 1.0);
        assert_eq!(exp_of_negative(-0.0), 1.0);
        assert_eq!(exp_of_negative(f32::NEG_INFINITY), 0.0);
        assert_eq!(exp_of_negative(-1e30), 0.0);
        let mut worst = 0.0f64;
        for i in 0..870_000 {
            let x = -(i as f32) * 1e-4;
            let want = f64::from(x).exp();
            worst = worst.max((f64::from(exp_of_negative(x)) - want).abs() / want);
        }
        assert!(worst < 3e-7, "{worst}");
    }

    #[test]
    fn scan_sees_every_position() {
        for n in [1, 15, 16, 17, 255, 256, 257, 1000] {
            let mut blocks = Blocks::default();
            blocks.reserve(n).unwrap();
            for bad in [f32::NAN, -f32::NAN, f32::INFINITY] {
                for at in 0..n {
                    let mut scores = vec![-1.0; n];
                    scores[at] = bad;
                    assert_eq!(blocks.scan(&scores), None, "{bad} at {at} of {n}");
                    scores[at] = 2.0;
                    assert_eq!(blocks.scan(&scores), Some(2.0));
                    assert_eq!(blocks.first_at_max(&scores, 2.0), at as u32);
                }
            }
        }
    }
}
