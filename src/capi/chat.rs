//! Conversations as text and as tokens.

use std::ffi::c_char;

use super::arguments::{Out, as_i32, flags, give, text};
use super::guard::call;
use super::handle;
use super::model::qwen_model;
use super::status::{Failure, Result, qwen_status};
use crate::chat::ChatRequest;
use crate::session::Extent;
use crate::{ChatEncoding, Model};

/// For conversations: spellings of added tokens in messages become those tokens, as in
/// Transformers. Without the flag only the template writes them, so that no message can end
/// its own turn or open another.
pub const QWEN_CHAT_AS_TRANSFORMERS: u32 = 0x4;

/// For conversations: not the prompt for an answer, but what comes before the next message of
/// the user, whatever that is. The template writes the newest answer differently once it is
/// history (thoughts and empty think blocks go), so that its tokens have to be computed once
/// more. With this flag that happens now, while the user reads and types, and the next turn
/// costs its own tokens alone.
pub const QWEN_CHAT_HISTORY: u32 = 0x8;

pub(super) fn encoding(value: u32) -> Result<ChatEncoding> {
    let raw = flags(value, QWEN_CHAT_AS_TRANSFORMERS)? != 0;
    Ok(if raw { ChatEncoding::AsTransformers } else { ChatEncoding::Safe })
}

/// The encoding, and what of a conversation is meant.
pub(super) fn form(value: u32) -> Result<(ChatEncoding, Extent)> {
    let known = QWEN_CHAT_AS_TRANSFORMERS | QWEN_CHAT_HISTORY;
    let history = flags(value, known)? & QWEN_CHAT_HISTORY != 0;
    let extent = if history { Extent::History } else { Extent::Prompt };
    Ok((encoding(value & !QWEN_CHAT_HISTORY)?, extent))
}

/// A conversation of the caller.
///
/// # Safety
/// As [`text`].
pub(super) unsafe fn request(json: *const c_char, length: usize) -> Result<ChatRequest> {
    // SAFETY: the caller's promise.
    let json = unsafe { text("json", json, length) }?;
    ChatRequest::from_json(json).map_err(Failure::from)
}

/// Renders a conversation by the checkpoint's chat template, byte for byte as Transformers
/// does. To feed it to a session, use qwen_session_feed_chat(): tokenizing this text would
/// let messages smuggle in control tokens.
///
/// json, length: UTF-8, used during the call. An object
///     {"messages": [...], "tools": [...], "enable_thinking": true or false,
///      "add_generation_prompt": true or false}
/// or the messages array alone. Messages are in the usual form: "role" ("system", "user",
/// "assistant", "tool"), "content" (text, or parts), and for the assistant
/// "reasoning_content" and "tool_calls" (arguments as an object or as JSON in a string).
/// Without "enable_thinking" the template decides; "add_generation_prompt" is true unless
/// said otherwise. Further keys are those of Transformers: "continue_final_message": true lets
/// the text end inside the last message, after its last word, so that the model goes on with
/// it; "documents"; "chat_template_kwargs", an object of further variables of the template. Any
/// other key is an error.
/// flags: 0.
/// rendered, capacity, needed: a buffer of the caller, see Buffers; sizes in bytes.
///
/// Returns QWEN_OK; QWEN_ERROR_BUFFER_TOO_SMALL; QWEN_ERROR_INVALID_ARGUMENT, also for JSON
/// that is malformed or of another form; QWEN_ERROR_TEMPLATE if the checkpoint has no usable
/// template or the template refuses the messages, with the template's own words;
/// QWEN_ERROR_OUT_OF_MEMORY, also where the system starts no thread for it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_chat_render(
    model: *const qwen_model,
    json: *const c_char,
    length: usize,
    flags: u32,
    rendered: *mut c_char,
    capacity: usize,
    needed: *mut usize,
) -> qwen_status {
    // SAFETY: pointers are NULL or as the header asks for.
    call(|| unsafe {
        let needed = Out::new("needed", needed)?;
        needed.set(0);
        let model = handle::read::<Model>(model)?;
        let request = request(json, length)?;
        self::flags(flags, 0)?;
        let rendered_text = model.chat_template()?.render(&request)?;
        give(rendered_text.as_bytes(), "rendered", rendered.cast(), capacity, &needed)
    })
}

/// Renders a conversation and tokenizes it.
///
/// json, length: as for qwen_chat_render().
/// flags: QWEN_CHAT_AS_TRANSFORMERS and QWEN_CHAT_HISTORY, or 0.
/// tokens, capacity, needed: a buffer of the caller, see Buffers; sizes in tokens.
///
/// Returns as qwen_chat_render().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_chat_tokenize(
    model: *const qwen_model,
    json: *const c_char,
    length: usize,
    flags: u32,
    tokens: *mut i32,
    capacity: usize,
    needed: *mut usize,
) -> qwen_status {
    // SAFETY: pointers are NULL or as the header asks for.
    call(|| unsafe {
        let needed = Out::new("needed", needed)?;
        needed.set(0);
        let model = handle::read::<Model>(model)?;
        let request = request(json, length)?;
        let ids = match form(flags)? {
            (encoding, Extent::Prompt) => model.encode_chat(&request, encoding)?,
            (encoding, Extent::History) => model.encode_history(&request, encoding)?,
        };
        give(as_i32(&ids), "tokens", tokens, capacity, &needed)
    })
}
