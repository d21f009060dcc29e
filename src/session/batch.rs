//! Several sessions advanced together.

use std::time::Instant;

use super::{Next, Session};
use crate::engine::Model;
use crate::kernels::Cancel;
use crate::model::Choice;
use crate::model::batch::Row;
use crate::{Error, Result};

/// What a session of a batch came to.
pub type Outcome = Result<Next>;

/// Advances every session by one token, as [`Session::next_token`] would: the weights are
/// read once for all of them. Each session gets exactly the token it would get alone, and
/// its outcome has its place in the result.
///
/// A session that is at its limit, empty or cancelled, or that fails, has that outcome and
/// does not disturb the others. One that has more than one token to compute (queued input)
/// computes them first, alone. Progress hooks are not called for the common part. A cancel
/// of one session is answered when the batch is done, in about the time of one token; when
/// all are cancelled it ends at once.
///
/// # Errors
/// `InvalidArgument` if the sessions are not of one model: nothing is done then.
pub fn batch_step(sessions: &mut [&mut Session]) -> Result<Vec<Outcome>> {
    let Some(first) = sessions.first() else { return Ok(Vec::new()) };
    let model = first.model.clone();
    if let Some(n) = sessions.iter().position(|session| !session.model.is_same(&model)) {
        return Err(Error::invalid_argument(format!(
            "session {n} is of another model than session 0: a batch shares the weights"
        )));
    }
    let mut outcomes: Vec<Option<Outcome>> = sessions.iter_mut().map(|s| s.prepare()).collect();
    let began = Instant::now();
    if let Err(error) = compute(&model, sessions, &mut outcomes) {
        // What concerns all of them; those that were done before have their outcome.
        for outcome in outcomes.iter_mut().filter(|outcome| outcome.is_none()) {
            *outcome = Some(Err(error.clone()));
        }
    }
    let (time, most) = (began.elapsed(), sessions.len() as u32);
    for session in sessions.iter_mut() {
        session.meter.output_time(time, time / most);
        session.count_bytes();
    }
    let none = || Err(Error::internal("a session of the batch has no outcome"));
    Ok(outcomes.into_iter().map(|outcome| outcome.unwrap_or_else(none)).collect())
}

impl Session {
    /// Does what comes before the common part; an outcome if there is no more to do.
    fn prepare(&mut self) -> Option<Outcome> {
        if self.tokens.len() >= self.context_limit {
            return Some(self.cancel.check().map(|()| Next::LimitReached));
        }
        if self.tokens.is_empty() {
            let text = "the sequence is empty: feed a prompt first";
            return Some(Err(Error::invalid_state(text)));
        }
        // Input that was queued is for this session alone.
        let ready =
            if self.remaining() > 1 { self.metered(Self::catch_up) } else { self.cancel.check() };
        self.state.unfinished = None;
        ready.err().map(Err)
    }

    /// Chooses the next token by `logits`, or by the session's own if there are none.
    fn generate_from(&mut self, logits: Option<&[f32]>) -> Outcome {
        let token = match logits {
            // The session need not keep them: whoever asks it for logits next does so behind
            // the token that is chosen here.
            Some(logits) => self.choose_from(logits),
            None => self.choose(),
        };
        self.generate(token?)
    }
}

/// Computes the last token and the logits of the sessions without an outcome, and chooses.
fn compute(
    model: &Model,
    sessions: &mut [&mut Session],
    outcomes: &mut [Option<Outcome>],
) -> Result<()> {
    // Each session has a flag of its own, which is looked at between layers.
    let never = Cancel::new();
    model.compute(&never, |network, c, workspace| {
        let (mut rows, mut flags) = (Vec::new(), Vec::new());
        let mut of_session = Vec::new();
        for (n, session) in sessions.iter_mut().enumerate() {
            if outcomes[n].is_none() && session.remaining() == 1 {
                let Session { state, tokens, cancel, .. } = &mut **session;
                let token = tokens[state.position];
                rows.push(Row { token, state, outcome: Ok(()) });
                flags.push(&*cancel);
                of_session.push(n);
            }
        }
        if !rows.is_empty() {
            network.forward_batch(c, &mut rows, workspace, |rows| {
                for (row, cancel) in rows.iter_mut().zip(&flags) {
                    if row.outcome.is_ok() && cancel.flag().is_set() {
                        row.outcome = cancel.settle(Err(crate::model::batch::cancelled()));
                    }
                }
            })?;
        }
        for (n, row) in of_session.into_iter().zip(rows) {
            if let Err(error) = row.outcome {
                outcomes[n] = Some(Err(error));
            }
        }

        let vocab = network.config().vocab_size;
        let wanting: Vec<usize> = (0..sessions.len())
            .filter(|&n| {
                let session = &*sessions[n];
                outcomes[n].is_none() && session.logits_position != Some(session.state.position)
            })
            .collect();
        let mut logits = [].as_slice();
        if !wanting.is_empty() {
            let (mut states, mut adjusts) = (Vec::new(), Vec::new());
            for (n, session) in sessions.iter_mut().enumerate() {
                if !wanting.contains(&n) {
                    continue;
                }
                // Without room for its scratch, the sampler will say so when it chooses.
                let most = session
                    .sampler
                    .decided_by()
                    .filter(|_| session.logits_hook.is_none() && session.sampler.prepare().is_ok());
                let Session { state, sampler, tokens, output_start, .. } = &mut **session;
                states.push(&*state);
                if let Some(most) = most {
                    let (count, start) = (sampler.token_count(), *output_start);
                    let adjust = move |scores: &mut [f32]| sampler.adjust(scores, tokens, start);
                    adjusts.push((count, most, adjust));
                }
            }
            let mut choices: Vec<_> = adjusts
                .iter_mut()
                .map(|(tokens, most, adjust)| Choice { tokens: *tokens, most: *most, adjust })
                .collect();
            (logits, _) = network.head_batch(c, &states, &mut choices, workspace)?;
        }
        let mut logits = logits.chunks_exact(vocab);
        let logits: Vec<_> =
            (0..sessions.len()).map(|n| wanting.contains(&n).then(|| logits.next())).collect();

        // Taking logits over and choosing look through all of them: side by side, but for
        // sessions where the caller has a say, on the caller's thread.
        let mut parts = Vec::new();
        for ((session, outcome), logits) in sessions.iter_mut().zip(outcomes).zip(logits) {
            let logits = logits.flatten();
            match outcome {
                Some(_) => {}
                None if session.logits_hook.is_some() => {
                    *outcome = Some(session.generate_from(logits));
                }
                None => parts.push((session, outcome, logits)),
            }
        }
        c.run_chunks(&mut parts, 1, |_, part| {
            let (session, outcome, logits) = &mut part[0];
            **outcome = Some(session.generate_from(*logits));
        });
        c.check()
    })
}
