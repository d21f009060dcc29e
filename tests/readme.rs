//! What README.md shows works: its programs are compiled and run, its commands executed.

#[path = "support/c.rs"]
mod c;
#[path = "support/temp.rs"]
mod temp;

use std::process::Command;

use c::{Compiler, Link, not_run, succeed};
use temp::TempDir;

const DEMO: &str = "examples/demo-model";

/// The code blocks of README.md in `language`.
fn blocks(language: &str) -> Vec<String> {
    let readme = std::fs::read_to_string(c::root().join("README.md")).unwrap();
    let start = format!("```{language}\n");
    let blocks = readme.split(&start).skip(1).map(|rest| rest.split("```").next().unwrap());
    let blocks: Vec<String> = blocks.map(str::to_owned).collect();
    assert!(!blocks.is_empty(), "README.md has no {language}");
    blocks
}

/// Compiles and runs each program with the demo model; it must say something.
fn programs(language: &str, compiler: &'static str, standard: &str) {
    for (i, source) in blocks(language).iter().enumerate() {
        let folder = TempDir::new();
        let file = folder.join(format!("readme-{i}.{language}"));
        std::fs::write(&file, source).unwrap();
        let sources = [file.to_str().unwrap()];
        let name = format!("readme-{language}-{i}");
        let program = Compiler(compiler).build(&name, standard, &sources, &[], Link::Shared);
        let output = succeed(Command::new(program).arg(c::root().join(DEMO)));
        assert!(output.stdout.len() > 2, "{output:?}");
    }
}

#[test]
fn the_c_program() {
    programs("c", "cc", "c11");
    let hello = std::fs::read_to_string(c::root().join("examples/hello.c")).unwrap();
    let (_, code) = hello.split_once("*/\n").unwrap();
    assert_eq!(blocks("c"), [code], "README.md shows examples/hello.c without its first comment");
}

#[test]
fn the_cxx_program() {
    programs("cpp", "c++", "c++17");
}

#[test]
fn the_commands() {
    if std::env::var_os("QWEN_BUILD").is_none() {
        return not_run("the commands of README.md: run by `make test` only");
    }
    for block in blocks("sh") {
        let mut command = Command::new("bash");
        command.args(["-e", "-o", "pipefail", "-c", &block]);
        // The `make` in it is not part of the make that runs this test.
        command.env_remove("MAKEFLAGS").env_remove("MFLAGS").env_remove("MAKELEVEL");
        succeed(command.current_dir(c::root()).stdin(std::process::Stdio::null()));
    }
}
