//! Text to token ids and back.

use std::ffi::c_char;
use std::ptr::null;

use super::arguments::{Out, as_i32, flags, give, text, tokens};
use super::guard::call;
use super::handle;
use super::model::qwen_model;
use super::status::{Failure, QWEN_OK, Result, qwen_status};
use crate::Model;
use crate::tokenizer::{AddedTokens, Special};

/// For functions that take text: spellings of added tokens in it ("<|im_end|>", "<think>")
/// become those tokens. Without the flag they are ordinary text, which is right for
/// everything that a user wrote.
pub const QWEN_TEXT_ADDED_TOKENS: u32 = 0x1;

/// For functions that give text: special tokens ("<|im_end|>") are left out. Added tokens
/// that are not special ("<think>", "<tool_call>") stay.
pub const QWEN_TEXT_SKIP_SPECIAL: u32 = 0x2;

/// From qwen_token_kind(): an added token, not of the base vocabulary.
pub const QWEN_TOKEN_ADDED: u32 = 0x1;
/// From qwen_token_kind(): special, left out by QWEN_TEXT_SKIP_SPECIAL.
pub const QWEN_TOKEN_SPECIAL: u32 = 0x2;
/// From qwen_token_kind(): ends a turn.
pub const QWEN_TOKEN_END_OF_TURN: u32 = 0x4;
/// From qwen_token_kind(): padding of the vocabulary, without text.
pub const QWEN_TOKEN_PADDING: u32 = 0x8;

pub(super) fn added_tokens(value: u32) -> Result<AddedTokens> {
    let honour = flags(value, QWEN_TEXT_ADDED_TOKENS)? != 0;
    Ok(if honour { AddedTokens::Honour } else { AddedTokens::AsText })
}

pub(super) fn special(value: u32) -> Result<Special> {
    let skip = flags(value, QWEN_TEXT_SKIP_SPECIAL)? != 0;
    Ok(if skip { Special::Skip } else { Special::Keep })
}

/// Tokenizes text.
///
/// text, length: UTF-8, used during the call. Empty text has no tokens.
/// flags: QWEN_TEXT_ADDED_TOKENS or 0.
/// tokens, capacity, needed: a buffer of the caller, see Buffers; sizes in tokens.
/// A text never has more tokens than four times its bytes.
///
/// Returns QWEN_OK; QWEN_ERROR_BUFFER_TOO_SMALL; QWEN_ERROR_INVALID_ARGUMENT, for text that
/// is not UTF-8 with the offset of the first bad byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_tokenize(
    model: *const qwen_model,
    text: *const c_char,
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
        let text = self::text("text", text, length)?;
        let added = added_tokens(flags)?;
        let mut ids = Vec::new();
        model.tokenizer().encode(text, added, &mut ids);
        give(as_i32(&ids), "tokens", tokens, capacity, &needed)
    })
}

/// Gives the text of tokens, the exact bytes. They may begin or end inside a character; the
/// stream decoder is for text that is shown while it is made.
///
/// tokens, count: used during the call.
/// flags: QWEN_TEXT_SKIP_SPECIAL or 0.
/// text, capacity, needed: a buffer of the caller, see Buffers; sizes in bytes. No NUL is
/// added, and U+0000 may be inside.
///
/// Returns QWEN_OK; QWEN_ERROR_BUFFER_TOO_SMALL; QWEN_ERROR_INVALID_ARGUMENT, also for an id
/// that is negative or outside the vocabulary. Padding ids have no text and are no error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_detokenize(
    model: *const qwen_model,
    tokens: *const i32,
    count: usize,
    flags: u32,
    text: *mut c_char,
    capacity: usize,
    needed: *mut usize,
) -> qwen_status {
    // SAFETY: pointers are NULL or as the header asks for.
    call(|| unsafe {
        let needed = Out::new("needed", needed)?;
        needed.set(0);
        let model = handle::read::<Model>(model)?;
        let ids = self::tokens("tokens", tokens, count)?;
        let special = special(flags)?;
        let mut bytes = Vec::new();
        model.tokenizer().decode(&ids, special, &mut bytes)?;
        give(&bytes, "text", text.cast(), capacity, &needed)
    })
}

/// The bytes of one token, special or not.
///
/// bytes, length: receive a borrowed array, valid until the model handle is freed. It is not
/// NUL-terminated and may hold part of a character. A padding id has length 0.
///
/// Returns QWEN_OK; QWEN_ERROR_INVALID_ARGUMENT, also for an id outside the vocabulary.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_token_bytes(
    model: *const qwen_model,
    token: i32,
    bytes: *mut *const c_char,
    length: *mut usize,
) -> qwen_status {
    // SAFETY: pointers are NULL or as the header asks for.
    call(|| unsafe {
        let (bytes, length) = (Out::new("bytes", bytes)?, Out::new("length", length)?);
        bytes.set(null());
        length.set(0);
        let model = handle::read::<Model>(model)?;
        let token = token_id(&model, token)?;
        if let Some(found) = model.tokenizer().token_bytes(token) {
            bytes.set(found.as_ptr().cast());
            length.set(found.len());
        }
        Ok(QWEN_OK)
    })
}

/// What kind of token an id is.
///
/// kind: receives a sum of QWEN_TOKEN_ constants; 0 is a token of the base vocabulary.
///
/// Returns QWEN_OK; QWEN_ERROR_INVALID_ARGUMENT, also for an id outside the vocabulary.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_token_kind(
    model: *const qwen_model,
    token: i32,
    kind: *mut u32,
) -> qwen_status {
    // SAFETY: pointers are NULL or as the header asks for.
    call(|| unsafe {
        let kind = Out::new("kind", kind)?;
        kind.set(0);
        let model = handle::read::<Model>(model)?;
        let token = token_id(&model, token)?;
        let tokenizer = model.tokenizer();
        kind.set(
            [
                (tokenizer.is_added(token), QWEN_TOKEN_ADDED),
                (tokenizer.is_special(token), QWEN_TOKEN_SPECIAL),
                (model.end_of_turn_ids().contains(&token), QWEN_TOKEN_END_OF_TURN),
                (tokenizer.token_bytes(token).is_none(), QWEN_TOKEN_PADDING),
            ]
            .iter()
            .filter(|(is, _)| *is)
            .map(|(_, bit)| bit)
            .sum(),
        );
        Ok(QWEN_OK)
    })
}

/// The id of an added token by its spelling, such as "<|im_end|>".
///
/// spelling, length: UTF-8, used during the call.
/// token: receives the id, or -1 if no added token is spelled so.
///
/// Returns QWEN_OK or QWEN_ERROR_INVALID_ARGUMENT.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_token_find(
    model: *const qwen_model,
    spelling: *const c_char,
    length: usize,
    token: *mut i32,
) -> qwen_status {
    // SAFETY: pointers are NULL or as the header asks for.
    call(|| unsafe {
        let token = Out::new("token", token)?;
        token.set(-1);
        let model = handle::read::<Model>(model)?;
        let spelling = self::text("spelling", spelling, length)?;
        if let Some(id) = model.tokenizer().token_id(spelling) {
            token.set(id as i32);
        }
        Ok(QWEN_OK)
    })
}

/// An id of the model's vocabulary.
pub(super) fn token_id(model: &Model, token: i32) -> Result<u32> {
    let known = model.tokenizer().token_count();
    let limit = model.config().map_or(known, |config| config.vocab_size);
    match u32::try_from(token) {
        Ok(id) if (id as usize) < limit => Ok(id),
        _ => Err(Failure::argument(format!(
            "`token` is {token}, but token ids are 0 to {}",
            limit.saturating_sub(1)
        ))),
    }
}
