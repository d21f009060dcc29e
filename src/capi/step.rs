//! Sessions advanced for a limited time, and several at once.

use super::arguments::{Out, array, flags};
use super::guard::call;
use super::handle;
use super::session::qwen_session;
use super::status::{
    Failure, QWEN_END_OF_TURN, QWEN_LIMIT_REACHED, QWEN_OK, QWEN_WORKING, Result, qwen_status,
    record,
};
use crate::session::{Step, batch_step};
use crate::{Next, Session};

/// Flag of qwen_session_step(): compute what is queued, generate nothing.
pub const QWEN_STEP_INPUT: u32 = 0x1;

/// Goes on for about as long as a budget says: computes what is queued
/// (qwen_session_enqueue() and its kin), then the next token. For frame loops: call it once
/// per frame until it returns something other than QWEN_WORKING.
///
/// budget_us: microseconds. The call may take longer by one task of a kernel, usually less
/// than a millisecond. 0: the smallest advance.
/// flags: QWEN_STEP_INPUT or 0.
/// token: receives the id, or -1 if none was chosen.
/// remaining: receives the tokens of the sequence that are not computed yet; NULL if not
/// wanted.
///
/// Returns QWEN_WORKING when the time is over and there is more to do; QWEN_OK with a
/// token, or with QWEN_STEP_INPUT, when all that was queued is computed; QWEN_END_OF_TURN
/// with a token, and QWEN_LIMIT_REACHED, see qwen_session_next_token(); QWEN_CANCELLED;
/// QWEN_ERROR_INVALID_STATE if the sequence is empty; QWEN_ERROR_NUMERIC;
/// QWEN_ERROR_OUT_OF_MEMORY; QWEN_ERROR_FORKED; QWEN_ERROR_INVALID_ARGUMENT. After a cancel
/// or an error, tokens that were queued and are not computed are gone from the sequence, as
/// qwen_session_position() tells.
///
/// The tokens are those that qwen_session_feed() and qwen_session_next_token() would give,
/// and logits have the same bits. What a step leaves unfinished (in memory: about 50 MB at
/// 0.8B) the next one continues. Any other call on the session may come in between: one that
/// needs the sequence computed finishes it; qwen_session_reset() drops it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_session_step(
    session: *mut qwen_session,
    budget_us: u64,
    flags: u32,
    token: *mut i32,
    remaining: *mut usize,
) -> qwen_status {
    // SAFETY: pointers are NULL or as the header asks for.
    call(|| unsafe {
        let (token, remaining) =
            (Out::new("token", token)?, Out::optional("remaining", remaining)?);
        token.set(-1);
        remaining.iter().for_each(|out| out.set(0));
        let mut session = handle::write::<Session>(session)?;
        let input_alone = self::flags(flags, QWEN_STEP_INPUT)? != 0;
        let budget = std::time::Duration::from_micros(budget_us);
        let result = if input_alone { session.step_input(budget) } else { session.step(budget) };
        remaining.iter().for_each(|out| out.set(session.remaining()));
        let (status, id) = match session.judge(result)? {
            Step::Working => (QWEN_WORKING, -1),
            Step::Ready => (QWEN_OK, -1),
            Step::Token(id) => (QWEN_OK, id as i32),
            Step::EndOfTurn(id) => (QWEN_END_OF_TURN, id as i32),
            Step::LimitReached => (QWEN_LIMIT_REACHED, -1),
        };
        token.set(id);
        Ok(status)
    })
}

/// Advances several sessions of one model by one token each, as qwen_session_next_token()
/// would, and reads the weights once for all: 8 sessions take far less than 8 times the
/// time of one. Each session gets exactly the token that it would get alone.
///
/// sessions, count: the sessions, used during the call.
/// tokens: receives `count` ids, -1 for a session that chose none.
/// statuses: receives `count` statuses, each as qwen_session_next_token() would return it
/// for that session. One that is busy, freed, listed before, at its limit, cancelled or
/// that fails has its status and does not disturb the others.
///
/// Returns QWEN_OK whatever the statuses are; QWEN_ERROR_INVALID_ARGUMENT if sessions are of
/// different models, or for NULL: no session is advanced then, and tokens and statuses are of
/// no meaning.
///
/// A session with more than one token to compute (after qwen_session_enqueue()) computes
/// them first, alone. Progress callbacks are not called for the common part. A cancel of one
/// session is answered when the call returns, in about the time of one token; when all are
/// cancelled it returns at once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_batch_step(
    sessions: *const *mut qwen_session,
    count: usize,
    tokens: *mut i32,
    statuses: *mut qwen_status,
) -> qwen_status {
    // SAFETY: pointers are NULL or as the header asks for.
    call(|| unsafe {
        let handles = array("sessions", sessions, count)?;
        let token = Results::new("tokens", tokens, count)?;
        let status = Results::new("statuses", statuses, count)?;
        let (mut writers, mut places) = (Vec::new(), Vec::new());
        for (n, &session) in handles.iter().enumerate() {
            token.set(n, -1);
            match handle::write::<Session>(session) {
                Ok(writer) => {
                    writers.push(writer);
                    places.push(n);
                }
                Err(failure) => status.set(n, record(failure)),
            }
        }
        let mut free: Vec<&mut Session> = writers.iter_mut().map(|writer| &mut **writer).collect();
        let outcomes = batch_step(&mut free)?;
        for ((n, writer), outcome) in places.into_iter().zip(&writers).zip(outcomes) {
            let (code, id) = match writer.judge(outcome) {
                Ok(Next::Token(id)) => (QWEN_OK, id as i32),
                Ok(Next::EndOfTurn(id)) => (QWEN_END_OF_TURN, id as i32),
                Ok(Next::LimitReached) => (QWEN_LIMIT_REACHED, -1),
                Err(failure) => (record(failure), -1),
            };
            token.set(n, id);
            status.set(n, code);
        }
        Ok(QWEN_OK)
    })
}

/// An array of the caller for results.
struct Results<T> {
    first: *mut T,
    count: usize,
}

impl<T> Results<T> {
    /// # Safety
    /// `pointer` is NULL or points to `count` writable values for the whole call.
    unsafe fn new(name: &str, pointer: *mut T, count: usize) -> Result<Self> {
        if count > 0 && (pointer.is_null() || !pointer.is_aligned()) {
            return Err(Failure::argument(format!("`{name}` is NULL or not aligned")));
        }
        Ok(Self { first: pointer, count })
    }

    fn set(&self, n: usize, value: T) {
        assert!(n < self.count);
        // SAFETY: inside the array that `new` was promised.
        unsafe { self.first.add(n).write(value) }
    }
}
