//! Checkpoint folders that the host reads: the same model, however the host keeps them, and no
//! trust in what it says.

#[path = "support/synthetic.rs"]
mod synthetic;
#[path = "support/temp.rs"]
mod temp;
#[path = "support/tiny_tokenizer.rs"]
mod tiny_tokenizer;
#[path = "support/toy.rs"]
mod toy;

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use qwen35::checkpoint::{HostFile, HostFolder};
use qwen35::sampling::SamplingOptions;
use qwen35::{
    Error, ErrorKind, Model, ModelOptions, Result, Session, SessionOptions, WeightFormat,
};
use synthetic::Spec;
use temp::TempDir;

/// Files in memory, and what the host claims of their sizes.
#[derive(Clone, Default)]
struct Archive {
    files: HashMap<String, Arc<Vec<u8>>>,
    sizes: HashMap<String, u64>,
    read: Arc<AtomicUsize>,
}

struct Entry {
    bytes: Arc<Vec<u8>>,
    size: u64,
    read: Arc<AtomicUsize>,
}

impl HostFolder for Archive {
    fn open(&self, name: &str) -> Result<Option<Box<dyn HostFile>>> {
        let Some(bytes) = self.files.get(name).cloned() else { return Ok(None) };
        let size = self.sizes.get(name).copied().unwrap_or(bytes.len() as u64);
        Ok(Some(Box::new(Entry { bytes, size, read: self.read.clone() })))
    }
}

impl HostFile for Entry {
    fn size(&self) -> u64 {
        self.size
    }

    fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        let end = offset + buffer.len() as u64;
        assert!(end <= self.size, "a read of {offset}..{end}, beyond {}", self.size);
        let part = self.bytes.get(offset as usize..end as usize);
        let part = part.ok_or_else(|| Error::new(ErrorKind::Io, "there is less than was said"))?;
        buffer.copy_from_slice(part);
        self.read.fetch_add(buffer.len(), Ordering::Relaxed);
        Ok(())
    }
}

fn archive(folder: &Path) -> Archive {
    let mut archive = Archive::default();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        archive.files.insert(name, Arc::new(std::fs::read(&path).unwrap()));
    }
    archive
}

fn options(weights: WeightFormat) -> ModelOptions {
    ModelOptions { threads: 1, weights, ..ModelOptions::default() }
}

fn open(archive: &Archive, weights: WeightFormat) -> Result<Model> {
    Model::open_host(Box::new(archive.clone()), &options(weights), &mut |_, _| true)
}

fn refused(archive: &Archive, kinds: &[ErrorKind], words: &[&str]) {
    let error = open(archive, WeightFormat::Stored).err().expect("it was opened");
    assert!(kinds.contains(&error.kind()), "{error}");
    words.iter().for_each(|word| assert!(error.message().contains(word), "{error}: no {word}"));
}

fn logits(model: &Model) -> Vec<u32> {
    let options =
        SessionOptions { sampling: SamplingOptions::greedy(), ..SessionOptions::default() };
    let mut session = Session::new(model, options).unwrap();
    session.feed(&[1, 2, 3, 4, 5, 6, 7]).unwrap();
    session.logits().unwrap().iter().map(|logit| logit.to_bits()).collect()
}

/// The toy in two files with an index.
fn sharded() -> TempDir {
    let folder = toy::tokenizer();
    let mut spec = Spec::named("small-equal");
    spec.text_mut()["eos_token_id"] = toy::END_OF_TEXT.into();
    spec.write_sharded(folder.path(), 2).unwrap();
    folder
}

#[test]
fn the_same_model_as_from_disk() {
    let (single, sharded) = (toy::model(), sharded());
    for folder in [&single, &sharded] {
        for weights in [WeightFormat::Stored, WeightFormat::Int4] {
            let disk = Model::open(folder.path(), &options(weights)).unwrap();
            let host = open(&archive(folder.path()), weights).unwrap();
            assert_eq!(logits(&host), logits(&disk));
            assert_eq!(host.fingerprint().unwrap(), disk.fingerprint().unwrap());
            assert_eq!(host.weight_bytes(), disk.weight_bytes());
            assert_eq!(host.end_of_turn_ids(), disk.end_of_turn_ids());
            assert!(host.chat_template().is_ok());
        }
    }
}

#[test]
fn only_the_text_model_is_read() {
    let folder = toy::model();
    let archive = archive(folder.path());
    let model = open(&archive, WeightFormat::Stored).unwrap();
    let small: usize = (archive.files.iter())
        .filter(|(name, _)| !name.ends_with(".safetensors"))
        .map(|(_, bytes)| bytes.len())
        .sum();
    let weights = model.weight_bytes() as usize;
    let read = archive.read.load(Ordering::Relaxed);
    let whole = archive.files["model.safetensors"].len();
    // The header, and 3 KB of each tensor for the fingerprint, come on top.
    assert!(read >= weights + small / 2 && read < weights + small + weights / 2 + 200_000);
    assert!(weights < whole);
}

#[test]
fn what_is_missing_is_named() {
    let folder = sharded();
    let whole = archive(folder.path());
    let without = |name: &str| {
        let mut archive = whole.clone();
        assert!(archive.files.remove(name).is_some(), "{name}");
        archive
    };
    let io = &[ErrorKind::Io];
    refused(&without("config.json"), io, &["config.json"]);
    refused(&without("tokenizer.json"), io, &["tokenizer.json"]);
    refused(&without("model.safetensors.index.json"), io, &["model.safetensors"]);
    let shard = synthetic::shard_name(1, 2);
    refused(&without(&shard), io, &[&shard, "1 of 2"]);
    assert!(open(&without("tokenizer_config.json"), WeightFormat::Stored).is_ok());
    let model = open(&without("chat_template.jinja"), WeightFormat::Stored).unwrap();
    assert_eq!(model.chat_template().err().unwrap().kind(), ErrorKind::Template);
}

#[test]
fn sizes_and_contents_are_not_trusted() {
    let (single, sharded) = (toy::model(), sharded());
    let whole = archive(single.path());
    let kinds = &[ErrorKind::Io, ErrorKind::Format];
    for name in ["config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors"] {
        let real = whole.files[name].len() as u64;
        for size in [0, 1, 7, 8, 9, real / 2, real - 1, real + 1, 1 << 33, 1 << 62, u64::MAX] {
            let mut archive = whole.clone();
            archive.sizes.insert(name.to_owned(), size);
            refused(&archive, kinds, &[]);
        }
    }
    // A header that claims more than any header has.
    for length in [0u64, 1, 1 << 27, 1 << 40, u64::MAX] {
        let mut archive = whole.clone();
        let mut bytes = whole.files["model.safetensors"].to_vec();
        bytes[..8].copy_from_slice(&length.to_le_bytes());
        archive.files.insert("model.safetensors".into(), Arc::new(bytes));
        archive.sizes.insert("model.safetensors".into(), u64::MAX);
        refused(&archive, kinds, &["model.safetensors"]);
    }
    // An index that leads out of the folder, that lies about a tensor, that is no index.
    let whole = archive(sharded.path());
    let index = String::from_utf8(whole.files["model.safetensors.index.json"].to_vec()).unwrap();
    let (first, second) = (synthetic::shard_name(0, 2), synthetic::shard_name(1, 2));
    let moved = index.replacen(&format!("\"{first}\""), &format!("\"{second}\""), 3);
    for (text, words) in [
        (index.replace(&first, "../x.safetensors"), "is no path inside the folder"),
        (index.replace(&first, "/x.safetensors"), "is no path inside the folder"),
        (moved, "is said to be in"),
        ("{".to_owned(), "index"),
        ("[]".to_owned(), "index"),
    ] {
        let mut archive = whole.clone();
        archive.files.insert("model.safetensors.index.json".into(), Arc::new(text.into_bytes()));
        refused(&archive, kinds, &[words]);
    }
}

#[test]
fn progress_counts_up_and_cancels() {
    let folder = toy::model();
    let archive = archive(folder.path());
    for weights in [WeightFormat::Stored, WeightFormat::Int8] {
        let (mut last, mut calls) = ((0, 0), 0);
        let mut watch = |done, total| {
            assert!(done >= last.0 && done <= total, "{done} of {total} after {last:?}");
            last = (done, total);
            calls += 1;
            true
        };
        Model::open_host(Box::new(archive.clone()), &options(weights), &mut watch).unwrap();
        assert_eq!(last.0, last.1);
        // While the tokenizer is still read the caller is asked on, by the clock: another time
        // it may be asked less often, and then the model is open before it says no.
        for stop in (1..=calls).step_by(7) {
            let mut left = stop;
            let mut end = |_, _| {
                left -= 1;
                left > 0
            };
            match Model::open_host(Box::new(archive.clone()), &options(weights), &mut end) {
                Ok(_) => assert!(stop > 1 && left > 0, "{left} of {stop}"),
                Err(error) => assert_eq!((error.kind(), left), (ErrorKind::Cancelled, 0)),
            }
        }
    }
}
