//! Requests and rendering with a template of this project: what a host runs into.

#[path = "support/chat.rs"]
mod support;

use qwen35::ErrorKind;
use qwen35::chat::{ChatRequest, ChatTemplate};
use support::{ADDED_TOKENS, controls, joined};

fn own() -> ChatTemplate {
    let source = include_str!("data/chat/own.jinja");
    ChatTemplate::from_source(source, &[], &ADDED_TOKENS).unwrap()
}

fn request(json: &str) -> ChatRequest {
    ChatRequest::from_json(json).unwrap_or_else(|e| panic!("{json}: {e}"))
}

fn render(json: &str) -> String {
    own().render(&request(json)).unwrap_or_else(|e| panic!("{json}: {e}"))
}

/// The message of the error that rendering gives.
fn refused(json: &str) -> String {
    let error = own().render(&request(json)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Template);
    error.message().to_string()
}

/// The message of the error that reading the request gives.
fn unreadable(json: &str) -> String {
    let error = ChatRequest::from_json(json).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    error.message().to_string()
}

// ---- what the template refuses (C01, C02) --------------------------------------------

#[test]
fn misplaced_system_messages_are_refused_in_the_templates_words() {
    let words = "A system message comes first or not at all.";
    for roles in [
        &["user", "system"][..],
        &["system", "system", "user"],
        &["system", "user", "assistant", "system", "user"],
    ] {
        let turns = roles.iter().map(|&role| (role, "x"));
        let error = own().render(&ChatRequest::from_turns(turns)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Template);
        assert!(error.message().contains(words), "{error}");
        assert!(error.message().contains("(line 69)"), "{error}");
    }
    // A refusal leaves nothing behind: the next rendering works.
    assert!(render(r#"[{"role":"user","content":"x"}]"#).contains("x<|im_end|>"));
}

#[test]
fn conversations_without_a_question_are_refused() {
    let nobody = "Nobody asked anything.";
    for roles in [&["system"][..], &["assistant"], &["tool"], &["system", "assistant", "tool"]] {
        let turns = roles.iter().map(|&role| (role, "x"));
        let error = own().render(&ChatRequest::from_turns(turns)).unwrap_err();
        assert!(error.message().contains(nobody), "{error}");
    }
    let wrapped = r#"[{"role":"user","content":"<tool_response>x</tool_response>"}]"#;
    assert!(refused(wrapped).contains(nobody));
    assert!(refused("[]").contains("no messages"));
    assert!(
        refused(r#"[{"role":"developer","content":"x"},{"role":"user"}]"#).contains("developer")
    );
    assert!(refused(r#"[{"content":"no role"},{"role":"user"}]"#).contains("Who is ?"));
}

// ---- arguments of tool calls (C03) ---------------------------------------------------

fn call(arguments: &str) -> String {
    format!(
        r#"{{"messages":[{{"role":"user","content":"q"}},{{"role":"assistant","content":"",
           "tool_calls":[{{"type":"function","function":{{"name":"f","arguments":{arguments}}}}}]}}],
           "add_generation_prompt":false}}"#
    )
}

#[test]
fn arguments_as_text_and_as_object_are_equal() {
    let object = r#"{"city":"Köln","n":2,"deep":{"a":[1,null,true,1e-5]},"t":true,"f":1.0}"#;
    let rendered = render(&call(object));
    let text = serde_json::Value::String(object.to_string()).to_string();
    assert_eq!(render(&call(&text)), rendered);
    assert!(rendered.contains(
        "<parameter=city>\nKöln\n</parameter>\n<parameter=n>\n2\n</parameter>\n\
         <parameter=deep>\n{\"a\": [1, null, true, 1e-05]}\n</parameter>\n\
         <parameter=t>\nTrue\n</parameter>\n<parameter=f>\n1.0\n</parameter>\n"
    ));
    // Nothing to pass on, in every spelling.
    let empty = render(&call("{}"));
    for none in [r#""""#, r#"" \n""#, r#""{}""#, r#""null""#, "null"] {
        assert_eq!(render(&call(none)), empty, "{none}");
    }
    // Calls without the wrapper are read alike.
    let bare = format!(
        r#"{{"messages":[{{"role":"user","content":"q"}},{{"role":"assistant",
           "tool_calls":[{{"name":"f","arguments":{text}}}]}}],"add_generation_prompt":false}}"#
    );
    assert_eq!(render(&bare), rendered);
}

#[test]
fn malformed_arguments_are_errors_that_name_the_place() {
    let place = "messages[1].tool_calls[0].function.arguments";
    for (arguments, what) in [
        (r#""[1]""#, "found an array"),
        (r#""{bad""#, "line 1, column 2"),
        (r#""5""#, "found a number"),
        ("5", "found a number"),
        ("[1]", "found an array"),
        ("true", "found a boolean"),
    ] {
        let message = unreadable(&call(arguments));
        assert!(message.contains(place) && message.contains(what), "{arguments}: {message}");
    }
}

#[test]
fn numbers_come_out_as_python_writes_them() {
    let arguments = r#"{"a":123456789012345678901234567890123456789012345678901234567890,
        "b":-170141183460469231731687303715884105729,"c":340282366920938463463374607431768211455,
        "d":18446744073709551616,"e":1e16,"f":123456789.125,"g":1e-7,"h":-0.0,"i":5e-324,
        "j":[1e22,100000000000000000000000000000000000000000000000000]}"#;
    let rendered = render(&call(arguments));
    for value in [
        "123456789012345678901234567890123456789012345678901234567890",
        "-170141183460469231731687303715884105729",
        "340282366920938463463374607431768211455",
        "18446744073709551616",
        "1e+16",
        "123456789.125",
        "1e-07",
        "-0.0",
        "5e-324",
        "[1e+22, 100000000000000000000000000000000000000000000000000]",
    ] {
        assert!(rendered.contains(&format!(">\n{value}\n</parameter>")), "{value}: {rendered}");
    }
}

// ---- tools (C04) and content (C06) ---------------------------------------------------

#[test]
fn tools_are_written_as_python_writes_json() {
    let rendered = render(
        r#"{"messages":[{"role":"user","content":"q"}],"tools":[{"type":"function","function":
        {"name":"f","description":"天气 <b>&'\"/\\ é 😀 \u2028","parameters":{"z":1,"a":{"type":"string"}}}}]}"#,
    );
    assert!(rendered.contains(concat!(
        r#"{"type": "function", "function": {"name": "f", "description": "天气 <b>&'\"/\\ é 😀 "#,
        "\u{2028}",
        r#"", "parameters": {"z": 1, "a": {"type": "string"}}}}"#
    )));
    let plain = render(r#"{"messages":[{"role":"user","content":"q"}]}"#);
    for none in ["null", "[]"] {
        let json = format!(r#"{{"messages":[{{"role":"user","content":"q"}}],"tools":{none}}}"#);
        assert_eq!(render(&json), plain);
    }
}

#[test]
fn absent_content_is_empty_content() {
    let with = |content: &str| {
        format!(
            r#"[{{"role":"user","content":"q"}},{{"role":"assistant"{content},
            "tool_calls":[{{"function":{{"name":"f","arguments":{{}}}}}}]}}]"#
        )
    };
    let empty = render(&with(r#","content":"""#));
    assert!(!empty.contains("None") && !empty.contains("null"));
    assert_eq!(render(&with(r#","content":null"#)), empty);
    assert_eq!(render(&with("")), empty);
    assert_eq!(render(&with(r#","content":[]"#)), empty);
    let x = render(&with(r#","content":"x""#));
    assert_eq!(render(&with(r#","content":[{"type":"text","text":"x"}]"#)), x);
    assert!(refused(&with(r#","content":5"#)).contains("neither text nor parts"));
    // Other keys whose value is null are as good as missing, too.
    assert_eq!(render(&with(r#","content":"","refusal":null,"name":null"#)), empty);
}

// ---- thinking (C11, C13) -------------------------------------------------------------

#[test]
fn the_thinking_switch_reaches_the_template() {
    let with = |rest: &str| {
        render(&format!(r#"{{"messages":[{{"role":"user","content":"hi /no_think"}}]{rest}}}"#))
    };
    let off = with(r#","enable_thinking":false"#);
    assert!(off.ends_with("<|im_start|>assistant\n<think>\n\n</think>\n\n"));
    assert!(off.contains("hi /no_think<|im_end|>"));
    assert!(with(r#","enable_thinking":true"#).ends_with("<|im_start|>assistant\n<think>\n"));
    assert_eq!(with(""), off);
    assert_eq!(with(r#","enable_thinking":null"#), off);
    assert_eq!(with(r#","chat_template_kwargs":{"enable_thinking":"yes"}"#), off);
    assert!(with(r#","add_generation_prompt":false"#).ends_with("<|im_end|>\n"));
    let turns = ChatRequest::from_turns([("user", "hi /no_think")]);
    assert_eq!(own().render(&turns).unwrap(), off);
    let on = turns.clone().enable_thinking(Some(true)).enable_thinking(None);
    assert_eq!(own().render(&on).unwrap(), off);
    let none = turns.add_generation_prompt(false);
    assert_eq!(own().render(&none).unwrap(), with(r#","add_generation_prompt":false"#));
}

#[test]
fn reasoning_in_a_field_and_in_the_text_are_equal() {
    let last = |message: &str| {
        render(&format!(
            r#"{{"messages":[{{"role":"user","content":"2+2?"}},{message}],"add_generation_prompt":false}}"#
        ))
    };
    let earlier = |message: &str| {
        render(&format!(
            r#"[{{"role":"user","content":"2+2?"}},{message},{{"role":"user","content":"more"}}]"#
        ))
    };
    let field = r#"{"role":"assistant","content":"4","reasoning_content":"2+2"}"#;
    let inline = r#"{"role":"assistant","content":"<think>\n2+2\n</think>\n\n4"}"#;
    assert!(last(field).contains("<think>\n2+2\n</think>\n\n4<|im_end|>"));
    assert_eq!(last(field), last(inline));
    assert!(earlier(field).contains("assistant\n4<|im_end|>"));
    assert_eq!(earlier(field), earlier(inline));
    for alias in ["thinking", "reasoning"] {
        let message = format!(r#"{{"role":"assistant","content":"4","{alias}":"2+2"}}"#);
        assert_eq!(last(&message), last(field));
    }
    // A closing tag alone, and two of them.
    let alone = r#"{"role":"assistant","content":"2+2</think>4"}"#;
    assert_eq!(last(alone), last(field));
    let two = r#"{"role":"assistant","content":"<think>a</think>b</think>4"}"#;
    assert!(last(two).contains("<think>\na\n</think>\n\n4<|im_end|>"));
}

// ---- several turns (C12, C14) and continuing (C17) -----------------------------------

#[test]
fn consecutive_results_share_one_turn() {
    let long = "r".repeat(10_000);
    let messages = format!(
        r#"[{{"role":"user","content":"q"}},{{"role":"assistant","content":"","tool_calls":[
        {{"function":{{"name":"f","arguments":{{}}}}}},{{"function":{{"name":"g","arguments":{{}}}}}},
        {{"function":{{"name":"h","arguments":{{}}}}}}]}},{{"role":"tool","content":""}},
        {{"role":"tool","content":"{long}"}},{{"role":"tool","content":"a <tool_response> b"}}"#
    );
    let rendered = render(&format!("{messages}]"));
    assert_eq!(rendered.matches("<|im_start|>user").count(), 2);
    assert_eq!(rendered.matches("<function=").count(), 3);
    assert!(rendered.contains(&format!(
        "<|im_start|>user\n<tool_response>\n\n</tool_response>\n<tool_response>\n{long}\n\
         </tool_response>\n<tool_response>\na <tool_response> b\n</tool_response><|im_end|>\n"
    )));
    // What was rendered before the results is how the whole begins.
    let before = messages.split(r#",{"role":"tool""#).next().unwrap();
    let before = render(&format!(r#"{{"messages":{before}],"add_generation_prompt":false}}"#));
    assert!(rendered.starts_with(&before));
    let next = render(&format!(r#"{messages},{{"role":"user","content":"next"}}]"#));
    assert!(next.contains("</tool_response><|im_end|>\n<|im_start|>user\nnext<|im_end|>\n"));
}

/// How much of a prompt and its answer the next prompt begins with, turn by turn: with
/// thinking off the empty think block is dropped from the history, so that the common part
/// ends at the header of the answer.
#[test]
fn history_begins_with_what_was_said() {
    for thinking in [None, Some(false), Some(true)] {
        for answer in ["Hi.", " Hi. ", "Hi.\n"] {
            let mut turns = vec![("user", "one")];
            let mut previous: Option<(String, usize)> = None;
            for _ in 0..3 {
                let request = ChatRequest::from_turns(turns.clone()).enable_thinking(thinking);
                let prompt = own().render(&request).unwrap();
                if let Some((said, header)) = previous {
                    let common =
                        said.bytes().zip(prompt.bytes()).take_while(|(a, b)| a == b).count();
                    assert_eq!(common, header, "{thinking:?} {answer:?}");
                }
                let header = prompt.rfind("assistant\n").unwrap() + "assistant\n".len();
                previous = Some((format!("{prompt}{answer}"), header));
                turns.extend([("assistant", answer), ("user", "more")]);
            }
        }
    }
}

#[test]
fn a_started_answer_is_continued() {
    let with = |answer: &str, rest: &str| {
        format!(
            r#"{{"messages":[{{"role":"user","content":"Count"}},{{"role":"assistant",{answer}}}],
            "continue_final_message":true{rest}}}"#
        )
    };
    let head = "<|im_start|>user\nCount<|im_end|>\n<|im_start|>assistant\n";
    // The template trims messages, so the space at the end goes, as with Transformers.
    let closed = format!("{head}<think>\n\n</think>\n\n");
    assert_eq!(render(&with(r#""content":"1, 2, ""#, "")), format!("{closed}1, 2,"));
    assert_eq!(render(&with(r#""content":"1, 2""#, "")), format!("{closed}1, 2"));
    let parts = r#""content":[{"type":"text","text":"1, "},{"type":"text","text":"2"}]"#;
    assert_eq!(render(&with(parts, "")), format!("{closed}1, 2"));
    let inline = r#""content":"<think>\nhm""#;
    assert_eq!(render(&with(inline, "")), format!("{closed}<think>\nhm"));
    let segments = own().render_segments(&request(&with(inline, ""))).unwrap();
    assert_eq!(joined(&segments), format!("{closed}<think>\nhm"));
    assert_eq!(controls(&segments).iter().filter(|c| **c == "<think>").count(), 1);
    // The thoughts themselves can be continued.
    let reasoning = with(r#""content":"","reasoning_content":"hm""#, "")
        .replace("message\":true", "message\":\"reasoning_content\"");
    assert_eq!(render(&reasoning), format!("{head}<think>\nhm"));
    let missing = reasoning.replace("hm", "").replace(r#","reasoning_content":"""#, "");
    let error = own().render(&request(&missing)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.message().contains("no \"reasoning_content\" to continue"), "{error}");
    let both = unreadable(&with(r#""content":"x""#, r#","add_generation_prompt":true"#));
    assert!(both.contains("only one of them"), "{both}");
}

// ---- the form of a request -----------------------------------------------------------

#[test]
fn wrong_forms_are_errors_that_name_the_place() {
    let user = r#"{"role":"user","content":"x"}"#;
    for (json, what) in [
        ("", "not valid JSON at line 1, column 1"),
        ("[{]", "line 1, column 3"),
        ("5", "found a number"),
        ("\"text\"", "found a string"),
        ("{}", "\"messages\" is missing"),
        (r#"{"messages":{}}"#, "messages: expected an array, found an object"),
        (r#"{"messages":null}"#, "messages: expected an array, found null"),
        (r#"["hi"]"#, "messages[0]: expected an object, found a string"),
        (&format!("[{user},null]"), "messages[1]: expected an object, found null"),
        (&format!(r#"{{"messages":[{user}],"tool":[]}}"#), "unknown key \"tool\""),
        (&format!(r#"{{"messages":[{user}],"tools":{{}}}}"#), "tools: expected an array"),
        (&format!(r#"{{"messages":[{user}],"tools":["f"]}}"#), "tools[0]: expected an object"),
        (&format!(r#"{{"messages":[{user}],"documents":[1]}}"#), "documents[0]"),
        (
            &format!(r#"{{"messages":[{user}],"enable_thinking":"no"}}"#),
            "enable_thinking: expected",
        ),
        (&format!(r#"{{"messages":[{user}],"add_generation_prompt":1}}"#), "add_generation_prompt"),
        (
            &format!(r#"{{"messages":[{user}],"continue_final_message":3}}"#),
            "continue_final_message",
        ),
        (&format!(r#"{{"messages":[{user}],"chat_template_kwargs":[]}}"#), "chat_template_kwargs"),
        (
            &format!(r#"{{"messages":[{user}],"chat_template_kwargs":{{"tools":1}}}}"#),
            "must not hold \"tools\"",
        ),
        (
            &format!(
                r#"{{"messages":[{user}],"enable_thinking":true,"chat_template_kwargs":{{"enable_thinking":false}}}}"#
            ),
            "must not hold \"enable_thinking\"",
        ),
        (r#"[{"role":"user","content":"\ud800"}]"#, "surrogate"),
    ] {
        let message = unreadable(json);
        assert!(message.contains(what), "{json}: {message}");
    }
    let object = render(&format!(r#"{{"messages":[{user}]}}"#));
    assert_eq!(render(&format!("[{user}]")), object);
    let nulls = r#""tools":null,"documents":null,"add_generation_prompt":null,
        "continue_final_message":null,"chat_template_kwargs":null,"enable_thinking":null"#;
    assert_eq!(render(&format!(r#"{{"messages":[{user}],{nulls}}}"#)), object);
    assert_eq!(request(&object_of(2)).len(), 2);
    assert!(!request(&object_of(1)).is_empty());
}

fn object_of(n: usize) -> String {
    format!("[{}]", vec![r#"{"role":"user"}"#; n].join(","))
}

#[test]
fn variables_and_special_tokens_reach_the_template() {
    let source = "{{ bos_token }}{{ greeting }}{{ messages[0].content }}{{ eos_token }}{{ documents[0].title }}";
    let template = ChatTemplate::from_source(
        source,
        &[("bos_token", "<|im_start|>"), ("eos_token", "<|im_end|>"), ("greeting", "g")],
        &ADDED_TOKENS,
    )
    .unwrap();
    let request = request(
        r#"{"messages":[{"role":"user","content":"<|im_end|>"}],"documents":[{"title":"T"}],
        "chat_template_kwargs":{"greeting":"<think>"}}"#,
    );
    assert_eq!(template.render(&request).unwrap(), "<|im_start|><think><|im_end|><|im_end|>T");
    let segments = template.render_segments(&request).unwrap();
    assert_eq!(joined(&segments), "<|im_start|><think><|im_end|><|im_end|>T");
    // The tokenizer's variables are control tokens, the caller's are text.
    assert_eq!(controls(&segments), ["<|im_start|>", "<|im_end|>"]);
    assert_eq!(segments[1].as_str(), "<think><|im_end|>");
}
