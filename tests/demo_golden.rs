//! Conversations with the demo model through the programs of examples/: the ids and the text that
//! Transformers gives (tests/data/demo_golden.json, written by tests/reference/make_demo_golden.py).

#[path = "support/c.rs"]
mod c;
#[path = "support/temp.rs"]
mod temp;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use c::{Compiler, Link};
use serde_json::Value;

const DEMO: &str = "examples/demo-model";

struct Turn {
    /// The conversation as the C API takes it.
    request: Value,
    prompt: Vec<u32>,
    /// With the token that ends it.
    answer: Vec<u32>,
    text: String,
}

struct Conversation {
    name: String,
    turns: Vec<Turn>,
}

fn golden() -> Vec<Conversation> {
    let path = c::root().join("tests/data/demo_golden.json");
    let data: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let array = |value: &Value| value.as_array().unwrap().clone();
    let ids = |value: &Value| -> Vec<u32> {
        array(value).iter().map(|id| id.as_u64().unwrap() as u32).collect()
    };
    let turn = |value: &Value| Turn {
        request: value["request"].clone(),
        prompt: ids(&value["prompt"]),
        answer: ids(&value["answer"]),
        text: value["text"].as_str().unwrap().to_owned(),
    };
    let conversation = |value: &Value| Conversation {
        name: value["name"].as_str().unwrap().to_owned(),
        turns: array(&value["turns"]).iter().map(turn).collect(),
    };
    array(&data["conversations"]).iter().map(conversation).collect()
}

/// A program of examples/, built against the library under test.
fn host(name: &str) -> &'static Path {
    static HOSTS: OnceLock<[(&str, PathBuf); 4]> = OnceLock::new();
    let hosts = HOSTS.get_or_init(|| {
        ["qwen", "qwen-ids", "qwen-tokenize", "chat"].map(|name| {
            let program = if name == "chat" {
                let sources = ["examples/chat.cpp"];
                Compiler("c++").build("golden-chat", "c++17", &sources, &[], Link::Shared)
            } else {
                let source = format!("examples/{name}.c");
                let sources = [&*source, "examples/host.c"];
                Compiler("cc").build(&format!("golden-{name}"), "c11", &sources, &[], Link::Shared)
            };
            (name, program)
        })
    });
    &hosts.iter().find(|(known, _)| *known == name).unwrap().1
}

/// (standard output, standard error) of a run that must succeed.
fn run(name: &str, arguments: &[&str], input: &str) -> (String, String) {
    let mut command = Command::new(host(name));
    command.args(arguments).current_dir(c::root());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{name} {arguments:?}: {output:?}");
    (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
}

fn ids(text: &str) -> Vec<u32> {
    text.split_whitespace().map(|id| id.parse().unwrap()).collect()
}

fn joined(ids: &[u32]) -> String {
    ids.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
}

/// The messages of the user and the system message, if nothing else but answers is in it.
fn said(conversation: &Conversation) -> Option<(Option<String>, Vec<String>)> {
    let request = &conversation.turns.last()?.request;
    if !request["tools"].is_null() {
        return None;
    }
    let (mut system, mut user) = (None, Vec::new());
    for message in request["messages"].as_array()? {
        let content = message["content"].as_str()?.to_owned();
        match message["role"].as_str()? {
            "system" => system = Some(content),
            "user" => user.push(content),
            _ => {}
        }
    }
    Some((system, user))
}

fn thinks(conversation: &Conversation) -> bool {
    conversation.turns[0].request["enable_thinking"] == true
}

#[test]
fn the_golden_file_is_about_all_kinds() {
    let all = golden();
    assert!(all.iter().filter(|c| c.turns.len() >= 3).count() >= 3, "long conversations");
    assert!(all.iter().any(thinks));
    assert!(all.iter().any(|c| c.turns[0].text.contains("<tool_call>")));
    let roles = |role: &str| {
        let has =
            |t: &Turn| t.request["messages"].as_array().unwrap().iter().any(|m| m["role"] == role);
        all.iter().flat_map(|c| &c.turns).filter(|t| has(t)).count()
    };
    assert!(roles("system") >= 3 && roles("tool") >= 2);
}

/// Ids of every prompt, ids and text of every answer, with every instruction set.
#[test]
fn ids_and_text_are_those_of_transformers() {
    for conversation in golden() {
        for (i, turn) in conversation.turns.iter().enumerate() {
            let place = format!("turn {} of {:?}", i + 1, conversation.name);
            let request = turn.request.to_string();
            let (prompt, _) = run("qwen-tokenize", &[DEMO, "--chat"], &request);
            assert_eq!(ids(&prompt), turn.prompt, "prompt of {place}");
            let (prompt, count) = (joined(&turn.prompt), turn.answer.len().to_string());
            let (answer, _) = run("qwen-ids", &[DEMO, &prompt, &count], "");
            assert_eq!(ids(&answer), turn.answer, "{place} ({:?})", turn.text);
            // The last one ends the turn and is no text.
            let (_, spoken) = turn.answer.split_last().unwrap();
            let (text, _) = run("qwen-tokenize", &[DEMO, "--decode"], &joined(spoken));
            assert_eq!(text, turn.text, "{place}");
        }
    }
}

#[test]
fn scalar_code_gives_the_same_ids() {
    for conversation in golden() {
        let turn = conversation.turns.last().unwrap();
        let (prompt, count) = (joined(&turn.prompt), turn.answer.len().to_string());
        let arguments = [DEMO, &prompt, &count, "--isa", "scalar", "--threads", "1"];
        assert_eq!(ids(&run("qwen-ids", &arguments, "").0), turn.answer, "{:?}", conversation.name);
    }
}

/// The conversations as a person holds them: lines in, lines out, one session.
#[test]
fn conversations_in_the_hosts() {
    let mut held = 0;
    for conversation in golden() {
        let Some((system, user)) = said(&conversation) else { continue };
        let name = &conversation.name;
        let mut arguments = vec![DEMO];
        if let Some(system) = &system {
            arguments.extend(["--system", system]);
        }
        if thinks(&conversation) {
            arguments.push("--think");
        }
        arguments.extend(["--chat", "200", "0", "1"]);
        let input = user.join("\n");
        let (output, thoughts) = run("qwen", &arguments, &input);
        let lines: Vec<&str> = output.lines().collect();
        assert_eq!(lines.len(), conversation.turns.len(), "{name}: {output}");
        for (line, turn) in lines.iter().zip(&conversation.turns) {
            match turn.text.split_once("\n</think>\n\n") {
                Some((thought, answer)) => {
                    assert_eq!(*line, answer, "{name}");
                    assert!(thoughts.contains(thought), "{name}: {thought:?} in {thoughts:?}");
                }
                None => assert_eq!(*line, turn.text, "{name}"),
            }
        }
        if system.is_none() && !thinks(&conversation) {
            let (output, _) = run("chat", &[DEMO, "200", "0", "1"], &input);
            assert_eq!(output.lines().collect::<Vec<_>>(), lines, "{name}, the host in C++");
        }
        held += 1;
    }
    assert!(held >= 8, "{held} conversations");
}
