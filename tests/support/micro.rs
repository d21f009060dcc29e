//! The smallest checkpoint that has every kind of tensor, and safetensors files with any header.
#![allow(dead_code)]

use std::path::{Path, PathBuf};

use qwen35::checkpoint::Checkpoint;
use serde_json::{Map, Value, json};

use crate::synthetic::{Spec, TensorSpec, write_file};
use crate::temp::TempDir;

/// One linear and one full layer in a few kilobytes, tied.
pub fn micro() -> Spec {
    let mut spec = Spec::named("small-equal");
    for (key, value) in [
        ("vocab_size", json!(24)),
        ("hidden_size", json!(8)),
        ("intermediate_size", json!(12)),
        ("num_hidden_layers", json!(2)),
        ("num_attention_heads", json!(2)),
        ("num_key_value_heads", json!(1)),
        ("head_dim", json!(8)),
        ("linear_num_key_heads", json!(1)),
        ("linear_num_value_heads", json!(2)),
        ("linear_key_head_dim", json!(4)),
        ("linear_value_head_dim", json!(6)),
        ("layer_types", json!(["linear_attention", "full_attention"])),
        ("full_attention_interval", Value::Null),
        ("eos_token_id", json!(23)),
        (
            "rope_parameters",
            json!({
                "mrope_interleaved": true, "mrope_section": [2, 1, 1], "rope_type": "default",
                "rope_theta": 10000000, "partial_rotary_factor": 1.0
            }),
        ),
    ] {
        spec.text_mut()[key] = value;
    }
    spec
}

/// A folder with a `config.json` and one weight file, made from `tensors`.
pub fn folder(spec: &Spec, tensors: &[TensorSpec]) -> TempDir {
    let dir = TempDir::new();
    spec.write_config(dir.path()).unwrap();
    write_file(&dir.join("model.safetensors"), tensors, spec.seed).unwrap();
    dir
}

/// The message with which `path` is refused.
pub fn refusal(path: &Path) -> String {
    match Checkpoint::open(path) {
        Ok(_) => panic!("{path:?} was opened"),
        Err(e) => e.to_string(),
    }
}

/// Asserts that `path` is refused with a message that has all of `parts`.
pub fn refused(path: &Path, parts: &[&str]) {
    let message = refusal(path);
    for part in parts {
        assert!(message.contains(part), "{part:?} is not in {message:?}");
    }
    // One line, of a readable length, without anything a terminal would act on.
    assert!(message.chars().all(|c| !c.is_control()), "{message:?}");
    assert!(message.len() < 2000, "{message:?}");
}

/// A weight file in parts: header object and data.
pub struct Raw {
    pub header: Map<String, Value>,
    pub data: Vec<u8>,
}

impl Raw {
    pub fn read(path: &Path) -> Raw {
        let bytes = std::fs::read(path).unwrap();
        let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
        let header = serde_json::from_slice(&bytes[8..8 + length]).unwrap();
        Raw { header, data: bytes[8 + length..].to_vec() }
    }

    pub fn write(&self, path: &Path) {
        let header = serde_json::to_string(&self.header).unwrap();
        write_raw(path, header.as_bytes(), &self.data);
    }

    /// The tensor's entry in the header.
    pub fn entry(&mut self, name: &str) -> &mut Value {
        self.header.get_mut(name).unwrap_or_else(|| panic!("{name}"))
    }
}

/// A file with exactly this header text, not padded.
pub fn write_raw(path: &Path, header: &[u8], data: &[u8]) {
    write_anew(path, &raw(header, data));
}

/// Writes a new file in place of an old one; some file systems flush to disk, slowly, when one
/// is shortened and written again.
pub fn write_anew(path: &Path, bytes: &[u8]) {
    let _ = std::fs::remove_file(path);
    std::fs::write(path, bytes).unwrap();
}

fn raw(header: &[u8], data: &[u8]) -> Vec<u8> {
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header);
    bytes.extend(data);
    bytes
}

/// A good micro checkpoint, and the path of its weight file.
pub fn good() -> (TempDir, PathBuf) {
    let spec = micro();
    let dir = folder(&spec, &spec.tensors());
    let file = dir.join("model.safetensors");
    (dir, file)
}
