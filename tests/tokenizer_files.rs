//! Tokenizer files that are damaged, or of another kind than this tokenizer: each is refused with
//! an error that says what and where.

#[path = "support/counting.rs"]
mod counting;
#[path = "support/temp.rs"]
mod temp;

use std::path::Path;

use counting::peak;
use qwen35::chat::ChatTemplate;
use qwen35::tokenizer::{AddedTokens, Tokenizer};
use qwen35::{Error, ErrorKind};
use serde_json::{Value, json};
use temp::TempDir;

const SMALL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/tokenizer/small");

fn small_json() -> Value {
    let text = std::fs::read(Path::new(SMALL).join("tokenizer.json")).unwrap();
    serde_json::from_slice(&text).unwrap()
}

fn load(file: &Value) -> Result<Tokenizer, Error> {
    Tokenizer::from_json(file.to_string().as_bytes(), None)
}

/// Asserts that the small tokenizer is refused after `change`, with a message that holds `parts`.
#[track_caller]
fn refused(kind: ErrorKind, parts: &[&str], change: impl FnOnce(&mut Value)) {
    let mut file = small_json();
    change(&mut file);
    check_error(load(&file), kind, parts);
}

#[track_caller]
fn check_error(result: Result<Tokenizer, Error>, kind: ErrorKind, parts: &[&str]) {
    let error = result.expect_err("this must be refused");
    assert_eq!(error.kind(), kind, "{error}");
    for part in parts {
        assert!(error.message().contains(part), "{part:?} is not in: {error}");
    }
}

#[test]
fn merges_are_never_dropped_silently() {
    refused(ErrorKind::Format, &["model.merges is empty"], |f| f["model"]["merges"] = json!([]));
    refused(ErrorKind::Format, &["merges"], |f| {
        f["model"].as_object_mut().unwrap().remove("merges");
    });
    for (bad, why) in [
        (json!("ab"), "not two tokens"),
        (json!("a b c"), "not in the byte-level alphabet"),
        (json!(" b"), "empty"),
        (json!("a "), "empty"),
        (json!(["a"]), "fewer than two"),
        (json!(["a", "b", "c"]), "more than two"),
        (json!(["a", ""]), "empty"),
        (json!(["a", 7]), "integer"),
        (json!(17), "integer"),
        (json!(null), "null"),
        (json!("a zzzzqqqq"), "\"zzzzqqqq\" is not in model.vocab"),
        (json!("zq zq"), "is not in model.vocab"),
        (json!("\u{4e2d} b"), "alphabet"),
    ] {
        refused(ErrorKind::Format, &["model.merges[1000]", why], |f| {
            f["model"]["merges"][1000] = bad.clone();
        });
    }
}

#[test]
fn the_vocabulary_is_checked() {
    let entry = |name: &str, id: Value| {
        let name = name.to_owned();
        move |f: &mut Value| {
            f["model"]["vocab"].as_object_mut().unwrap().insert(name, id);
        }
    };
    refused(ErrorKind::Format, &["model.vocab, entry 2600", "alphabet"], entry("a b", 9999.into()));
    refused(ErrorKind::Format, &["entry 2600", "empty"], entry("", 9999.into()));
    refused(ErrorKind::Format, &["entry 2600"], entry("zqzq", (-1).into()));
    refused(ErrorKind::Format, &["entry 2600"], entry("zqzq", "7".into()));
    refused(
        ErrorKind::Format,
        &["entry 2600", "id 4294967296"],
        entry("zqzq", (1u64 << 32).into()),
    );
    refused(ErrorKind::Format, &["\"zqzq\"", "same id 7"], entry("zqzq", 7.into()));
    refused(ErrorKind::Format, &["byte 0x61"], |f| {
        f["model"]["vocab"].as_object_mut().unwrap().remove("a");
    });
    refused(ErrorKind::Format, &["vocab"], |f| f["model"]["vocab"] = json!([["a", 0.0]]));
    // The same token twice, which only the text of a file can say.
    let text =
        small_json().to_string().replacen("\"vocab\":{", "\"vocab\":{\"zq\":9998,\"zq\":9999,", 1);
    let result = Tokenizer::from_json(text.as_bytes(), None);
    check_error(result, ErrorKind::Format, &["ids 9998 and 9999", "zq"]);
}

#[test]
fn other_kinds_of_tokenizer_are_named() {
    let kind = ErrorKind::Unsupported;
    let byte_level = json!({"type": "ByteLevel", "add_prefix_space": false, "use_regex": false});
    refused(kind, &["Unigram"], |f| f["model"]["type"] = "Unigram".into());
    refused(kind, &["dropout", "0.1"], |f| f["model"]["dropout"] = 0.1.into());
    refused(kind, &["unk_token", "<unk>"], |f| f["model"]["unk_token"] = "<unk>".into());
    refused(kind, &["byte_fallback"], |f| f["model"]["byte_fallback"] = true.into());
    refused(kind, &["continuing_subword_prefix"], |f| {
        f["model"]["continuing_subword_prefix"] = "##".into();
    });
    refused(kind, &["normalizer NFKC"], |f| f["normalizer"] = json!({"type": "NFKC"}));
    refused(kind, &["normalizer Lowercase"], |f| {
        f["normalizer"] =
            json!({"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Lowercase"}]});
    });
    refused(kind, &["pre_tokenizer"], |f| f["pre_tokenizer"] = Value::Null);
    refused(kind, &["pre_tokenizer ByteLevel"], |f| f["pre_tokenizer"] = byte_level.clone());
    refused(kind, &["pattern", r"\\p{N}{1,3}"], |f| {
        let regex = &mut f["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"];
        *regex = regex.as_str().unwrap().replace(r"|\p{N}|", r"|\p{N}{1,3}|").into();
    });
    refused(kind, &["Removed"], |f| {
        f["pre_tokenizer"]["pretokenizers"][0]["behavior"] = "Removed".into();
    });
    refused(kind, &["use_regex"], |f| {
        f["pre_tokenizer"]["pretokenizers"][1]["use_regex"] = true.into();
    });
    refused(kind, &["TemplateProcessing"], |f| {
        f["post_processor"] = json!({"type": "TemplateProcessing", "single": []});
    });
    refused(kind, &["decoder WordPiece"], |f| f["decoder"] = json!({"type": "WordPiece"}));
}

#[test]
fn added_tokens_are_checked() {
    let token = |id: u32, content: &str| json!({"id": id, "content": content, "special": true});
    let with = |tokens: &[Value]| {
        let tokens = tokens.to_vec();
        move |f: &mut Value| f["added_tokens"].as_array_mut().unwrap().extend(tokens)
    };
    refused(ErrorKind::Format, &["\"<x>\"", "(id 5)", "another token"], with(&[token(5, "<x>")]));
    refused(
        ErrorKind::Format,
        &["<y>", "(id 9000)", "has the same id"],
        with(&[token(9000, "<x>"), token(9000, "<y>")]),
    );
    refused(ErrorKind::Format, &["id 9000 too"], with(&[token(9000, "<x>"), token(9001, "<x>")]));
    refused(ErrorKind::Format, &["empty"], with(&[token(9000, "")]));
    let long = "a".repeat(1025);
    refused(
        ErrorKind::Format,
        &["\"aaaa", "(id 9000)", "1025 bytes, expected at most 1024"],
        with(&[token(9000, &long)]),
    );
    refused(ErrorKind::Format, &["id 3000000000"], with(&[token(3_000_000_000, "<x>")]));
    refused(ErrorKind::Unsupported, &["single_word"], |f| {
        f["added_tokens"][0]["single_word"] = true.into();
    });
    let config = |config: Value| {
        Tokenizer::from_json(
            small_json().to_string().as_bytes(),
            Some(config.to_string().as_bytes()),
        )
    };
    let listed = |key: &str, token: Value| config(json!({"added_tokens_decoder": {key: token}}));
    let name = "tokenizer_config.json";
    check_error(listed("x", json!({"content": "<x>"})), ErrorKind::Format, &[name, "[\"x\"]"]);
    check_error(listed("7000", json!({})), ErrorKind::Format, &[name, "[\"7000\"]", "content"]);
    check_error(listed("7000", json!(1)), ErrorKind::Format, &[name, "[\"7000\"]", "object"]);
    check_error(listed("7000", json!({"content": "<think>"})), ErrorKind::Format, &["id 2603 too"]);
    check_error(config(json!({"eos_token": "<none>"})), ErrorKind::Format, &["\"<none>\""]);
}

#[test]
fn added_tokens_with_white_space_and_in_normalized_text() {
    let mut file = small_json();
    let tokens = file["added_tokens"].as_array_mut().unwrap();
    tokens.push(json!({"id": 9000, "content": "<both>", "lstrip": true, "rstrip": true}));
    tokens.push(json!({"id": 9001, "content": "caf\u{e9}", "normalized": true}));
    let tokenizer = load(&file).unwrap();
    let encode = |text: &str, added| {
        let mut ids = Vec::new();
        tokenizer.encode(text, added, &mut ids);
        ids
    };
    let a = encode("a", AddedTokens::AsText)[0];
    for (text, expected) in [
        ("a \n<both>\u{a0} a", vec![a, 9000, a]),
        ("<both><both>", vec![9000, 9000]),
        ("  <both>  <both>  ", vec![9000, 9000]),
        ("acafe\u{301}a", vec![a, 9001, a]),
        ("caf\u{e9}<both>cafe\u{301}", vec![9001, 9000, 9001]),
    ] {
        assert_eq!(encode(text, AddedTokens::Honour), expected, "{text:?}");
        let plain = encode(text, AddedTokens::AsText);
        assert!(!plain.iter().any(|&id| tokenizer.is_added(id)));
    }
}

/// Nothing is gone through again and again: here that would take minutes.
#[test]
fn hostile_added_tokens_take_no_time() {
    let mut file = small_json();
    let tokens = file["added_tokens"].as_array_mut().unwrap();
    tokens.push(json!({"id": 9000, "content": "\t\t", "lstrip": true}));
    tokens.push(json!({"id": 9001, "content": "\n\n", "rstrip": true}));
    // Each begins with the one before, and another letter ends all of them.
    for n in 0..1000 {
        tokens.push(json!({"id": 9100 + n, "content": format!("{}b", "a".repeat(n + 20))}));
    }
    let tokenizer = load(&file).unwrap();
    let encode = |text: &str| {
        let mut ids = Vec::new();
        tokenizer.encode(text, AddedTokens::Honour, &mut ids);
        ids
    };
    assert!(encode(&"\t".repeat(400_000)) == vec![9000; 200_000]);
    assert!(encode(&"\n".repeat(400_000)) == vec![9001; 200_000]);
    let text = "a".repeat(100_000);
    assert!(encode(&text).iter().all(|&id| !tokenizer.is_added(id)));
    assert_eq!(encode(&(text + "b")).last(), Some(&10099));
}

/// What nobody asks for is not kept, and what is asked for has bounds.
#[test]
fn hostile_files_take_little_memory() {
    let plain = small_json().to_string();
    let read = |json: &str, config: Option<&str>| {
        let (result, held) =
            peak(|| Tokenizer::from_json(json.as_bytes(), config.map(str::as_bytes)));
        (result.map(drop), held)
    };
    let usual = read(&plain, None).1;
    let many = format!("[{}]", vec![r#"{"":0}"#; 300_000].join(","));
    for key in ["normalizer", "pre_tokenizer", "post_processor", "decoder"] {
        let json = plain.replacen('{', &format!(r#"{{"{key}":{many},"#), 1);
        let json = json.replacen(&format!(r#","{key}":"#), r#","unused":"#, 1);
        let (result, held) = read(&json, None);
        check_error(
            result.map(|()| unreachable!()),
            ErrorKind::Format,
            &["more than 65536 values"],
        );
        assert!(held < 2 * usual + (40 << 20), "{key}: {held} bytes, usually {usual}");
    }
    for key in ["unused", "truncation"] {
        let json = plain.replacen('{', &format!(r#"{{"{key}":{many},"#), 1);
        let (result, held) = read(&json, None);
        result.unwrap();
        assert!(held < 2 * usual + (1 << 20), "{key}: {held} bytes, usually {usual}");
    }
    for key in ["unused", "eos_token", "added_tokens_decoder"] {
        let config = format!(r#"{{"{key}":{many}}}"#);
        let (result, held) = read(&plain, Some(&config));
        assert_eq!(result.is_ok(), key == "unused");
        assert!(held < 2 * usual + (1 << 20), "{key}: {held} bytes, usually {usual}");
    }
    // Spellings take little beside their own bytes.
    let mut file = small_json();
    let tokens = file["added_tokens"].as_array_mut().unwrap();
    for n in 0..5000 {
        tokens.push(json!({"id": 9000 + n, "content": format!("{n:0>1000}")}));
    }
    let json = file.to_string();
    let (result, held) = read(&json, None);
    result.unwrap();
    assert!(held < 2 * usual + 6 * json.len(), "{held} bytes, usually {usual}");
}

#[test]
fn damaged_text_is_an_error_with_a_place() {
    let text = small_json().to_string();
    for cut in [0, 1, text.len() / 3, text.len() / 2, text.len() - 1] {
        let result = Tokenizer::from_json(&text.as_bytes()[..cut], None);
        check_error(result, ErrorKind::Format, &["tokenizer.json", "line"]);
    }
    check_error(Tokenizer::from_json(b"[]", None), ErrorKind::Format, &["tokenizer.json"]);
    check_error(Tokenizer::from_json(b"{}", None), ErrorKind::Format, &["model"]);
    check_error(Tokenizer::from_json(b"\xFF\xFE", None), ErrorKind::Format, &["tokenizer.json"]);
    let deep = format!("{{\"normalizer\":{}", "[".repeat(100_000));
    check_error(
        Tokenizer::from_json(deep.as_bytes(), None),
        ErrorKind::Format,
        &["deeper than 32 levels"],
    );
    let marked = [b"\xEF\xBB\xBF", text.as_bytes()].concat();
    assert!(Tokenizer::from_json(&marked, None).is_ok(), "a byte order mark does no harm");
    let result = Tokenizer::from_json(text.as_bytes(), Some(b"{"));
    check_error(result, ErrorKind::Format, &["tokenizer_config.json", "line"]);
}

#[test]
fn a_folder_without_the_file_is_an_io_error_with_its_path() {
    let result = Tokenizer::from_dir(Path::new("/nonexistent-folder"));
    check_error(result, ErrorKind::Io, &["/nonexistent-folder/tokenizer.json"]);
}

#[test]
fn what_is_no_file_is_not_waited_for_and_a_broken_link_is_not_absence() {
    let names = ["tokenizer.json", "tokenizer_config.json", "chat_template.jinja"];
    let read = |dir: &TempDir| {
        let tokenizer = Tokenizer::from_dir(dir.path())?;
        ChatTemplate::from_dir(dir.path(), &["<|im_end|>"])?;
        Ok::<_, qwen35::Error>(tokenizer)
    };
    for name in names {
        let dir = TempDir::new();
        std::fs::write(dir.join("tokenizer.json"), small_json().to_string()).unwrap();
        assert!(read(&dir).is_ok());
        let path = dir.join(name);
        let _ = std::fs::remove_file(&path);
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        check_error(read(&dir), ErrorKind::Io, &[name, "not a regular file"]);
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
        check_error(read(&dir), ErrorKind::Io, &[name, "not a regular file"]);
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("../blobs/1234", &path).unwrap();
        check_error(read(&dir), ErrorKind::Io, &[name, "a link to ../blobs/1234"]);
        std::fs::remove_file(&path).unwrap();
        let huge = std::fs::File::create(&path).unwrap();
        huge.set_len(1 << 40).unwrap();
        check_error(read(&dir), ErrorKind::Format, &[name, "expected at most"]);
    }
}
