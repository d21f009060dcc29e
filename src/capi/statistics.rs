//! What sessions have done, in numbers.

use std::time::Duration;

use super::arguments::{Sized32, fill};
use super::guard::call;
use super::handle;
use super::model::qwen_model;
use super::session::qwen_session;
use super::status::{QWEN_OK, qwen_status};
use crate::statistics::Statistics;
use crate::{Model, Session};

/// Counts of one session since it was made, or of all sessions of a model since it was
/// opened. Set struct_size before asking.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct qwen_statistics {
    /// sizeof(qwen_statistics)
    pub struct_size: u32,
    /// Sessions that are open; 1 for a session.
    pub sessions: u32,
    /// Input tokens computed.
    pub input_tokens: u64,
    /// Tokens generated.
    pub output_tokens: u64,
    /// Input tokens of conversations that did not need to be computed, because the session
    /// held them or had a mark.
    pub reused_tokens: u64,
    /// Input tokens of conversations taken over from the model's prefix cache.
    pub cached_tokens: u64,
    /// Microseconds in calls that computed input.
    pub input_us: u64,
    /// Microseconds in calls that generated without computing input.
    pub output_us: u64,
    /// Microseconds from the newest input, since it was fed or queued, to the first token
    /// after it; 0 if there was none, and for a model.
    pub first_token_us: u64,
    /// Bytes that sessions use: states, keys and values, marks, logits, what is unfinished.
    /// Memory that sessions share counts for each. Weights do not count: see qwen_model_get_info().
    pub bytes: u64,
    /// Input tokens per second; 0 before there were any.
    pub input_rate: f64,
    /// Generated tokens per second; 0 before there were any.
    pub output_rate: f64,
}

// SAFETY: integers and floats only, struct_size first.
unsafe impl Sized32 for qwen_statistics {
    const NAME: &'static str = "qwen_statistics";
    const FIRST_SIZE: usize = 88;
}

impl From<Statistics> for qwen_statistics {
    fn from(of: Statistics) -> Self {
        let us = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        Self {
            struct_size: 0,
            sessions: u32::try_from(of.sessions).unwrap_or(u32::MAX),
            input_tokens: of.input_tokens,
            output_tokens: of.output_tokens,
            reused_tokens: of.reused_tokens,
            cached_tokens: of.cached_tokens,
            input_us: us(of.input_time),
            output_us: us(of.output_time),
            first_token_us: us(of.first_token_time),
            bytes: of.bytes,
            input_rate: of.input_rate(),
            output_rate: of.output_rate(),
        }
    }
}

/// Says what a session has done since it was made.
///
/// statistics: filled as far as its struct_size reaches, which must be set; owned by the
/// caller.
///
/// Returns QWEN_OK or QWEN_ERROR_INVALID_ARGUMENT.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_session_get_statistics(
    session: *const qwen_session,
    statistics: *mut qwen_statistics,
) -> qwen_status {
    // SAFETY: pointers are NULL or as the header asks for.
    call(|| unsafe {
        let session = handle::read::<Session>(session)?;
        fill("statistics", statistics, &session.statistics().into())?;
        Ok(QWEN_OK)
    })
}

/// Says what all sessions of a model, the freed ones too, have done since it was opened.
/// Sessions need not be idle.
///
/// statistics: filled as far as its struct_size reaches, which must be set; owned by the
/// caller.
///
/// Returns QWEN_OK or QWEN_ERROR_INVALID_ARGUMENT.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_model_get_statistics(
    model: *const qwen_model,
    statistics: *mut qwen_statistics,
) -> qwen_status {
    // SAFETY: pointers are NULL or as the header asks for.
    call(|| unsafe {
        let model = handle::read::<Model>(model)?;
        fill("statistics", statistics, &model.statistics().into())?;
        Ok(QWEN_OK)
    })
}
