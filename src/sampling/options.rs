//! How tokens are chosen: the options and their ranges.

use crate::{Error, Result};

/// How the next token is chosen. The order of the steps is in the documentation of
/// [`crate::sampling`].
#[derive(Clone, Debug, PartialEq)]
pub struct SamplingOptions {
    /// Divides the logits: 0 (or -0) always takes the most likely token, the lowest id
    /// among equals; below 1 sharpens, above 1 flattens. Finite, at least 0.
    pub temperature: f32,
    /// Keeps the k most likely tokens (and those that equal the k-th); 0 is off.
    pub top_k: usize,
    /// Keeps the most likely tokens that together reach this probability; 1 is off, 0
    /// keeps one token. From 0 to 1.
    pub top_p: f32,
    /// Keeps tokens at least this fraction as likely as the most likely; 0 is off, 1 keeps
    /// the most likely and its equals. From 0 to 1.
    pub min_p: f32,
    /// Divides a positive logit and multiplies a negative one for every token that the
    /// window of prompt and output holds; 1 is off. Finite, above 0.
    pub repetition_penalty: f32,
    /// Subtracted once for every token that the output holds within the window; 0 is off.
    /// Finite.
    pub presence_penalty: f32,
    /// Subtracted once per occurrence in the output within the window; 0 is off. Finite.
    pub frequency_penalty: f32,
    /// The penalties look at this many of the most recent tokens of the sequence (prompt
    /// and output together); `None` is the whole sequence, `Some(0)` turns them off.
    pub penalty_window: Option<usize>,
    /// Added to the logits of single tokens, before everything else and in greedy choice
    /// too: `(id, bias)`. -infinity bans a token. Of several entries for one id the last
    /// one counts.
    pub logit_bias: Vec<(u32, f32)>,
    /// Start of the random stream; `None` takes a fresh one from the system.
    pub seed: Option<u64>,
}

impl Default for SamplingOptions {
    /// What the model card recommends for text without thinking: temperature 1, top-k 20,
    /// top-p 1, min-p 0, presence penalty 2, repetition penalty 1.
    fn default() -> Self {
        Self {
            temperature: 1.0,
            top_k: 20,
            top_p: 1.0,
            min_p: 0.0,
            repetition_penalty: 1.0,
            presence_penalty: 2.0,
            frequency_penalty: 0.0,
            penalty_window: None,
            logit_bias: Vec::new(),
            seed: None,
        }
    }
}

impl SamplingOptions {
    /// Always the most likely token: temperature 0, no penalties, no bias.
    pub fn greedy() -> Self {
        Self { temperature: 0.0, top_k: 0, presence_penalty: 0.0, ..Self::default() }
    }

    /// Whether the most likely token is always taken.
    pub fn is_greedy(&self) -> bool {
        self.temperature == 0.0
    }

    pub(super) fn has_penalties(&self) -> bool {
        self.penalty_window != Some(0)
            && (self.repetition_penalty != 1.0
                || self.presence_penalty != 0.0
                || self.frequency_penalty != 0.0)
    }

    /// Checks every option against its range, and the ids of the bias against
    /// `token_count` (the number of tokens that can be chosen).
    ///
    /// # Errors
    /// `InvalidArgument`, naming the option, its range and the value found.
    pub fn validate(&self, token_count: usize) -> Result<()> {
        if token_count == 0 || u32::try_from(token_count).is_err() {
            return Err(Error::invalid_argument(format!(
                "sampling needs a vocabulary of 1 to 2^32 - 1 tokens, found {token_count}"
            )));
        }
        check("temperature", self.temperature, "finite and at least 0", |v| v >= 0.0)?;
        check("top_p", self.top_p, "from 0 to 1", |v| (0.0..=1.0).contains(&v))?;
        check("min_p", self.min_p, "from 0 to 1", |v| (0.0..=1.0).contains(&v))?;
        check("repetition_penalty", self.repetition_penalty, "finite and above 0", |v| v > 0.0)?;
        check("presence_penalty", self.presence_penalty, "finite", |_| true)?;
        check("frequency_penalty", self.frequency_penalty, "finite", |_| true)?;
        for &(id, bias) in &self.logit_bias {
            if id as usize >= token_count {
                return Err(Error::invalid_argument(format!(
                    "logit_bias names token {id}, but ids end at {}",
                    token_count - 1
                )));
            }
            if bias.is_nan() || bias == f32::INFINITY {
                return Err(Error::invalid_argument(format!(
                    "logit_bias of token {id} must be a number or -infinity, found {bias}"
                )));
            }
        }
        Ok(())
    }
}

fn check(name: &str, value: f32, range: &str, ok: impl Fn(f32) -> bool) -> Result<()> {
    if value.is_finite() && ok(value) {
        return Ok(());
    }
    Err(Error::invalid_argument(format!("{name} must be {range}, found {value}")))
}
