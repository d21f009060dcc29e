//! Repetition, frequency and presence penalties over the recent tokens.

use std::collections::TryReserveError;

use super::SamplingOptions;

/// Counts of the tokens in the window; zero everywhere between calls.
#[derive(Debug, Default)]
pub(super) struct Penalties {
    /// Per id: how often it occurs in what is being looked at.
    counts: Vec<u32>,
    /// The ids with a count, to be cleared again.
    touched: Vec<u32>,
}

impl Penalties {
    /// Makes room for ids `0..token_count`.
    pub(super) fn reserve(&mut self, token_count: usize) -> Result<(), TryReserveError> {
        self.counts.try_reserve_exact(token_count.saturating_sub(self.counts.len()))?;
        self.counts.resize(token_count, 0);
        self.touched.try_reserve_exact(token_count)
    }

    /// Applies the penalties of `options` to `scores`.
    pub(super) fn apply(
        &mut self,
        options: &SamplingOptions,
        scores: &mut [f32],
        sequence: &[u32],
        output_start: usize,
    ) {
        let window = options.penalty_window.unwrap_or(usize::MAX);
        let start = sequence.len().saturating_sub(window);
        let repetition = options.repetition_penalty;
        if repetition != 1.0 {
            self.for_each(&sequence[start..], scores, |score, _| {
                if score < 0.0 { score * repetition } else { score / repetition }
            });
        }
        let (presence, frequency) = (options.presence_penalty, options.frequency_penalty);
        if presence != 0.0 || frequency != 0.0 {
            self.for_each(&sequence[start.max(output_start)..], scores, |score, count| {
                score - frequency * count as f32 - presence
            });
        }
    }

    /// Calls `f(score, occurrences)` once per different id in `tokens`.
    fn for_each(&mut self, tokens: &[u32], scores: &mut [f32], f: impl Fn(f32, u32) -> f32) {
        for &id in tokens {
            let Some(count) = self.counts.get_mut(id as usize) else { continue };
            if *count == 0 {
                self.touched.push(id);
            }
            *count = count.saturating_add(1);
        }
        for id in self.touched.drain(..) {
            let count = std::mem::take(&mut self.counts[id as usize]);
            let score = &mut scores[id as usize];
            *score = f(*score, count);
        }
    }
}
