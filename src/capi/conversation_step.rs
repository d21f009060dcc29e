//! Conversations advanced for a limited time, for frame loops.

use std::ffi::c_char;
use std::time::Duration;

use super::arguments::{Out, bytes, fill, text};
use super::conversation::{Talk, qwen_conversation, with_session};
use super::conversation_turn::start;
use super::guard::call;
use super::handle;
use super::pieces::{EMPTY, qwen_piece};
use super::status::{QWEN_WORKING, qwen_status};

/// Adds messages and starts the reply as qwen_conversation_send() does, but computes nothing:
/// qwen_conversation_step() does that (or qwen_conversation_next(), all of it at once).
///
/// json, length: as for qwen_conversation_send().
/// total: receives the tokens of the conversation; NULL if not wanted.
/// remaining: receives how many of them are still to be computed; NULL if not wanted.
///
/// Returns as qwen_conversation_send(), but never QWEN_CANCELLED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_conversation_enqueue(
    conversation: *mut qwen_conversation,
    json: *const c_char,
    length: usize,
    total: *mut usize,
    remaining: *mut usize,
) -> qwen_status {
    // SAFETY: pointers are NULL or as the header asks for.
    call(|| unsafe {
        let json = bytes("json", json, length).and_then(|given| match given {
            [] => Ok(None),
            _ => text("json", json, length).map(Some),
        });
        start(conversation, total, remaining, |conversation, session| match json? {
            Some(json) => Ok(conversation.enqueue_messages(session, json)),
            None => Ok(conversation.enqueue(session)),
        })
    })
}

/// Adds a user's message of plain text and starts the reply, see qwen_conversation_enqueue().
///
/// text, length: UTF-8, used during the call.
///
/// Returns as qwen_conversation_enqueue().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_conversation_enqueue_text(
    conversation: *mut qwen_conversation,
    text: *const c_char,
    length: usize,
    total: *mut usize,
    remaining: *mut usize,
) -> qwen_status {
    // SAFETY: pointers are NULL or as the header asks for.
    call(|| unsafe {
        let text = self::text("text", text, length);
        start(conversation, total, remaining, |conversation, session| {
            Ok(conversation.enqueue_text(session, text?))
        })
    })
}

/// Goes on with the reply for about as long as a budget says: computes what was queued, then
/// makes the reply's next piece. For frame loops: call it once per frame. The pieces are those
/// of qwen_conversation_next(), which may be called in between; thinking budget, stop strings
/// and tool calls work the same.
///
/// budget_us: microseconds, as for qwen_session_step(). The call returns sooner with a piece.
/// piece: as for qwen_conversation_next(). QWEN_PIECE_NONE while there is none.
/// remaining: receives the tokens of the session's sequence that are not computed yet, by
/// which a host shows how far a long prompt has come; NULL if not wanted.
///
/// Returns QWEN_WORKING when the time is over and there is no piece yet; else as
/// qwen_conversation_next(). QWEN_CANCELLED with QWEN_PIECE_NONE: it was cancelled before all
/// messages were computed. There is no reply then; the messages stay, and
/// qwen_conversation_enqueue() or qwen_conversation_send() with no further ones goes on from
/// what was computed. So it is after an error at that point.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_conversation_step(
    conversation: *mut qwen_conversation,
    budget_us: u64,
    piece: *mut qwen_piece,
    remaining: *mut usize,
) -> qwen_status {
    // SAFETY: pointers are NULL or as the header asks for.
    call(|| unsafe {
        Out::new("piece", piece)?;
        fill("piece", piece, &EMPTY)?;
        let remaining = Out::optional("remaining", remaining)?;
        remaining.iter().for_each(|out| out.set(0));
        let mut talk = handle::write::<Talk>(conversation)?;
        let budget = Duration::from_micros(budget_us);
        let found = with_session(&mut talk, |conversation, session| {
            let found = conversation.step(session, budget);
            remaining.iter().for_each(|out| out.set(session.remaining()));
            found
        })?;
        let Some(found) = found else { return Ok(QWEN_WORKING) };
        let (found, status) = talk.lent.piece(found);
        fill("piece", piece, &found)?;
        Ok(status)
    })
}
