//! Going on from what is computed already.

use super::arguments::{Out, Sized32, fill, tokens};
use super::guard::call;
use super::handle;
use super::model::qwen_model;
use super::session::qwen_session;
use super::status::{Failure, QWEN_ERROR_INVALID_STATE, QWEN_OK, Result, qwen_status};
use crate::model::prefix_cache::PrefixCache;
use crate::{Model, Session};

/// What the last call that fed a session did (tokens, text, a conversation, or
/// qwen_session_set_tokens()); zeros if it did not end with QWEN_OK. Set struct_size before
/// asking.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct qwen_feed_info {
    /// sizeof(qwen_feed_info)
    pub struct_size: u32,
    /// 0.
    pub reserved: u32,
    /// Tokens asked for; of tokens and text, those of the sequence then.
    pub total: u64,
    /// Of them, those it computed (or queued, for steps to compute); the others were there
    /// already.
    pub computed: u64,
    /// Of them, those taken over from the prefix cache of the model.
    pub cached: u64,
    /// Messages left out, because the conversation did not fit and the session's options
    /// say QWEN_OVERFLOW_DROP_TURNS.
    pub dropped_messages: u64,
    /// Messages in front of those: the first one left out has this index.
    pub kept_messages: u64,
    /// Tokens left out of a sequence that was fed as tokens or text and did not fit, with
    /// QWEN_OVERFLOW_DROP_TURNS; also if the call was cancelled while it computed the rest.
    pub dropped_tokens: u64,
    /// Tokens in front of those: the first one left out had this index.
    pub kept_tokens: u64,
}

// SAFETY: integers only, struct_size first.
unsafe impl Sized32 for qwen_feed_info {
    const NAME: &'static str = "qwen_feed_info";
    const FIRST_SIZE: usize = 48;
}

/// What the prefix cache of a model holds and has done. Set struct_size before asking.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct qwen_prefix_cache_info {
    /// sizeof(qwen_prefix_cache_info)
    pub struct_size: u32,
    /// 0.
    pub reserved: u32,
    /// Bytes in use, also what sessions share with it.
    pub bytes: u64,
    /// The bound on them, prefix_cache_bytes of qwen_model_options.
    pub limit: u64,
    /// Beginnings held.
    pub entries: u64,
    /// Look-ups that found one.
    pub hits: u64,
    /// Look-ups that found none.
    pub misses: u64,
    /// Beginnings that had to go, least recently used first.
    pub evictions: u64,
}

// SAFETY: integers only, struct_size first.
unsafe impl Sized32 for qwen_prefix_cache_info {
    const NAME: &'static str = "qwen_prefix_cache_info";
    const FIRST_SIZE: usize = 56;
}

/// Makes the session hold exactly these tokens. It goes on from the longest beginning that
/// is computed already: its own, one of its marks, or one in the model's prefix cache (see
/// cache_namespace in qwen_session_options). The result is bit for bit that of computing
/// all of them. qwen_session_feed_chat() does the same with a conversation.
///
/// tokens, count: used during the call.
/// computed: receives how many tokens this call computed; NULL if not wanted.
///
/// Returns as qwen_session_feed_chat().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_session_set_tokens(
    session: *mut qwen_session,
    tokens: *const i32,
    count: usize,
    computed: *mut usize,
) -> qwen_status {
    // SAFETY: pointers are NULL or as the header asks for.
    call(|| unsafe {
        let computed = Out::optional("computed", computed)?;
        computed.iter().for_each(|out| out.set(0));
        let mut session = handle::write::<Session>(session)?;
        let ids = self::tokens("tokens", tokens, count)?;
        let result = session.set_tokens(&ids);
        let fed = session.judge(result)?;
        computed.iter().for_each(|out| out.set(fed.computed));
        Ok(QWEN_OK)
    })
}

/// Says what the last call that fed a session did, and what it left out.
///
/// info: filled as far as its struct_size reaches, which must be set; owned by the caller.
///
/// Returns QWEN_OK or QWEN_ERROR_INVALID_ARGUMENT.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_session_get_feed_info(
    session: *const qwen_session,
    info: *mut qwen_feed_info,
) -> qwen_status {
    // SAFETY: pointers are NULL or as the header asks for.
    call(|| unsafe {
        let fed = handle::read::<Session>(session)?.last_fed();
        let value = qwen_feed_info {
            struct_size: 0,
            reserved: 0,
            total: fed.total as u64,
            computed: fed.computed as u64,
            cached: fed.cached as u64,
            dropped_messages: fed.dropped_messages as u64,
            kept_messages: fed.kept_messages as u64,
            dropped_tokens: fed.dropped_tokens as u64,
            kept_tokens: fed.kept_tokens as u64,
        };
        fill("info", info, &value)?;
        Ok(QWEN_OK)
    })
}

fn cache(model: &Model) -> Result<&PrefixCache> {
    model.prefix_cache().ok_or_else(|| {
        let text = "the model has no prefix cache: prefix_cache_bytes was 0 when it was opened";
        Failure::new(QWEN_ERROR_INVALID_STATE, text)
    })
}

/// Says what the prefix cache of a model holds.
///
/// info: filled as far as its struct_size reaches, which must be set; owned by the caller.
///
/// Returns QWEN_OK; QWEN_ERROR_INVALID_STATE if the model has no prefix cache;
/// QWEN_ERROR_INVALID_ARGUMENT.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_prefix_cache_get_info(
    model: *const qwen_model,
    info: *mut qwen_prefix_cache_info,
) -> qwen_status {
    // SAFETY: pointers are NULL or as the header asks for.
    call(|| unsafe {
        let model = handle::read::<Model>(model)?;
        let stats = cache(&model)?.stats();
        let value = qwen_prefix_cache_info {
            struct_size: 0,
            reserved: 0,
            bytes: stats.bytes as u64,
            limit: stats.limit as u64,
            entries: stats.entries as u64,
            hits: stats.hits,
            misses: stats.misses,
            evictions: stats.evictions,
        };
        fill("info", info, &value)?;
        Ok(QWEN_OK)
    })
}

/// Forgets the beginnings in the prefix cache of a model; sessions keep what they have.
///
/// cache_namespace: those of this namespace; 0: all.
///
/// Returns QWEN_OK, or QWEN_ERROR_INVALID_STATE if the model has no prefix cache.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_prefix_cache_clear(
    model: *const qwen_model,
    cache_namespace: u64,
) -> qwen_status {
    // SAFETY: the header asks for NULL or a handle.
    call(|| unsafe {
        let model = handle::read::<Model>(model)?;
        cache(&model)?.clear((cache_namespace != 0).then_some(cache_namespace));
        Ok(QWEN_OK)
    })
}
