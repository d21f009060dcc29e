//! Where a checkpoint's chat template is found (C09) and what a broken one does (C08).

#[path = "support/temp.rs"]
mod temp;

use std::fs;
use std::path::Path;

use qwen35::ErrorKind;
use qwen35::chat::{ChatRequest, ChatTemplate};
use temp::TempDir;

const TOKENS: [&str; 2] = ["<|im_start|>", "<|im_end|>"];

fn folder(files: &[(&str, &str)]) -> TempDir {
    let dir = TempDir::new();
    for (name, text) in files {
        let path = dir.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    dir
}

fn open(dir: &Path) -> qwen35::Result<Option<ChatTemplate>> {
    ChatTemplate::from_dir(dir, &TOKENS)
}

/// What a folder renders for a user's "hi", without and with tools.
fn render(files: &[(&str, &str)]) -> (String, String) {
    let dir = folder(files);
    let template = open(dir.path()).unwrap().unwrap();
    let plain = ChatRequest::from_turns([("user", "hi")]);
    let tools = r#"{"messages":[{"role":"user","content":"hi"}],"tools":[{"name":"f"}]}"#;
    let tools = ChatRequest::from_json(tools).unwrap();
    (template.render(&plain).unwrap(), template.render(&tools).unwrap())
}

fn error(files: &[(&str, &str)]) -> qwen35::Error {
    open(folder(files).path()).unwrap_err()
}

const NAMED: &str = r#"{"chat_template":[{"name":"default","template":"D {{ messages[0].content }}"},
    {"name":"tool_use","template":"T {{ tools | length }}"},{"name":"rag","template":"R"}]}"#;

#[test]
fn the_file_comes_first_then_the_configuration() {
    let file = ("chat_template.jinja", "F {{ messages[0].content }}");
    let config = ("tokenizer_config.json", r#"{"chat_template":"C {{ messages[0].content }}"}"#);
    assert_eq!(render(&[file, config]).0, "F hi");
    assert_eq!(render(&[file]).0, "F hi");
    assert_eq!(render(&[config]).0, "C hi");
    assert_eq!(render(&[("tokenizer_config.json", NAMED)]), ("D hi".into(), "T 1".into()));
    assert_eq!(render(&[file, ("tokenizer_config.json", NAMED)]), ("F hi".into(), "F hi".into()));
    let extra = ("additional_chat_templates/tool_use.jinja", "A");
    assert_eq!(render(&[file, config, extra]), ("F hi".into(), "A".into()));
}

#[test]
fn no_template_is_no_error_until_someone_chats() {
    for files in [
        &[][..],
        &[("tokenizer_config.json", "{}")],
        &[("tokenizer_config.json", r#"{"chat_template":null}"#)],
        &[("tokenizer_config.json", r#"{"chat_template":[]}"#)],
    ] {
        assert!(open(folder(files).path()).unwrap().is_none());
    }
    assert!(open(Path::new("/no/such/folder")).unwrap().is_none());
}

#[test]
fn named_templates_without_a_default_serve_what_they_can() {
    let config = r#"{"chat_template":[{"name":"tool_use","template":"T"}]}"#;
    let dir = folder(&[("tokenizer_config.json", config)]);
    let template = open(dir.path()).unwrap().unwrap();
    let plain = ChatRequest::from_turns([("user", "hi")]);
    let error = template.render(&plain).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Template);
    assert!(error.message().contains("tool_use"), "{error}");
}

#[test]
fn broken_files_are_errors_that_name_them() {
    for (files, kind, words) in [
        (
            &[("chat_template.jinja", "line\n{% for m in")][..],
            ErrorKind::Template,
            &["line 2", "chat template"][..],
        ),
        (&[("chat_template.jinja", "")], ErrorKind::Template, &["empty"]),
        (
            &[("tokenizer_config.json", "{\"a\":")],
            ErrorKind::Format,
            &["tokenizer_config.json", "line 1, column 6"],
        ),
        (&[("tokenizer_config.json", "[]")], ErrorKind::Format, &["expected an object"]),
        (
            &[("tokenizer_config.json", r#"{"chat_template":5}"#)],
            ErrorKind::Format,
            &["chat_template", "a number"],
        ),
        (
            &[("tokenizer_config.json", r#"{"chat_template":[{"name":"x"}]}"#)],
            ErrorKind::Format,
            &["chat_template[0]"],
        ),
    ] {
        let error = error(files);
        assert_eq!(error.kind(), kind, "{error}");
        for word in words {
            assert!(error.message().contains(word), "{error}");
        }
    }
    let dir = TempDir::new();
    fs::write(dir.join("chat_template.jinja"), b"ok \xff").unwrap();
    let error = open(dir.path()).unwrap_err();
    assert!(error.message().contains("not valid UTF-8 at byte 3"), "{error}");
    // A template is as long as it may be, or too long.
    assert_eq!(render(&[("chat_template.jinja", &"x".repeat(1 << 18))]).0.len(), 1 << 18);
    let long = folder(&[("chat_template.jinja", &"x".repeat((1 << 18) + 1))]);
    let long = open(long.path()).unwrap_err();
    assert_eq!(long.kind(), ErrorKind::Template);
    assert!(long.message().contains("longer than 262144 bytes"), "{long}");
    // A huge file is not read to its end.
    let dir = TempDir::new();
    let file = fs::File::create(dir.join("chat_template.jinja")).unwrap();
    file.set_len(1 << 40).unwrap();
    assert_eq!(open(dir.path()).unwrap_err().kind(), ErrorKind::Format);
    // A folder in the file's place.
    let dir = folder(&[("chat_template.jinja/x", "")]);
    assert_eq!(open(dir.path()).unwrap_err().kind(), ErrorKind::Io);
}

#[test]
fn special_tokens_of_the_configuration_are_variables() {
    let config = r#"{"eos_token":"<|im_end|>","bos_token":null,"pad_token":{"content":"<pad>","lstrip":false},
        "unk_token":5,"extra_special_tokens":{"image_token":"<image>"},
        "chat_template":"{{ eos_token }}{{ bos_token }}{{ pad_token }}{{ unk_token }}{{ image_token }}"}"#;
    assert_eq!(render(&[("tokenizer_config.json", config)]).0, "<|im_end|><pad><image>");
}

/// Only two of the named templates are ever used; the others need not even compile, and take no
/// engine. There are bounds on what a file may have.
#[test]
fn named_templates_and_special_tokens_are_bounded() {
    let list = |count: usize, text: &str| {
        let named = |n: usize| format!(r#"{{"template":"{text}","name":"t{n}"}}"#);
        let all: Vec<String> = (1..count).map(named).collect();
        let own = r#"{"name":"default","template":"D {{ messages[0].content }}"}"#;
        format!(r#"{{"chat_template":[{own},{}]}}"#, all.join(","))
    };
    let config = list(64, "{% no template");
    assert_eq!(render(&[("tokenizer_config.json", &config)]).0, "D hi");
    let refused = error(&[("tokenizer_config.json", &list(65, "x"))]);
    assert_eq!(refused.kind(), ErrorKind::Format);
    assert!(refused.message().contains("more than 64 templates"), "{refused}");
    // What is not asked for is no error.
    let file = ("chat_template.jinja", "F");
    assert_eq!(render(&[file, ("tokenizer_config.json", &list(65, "x"))]).0, "F");

    let tokens = |count: usize| {
        let all: Vec<String> = (0..count).map(|n| format!(r#""k{n}":"v{n}""#)).collect();
        let last = r#""k1":{"content":"last"},"unk":5"#;
        format!(r#"{{"extra_special_tokens":{{{},{last}}}}}"#, all.join(","))
    };
    let template = ("chat_template.jinja", "{{ k0 }} {{ k1 }} {{ k4094 }} {{ unk }}");
    assert_eq!(render(&[template, ("tokenizer_config.json", &tokens(4095))]).0, "v0 last v4094 ");
    let refused = error(&[template, ("tokenizer_config.json", &tokens(4096))]);
    assert_eq!(refused.kind(), ErrorKind::Format);
    assert!(refused.message().contains("more than 4096 special tokens"), "{refused}");

    // A packed file has the same bounds.
    let pairs = |count: usize| vec![r#"["x","x"]"#; count].join(",");
    let document = |templates, tokens| {
        let (templates, tokens) = (pairs(templates), pairs(tokens));
        let text = format!(r#"{{"templates":[{templates}],"special_tokens":[{tokens}]}}"#);
        ChatTemplate::from_document(text.as_bytes(), &TOKENS).map(drop)
    };
    document(64, 8000).unwrap();
    for (templates, tokens, word) in [(65, 0, "64 templates"), (1, 9000, "special tokens")] {
        let error = document(templates, tokens).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Format);
        assert!(error.message().contains(word), "{error}");
    }
}

/// Much that nobody asks for takes no memory, and little time.
#[test]
fn what_is_not_needed_is_not_kept() {
    let many = format!("[{}]", vec![r#"{"":0}"#; 300_000].join(","));
    let config = format!(
        r#"{{"x":{many},"extra_special_tokens":{many},"eos_token":{many},"chat_template":"T"}}"#
    );
    assert_eq!(render(&[("tokenizer_config.json", &config)]).0, "T");
}
