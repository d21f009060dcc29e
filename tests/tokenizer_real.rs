//! The tokenizer under the real vocabulary of Qwen3.5, which is not part of this repository
//! (12.8 MB). These tests are run by name or with `--ignored`:
//!
//! ```text
//! QWEN35_REAL_TOKENIZER=DIR cargo test --release --test tokenizer_real -- --ignored
//! ```
//!
//! DIR holds the published `tokenizer.json` and `tokenizer_config.json`; without the variable it
//! is `tests/.cache/real-tokenizer`. If QWEN35_TOKENIZER_VECTORS names a file that
//! `tests/data/tokenizer/make.py fuzz DIR FILE` wrote, its texts are compared too.

use std::path::{Path, PathBuf};
use std::time::Instant;

use qwen35::tokenizer::{AddedTokens, Special, StreamDecoder, Tokenizer};

type Vectors = Vec<(String, Vec<u32>, Vec<u32>)>;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

fn real() -> Tokenizer {
    let dir = std::env::var_os("QWEN35_REAL_TOKENIZER")
        .map_or_else(|| Path::new(ROOT).join("tests/.cache/real-tokenizer"), PathBuf::from);
    Tokenizer::from_dir(&dir)
        .expect("these tests need the real vocabulary: see the top of the file")
}

fn encode(tokenizer: &Tokenizer, text: &str, added: AddedTokens) -> Vec<u32> {
    let mut ids = Vec::new();
    tokenizer.encode(text, added, &mut ids);
    ids
}

fn check(tokenizer: &Tokenizer, path: &Path) {
    let vectors: Vectors = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    assert!(!vectors.is_empty());
    for (text, full, plain) in vectors {
        assert_eq!(encode(tokenizer, &text, AddedTokens::Honour), full, "{text:?}");
        assert_eq!(encode(tokenizer, &text, AddedTokens::AsText), plain, "{text:?}");
        let mut decoder = StreamDecoder::new(Special::Keep);
        let mut streamed = String::new();
        full.iter().for_each(|&id| decoder.push(tokenizer, id, &mut streamed));
        decoder.finish(&mut streamed);
        assert_eq!(streamed, tokenizer.decode_text(&full, Special::Keep).unwrap());
        assert_eq!(encode(tokenizer, &streamed, AddedTokens::AsText), plain, "{text:?}");
    }
}

#[test]
#[ignore = "needs the real vocabulary (QWEN35_REAL_TOKENIZER)"]
fn real_ids_equal_the_reference() {
    let tokenizer = real();
    let data = Path::new(ROOT).join("tests/data/tokenizer");
    check(&tokenizer, &data.join("real_vectors.json"));
    #[derive(serde::Deserialize)]
    struct Vector {
        text: String,
        ids: Vec<u32>,
    }
    let facts = std::fs::read(Path::new(ROOT).join("tests/data/tokenizer_vectors.json")).unwrap();
    let facts: Vec<Vector> = serde_json::from_slice(&facts).unwrap();
    assert_eq!(facts.len(), 111);
    for Vector { text, ids } in facts {
        assert_eq!(encode(&tokenizer, &text, AddedTokens::Honour), ids, "{text:?}");
    }
    if let Some(path) = std::env::var_os("QWEN35_TOKENIZER_VECTORS") {
        check(&tokenizer, Path::new(&path));
    }
}

#[test]
#[ignore = "needs the real vocabulary (QWEN35_REAL_TOKENIZER)"]
fn real_added_tokens() {
    let mut tokenizer = real();
    assert_eq!(tokenizer.token_count(), 248_077);
    assert_eq!(tokenizer.added_tokens().len(), 33);
    assert_eq!(tokenizer.eos_token_id(), Some(248_046));
    assert_eq!(tokenizer.token_id("<|endoftext|>"), Some(248_044));
    assert_eq!(tokenizer.token_id("<|audio_pad|>"), Some(248_076), "listed in the config only");
    let decode = |ids: &[u32], special| tokenizer.decode_text(ids, special).unwrap();
    assert_eq!(decode(&[248_058, 198, 248_059], Special::Skip), "<tool_call>\n</tool_call>");
    assert_eq!(decode(&[248_045, 248_046], Special::Skip), "");
    assert_eq!(decode(&[248_045, 248_046], Special::Keep), "<|im_start|><|im_end|>");
    assert_eq!(encode(&tokenizer, "The capital of France is", AddedTokens::AsText).len(), 5);
    tokenizer.set_id_limit(248_320);
    assert!(tokenizer.decode(&[248_319], Special::Keep, &mut Vec::new()).is_ok());
    assert!(tokenizer.decode(&[248_320], Special::Keep, &mut Vec::new()).is_err());
}

#[test]
#[ignore = "needs the real vocabulary (QWEN35_REAL_TOKENIZER)"]
fn real_time_grows_with_the_length() {
    let tokenizer = real();
    for kind in ["a", "-", "_", " ", "\n", "\t", "中", "ก\u{E34}", "aGVsbG8gd29ybGQ", "[{\"k\":1},"]
    {
        let text = kind.repeat((1 << 20) / kind.len());
        let time = |text: &str| {
            let once = || {
                let start = Instant::now();
                encode(&tokenizer, text, AddedTokens::AsText);
                start.elapsed().as_secs_f64()
            };
            (0..5).map(|_| once()).fold(f64::MAX, f64::min)
        };
        let half = (text.len() / 2..).find(|&i| text.is_char_boundary(i)).unwrap();
        let (half, whole) = (time(&text[..half]), time(&text));
        assert!(whole < 2.0, "1 MB of {kind:?} took {whole} s");
        // Short times say nothing on a busy machine.
        let linear = whole < 0.1 || whole / half < 3.5;
        assert!(linear, "{kind:?}: {half} s for a half, {whole} s for the whole");
    }
}
