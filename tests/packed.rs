//! Packed files: the same model as the folder they were made from, and hostile until checked.

#[path = "support/counting.rs"]
mod counting;
#[path = "support/synthetic.rs"]
mod synthetic;
#[path = "support/temp.rs"]
mod temp;
#[path = "support/tiny_tokenizer.rs"]
mod tiny_tokenizer;
#[path = "support/toy.rs"]
mod toy;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use counting::peak;
use qwen35::chat::ChatRequest;
use qwen35::checkpoint::HostMemory;
use qwen35::checkpoint::packed::checksum;
use qwen35::model::WeightFormat;
use qwen35::pack::{PackOptions, pack, verify};
use qwen35::sampling::SamplingOptions;
use qwen35::tokenizer::{AddedTokens, Special};
use qwen35::{ChatEncoding, Error, ErrorKind, Model, ModelOptions, Session, SessionOptions};
use synthetic::splitmix64;
use temp::TempDir;

const HEADER: usize = 128;
const ENTRY: usize = 96;

fn go_on(_: u64, _: u64) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// The toy model's folder, and its packed file beside it.
fn packed() -> (TempDir, PathBuf) {
    let folder = toy::model();
    let file = folder.join("toy.qwen");
    pack(folder.path(), &file, &PackOptions::default(), &mut go_on).unwrap();
    (folder, file)
}

fn options() -> ModelOptions {
    ModelOptions { threads: 1, ..ModelOptions::default() }
}

fn logits(model: &Model) -> Vec<u32> {
    let sampling = SamplingOptions::greedy();
    let options = SessionOptions { sampling, ..SessionOptions::default() };
    let mut session = Session::new(model, options).unwrap();
    session.feed(&(0..40).map(|i| i * 7 % 250).collect::<Vec<u32>>()).unwrap();
    session.logits().unwrap().iter().map(|x| x.to_bits()).collect()
}

/// Both give the same ids, texts, prompts and bits.
fn same(a: &Model, b: &Model) {
    assert_eq!(logits(a), logits(b));
    assert_eq!(a.config(), b.config());
    assert_eq!(a.end_of_turn_ids(), b.end_of_turn_ids());
    assert_eq!(a.weight_bytes(), b.weight_bytes());
    same_text(a, b);
}

fn same_text(a: &Model, b: &Model) {
    let text = "Ein kurzer Text, 12 + 30 = 42.\n\n  e\u{301} <|im_end|> \u{1F600}<think>";
    for added in [AddedTokens::AsText, AddedTokens::Honour] {
        let encode = |model: &Model| {
            let mut ids = Vec::new();
            model.tokenizer().encode(text, added, &mut ids);
            ids
        };
        assert_eq!(encode(a), encode(b));
        let back = b.tokenizer().decode_text(&encode(a), Special::Keep).unwrap();
        assert_eq!(back, a.tokenizer().decode_text(&encode(a), Special::Keep).unwrap());
    }
    assert_eq!(a.tokenizer().added_tokens(), b.tokenizer().added_tokens());
    assert_eq!(a.tokenizer().eos_token_id(), b.tokenizer().eos_token_id());
    let chat = ChatRequest::from_json(r#"[{"role": "user", "content": "Hi <|im_end|>"}]"#).unwrap();
    for encoding in [ChatEncoding::Safe, ChatEncoding::AsTransformers] {
        assert_eq!(a.encode_chat(&chat, encoding), b.encode_chat(&chat, encoding));
    }
}

#[test]
fn a_packed_file_is_the_same_model() {
    let (folder, file) = packed();
    let from_folder = Model::open(folder.path(), &options()).unwrap();
    let from_file = Model::open(&file, &options()).unwrap();
    same(&from_folder, &from_file);
    verify(&file, &mut go_on).unwrap();
    // It needs nothing of the folder.
    let alone = TempDir::new();
    let moved = alone.join("model");
    std::fs::rename(&file, &moved).unwrap();
    same(&from_folder, &Model::open(&moved, &options()).unwrap());
    let tokenizer = ModelOptions { tokenizer_only: true, ..options() };
    let tokenizer = Model::open(&moved, &tokenizer).unwrap();
    assert!(!tokenizer.has_weights());
    same_text(&from_folder, &tokenizer);
}

/// Quantized ahead of time and when the folder is opened: the same bits.
#[test]
fn quantized_weights_are_packed() {
    for weights in [WeightFormat::Int8, WeightFormat::Int4] {
        let folder = toy::model();
        let file = folder.join("toy.qwen");
        let packing = PackOptions { weights, threads: 2 };
        let report = pack(folder.path(), &file, &packing, &mut go_on).unwrap();
        let quantizing = ModelOptions { weights, ..options() };
        let from_folder = Model::open(folder.path(), &quantizing).unwrap();
        for options in [options(), quantizing] {
            let from_file = Model::open(&file, &options).unwrap();
            same(&from_folder, &from_file);
            // What is saved with one goes on with the other.
            assert_eq!(from_file.fingerprint().unwrap(), report.fingerprint);
            assert_eq!(from_folder.fingerprint().unwrap(), report.fingerprint);
            assert_eq!(from_file.weight_bytes(), report.weight_bytes);
        }
        verify(&file, &mut go_on).unwrap();
        // Packed from packed: the same file.
        let again = folder.join("again.qwen");
        pack(&file, &again, &PackOptions::default(), &mut go_on).unwrap();
        assert!(std::fs::read(&file).unwrap() == std::fs::read(&again).unwrap());
        // All instruction sets that this CPU has read the same file.
        for isa in ["scalar", "avx2", "avx512"] {
            let options = ModelOptions { isa: Some(isa.to_owned()), ..options() };
            match Model::open(&file, &options) {
                Ok(model) => drop(logits(&model)),
                Err(error) => assert_eq!(error.kind(), ErrorKind::Unsupported),
            }
        }
        // Whatever the tiles hold, nothing worse than other numbers comes of it.
        let mut bytes = std::fs::read(&file).unwrap();
        let large = sections(&bytes).into_iter().filter(|(_, length)| *length >= 1 << 13);
        for (i, (at, length)) in large.enumerate() {
            for n in 0..64 {
                let place = at + splitmix64(i as u64 * 64 + n) as usize % length;
                bytes[place] = splitmix64(n) as u8;
            }
        }
        seal(&mut bytes);
        if let Ok(model) = open(&bytes) {
            logits_or_error(&model);
        }
    }
}

#[test]
fn packing_again_gives_the_same_file() {
    let (folder, file) = packed();
    let again = folder.join("again.qwen");
    let report = pack(&file, &again, &PackOptions::default(), &mut go_on).unwrap();
    let bytes = std::fs::read(&file).unwrap();
    assert!(bytes == std::fs::read(&again).unwrap());
    assert_eq!(report.bytes, bytes.len() as u64);
    // Another weight, another fingerprint.
    let weights = folder.join("model.safetensors");
    let mut changed = std::fs::read(&weights).unwrap();
    *changed.last_mut().unwrap() ^= 1;
    std::fs::write(&weights, changed).unwrap();
    let other = pack(folder.path(), &again, &PackOptions::default(), &mut go_on).unwrap();
    assert_ne!(report.fingerprint, other.fingerprint);
}

#[test]
fn a_model_without_template_or_generation_config_is_packed() {
    let folder = toy::model();
    std::fs::remove_file(folder.join("chat_template.jinja")).unwrap();
    let file = folder.join("file");
    pack(folder.path(), &file, &PackOptions::default(), &mut go_on).unwrap();
    let model = Model::open(&file, &options()).unwrap();
    assert_eq!(model.chat_template().unwrap_err().kind(), ErrorKind::Template);
    // A template that does not compile is an error of chat.
    std::fs::write(folder.join("chat_template.jinja"), "{% if %}").unwrap();
    pack(folder.path(), &file, &PackOptions::default(), &mut go_on).unwrap();
    let model = Model::open(&file, &options()).unwrap();
    assert_eq!(model.chat_template().unwrap_err().kind(), ErrorKind::Template);
    logits(&model);
}

#[test]
fn a_cancelled_or_failed_packing_leaves_what_was_there() {
    let (folder, file) = packed();
    let before = std::fs::read(&file).unwrap();
    let names = || std::fs::read_dir(folder.path()).unwrap().count();
    let count = names();
    for stop in [0, 1, 10] {
        let mut calls = 0;
        let error = pack(folder.path(), &file, &PackOptions::default(), &mut |_, _| {
            calls += 1;
            if calls > stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        assert_eq!(error.unwrap_err().kind(), ErrorKind::Cancelled);
    }
    assert_eq!(names(), count);
    assert!(std::fs::read(&file).unwrap() == before);
    let error =
        pack(folder.path(), &folder.join("no/such/folder"), &PackOptions::default(), &mut go_on)
            .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    assert_eq!(
        verify(&file, &mut |_, _| ControlFlow::Break(())).unwrap_err().kind(),
        ErrorKind::Cancelled
    );
}

/// Whatever the process was called that was killed.
#[test]
fn what_a_killed_packing_left_is_in_nobodys_way() {
    let (folder, file) = packed();
    let half = folder.join("toy.qwen.packing");
    let before = std::fs::read(&file).unwrap();
    std::fs::write(&half, "half of something").unwrap();
    pack(folder.path(), &file, &PackOptions::default(), &mut go_on).unwrap();
    assert!(!half.exists() && std::fs::read(&file).unwrap() == before);
    // One that is being written is not touched, and is finished.
    let mut second = None;
    pack(folder.path(), &file, &PackOptions::default(), &mut |_, _| {
        if second.is_none() {
            assert!(half.exists());
            second = Some(pack(folder.path(), &file, &PackOptions::default(), &mut go_on));
        }
        ControlFlow::Continue(())
    })
    .unwrap();
    assert_eq!(second.unwrap().unwrap_err().kind(), ErrorKind::Busy);
    assert!(!half.exists() && std::fs::read(&file).unwrap() == before);
}

#[test]
fn what_is_no_regular_file_is_not_replaced() {
    let (folder, file) = packed();
    let place = TempDir::new();
    let _socket = std::os::unix::net::UnixListener::bind(place.join("socket")).unwrap();
    std::os::unix::fs::symlink("/dev/full", place.join("link")).unwrap();
    let bad = [
        (place.path().to_owned(), "a folder"),
        (place.join("new/"), "a folder"),
        (place.join("socket"), "a socket"),
        (place.join("link"), "a device"),
        ("/dev/full".into(), "a device"),
        ("/".into(), "a folder"),
    ];
    for (path, what) in bad {
        let error = pack(folder.path(), &path, &PackOptions::default(), &mut go_on).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io, "{error}");
        for part in [path.to_str().unwrap(), what, "expected"] {
            assert!(error.message().contains(part), "{error}");
        }
    }
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 2);
    assert!(std::fs::symlink_metadata(place.join("link")).unwrap().is_symlink());
    // A link to a file is replaced; the file is not touched.
    let link = place.join("to-file");
    std::fs::write(place.join("kept"), "mine").unwrap();
    std::os::unix::fs::symlink("kept", &link).unwrap();
    pack(folder.path(), &link, &PackOptions::default(), &mut go_on).unwrap();
    assert!(std::fs::symlink_metadata(&link).unwrap().is_file());
    assert!(std::fs::read(&link).unwrap() == std::fs::read(&file).unwrap());
    assert_eq!(std::fs::read(place.join("kept")).unwrap(), b"mine");
}

fn long(bytes: &[u8], at: usize) -> usize {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize
}

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}

/// Offset and length of each section.
fn sections(bytes: &[u8]) -> Vec<(usize, usize)> {
    let table = long(bytes, 24);
    let count = u32::from_le_bytes(bytes[40..44].try_into().unwrap()) as usize;
    (0..count)
        .map(|i| table + i * ENTRY)
        .map(|e| (long(bytes, e + 56), long(bytes, e + 64)))
        .collect()
}

/// Makes the checksums of sections, table and header fit what they cover, where that lies in
/// the file: what a malicious writer would do.
fn seal(bytes: &mut [u8]) {
    let (start, length) = (long(bytes, 24), long(bytes, 32));
    if let Some(end) = start.checked_add(length).filter(|end| *end <= bytes.len()) {
        for entry in (start..end).step_by(ENTRY).filter(|e| e + ENTRY <= end) {
            let (at, length) = (long(bytes, entry + 56), long(bytes, entry + 64));
            let section = at.checked_add(length).and_then(|stop| bytes.get(at..stop));
            if let Some(sum) = section.map(checksum) {
                put(bytes, entry + 72, &sum.to_le_bytes());
            }
        }
        let sum = checksum(&bytes[start..end]);
        put(bytes, 56, &sum.to_le_bytes());
    }
    let sum = checksum(&bytes[..HEADER - 8]);
    put(bytes, HEADER - 8, &sum.to_le_bytes());
}

/// Opens `bytes` from memory; a failure takes little memory.
fn open(bytes: &[u8]) -> Result<Model, Error> {
    struct Memory(Arc<Aligned>, usize);
    impl HostMemory for Memory {
        fn bytes(&self) -> &[u8] {
            &self.0.bytes()[..self.1]
        }
    }
    let memory = Memory(Arc::new(Aligned::new(bytes)), bytes.len());
    Model::open_memory(Box::new(memory), &options(), &mut |_, _| true)
}

/// Bytes that begin at a cache line.
struct Aligned(Vec<u8>, usize);

impl Aligned {
    fn new(bytes: &[u8]) -> Self {
        let mut all = vec![0; bytes.len() + 64];
        let start = all.as_ptr().align_offset(64);
        all[start..start + bytes.len()].copy_from_slice(bytes);
        Self(all, start)
    }

    fn bytes(&self) -> &[u8] {
        &self.0[self.1..]
    }
}

#[track_caller]
fn refused(bytes: &[u8], part: &str) {
    let (result, held) = peak(|| open(bytes).map(|_| ()));
    let message = result.unwrap_err().message().to_owned();
    assert!(message.contains(part), "{message:?} should say {part:?}");
    assert!(held < bytes.len() + (4 << 20), "{held} bytes were asked for");
}

#[test]
fn what_is_no_packed_file_is_told() {
    let (folder, file) = packed();
    let bytes = std::fs::read(&file).unwrap();
    refused(b"", "not a packed model");
    refused(b"GGUF....", "not a packed model");
    refused(&bytes[..64], "cut off");
    refused(&[&bytes[..], b"x"].concat(), "something was added");
    let mut newer = bytes.clone();
    put(&mut newer, 8, &2u32.to_le_bytes());
    refused(&newer, "version 2");
    put(&mut newer, 8, &4u32.to_le_bytes());
    refused(&newer, "version 4");
    seal(&mut newer);
    assert_eq!(open(&newer).err().unwrap().kind(), ErrorKind::Unsupported);
    // By its path a file with another beginning is a weight file.
    std::fs::write(folder.join("other"), &bytes[1..]).unwrap();
    assert!(Model::open(&folder.join("other"), &options()).is_err());
}

/// By what is there, not by what is beside it, whether weights are asked for or not.
#[test]
fn a_path_that_names_no_model_is_refused_for_what_it_is() {
    const NEITHER: &str = "expected a packed file or a safetensors file of weights";
    let (folder, file) = packed();
    let bare = TempDir::new();
    for place in [&folder, &bare] {
        let write = |name: &str, bytes: &[u8]| std::fs::write(place.join(name), bytes).unwrap();
        let mut damaged = std::fs::read(&file).unwrap();
        damaged[0] ^= 1;
        write("damaged.qwen", &damaged);
        write("README.md", b"# A model of some kind, with some text about it");
        write("empty.qwen", b"");
        write("pointer.qwen", b"version https://git-lfs.github.com/spec/v1\noid sha256:04b1\n");
        write("model.gguf", b"GGUF");
        write("other.json", b"{}");
        let pipe = std::process::Command::new("mkfifo").arg(place.join("pipe.qwen")).status();
        assert!(pipe.unwrap().success());
        let cases = [
            ("nonexistent", &["No such file"][..]),
            ("other.json", &["give the folder"]),
            ("other.json/", &["Not a directory"]),
            ("model.gguf", &["GGUF files are not read"]),
            ("pipe.qwen", &["not a regular file, it is a pipe"]),
            ("README.md", &["it begins with \"# A model", NEITHER]),
            ("empty.qwen", &["0 bytes long", NEITHER]),
            ("pointer.qwen", &["Git LFS pointer", NEITHER]),
            ("damaged.qwen", &["of a packed file, damaged", NEITHER]),
        ];
        for (name, parts) in cases {
            let path = place.join(name);
            for tokenizer_only in [false, true] {
                let options = ModelOptions { tokenizer_only, ..options() };
                let error = match Model::open(&path, &options) {
                    Ok(_) => panic!("{name} was opened"),
                    Err(error) => error.to_string(),
                };
                for part in parts.iter().chain(&[path.to_str().unwrap()]) {
                    assert!(error.contains(part), "{error}");
                }
            }
        }
    }
    // Known ways to name a model, of which the weights are not needed.
    let options = ModelOptions { tokenizer_only: true, ..options() };
    let weights = folder.join("model.safetensors");
    for path in [folder.path(), &weights, &file] {
        Model::open(path, &options).unwrap();
    }
    std::fs::remove_file(&weights).unwrap();
    std::fs::remove_file(folder.join("config.json")).unwrap();
    Model::open(folder.path(), &options).unwrap();
}

#[test]
fn a_tokenizer_that_is_too_large_is_named() {
    let folder = toy::model();
    let tokenizer = folder.join("tokenizer.json");
    let mut json: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&tokenizer).unwrap()).unwrap();
    let added = json["added_tokens"].as_array_mut().unwrap();
    let mut more = added.last().unwrap().clone();
    more["id"] = 1_000_000.into();
    more["content"] = "<|far|>".into();
    added.push(more);
    std::fs::write(&tokenizer, json.to_string()).unwrap();
    let error = match Model::open(folder.path(), &options()) {
        Ok(_) => panic!("opened"),
        Err(error) => error.to_string(),
    };
    for part in [tokenizer.to_str().unwrap(), folder.join("config.json").to_str().unwrap()] {
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn a_file_cut_anywhere_is_refused() {
    let (_folder, file) = packed();
    let bytes = std::fs::read(&file).unwrap();
    let mut cuts: Vec<usize> = sections(&bytes)
        .iter()
        .flat_map(|&(at, length)| [at - 1, at, at + 1, at + length / 2, at + length])
        .collect();
    cuts.extend([8, 127, 128, 129, long(&bytes, 24), long(&bytes, 24) + 1, bytes.len() - 1]);
    for cut in cuts {
        refused(&bytes[..cut], "cut off");
    }
}

#[test]
fn a_flipped_bit_is_found_at_open_or_by_the_check_of_everything() {
    let (folder, file) = packed();
    let bytes = std::fs::read(&file).unwrap();
    let damaged = folder.join("damaged");
    let mut opened = 0;
    let mut places: Vec<usize> = (0..300).map(|i| splitmix64(i) as usize % bytes.len()).collect();
    places.extend(0..HEADER);
    places.extend((0..200).map(|i| long(&bytes, 24) + splitmix64(i) as usize % long(&bytes, 32)));
    for (i, place) in places.into_iter().enumerate() {
        let mut other = bytes.clone();
        other[place] ^= 1 << (splitmix64(i as u64) % 8);
        if let Ok(model) = open(&other) {
            // Only in a large weight or between sections; it works, with another number.
            logits_or_error(&model);
            std::fs::write(&damaged, &other).unwrap();
            let error = verify(&damaged, &mut go_on).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Format, "{error}");
            opened += 1;
        }
    }
    assert!(opened > 0, "no flip hit a large weight: the test does not test");
}

fn logits_or_error(model: &Model) {
    let mut session = Session::new(model, SessionOptions::default()).unwrap();
    let _ = session.feed(&[1, 2, 3]).and_then(|()| session.logits().map(|_| ()));
}

/// Random changes of header and table under checksums that fit: what is left standing must
/// still be safe to use.
#[test]
fn sealed_nonsense_is_refused_or_harmless() {
    let (_folder, file) = packed();
    let bytes = std::fs::read(&file).unwrap();
    let (table, length) = (long(&bytes, 24), long(&bytes, 32));
    let values =
        [0, 1, 2, 3, 63, 64, 127, 255, 1 << 12, 1 << 20, 1 << 31, 1 << 32, 1 << 63, u64::MAX];
    for i in 0..1500u64 {
        let random = |n: u64| splitmix64(i * 16 + n) as usize;
        let mut other = bytes.clone();
        for change in 0..1 + random(0) % 2 {
            let n = 1 + 4 * change as u64;
            let at = match random(n) % 4 {
                0 => 8 + random(n + 1) % (HEADER - 24),
                _ => table + random(n + 1) % (length - 8),
            };
            let value = match random(n + 2) % 3 {
                0 => random(n + 3) as u64,
                _ => values[random(n + 3) % values.len()],
            };
            let width = [1, 4, 8][random(n + 2) / 8 % 3];
            put(&mut other, at, &value.to_le_bytes()[..width]);
        }
        seal(&mut other);
        let (result, held) = peak(|| open(&other));
        assert!(held < bytes.len() + (8 << 20), "{held} bytes");
        if let Ok(model) = result {
            logits_or_error(&model);
        }
    }
}

/// Random changes of the small sections, sealed.
#[test]
fn sealed_nonsense_in_the_tokenizer_is_refused_or_harmless() {
    let (_folder, file) = packed();
    let bytes = std::fs::read(&file).unwrap();
    let small: Vec<(usize, usize)> = sections(&bytes).into_iter().take(6).collect();
    for i in 0..600u64 {
        let random = |n: u64| splitmix64(i * 16 + n + 77) as usize;
        let mut other = bytes.clone();
        let (at, length) = small[random(0) % small.len()];
        for n in 0..1 + random(1) as u64 % 3 {
            other[at + random(4 + n) % length] = random(8 + n) as u8;
        }
        seal(&mut other);
        if let Ok(model) = open(&other) {
            let mut ids = Vec::new();
            model.tokenizer().encode("Some text, and <|im_end|>.", AddedTokens::Honour, &mut ids);
            let _ = model.tokenizer().decode_text(&ids, Special::Keep);
            logits_or_error(&model);
        }
    }
}

struct Lent {
    bytes: Arc<Aligned>,
    skip: usize,
    length: usize,
    released: Arc<AtomicUsize>,
}

impl HostMemory for Lent {
    fn bytes(&self) -> &[u8] {
        &self.bytes.bytes()[self.skip..self.skip + self.length]
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        self.released.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn memory_is_used_in_place_when_aligned_and_released_once() {
    let (folder, file) = packed();
    let bytes = std::fs::read(&file).unwrap();
    let from_folder = Model::open(folder.path(), &options()).unwrap();
    for skip in [0, 1, 2, 32, 64] {
        let released = Arc::new(AtomicUsize::new(0));
        let moved = Arc::new(Aligned::new(&[&vec![0; skip][..], &bytes].concat()));
        let lent = Lent { bytes: moved, skip, length: bytes.len(), released: released.clone() };
        let model = Model::open_memory(Box::new(lent), &options(), &mut |_, _| true).unwrap();
        let in_place = skip % 64 == 0;
        assert_eq!(released.load(Ordering::SeqCst), usize::from(!in_place), "skip {skip}");
        same(&from_folder, &model);
        let session = Session::new(&model, SessionOptions::default()).unwrap();
        drop(model);
        assert_eq!(released.load(Ordering::SeqCst), usize::from(!in_place));
        drop(session);
        assert_eq!(released.load(Ordering::SeqCst), 1);
    }
}

#[test]
fn a_file_is_read_by_the_host() {
    let (folder, file) = packed();
    let bytes = std::fs::read(&file).unwrap();
    let from_folder = Model::open(folder.path(), &options()).unwrap();
    let size = bytes.len() as u64;
    let mut read = |offset: u64, to: &mut [u8]| {
        let at = offset as usize;
        to.copy_from_slice(&bytes[at..at + to.len()]);
        Ok(())
    };
    let model = Model::open_reader(size, &mut read, &options(), &mut |_, _| true).unwrap();
    same(&from_folder, &model);
    for wrong in [0, 5, 127, size - 1, size + 1, u64::MAX] {
        let mut asked = 0;
        let mut read = |offset: u64, to: &mut [u8]| {
            asked += to.len();
            let at = offset as usize;
            to.copy_from_slice(&bytes[at..at + to.len()]);
            Ok(())
        };
        assert!(Model::open_reader(wrong, &mut read, &options(), &mut |_, _| true).is_err());
        assert!(asked <= HEADER, "{asked}");
    }
    // Whenever the host fails, its own error comes back.
    for fail in 0..4 {
        let mut calls = 0;
        let mut read = |offset: u64, to: &mut [u8]| {
            calls += 1;
            if calls > fail {
                return Err(Error::new(ErrorKind::Io, "the pak file is gone"));
            }
            let at = offset as usize;
            to.copy_from_slice(&bytes[at..at + to.len()]);
            Ok(())
        };
        match Model::open_reader(size, &mut read, &options(), &mut |_, _| true) {
            Err(error) => assert!(error.message().contains("the pak file is gone"), "{error}"),
            Ok(_) => assert!(calls <= fail),
        }
    }
}

#[test]
fn the_format_page_names_what_is_written() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/packed-format.md");
    let page = std::fs::read_to_string(page).unwrap();
    let (_folder, file) = packed();
    let bytes = std::fs::read(file).unwrap();
    let table = &bytes[long(&bytes, 24)..];
    let count = sections(&bytes).len();
    let names = std::str::from_utf8(&table[count * ENTRY..]).unwrap();
    assert!(names.starts_with("config.json"), "{names}");
    for name in ["config.json", "tokenizer", "chat", "tokenizer.ends", "tokenizer.merges"] {
        assert!(names.contains(name) && page.contains(&format!("`{name}`")), "{name}");
    }
}
