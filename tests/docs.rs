//! The pages of docs/: every program on them is compiled and run with the demo model, every file
//! they name is there. (Swift is only parsed: see examples/swift/README.md.)

#[path = "support/c.rs"]
mod c;
#[path = "support/languages.rs"]
mod languages;
#[path = "support/temp.rs"]
mod temp;

use std::path::{Path, PathBuf};
use std::process::Command;

use c::{Compiler, Link, succeed};
use temp::TempDir;

fn pages() -> Vec<(String, String)> {
    let folder = c::root().join("docs");
    let mut found: Vec<(String, String)> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            (name, std::fs::read_to_string(&path).unwrap())
        })
        .collect();
    found.sort();
    found
}

/// The code blocks of all pages in `language`, each in a file of its own.
fn programs(language: &str, folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for (page, text) in pages().iter().filter(|(page, _)| page != "reference.md") {
        let start = format!("```{language}\n");
        for (i, block) in text.split(&start).skip(1).enumerate() {
            let code = block.split("```").next().unwrap();
            let file = folder.join(format!("{}-{i}.{language}", page.trim_end_matches(".md")));
            std::fs::write(&file, code).unwrap();
            found.push(file);
        }
    }
    assert!(!found.is_empty(), "docs/ has no {language}");
    found
}

/// Runs a program with the demo model; it must say something.
fn run(command: &mut Command) {
    let output = succeed(command.arg(c::root().join("examples/demo-model")));
    assert!(output.stdout.len() > 2, "{command:?}: {output:?}");
}

#[test]
fn files_that_are_named_exist() {
    for (page, text) in pages() {
        for part in text.split('`').skip(1).step_by(2) {
            let place = part.starts_with("examples/") || part.starts_with("tests/");
            if place && !part.contains(['\n', ' ']) {
                assert!(c::root().join(part).exists(), "docs/{page} names {part}");
            }
        }
        for link in text.split("](").skip(1).map(|rest| rest.split(')').next().unwrap()) {
            // A place in a page, perhaps in this one.
            let file = link.split('#').next().unwrap();
            let there = link.starts_with("https:") || c::root().join("docs").join(file).exists();
            assert!(there, "docs/{page} links to {link}");
        }
    }
}

#[test]
fn c_and_cxx() {
    let folder = TempDir::new();
    for (language, compiler, standard) in [("c", "cc", "c99"), ("cpp", "c++", "c++17")] {
        for file in programs(language, folder.path()) {
            let name = file.file_stem().unwrap().to_str().unwrap();
            let sources = [file.to_str().unwrap()];
            let program = Compiler(compiler).build(name, standard, &sources, &[], Link::Shared);
            run(&mut Command::new(&program));
            let _ = std::fs::remove_file(program);
        }
    }
}

#[test]
fn python() {
    let folder = TempDir::new();
    for file in programs("python", folder.path()) {
        let Some(mut python) = languages::python() else { return };
        run(python.arg(file));
    }
}

#[test]
fn go() {
    let folder = TempDir::new();
    for file in programs("go", folder.path()) {
        let Some(mut go) = languages::go() else { return };
        let program = file.with_extension("program");
        go.args(["build", "-o"]).arg(&program).arg(&file);
        succeed(go.current_dir(c::root().join("examples/go")));
        run(&mut languages::command(program));
    }
}

#[test]
fn node() {
    let folder = TempDir::new();
    for file in programs("js", folder.path()) {
        let Some(mut node) = languages::node() else { return };
        // As if it lay beside the wrapper.
        let wrapper = c::root().join("examples/node/qwen35.js");
        let code = std::fs::read_to_string(&file).unwrap();
        let code = code.replace("./qwen35.js", wrapper.to_str().unwrap());
        std::fs::write(&file, code).unwrap();
        run(node.arg(file));
    }
}

#[test]
fn luajit() {
    let folder = TempDir::new();
    for file in programs("lua", folder.path()) {
        let Some(mut luajit) = languages::luajit() else { return };
        run(luajit.arg(file));
    }
}

#[test]
fn csharp() {
    let folder = TempDir::new();
    for file in programs("csharp", folder.path()) {
        let Some((mut mcs, mut mono)) = languages::mono() else { return };
        let program = file.with_extension("exe");
        mcs.args(["-unsafe", "-warnaserror"]).args(languages::CSHARP_WRAPPER).arg(&file);
        succeed(mcs.arg(format!("-out:{}", program.display())));
        run(mono.arg(program));
    }
}

/// The compiler is not at hand.
#[test]
fn swift_is_parsed() {
    let folder = TempDir::new();
    let files = programs("swift", folder.path());
    if let Some(mut parser) = languages::swift_parser() {
        succeed(parser.args(files));
    }
}

#[test]
fn zig() {
    let folder = TempDir::new();
    for file in programs("zig", folder.path()) {
        let Some(mut zig) = languages::zig() else { return };
        let program = file.with_extension("program");
        languages::zig_program(&mut zig, &file, &program);
        run(&mut languages::command(program));
    }
}
