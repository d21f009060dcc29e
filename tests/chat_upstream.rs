//! The published template of Qwen3.5 against what Transformers renders with it.
//!
//! The template's text is not part of this repository. It is read from the file named by
//! QWEN35_CHAT_TEMPLATE, else from ../shared/facts; where neither is there these tests say
//! that they were not run. `cargo test -- --ignored` (make test-model) fails instead.

#[path = "support/chat.rs"]
mod support;

use std::io::Write;

use qwen35::chat::{ChatRequest, ChatTemplate, Segment};
use support::{ADDED_TOKENS, controls, joined, sha256};

/// The template, or `None` after saying that `test` was not run.
fn template(test: &str) -> Option<ChatTemplate> {
    let path = std::env::var("QWEN35_CHAT_TEMPLATE").unwrap_or_else(|_| {
        concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/facts/chat_template-0.8b.jinja").into()
    });
    match std::fs::read_to_string(&path) {
        Ok(text) => Some(ChatTemplate::from_source(&text, &[], &ADDED_TOKENS).unwrap()),
        Err(error) => {
            // Written past the test harness, which hides the output of tests that pass.
            let line = format!("not run: {test}: no upstream chat template ({path}: {error})\n");
            let _ = std::io::stderr().write_all(line.as_bytes());
            None
        }
    }
}

#[test]
#[ignore = "needs the upstream template; the other tests here report if they lack it"]
fn the_upstream_template_is_there() {
    assert!(template("all of chat_upstream").is_some(), "set QWEN35_CHAT_TEMPLATE");
}

/// The shared vectors: 68 conversations with the SHA-256 of what Transformers renders.
#[test]
fn shared_vectors() {
    let Some(template) = template("shared_vectors") else { return };
    let vectors: serde_json::Value =
        serde_json::from_str(include_str!("data/chat_vectors.json")).unwrap();
    let tool = &vectors["tool"];
    let list = vectors["vectors"].as_array().unwrap();
    assert_eq!(list.len(), 68);
    for (i, v) in list.iter().enumerate() {
        let mut request = serde_json::json!({
            "messages": v["messages"],
            "add_generation_prompt": v["add_generation_prompt"],
            "enable_thinking": v["enable_thinking"],
        });
        if v["tools"] == true {
            request["tools"] = serde_json::json!([tool]);
        }
        let request = ChatRequest::from_json(&request.to_string()).unwrap();
        let text = template.render(&request).unwrap();
        let name = format!("{} ({i})", v["case"]);
        if let Some(want) = v["text"].as_str() {
            assert_eq!(text, want, "{name}");
        }
        assert_eq!(sha256(text.as_bytes()), v["sha256"], "{name}");
        let segments = template.render_segments(&request).unwrap();
        assert_eq!(joined(&segments), text, "{name}");
        // Only where a message itself holds a spelling may one come out as text.
        let plain = segments.iter().filter(|s| matches!(s, Segment::Text(_)));
        let spelled: usize =
            plain.map(|s| ADDED_TOKENS.iter().filter(|t| s.as_str().contains(*t)).count()).sum();
        let expected = if v["case"] == "tool_response_as_user" { 2 } else { 0 };
        assert_eq!(spelled, expected, "{name}");
        let _ = controls(&segments);
    }
}

/// The generated conversations of tests/chat_transformers.rs with the published template.
#[test]
fn generated_conversations() {
    let Some(template) = template("generated_conversations") else { return };
    let file: serde_json::Value =
        serde_json::from_str(include_str!("data/chat/conversations.json")).unwrap();
    let cases = file["cases"].as_array().unwrap();
    assert!(cases.len() >= 300);
    for (i, case) in cases.iter().enumerate() {
        let text = case["request"].as_str().unwrap();
        let request = ChatRequest::from_json(text).unwrap();
        let rendered = template.render(&request);
        match (case["upstream_sha256"].as_str(), rendered) {
            (Some(want), Ok(got)) => {
                assert_eq!(sha256(got.as_bytes()), want, "case {i}: {text}");
                let segments = template.render_segments(&request);
                let segments = segments.unwrap_or_else(|e| panic!("case {i}: {text}\n{e}"));
                assert_eq!(joined(&segments), got, "case {i}: {text}");
            }
            (None, Err(_)) => {}
            (want, got) => panic!("case {i}: {text}\nwant {want:?}\ngot {got:?}"),
        }
    }
}

/// The template's own words reach the caller.
#[test]
fn refusals() {
    let Some(template) = template("refusals") else { return };
    for (messages, words) in [
        (r#"[{"role":"system","content":"s"}]"#, "No user query found in messages."),
        (
            r#"[{"role":"user","content":"hi"},{"role":"system","content":"be brief"}]"#,
            "System message must be at the beginning.",
        ),
        (
            r#"[{"role":"developer","content":"x"},{"role":"user","content":"y"}]"#,
            "Unexpected message role.",
        ),
        (r#"[{"role":"user","content":5}]"#, "Unexpected content type."),
    ] {
        let error = template.render(&ChatRequest::from_json(messages).unwrap()).unwrap_err();
        assert_eq!(error.kind(), qwen35::ErrorKind::Template);
        assert!(error.message().contains(words), "{error}");
        assert!(error.message().contains("line "), "{error}");
    }
}
