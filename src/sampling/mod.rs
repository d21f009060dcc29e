//! Logits to a token.
//!
//! # The order of the steps
//!
//! 1. **logit bias** is added;
//! 2. **penalties**: repetition (over prompt and output), then frequency and presence
//!    (over the output only), each over the most recent [`SamplingOptions::penalty_window`]
//!    tokens of the sequence;
//! 3. **temperature** divides; at temperature 0 the largest logit is taken here (the lowest
//!    id among equals) and nothing below applies;
//! 4. **top-k**, 5. **top-p**, 6. **min-p** remove tokens, each looking at the
//!    distribution that the step before left;
//! 7. one token is **drawn**.
//!
//! This is the order of Transformers' `generate` (processors first, then the temperature,
//! top-k, top-p and min-p warpers); presence and frequency penalties, which Transformers
//! does not have, stand directly after its repetition penalty, as in vLLM.
//!
//! # Edges
//!
//! * Rows at or above `token_count` (the padding of the output matrix) are never chosen
//!   and never looked at.
//! * A NaN or +infinity among the other rows is an [`ErrorKind::Numeric`] error, and so is
//!   nothing left to choose from (every logit -infinity). A single -infinity is a token
//!   that is never chosen.
//! * Top-k keeps every token whose logit equals the k-th largest, as Transformers does.
//! * Top-p keeps tokens from the most likely down, lower ids first among equals, as long
//!   as the mass *before* a token is less than p. One token always stays.
//!
//! # Random numbers
//!
//! xoshiro256++, seeded through splitmix64 (see [`Rng`]). Each call of
//! [`Sampler::sample`] at a temperature above 0 takes exactly one number, whatever the
//! filters leave, and greedy choice takes none: the position in the stream depends on the
//! number of tokens drawn alone. Nothing is shared between samplers.
//!
//! [`ErrorKind::Numeric`]: crate::ErrorKind::Numeric

mod options;
mod penalties;
mod rng;
mod select;

pub use options::SamplingOptions;
pub use rng::Rng;

use crate::{Error, Result};
use penalties::Penalties;
use select::{Blocks, Selection};

/// Turns logits into tokens for one sequence; owns its random stream and its scratch
/// memory, so that no token costs an allocation.
///
/// Scratch is about 12 bytes per token of the vocabulary (4 MB for Qwen3.5 with its
/// penalties), reserved when the first token is chosen and touched only as far as the options
/// need it.
#[derive(Debug)]
pub struct Sampler {
    options: SamplingOptions,
    /// Sorted by id, one entry per id.
    bias: Vec<(u32, f32)>,
    token_count: usize,
    /// A token that is not chosen, whatever its score.
    banned: Option<u32>,
    rng: Rng,
    penalties: Penalties,
    /// Logits after bias and penalties; without top-k, their weights in place.
    scores: Vec<f32>,
    blocks: Blocks,
    selection: Selection,
    /// Whether the scratch has the room that `options` need.
    prepared: bool,
}

impl Sampler {
    /// A sampler over ids `0..token_count`.
    ///
    /// # Errors
    /// `InvalidArgument` if an option is out of range ([`SamplingOptions::validate`]).
    pub fn new(options: SamplingOptions, token_count: usize) -> Result<Self> {
        options.validate(token_count)?;
        let rng = Rng::new(options.seed.unwrap_or_else(rng::fresh_seed));
        let mut sampler = Self {
            bias: Vec::new(),
            token_count,
            banned: None,
            rng,
            penalties: Penalties::default(),
            scores: Vec::new(),
            blocks: Blocks::default(),
            selection: Selection::default(),
            prepared: false,
            options: SamplingOptions::greedy(),
        };
        sampler.install(options);
        Ok(sampler)
    }

    /// Replaces the options. The random stream goes on where it is, unless
    /// `options.seed` is given: then it starts again from that seed.
    ///
    /// # Errors
    /// `InvalidArgument` if an option is out of range; nothing is changed then.
    pub fn set_options(&mut self, options: SamplingOptions) -> Result<()> {
        options.validate(self.token_count)?;
        if let Some(seed) = options.seed {
            self.rng = Rng::new(seed);
        }
        self.install(options);
        Ok(())
    }

    fn install(&mut self, options: SamplingOptions) {
        self.bias.clear();
        self.bias.extend_from_slice(&options.logit_bias);
        // Of several entries for one id the last one counts: a stable sort keeps their
        // order, and deduplication from the back keeps the last.
        self.bias.sort_by_key(|&(id, _)| id);
        self.bias.reverse();
        self.bias.dedup_by_key(|entry| entry.0);
        self.bias.reverse();
        self.options = options;
        self.prepared = false;
    }

    /// Reserves all that choosing a token by the options can need, once; [`Sampler::sample`]
    /// does so itself.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn prepare(&mut self) -> Result<()> {
        if self.prepared {
            return Ok(());
        }
        let n = self.token_count;
        let refused = |_| Error::out_of_memory("scratch of sampling", 12 * n);
        self.scores.clear();
        self.scores.try_reserve_exact(n).map_err(refused)?;
        self.blocks.reserve(n).map_err(refused)?;
        if self.options.has_penalties() {
            self.penalties.reserve(n).map_err(refused)?;
        }
        if !self.options.is_greedy() {
            self.selection.reserve(&self.options, n).map_err(refused)?;
        }
        self.prepared = true;
        Ok(())
    }

    /// A sampler that goes on as this one would: the same options, and its own copy of the
    /// random stream. Scratch is not copied.
    pub fn fork(&self) -> Self {
        Self {
            options: self.options.clone(),
            bias: self.bias.clone(),
            token_count: self.token_count,
            banned: None,
            rng: self.rng.clone(),
            penalties: Penalties::default(),
            scores: Vec::new(),
            blocks: Blocks::default(),
            selection: Selection::default(),
            prepared: false,
        }
    }

    /// Has `token` not chosen from now on; `None`: any may be. Forks do not have it.
    pub(crate) fn ban(&mut self, token: Option<u32>) {
        self.banned = token;
    }

    /// The options in force.
    pub fn options(&self) -> &SamplingOptions {
        &self.options
    }

    /// The random stream, to be saved with the session.
    pub fn rng(&self) -> &Rng {
        &self.rng
    }

    /// Puts a saved random stream back.
    pub fn set_rng(&mut self, rng: Rng) {
        self.rng = rng;
    }

    /// Chooses the next token.
    ///
    /// * `logits`: one value per id, at least `token_count`; the rest is ignored.
    /// * `sequence`: the tokens so far, prompt and output; ids outside the vocabulary are
    ///   ignored.
    /// * `output_start`: where in `sequence` the output starts (`sequence.len()` for none).
    ///
    /// # Errors
    /// `Numeric` if a logit is NaN or +infinity or no token is left, `InvalidArgument` if
    /// the lengths do not fit, `OutOfMemory` for scratch at the first token. The random stream is not moved by an error.
    pub fn sample(&mut self, logits: &[f32], sequence: &[u32], output_start: usize) -> Result<u32> {
        let edits = !self.bias.is_empty() || self.options.has_penalties();
        if self.decided_by().is_none() || edits || self.banned.is_some() {
            return self.sample_edited(logits, sequence, output_start, |_| Ok(()));
        }
        // Nobody changes a logit: no copy of them is needed.
        self.check(logits, sequence, output_start)?;
        self.prepare()?;
        let scores = &logits[..self.token_count];
        let max = self.blocks.largest(scores, logits)?;
        if self.options.is_greedy() {
            return Ok(self.blocks.first_at_max(scores, max));
        }
        let o = &self.options;
        self.selection.top_k(scores, &mut self.blocks, o.top_k, max, o.temperature);
        self.narrow();
        let uniform = self.rng.next_f64();
        Ok(self.selection.draw(&[], uniform))
    }

    /// As [`Sampler::sample`], from logits that `edit` has changed: it gets a copy of the first
    /// `token_count`, before everything else.
    ///
    /// # Errors
    /// As [`Sampler::sample`], and what `edit` returns.
    pub fn sample_edited(
        &mut self,
        logits: &[f32],
        sequence: &[u32],
        output_start: usize,
        edit: impl FnOnce(&mut [f32]) -> Result<()>,
    ) -> Result<u32> {
        let max = self.score(logits, sequence, output_start, edit)?;
        if self.options.is_greedy() {
            return Ok(self.blocks.first_at_max(&self.scores, max));
        }
        self.filter(max);
        let uniform = self.rng.next_f64();
        Ok(self.selection.draw(&self.scores, uniform))
    }

    /// The tokens that the filters leave with their probabilities, in ascending order of
    /// id; what [`Sampler::sample`] draws from. At temperature 0 it is the one token of
    /// probability 1. Allocates; moves no random stream.
    ///
    /// # Errors
    /// As [`Sampler::sample`].
    pub fn distribution(
        &mut self,
        logits: &[f32],
        sequence: &[u32],
        output_start: usize,
    ) -> Result<Vec<(u32, f64)>> {
        let max = self.score(logits, sequence, output_start, |_| Ok(()))?;
        if self.options.is_greedy() {
            return Ok(vec![(self.blocks.first_at_max(&self.scores, max), 1.0)]);
        }
        self.filter(max);
        Ok(self.selection.distribution(&self.scores))
    }

    /// How many of the largest scores decide what is chosen: tokens beyond them can be given
    /// -infinity. `None` when every token may be chosen.
    pub fn decided_by(&self) -> Option<usize> {
        match (self.options.is_greedy(), self.options.top_k) {
            (true, _) => Some(1),
            (false, 0) => None,
            (false, k) => (k < self.token_count).then_some(k),
        }
    }

    /// The tokens that can be chosen: ids `0..token_count`.
    pub fn token_count(&self) -> usize {
        self.token_count
    }

    /// Steps 1 and 2 on `scores`, one for each token that can be chosen. Each score becomes
    /// a function of itself that never falls as it rises, so that bounds stay bounds. For
    /// the other arguments see [`Sampler::sample`].
    ///
    /// # Panics
    /// If there are fewer scores than tokens, `output_start` is beyond the sequence, or
    /// [`Sampler::prepare`] was not called since the options were set.
    pub fn adjust(&mut self, scores: &mut [f32], sequence: &[u32], output_start: usize) {
        assert!(self.prepared, "without its scratch the sampler would leave penalties out");
        for &(id, bias) in &self.bias {
            scores[id as usize] += bias;
        }
        if self.options.has_penalties() {
            self.penalties.apply(&self.options, scores, sequence, output_start);
        }
        if let Some(id) = self.banned.map(|id| id as usize).filter(|id| *id < scores.len()) {
            let score = std::mem::replace(&mut scores[id], f32::NEG_INFINITY);
            // A callback that leaves nothing else has its way.
            if scores.iter().all(|score| *score == f32::NEG_INFINITY) {
                scores[id] = score;
            }
        }
    }

    /// Steps 1 and 2; the largest score.
    fn score(
        &mut self,
        logits: &[f32],
        sequence: &[u32],
        output_start: usize,
        edit: impl FnOnce(&mut [f32]) -> Result<()>,
    ) -> Result<f32> {
        self.check(logits, sequence, output_start)?;
        self.prepare()?;
        let mut scores = std::mem::take(&mut self.scores);
        scores.clear();
        scores.extend_from_slice(&logits[..self.token_count]);
        let edited = edit(&mut scores);
        self.adjust(&mut scores, sequence, output_start);
        self.scores = scores;
        edited?;
        self.blocks.largest(&self.scores, logits)
    }

    fn check(&self, logits: &[f32], sequence: &[u32], output_start: usize) -> Result<()> {
        let n = self.token_count;
        if logits.len() < n {
            return Err(Error::invalid_argument(format!(
                "sampling needs {n} logits, one per token, found {}",
                logits.len()
            )));
        }
        if output_start > sequence.len() {
            return Err(Error::invalid_argument(format!(
                "the output cannot start at token {output_start} of a sequence of {}",
                sequence.len()
            )));
        }
        Ok(())
    }

    /// Steps 3 to 6.
    fn filter(&mut self, max: f32) {
        let o = &self.options;
        if o.top_k > 0 && o.top_k < self.token_count {
            self.selection.top_k(&self.scores, &mut self.blocks, o.top_k, max, o.temperature);
        } else {
            self.selection.all(&mut self.scores, max, o.temperature);
        }
        self.narrow();
    }

    /// Steps 5 and 6.
    fn narrow(&mut self) {
        let o = &self.options;
        if o.top_p < 1.0 {
            self.selection.top_p(&mut self.scores, o.top_p);
        }
        if o.min_p > 0.0 {
            self.selection.min_p(&mut self.scores, o.min_p);
        }
    }
}

impl Blocks {
    /// Looks through `scores`, which `logits` became: the largest.
    fn largest(&mut self, scores: &[f32], logits: &[f32]) -> Result<f32> {
        match self.scan(scores) {
            Some(f32::NEG_INFINITY) => {
                Err(Error::numeric("no token is left to choose from: every logit is -infinity"))
            }
            Some(max) => Ok(max),
            None => Err(numeric(scores, logits)),
        }
    }
}

/// Says which score is not a number to choose by.
fn numeric(scores: &[f32], logits: &[f32]) -> Error {
    match scores.iter().position(|&s| select::is_bad(s)) {
        Some(id) if scores[id].to_bits() == logits[id].to_bits() => {
            Error::numeric(format!("the logit of token {id} is {}", logits[id]))
        }
        Some(id) => Error::numeric(format!(
            "the logit of token {id} is {} after edit, bias and penalties (before: {})",
            scores[id], logits[id]
        )),
        None => Error::internal("a bad logit was reported but none is found"),
    }
}
