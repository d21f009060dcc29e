//! What the chat tests share.

#![allow(dead_code)] // Each test file uses a part.

use qwen35::chat::Segment;

/// The added tokens of Qwen3.5.
pub const ADDED_TOKENS: [&str; 33] = [
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|object_ref_start|>",
    "<|object_ref_end|>",
    "<|box_start|>",
    "<|box_end|>",
    "<|quad_start|>",
    "<|quad_end|>",
    "<|vision_start|>",
    "<|vision_end|>",
    "<|vision_pad|>",
    "<|image_pad|>",
    "<|video_pad|>",
    "<tool_call>",
    "</tool_call>",
    "<|fim_prefix|>",
    "<|fim_middle|>",
    "<|fim_suffix|>",
    "<|fim_pad|>",
    "<|repo_name|>",
    "<|file_sep|>",
    "<tool_response>",
    "</tool_response>",
    "<think>",
    "</think>",
    "<|audio_start|>",
    "<|audio_end|>",
    "<tts_pad>",
    "<tts_text_bos>",
    "<tts_text_eod>",
    "<tts_text_bos_single>",
    "<|audio_pad|>",
];

/// The pieces as one text; checks that pieces of text are not empty and never adjoin.
pub fn joined(segments: &[Segment]) -> String {
    let mut text = String::new();
    let mut after_text = false;
    for segment in segments {
        let is_text = matches!(segment, Segment::Text(_));
        assert!(!segment.as_str().is_empty(), "{segments:?}");
        assert!(!is_text || !after_text, "{segments:?}");
        after_text = is_text;
        text.push_str(segment.as_str());
    }
    text
}

/// The control tokens in their order.
pub fn controls(segments: &[Segment]) -> Vec<&str> {
    let control = |s: &'_ Segment| matches!(s, Segment::Control(_));
    segments.iter().filter(|s| control(s)).map(Segment::as_str).collect()
}

/// SHA-256 in hexadecimal digits.
pub fn sha256(data: &[u8]) -> String {
    // The constants are the fractional parts of the square and cube roots of the first
    // primes, so they are computed: exactly, on integers.
    let primes: Vec<u128> =
        (2u128..312).filter(|n| (2..*n).take_while(|d| d * d <= *n).all(|d| n % d != 0)).collect();
    let root = |n: u128, power: u32| {
        let (mut low, mut high) = (0u128, 1u128 << 40);
        while high - low > 1 {
            let middle = (low + high) / 2;
            // Of n * 2^(32 power), so that the root has 32 binary places.
            if middle.checked_pow(power).is_some_and(|p| p <= n << (32 * power)) {
                low = middle;
            } else {
                high = middle;
            }
        }
        low as u32
    };
    let mut h: Vec<u32> = primes[..8].iter().map(|&p| root(p, 2)).collect();
    let k: Vec<u32> = primes[..64].iter().map(|&p| root(p, 3)).collect();
    let mut message = data.to_vec();
    message.push(0x80);
    while message.len() % 64 != 56 {
        message.push(0);
    }
    message.extend(((data.len() as u64) * 8).to_be_bytes());
    for block in message.chunks(64) {
        let mut w: Vec<u32> =
            block.chunks(4).map(|b| u32::from_be_bytes(b.try_into().unwrap())).collect();
        for i in 16..64 {
            let s0 = w[i - 15].rotate_right(7) ^ w[i - 15].rotate_right(18) ^ (w[i - 15] >> 3);
            let s1 = w[i - 2].rotate_right(17) ^ w[i - 2].rotate_right(19) ^ (w[i - 2] >> 10);
            w.push(w[i - 16].wrapping_add(s0).wrapping_add(w[i - 7]).wrapping_add(s1));
        }
        let mut v: [u32; 8] = h.clone().try_into().unwrap();
        for i in 0..64 {
            let [a, b, c, d, e, f, g, x] = v;
            let s1 = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
            let t1 = x.wrapping_add(s1).wrapping_add((e & f) ^ (!e & g));
            let t1 = t1.wrapping_add(k[i]).wrapping_add(w[i]);
            let s0 = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
            let t2 = s0.wrapping_add((a & b) ^ (a & c) ^ (b & c));
            v = [t1.wrapping_add(t2), a, b, c, d.wrapping_add(t1), e, f, g];
        }
        h.iter_mut().zip(v).for_each(|(h, v)| *h = h.wrapping_add(v));
    }
    h.iter().map(|word| format!("{word:08x}")).collect()
}
