//! What a session is fed: at once, or for later steps.

use std::ffi::c_char;

use super::arguments::{Out, text, tokens};
use super::chat::{form, request};
use super::guard::call;
use super::handle;
use super::session::qwen_session;
use super::status::{QWEN_OK, Result, qwen_status};
use super::tokens::added_tokens;
use crate::Session;

/// When what is fed is computed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum When {
    Now,
    InSteps,
}

/// # Safety
/// As [`qwen_session_feed`].
unsafe fn feed_tokens(
    session: *mut qwen_session,
    tokens: *const i32,
    count: usize,
    when: When,
) -> Result<qwen_status> {
    // SAFETY: the caller's promise.
    let mut session = unsafe { handle::write::<Session>(session) }?;
    // SAFETY: the caller's promise.
    let ids = unsafe { self::tokens("tokens", tokens, count) }?;
    let result = match when {
        When::Now => session.feed(&ids),
        When::InSteps => session.enqueue(&ids),
    };
    session.judge(result)?;
    Ok(QWEN_OK)
}

/// # Safety
/// As [`qwen_session_feed_text`].
unsafe fn feed_text(
    session: *mut qwen_session,
    text: *const c_char,
    length: usize,
    flags: u32,
    when: When,
) -> Result<qwen_status> {
    // SAFETY: the caller's promise.
    let mut session = unsafe { handle::write::<Session>(session) }?;
    // SAFETY: the caller's promise.
    let text = unsafe { self::text("text", text, length) }?;
    let added = added_tokens(flags)?;
    let result = match when {
        When::Now => session.feed_text(text, added),
        When::InSteps => session.enqueue_text(text, added),
    };
    session.judge(result)?;
    Ok(QWEN_OK)
}

/// `count` receives the tokens that were computed, or are to be.
///
/// # Safety
/// As [`qwen_session_feed_chat`].
unsafe fn feed_chat(
    session: *mut qwen_session,
    json: (*const c_char, usize),
    flags: u32,
    total: *mut usize,
    count: (&str, *mut usize),
    when: When,
) -> Result<qwen_status> {
    // SAFETY: the caller's promise.
    let outs = unsafe { (Out::optional("total", total)?, Out::optional(count.0, count.1)?) };
    let set = |total, count| {
        outs.0.iter().for_each(|out| out.set(total));
        outs.1.iter().for_each(|out| out.set(count));
    };
    set(0, 0);
    // SAFETY: the caller's promise.
    let mut session = unsafe { handle::write::<Session>(session) }?;
    // SAFETY: the caller's promise.
    let request = unsafe { request(json.0, json.1) }?;
    let (encoding, extent) = form(flags)?;
    let result = match when {
        When::Now => session.feed_extent(&request, encoding, extent),
        When::InSteps => session.enqueue_extent(&request, encoding, extent),
    };
    let fed = session.judge(result)?;
    set(fed.total, fed.computed);
    Ok(QWEN_OK)
}

/// Appends tokens to the sequence and computes them.
///
/// tokens, count: used during the call. No tokens: nothing happens.
///
/// Returns QWEN_OK; QWEN_ERROR_INVALID_ARGUMENT for an id that is negative or outside the
/// vocabulary, and QWEN_ERROR_CONTEXT_OVERFLOW if the sequence would exceed its limit (but see
/// QWEN_OVERFLOW_DROP_TURNS): both leave the session as it was. QWEN_CANCELLED,
/// QWEN_ERROR_OUT_OF_MEMORY and QWEN_ERROR_FORKED leave it with a beginning of the tokens, as
/// qwen_session_position() tells, and usable; what was queued before and is not computed
/// counts among them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_session_feed(
    session: *mut qwen_session,
    tokens: *const i32,
    count: usize,
) -> qwen_status {
    // SAFETY: pointers are NULL or as the header asks for.
    call(|| unsafe { feed_tokens(session, tokens, count, When::Now) })
}

/// Tokenizes text, appends it to the sequence and computes it. For plain continuation; a
/// conversation is fed by qwen_session_feed_chat().
///
/// text, length: UTF-8, used during the call.
/// flags: QWEN_TEXT_ADDED_TOKENS or 0.
///
/// Returns as qwen_session_feed(), and QWEN_ERROR_INVALID_ARGUMENT for text that is not
/// UTF-8.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_session_feed_text(
    session: *mut qwen_session,
    text: *const c_char,
    length: usize,
    flags: u32,
) -> qwen_status {
    // SAFETY: pointers are NULL or as the header asks for.
    call(|| unsafe { feed_text(session, text, length, flags, When::Now) })
}

/// Makes the session hold exactly a conversation, rendered by the checkpoint's template and
/// ready for the answer. Call it once per turn with all messages so far, the assistant's
/// answers among them: what the session holds already is not computed again.
///
/// json, length: as for qwen_chat_render().
/// flags: QWEN_CHAT_AS_TRANSFORMERS and QWEN_CHAT_HISTORY, or 0.
/// total: receives the tokens of the conversation; NULL if not wanted.
/// computed: receives how many of them this call computed; NULL if not wanted.
///
/// Returns QWEN_OK; QWEN_ERROR_INVALID_ARGUMENT, QWEN_ERROR_TEMPLATE (see
/// qwen_chat_render()), QWEN_ERROR_UNSUPPORTED for messages with images or videos, and
/// QWEN_ERROR_CONTEXT_OVERFLOW, which leave the session as it was; QWEN_CANCELLED,
/// QWEN_ERROR_OUT_OF_MEMORY and QWEN_ERROR_FORKED, which leave it with a beginning of the
/// conversation, and usable: the same call again completes it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_session_feed_chat(
    session: *mut qwen_session,
    json: *const c_char,
    length: usize,
    flags: u32,
    total: *mut usize,
    computed: *mut usize,
) -> qwen_status {
    // SAFETY: pointers are NULL or as the header asks for.
    call(|| unsafe {
        feed_chat(session, (json, length), flags, total, ("computed", computed), When::Now)
    })
}

/// Appends tokens to the sequence without computing them: qwen_session_step() does that, or
/// the next other call that needs them (which then takes as long as qwen_session_feed()).
///
/// tokens, count: used during the call. No tokens: nothing happens.
///
/// Returns QWEN_OK, at once; QWEN_ERROR_INVALID_ARGUMENT for an id that is negative or
/// outside the vocabulary, QWEN_ERROR_CONTEXT_OVERFLOW if the sequence would exceed its
/// limit and QWEN_ERROR_OUT_OF_MEMORY, which leave the session as it was.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_session_enqueue(
    session: *mut qwen_session,
    tokens: *const i32,
    count: usize,
) -> qwen_status {
    // SAFETY: pointers are NULL or as the header asks for.
    call(|| unsafe { feed_tokens(session, tokens, count, When::InSteps) })
}

/// Tokenizes text and appends it to the sequence without computing it, see
/// qwen_session_enqueue().
///
/// text, length: UTF-8, used during the call.
/// flags: QWEN_TEXT_ADDED_TOKENS or 0.
///
/// Returns as qwen_session_enqueue(), and QWEN_ERROR_INVALID_ARGUMENT for text that is not
/// UTF-8.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_session_enqueue_text(
    session: *mut qwen_session,
    text: *const c_char,
    length: usize,
    flags: u32,
) -> qwen_status {
    // SAFETY: pointers are NULL or as the header asks for.
    call(|| unsafe { feed_text(session, text, length, flags, When::InSteps) })
}

/// Makes the session hold exactly a conversation, as qwen_session_feed_chat() does, and
/// leaves what is not computed yet to qwen_session_step().
///
/// json, length, flags, total: as for qwen_session_feed_chat().
/// remaining: receives the tokens that are still to be computed; NULL if not wanted.
///
/// Returns as qwen_session_feed_chat(), but never QWEN_CANCELLED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_session_enqueue_chat(
    session: *mut qwen_session,
    json: *const c_char,
    length: usize,
    flags: u32,
    total: *mut usize,
    remaining: *mut usize,
) -> qwen_status {
    // SAFETY: pointers are NULL or as the header asks for.
    call(|| unsafe {
        feed_chat(session, (json, length), flags, total, ("remaining", remaining), When::InSteps)
    })
}
