//! A tokenizer for the small synthetic checkpoints: the published pipeline over a vocabulary of
//! any size from 256 on.
//!
//! Ids 0 to 255 are the bytes in the order of the byte-level alphabet's code points, then come
//! pairs of letters with their merges, and where there is room the last three ids are
//! `<|endoftext|>`, `<|im_start|>` and `<|im_end|>`. tests/reference/synthetic.py writes the same.
#![allow(dead_code)]

use std::path::Path;

use serde_json::{Map, Value, json};

const PATTERN: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const CONTROL: [&str; 3] = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"];

/// The 256 characters of the byte-level alphabet, ascending.
fn alphabet() -> Vec<char> {
    let printable = |b: &u32| matches!(b, 0x21..=0x7E | 0xA1..=0xAC | 0xAE..=0xFF);
    let others = (0..256).filter(|b| !printable(b)).count() as u32;
    (0..256).filter(printable).chain(256..256 + others).filter_map(char::from_u32).collect()
}

/// `tokenizer.json` with `size` tokens.
pub fn tokenizer_json(size: usize) -> Value {
    assert!(size >= 256, "a byte-level vocabulary has at least 256 tokens");
    let controls = if size >= 256 + CONTROL.len() { CONTROL.len() } else { 0 };
    let mut vocab = Map::new();
    let mut merges = Vec::new();
    for letter in alphabet() {
        vocab.insert(letter.to_string(), json!(vocab.len()));
    }
    let letters = || 'a'..='z';
    let pairs = letters().flat_map(|a| letters().map(move |b| (a, b)));
    for (a, b) in pairs.take(size - controls - 256) {
        vocab.insert(format!("{a}{b}"), json!(vocab.len()));
        merges.push(json!(format!("{a} {b}")));
    }
    assert_eq!(vocab.len(), size - controls, "no more than 256 + 26 * 26 + 3 tokens");
    let added: Vec<Value> = (CONTROL.iter().take(controls).enumerate())
        .map(|(i, content)| {
            json!({"id": size - controls + i, "content": content, "single_word": false,
                "lstrip": false, "rstrip": false, "normalized": false, "special": true})
        })
        .collect();
    let byte_level = json!({"type": "ByteLevel", "add_prefix_space": false,
        "trim_offsets": false, "use_regex": false});
    json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": added,
        "normalizer": {"type": "NFC"},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "Split", "pattern": {"Regex": PATTERN}, "behavior": "Isolated",
             "invert": false},
            byte_level]},
        "post_processor": byte_level, "decoder": byte_level,
        "model": {"type": "BPE", "dropout": null, "unk_token": null,
            "continuing_subword_prefix": "", "end_of_word_suffix": "", "fuse_unk": false,
            "byte_fallback": false, "ignore_merges": false, "vocab": vocab, "merges": merges},
    })
}

/// Writes `tokenizer.json` with `size` tokens into `directory`.
pub fn write(directory: &Path, size: usize) {
    let text = serde_json::to_string(&tokenizer_json(size)).unwrap();
    std::fs::write(directory.join("tokenizer.json"), text).unwrap();
}
