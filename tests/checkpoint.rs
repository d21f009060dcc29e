//! Checkpoints that must open: the published layout, and what tools make of it.

#[path = "support/micro.rs"]
mod micro;
#[path = "support/synthetic.rs"]
mod synthetic;
#[path = "support/temp.rs"]
mod temp;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::Path;

use micro::{Raw, folder, good, micro, refusal, refused};
use qwen35::checkpoint::{Checkpoint, Dtype};
use serde_json::{Value, json};
use synthetic::{PREFIX, Spec, TensorSpec, Types, header, shard_name, write_file};
use temp::TempDir;

fn open(path: &Path) -> Checkpoint {
    Checkpoint::open(path).unwrap_or_else(|e| panic!("{e}"))
}

/// Every tensor of the text model has the values that the name and seed give.
fn assert_same_model(checkpoint: &Checkpoint, spec: &Spec) {
    for expected in spec.tensors() {
        let short = expected.name.trim_start_matches(PREFIX);
        let tensor = checkpoint.tensor(short, &expected.shape).unwrap();
        assert_eq!(tensor.dtype(), expected.dtype, "{short}");
        assert_eq!(tensor.shape(), expected.shape, "{short}");
        assert_eq!(tensor.to_f32(), expected.values(spec.seed), "{short}");
    }
}

#[test]
fn every_kind_of_configuration_and_element_type_opens_with_exact_values() {
    for name in ["small-equal", "small-grouped", "small-odd", "small-flat"] {
        for types in [Types::Published, Types::Mixed, Types::All(Dtype::F16)] {
            let dir = TempDir::new();
            let spec = Spec { types, ..Spec::named(name) };
            spec.write(dir.path()).unwrap();
            assert_same_model(&open(dir.path()), &spec);
        }
    }
}

/// The Rust writer, the published file and the checkpoint's requirements know the same tensors.
#[test]
fn the_synthetic_file_has_the_published_layout() {
    let table = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/tensors-qwen3.5-0.8b.tsv");
    let table = std::fs::read_to_string(table).unwrap();
    let published: Vec<TensorSpec> = table
        .lines()
        .skip(1)
        .map(|line| {
            let columns: Vec<&str> = line.split('\t').collect();
            let dtype = if columns[1] == "F32" { Dtype::F32 } else { Dtype::BF16 };
            let shape = columns[2].split('x').map(|d| d.parse().unwrap()).collect();
            let name = columns[0].to_owned();
            TensorSpec { stored: name.clone(), name, dtype, shape, scale: 0.0, offset: 0.0 }
        })
        .collect();
    assert_eq!(published.len(), 488);
    assert_eq!(header(&published).len(), 8 + 59_840);

    let spec = Spec { mtp: true, ..Spec::named("qwen3.5-0.8b") };
    let ours: Vec<_> = spec.tensors().into_iter().map(|t| (t.name, t.dtype, t.shape)).collect();
    let theirs: Vec<_> = published
        .into_iter()
        .filter(|t| !t.name.starts_with("model.visual."))
        .map(|t| (t.name, t.dtype, t.shape))
        .collect();
    assert_eq!(ours, theirs);
}

/// The published sizes of all dense siblings: only the number of bytes is written (as holes).
#[test]
fn all_published_configurations_open_over_files_of_their_size() {
    for (size, text_bytes) in [
        ("0.8b", 1_504_791_232u64),
        ("2b", 2 * 1_881_825_088 + 5_184),
        ("4b", 2 * 4_205_751_296 + 24 * 2 * (32 + 128)),
        ("9b", 2 * 8_953_803_264 + 24 * 2 * (32 + 128)),
        ("27b", 2 * 26_895_998_464 + 48 * 2 * (48 + 128)),
    ] {
        let spec = Spec { mtp: true, ..Spec::named(&format!("qwen3.5-{size}")) };
        let dir = TempDir::new();
        spec.write_config(dir.path()).unwrap();
        let head = header(&spec.tensors());
        let data: usize = spec.tensors().iter().map(TensorSpec::byte_len).sum();
        let file = std::fs::File::create(dir.join("model.safetensors")).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, &head, 0).unwrap();
        file.set_len((head.len() + data) as u64).unwrap();

        let start = std::time::Instant::now();
        let checkpoint = open(dir.path());
        assert!(start.elapsed().as_millis() < 2000, "{size}: {:?}", start.elapsed());
        assert_eq!(checkpoint.text_bytes(), text_bytes, "{size}");
        assert_eq!(checkpoint.config().eos_token_ids, [248_044]);
    }
}

#[test]
fn shards_are_found_through_the_index() {
    let spec = Spec { types: Types::Mixed, ..micro() };
    for count in [1, 2, 5] {
        let dir = TempDir::new();
        spec.write_sharded(dir.path(), count).unwrap();
        let checkpoint = open(dir.path());
        assert_same_model(&checkpoint, &spec);
        assert_eq!(checkpoint.files().count(), count);
        // The path of a shard, or of the index, stands for all.
        assert_same_model(&open(&dir.join(shard_name(0, count))), &spec);
        assert_same_model(&open(&dir.join("model.safetensors.index.json")), &spec);
    }
}

#[test]
fn a_single_file_is_found_whatever_its_name() {
    let spec = micro();
    for name in [
        "model.safetensors-00001-of-00001.safetensors",
        "model-00001-of-00001.safetensors",
        "weights.safetensors",
    ] {
        let dir = folder(&spec, &spec.tensors());
        std::fs::rename(dir.join("model.safetensors"), dir.join(name)).unwrap();
        std::fs::write(dir.join("._model.safetensors"), "left by a file manager").unwrap();
        std::fs::write(dir.join("model.safetensors.part"), "unfinished").unwrap();
        assert_same_model(&open(dir.path()), &spec);
        assert_same_model(&open(&dir.join(name)), &spec);
        if name.starts_with("model") {
            std::fs::write(dir.join("adapter.safetensors"), "unrelated").unwrap();
            assert_same_model(&open(dir.path()), &spec);
        }
    }

    // model.safetensors comes before the index, as in Transformers.
    let dir = TempDir::new();
    spec.write_sharded(dir.path(), 2).unwrap();
    let other = Spec { seed: 5, ..micro() };
    other.write(dir.path()).unwrap();
    assert_same_model(&open(dir.path()), &other);
}

#[test]
fn known_prefixes_are_resolved() {
    let spec = micro();
    for prefix in [
        "model.",
        "model.language_model.",
        "language_model.model.",
        "model.language_model.language_model.language_model.",
        "",
    ] {
        let mut tensors = spec.tensors();
        for tensor in &mut tensors {
            tensor.stored = tensor.name.replace(PREFIX, prefix);
        }
        assert_same_model(&open(folder(&spec, &tensors).path()), &spec);
    }
}

#[test]
fn vision_drafting_and_unknown_tensors_are_left_alone() {
    let spec = Spec { mtp: true, ..micro() };
    let mut tensors = spec.tensors();
    let extra = |name: &str, dtype: Dtype| TensorSpec {
        name: name.to_owned(),
        stored: name.to_owned(),
        dtype,
        shape: vec![3, 5],
        scale: 1.0,
        offset: 0.0,
    };
    tensors.push(extra("model.visual.pos_embed.weight", Dtype::BF16));
    tensors.push(extra("model.visual.blocks.0.norm1.weight", Dtype::F8_E4M3));
    tensors.push(extra("foo.bar", Dtype::I64));
    let checkpoint = open(folder(&spec, &tensors).path());
    assert_same_model(&checkpoint, &spec);
    // They can be asked for by name.
    assert!(checkpoint.has("mtp.fc.weight") && checkpoint.has("visual.pos_embed.weight"));
    assert!(checkpoint.tensor("mtp.fc.weight", &[8, 16]).is_ok());
    assert!(checkpoint.tensor("visual.pos_embed.weight", &[3, 5]).is_ok());
    let error = checkpoint.tensor("foo.bar", &[3, 5]).unwrap_err().to_string();
    assert!(error.contains("foo.bar") && error.contains("I64"), "{error}");
    let error = checkpoint.tensor("nothing.weight", &[1]).unwrap_err().to_string();
    assert!(error.contains("nothing.weight"), "{error}");
    let error = checkpoint.tensor("norm.weight", &[9]).unwrap_err().to_string();
    assert!(error.contains("[8]") && error.contains("[9]"), "{error}");

    // Only the text model counts for its size, with or without the others.
    let bare = open(folder(&spec, &micro().tensors()).path());
    assert_eq!(bare.text_bytes(), checkpoint.text_bytes());
    assert!(!bare.has("mtp.fc.weight"));

    // An index that still lists what a tuned save dropped is no obstacle.
    let dir = TempDir::new();
    spec.write_sharded(dir.path(), 2).unwrap();
    let text = std::fs::read_to_string(dir.join("model.safetensors.index.json")).unwrap();
    let mut index: Value = serde_json::from_str(&text).unwrap();
    index["weight_map"]["model.visual.gone"] = json!(shard_name(0, 2));
    std::fs::write(dir.join("model.safetensors.index.json"), index.to_string()).unwrap();
    assert_same_model(&open(dir.path()), &micro());
}

/// `lm_head.weight` is the output matrix wherever it is stored; see `Checkpoint::output_head`.
#[test]
fn the_output_head_follows_the_file_and_then_the_flag() {
    for (tied, stored) in [(true, false), (true, true), (false, true), (false, false)] {
        for place in ["both", "top", "text", "top wins"] {
            let mut spec = micro();
            spec.config.as_object_mut().unwrap().shift_remove("tie_word_embeddings");
            spec.text_mut().as_object_mut().unwrap().shift_remove("tie_word_embeddings");
            if place != "text" {
                spec.config["tie_word_embeddings"] = json!(tied);
            }
            if place != "top" {
                spec.text_mut()["tie_word_embeddings"] = json!(tied ^ (place == "top wins"));
            }
            let mut tensors = spec.tensors();
            tensors.retain(|t| t.name != "lm_head.weight");
            if stored {
                let mut head = tensors
                    .iter()
                    .find(|t| t.name.ends_with("embed_tokens.weight"))
                    .unwrap()
                    .clone();
                head.name = "lm_head.weight".to_owned();
                head.stored = head.name.clone();
                tensors.push(head);
            }
            let dir = folder(&spec, &tensors);
            if !tied && !stored {
                refused(dir.path(), &["lm_head.weight", "tie_word_embeddings is false"]);
                continue;
            }
            let checkpoint = open(dir.path());
            let source = if stored { "lm_head.weight" } else { "embed_tokens.weight" };
            let expected = tensors.iter().find(|t| t.name.ends_with(source)).unwrap();
            assert_eq!(checkpoint.output_head().unwrap().to_f32(), expected.values(spec.seed));
        }
    }

    // Without the flag anywhere: not tied.
    let mut spec = micro();
    spec.config.as_object_mut().unwrap().shift_remove("tie_word_embeddings");
    spec.text_mut().as_object_mut().unwrap().shift_remove("tie_word_embeddings");
    let mut tensors = spec.tensors();
    assert_same_model(&open(folder(&spec, &tensors).path()), &spec);
    tensors.retain(|t| t.name != "lm_head.weight");
    refused(folder(&spec, &tensors).path(), &["lm_head.weight"]);

    // Under the layout that puts everything below language_model.
    let mut tensors = spec.tensors();
    for tensor in &mut tensors {
        tensor.stored = tensor.name.replace(PREFIX, "language_model.model.");
        tensor.stored = tensor.stored.replace("lm_head", "language_model.lm_head");
    }
    assert_same_model(&open(folder(&spec, &tensors).path()), &spec);
    // Two heads: which one?
    let mut second = tensors.iter().find(|t| t.name == "lm_head.weight").unwrap().clone();
    second.stored = "lm_head.weight".to_owned();
    tensors.push(second);
    refused(folder(&spec, &tensors).path(), &["two output heads"]);
}

#[test]
fn decay_and_norm_tensors_are_read_in_the_type_they_are_stored_in() {
    for dtype in [Dtype::F32, Dtype::BF16, Dtype::F16] {
        let spec = micro();
        let mut tensors = spec.tensors();
        for tensor in &mut tensors {
            if ["A_log", "dt_bias", "linear_attn.norm.weight"]
                .iter()
                .any(|n| tensor.name.ends_with(n))
            {
                tensor.dtype = dtype;
            }
        }
        let checkpoint = open(folder(&spec, &tensors).path());
        for (name, width) in [("A_log", 2), ("dt_bias", 2), ("norm.weight", 6)] {
            let name = format!("layers.0.linear_attn.{name}");
            let tensor = checkpoint.tensor(&name, &[width]).unwrap();
            let views = [tensor.f32().is_some(), tensor.bf16().is_some(), tensor.f16().is_some()];
            let right = [Dtype::F32, Dtype::BF16, Dtype::F16].map(|d| d == dtype);
            assert_eq!(views, right, "{name}");
            let expected = tensors.iter().find(|t| t.name.ends_with(&name)).unwrap();
            assert_eq!(tensor.to_f32(), expected.values(spec.seed));
        }
    }
}

#[test]
fn a_convolution_without_its_middle_dimension_is_accepted() {
    let spec = micro();
    let mut tensors = spec.tensors();
    tensors.iter_mut().filter(|t| t.name.ends_with("conv1d.weight")).for_each(|t| {
        t.shape.remove(1);
    });
    assert_same_model(&open(folder(&spec, &tensors).path()), &spec);
}

/// Headers need not be padded: data at every alignment is read right, and never through an
/// unaligned reference (`elements` checks).
#[test]
fn data_at_any_alignment_is_read() {
    let spec = Spec { types: Types::Mixed, ..micro() };
    let (dir, file) = (folder(&spec, &spec.tensors()), "model.safetensors");
    let original = Raw::read(&dir.join(file));
    let text = serde_json::to_string(&original.header).unwrap();
    for padding in 0..8 {
        let header = format!("{text}{}", " ".repeat(padding));
        micro::write_raw(&dir.join(file), header.as_bytes(), &original.data);
        let checkpoint = open(dir.path());
        assert_same_model(&checkpoint, &spec);
        let tensor = checkpoint.tensor("norm.weight", &[8]).unwrap();
        let again = tensor.clone();
        drop((tensor, checkpoint));
        assert_eq!(again.to_f32().len(), 8);
    }
}

#[test]
fn paths_are_bytes() {
    let source = good();
    let long = "n".repeat(240);
    let names: [&[u8]; 9] = [
        "Модель é 模型 ’".as_bytes(),
        b" leading and trailing ",
        b"line\nbreak",
        b"100%20",
        long.as_bytes(),
        b"\xFF\xFE",
        b"-rf",
        b"model.safetensors",
        b"quote'\"\\",
    ];
    let dir = TempDir::new();
    std::fs::create_dir(dir.join("x")).unwrap();
    for name in names {
        let folder = dir.join(OsStr::from_bytes(name));
        std::fs::create_dir(&folder).unwrap();
        for file in ["config.json", "model.safetensors"] {
            std::fs::copy(source.0.join(file), folder.join(file)).unwrap();
        }
        assert_same_model(&open(&folder), &micro());
        assert_same_model(&open(&folder.join("model.safetensors")), &micro());
        assert_same_model(&open(&folder.join("")), &micro());
        assert_same_model(&open(&folder.join("./../x/..").join(OsStr::from_bytes(name))), &micro());
        // Messages show the path in one line.
        std::fs::write(folder.join("model.safetensors"), "").unwrap();
        assert!(!refusal(&folder).contains('\n'));
        refused(&folder, &["model.safetensors", "0 bytes"]);
    }
}

#[test]
fn links_are_followed_and_a_relative_path_outlives_a_change_of_folder() {
    let (dir, _) = good();
    let cache = TempDir::new();
    symlink(dir.path(), cache.join("folder")).unwrap();
    let checkpoint = open(&cache.join("folder"));
    assert_eq!(checkpoint.directory(), cache.join("folder"));

    let here = std::env::current_dir().unwrap();
    let up = "../".repeat(here.components().count());
    let relative = Path::new(&up).join(dir.path().strip_prefix("/").unwrap());
    let checkpoint = open(&relative);
    assert!(checkpoint.directory().is_absolute());
    assert!(checkpoint.directory().join("config.json").exists());
    assert_same_model(&checkpoint, &micro());
}

#[test]
fn a_tensor_may_outlive_its_checkpoint_and_move_between_threads() {
    fn assert_send_sync<T: Send + Sync>() {}
    assert_send_sync::<Checkpoint>();
    assert_send_sync::<qwen35::checkpoint::Tensor>();
    let (dir, file) = good();
    let tensor = open(dir.path()).tensor("norm.weight", &[8]).unwrap();
    // Replacing the file by renaming over it leaves the old contents mapped.
    write_file(&dir.join("new"), &micro().tensors(), 9).unwrap();
    std::fs::rename(dir.join("new"), &file).unwrap();
    let expected = micro().tensors().into_iter().find(|t| t.name.ends_with("model.norm.weight"));
    let values = std::thread::spawn(move || tensor.to_f32()).join().unwrap();
    assert_eq!(values, expected.unwrap().values(0));
}
