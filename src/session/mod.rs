//! A sequence being continued: feed tokens, take the next one.
//!
//! A [`Session`] holds the ids of its sequence and the network's state after them. The last
//! id may not be computed yet: [`Session::next_token`] returns a token at once and computes
//! it when the following one is asked for. Logits are computed only when needed, from the
//! hidden state of the last token.
//!
//! Every call is a transaction per chunk: when it is cancelled or fails, the session stands
//! at the last chunk that was completed, and goes on from there.

mod batch;
mod cancel;
mod chat;
mod edit;
mod fork;
mod marks;
mod output;
mod overflow;
mod prefix;
mod save;
mod score;
mod sequence;
mod statistics;
mod step;

use std::ops::ControlFlow;

pub use batch::batch_step;
pub use cancel::CancelHandle;
pub use chat::Extent;
pub use edit::LogitsHook;
pub use marks::{DEFAULT_MARKS, MarkInfo};
pub use overflow::Overflow;
pub use prefix::Fed;
pub(crate) use save::{MAGIC as SAVED_MAGIC, replace_file};
pub use save::{MAX_ATTACHMENT, SaveOptions};
pub use score::{Pooling, Score};
pub use step::Step;

use crate::engine::Model;
use crate::kernels::{Cancel, KvElement};
use crate::model::workspace::MAX_CHUNK;
use crate::model::{Choice, State};
use crate::sampling::{Sampler, SamplingOptions};
use crate::tokenizer::AddedTokens;
use crate::{Error, Result};
use marks::Marks;
use overflow::{LeftOut, Shortened};
use sequence::Sequence;
use statistics::Meter;
use step::{Stepping, report};

/// How to make a session.
#[derive(Clone, Debug, Default)]
pub struct SessionOptions {
    /// Most tokens the sequence may hold; 0: what the model was made for.
    pub context_limit: usize,
    /// How the next token is chosen.
    pub sampling: SamplingOptions,
    /// Most marks held, the library's own included; 0: [`DEFAULT_MARKS`]. Each costs a
    /// recurrent state (19 MB at 0.8B).
    pub mark_limit: usize,
    /// Shares computed beginnings, through the model's prefix cache, with the sessions that
    /// name the same namespace, and with no others; `None`: with nobody. Whoever shares can
    /// find out by the time a prompt takes that somebody fed the same beginning: give users
    /// that must not know of each other namespaces of their own.
    pub cache_namespace: Option<u64>,
    /// What happens to a conversation that does not fit.
    pub overflow: Overflow,
    /// How keys and values are stored; `None`: [`Model::default_kv`]. Prefixes are shared by
    /// sessions of the same format only, and a saved session goes on in its own format only.
    pub kv: Option<KvElement>,
}

/// What [`Session::next_token`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// A token, now part of the sequence.
    Token(u32),
    /// A token that ends the turn, now part of the sequence.
    EndOfTurn(u32),
    /// The sequence is as long as its limit; nothing was added.
    LimitReached,
}

/// How far a long call has come, in tokens of that call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Tokens computed, counting layers of the running chunk as fractions.
    pub done: usize,
    /// Tokens to compute.
    pub total: usize,
}

/// Called between layers on the calling thread; `Break` cancels the call.
pub type ProgressHook = Box<dyn FnMut(Progress) -> ControlFlow<()> + Send + Sync>;

/// One sequence and its state. Many sessions share one [`Model`], which they keep open.
pub struct Session {
    model: Model,
    state: State,
    /// The sequence. Ids from `state.position` on are part of it but not computed: queued
    /// input, or (one at most, before that) the token generated last.
    tokens: Sequence,
    /// `[vocab_size]`, those after the last token if `logits_position` says so; empty before
    /// they are first asked for.
    logits: Vec<f32>,
    logits_position: Option<usize>,
    sampler: Sampler,
    /// Where the model's own output begins, for penalties that count output only.
    output_start: usize,
    context_limit: usize,
    cancel: CancelHandle,
    progress: Option<ProgressHook>,
    logits_hook: Option<LogitsHook>,
    kv: KvElement,
    marks: Marks,
    namespace: Option<u64>,
    overflow: Overflow,
    /// Turns that the conversation held was shortened by.
    left_out: LeftOut,
    /// The caller's own bytes, saved with the session.
    attachment: Vec<u8>,
    last_fed: Fed,
    stepping: Stepping,
    meter: Meter,
}

impl Session {
    /// An empty sequence on `model`.
    ///
    /// # Errors
    /// `InvalidState` if the model has no weights, `InvalidArgument` for options out of
    /// range, `OutOfMemory`.
    pub fn new(model: &Model, options: SessionOptions) -> Result<Self> {
        let config = model.network()?.config();
        let most = config.max_position_embeddings;
        let context_limit = match options.context_limit {
            0 => most,
            limit if limit <= most => limit,
            limit => {
                return Err(Error::invalid_argument(format!(
                    "context_limit {limit}: the model was made for {most} positions at most"
                )));
            }
        };
        let sampler = Sampler::new(options.sampling, model.tokenizer().token_count())?;
        let kv = options.kv.unwrap_or(model.default_kv());
        let mut session = Self {
            state: State::new(config, kv)?,
            kv,
            model: model.clone(),
            tokens: Sequence::default(),
            logits: Vec::new(),
            logits_position: None,
            sampler,
            output_start: 0,
            context_limit,
            cancel: CancelHandle::default(),
            progress: None,
            logits_hook: None,
            marks: Marks::new(options.mark_limit),
            namespace: options.cache_namespace,
            overflow: options.overflow,
            left_out: LeftOut::default(),
            attachment: Vec::new(),
            last_fed: Fed::default(),
            stepping: Stepping::default(),
            meter: Meter::new(model),
        };
        session.count_bytes();
        Ok(session)
    }

    /// The model.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// The sequence: fed and generated ids, in order.
    pub fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    /// The length of the sequence.
    pub fn position(&self) -> usize {
        self.tokens.len()
    }

    /// How keys and values are stored.
    pub fn kv(&self) -> KvElement {
        self.kv
    }

    /// Most tokens the sequence may hold.
    pub fn context_limit(&self) -> usize {
        self.context_limit
    }

    /// A handle by which any thread can cancel the call in progress.
    pub fn cancel_handle(&self) -> CancelHandle {
        self.cancel.clone()
    }

    /// Forgets a cancel that no call has answered: one that came too late for the call it was
    /// meant for, and would end the next one.
    pub fn clear_cancel(&mut self) {
        self.cancel.take();
    }

    /// Chooses tokens by `options` from now on. The random stream starts anew if they hold a
    /// seed, else it goes on.
    ///
    /// # Errors
    /// `InvalidArgument`; the session samples as before.
    pub fn set_sampling(&mut self, options: SamplingOptions) -> Result<()> {
        self.sampler.set_options(options)
    }

    /// Calls `hook` during long calls; `None` ends that.
    pub fn set_progress(&mut self, hook: Option<ProgressHook>) {
        self.progress = hook;
    }

    /// Empties the sequence and drops its marks. Sampling options and attachment stay, the
    /// random stream goes on; a cancel that no call has answered yet is forgotten.
    ///
    /// # Errors
    /// `OutOfMemory`; the session is as before.
    pub fn reset(&mut self) -> Result<()> {
        if !self.state.clear(self.model.network()?.config()) {
            self.state = self.empty_state()?;
        }
        self.tokens.clear();
        self.output_start = 0;
        self.logits_position = None;
        self.marks.held.clear();
        self.left_out = LeftOut::default();
        self.meter.input_ends();
        self.last_fed = Fed::default();
        self.drop_queue();
        self.cancel.take();
        self.count_bytes();
        Ok(())
    }

    /// Appends `tokens` to the sequence and computes them.
    ///
    /// If they do not fit and the options say [`Overflow::DropTurns`], the oldest whole turns
    /// of a user are left out, where the sequence has any (control token and role, as a chat
    /// template writes them) and the newest fits; [`Session::last_fed`] says how much. What is
    /// in front of the first one stays.
    ///
    /// # Errors
    /// Before anything is consumed: `InvalidArgument` for an id without a row in the
    /// embedding, `ContextOverflow` if they do not fit. Afterwards: `Cancelled`,
    /// `OutOfMemory`; [`Session::position`] then tells how many were taken.
    pub fn feed(&mut self, tokens: &[u32]) -> Result<()> {
        if tokens.is_empty() {
            // Nothing happens: penalties go on counting from where the output began.
            return Ok(());
        }
        self.last_fed = Fed::default();
        self.check_ids(tokens)?;
        self.take(tokens, Self::append, Self::hold)
    }

    /// Takes checked `tokens` by `append` if they fit, else what is left of all by `hold`.
    fn take(
        &mut self,
        tokens: &[u32],
        append: impl FnOnce(&mut Self, &[u32]) -> Result<()>,
        hold: impl FnOnce(&mut Self, &[u32]) -> Result<Fed>,
    ) -> Result<()> {
        self.last_fed = match self.shortened(tokens)? {
            None => {
                append(self, tokens)?;
                Fed { total: self.tokens.len(), computed: tokens.len(), ..Fed::default() }
            }
            Some(Shortened { ids, kept, dropped }) => {
                // Known even if computing is cancelled: the sequence has become another.
                let left_out = Fed { dropped_tokens: dropped, kept_tokens: kept, ..Fed::default() };
                self.last_fed = Fed { total: ids.len(), ..left_out };
                let fed = hold(self, &ids)?;
                Fed { dropped_tokens: dropped, kept_tokens: kept, ..fed }
            }
        };
        Ok(())
    }

    /// Tokenizes `text` and feeds it, see [`Session::feed`]. Returns the number of tokens.
    ///
    /// # Errors
    /// As [`Session::feed`].
    pub fn feed_text(&mut self, text: &str, added: AddedTokens) -> Result<usize> {
        let mut ids = Vec::new();
        self.model.tokenizer().encode(text, added, &mut ids);
        self.feed(&ids)?;
        Ok(ids.len())
    }

    /// Chooses the next token and appends it. After an end of turn this goes on generating;
    /// whether to do so is the caller's choice.
    ///
    /// # Errors
    /// `InvalidState` if the sequence is empty, `Cancelled` (also by the logits hook), `Numeric` if the logits hold
    /// NaN or leave nothing to choose. The sequence is as before.
    pub fn next_token(&mut self) -> Result<Next> {
        if self.tokens.len() >= self.context_limit {
            return self.cancel.check().map(|()| Next::LimitReached);
        }
        self.metered(|session| {
            session.compute_choice()?;
            let token = session.choose()?;
            session.generate(token)
        })
    }

    /// Appends `token`, which was chosen.
    fn generate(&mut self, token: u32) -> Result<Next> {
        self.tokens.try_reserve(1).map_err(|_| Error::out_of_memory("the sequence", 4))?;
        self.tokens.push(token);
        self.stepping.forget_input();
        self.meter.token();
        Ok(if self.model.end_of_turn_ids().contains(&token) {
            Next::EndOfTurn(token)
        } else {
            Next::Token(token)
        })
    }

    /// Logits `[vocab_size]` of the token after the sequence.
    ///
    /// # Errors
    /// `InvalidState` if the sequence is empty, `Cancelled`.
    pub fn logits(&mut self) -> Result<&[f32]> {
        self.metered(Self::compute_logits)?;
        Ok(&self.logits)
    }

    /// The state before the first token.
    fn empty_state(&self) -> Result<State> {
        State::new(self.model.network()?.config(), self.kv)
    }

    fn check_ids(&self, tokens: &[u32]) -> Result<()> {
        let rows = self.model.network()?.config().vocab_size;
        match tokens.iter().position(|id| *id as usize >= rows) {
            None => Ok(()),
            Some(at) => Err(Error::invalid_argument(format!(
                "token id {} at index {at}: the vocabulary has {rows} rows",
                tokens[at]
            ))),
        }
    }

    /// Whether `more` tokens fit behind the first `held`.
    fn check_room(&self, held: usize, more: usize) -> Result<()> {
        let free = self.context_limit - held;
        if more <= free {
            return Ok(());
        }
        Err(Error::context_overflow(format!(
            "{more} tokens do not fit: {held} of {} positions are taken, {free} are free; \
             nothing was consumed",
            self.context_limit
        )))
    }

    /// Appends checked `tokens` and computes all that is not computed yet. On an error the
    /// sequence ends with the last completed chunk.
    fn append(&mut self, tokens: &[u32]) -> Result<()> {
        self.queue(tokens)?;
        self.compute_input()
    }

    /// Computes what is queued; what an error leaves uncomputed is dropped.
    pub(crate) fn compute_input(&mut self) -> Result<()> {
        let result = self.metered(Self::catch_up);
        if result.is_err() {
            self.drop_queue();
        }
        result
    }

    /// Computes the tokens behind `state.position`.
    fn catch_up(&mut self) -> Result<()> {
        self.cancel.check()?;
        let (start, total) = (self.state.position, self.remaining());
        self.finish_pass(total)?;
        while self.remaining() > 0 {
            let end = self.chunk_end(MAX_CHUNK);
            let Self { model, state, tokens, cancel, progress, .. } = self;
            let flag: &Cancel = cancel.flag();
            let result = model.compute(flag, |network, c, workspace| {
                let (first, layers) = (state.position, network.layers());
                network.forward(c, &tokens[first..end], state, workspace, |layer| {
                    let done = first - start + (end - first) * layer / layers;
                    report(progress, Progress { done, total })
                })
            });
            cancel.settle(result)?;
            self.mark_turn()?;
        }
        self.stepping.forget_input();
        Ok(())
    }

    /// Brings `logits` up to the end of the sequence as far as the choice of the next token
    /// depends on them; the others are -infinity then.
    fn compute_choice(&mut self) -> Result<()> {
        // A hook may do anything with a logit.
        let most = self.sampler.decided_by().filter(|_| self.logits_hook.is_none());
        let Some(most) = most else { return self.compute_logits() };
        self.compute_hidden()?;
        if self.logits_position == Some(self.state.position) {
            return Ok(());
        }
        self.logits_position = None;
        self.state.unfinished = None;
        self.reserve_logits()?;
        self.sampler.prepare()?;
        let Self { model, state, logits, cancel, sampler, tokens, output_start, .. } = self;
        let count = sampler.token_count();
        let result = model.compute(cancel.flag(), |network, c, workspace| {
            let adjust = &mut |scores: &mut [f32]| sampler.adjust(scores, tokens, *output_start);
            let hidden = &state.last_hidden;
            let mut choice = Choice { tokens: count, most, adjust };
            network.head_largest(c, hidden, &mut choice, workspace, logits)
        });
        let complete = cancel.settle(result)?;
        self.logits_position = complete.then_some(self.state.position);
        Ok(())
    }

    /// Computes the hidden state at the end of the sequence.
    fn compute_hidden(&mut self) -> Result<()> {
        if self.tokens.is_empty() {
            return Err(Error::invalid_state("the sequence is empty: feed a prompt first"));
        }
        self.catch_up()
    }

    /// Brings `logits` up to the end of the sequence.
    fn compute_logits(&mut self) -> Result<()> {
        self.compute_hidden()?;
        self.logits_at_state()
    }

    /// Makes room for logits, of which a session that was never asked for a token has none.
    fn reserve_logits(&mut self) -> Result<()> {
        make_room(&mut self.logits, self.model.network()?.config().vocab_size)
    }

    /// Brings `logits` up to what is computed.
    fn logits_at_state(&mut self) -> Result<()> {
        if self.logits_position == Some(self.state.position) {
            return Ok(());
        }
        self.logits_position = None;
        self.state.unfinished = None;
        self.reserve_logits()?;
        let Self { model, state, logits, cancel, .. } = self;
        let result = model
            .compute(cancel.flag(), |network, c, _| network.head(c, &state.last_hidden, logits));
        cancel.settle(result)?;
        self.logits_position = Some(self.state.position);
        Ok(())
    }
}

/// Makes `logits` hold `rows` values.
fn make_room(logits: &mut Vec<f32>, rows: usize) -> Result<()> {
    logits
        .try_reserve_exact(rows.saturating_sub(logits.len()))
        .map_err(|_| Error::out_of_memory("logits", rows * size_of::<f32>()))?;
    logits.resize(rows, 0.0);
    Ok(())
}
