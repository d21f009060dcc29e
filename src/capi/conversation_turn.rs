//! Turns of a conversation: begun, made anew, settled, gone on with, taken back.

use std::ffi::c_char;

use super::arguments::{Out, bytes, text};
use super::conversation::{Talk, qwen_conversation, with_session};
use super::guard::call;
use super::handle;
use super::status::{QWEN_OK, Result, qwen_status};
use crate::Session;
use crate::conversation::Conversation;
use crate::session::Fed;

/// Adds messages and starts the reply to all so far: reads what the session does not hold
/// yet. The reply then comes from qwen_conversation_next(). A reply in progress ends where it
/// is and becomes a message first (if anything of it has come), also where the call then
/// fails, unless by QWEN_ERROR_INVALID_ARGUMENT.
///
/// json, length: as for qwen_conversation_add(); NULL with length 0 adds nothing.
/// total: receives the tokens of the conversation; NULL if not wanted.
/// computed: receives how many of them this call computed; NULL if not wanted.
///
/// Returns as qwen_session_feed_chat(). After anything but QWEN_OK the messages are not
/// added; the same call again goes on from what was computed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_conversation_send(
    conversation: *mut qwen_conversation,
    json: *const c_char,
    length: usize,
    total: *mut usize,
    computed: *mut usize,
) -> qwen_status {
    // SAFETY: pointers are NULL or as the header asks for.
    call(|| unsafe {
        let json = bytes("json", json, length).and_then(|given| match given {
            [] => Ok(None),
            _ => text("json", json, length).map(Some),
        });
        start(conversation, total, computed, |conversation, session| match json? {
            Some(json) => Ok(conversation.send(session, json)),
            None => Ok(conversation.start(session)),
        })
    })
}

/// Adds a user's message of plain text and starts the reply, see qwen_conversation_send().
///
/// text, length: UTF-8, used during the call.
///
/// Returns as qwen_conversation_send().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_conversation_send_text(
    conversation: *mut qwen_conversation,
    text: *const c_char,
    length: usize,
    total: *mut usize,
    computed: *mut usize,
) -> qwen_status {
    // SAFETY: pointers are NULL or as the header asks for.
    call(|| unsafe {
        let text = self::text("text", text, length);
        start(conversation, total, computed, |conversation, session| {
            Ok(conversation.send_text(session, text?))
        })
    })
}

/// Drops the last reply, in progress or ended, and starts another to the same messages.
/// With a random choice of tokens it comes out differently.
///
/// total, computed: as for qwen_conversation_send().
///
/// Returns QWEN_OK; QWEN_ERROR_INVALID_STATE if the last message is no reply; else what
/// qwen_session_feed_chat() returns. After anything but QWEN_OK the messages are as before. A
/// reply that had ended is still among them then, and the same call again goes on from what
/// was computed. One in progress is gone; qwen_conversation_send() without a message goes on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_conversation_regenerate(
    conversation: *mut qwen_conversation,
    total: *mut usize,
    computed: *mut usize,
) -> qwen_status {
    // SAFETY: pointers are NULL or as the header asks for.
    unsafe {
        call(|| {
            start(conversation, total, computed, |conversation, session| {
                Ok(conversation.regenerate(session))
            })
        })
    }
}

/// Does `work` on conversation and session and says what it cost.
///
/// # Safety
/// `conversation` is NULL or a handle; the others are NULL or writable.
pub(super) unsafe fn start(
    conversation: *mut qwen_conversation,
    total: *mut usize,
    computed: *mut usize,
    work: impl FnOnce(&mut Conversation, &mut Session) -> Result<crate::Result<Fed>>,
) -> Result<qwen_status> {
    // SAFETY: the caller's promise.
    let outs = unsafe { (Out::optional("total", total)?, Out::optional("computed", computed)?) };
    let set = |fed: Fed| {
        outs.0.iter().for_each(|out| out.set(fed.total));
        outs.1.iter().for_each(|out| out.set(fed.computed));
    };
    set(Fed::default());
    // SAFETY: the caller's promise.
    let mut talk = unsafe { handle::write::<Talk>(conversation) }?;
    let talk: &mut Talk = &mut talk;
    let mut session = talk.session.write()?;
    let result = work(&mut talk.conversation, &mut session)?;
    set(session.judge(result)?);
    Ok(QWEN_OK)
}

/// Computes now what the next message of the user would wait for: the last reply as the
/// template writes it into history, without thoughts and empty think block. Call it when a
/// reply has ended, while the user reads and types: the next turn then costs its own tokens
/// alone. It computes the reply's tokens together, in a fraction of the time that making them
/// has taken. The progress callback of the session and qwen_conversation_cancel() can end it;
/// what is done by then counts. Without it the same is done by the next
/// qwen_conversation_send(). A reply that was cut can no longer be resumed.
///
/// total, computed: as for qwen_conversation_send(). Both 0: nothing was done, because the
/// last message is no reply, or one that has called tools. So it is in a conversation that has
/// a system message only: feed that to the session, by qwen_session_feed_chat() with
/// QWEN_CHAT_HISTORY.
///
/// Returns as qwen_conversation_send(); QWEN_ERROR_INVALID_STATE while a reply is in progress.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_conversation_settle(
    conversation: *mut qwen_conversation,
    total: *mut usize,
    computed: *mut usize,
) -> qwen_status {
    // SAFETY: pointers are NULL or as the header asks for.
    unsafe {
        call(|| {
            start(conversation, total, computed, |conversation, session| {
                Ok(conversation.settle(session))
            })
        })
    }
}

/// Goes on with a reply that ended by QWEN_FINISH_LENGTH or QWEN_FINISH_CANCELLED as if it
/// had not, for another max_tokens. Its message leaves the history until it ends again. Text
/// that was given is not given again; a tool call that was cut comes again, whole.
///
/// What a cut has shown of white space, a tag or a stop string that was not whole stays shown,
/// whatever it turns out to be.
///
/// Returns QWEN_OK; QWEN_ERROR_INVALID_STATE if the last reply did not end so, messages were
/// added since, or the session has gone on elsewhere: nothing is changed then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_conversation_resume(
    conversation: *mut qwen_conversation,
) -> qwen_status {
    // SAFETY: the header asks for NULL or a handle.
    call(|| unsafe {
        let mut talk = handle::write::<Talk>(conversation)?;
        with_session(&mut talk, |conversation, session| conversation.resume(session))?;
        Ok(QWEN_OK)
    })
}

/// Takes the last turn back: the last user's message and all behind it, and a reply in
/// progress.
///
/// removed: receives how many messages that were, 0 if there was no user's message; NULL if
/// not wanted.
///
/// Returns QWEN_OK or QWEN_ERROR_INVALID_ARGUMENT. It costs nothing; the next reply is
/// computed from where the messages still agree.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_conversation_undo(
    conversation: *mut qwen_conversation,
    removed: *mut usize,
) -> qwen_status {
    // SAFETY: pointers are NULL or as the header asks for.
    call(|| unsafe {
        let out = Out::optional("removed", removed)?;
        out.iter().for_each(|out| out.set(0));
        let count = handle::write::<Talk>(conversation)?.conversation.undo();
        out.iter().for_each(|out| out.set(count));
        Ok(QWEN_OK)
    })
}
