//! The small programs of examples/c and examples/cpp, one for each question: all are built and
//! run with the demo model, and both languages say the same.

#[path = "support/c.rs"]
mod c;
#[path = "support/temp.rs"]
mod temp;

use std::path::PathBuf;
use std::process::Command;

use c::{Compiler, Link, succeed};
use temp::TempDir;

const DEMO: &str = "examples/demo-model";

/// Name, arguments after the model (FILE is one that the program may make), and what the output
/// must hold.
const PROGRAMS: &[(&str, &[&str], &[&str])] = &[
    ("complete", &["The capital of France is", "8"], &["The capital of France is Paris"]),
    ("stream", &[], &["Ada"]),
    ("threads", &[], &["Paris", "Rome"]),
    ("tools", &[], &["[get_weather {\"city\": \"Paris\"}: ", "21 degrees"]),
    ("tools", &["Set a timer for 12 minutes."], &["[set_timer {\"minutes\": 12}: "]),
    ("words", &["What is the capital of France?", "xyz"], &["France is Paris."]),
    ("words", &["What is the capital of France?", "Paris"], &["The capital of France is "]),
    ("fork", &[], &["is Paris.\n", "is Rome.\n", "is Madrid.\n"]),
    ("frame", &[], &["The capital of France is Paris.\n"]),
    ("frame", &["0"], &["The capital of France is Paris.\n"]),
    ("save", &["FILE"], &["the same tokens\n"]),
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
        let folder = TempDir::new();
        let file = folder.join("FILE").to_str().unwrap().to_owned();
        let arguments: Vec<&str> =
            arguments.iter().map(|&a| if a == "FILE" { &*file } else { a }).collect();
        let all: Vec<&str> = [&[DEMO], &*arguments].concat();
        let mut command = Command::new(&program);
        let output = succeed(command.args(&all).current_dir(c::root()));
        let text = String::from_utf8(output.stdout).unwrap();
        if *name == "rank" {
            assert!(text.lines().next().unwrap().ends_with("Paris."), "{source}: {text:?}");
        }
        for part in *parts {
            assert!(text.contains(part), "{source}: {part:?} is not in {text:?}");
        }
        let notes = String::from_utf8(output.stderr).unwrap();
        match *name {
            // The beginning was there already.
            "fork" => assert_eq!(notes.matches("[16 of 31 tokens computed]").count(), 3, "{notes}"),
            "frame" => {
                let frames = notes[1..].split(' ').next().unwrap();
                assert!(notes.contains(" frames, the worst took "), "{source}: {notes:?}");
                // With no time at all, each layer and more is a frame of its own.
                let least = if arguments.is_empty() { 2 } else { 100 };
                assert!(frames.parse::<usize>().unwrap() > least, "{source}: {notes:?}");
            }
            _ => {}
        }
        // Without arguments it explains itself; a model that is not there is named.
        let usage = run(&program, &[]);
        assert_eq!(usage.status.code(), Some(2), "{source}");
        assert!(String::from_utf8_lossy(&usage.stderr).contains("usage:"), "{source}");
        let lost = [&["/no/such/model"], &*arguments].concat();
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
