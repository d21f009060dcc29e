//! Conversations over a session: messages in, the reply in pieces.

use std::ffi::c_char;
use std::ptr::null_mut;

use super::arguments::{Out, Sized32, array, give, init, options, text};
use super::chat::encoding;
use super::guard::{call, call_void};
use super::handle::{self, Freed, Hold, Object, Writer};
use super::pieces::Lent;
use super::session::qwen_session;
use super::status::{Failure, QWEN_OK, Result, qwen_status};
use crate::Session;
use crate::conversation::{Conversation, ConversationOptions};
use crate::session::CancelHandle;

/// A conversation: its messages, and the session that computes the replies. It keeps the
/// session, which may be used by itself between replies, and freed.
pub struct qwen_conversation {
    _opaque: [u8; 0],
}

/// Whether the model thinks before it answers: one of the QWEN_THINKING constants.
pub type qwen_thinking = i32;

/// As the chat template has it: off for the smallest models, on for the others.
pub const QWEN_THINKING_DEFAULT: qwen_thinking = 0;
/// It thinks first.
pub const QWEN_THINKING_ON: qwen_thinking = 1;
/// It answers at once.
pub const QWEN_THINKING_OFF: qwen_thinking = 2;

/// How a conversation is held. Zero means default, everywhere. Strings are UTF-8, copied; a
/// system_length or tools_length of 0 means up to a NUL, as QWEN_NUL does.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct qwen_conversation_options {
    /// sizeof(qwen_conversation_options)
    pub struct_size: u32,
    /// QWEN_CHAT_AS_TRANSFORMERS or 0.
    pub flags: u32,
    /// Whether the model thinks first. The session's sampling stays as it is; see
    /// QWEN_PRESET_THINKING.
    pub thinking: qwen_thinking,
    /// Most tokens of thoughts in a reply; 0: no limit. When they are spent, the think block
    /// is closed for the model, which then answers; in that reply it cannot close it once
    /// more: the token </think> is not chosen any more, unless a callback leaves no other.
    pub thinking_budget: u32,
    /// Most tokens of a reply, thoughts included; 0: no limit but the session's.
    pub max_tokens: u32,
    /// Entries in `stop`.
    pub stop_count: u32,
    /// The system message; NULL: none.
    pub system: *const c_char,
    /// Its length in bytes.
    pub system_length: usize,
    /// The tools on offer, a JSON array:
    ///     [{"type": "function", "function": {"name": ..., "description": ...,
    ///       "parameters": a JSON schema}}, ...]
    /// NULL: none; tool calls in a reply are then text.
    pub tools: *const c_char,
    /// Its length in bytes.
    pub tools_length: usize,
    /// Texts at which an answer ends, before them. They are looked for in the text of the
    /// answer, not in thoughts or tool calls. NULL: none.
    pub stop: *const *const c_char,
    /// Their lengths in bytes; NULL: all end with a NUL, as one with the length QWEN_NUL does.
    /// 0 is an empty string, which is refused.
    pub stop_lengths: *const usize,
}

// SAFETY: integers and raw pointers; struct_size first.
unsafe impl Sized32 for qwen_conversation_options {
    const NAME: &'static str = "qwen_conversation_options";
    const FIRST_SIZE: usize = 72;
}

/// A conversation, its session, and what the last piece lends.
pub(super) struct Talk {
    pub(super) conversation: Conversation,
    pub(super) session: Hold<Session>,
    pub(super) lent: Lent,
}

impl Object for Talk {
    type Public = qwen_conversation;
    type Side = CancelHandle;
    const MAGIC: u64 = u64::from_le_bytes(*b"qwenCONV");
    const NAME: &'static str = "qwen_conversation";
    fn freed() -> &'static Freed<Self> {
        static FREED: Freed<Talk> = Freed::new();
        &FREED
    }
    fn interrupt(cancel: &CancelHandle) {
        cancel.cancel();
    }
}

/// Runs `work` with the conversation and its session.
pub(super) fn with_session<R>(
    talk: &mut Writer<Talk>,
    work: impl FnOnce(&mut Conversation, &mut Session) -> crate::Result<R>,
) -> Result<R> {
    let talk: &mut Talk = talk;
    let mut session = talk.session.write()?;
    let result = work(&mut talk.conversation, &mut session);
    session.judge(result)
}

/// A string in options.
///
/// # Safety
/// As [`text`].
unsafe fn optional(name: &str, pointer: *const c_char, length: usize) -> Result<Option<String>> {
    if pointer.is_null() {
        return match length {
            0 => Ok(None),
            _ => Err(Failure::argument(format!("`{name}` is NULL, but has a length"))),
        };
    }
    let length = if length == 0 { usize::MAX } else { length };
    // SAFETY: the caller's promise; a length of SIZE_MAX means up to the NUL.
    unsafe { text(name, pointer, length) }.map(|text| Some(text.to_owned()))
}

/// # Safety
/// As [`options`]; strings are as the struct says.
unsafe fn conversation_options(
    pointer: *const qwen_conversation_options,
) -> Result<ConversationOptions> {
    // SAFETY: the caller's promise.
    let given = unsafe { options(pointer) }?;
    let thinking = match given.thinking {
        QWEN_THINKING_DEFAULT => None,
        QWEN_THINKING_ON => Some(true),
        QWEN_THINKING_OFF => Some(false),
        other => {
            return Err(Failure::argument(format!("`thinking` is {other}: no such constant")));
        }
    };
    let count = given.stop_count as usize;
    // SAFETY: the caller's promise.
    let stops = unsafe { array("stop", given.stop, count) }?;
    let lengths = match given.stop_lengths.is_null() {
        true => &[][..],
        // SAFETY: the caller's promise.
        false => unsafe { array("stop_lengths", given.stop_lengths, count) }?,
    };
    let mut stop = Vec::new();
    for (i, &pointer) in stops.iter().enumerate() {
        let length = lengths.get(i).copied().unwrap_or(usize::MAX);
        // SAFETY: the caller's promise.
        stop.push(unsafe { text(&format!("stop[{i}]"), pointer, length) }?.to_owned());
    }
    Ok(ConversationOptions {
        // SAFETY: the caller's promise.
        system: unsafe { optional("system", given.system, given.system_length) }?,
        // SAFETY: as above.
        tools: unsafe { optional("tools", given.tools, given.tools_length) }?,
        thinking,
        thinking_budget: given.thinking_budget as usize,
        max_tokens: given.max_tokens as usize,
        stop,
        encoding: encoding(given.flags)?,
    })
}

/// Sets `size` bytes of options to their defaults: zeros, and struct_size = size. The macro
/// QWEN_CONVERSATION_OPTIONS_INIT does the same in a declaration.
///
/// size is sizeof(qwen_conversation_options).
///
/// Returns QWEN_OK, or QWEN_ERROR_INVALID_ARGUMENT for NULL or a size that cannot be.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_conversation_options_init(
    options: *mut qwen_conversation_options,
    size: usize,
) -> qwen_status {
    // SAFETY: the header asks for `size` writable bytes.
    call(|| unsafe { init(options, size) })
}

/// Makes a conversation over a session.
///
/// The conversation keeps the session, even when the session's own handle is freed. The
/// session may be used by other calls between replies (sampling options, statistics, fork,
/// save, even another conversation): the next reply computes what the session does not hold
/// any more. Only while a reply is made its sequence must not be changed. Callbacks of the
/// session stay in force: end them before what their `user` points to goes.
///
/// To go on from one point in two ways, fork the session, and make a conversation over the
/// fork with the history of this one.
///
/// options: NULL, or options, used during the call.
/// conversation: receives a handle owned by the caller, for qwen_conversation_free(); NULL
/// on failure.
///
/// Returns QWEN_OK; QWEN_ERROR_INVALID_ARGUMENT, also for tools that are not a JSON array of
/// objects and for an empty stop string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_conversation_new(
    session: *mut qwen_session,
    options: *const qwen_conversation_options,
    conversation: *mut *mut qwen_conversation,
) -> qwen_status {
    // SAFETY: pointers are NULL or as the header asks for.
    call(|| unsafe {
        let out = Out::new("conversation", conversation)?;
        out.set(null_mut());
        let hold = handle::hold::<Session>(session)?;
        let options = conversation_options(options)?;
        let conversation = Conversation::new(hold.write()?.model(), options)?;
        let cancel = hold.clone();
        let talk = Talk { conversation, session: hold, lent: Lent::default() };
        out.set(handle::create(talk, cancel));
        Ok(QWEN_OK)
    })
}

/// Frees the handle. A call in progress on another thread is cancelled, and the memory goes
/// when it returns. NULL is fine. The session is not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_conversation_free(conversation: *mut qwen_conversation) {
    // SAFETY: the header asks for NULL or a handle.
    call_void(|| unsafe { handle::free::<Talk>(conversation) });
}

/// Goes on by other options from the next reply on. All of them count anew, except that the
/// system message stays if `system` is NULL. Another system message or other tools have
/// everything computed again.
///
/// options: as for qwen_conversation_new().
///
/// Returns as qwen_conversation_new(); after an error the conversation is as before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_conversation_configure(
    conversation: *mut qwen_conversation,
    options: *const qwen_conversation_options,
) -> qwen_status {
    // SAFETY: pointers are NULL or as the header asks for.
    call(|| unsafe {
        let mut talk = handle::write::<Talk>(conversation)?;
        let options = conversation_options(options)?;
        let result = talk.conversation.configure(options);
        talk.judge(result)?;
        Ok(QWEN_OK)
    })
}

/// Adds messages without having them answered yet. A reply in progress ends where it is.
///
/// json, length: one message or an array of them, see qwen_chat_render(); used during the
/// call.
///
/// Returns QWEN_OK; QWEN_ERROR_INVALID_ARGUMENT, which leaves the conversation as before.
/// Whether the template takes the messages turns out when they are sent.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_conversation_add(
    conversation: *mut qwen_conversation,
    json: *const c_char,
    length: usize,
) -> qwen_status {
    // SAFETY: pointers are NULL or as the header asks for.
    call(|| unsafe {
        let mut talk = handle::write::<Talk>(conversation)?;
        let result = talk.conversation.add(text("json", json, length)?);
        talk.judge(result)?;
        Ok(QWEN_OK)
    })
}

/// Adds a message of plain text without having it answered yet. A reply in progress ends
/// where it is.
///
/// role, role_length: "user", "assistant" or "system", UTF-8; used during the call.
/// text, length: the text, UTF-8; used during the call.
///
/// Returns as qwen_conversation_add().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_conversation_add_text(
    conversation: *mut qwen_conversation,
    role: *const c_char,
    role_length: usize,
    text: *const c_char,
    length: usize,
) -> qwen_status {
    // SAFETY: pointers are NULL or as the header asks for.
    call(|| unsafe {
        let mut talk = handle::write::<Talk>(conversation)?;
        let role = self::text("role", role, role_length)?;
        let text = self::text("text", text, length)?;
        talk.conversation.add_text(role, text);
        Ok(QWEN_OK)
    })
}

/// Adds the result of a tool call. When the results of all calls of a reply are there, in
/// the order of the calls, qwen_conversation_send() without a message has them answered.
///
/// id, id_length: the `id` of the call's piece; may be NULL with length 0.
/// result, length: the result as text or JSON, UTF-8; used during the call.
///
/// Returns as qwen_conversation_add().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_conversation_add_tool_result(
    conversation: *mut qwen_conversation,
    id: *const c_char,
    id_length: usize,
    result: *const c_char,
    length: usize,
) -> qwen_status {
    // SAFETY: pointers are NULL or as the header asks for.
    call(|| unsafe {
        let mut talk = handle::write::<Talk>(conversation)?;
        let id = text("id", id, id_length)?;
        let result = text("result", result, length)?;
        talk.conversation.add_tool_result(id, result);
        Ok(QWEN_OK)
    })
}

/// The messages so far as a JSON array, the system's included: what
/// qwen_conversation_set_history() and qwen_chat_render() read. A reply is among them once
/// it has ended, with "reasoning_content" and "tool_calls" where it has them.
///
/// json, capacity, needed: a buffer of the caller, see Buffers; sizes in bytes.
///
/// Returns QWEN_OK; QWEN_ERROR_BUFFER_TOO_SMALL; QWEN_ERROR_INVALID_ARGUMENT.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_conversation_history(
    conversation: *const qwen_conversation,
    json: *mut c_char,
    capacity: usize,
    needed: *mut usize,
) -> qwen_status {
    // SAFETY: pointers are NULL or as the header asks for.
    call(|| unsafe {
        let needed = Out::new("needed", needed)?;
        needed.set(0);
        let history = handle::read::<Talk>(conversation)?.conversation.history();
        give(history.as_bytes(), "json", json.cast(), capacity, &needed)
    })
}

/// Replaces all messages, the system's included. A reply in progress is dropped.
///
/// json, length: an array of messages, used during the call.
///
/// Returns QWEN_OK; QWEN_ERROR_INVALID_ARGUMENT, which leaves the conversation as before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_conversation_set_history(
    conversation: *mut qwen_conversation,
    json: *const c_char,
    length: usize,
) -> qwen_status {
    // SAFETY: pointers are NULL or as the header asks for.
    call(|| unsafe {
        let mut talk = handle::write::<Talk>(conversation)?;
        let result = talk.conversation.set_history(text("json", json, length)?);
        talk.judge(result)?;
        Ok(QWEN_OK)
    })
}

/// Cancels the call in progress on a conversation, or the next one if none is, as
/// qwen_session_cancel() does on its session. Any thread may call it at any time.
///
/// Returns QWEN_OK, or QWEN_ERROR_INVALID_HANDLE.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_conversation_cancel(
    conversation: *const qwen_conversation,
) -> qwen_status {
    // SAFETY: the header asks for NULL or a handle.
    call(|| unsafe {
        handle::visit::<Talk>(conversation)?.cancel();
        Ok(QWEN_OK)
    })
}

/// Forgets a cancel that no call has answered, as qwen_session_cancel_clear() does for the
/// session.
///
/// Returns QWEN_OK, whether there was one or not; QWEN_ERROR_BUSY during a call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_conversation_cancel_clear(
    conversation: *mut qwen_conversation,
) -> qwen_status {
    // SAFETY: the header asks for NULL or a handle.
    call(|| unsafe {
        let talk = handle::write::<Talk>(conversation)?;
        talk.session.write()?.clear_cancel();
        Ok(QWEN_OK)
    })
}
