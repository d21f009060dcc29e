//! The bindings in examples/ and docs/reference.md do not drift from include/qwen35.h: the raw
//! layers are what `make header` makes, and layouts and constants, as each language sees them at run time, are
//! those that the C compiler sees.

#[path = "support/api.rs"]
mod api;
#[path = "support/c.rs"]
mod c;
#[path = "support/generate.rs"]
mod generate;
#[path = "support/languages.rs"]
mod languages;
#[path = "support/reference.rs"]
mod reference;
#[path = "support/temp.rs"]
mod temp;

use std::process::Command;

use api::Api;
use c::succeed;
use temp::TempDir;

#[test]
fn the_committed_bindings_are_the_generated_ones() {
    let api = Api::read();
    for (file, text) in [
        ("examples/python/qwen35/_abi.py", generate::python(&api)),
        ("examples/luajit/qwen35_abi.lua", generate::lua(&api)),
        ("examples/node/abi.js", generate::node(&api)),
        ("examples/csharp/Native.cs", generate::csharp(&api)),
        ("examples/swift/Layout.swift", generate::swift(&api)),
        ("docs/reference.md", reference::reference(&api)),
    ] {
        let path = c::root().join(file);
        if std::env::var_os("QWEN_WRITE_HEADER").is_some() {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, &text).unwrap();
        }
        let committed = std::fs::read_to_string(&path).unwrap_or_default();
        let differs = text.lines().zip(committed.lines()).position(|(a, b)| a != b);
        let line = differs.map(|i| i + 1);
        assert!(committed == text, "{file} is not what `make header` writes (line {line:?})");
    }
}

/// The table of a language, sorted; see `generate::table`.
fn printed(command: &mut Command) -> Vec<String> {
    let text = String::from_utf8(succeed(command).stdout).unwrap();
    let line = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut lines: Vec<String> = text.lines().map(line).collect();
    lines.sort();
    lines
}

#[test]
fn every_language_sees_the_layout_that_c_sees() {
    let api = Api::read();
    let folder = TempDir::new();
    let write = |name: &str, text: String| {
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let source = write("table.c", generate::table_in_c(&api));
    let sources = [source.to_str().unwrap()];
    let program = c::Compiler("cc").build("table", "c11", &sources, &[], c::Link::No);
    let expected = printed(&mut Command::new(program));
    assert!(expected.len() > 80);
    let same = |language: &str, found: Vec<String>| {
        let missing: Vec<_> = expected.iter().filter(|line| !found.contains(line)).collect();
        let wrong: Vec<_> = found.iter().filter(|line| !expected.contains(line)).collect();
        assert!(missing.is_empty() && wrong.is_empty(), "{language}: {wrong:?}; in C {missing:?}");
        assert_eq!(found.len(), expected.len(), "{language}");
    };

    // Swift's numbers are these; clang stands for Swift's reader of the header.
    let table = generate::table(&api);
    let mut table: Vec<String> = table.lines().map(str::to_owned).collect();
    table.sort();
    same("swift", table);
    if let Some(mut python) = languages::python() {
        same("python", printed(python.arg("tests/languages/layout.py")));
    }
    if let Some(mut luajit) = languages::luajit() {
        same("luajit", printed(luajit.arg("tests/languages/layout.lua")));
    }
    if let Some(mut node) = languages::node() {
        same("node", printed(node.arg("tests/languages/layout.js")));
    }
    if let Some((mut mcs, mut mono)) = languages::mono() {
        let program = folder.join("layout.exe");
        mcs.arg("-unsafe").arg(format!("-out:{}", program.display()));
        succeed(mcs.args(["tests/languages/Layout.cs", "examples/csharp/Native.cs"]));
        same("csharp", printed(mono.arg(program)));
    }
    if let Some(mut go) = languages::go() {
        let program = folder.join("table-go");
        let source = write("table.go", generate::table_in_go(&api));
        succeed(go.args(["build", "-o"]).arg(&program).arg(source).env("GO111MODULE", "off"));
        same("go", printed(&mut Command::new(program)));
    }
    if let Some(mut zig) = languages::zig() {
        let program = folder.join("table-zig");
        let source = write("table.zig", generate::table_in_zig(&api));
        zig.arg("build-exe").arg(source).args(["-lc", "-Iinclude"]);
        succeed(zig.arg(format!("-femit-bin={}", program.display())));
        same("zig", printed(&mut Command::new(program)));
    }
}
