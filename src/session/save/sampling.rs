//! Sampling options as words.

use crate::Result;
use crate::sampling::SamplingOptions;

/// Words of the sampling options.
pub(super) const SAMPLING_WORDS: usize = 15;

/// The sampling options, without the bias.
pub(super) fn sampling_words(options: &SamplingOptions) -> [u32; SAMPLING_WORDS] {
    let split = |value: u64| [value as u32, (value >> 32) as u32];
    let [k0, k1] = split(options.top_k as u64);
    let [w0, w1] = split(options.penalty_window.unwrap_or(0) as u64);
    let [s0, s1] = split(options.seed.unwrap_or(0));
    [
        options.temperature.to_bits(),
        k0,
        k1,
        options.top_p.to_bits(),
        options.min_p.to_bits(),
        options.repetition_penalty.to_bits(),
        options.presence_penalty.to_bits(),
        options.frequency_penalty.to_bits(),
        options.penalty_window.is_some().into(),
        w0,
        w1,
        options.seed.is_some().into(),
        s0,
        s1,
        0,
    ]
}

pub(super) fn sampling_from(words: &[u32; SAMPLING_WORDS]) -> Result<SamplingOptions> {
    let join = |at: usize| u64::from(words[at]) | u64::from(words[at + 1]) << 32;
    let float = |at: usize| f32::from_bits(words[at]);
    let size = |at: usize| usize::try_from(join(at)).unwrap_or(usize::MAX);
    Ok(SamplingOptions {
        temperature: float(0),
        top_k: size(1),
        top_p: float(3),
        min_p: float(4),
        repetition_penalty: float(5),
        presence_penalty: float(6),
        frequency_penalty: float(7),
        penalty_window: (words[8] != 0).then(|| size(9)),
        seed: (words[11] != 0).then(|| join(12)),
        logit_bias: Vec::new(),
    })
}
