//! Sessions: a sequence being continued.

use std::ffi::c_void;
use std::ops::ControlFlow;
use std::ptr::{null, null_mut};

use super::arguments::{Out, Sized32, as_i32, flags, init, options};
use super::guard::{call, call_void};
use super::handle::{self, Freed, Object};
use super::model::{constant, constant_of, qwen_model};
use super::sampling::{qwen_sampling_options, sampling};
use super::status::{Failure, QWEN_END_OF_TURN, QWEN_LIMIT_REACHED, QWEN_OK, Result, qwen_status};
use super::user::User;
use crate::session::{CancelHandle, Overflow, Progress};
use crate::{KvElement, Model, Next, Session, SessionOptions};

/// A sequence being continued, with the network's state after it. It keeps its model open;
/// many sessions share one model and do not disturb each other.
pub struct qwen_session {
    _opaque: [u8; 0],
}

/// How to make a session. Zero means default, everywhere.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct qwen_session_options {
    /// sizeof(qwen_session_options)
    pub struct_size: u32,
    /// 0.
    pub flags: u32,
    /// The most tokens the sequence may hold. 0: what the model was made for. Memory grows
    /// with use, not with this number.
    pub context_limit: u64,
    /// How tokens are chosen; copied. NULL: the defaults.
    pub sampling: *const qwen_sampling_options,
    /// Not 0: shares computed beginnings of sequences, through the prefix cache of the model
    /// (prefix_cache_bytes in qwen_model_options), with the sessions that have the same
    /// number here, and with no others. 0: with nobody. Whoever shares can find out, by the
    /// time a prompt takes, whether somebody fed the same beginning: give users that must not
    /// know of each other numbers of their own.
    pub cache_namespace: u64,
    /// With QWEN_OVERFLOW_DROP_TURNS: tokens to keep free for the answer and the turns to
    /// come. Turns go when less than half of them would be free, until all are. 0: a quarter
    /// of the context.
    pub overflow_reserve: u64,
    /// What happens to a conversation that does not fit: one of the QWEN_OVERFLOW constants.
    pub overflow: qwen_overflow,
    /// Most marks held, see qwen_session_mark(). 0: 4.
    pub mark_limit: u32,
    /// How keys and values are stored: one of the QWEN_KV constants. Beginnings are shared,
    /// and saved sessions restored, among sessions of the same format only.
    pub kv: qwen_kv,
    /// 0.
    pub reserved: u32,
}

/// How a session stores the keys and values of its tokens: one of the QWEN_KV constants. At
/// the published 0.8B shapes a token takes 24,576 bytes in FP32, 12,288 in FP16, and 6,240 in
/// INT8; that much memory a session grows by with each token, and that much is read for each
/// earlier token when one is generated.
pub type qwen_kv = i32;

/// QWEN_KV_FP32 for a model with QWEN_COMPUTE_EXACT, whose results nothing may round;
/// QWEN_KV_FP16 for one with QWEN_COMPUTE_FAST.
pub const QWEN_KV_AUTO: qwen_kv = 0;
/// 32 bits, as computed.
pub const QWEN_KV_FP32: qwen_kv = 1;
/// 16 bits, rounded to nearest.
pub const QWEN_KV_FP16: qwen_kv = 2;
/// 8 bits, with a scale for each key and value of each token and head.
pub const QWEN_KV_INT8: qwen_kv = 3;

const KV_FORMATS: [(qwen_kv, Option<KvElement>); 4] = [
    (QWEN_KV_AUTO, None),
    (QWEN_KV_FP32, Some(KvElement::F32)),
    (QWEN_KV_FP16, Some(KvElement::F16)),
    (QWEN_KV_INT8, Some(KvElement::I8)),
];

/// What happens to a conversation that does not fit: one of the QWEN_OVERFLOW constants.
pub type qwen_overflow = i32;

/// QWEN_ERROR_CONTEXT_OVERFLOW, before anything is consumed.
pub const QWEN_OVERFLOW_REFUSE: qwen_overflow = 0;
/// qwen_session_feed_chat() keeps the system messages and the newest turns and leaves out the
/// oldest whole turns, a turn being a user message with all that follows up to the next one.
/// qwen_session_get_feed_info() says which. It then computes all behind the system messages
/// again; overflow_reserve makes that rare, and as long as the conversation without what was
/// left out last leaves half of that free, the same is left out. The newest turn is fed even
/// if it leaves less; if it alone is too long, it is QWEN_ERROR_CONTEXT_OVERFLOW after all.
///
/// Tokens and text that do not fit do the same to a sequence with turns of a user (control token
/// and role, as the chat template writes them); without such turns they are refused.
/// Generating never leaves out anything: it ends with QWEN_LIMIT_REACHED.
pub const QWEN_OVERFLOW_DROP_TURNS: qwen_overflow = 1;

// SAFETY: integers and a raw pointer; struct_size first.
unsafe impl Sized32 for qwen_session_options {
    const NAME: &'static str = "qwen_session_options";
    const FIRST_SIZE: usize = 24;
}

/// Called during long calls, between layers, on the calling thread. `done` of `total` tokens
/// are computed. A return value other than 0 cancels the call, as qwen_session_cancel()
/// does. No lock is held; the session itself is in use (QWEN_ERROR_BUSY), other handles are
/// not. It must return: an exception or longjmp() through the library is undefined.
pub type qwen_progress_callback =
    Option<unsafe extern "C" fn(done: usize, total: usize, user: *mut c_void) -> i32>;

impl Object for Session {
    type Public = qwen_session;
    type Side = CancelHandle;
    const MAGIC: u64 = u64::from_le_bytes(*b"qwenSESS");
    const NAME: &'static str = "qwen_session";
    fn freed() -> &'static Freed<Self> {
        static FREED: Freed<Session> = Freed::new();
        &FREED
    }
    fn interrupt(cancel: &CancelHandle) {
        cancel.cancel();
    }
}

/// Sets `size` bytes of options to their defaults: zeros, and struct_size = size. The macro
/// QWEN_SESSION_OPTIONS_INIT does the same in a declaration.
///
/// size is sizeof(qwen_session_options).
///
/// Returns QWEN_OK, or QWEN_ERROR_INVALID_ARGUMENT for NULL or a size that cannot be.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_session_options_init(
    options: *mut qwen_session_options,
    size: usize,
) -> qwen_status {
    // SAFETY: the header asks for `size` writable bytes.
    call(|| unsafe { init(options, size) })
}

/// Makes an empty session.
///
/// options: NULL, or options, used during the call.
/// session: receives a handle owned by the caller, for qwen_session_free(); NULL on failure.
///
/// Returns QWEN_OK; QWEN_ERROR_INVALID_ARGUMENT for options out of range;
/// QWEN_ERROR_INVALID_STATE for a model without weights; QWEN_ERROR_OUT_OF_MEMORY.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_session_new(
    model: *const qwen_model,
    options: *const qwen_session_options,
    session: *mut *mut qwen_session,
) -> qwen_status {
    // SAFETY: pointers are NULL or as the header asks for.
    call(|| unsafe {
        let out = Out::new("session", session)?;
        out.set(null_mut());
        let model = handle::read::<Model>(model)?;
        let given = self::options(options)?;
        flags(given.flags, 0)?;
        let options = SessionOptions {
            context_limit: usize::try_from(given.context_limit).unwrap_or(usize::MAX),
            sampling: sampling(given.sampling)?,
            mark_limit: given.mark_limit as usize,
            cache_namespace: (given.cache_namespace != 0).then_some(given.cache_namespace),
            overflow: overflow(given.overflow, given.overflow_reserve)?,
            kv: constant("kv", given.kv, &KV_FORMATS)?,
        };
        let session = Session::new(&model, options)?;
        let cancel = session.cancel_handle();
        out.set(handle::create(session, cancel));
        Ok(QWEN_OK)
    })
}

fn overflow(value: qwen_overflow, reserve: u64) -> Result<Overflow> {
    match value {
        QWEN_OVERFLOW_REFUSE => Ok(Overflow::Refuse),
        QWEN_OVERFLOW_DROP_TURNS => {
            Ok(Overflow::DropTurns { reserve: usize::try_from(reserve).unwrap_or(usize::MAX) })
        }
        other => Err(Failure::argument(format!("`overflow` is {other}: no such constant"))),
    }
}

/// Frees the handle. A call in progress on another thread is cancelled, and the memory goes
/// when it returns. NULL is fine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_session_free(session: *mut qwen_session) {
    // SAFETY: the header asks for NULL or a handle.
    call_void(|| unsafe { handle::free::<Session>(session) });
}

/// Chooses the next token and appends it to the sequence.
///
/// token: receives the id, or -1 if none was chosen.
///
/// Returns QWEN_OK with a token; QWEN_END_OF_TURN with a token that ends the turn (it is
/// part of the sequence too; going on is the caller's choice); QWEN_LIMIT_REACHED without
/// one if the sequence is as long as its limit; QWEN_CANCELLED;
/// QWEN_ERROR_INVALID_STATE if the sequence is empty; QWEN_ERROR_NUMERIC if the logits hold
/// NaN or a logit bias leaves nothing to choose; QWEN_ERROR_OUT_OF_MEMORY;
/// QWEN_ERROR_FORKED; QWEN_ERROR_INVALID_ARGUMENT. Without a token the sequence is as
/// before.
///
/// A token is computed when the following one is asked for: the first after a prompt costs
/// the choice alone.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_session_next_token(
    session: *mut qwen_session,
    token: *mut i32,
) -> qwen_status {
    // SAFETY: pointers are NULL or as the header asks for.
    call(|| unsafe {
        let token = Out::new("token", token)?;
        token.set(-1);
        let mut session = handle::write::<Session>(session)?;
        let result = session.next_token();
        let (status, id) = match session.judge(result)? {
            Next::Token(id) => (QWEN_OK, id as i32),
            Next::EndOfTurn(id) => (QWEN_END_OF_TURN, id as i32),
            Next::LimitReached => (QWEN_LIMIT_REACHED, -1),
        };
        token.set(id);
        Ok(status)
    })
}

/// The logits of the token after the sequence, as the network gives them: before bias,
/// penalties and temperature.
///
/// logits: receives a borrowed array, valid until the next call on the session.
/// count: receives its length, the vocab_size of qwen_model_info.
///
/// Returns QWEN_OK; QWEN_CANCELLED; QWEN_ERROR_INVALID_STATE if the sequence is empty;
/// QWEN_ERROR_OUT_OF_MEMORY; QWEN_ERROR_FORKED; QWEN_ERROR_INVALID_ARGUMENT. The sequence
/// is not changed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_session_logits(
    session: *mut qwen_session,
    logits: *mut *const f32,
    count: *mut usize,
) -> qwen_status {
    // SAFETY: pointers are NULL or as the header asks for.
    call(|| unsafe {
        let (logits, count) = (Out::new("logits", logits)?, Out::new("count", count)?);
        logits.set(null());
        count.set(0);
        let mut session = handle::write::<Session>(session)?;
        let result = session.logits().map(|found| (found.as_ptr(), found.len()));
        let (pointer, length) = session.judge(result)?;
        logits.set(pointer);
        count.set(length);
        Ok(QWEN_OK)
    })
}

/// The length of the sequence.
///
/// position: receives the number of tokens, fed and generated.
///
/// Returns QWEN_OK or QWEN_ERROR_INVALID_ARGUMENT.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_session_position(
    session: *const qwen_session,
    position: *mut usize,
) -> qwen_status {
    // SAFETY: pointers are NULL or as the header asks for.
    call(|| unsafe {
        let out = Out::new("position", position)?;
        out.set(0);
        out.set(handle::read::<Session>(session)?.position());
        Ok(QWEN_OK)
    })
}

/// The most tokens the sequence may hold.
///
/// limit: receives the number.
///
/// Returns QWEN_OK or QWEN_ERROR_INVALID_ARGUMENT.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_session_context_limit(
    session: *const qwen_session,
    limit: *mut usize,
) -> qwen_status {
    // SAFETY: pointers are NULL or as the header asks for.
    call(|| unsafe {
        let out = Out::new("limit", limit)?;
        out.set(0);
        out.set(handle::read::<Session>(session)?.context_limit());
        Ok(QWEN_OK)
    })
}

/// How the session stores keys and values.
///
/// kv: receives QWEN_KV_FP32, QWEN_KV_FP16 or QWEN_KV_INT8.
///
/// Returns QWEN_OK or QWEN_ERROR_INVALID_ARGUMENT.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_session_kv(
    session: *const qwen_session,
    kv: *mut qwen_kv,
) -> qwen_status {
    // SAFETY: pointers are NULL or as the header asks for.
    call(|| unsafe {
        let out = Out::new("kv", kv)?;
        out.set(QWEN_KV_AUTO);
        out.set(constant_of(&Some(handle::read::<Session>(session)?.kv()), &KV_FORMATS));
        Ok(QWEN_OK)
    })
}

/// The sequence: all ids, fed and generated, in order.
///
/// tokens: receives a borrowed array, valid until the next call on the session with a
/// non-const handle.
/// count: receives its length.
///
/// Returns QWEN_OK or QWEN_ERROR_INVALID_ARGUMENT.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_session_tokens(
    session: *const qwen_session,
    tokens: *mut *const i32,
    count: *mut usize,
) -> qwen_status {
    // SAFETY: pointers are NULL or as the header asks for.
    call(|| unsafe {
        let (tokens, count) = (Out::new("tokens", tokens)?, Out::new("count", count)?);
        tokens.set(null());
        count.set(0);
        let session = handle::read::<Session>(session)?;
        let ids = as_i32(session.tokens());
        tokens.set(ids.as_ptr());
        count.set(ids.len());
        Ok(QWEN_OK)
    })
}

/// Chooses tokens by these options from now on. The random stream starts anew if a seed
/// is set; else it goes on.
///
/// options: copied; NULL: the defaults.
///
/// Returns QWEN_OK, or QWEN_ERROR_INVALID_ARGUMENT for options out of range: the session
/// then samples as before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_session_set_sampling(
    session: *mut qwen_session,
    options: *const qwen_sampling_options,
) -> qwen_status {
    // SAFETY: pointers are NULL or as the header asks for.
    call(|| unsafe {
        let mut session = handle::write::<Session>(session)?;
        let result = session.set_sampling(sampling(options)?);
        session.judge(result)?;
        Ok(QWEN_OK)
    })
}

/// Has a function called during long calls on this session, from now on.
///
/// callback: see qwen_progress_callback; NULL ends it.
/// user: handed to it; never looked at.
///
/// Returns QWEN_OK.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_session_set_progress(
    session: *mut qwen_session,
    callback: qwen_progress_callback,
    user: *mut c_void,
) -> qwen_status {
    // SAFETY: pointers are NULL or as the header asks for.
    call(|| unsafe {
        let mut session = handle::write::<Session>(session)?;
        let user = User::new(user);
        session.set_progress(callback.map(|callback| -> crate::session::ProgressHook {
            Box::new(move |Progress { done, total }| {
                // SAFETY: the host gave the function for being called so.
                match callback(done, total, user.get()) {
                    0 => ControlFlow::Continue(()),
                    _ => ControlFlow::Break(()),
                }
            })
        }));
        Ok(QWEN_OK)
    })
}

/// Empties the sequence and drops its marks. Options and attachment stay, the random stream
/// goes on. A cancel that no call has answered yet is forgotten.
///
/// Returns QWEN_OK, or QWEN_ERROR_OUT_OF_MEMORY: the session is then as before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_session_reset(session: *mut qwen_session) -> qwen_status {
    // SAFETY: the header asks for NULL or a handle.
    call(|| unsafe {
        let mut session = handle::write::<Session>(session)?;
        let result = session.reset();
        session.judge(result)?;
        Ok(QWEN_OK)
    })
}

/// Cancels the call in progress on a session, or the next one if none is. It may be called
/// by any thread at any time, also from the progress callback, and returns at once; the
/// cancelled call returns QWEN_CANCELLED within milliseconds. A signal handler should set a
/// flag instead, which the progress callback looks at.
///
/// Returns QWEN_OK, or QWEN_ERROR_INVALID_HANDLE. See qwen_session_cancel_clear() for a cancel
/// that came too late.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_session_cancel(session: *const qwen_session) -> qwen_status {
    // SAFETY: the header asks for NULL or a handle.
    call(|| unsafe {
        handle::visit::<Session>(session)?.cancel();
        Ok(QWEN_OK)
    })
}

/// Forgets a cancel that no call has answered: one that was asked for when the call it was
/// meant for had just ended, and would end the next one. To be called between calls, once
/// nobody asks any more.
///
/// Returns QWEN_OK, whether there was one or not; QWEN_ERROR_BUSY during a call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_session_cancel_clear(session: *mut qwen_session) -> qwen_status {
    // SAFETY: the header asks for NULL or a handle.
    call(|| unsafe {
        handle::write::<Session>(session)?.clear_cancel();
        Ok(QWEN_OK)
    })
}
