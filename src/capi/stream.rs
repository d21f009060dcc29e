//! Text while it is made.

use std::ffi::c_char;
use std::ptr::{null, null_mut};

use super::arguments::Out;
use super::guard::{call, call_void};
use super::handle::{self, Freed, Object};
use super::model::qwen_model;
use super::status::{QWEN_OK, qwen_status};
use super::tokens::{special, token_id};
use crate::Model;
use crate::tokenizer::StreamDecoder;

/// Turns tokens into text one by one, in whole characters: bytes of a character that is not
/// complete are held back until it is. What all calls give, put together, is the text of all
/// tokens, with U+FFFD for bytes that are not UTF-8.
///
/// It keeps its model open.
pub struct qwen_stream_decoder {
    _opaque: [u8; 0],
}

pub(super) struct Stream {
    model: Model,
    decoder: StreamDecoder,
    /// What the last call gave; borrowed by the caller.
    text: String,
}

impl Object for Stream {
    type Public = qwen_stream_decoder;
    type Side = ();
    const MAGIC: u64 = u64::from_le_bytes(*b"qwenSTRM");
    const NAME: &'static str = "qwen_stream_decoder";
    fn freed() -> &'static Freed<Self> {
        static FREED: Freed<Stream> = Freed::new();
        &FREED
    }
}

/// Makes a stream decoder.
///
/// flags: QWEN_TEXT_SKIP_SPECIAL or 0.
/// decoder: receives a handle owned by the caller, for qwen_stream_decoder_free(); NULL on
/// failure.
///
/// Returns QWEN_OK or QWEN_ERROR_INVALID_ARGUMENT.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_stream_decoder_new(
    model: *const qwen_model,
    flags: u32,
    decoder: *mut *mut qwen_stream_decoder,
) -> qwen_status {
    // SAFETY: pointers are NULL or as the header asks for.
    call(|| unsafe {
        let out = Out::new("decoder", decoder)?;
        out.set(null_mut());
        let model = handle::read::<Model>(model)?;
        let decoder = StreamDecoder::new(special(flags)?);
        let stream = Stream { model: model.clone(), decoder, text: String::new() };
        out.set(handle::create(stream, ()));
        Ok(QWEN_OK)
    })
}

/// Frees the handle. NULL is fine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_stream_decoder_free(decoder: *mut qwen_stream_decoder) {
    // SAFETY: the header asks for NULL or a handle.
    call_void(|| unsafe { handle::free::<Stream>(decoder) });
}

/// Gives the text that a token completes.
///
/// text, length: receive borrowed UTF-8 of whole characters, valid until the next call on
/// this decoder. It is not NUL-terminated; length 0 means that nothing is complete yet.
///
/// Returns QWEN_OK; QWEN_ERROR_INVALID_ARGUMENT, also for an id outside the vocabulary: the
/// decoder then stands as before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_stream_decoder_push(
    decoder: *mut qwen_stream_decoder,
    token: i32,
    text: *mut *const c_char,
    length: *mut usize,
) -> qwen_status {
    // SAFETY: pointers are NULL or as the header asks for.
    unsafe {
        give_text(decoder, text, length, |stream| {
            let token = token_id(&stream.model, token)?;
            stream.decoder.push(stream.model.tokenizer(), token, &mut stream.text);
            Ok(QWEN_OK)
        })
    }
}

/// Gives what is held back: U+FFFD for an incomplete character, else nothing. To be called
/// when the text ends; the decoder can be used for another text afterwards. To resume the
/// same text later (after a limit in the middle of a character, say), do not call it.
///
/// text, length: as for qwen_stream_decoder_push().
///
/// Returns QWEN_OK or QWEN_ERROR_INVALID_ARGUMENT.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_stream_decoder_finish(
    decoder: *mut qwen_stream_decoder,
    text: *mut *const c_char,
    length: *mut usize,
) -> qwen_status {
    // SAFETY: pointers are NULL or as the header asks for.
    unsafe {
        give_text(decoder, text, length, |stream| {
            stream.decoder.finish(&mut stream.text);
            Ok(QWEN_OK)
        })
    }
}

/// Puts the decoder where it would be after these tokens, without giving their text: at the
/// start of a text whose end may be a character that is not whole yet. To go on with an
/// answer whose session was restored: hand it the tokens of the answer so far.
///
/// tokens, count: used during the call. No tokens: the decoder is as new.
///
/// Returns QWEN_OK; QWEN_ERROR_INVALID_ARGUMENT, also for an id outside the vocabulary: the
/// decoder then stands as before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_stream_decoder_resume(
    decoder: *mut qwen_stream_decoder,
    tokens: *const i32,
    count: usize,
) -> qwen_status {
    // SAFETY: pointers are NULL or as the header asks for.
    call(|| unsafe {
        let mut stream = handle::write::<Stream>(decoder)?;
        let ids = super::arguments::tokens("tokens", tokens, count)?;
        for &id in &ids {
            token_id(&stream.model, id as i32)?;
        }
        let Stream { model, decoder, text } = &mut *stream;
        text.clear();
        decoder.resume(model.tokenizer(), &ids);
        Ok(QWEN_OK)
    })
}

/// Lets `step` append to the emptied text and lends the text to the caller.
///
/// # Safety
/// `decoder` is NULL or a handle, the others are NULL or writable.
unsafe fn give_text(
    decoder: *mut qwen_stream_decoder,
    text: *mut *const c_char,
    length: *mut usize,
    step: impl FnOnce(&mut Stream) -> super::status::Result<qwen_status>,
) -> qwen_status {
    // SAFETY: the caller's promise.
    call(|| unsafe {
        let (text, length) = (Out::new("text", text)?, Out::new("length", length)?);
        text.set(null());
        length.set(0);
        let mut stream = handle::write::<Stream>(decoder)?;
        stream.text.clear();
        let status = step(&mut stream)?;
        text.set(stream.text.as_ptr().cast());
        length.set(stream.text.len());
        Ok(status)
    })
}
