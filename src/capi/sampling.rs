//! How tokens are chosen.

use super::arguments::{Sized32, array, init, options};
use super::guard::call;
use super::status::{Failure, Result, qwen_status};
use crate::Error;
use crate::sampling::SamplingOptions;

/// Where sampling options start from: one of the QWEN_PRESET constants.
pub type qwen_preset = i32;

/// The model card's choice for answers without thinking: temperature 1, top-k 20, top-p 1,
/// presence penalty 2.
pub const QWEN_PRESET_CHAT: qwen_preset = 0;
/// Always the most likely token, the lowest id among equals. No penalties.
pub const QWEN_PRESET_GREEDY: qwen_preset = 1;
/// The model card's choice for thinking: temperature 1, top-k 20, top-p 0.95, presence
/// penalty 1.5.
pub const QWEN_PRESET_THINKING: qwen_preset = 2;
/// The model card's choice for thinking about precise work such as code: temperature 0.6,
/// top-k 20, top-p 0.95, no penalties.
pub const QWEN_PRESET_PRECISE: qwen_preset = 3;

/// In qwen_sampling_options.set: the field `temperature` counts.
pub const QWEN_SET_TEMPERATURE: u32 = 0x1;
/// In qwen_sampling_options.set: the field `top_k` counts.
pub const QWEN_SET_TOP_K: u32 = 0x2;
/// In qwen_sampling_options.set: the field `top_p` counts.
pub const QWEN_SET_TOP_P: u32 = 0x4;
/// In qwen_sampling_options.set: the field `min_p` counts.
pub const QWEN_SET_MIN_P: u32 = 0x8;
/// In qwen_sampling_options.set: the field `repetition_penalty` counts.
pub const QWEN_SET_REPETITION_PENALTY: u32 = 0x10;
/// In qwen_sampling_options.set: the field `presence_penalty` counts.
pub const QWEN_SET_PRESENCE_PENALTY: u32 = 0x20;
/// In qwen_sampling_options.set: the field `frequency_penalty` counts.
pub const QWEN_SET_FREQUENCY_PENALTY: u32 = 0x40;
/// In qwen_sampling_options.set: the field `penalty_window` counts.
pub const QWEN_SET_PENALTY_WINDOW: u32 = 0x80;
/// In qwen_sampling_options.set: the field `seed` counts.
pub const QWEN_SET_SEED: u32 = 0x100;

const ALL_SET: u32 = 0x1FF;

/// A number to add to the logit of one token.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct qwen_logit_bias {
    /// The token; an id that stands for text.
    pub token: i32,
    /// Added to its logit. -INFINITY bans the token.
    pub bias: f32,
}

/// How tokens are chosen. All zero is the default, QWEN_PRESET_CHAT.
///
/// The preset gives every field its value; a field whose bit is in `set` replaces it. So a
/// temperature of 0 is said with QWEN_SET_TEMPERATURE, and is greedy. A field that is not
/// zero but lacks its bit is an error, since it would have no effect.
///
/// The steps, in this order: logit bias is added; penalties (repetition over prompt and
/// output, frequency and presence over the output); division by the temperature, where 0
/// takes the largest logit at once; top-k, top-p and min-p, each on what the step before
/// left; then a token is drawn.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct qwen_sampling_options {
    /// sizeof(qwen_sampling_options)
    pub struct_size: u32,
    /// A sum of QWEN_SET_ constants: the fields that count.
    pub set: u32,
    /// What the other fields come from.
    pub preset: qwen_preset,
    /// Divides the logits: below 1 sharpens, above 1 flattens, 0 is greedy. At least 0.
    pub temperature: f32,
    /// Keeps the k most likely tokens, and those that equal the k-th; 0 is off.
    pub top_k: u32,
    /// Keeps the most likely tokens that together reach this probability; 1 is off, 0 keeps
    /// one token. From 0 to 1.
    pub top_p: f32,
    /// Keeps tokens at least this fraction as likely as the most likely; 0 is off. From 0
    /// to 1.
    pub min_p: f32,
    /// Divides positive and multiplies negative logits of tokens that prompt or output hold;
    /// 1 is off. Above 0.
    pub repetition_penalty: f32,
    /// Subtracted from logits of tokens that the output holds; 0 is off.
    pub presence_penalty: f32,
    /// Subtracted once per occurrence in the output; 0 is off.
    pub frequency_penalty: f32,
    /// Penalties look at so many of the most recent tokens of the sequence; 0 turns them
    /// off. Not set: the whole sequence.
    pub penalty_window: u32,
    /// 0.
    pub reserved: u32,
    /// Where the session's random stream starts; the same seed and calls give the same
    /// tokens. Not set: a fresh one from the system.
    pub seed: u64,
    /// Copied. Of several entries for one token the last one counts. NULL: none.
    pub logit_bias: *const qwen_logit_bias,
    /// Entries in logit_bias.
    pub logit_bias_count: usize,
}

// SAFETY: integers, floats and a raw pointer; struct_size first.
unsafe impl Sized32 for qwen_sampling_options {
    const NAME: &'static str = "qwen_sampling_options";
    const FIRST_SIZE: usize = 72;
}

/// Sets `size` bytes of options to their defaults: zeros, and struct_size = size. The macro
/// QWEN_SAMPLING_OPTIONS_INIT does the same in a declaration.
///
/// size is sizeof(qwen_sampling_options).
///
/// Returns QWEN_OK, or QWEN_ERROR_INVALID_ARGUMENT for NULL or a size that cannot be.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_sampling_options_init(
    options: *mut qwen_sampling_options,
    size: usize,
) -> qwen_status {
    // SAFETY: the header asks for `size` writable bytes.
    call(|| unsafe { init(options, size) })
}

/// # Safety
/// As [`options`]; `logit_bias` points to `logit_bias_count` values.
pub(super) unsafe fn sampling(pointer: *const qwen_sampling_options) -> Result<SamplingOptions> {
    // SAFETY: the caller's promise.
    let given = unsafe { options(pointer) }?;
    let mut value = preset(given.preset)?;
    let unknown = given.set & !ALL_SET;
    if unknown != 0 || given.reserved != 0 {
        let text = format!("`set` has unknown bits 0x{unknown:X}, or `reserved` is not 0");
        return Err(Failure::argument(text));
    }
    // A field replaces the preset's value if its bit says so; without it, it must be zero.
    let has = |bit: u32, name: &str, is_zero: bool| {
        if given.set & bit == 0 && !is_zero {
            return Err(Failure::argument(format!(
                "`{name}` is given, but has no effect without QWEN_SET_{} in `set`",
                name.to_uppercase()
            )));
        }
        Ok(given.set & bit != 0)
    };
    for (bit, name, given, value) in [
        (QWEN_SET_TEMPERATURE, "temperature", given.temperature, &mut value.temperature),
        (QWEN_SET_TOP_P, "top_p", given.top_p, &mut value.top_p),
        (QWEN_SET_MIN_P, "min_p", given.min_p, &mut value.min_p),
        (
            QWEN_SET_REPETITION_PENALTY,
            "repetition_penalty",
            given.repetition_penalty,
            &mut value.repetition_penalty,
        ),
        (
            QWEN_SET_PRESENCE_PENALTY,
            "presence_penalty",
            given.presence_penalty,
            &mut value.presence_penalty,
        ),
        (
            QWEN_SET_FREQUENCY_PENALTY,
            "frequency_penalty",
            given.frequency_penalty,
            &mut value.frequency_penalty,
        ),
    ] {
        if has(bit, name, given == 0.0)? {
            *value = given;
        }
    }
    if has(QWEN_SET_TOP_K, "top_k", given.top_k == 0)? {
        value.top_k = given.top_k as usize;
    }
    if has(QWEN_SET_PENALTY_WINDOW, "penalty_window", given.penalty_window == 0)? {
        value.penalty_window = Some(given.penalty_window as usize);
    }
    if has(QWEN_SET_SEED, "seed", given.seed == 0)? {
        value.seed = Some(given.seed);
    }
    // SAFETY: the caller's promise.
    let bias = unsafe { array("logit_bias", given.logit_bias, given.logit_bias_count) }?;
    let refused = |_| Error::out_of_memory("the logit bias", size_of_val(bias));
    value.logit_bias.try_reserve_exact(bias.len()).map_err(refused)?;
    for (i, entry) in bias.iter().enumerate() {
        let token = u32::try_from(entry.token).map_err(|_| {
            Failure::argument(format!("`logit_bias`[{i}].token is {}: negative", entry.token))
        })?;
        value.logit_bias.push((token, entry.bias));
    }
    Ok(value)
}

fn preset(preset: qwen_preset) -> Result<SamplingOptions> {
    let chat = SamplingOptions::default();
    Ok(match preset {
        QWEN_PRESET_CHAT => chat,
        QWEN_PRESET_GREEDY => SamplingOptions::greedy(),
        QWEN_PRESET_THINKING => SamplingOptions { top_p: 0.95, presence_penalty: 1.5, ..chat },
        QWEN_PRESET_PRECISE => {
            SamplingOptions { temperature: 0.6, top_p: 0.95, presence_penalty: 0.0, ..chat }
        }
        other => {
            return Err(Failure::argument(format!("`preset` is {other}: no such constant")));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zero() -> qwen_sampling_options {
        // SAFETY: every bit pattern is a value.
        let zeros: qwen_sampling_options = unsafe { std::mem::zeroed() };
        qwen_sampling_options { struct_size: size_of::<qwen_sampling_options>() as u32, ..zeros }
    }

    fn read(options: &qwen_sampling_options) -> std::result::Result<SamplingOptions, String> {
        // SAFETY: a reference to a whole struct; its bias array, if any, is a local.
        unsafe { sampling(options) }.map_err(|failure| failure.message)
    }

    #[test]
    fn zero_is_default_and_so_is_null() {
        assert_eq!(size_of::<qwen_sampling_options>(), qwen_sampling_options::FIRST_SIZE);
        assert_eq!(read(&zero()).unwrap(), SamplingOptions::default());
        // SAFETY: NULL is allowed.
        assert_eq!(unsafe { sampling(std::ptr::null()) }.unwrap(), SamplingOptions::default());
    }

    #[test]
    fn fields_count_with_their_bit_and_are_refused_without() {
        let cold = qwen_sampling_options { set: QWEN_SET_TEMPERATURE, ..zero() };
        assert_eq!(read(&cold).unwrap().temperature, 0.0);
        let forgotten = qwen_sampling_options { top_p: 0.5, ..zero() };
        let message = read(&forgotten).unwrap_err();
        assert!(message.contains("QWEN_SET_TOP_P"), "{message}");
        let off = qwen_sampling_options { set: QWEN_SET_PENALTY_WINDOW | QWEN_SET_SEED, ..zero() };
        let off = read(&off).unwrap();
        assert_eq!((off.penalty_window, off.seed), (Some(0), Some(0)));
        assert!(read(&qwen_sampling_options { set: 0x200, ..zero() }).is_err());
        assert!(read(&qwen_sampling_options { preset: 99, ..zero() }).is_err());
        assert!(read(&qwen_sampling_options { reserved: 1, ..zero() }).is_err());
    }

    #[test]
    fn bias_is_copied_and_checked() {
        let entries =
            [qwen_logit_bias { token: 5, bias: 2.0 }, qwen_logit_bias { token: -1, bias: 0.0 }];
        let with = |count| {
            read(&qwen_sampling_options {
                logit_bias: entries.as_ptr(),
                logit_bias_count: count,
                ..zero()
            })
        };
        assert_eq!(with(1).unwrap().logit_bias, [(5, 2.0)]);
        assert!(with(2).unwrap_err().contains("[1]"));
        let null = qwen_sampling_options { logit_bias_count: 1, ..zero() };
        assert!(read(&null).is_err());
    }

    #[test]
    fn greedy_has_no_penalties() {
        let greedy = qwen_sampling_options { preset: QWEN_PRESET_GREEDY, ..zero() };
        assert_eq!(read(&greedy).unwrap(), SamplingOptions::greedy());
    }
}
