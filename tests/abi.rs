//! The binary interface does not change for programs compiled before: against the header of the
//! last release, kept in tests/abi/. Nothing is released yet, so that header may still be
//! replaced (`make abi-baseline`); afterwards only together with QWEN_ABI_VERSION and the SONAME.
//!
//! Twice: by a comparison of the two headers here, and by abidiff on what a C compiler makes of
//! them. That the library is what its header says is tested in tests/capi.rs and bindings.rs.

#[path = "support/api.rs"]
mod api;
#[path = "support/c.rs"]
mod c;
#[path = "support/temp.rs"]
mod temp;

use std::path::{Path, PathBuf};
use std::process::Command;

use api::{Api, Item, Named, What};
use c::{not_run, succeed};
use temp::TempDir;

fn text(path: &str) -> String {
    std::fs::read_to_string(c::root().join(path)).unwrap()
}

fn same(a: &[Named], b: &[Named]) -> bool {
    // Names of parameters may change; those of fields are compared by the caller.
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.kind == b.kind)
}

/// What a program compiled with `old` would find changed in `new`.
fn changes(old: &Api, new: &Api) -> Vec<String> {
    let mut found = Vec::new();
    for item in &old.items {
        let name = &item.name;
        let Some(now) = new.items.iter().find(|other| other.name == *name) else {
            found.push(format!("{name} is gone"));
            continue;
        };
        if !compatible(item, now) {
            found.push(format!("{name} was\n{}\nand is\n{}", item.code, now.code));
        }
    }
    found
}

fn compatible(old: &Item, new: &Item) -> bool {
    match (&old.what, &new.what) {
        // The version moves by itself.
        (What::Constant(_), What::Constant(_)) if old.name.starts_with("QWEN_VERSION_") => true,
        (What::Constant(a), What::Constant(b)) => a == b,
        (What::Initializer, What::Initializer) | (What::Opaque, What::Opaque) => true,
        (What::Alias(a), What::Alias(b)) => a == b,
        (What::Struct(a), What::Struct(b)) => {
            // Fields are appended; only structs that say their size can grow.
            let grows = a.first().is_some_and(|field| field.name == "struct_size");
            let begin = &b[..a.len().min(b.len())];
            same(a, begin)
                && a.iter().zip(begin).all(|(a, b)| a.name == b.name)
                && (grows || a.len() == b.len())
        }
        (
            What::Callback { result: a, parameters: p }
            | What::Function { result: a, parameters: p },
            What::Callback { result: b, parameters: q }
            | What::Function { result: b, parameters: q },
        ) => a == b && same(p, q),
        _ => false,
    }
}

/// A shared library with the functions of a header, all of them empty. Structs that say their
/// size have no more fields than in `old`: programs that know fewer say so.
fn empty_library(folder: &Path, name: &str, header: &str, old: &Api) -> PathBuf {
    let api = Api::parse(header);
    let mut source = "#include <stddef.h>\n#include <stdint.h>\n".to_owned();
    for item in &api.items {
        match &item.what {
            What::Constant(_) | What::Initializer => {}
            What::Struct(fields) => {
                let before = old.structs().find(|(other, _)| other.name == item.name);
                let known = before.map_or(fields.len(), |(_, before)| before.len());
                let grows = fields.first().is_some_and(|field| field.name == "struct_size");
                let count = if grows { known.min(fields.len()) } else { fields.len() };
                let body: String =
                    fields[..count].iter().map(|f| format!("{} {}; ", f.kind, f.name)).collect();
                source += &format!("typedef struct {{ {body}}} {};\n", item.name);
            }
            What::Function { result, parameters } => {
                let list = parameters.iter().map(|p| format!("{} {}", p.kind, p.name));
                let list = list.collect::<Vec<_>>().join(", ");
                let list = if list.is_empty() { "void" } else { &list };
                let body = if result == "void" { "" } else { "return 0;" };
                source += &format!("{result} {}({list}) {{ {body} }}\n", item.name);
            }
            _ => source += &format!("{}\n", item.code),
        }
    }
    let file = folder.join(format!("{name}.c"));
    std::fs::write(&file, source).unwrap();
    let library = folder.join(format!("{name}.so"));
    let mut command = Command::new("cc");
    command.args(["-g", "-O0", "-shared", "-fPIC", "-Wl,-soname,libqwen35.so.0", "-o"]);
    succeed(command.arg(&library).arg(&file));
    library
}

/// Whether abidiff finds the second library to take the place of the first; its report if not.
fn abidiff(old: &Path, new: &Path) -> Option<String> {
    let mut command = Command::new("abidiff");
    let output = command.arg("--no-added-syms").arg(old).arg(new).output().unwrap();
    let code = output.status.code().unwrap();
    assert_eq!(code & 3, 0, "abidiff failed: {output:?}");
    (code != 0).then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Headers that break the interface, and one that only adds to it.
fn variations(header: &str) -> (Vec<String>, String) {
    let change = |from: &str, to: &str| {
        assert!(header.contains(from), "the header has no {from:?}");
        header.replacen(from, to, 1)
    };
    let broken = vec![
        change("void qwen_session_free(qwen_session *session);\n", ""),
        change("    uint32_t top_k;\n", "    uint64_t top_k;\n"),
        // The one of qwen_sampling_options.
        change(
            "    uint32_t reserved;\n    /**\n     * Where the session's",
            "    /**\n     * Where the session's",
        ),
        change(
            "const qwen_session *session, size_t *limit",
            "const qwen_session *session, int32_t *limit",
        ),
    ];
    let last = "    size_t logit_bias_count;\n";
    let added = change(last, &format!("{last}    uint64_t more;\n"));
    let added = added.replacen(
        "uint32_t qwen_abi_version(void);",
        "uint32_t qwen_abi_version(void);\n\nuint32_t qwen_new(uint32_t flags);",
        1,
    );
    (broken, added)
}

#[test]
fn the_interface_is_that_of_the_last_release() {
    let (old, new) = (text("tests/abi/qwen35.h"), text("include/qwen35.h"));
    let found = changes(&Api::parse(&old), &Api::parse(&new));
    assert!(found.is_empty(), "programs would have to be compiled again:\n{}", found.join("\n"));
    // The comparison sees what it is for.
    let (broken, added) = variations(&new);
    for header in &broken {
        assert_eq!(changes(&Api::parse(&new), &Api::parse(header)).len(), 1);
    }
    assert!(changes(&Api::parse(&new), &Api::parse(&added)).is_empty());

    if !Command::new("abidiff").arg("--version").output().is_ok_and(|o| o.status.success()) {
        return not_run("the interface by abidiff: not installed (package abigail-tools)");
    }
    let folder = TempDir::new();
    let baseline = Api::parse(&old);
    let library = |name: &str, header: &str, old| empty_library(folder.path(), name, header, old);
    let (before, now) = (library("before", &old, &baseline), library("now", &new, &baseline));
    assert_eq!(abidiff(&before, &now), None);
    let current = Api::parse(&new);
    let now = library("all", &new, &current);
    for header in &broken {
        let other = library("broken", header, &current);
        assert!(abidiff(&now, &other).is_some(), "abidiff missed a change");
    }
    assert_eq!(abidiff(&now, &library("added", &added, &current)), None);
}
