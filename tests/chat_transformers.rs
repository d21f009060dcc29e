//! Against Transformers: generated conversations with a template of this project, and the
//! corners of the template language (tests/reference/make_chat.py made both files).

#[path = "support/chat.rs"]
mod support;

use qwen35::ErrorKind;
use qwen35::chat::{ChatRequest, ChatTemplate};
use serde_json::Value;
use support::{ADDED_TOKENS, joined};

fn cases(file: &str) -> Vec<Value> {
    let file: Value = serde_json::from_str(file).unwrap();
    file["cases"].as_array().unwrap().clone()
}

#[test]
fn generated_conversations() {
    let source = include_str!("data/chat/own.jinja");
    let template = ChatTemplate::from_source(source, &[], &ADDED_TOKENS).unwrap();
    let cases = cases(include_str!("data/chat/conversations.json"));
    assert!(cases.len() >= 300);
    for (i, case) in cases.iter().enumerate() {
        let request = case["request"].as_str().unwrap();
        let parsed = ChatRequest::from_json(request).unwrap();
        let rendered = template.render(&parsed);
        let segments = template.render_segments(&parsed);
        match (case["own"].as_str(), rendered) {
            (Some(want), Ok(got)) => {
                assert_eq!(got, want, "case {i}: {request}");
                let segments = segments.unwrap_or_else(|e| panic!("case {i}: {request}\n{e}"));
                assert_eq!(joined(&segments), want, "case {i}: {request}");
            }
            (None, Err(error)) => {
                let kind = error.kind();
                assert!(
                    matches!(kind, ErrorKind::Template | ErrorKind::InvalidArgument),
                    "{error}"
                );
                assert_eq!(segments.unwrap_err(), error);
            }
            (want, got) => panic!("case {i}: {request}\nwant {want:?}\ngot {got:?}"),
        }
    }
}

/// Where this engine is known to differ from Jinja: what it gives instead.
const DIFFERENT: [(&str, Option<&str>); 6] = [
    ("{{ 1 < 'a' }}", Some("True")),
    ("{% for x in none %}x{% endfor %}", Some("")),
    ("{{ '%s' % 'y' }}", None),
    ("{{ range(2) is sequence }}|{{ (xs | map('string')) is sequence }}", Some("True|True")),
    ("{{ s | wordcount }}", None),
    ("{{ f ~ '' }}|{{ g ~ '' }}", Some("10000000000000000.0|0.00001")),
];

#[test]
fn corners_of_the_language() {
    let file = include_str!("data/chat/expressions.json");
    let variables: Value = serde_json::from_str(file).unwrap();
    let variables = variables["variables"].as_str().unwrap().to_string();
    let request = format!(
        r#"{{"messages": [{{"role": "user"}}], "add_generation_prompt": false,
            "chat_template_kwargs": {variables}}}"#
    );
    let request = ChatRequest::from_json(&request).unwrap();
    let mut failures = String::new();
    for case in cases(file) {
        let source = case["template"].as_str().unwrap();
        let got = ChatTemplate::from_source(source, &[], &ADDED_TOKENS)
            .and_then(|template| template.render(&request));
        let known = DIFFERENT.iter().find(|(template, _)| *template == source);
        let want = known.map_or(case["output"].as_str(), |(_, output)| *output);
        if got.as_ref().ok().map(String::as_str) != want {
            failures += &format!("{source}\n  want {want:?}\n  got  {got:?}\n\n");
        }
    }
    assert!(failures.is_empty(), "{failures}");
}
