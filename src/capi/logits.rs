//! The host's say in the choice of tokens.

use std::ffi::c_void;
use std::ops::ControlFlow;

use super::arguments::as_i32;
use super::guard::call;
use super::handle;
use super::session::qwen_session;
use super::status::{QWEN_OK, qwen_status};
use super::user::User;
use crate::Session;

/// Called before each token is chosen, on the calling thread, with the logits to change: a
/// copy of those of the `count` tokens that can be chosen, before bias, penalties and
/// temperature. Changes count for this choice only; -INFINITY bans a token, NaN and +INFINITY
/// are QWEN_ERROR_NUMERIC. `tokens` are the sequence so far. Both are lent for the call.
///
/// A return value other than 0 cancels the call, as qwen_session_cancel() does. No lock is
/// held; the session itself is in use (QWEN_ERROR_BUSY), and so are the others of a batch.
/// It must return: an exception or longjmp() through the library is undefined.
pub type qwen_logits_callback = Option<
    unsafe extern "C" fn(
        logits: *mut f32,
        count: usize,
        tokens: *const i32,
        token_count: usize,
        user: *mut c_void,
    ) -> i32,
>;

/// Has a function called before each token is chosen on this session, from now on: for
/// forbidding words, forcing a format, sampling of the host's own (all other logits
/// -INFINITY). It works for qwen_conversation_next() too.
///
/// callback: see qwen_logits_callback; NULL ends it.
/// user: handed to it; never looked at.
///
/// Returns QWEN_OK.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_session_set_logits_callback(
    session: *mut qwen_session,
    callback: qwen_logits_callback,
    user: *mut c_void,
) -> qwen_status {
    // SAFETY: pointers are NULL or as the header asks for.
    call(|| unsafe {
        let mut session = handle::write::<Session>(session)?;
        let user = User::new(user);
        session.set_logits_hook(callback.map(|callback| -> crate::session::LogitsHook {
            Box::new(move |logits, tokens| {
                let (count, tokens) = (logits.len(), as_i32(tokens));
                let (from, length) = (tokens.as_ptr(), tokens.len());
                // SAFETY: the host gave the function for being called so.
                match callback(logits.as_mut_ptr(), count, from, length, user.get()) {
                    0 => ControlFlow::Continue(()),
                    _ => ControlFlow::Break(()),
                }
            })
        }));
        Ok(QWEN_OK)
    })
}
