//! Going on for a limited time: for hosts that must return to their own loop.
//!
//! Input is queued at once ([`Session::enqueue`] and its kin) and computed by
//! [`Session::step`], which also generates. What a step leaves unfinished, the next one
//! continues, and so does any call that needs the sequence computed; a call that replaces
//! the state drops it. Results are those of the calls that do not return before the end.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use super::prefix::Turns;
use super::{Fed, Next, Progress, Session, make_room};
use crate::kernels::Compute;
use crate::model::pass::{Head, Pass, Unfinished};
use crate::model::workspace::MAX_CHUNK;
use crate::model::{Network, State, Workspace};
use crate::tokenizer::AddedTokens;
use crate::{Error, Result};

/// What [`Session::step`] came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The time is over and there is more to do: call again.
    Working,
    /// All that was queued is computed.
    Ready,
    /// A token, now part of the sequence.
    Token(u32),
    /// A token that ends the turn, now part of the sequence.
    EndOfTurn(u32),
    /// The sequence is as long as its limit; nothing was added.
    LimitReached,
}

impl From<Next> for Step {
    fn from(next: Next) -> Self {
        match next {
            Next::Token(id) => Self::Token(id),
            Next::EndOfTurn(id) => Self::EndOfTurn(id),
            Next::LimitReached => Self::LimitReached,
        }
    }
}

/// A sequence before input that waits, for when that is taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BeforeInput {
    pub(super) length: usize,
    /// Where its output began.
    pub(super) output_start: usize,
}

/// What a session remembers from step to step, beside the unfinished work itself.
pub(super) struct Stepping {
    /// So many tokens at the end of the sequence are queued input; not to be relied on when
    /// all is computed.
    queued: usize,
    /// What was there before them.
    before: Option<BeforeInput>,
    /// Where the queued input is worth a mark.
    pub(super) turns: Turns,
    /// Tokens of the next chunk at most.
    chunk: usize,
    /// Memory for the logits in progress.
    logits: Vec<f32>,
}

impl Default for Stepping {
    fn default() -> Self {
        Self { queued: 0, before: None, turns: [None; 3], chunk: FIRST_CHUNK, logits: Vec::new() }
    }
}

/// Tokens computed together while it is not known how long that takes.
const FIRST_CHUNK: usize = 32;
/// Tasks over so few tokens are short on any machine.
const LEAST_CHUNK: usize = 16;

impl Stepping {
    /// For a fork: the same input is queued, nothing is in progress.
    pub(super) fn fork(&self) -> Self {
        Self { logits: Vec::new(), ..*self }
    }

    /// Length of the memory for the logits in progress.
    pub(super) fn logits_len(&self) -> usize {
        self.logits.len()
    }

    /// Nothing is queued any more.
    pub(super) fn forget_input(&mut self) {
        (self.queued, self.before, self.turns) = (0, None, [None; 3]);
    }

    /// Chooses the next chunk after one of `tokens` tokens whose long tasks took `task_time`:
    /// a step is late by one task, which should be a small part of its `budget`. Small chunks
    /// cost speed, since weights are read for each.
    fn adapt(&mut self, tokens: usize, task_time: Duration, budget: Duration) {
        let room = budget / 4;
        if task_time > room {
            self.chunk = (tokens.min(self.chunk) / 2).max(LEAST_CHUNK);
        } else if tokens >= self.chunk && 2 * task_time <= room {
            self.chunk = (self.chunk * 2).min(MAX_CHUNK);
        }
    }
}

impl Session {
    /// Appends `tokens` to the sequence, for [`Session::step`] to compute; so does any other
    /// call that needs them.
    ///
    /// # Errors
    /// As [`Session::feed`], before anything is queued.
    pub fn enqueue(&mut self, tokens: &[u32]) -> Result<()> {
        if tokens.is_empty() {
            return Ok(());
        }
        self.last_fed = Fed::default();
        self.check_ids(tokens)?;
        self.take(tokens, Self::queue, Self::begin_hold)
    }

    /// Tokenizes `text` and queues it, see [`Session::enqueue`]. Returns the number of
    /// tokens.
    ///
    /// # Errors
    /// As [`Session::enqueue`].
    pub fn enqueue_text(&mut self, text: &str, added: AddedTokens) -> Result<usize> {
        let mut ids = Vec::new();
        self.model.tokenizer().encode(text, added, &mut ids);
        self.enqueue(&ids)?;
        Ok(ids.len())
    }

    /// Tokens of the sequence that are not computed yet: queued ones, or the one generated
    /// last.
    pub fn remaining(&self) -> usize {
        self.tokens.len() - self.state.position
    }

    /// Computes what is queued, then the next token, for about as long as `budget` says;
    /// returns sooner with a token. It goes beyond the budget by one task of a kernel, about
    /// a millisecond at most; the smallest budget gets forward by one task.
    ///
    /// # Errors
    /// As [`Session::next_token`]. After `Cancelled`, queued tokens that are not computed
    /// are gone from the sequence; a generated one stays.
    pub fn step(&mut self, budget: Duration) -> Result<Step> {
        self.step_for(budget, true)
    }

    /// As [`Session::step`], but comes to [`Step::Ready`] instead of generating a token.
    ///
    /// # Errors
    /// As [`Session::step`].
    pub fn step_input(&mut self, budget: Duration) -> Result<Step> {
        self.step_for(budget, false)
    }

    fn step_for(&mut self, budget: Duration, generate: bool) -> Result<Step> {
        if self.tokens.is_empty() {
            return Err(Error::invalid_state("the sequence is empty: queue a prompt first"));
        }
        // A budget beyond what the clock can express has no end.
        let deadline = Instant::now().checked_add(budget);
        let result = self.metered(|session| {
            let step = session.cancel.check();
            let step = step.and_then(|()| session.step_until(deadline, budget, generate));
            session.cancel.settle(step)
        });
        if result.is_err() {
            self.drop_queue();
        }
        result
    }

    fn step_until(
        &mut self,
        deadline: Option<Instant>,
        budget: Duration,
        generate: bool,
    ) -> Result<Step> {
        let late = || deadline.is_some_and(|deadline| Instant::now() >= deadline);
        while self.remaining() > 0 {
            if !self.step_pass(deadline, budget)? || (self.remaining() > 0 && late()) {
                return Ok(Step::Working);
            }
        }
        self.stepping.forget_input();
        if !generate {
            return Ok(Step::Ready);
        }
        if self.tokens.len() >= self.context_limit {
            return Ok(Step::LimitReached);
        }
        if self.logits_position != Some(self.state.position) && !self.step_head(deadline)? {
            return Ok(Step::Working);
        }
        let token = self.choose()?;
        self.generate(token).map(Step::from)
    }

    /// Goes on with the pass over the next tokens; true when it is complete.
    fn step_pass(&mut self, deadline: Option<Instant>, budget: Duration) -> Result<bool> {
        let end = self.chunk_end(self.stepping.chunk);
        let Self { model, state, tokens, cancel, .. } = self;
        let first = state.position;
        let taken = take_pass(state, &tokens[first..]);
        let finished = model.compute(cancel.flag(), |network, c, workspace| {
            let mut pass = match taken {
                Some(pass) => pass,
                None => {
                    let lent = std::mem::take(workspace);
                    Pass::begin(network, &tokens[first..end], state, lent)?
                }
            };
            if advance(&mut pass, c, network, state, workspace, deadline, |_| Ok(()))? {
                return Ok(Some((pass.tokens().len(), pass.task_time())));
            }
            state.unfinished = Some(Box::new(Unfinished::Pass(pass)));
            Ok(None)
        })?;
        if let Some((tokens, task_time)) = finished {
            self.stepping.adapt(tokens, task_time, budget);
            self.mark_turn()?;
        }
        Ok(finished.is_some())
    }

    /// Goes on with the logits; true when they are complete.
    fn step_head(&mut self, deadline: Option<Instant>) -> Result<bool> {
        let Self { model, state, logits, logits_position, cancel, stepping, .. } = self;
        let mut head = match state.unfinished.take().map(|unfinished| *unfinished) {
            Some(Unfinished::Head(head)) => head,
            _ => {
                let mut memory = std::mem::take(&mut stepping.logits);
                make_room(&mut memory, model.network()?.config().vocab_size)?;
                Head::begin(memory)
            }
        };
        let finished = model
            .compute(cancel.flag(), |network, c, _| head.advance(c, network, state, deadline))?;
        if finished {
            stepping.logits = std::mem::replace(logits, head.into_logits());
            *logits_position = Some(state.position);
        } else {
            state.unfinished = Some(Box::new(Unfinished::Head(head)));
        }
        Ok(finished)
    }

    /// Appends checked `tokens` as input that is to be computed.
    pub(super) fn queue(&mut self, tokens: &[u32]) -> Result<()> {
        if self.tokens.try_reserve(tokens.len()).is_err() {
            // Marks that what was to be queued again would have reached.
            self.cut_marks(self.tokens.len());
            return Err(Error::out_of_memory("the sequence", tokens.len() * 4));
        }
        if self.queued() == 0 {
            self.stepping.queued = 0;
            self.stepping.before =
                Some(BeforeInput { length: self.tokens.len(), output_start: self.output_start });
        }
        self.tokens.extend_from_slice(tokens);
        self.stepping.queued += tokens.len();
        if !tokens.is_empty() {
            self.meter.input_begins();
        }
        self.output_start = self.tokens.len();
        Ok(())
    }

    /// Whether there is input that is not computed.
    pub(crate) fn has_input(&self) -> bool {
        self.queued() > 0
    }

    /// How many tokens at the end of the sequence are input that is not computed.
    pub(super) fn queued(&self) -> usize {
        self.stepping.queued.min(self.remaining())
    }

    /// What was there before the input that waits, where that is known.
    pub(super) fn before_input(&self) -> Option<BeforeInput> {
        self.stepping.before.filter(|_| self.queued() > 0)
    }

    /// Takes over a sequence whose last `queued` tokens are input that is not computed; `before`
    /// is as [`Session::before_input`] says.
    pub(super) fn resume_queue(&mut self, queued: usize, before: Option<BeforeInput>) {
        self.stepping.forget_input();
        (self.stepping.queued, self.stepping.before) = (queued, before);
    }

    /// Cuts the sequence to its first `length` tokens, where the state needs none of the rest.
    pub(super) fn cut_queue(&mut self, length: usize) {
        let left = self.queued().saturating_sub(self.tokens.len().saturating_sub(length));
        let before = self.before_input();
        self.tokens.truncate(length);
        self.resume_queue(left, before);
    }

    /// Where the output begins if the sequence is cut to its first `length` tokens: where it
    /// did before input that is cut off entirely.
    pub(super) fn output_before(&self, length: usize) -> usize {
        let before = self.before_input().filter(|before| length <= before.length);
        before.map_or(self.output_start, |before| before.output_start).min(length)
    }

    /// Forgets input that is not computed. A generated token that waits to be computed stays.
    pub(super) fn drop_queue(&mut self) {
        let queued = self.queued();
        if queued > 0 {
            let length = self.tokens.len() - queued;
            self.output_start = self.output_before(length);
            self.tokens.truncate(length);
            // Marks among what is dropped stood for tokens that are no more.
            self.cut_marks(length);
        }
        self.stepping.forget_input();
        self.count_bytes();
    }

    /// Where the next chunk ends, of `most` tokens at most: not beyond a mark to be made.
    pub(super) fn chunk_end(&self, most: usize) -> usize {
        let first = self.state.position;
        let turns = self.stepping.turns.iter().flatten().map(|(at, _)| *at);
        let end = turns.filter(|at| *at > first).min().unwrap_or(usize::MAX);
        end.min(first + most).min(self.tokens.len())
    }

    /// Finishes a pass that steps have begun, for calls that do not return before the end.
    pub(super) fn finish_pass(&mut self, total: usize) -> Result<()> {
        let Self { model, state, tokens, cancel, progress, .. } = self;
        let Some(mut pass) = take_pass(state, &tokens[state.position..]) else { return Ok(()) };
        let result = model.compute(cancel.flag(), |network, c, workspace| {
            let tokens = pass.tokens().len();
            let layers = network.layers();
            advance(&mut pass, c, network, state, workspace, None, |layer| {
                report(progress, Progress { done: tokens * layer / layers, total })
            })
        });
        cancel.settle(result)?;
        self.mark_turn()
    }
}

/// Takes the unfinished pass of `state` if it is over the next of `tokens`; drops any other.
fn take_pass(state: &mut State, tokens: &[u32]) -> Option<Pass> {
    match state.unfinished.take().map(|unfinished| *unfinished) {
        Some(Unfinished::Pass(pass)) if tokens.starts_with(pass.tokens()) => Some(pass),
        _ => None,
    }
}

/// As [`Pass::advance`]; leaves the workspace of a pass that is complete or lost to others.
fn advance(
    pass: &mut Pass,
    c: &Compute,
    network: &Network,
    state: &mut State,
    workspace: &mut Workspace,
    deadline: Option<Instant>,
    between_layers: impl FnMut(usize) -> Result<()>,
) -> Result<bool> {
    let result = pass.advance(c, network, state, deadline, between_layers);
    if !matches!(result, Ok(false)) {
        *workspace = pass.take_workspace();
    }
    result
}

/// Tells the hook, if there is one, how far a call has come.
pub(super) fn report(hook: &mut Option<super::ProgressHook>, progress: Progress) -> Result<()> {
    match hook.as_mut().map(|hook| hook(progress)) {
        None | Some(ControlFlow::Continue(())) => Ok(()),
        Some(ControlFlow::Break(())) => Err(Error::cancelled("the progress callback cancelled")),
    }
}
