//! `packaging/third-party-licenses.txt` has the license texts of every crate that is linked into
//! the library, as `Cargo.lock` has them.
//!
//! `make licenses` (that is `QWEN_WRITE_LICENSES=1 cargo test --test licenses`) writes it;
//! without the variable the committed file is compared.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use serde_json::Value;

const PROLOGUE: &str = "\
Licenses of the software inside libqwen35

The library is licensed as LICENSE says. It contains the Rust standard library (MIT or
Apache-2.0; its notices are share/doc/rust/COPYRIGHT-library.html of the Rust toolchain,
installed beside this file as rust-standard-library.html) and the Rust packages below.

Generated from Cargo.lock by `make licenses`. Do not edit.
";

/// What cargo knows of the packages for the only target there is.
fn metadata() -> Value {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["metadata", "--format-version", "1", "--locked", "--offline"]);
    command.args(["--filter-platform", "x86_64-unknown-linux-gnu"]);
    let output = command.current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_else(|| panic!("no {key} in {value}"))
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().unwrap_or_else(|| panic!("no {key} in {value}"))
}

/// The packages whose code is in the library: normal dependencies of normal dependencies, but
/// no macros, which only the compiler runs.
fn linked(metadata: &Value) -> BTreeMap<String, &Value> {
    let packages: BTreeMap<&str, &Value> =
        list(metadata, "packages").iter().map(|package| (text(package, "id"), package)).collect();
    let resolve = &metadata["resolve"];
    let nodes: BTreeMap<&str, &Value> =
        list(resolve, "nodes").iter().map(|node| (text(node, "id"), node)).collect();
    let is_macro = |package: &Value| {
        let mut targets = list(package, "targets").iter();
        targets.any(|target| list(target, "kind").iter().any(|kind| kind == "proc-macro"))
    };
    let root = text(resolve, "root");
    let (mut found, mut open) = (BTreeMap::new(), vec![root]);
    let mut seen = BTreeSet::new();
    while let Some(id) = open.pop() {
        if !seen.insert(id) || is_macro(packages[id]) {
            continue;
        }
        if id != root {
            let package = packages[id];
            let name = format!("{} {}", text(package, "name"), text(package, "version"));
            found.insert(name, package);
        }
        for dependency in list(nodes[id], "deps") {
            if list(dependency, "dep_kinds").iter().any(|kind| kind["kind"].is_null()) {
                open.push(text(dependency, "pkg"));
            }
        }
    }
    found
}

/// The license texts in a package's folder, by file name.
fn texts(folder: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let upper = name.to_uppercase();
        let known = ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE"];
        if path.is_file() && known.iter().any(|start| upper.starts_with(start)) {
            let bytes = std::fs::read(&path).unwrap();
            let content = String::from_utf8_lossy(&bytes).replace('\r', "");
            let lines: Vec<&str> = content.lines().map(str::trim_end).collect();
            found.insert(name, lines.join("\n").trim_matches('\n').to_owned());
        }
    }
    found
}

fn generate() -> String {
    let metadata = metadata();
    let packages = linked(&metadata);
    assert!(packages.len() > 10, "only {} packages", packages.len());
    let rule = "=".repeat(88);
    let mut all = format!("{PROLOGUE}\n");
    // Each text once, with all packages that have it.
    let mut users: Vec<(String, Vec<String>)> = Vec::new();
    for (name, package) in &packages {
        let license = package["license"].as_str().unwrap_or("see its text below");
        all += &format!("  {name}: {license}\n");
        let texts = texts(Path::new(text(package, "manifest_path")).parent().unwrap());
        assert!(!texts.is_empty(), "{name} has no license text in its folder");
        for (file, content) in texts {
            let user = format!("{name} ({file})");
            // Line breaks and indentation differ between copies of the same text.
            let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
            match users.iter_mut().find(|(known, _)| words(known) == words(&content)) {
                Some((_, names)) => names.push(user),
                None => users.push((content, vec![user])),
            }
        }
    }
    for (content, names) in users {
        all += &format!("\n{rule}\n{}\n{rule}\n\n{content}\n", names.join("\n"));
    }
    all
}

#[test]
fn the_committed_texts_are_those_of_the_dependencies() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging/third-party-licenses.txt");
    let expected = generate();
    if std::env::var_os("QWEN_WRITE_LICENSES").is_some() {
        std::fs::write(&path, &expected).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(committed == expected, "{path:?} is not what Cargo.lock asks for: run `make licenses`");
}
