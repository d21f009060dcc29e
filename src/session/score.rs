//! Judging text: log-probabilities, likelihood of continuations, embeddings.
//!
//! Probabilities are those of the network's logits over all rows of the vocabulary, before
//! bias, penalties and temperature, as `log_softmax` of Transformers' logits gives them. Sums
//! are taken in 64 bits.

use std::ops::ControlFlow;
use std::time::Instant;

use super::{Progress, Session};
use crate::kernels::{Buffer, Compute};
use crate::model::workspace::MAX_CHUNK;
use crate::model::{Network, State};
use crate::{Error, Result};

/// Rows of logits computed together: enough for the weights to be read seldom.
const ROWS: usize = 8;

/// How likely the model finds a text.
#[derive(Clone, Debug, PartialEq)]
pub struct Score {
    /// For each token, the logarithm of its probability after those before it.
    pub each: Vec<f32>,
    /// For each token, whether it is the most likely one (the first among equals).
    pub best: Vec<bool>,
}

impl Score {
    /// The logarithm of the probability of the whole text.
    pub fn total(&self) -> f64 {
        self.each.iter().map(|&each| f64::from(each)).sum()
    }

    /// The exponential of the mean loss of a token.
    pub fn perplexity(&self) -> f64 {
        (-self.total() / self.each.len().max(1) as f64).exp()
    }
}

/// What becomes of the hidden states of several tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pooling {
    /// Their mean.
    Mean,
    /// The last token's, which has seen all others.
    Last,
}

impl Session {
    /// The logarithms of the probabilities of `tokens`, each as the next token.
    ///
    /// # Errors
    /// `InvalidArgument` for an id outside the vocabulary; those of [`Session::logits`].
    pub fn logprobs(&mut self, tokens: &[u32]) -> Result<Vec<f32>> {
        self.check_ids(tokens)?;
        let logits = self.logits()?;
        let norm = log_sum(logits)?;
        Ok(tokens.iter().map(|&id| logprob(logits, id, norm)).collect())
    }

    /// The `count` most likely next tokens with the logarithms of their probabilities, the most
    /// likely first and lower ids first among equals.
    ///
    /// # Errors
    /// Those of [`Session::logits`]; `Numeric` if the logits hold NaN.
    pub fn top_logprobs(&mut self, count: usize) -> Result<Vec<(u32, f32)>> {
        let logits = self.logits()?;
        let norm = log_sum(logits)?;
        Ok(top(logits, count).into_iter().map(|id| (id, logprob(logits, id, norm))).collect())
    }

    /// Of the last token of the sequence, while it is not computed yet (directly after
    /// [`Session::next_token`] chose it): the logarithm of its probability, and the `count` tokens
    /// that were most likely in its place.
    ///
    /// # Errors
    /// `InvalidState` when the last token was fed, or is computed already.
    pub fn chosen_logprobs(&mut self, count: usize) -> Result<(f32, Vec<(u32, f32)>)> {
        let (computed, held) = (self.state.position, self.tokens.len());
        let chosen = match self.tokens.last() {
            Some(&last) if computed + 1 == held && computed > 0 && !self.has_input() => last,
            _ => {
                return Err(Error::invalid_state(
                    "the last call on the session did not choose a token",
                ));
            }
        };
        self.logits_at_state()?;
        let norm = log_sum(&self.logits)?;
        let top = top(&self.logits, count);
        let top = top.into_iter().map(|id| (id, logprob(&self.logits, id, norm))).collect();
        Ok((logprob(&self.logits, chosen, norm), top))
    }

    /// How likely `tokens` are as the continuation of the sequence. The session stays as it is;
    /// with `keep` the tokens become part of the sequence, as if they had been fed.
    ///
    /// # Errors
    /// `InvalidState` if the sequence is empty, `InvalidArgument` and `ContextOverflow` as
    /// [`Session::feed`]: nothing has changed. `Cancelled` and `OutOfMemory`: nothing has
    /// changed either, unless with `keep`, where the sequence ends with the last completed chunk.
    pub fn score(&mut self, tokens: &[u32], keep: bool) -> Result<Score> {
        self.check_ids(tokens)?;
        self.check_room(self.tokens.len(), tokens.len())?;
        let mut score = Score { each: Vec::new(), best: Vec::new() };
        let Some(&first) = tokens.first() else { return Ok(score) };
        let mut judge = |logits: &[f32], token: u32| -> Result<()> {
            let norm = log_sum(logits)?;
            score.each.push(logprob(logits, token, norm));
            score.best.push(top(logits, 1) == [token]);
            Ok(())
        };
        judge(self.logits()?, first)?;
        let vocabulary = self.logits.len();
        let mut logits = Buffer::zeroed(ROWS * vocabulary, "rows of logits")?;
        self.follow(tokens, keep, |network, c, rows, at| {
            // What follows the last token is not asked for.
            let hidden = network.config().hidden_size;
            let wanted = (rows.len() / hidden).min(tokens.len() - 1 - at);
            for (i, rows) in rows[..wanted * hidden].chunks(ROWS * hidden).enumerate() {
                let count = rows.len() / hidden;
                network.head_rows(c, rows, &mut logits[..count * vocabulary])?;
                for (j, logits) in logits[..count * vocabulary].chunks(vocabulary).enumerate() {
                    judge(logits, tokens[at + i * ROWS + j + 1])?;
                }
            }
            Ok(())
        })?;
        Ok(score)
    }

    /// The hidden state of `tokens` behind the sequence (an empty one, usually) after the final
    /// norm: `[hidden_size]`, pooled over these tokens. The session stays as it is.
    ///
    /// # Errors
    /// `InvalidArgument` for no tokens or an id outside the vocabulary, `ContextOverflow`,
    /// `Numeric` if a number of it is not finite, `Cancelled`, `OutOfMemory`.
    pub fn embed(&mut self, tokens: &[u32], pooling: Pooling, normalize: bool) -> Result<Vec<f32>> {
        if tokens.is_empty() {
            return Err(Error::invalid_argument("an embedding needs at least one token"));
        }
        self.check_ids(tokens)?;
        self.check_room(self.tokens.len(), tokens.len())?;
        let hidden = self.model.network()?.config().hidden_size;
        let mut sums = vec![0f64; hidden];
        self.follow(tokens, false, |_, _, rows, at| {
            let rows = match pooling {
                Pooling::Mean => rows,
                Pooling::Last if at + rows.len() / hidden < tokens.len() => return Ok(()),
                Pooling::Last => &rows[rows.len() - hidden..],
            };
            for row in rows.chunks(hidden) {
                sums.iter_mut().zip(row).for_each(|(sum, &x)| *sum += f64::from(x));
            }
            Ok(())
        })?;
        let divisor = match (normalize, pooling) {
            (true, _) => sums.iter().map(|x| x * x).sum::<f64>().sqrt().max(f64::MIN_POSITIVE),
            (false, Pooling::Mean) => tokens.len() as f64,
            (false, Pooling::Last) => 1.0,
        };
        let embedding: Vec<f32> = sums.into_iter().map(|x| (x / divisor) as f32).collect();
        match embedding.iter().position(|x| !x.is_finite()) {
            None => Ok(embedding),
            Some(at) => {
                Err(Error::numeric(format!("number {at} of the embedding is {}", embedding[at])))
            }
        }
    }

    /// Computes checked `tokens` behind the sequence, on a copy of the state unless they are to
    /// be kept, and shows the hidden states `[n, hidden_size]` of each chunk with the index of
    /// its first token.
    fn follow(
        &mut self,
        tokens: &[u32],
        keep: bool,
        mut visit: impl FnMut(&Network, &Compute, &[f32], usize) -> Result<()>,
    ) -> Result<()> {
        // A generated token that waits comes first.
        self.catch_up()?;
        let began = Instant::now();
        let mut copy = if keep { None } else { Some(self.state.try_clone()?) };
        if keep {
            let reserve = self.tokens.try_reserve(tokens.len());
            reserve.map_err(|_| Error::out_of_memory("the sequence", tokens.len() * 4))?;
        }
        let Self { model, state, cancel, progress, .. } = self;
        let state: &mut State = copy.as_mut().unwrap_or(state);
        let start = state.position;
        let mut rows = Vec::new();
        let result = model.compute(cancel.flag(), |network, c, workspace| {
            for chunk in tokens.chunks(MAX_CHUNK) {
                let at = state.position - start;
                network.forward_rows(c, chunk, state, workspace, |layer| {
                    let Some(hook) = progress else { return Ok(()) };
                    let done = at + chunk.len() * layer / network.layers();
                    match hook(Progress { done, total: tokens.len() }) {
                        ControlFlow::Continue(()) => Ok(()),
                        ControlFlow::Break(()) => {
                            Err(Error::cancelled("the progress callback cancelled"))
                        }
                    }
                })?;
                network.hidden_rows(c, workspace, &mut rows)?;
                visit(network, c, &rows, at)?;
            }
            Ok(())
        });
        let done = state.position - start;
        let result = cancel.settle(result);
        if keep {
            self.tokens.extend_from_slice(&tokens[..done]);
            self.output_start = self.tokens.len();
            self.meter.input_time(done as u64, began.elapsed());
            self.count_bytes();
        }
        result
    }
}

/// The logarithm of the sum of the exponentials.
fn log_sum(logits: &[f32]) -> Result<f64> {
    let most = logits.iter().fold(f32::NEG_INFINITY, |a, &b| if b > a { b } else { a });
    let sum: f64 = logits.iter().map(|&v| f64::from(v - most).exp()).sum();
    let norm = f64::from(most) + sum.ln();
    if norm.is_finite() {
        return Ok(norm);
    }
    let bad = logits.iter().position(|v| v.is_nan() || *v == f32::INFINITY);
    Err(Error::numeric(match bad {
        Some(id) => format!("the logit of token {id} is {}", logits[id]),
        None => "every logit is -infinity".to_owned(),
    }))
}

fn logprob(logits: &[f32], id: u32, norm: f64) -> f32 {
    (f64::from(logits[id as usize]) - norm) as f32
}

/// The ids of the `count` largest logits, in order.
fn top(logits: &[f32], count: usize) -> Vec<u32> {
    let count = count.min(logits.len());
    if count == 0 {
        return Vec::new();
    }
    let before =
        |a: &u32, b: &u32| logits[*b as usize].total_cmp(&logits[*a as usize]).then(a.cmp(b));
    if count == 1 {
        let first = (0..logits.len() as u32).min_by(before);
        return first.into_iter().collect();
    }
    let mut ids: Vec<u32> = (0..logits.len() as u32).collect();
    ids.select_nth_unstable_by(count - 1, before);
    ids.truncate(count);
    ids.sort_unstable_by(before);
    ids
}
