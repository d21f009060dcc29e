//! The small programs of examples/c and examples/cpp, one for each question: all are built and
//! run with the demo model, and both languages say the same.

#[path = "support/c.rs"]
mod c;

use std::path::PathBuf;
use std::process::Command;

use c::{Compiler, Link, succeed};

const DEMO: &str = "examples/demo-model";

/// Name, arguments after the model, and what the output must hold.
const PROGRAMS: &[(&str, &[&str], &[&str])] = &[
    ("complete", &["The capital of France is", "8"], &["The capital of France is Paris"]),
    ("stream", &[], &["Ada"]),
    ("threads", &[], &["Paris", "Rome"]),
    ("tools", &[], &["[get_weather {\"city\": \"Paris\"}: ", "21 degrees"]),
    ("tools", &["Set a timer for 12 minutes."], &["[set_timer {\"minutes\": 12}: "]),
    ("words", &["What is the capital of France?", "xyz"], &["France is Paris."]),
    ("words", &["What is the capital of France?", "Paris"], &["The capital of France is "]),
    ("rank", &["is Paris France of", "The capital of France is Paris."], &["The capital"]),
];

fn sources(folder: &str) -> Vec<String> {
    let entries = std::fs::read_dir(c::root().join("examples").join(folder)).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn every_question_has_a_program_in_both_languages() {
    let mut names: Vec<&str> = PROGRAMS.iter().map(|program| program.0).collect();
    names.sort_unstable();
    names.dedup();
    for language in ["c", "cpp"] {
        let expected: Vec<String> = names.iter().map(|name| format!("{name}.{language}")).collect();
        assert_eq!(sources(language), expected);
        for name in expected {
            let path = c::root().join("examples").join(language).join(&name);
            let lines = std::fs::read_to_string(path).unwrap().lines().count();
            assert!(lines <= 100, "examples/{language}/{name} has {lines} lines");
        }
    }
}

fn run(program: &PathBuf, arguments: &[&str]) -> std::process::Output {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(c::root()).output().unwrap()
}

fn in_language(language: &str, compiler: &'static str, standard: &str) -> Vec<String> {
    let mut said = Vec::new();
    for (name, arguments, parts) in PROGRAMS {
        let source = format!("examples/{language}/{name}.{language}");
        let program = Compiler(compiler).build(name, standard, &[&source], &[], Link::Shared);
        let all: Vec<&str> = [DEMO].iter().chain(*arguments).copied().collect();
        let mut command = Command::new(&program);
        let output = succeed(command.args(&all).current_dir(c::root()));
        let text = String::from_utf8(output.stdout).unwrap();
        if *name == "rank" {
            assert!(text.lines().next().unwrap().ends_with("Paris."), "{source}: {text:?}");
        }
        for part in *parts {
            assert!(text.contains(part), "{source}: {part:?} is not in {text:?}");
        }
        // Without arguments it explains itself; a model that is not there is named.
        let usage = run(&program, &[]);
        assert_eq!(usage.status.code(), Some(2), "{source}");
        assert!(String::from_utf8_lossy(&usage.stderr).contains("usage:"), "{source}");
        let lost: Vec<&str> = ["/no/such/model"].iter().chain(*arguments).copied().collect();
        let lost = run(&program, &lost);
        assert_eq!(lost.status.code(), Some(1), "{source}");
        assert!(String::from_utf8_lossy(&lost.stderr).contains("/no/such/model"), "{source}");
        let _ = std::fs::remove_file(program);
        said.push(text);
    }
    said
}

#[test]
fn they_do_what_they_say() {
    assert_eq!(in_language("c", "cc", "c99"), in_language("cpp", "c++", "c++17"));
}
