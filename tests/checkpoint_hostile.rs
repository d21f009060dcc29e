//! Damaged and hostile weight files: an error that names the trouble, at once, without large
//! allocations, never a panic.

#[path = "support/counting.rs"]
mod counting;
#[path = "support/micro.rs"]
mod micro;
#[path = "support/synthetic.rs"]
mod synthetic;
#[path = "support/temp.rs"]
mod temp;

use std::path::Path;
use std::time::{Duration, Instant};

use counting::{held, peak};
use micro::{Raw, folder, good, micro, refusal, refused, write_anew, write_raw};
use qwen35::ErrorKind;
use qwen35::checkpoint::{Checkpoint, Dtype};
use serde_json::{Value, json};
use synthetic::{PREFIX, Spec, TensorSpec, splitmix64, write_file};

/// [`refused`], within seconds (of a busy machine) and half a megabyte.
fn refused_cheaply(path: &Path, parts: &[&str]) {
    let start = Instant::now();
    let (_, held) = peak(|| refused(path, parts));
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    assert!(held < 1 << 19, "{held} bytes");
}

const CONV: &str = "model.language_model.layers.0.linear_attn.conv1d.weight";
const UP: &str = "model.language_model.layers.1.mlp.up_proj.weight";

#[test]
fn a_file_that_is_cut_off_is_refused_with_both_sizes() {
    let (dir, file) = good();
    let bytes = std::fs::read(&file).unwrap();
    let header = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    for length in [bytes.len() / 2, bytes.len() - 1, 8 + header, 8 + header - 1, 9, 8, 7, 1, 0] {
        std::fs::write(&file, &bytes[..length]).unwrap();
        refused_cheaply(dir.path(), &["model.safetensors", &length.to_string(), "cut off"]);
    }
    // Bytes after the end are as suspicious: two downloads in one file, for one.
    std::fs::write(&file, [&bytes[..], b"x"].concat()).unwrap();
    refused_cheaply(dir.path(), &["model.safetensors", &(bytes.len() + 1).to_string()]);
}

#[test]
fn a_header_length_that_cannot_be_is_refused() {
    let (dir, file) = good();
    let bytes = std::fs::read(&file).unwrap();
    let size = bytes.len() as u64;
    for length in [0, 1, size - 7, 1 << 31, 1 << 63, u64::MAX, 100_000_001, size] {
        std::fs::write(&file, [&length.to_le_bytes()[..], &bytes[8..]].concat()).unwrap();
        refused_cheaply(dir.path(), &["model.safetensors", "header"]);
    }
}

#[test]
fn a_header_that_is_not_an_object_of_tensors_is_refused() {
    let (dir, file) = good();
    let deep = |open: &str, close: &str| {
        format!("{{\"a\":{}{}}}", open.repeat(100_000), close.repeat(100_000)).into_bytes()
    };
    let many = (0..140_000)
        .map(|i| format!("\"t{i}\":{{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}"))
        .collect::<Vec<_>>()
        .join(",");
    let long_shape = format!(
        "{{\"a\":{{\"dtype\":\"U8\",\"shape\":[{}1],\"data_offsets\":[0,1]}}}}",
        "1,".repeat(200_000)
    );
    let long_name = format!(
        "{{\"{}\":{{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}}}",
        "n".repeat(2000)
    );
    let cases: Vec<(Vec<u8>, &str)> = vec![
        (b"not json".to_vec(), "damaged header"),
        (b"[]".to_vec(), "an object of tensors"),
        (b"1".to_vec(), "an object of tensors"),
        (b"{".to_vec(), "damaged header"),
        (b"{}{}".to_vec(), "damaged header"),
        (b"{\"\xFF\":1}".to_vec(), "not UTF-8 at byte 10"),
        (b"\0\0\0\0".to_vec(), "damaged header"),
        (deep("[", "]"), "damaged header"),
        (deep("{\"a\":", "}"), "damaged header"),
        (b"{\"a\":{\"x\":".iter().chain(&deep("[", "]")).copied().collect(), "damaged header"),
        (br#"{"__metadata__":{"format":1}}"#.to_vec(), "expected a string"),
        (br#"{"__metadata__":[]}"#.to_vec(), "__metadata__"),
        (br#"{"__metadata__":{"a":{"b":"c"}}}"#.to_vec(), "expected a string"),
        (br#"{"__metadata__":{},"__metadata__":{}}"#.to_vec(), "twice"),
        (format!("{{{many}}}").into_bytes(), "more than 131072 tensors"),
        (long_shape.into_bytes(), "at most 8 dimensions"),
        (long_name.into_bytes(), "longer than 1024 bytes"),
        (
            br#"{"a":{"dtype":"U8","dtype":"U8","shape":[0],"data_offsets":[0,0]}}"#.to_vec(),
            "twice",
        ),
        (br#"{"a":{"shape":[0],"data_offsets":[0,0]}}"#.to_vec(), "dtype"),
        (br#"{"a":{"dtype":"U8","data_offsets":[0,0]}}"#.to_vec(), "shape"),
        (br#"{"a":{"dtype":"U8","shape":[0]}}"#.to_vec(), "data_offsets"),
        (br#"{"a":{"dtype":7,"shape":[0],"data_offsets":[0,0]}}"#.to_vec(), "dtype"),
        (br#"{"a\nb\u001b[31m":{"dtype":"U8"}}"#.to_vec(), r#""a\nb\u{1b}[31m""#),
        (b"{}".to_vec(), "there is nothing"),
        (br#"{"__metadata__":{"format":"pt"}}"#.to_vec(), "there is nothing"),
    ];
    for (header, part) in cases {
        write_raw(&file, &header, b"");
        let start = Instant::now();
        let (_, held) = peak(|| refused(dir.path(), &["model.safetensors", part]));
        assert!(start.elapsed() < Duration::from_secs(5), "{part}: {:?}", start.elapsed());
        assert!(held < 24 * header.len() + (1 << 16), "{part}: {held} for {}", header.len());
    }
}

#[test]
fn offsets_shapes_and_types_that_do_not_fit_are_refused_by_name() {
    let (dir, file) = good();
    let original = Raw::read(&file);
    let change = |change: &dyn Fn(&mut Value, u64, u64), parts: &[&str]| {
        let mut raw = Raw { header: original.header.clone(), data: original.data.clone() };
        let entry = raw.entry(UP);
        let begin = entry["data_offsets"][0].as_u64().unwrap();
        let end = entry["data_offsets"][1].as_u64().unwrap();
        change(entry, begin, end);
        raw.write(&file);
        refused_cheaply(dir.path(), &[&["model.safetensors", UP][..], parts].concat());
    };
    let offsets = |value: Value, parts: &[&str]| {
        change(&move |e, _, _| e["data_offsets"] = value.clone(), parts);
    };
    offsets(json!([]), &["two data_offsets"]);
    offsets(json!([0]), &["two data_offsets"]);
    offsets(json!([0, 1, 2]), &["two data_offsets"]);
    offsets(json!([10, 5]), &["inverted"]);
    offsets(json!([0, 1u64 << 63]), &["cut off"]);
    offsets(json!([u64::MAX, u64::MAX]), &["cut off"]);
    offsets(json!([-1, 5]), &["integer `-1`"]);
    offsets(json!([0.5, 5]), &["0.5"]);
    offsets(json!("0"), &["two data_offsets"]);
    offsets(json!(null), &["two data_offsets"]);
    change(&|e, b, end| e["data_offsets"] = json!([b, end + 2]), &["needs 192"]);
    change(&|e, b, end| e["data_offsets"] = json!([b - 2, end - 2]), &["inside tensor"]);
    change(&|e, b, end| e["data_offsets"] = json!([b, end - 2]), &["needs 192"]);
    let shape = |value: Value, parts: &[&str]| {
        change(&move |e, _, _| e["shape"] = value.clone(), parts);
    };
    shape(json!([]), &["needs 2"]);
    shape(json!([0]), &["needs 0"]);
    shape(json!([-1]), &["-1"]);
    shape(json!([1u64 << 32, 1u64 << 32]), &["too large"]);
    shape(json!([1u64 << 63, 2, 0]), &["too large"]);
    shape(json!([12]), &["needs 24"]);
    shape(json!([8, 12]), &["has shape [8, 12], expected [12, 8]"]);
    shape(json!([96]), &["has shape [96], expected [12, 8]"]);
    shape(json!([12.0, 8]), &["12"]);
    shape(json!("12"), &["a shape"]);
    let dtype = |value: Value, parts: &[&str]| {
        change(&move |e, _, _| e["dtype"] = value.clone(), parts);
    };
    dtype(json!("BF17"), &["unknown dtype \"BF17\""]);
    dtype(json!("bf16"), &["unknown dtype"]);
    dtype(json!("F32"), &["needs 384"]);
    dtype(json!("F4"), &["needs 48"]);
    dtype(json!("I16"), &["I16", "BF16, F16 or F32"]);
}

#[test]
fn one_name_for_two_tensors_is_refused() {
    let (dir, file) = good();
    let raw = Raw::read(&file);
    let text = serde_json::to_string(&raw.header).unwrap();
    let first = text.find("\"model.").unwrap();
    let entry_end = text.find('}').unwrap() + 1;
    let twice = format!("{{{},{}", &text[first..entry_end], &text[1..]);
    write_raw(&file, twice.as_bytes(), &raw.data);
    refused_cheaply(dir.path(), &["is there twice"]);
}

#[test]
fn bytes_that_belong_to_no_tensor_are_refused() {
    let (dir, file) = good();
    let mut raw = Raw::read(&file);
    // The last tensor moves two bytes up: a hole before it.
    raw.data.extend(b"xx");
    let last = raw.header.values_mut().max_by_key(|e| e["data_offsets"][1].as_u64()).unwrap();
    let (begin, end) = (last["data_offsets"][0].as_u64(), last["data_offsets"][1].as_u64());
    last["data_offsets"] = json!([begin.unwrap() + 2, end.unwrap() + 2]);
    raw.write(&file);
    refused_cheaply(dir.path(), &["belong to no tensor"]);
}

#[test]
fn every_missing_tensor_is_named() {
    let untied = {
        let mut spec = micro();
        spec.text_mut()["tie_word_embeddings"] = json!(false);
        spec.config["tie_word_embeddings"] = json!(false);
        spec
    };
    for victim in untied.tensors() {
        let rest: Vec<TensorSpec> =
            untied.tensors().into_iter().filter(|t| t.name != victim.name).collect();
        let dir = folder(&untied, &rest);
        refused_cheaply(dir.path(), &["model.safetensors", "is missing", &victim.name]);
    }
    // Many at once: the first few, and how many more.
    let rest: Vec<TensorSpec> =
        untied.tensors().into_iter().filter(|t| !t.name.contains(".layers.0.")).collect();
    refused_cheaply(folder(&untied, &rest).path(), &["are missing", "and 9 more"]);
}

#[test]
fn wrong_shapes_and_types_are_named() {
    let spec = micro();
    for victim in spec.tensors() {
        let mut tensors = spec.tensors();
        let tensor = tensors.iter_mut().find(|t| t.name == victim.name).unwrap();
        tensor.shape[0] += 1;
        let dir = folder(&spec, &tensors);
        let expected = format!("expected {:?}", victim.shape);
        refused_cheaply(dir.path(), &[&victim.name, &expected]);
    }
    for name in [".A_log", ".dt_bias", ".linear_attn.norm.weight", ".up_proj.weight"] {
        for dtype in [Dtype::I32, Dtype::F8_E4M3, Dtype::F64, Dtype::Bool] {
            let mut tensors = spec.tensors();
            let tensor = tensors.iter_mut().find(|t| t.name.ends_with(name)).unwrap();
            tensor.dtype = dtype;
            let error = Checkpoint::open(folder(&spec, &tensors).path()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported);
            let message = error.to_string();
            assert!(message.contains(name) && message.contains(&dtype.to_string()), "{message}");
        }
    }
    // A convolution the wrong way round has as many elements, but no sense.
    let mut tensors = spec.tensors();
    tensors.iter_mut().find(|t| t.name == CONV).unwrap().shape.reverse();
    refused_cheaply(folder(&spec, &tensors).path(), &[CONV, "[4, 1, 20]", "[20, 1, 4]"]);
}

#[test]
fn unknown_names_are_refused_with_examples() {
    let spec = micro();
    let renamed = |prefix: &str| {
        let mut tensors = spec.tensors();
        for tensor in &mut tensors {
            tensor.stored = tensor.name.replace(PREFIX, prefix);
        }
        folder(&spec, &tensors)
    };
    refused_cheaply(
        renamed("base_model.model.model.").path(),
        &["model.language_model.embed_tokens.weight", "there is base_model.model.model."],
    );
    refused_cheaply(renamed("transformer.").path(), &["there is transformer.", "more"]);

    let mut tensors = spec.tensors();
    tensors[3].stored = tensors[3].name.replace(PREFIX, "model.");
    refused_cheaply(
        folder(&spec, &tensors).path(),
        &["more than one prefix", "\"model.\" (1)", "\"model.language_model.\""],
    );
}

/// A bias or a scale that is left out gives plausible nonsense.
#[test]
fn unknown_tensors_of_the_text_model_are_refused_by_name() {
    let spec = micro();
    let with = |name: &str| {
        let mut tensors = spec.tensors();
        let name = format!("{PREFIX}{name}");
        tensors.push(TensorSpec {
            stored: name.clone(),
            name,
            dtype: Dtype::F32,
            shape: vec![3],
            scale: 1.0,
            offset: 0.0,
        });
        folder(&spec, &tensors)
    };
    for name in [
        "layers.1.self_attn.q_proj.bias",
        "layers.0.mlp.gate_proj.weight_scale",
        "layers.x.input_layernorm.weight",
        "embed_tokens.weight_scale",
        "norm.bias",
    ] {
        refused_cheaply(with(name).path(), &[name, "there is another one"]);
    }
    // What follows from the configuration.
    for name in ["layers.1.self_attn.rotary_emb.inv_freq", "rotary_emb.inv_freq"] {
        assert!(Checkpoint::open(with(name).path()).is_ok(), "{name}");
    }
}

#[test]
fn layers_that_the_configuration_does_not_know_are_refused() {
    let spec = micro();
    let mut shorter = micro();
    shorter.text_mut()["num_hidden_layers"] = json!(1);
    shorter.text_mut()["layer_types"] = json!(["linear_attention"]);
    refused_cheaply(
        folder(&shorter, &spec.tensors()).path(),
        &["num_hidden_layers 1", "layers.1.input_layernorm.weight", "more"],
    );
    let mut larger = micro();
    larger.text_mut()["vocab_size"] = json!(25);
    refused_cheaply(
        folder(&larger, &spec.tensors()).path(),
        &["embed_tokens.weight", "[24, 8]", "[25, 8]"],
    );
}

#[test]
fn broken_sets_of_shards_are_refused() {
    let sharded = || {
        let dir = temp::TempDir::new();
        micro().write_sharded(dir.path(), 2).unwrap();
        dir
    };
    let (one, two) = (synthetic::shard_name(0, 2), synthetic::shard_name(1, 2));
    let index = "model.safetensors.index.json";
    let edit = |dir: &temp::TempDir, change: &dyn Fn(&mut Value)| {
        let text = std::fs::read_to_string(dir.join(index)).unwrap();
        let mut value = serde_json::from_str(&text).unwrap();
        change(&mut value);
        std::fs::write(dir.join(index), value.to_string()).unwrap();
    };
    assert!(Checkpoint::open(sharded().path()).is_ok());

    let dir = sharded();
    std::fs::remove_file(dir.join(&two)).unwrap();
    refused_cheaply(dir.path(), &[index, "1 of 2 weight files are missing", &two]);
    refused_cheaply(&dir.join(&one), &[index, "1 of 2", &two]);
    std::fs::remove_file(dir.join(&one)).unwrap();
    refused_cheaply(dir.path(), &[index, "2 of 2", &one, &two]);

    let dir = sharded();
    std::fs::rename(dir.join(&two), dir.join("other.safetensors")).unwrap();
    refused_cheaply(dir.path(), &["1 of 2 weight files are missing", &two]);

    // Two shards exchanged: the index is for other files.
    let dir = sharded();
    std::fs::rename(dir.join(&two), dir.join("x")).unwrap();
    std::fs::rename(dir.join(&one), dir.join(&two)).unwrap();
    std::fs::rename(dir.join("x"), dir.join(&one)).unwrap();
    refused_cheaply(dir.path(), &[index, "is said to be in", "does not hold it"]);

    let dir = sharded();
    edit(&dir, &|v| v["weight_map"]["model.language_model.layers.9.x"] = json!(one.clone()));
    refused_cheaply(dir.path(), &["layers.9.x", &one, "does not hold it"]);

    // A tensor that only the file knows is not read: the index is what counts.
    let dir = sharded();
    edit(&dir, &|v| {
        v["weight_map"].as_object_mut().unwrap().shift_remove(UP);
    });
    refused_cheaply(dir.path(), &["is missing", UP]);

    for path in ["../x.safetensors", "/etc/passwd", "a/../../x", "", ".", "./x", "a\0b"] {
        let dir = sharded();
        edit(&dir, &|v| v["weight_map"][UP] = json!(path));
        refused_cheaply(dir.path(), &[index, "is no path inside the folder"]);
    }
    let dir = sharded();
    std::fs::create_dir(dir.join("sub")).unwrap();
    edit(&dir, &|v| v["weight_map"][UP] = json!("sub"));
    refused_cheaply(dir.path(), &["sub", "not a regular file"]);

    for (text, part) in [
        ("", "not a valid index"),
        ("[]", "an object with a weight_map"),
        ("{}", "weight_map"),
        (r#"{"weight_map":{}}"#, "empty"),
        (r#"{"weight_map":[]}"#, "an object of tensor names"),
        (r#"{"weight_map":{"a":1}}"#, "expected a string"),
        (r#"{"weight_map":{"a":"b"},"weight_map":{"a":"b"}}"#, "duplicate"),
        (r#"{"weight_map":{"a":"b","a":"c"}}"#, "mapped to two files"),
    ] {
        let dir = sharded();
        std::fs::write(dir.join(index), text).unwrap();
        refused_cheaply(dir.path(), &[index, part]);
    }
    let dir = sharded();
    std::fs::write(dir.join(index), "[".repeat(1_000_000)).unwrap();
    refused(dir.path(), &[index]);

    // Shards without an index.
    let dir = sharded();
    std::fs::remove_file(dir.join(index)).unwrap();
    refused_cheaply(dir.path(), &[index, "is missing", &one, &two]);
    std::fs::remove_file(dir.join(&two)).unwrap();
    refused_cheaply(dir.path(), &[index, "is missing", &one]);
}

/// Seeded changes to a good header, thousands of them: never a panic, never much memory or time.
#[test]
fn random_damage_gives_errors_not_panics() {
    let (dir, file) = good();
    let bytes = std::fs::read(&file).unwrap();
    let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let (header, data) = (&bytes[8..8 + length], &bytes[8 + length..]);
    let tokens: &[&[u8]] = &[
        b"0",
        b"-1",
        b"1e9",
        b"18446744073709551615",
        b"18446744073709551616",
        b"null",
        b"[]",
        b"{}",
        b"\"",
        b"\\",
        b"\\u0000",
        b"\xFF",
        b"]",
        b"}",
        b"[",
        b"{",
        b",",
        b":",
        b"F32",
        b"F64",
        b"BOOL",
        b"F4",
        b"9",
        b" ",
        b"\"shape\":[1],",
        b"__metadata__",
        b"true",
    ];
    let mut state = 1u64;
    let mut random = |below: usize| {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        (splitmix64(state) % below as u64) as usize
    };
    let mut opened = 0;
    for round in 0..4000 {
        let mut text = header.to_vec();
        for _ in 0..1 + random(3) {
            let at = random(text.len());
            match random(6) {
                0 => text[at] ^= 1 << random(8),
                1 => text[at] = random(256) as u8,
                2 => text.truncate(at.max(1)),
                3 => {
                    text.drain(at..(at + 1 + random(40)).min(text.len()));
                }
                4 => {
                    let token = tokens[random(tokens.len())];
                    text.splice(at..at, token.iter().copied());
                }
                _ => {
                    let token = tokens[random(tokens.len())];
                    let end = (at + token.len()).min(text.len());
                    text.splice(at..end, token.iter().copied());
                }
            }
            if text.is_empty() {
                text.push(b'{');
            }
        }
        // Half of them keep the length of the header right, the others keep the old one.
        if round % 2 == 0 {
            write_raw(&file, &text, data);
        } else {
            write_anew(&file, &[&bytes[..8], &text, data].concat());
        }
        let start = Instant::now();
        let (result, held) = peak(|| Checkpoint::open(dir.path()));
        assert!(held < 1 << 19, "round {round}: {held} bytes");
        assert!(start.elapsed() < Duration::from_secs(5), "round {round}");
        match result {
            Ok(checkpoint) => {
                // Changes that do not matter, in padding for one. All tensors must be readable.
                opened += 1;
                for tensor in micro().tensors() {
                    let short = tensor.name.trim_start_matches(PREFIX);
                    checkpoint.tensor(short, &tensor.shape).unwrap().to_f32();
                }
            }
            Err(e) => assert!(e.to_string().contains("model.safetensors"), "{e}"),
        }
    }
    assert!(opened < 400, "{opened} of 4000 damaged files were opened");
}

#[test]
fn files_that_are_no_weight_files_are_refused() {
    let (dir, file) = good();
    std::fs::remove_file(&file).unwrap();
    refused_cheaply(dir.path(), &["there is no model.safetensors"]);
    std::fs::write(dir.join("tokenizer.json.part"), "").unwrap();
    refused_cheaply(dir.path(), &["there is no model.safetensors", "download is not finished"]);
    let index = dir.join("model.safetensors.index.json");
    std::fs::write(&index, r#"{"weight_map":{"a":"model-1.safetensors"}}"#).unwrap();
    refused_cheaply(dir.path(), &["1 of 1 weight files are missing", ": model-1.safetensors"]);
    std::fs::write(dir.join("model-1.safetensors.part"), "").unwrap();
    refused_cheaply(dir.path(), &["model-1.safetensors; the download is not finished"]);
    std::fs::remove_file(&index).unwrap();
    std::fs::write(dir.join("model.gguf"), "GGUF").unwrap();
    refused_cheaply(dir.path(), &["model.gguf is of a kind that is not read"]);
    let error = Checkpoint::open(&dir.join("model.gguf")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    refused_cheaply(&dir.join("config.json"), &["give the folder"]);
    refused_cheaply(&dir.join("absent"), &["absent", "No such file"]);
    refused_cheaply(Path::new(""), &["empty"]);
    refused_cheaply(Path::new("/tmp/a\0b"), &["/tmp/a\\u{0}b", "cannot open"]);

    // A pipe under the name must not make the caller wait for a writer.
    let made = std::process::Command::new("mkfifo").arg(&file).status().unwrap();
    assert!(made.success());
    refused_cheaply(dir.path(), &["model.safetensors", "not a regular file"]);
    std::fs::remove_file(&file).unwrap();
    std::fs::create_dir(&file).unwrap();
    refused_cheaply(dir.path(), &["model.safetensors", "not a regular file"]);
    std::fs::remove_dir(&file).unwrap();
    std::os::unix::fs::symlink("/dev/zero", &file).unwrap();
    refused_cheaply(dir.path(), &["model.safetensors", "not a regular file"]);

    // What stands in the file's place when it was never fetched.
    std::fs::remove_file(&file).unwrap();
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:04b1\nsize 1746942600\n";
    std::fs::write(&file, pointer).unwrap();
    refused_cheaply(dir.path(), &["model.safetensors", "Git LFS pointer", "git lfs pull"]);
    std::fs::write(&file, "<!DOCTYPE html><html>Not found</html>").unwrap();
    refused_cheaply(dir.path(), &["it begins with \"<!DOCTYPE html"]);
}

#[test]
fn damage_in_a_download_cache_is_explained() {
    use std::os::unix::fs::symlink;
    let cache = temp::TempDir::new();
    let (blobs, snapshot) = (cache.join("blobs"), cache.join("snapshots/abc123"));
    std::fs::create_dir_all(&blobs).unwrap();
    std::fs::create_dir_all(&snapshot).unwrap();
    micro().write(&blobs).unwrap();
    symlink("../../blobs/config.json", snapshot.join("config.json")).unwrap();
    let weights = snapshot.join("model.safetensors");
    symlink("../../blobs/model.safetensors", &weights).unwrap();
    assert!(Checkpoint::open(&snapshot).is_ok());
    assert!(Checkpoint::open(&weights).is_ok());

    refused_cheaply(cache.path(), &["no config.json", "download cache", "abc123"]);
    refused_cheaply(&cache.join("snapshots"), &["no config.json", "a folder below", "abc123"]);

    let blob = blobs.join("model.safetensors");
    std::fs::rename(&blob, blobs.join("model.safetensors.incomplete")).unwrap();
    refused_cheaply(&snapshot, &["a link to", "does not exist", "download is incomplete"]);
    refused_cheaply(&weights, &["a link to", "does not exist"]);
    std::fs::write(&blob, "").unwrap();
    refused_cheaply(&snapshot, &["model.safetensors", "0 bytes long"]);
    std::fs::remove_file(&weights).unwrap();
    symlink("model.safetensors", &weights).unwrap();
    refused_cheaply(&snapshot, &["model.safetensors", "symbolic links"]);
    std::fs::remove_file(blobs.join("config.json")).unwrap();
    refused_cheaply(&snapshot, &["config.json", "a link to"]);
}

#[test]
fn a_huge_file_of_holes_costs_nothing() {
    let (dir, file) = good();
    let sparse = std::fs::File::create(&file).unwrap();
    sparse.set_len(1 << 40).unwrap();
    refused_cheaply(dir.path(), &["header length 0"]);
    // A header of the largest length, all zeros.
    std::os::unix::fs::FileExt::write_all_at(&sparse, &100_000_000u64.to_le_bytes(), 0).unwrap();
    let (message, held) = peak(|| refusal(dir.path()));
    assert!(message.contains("damaged header"), "{message}");
    assert!(held < 1 << 16, "{held}");
}

#[test]
fn repeated_failures_do_not_leak() {
    let spec: Spec = micro();
    let mut tensors = spec.tensors();
    tensors.pop();
    let dir = folder(&spec, &tensors);
    refusal(dir.path());
    let before = held();
    for _ in 0..50 {
        refusal(dir.path());
    }
    assert_eq!(held(), before);
    write_file(&dir.join("model.safetensors"), &spec.tensors(), 0).unwrap();
    let files = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    let mapped = || {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        maps.lines().filter(|l| l.contains(dir.path().to_str().unwrap())).count()
    };
    drop(Checkpoint::open(dir.path()).unwrap());
    let (memory, open) = (held(), files());
    let tensor = Checkpoint::open(dir.path()).unwrap().tensor("norm.weight", &[8]).unwrap();
    assert_eq!(mapped(), 1, "a tensor keeps its file mapped");
    assert_eq!(tensor.to_f32().len(), 8);
    drop(tensor);
    assert_eq!(mapped(), 0);
    for _ in 0..50 {
        drop(Checkpoint::open(dir.path()).unwrap());
    }
    assert_eq!(held(), memory);
    assert!(files() <= open + 8, "other tests may hold a few files");
}
