//! Judging text: probabilities and embeddings.

use std::ffi::c_char;

use super::arguments::{Out, Sized32, fill, flags, give, text, tokens};
use super::guard::call;
use super::handle::{self, Writer};
use super::session::qwen_session;
use super::status::{Failure, QWEN_OK, Result, qwen_status};
use super::tokens::{QWEN_TEXT_ADDED_TOKENS, added_tokens};
use crate::Session;
use crate::session::{Pooling, Score};

/// For qwen_session_score(): the tokens become part of the sequence.
pub const QWEN_SCORE_KEEP: u32 = 0x8;
/// For qwen_session_embed(): the embedding gets length 1.
pub const QWEN_EMBED_NORMALIZE: u32 = 0x10;

/// What becomes of the hidden states of several tokens: one of the QWEN_POOLING constants.
pub type qwen_pooling = i32;

/// Their mean.
pub const QWEN_POOLING_MEAN: qwen_pooling = 0;
/// The last token's, which has seen all others.
pub const QWEN_POOLING_LAST: qwen_pooling = 1;

/// A token and how likely it is.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct qwen_token_logprob {
    /// The token.
    pub token: i32,
    /// The natural logarithm of its probability.
    pub logprob: f32,
}

/// How likely a text is. Set struct_size before asking.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct qwen_score {
    /// sizeof(qwen_score)
    pub struct_size: u32,
    /// Tokens of the text that are the most likely ones in their places.
    pub best_count: u32,
    /// Tokens of the text.
    pub token_count: u64,
    /// The natural logarithm of the probability of the text after the sequence.
    pub log_likelihood: f64,
    /// The exponential of the mean loss of a token; 1 for no tokens.
    pub perplexity: f64,
}

// SAFETY: integers and floats; struct_size first.
unsafe impl Sized32 for qwen_score {
    const NAME: &'static str = "qwen_score";
    const FIRST_SIZE: usize = 32;
}

/// How likely given tokens are as the next token: natural logarithms of their probabilities
/// by the network's logits over the whole vocabulary, before bias, penalties, temperature
/// and logits callback.
///
/// tokens, count: used during the call.
/// logprobs: `count` numbers of the caller, which are written.
///
/// Returns as qwen_session_logits(); QWEN_ERROR_NUMERIC if the logits hold NaN. The sequence
/// is not changed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_session_logprobs(
    session: *mut qwen_session,
    tokens: *const i32,
    count: usize,
    logprobs: *mut f32,
) -> qwen_status {
    // SAFETY: pointers are NULL or as the header asks for.
    call(|| unsafe {
        let out = numbers(logprobs, count)?;
        let mut session = handle::write::<Session>(session)?;
        let ids = self::tokens("tokens", tokens, count)?;
        let result = session.logprobs(&ids);
        let found = session.judge(result)?;
        write(&found, out);
        Ok(QWEN_OK)
    })
}

/// The most likely next tokens, the most likely first, lower ids first among equals.
/// Probabilities are as for qwen_session_logprobs().
///
/// top, count: an array of the caller, of which at most vocab_size entries are written; the
/// others get token -1.
///
/// Returns as qwen_session_logprobs().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_session_top_logprobs(
    session: *mut qwen_session,
    top: *mut qwen_token_logprob,
    count: usize,
) -> qwen_status {
    // SAFETY: pointers are NULL or as the header asks for.
    call(|| unsafe {
        let top = Top::new(top, count)?;
        let mut session = handle::write::<Session>(session)?;
        let result = session.top_logprobs(count);
        top.set(&session.judge(result)?);
        Ok(QWEN_OK)
    })
}

/// How likely the token was that qwen_session_next_token() has just chosen, and which were
/// the most likely in its place. To be asked before the next call that computes; it costs no
/// pass through the network.
///
/// logprob: receives the logarithm of its probability, see qwen_session_logprobs(); NULL if
/// not wanted.
/// top, count: as for qwen_session_top_logprobs(); NULL with 0 if not wanted.
///
/// Returns as qwen_session_logprobs(); QWEN_ERROR_INVALID_STATE if the last token of the
/// sequence was fed, or is computed already.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_session_chosen_logprobs(
    session: *mut qwen_session,
    logprob: *mut f32,
    top: *mut qwen_token_logprob,
    count: usize,
) -> qwen_status {
    // SAFETY: pointers are NULL or as the header asks for.
    call(|| unsafe {
        let logprob = Out::optional("logprob", logprob)?;
        let top = Top::new(top, count)?;
        let mut session = handle::write::<Session>(session)?;
        let result = session.chosen_logprobs(count);
        let (chosen, most) = session.judge(result)?;
        logprob.iter().for_each(|out| out.set(chosen));
        top.set(&most);
        Ok(QWEN_OK)
    })
}

/// How likely tokens are as the continuation of the sequence: for ranking answers, finding
/// the odd one out, perplexity. The session stays as it is, except with QWEN_SCORE_KEEP.
///
/// tokens, count: used during the call. No tokens have the likelihood 1.
/// flags: QWEN_SCORE_KEEP or 0.
/// logprobs: `count` numbers of the caller, which receive for each token the logarithm of
/// its probability after those before it; NULL if not wanted.
/// score: filled as far as its struct_size reaches, which must be set; NULL if not wanted.
///
/// Returns QWEN_OK; QWEN_ERROR_INVALID_STATE if the sequence is empty (a first token has no
/// probability: feed one); otherwise as qwen_session_feed(), but that after QWEN_CANCELLED
/// and QWEN_ERROR_OUT_OF_MEMORY the sequence is as it was, except with QWEN_SCORE_KEEP.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_session_score(
    session: *mut qwen_session,
    tokens: *const i32,
    count: usize,
    flags: u32,
    logprobs: *mut f32,
    score: *mut qwen_score,
) -> qwen_status {
    // SAFETY: pointers are NULL or as the header asks for.
    call(|| unsafe {
        let out = if logprobs.is_null() { logprobs } else { numbers(logprobs, count)? };
        check_score(score)?;
        let mut session = handle::write::<Session>(session)?;
        let ids = self::tokens("tokens", tokens, count)?;
        let keep = self::flags(flags, QWEN_SCORE_KEEP)? != 0;
        let result = session.score(&ids, keep);
        let found = session.judge(result)?;
        if !out.is_null() {
            write(&found.each, out);
        }
        give_score(score, &found)
    })
}

/// Tokenizes text and scores it, see qwen_session_score().
///
/// text, length: UTF-8, used during the call.
/// flags: QWEN_SCORE_KEEP, QWEN_TEXT_ADDED_TOKENS, both or 0.
///
/// Returns as qwen_session_score().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_session_score_text(
    session: *mut qwen_session,
    text: *const c_char,
    length: usize,
    flags: u32,
    score: *mut qwen_score,
) -> qwen_status {
    // SAFETY: pointers are NULL or as the header asks for.
    call(|| unsafe {
        check_score(score)?;
        let mut session = handle::write::<Session>(session)?;
        let text = self::text("text", text, length)?;
        let flags = self::flags(flags, QWEN_SCORE_KEEP | QWEN_TEXT_ADDED_TOKENS)?;
        let ids = encode(&session, text, flags & QWEN_TEXT_ADDED_TOKENS)?;
        let result = session.score(&ids, flags & QWEN_SCORE_KEEP != 0);
        let found = session.judge(result)?;
        give_score(score, &found)
    })
}

/// The hidden state of tokens after the last layer and the final norm, pooled over them: an
/// embedding of a text. It sees the sequence before the tokens, which is usually empty, and
/// leaves the session as it is.
///
/// tokens, count: used during the call; at least one.
/// pooling: a QWEN_POOLING constant.
/// flags: QWEN_EMBED_NORMALIZE or 0.
/// embedding, capacity, needed: a buffer of the caller, see Buffers; sizes in numbers, which
/// are hidden_size of qwen_model_info.
///
/// Returns QWEN_OK; QWEN_ERROR_BUFFER_TOO_SMALL; QWEN_ERROR_INVALID_ARGUMENT;
/// QWEN_ERROR_CONTEXT_OVERFLOW; QWEN_ERROR_NUMERIC if a number is not finite; QWEN_CANCELLED;
/// QWEN_ERROR_OUT_OF_MEMORY; QWEN_ERROR_FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_session_embed(
    session: *mut qwen_session,
    tokens: *const i32,
    count: usize,
    pooling: qwen_pooling,
    flags: u32,
    embedding: *mut f32,
    capacity: usize,
    needed: *mut usize,
) -> qwen_status {
    // SAFETY: pointers are NULL or as the header asks for.
    call(|| unsafe {
        let needed = Out::new("needed", needed)?;
        needed.set(0);
        let mut session = handle::write::<Session>(session)?;
        let ids = self::tokens("tokens", tokens, count)?;
        embed(&mut session, &ids, pooling, flags, embedding, capacity, &needed)
    })
}

/// Tokenizes text and embeds it, see qwen_session_embed().
///
/// text, length: UTF-8, used during the call; not empty.
/// flags: QWEN_EMBED_NORMALIZE, QWEN_TEXT_ADDED_TOKENS, both or 0.
///
/// Returns as qwen_session_embed().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_session_embed_text(
    session: *mut qwen_session,
    text: *const c_char,
    length: usize,
    pooling: qwen_pooling,
    flags: u32,
    embedding: *mut f32,
    capacity: usize,
    needed: *mut usize,
) -> qwen_status {
    // SAFETY: pointers are NULL or as the header asks for.
    call(|| unsafe {
        let needed = Out::new("needed", needed)?;
        needed.set(0);
        let mut session = handle::write::<Session>(session)?;
        let text = self::text("text", text, length)?;
        self::flags(flags, QWEN_EMBED_NORMALIZE | QWEN_TEXT_ADDED_TOKENS)?;
        let ids = encode(&session, text, flags & QWEN_TEXT_ADDED_TOKENS)?;
        let flags = flags & QWEN_EMBED_NORMALIZE;
        embed(&mut session, &ids, pooling, flags, embedding, capacity, &needed)
    })
}

/// # Safety
/// As [`give`].
unsafe fn embed(
    session: &mut Writer<Session>,
    ids: &[u32],
    pooling: qwen_pooling,
    flags: u32,
    embedding: *mut f32,
    capacity: usize,
    needed: &Out<usize>,
) -> Result<qwen_status> {
    let pooling = match pooling {
        QWEN_POOLING_MEAN => Pooling::Mean,
        QWEN_POOLING_LAST => Pooling::Last,
        other => {
            return Err(Failure::argument(format!("`pooling` is {other}: no such constant")));
        }
    };
    let normalize = self::flags(flags, QWEN_EMBED_NORMALIZE)? != 0;
    let size = session.model().config().map_or(0, |config| config.hidden_size);
    if embedding.is_null() || capacity < size {
        // Only the size is wanted, or fits: spare the work.
        // SAFETY: the caller's promise; nothing is written to a buffer that is too small.
        return unsafe { give(&vec![0f32; size], "embedding", embedding, capacity, needed) };
    }
    let result = session.embed(ids, pooling, normalize);
    let found = session.judge(result)?;
    // SAFETY: the caller's promise.
    unsafe { give(&found, "embedding", embedding, capacity, needed) }
}

fn encode(session: &Session, text: &str, flags: u32) -> Result<Vec<u32>> {
    let mut ids = Vec::new();
    session.model().tokenizer().encode(text, added_tokens(flags)?, &mut ids);
    Ok(ids)
}

/// Checks a place for `count` numbers.
///
/// # Safety
/// `pointer` is NULL or points to `count` writable numbers.
unsafe fn numbers(pointer: *mut f32, count: usize) -> Result<*mut f32> {
    if count > 0 {
        // SAFETY: the caller's promise.
        unsafe { Out::new("logprobs", pointer) }?;
    }
    Ok(pointer)
}

/// # Safety
/// `out` was checked by [`numbers`] for as many.
unsafe fn write(numbers: &[f32], out: *mut f32) {
    // SAFETY: checked, and the library's own memory does not overlap the caller's.
    unsafe { std::ptr::copy_nonoverlapping(numbers.as_ptr(), out, numbers.len()) }
}

/// A place for the most likely tokens.
struct Top {
    pointer: *mut qwen_token_logprob,
    count: usize,
}

impl Top {
    /// # Safety
    /// `pointer` is NULL or points to `count` writable entries.
    unsafe fn new(pointer: *mut qwen_token_logprob, count: usize) -> Result<Self> {
        if count > 0 {
            // SAFETY: the caller's promise.
            unsafe { Out::new("top", pointer) }?;
        }
        let top = Self { pointer, count };
        top.set(&[]);
        Ok(top)
    }

    /// Writes `found`, and -1 to what remains.
    fn set(&self, found: &[(u32, f32)]) {
        for i in 0..self.count {
            let entry = match found.get(i) {
                Some(&(id, logprob)) => qwen_token_logprob { token: id as i32, logprob },
                None => qwen_token_logprob { token: -1, logprob: 0.0 },
            };
            // SAFETY: `new` was promised so many.
            unsafe { self.pointer.add(i).write(entry) };
        }
    }
}

/// Checks a score to be filled before anything is computed.
///
/// # Safety
/// As [`fill`].
unsafe fn check_score(score: *mut qwen_score) -> Result<()> {
    let empty = Score { each: Vec::new(), best: Vec::new() };
    // SAFETY: the caller's promise.
    unsafe { give_score(score, &empty) }.map(|_| ())
}

/// # Safety
/// As [`fill`].
unsafe fn give_score(score: *mut qwen_score, found: &Score) -> Result<qwen_status> {
    if score.is_null() {
        return Ok(QWEN_OK);
    }
    let value = qwen_score {
        struct_size: 0,
        best_count: found.best.iter().filter(|&&best| best).count() as u32,
        token_count: found.each.len() as u64,
        log_likelihood: found.total(),
        perplexity: found.perplexity(),
    };
    // SAFETY: the caller's promise.
    unsafe { fill("score", score, &value) }?;
    Ok(QWEN_OK)
}
