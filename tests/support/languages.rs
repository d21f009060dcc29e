//! The toolchains of other languages, where they are installed. `make tools` installs those
//! that come from PyPI and npm into tests/.cache/languages.
#![allow(dead_code)]

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::c;

/// A folder that `make tools` fills.
pub fn cache(name: &str) -> PathBuf {
    c::root().join("tests/.cache/languages").join(name)
}

/// A command that finds the library under test and sees nothing of the cargo and the make that
/// run this.
pub fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    for variable in ["MAKEFLAGS", "MFLAGS", "MAKELEVEL", "PYTHONPATH", "NODE_PATH", "GOFLAGS"] {
        command.env_remove(variable);
    }
    command.env("LD_LIBRARY_PATH", c::library_folder()).current_dir(c::root());
    command
}

fn found(program: &str, argument: &str) -> bool {
    Command::new(program).arg(argument).output().is_ok_and(|o| o.status.success())
}

/// Says that a language was not run.
fn missing<T>(language: &str, what: &str) -> Option<T> {
    c::not_run(&format!("examples/{language}: {what}"));
    None
}

/// Python that finds the package in examples/python.
pub fn python() -> Option<Command> {
    if !found("python3", "--version") {
        return missing("python", "python3 is not installed");
    }
    let mut python = command("python3");
    python.env("PYTHONPATH", c::root().join("examples/python"));
    python.env("PYTHONDONTWRITEBYTECODE", "1");
    Some(python)
}

/// Checks the types of what is named to it.
pub fn mypy() -> Option<Command> {
    let mypy = cache("venv/bin/mypy");
    if !mypy.exists() {
        return missing("python", "mypy is not installed; run `make tools`");
    }
    let mut command = command(mypy);
    command.args(["--strict", "--no-color-output", "--cache-dir"]).arg(cache("mypy"));
    Some(command)
}

/// The go command; programs are built against include/ and the library under test.
pub fn go() -> Option<Command> {
    if !found("go", "version") {
        return missing("go", "go is not installed");
    }
    let mut go = command("go");
    let flags = format!("-I{}", c::root().join("include").display());
    go.env("CGO_ENABLED", "1").env("CGO_CFLAGS", format!("-O2 {flags}"));
    go.env("CGO_LDFLAGS", format!("-L{}", c::library_folder().display()));
    // It builds without any module from elsewhere.
    go.env("GOFLAGS", "-mod=mod").env("GOPROXY", "off");
    // cgo goes by its flags, not by the library that they find.
    go.env("GOCACHE", cache("go-cache"));
    Some(go)
}

pub fn node() -> Option<Command> {
    if !found("node", "--version") {
        return missing("node", "node is not installed");
    }
    let modules = cache("node/node_modules");
    if !modules.join("koffi").exists() {
        return missing("node", "koffi is not installed; run `make tools`");
    }
    let mut node = command("node");
    node.env("NODE_PATH", modules);
    Some(node)
}

pub fn luajit() -> Option<Command> {
    if !found("luajit", "-v") {
        return missing("luajit", "luajit is not installed");
    }
    let mut luajit = command("luajit");
    luajit.env("LUA_PATH", format!("{}/?.lua;;", c::root().join("examples/luajit").display()));
    Some(luajit)
}

/// The compiler and the command that runs what it makes.
pub fn mono() -> Option<(Command, Command)> {
    if !found("mcs", "--version") || !found("mono", "--version") {
        return missing("csharp", "Mono (mcs and mono) is not installed");
    }
    Some((command("mcs"), command("mono")))
}

/// What a program compiles beside its own source.
pub const CSHARP_WRAPPER: [&str; 4] = [
    "examples/csharp/Qwen35.cs",
    "examples/csharp/Branches.cs",
    "examples/csharp/Conversation.cs",
    "examples/csharp/Native.cs",
];

/// The command that runs a program by the runtime of .NET. (Its compiler is Mono's: no registry
/// that the tests reach has the SDK.)
pub fn dotnet(program: &Path) -> Option<Command> {
    let runtime = cache("dotnet/dotnetcore2/bin/dotnet");
    if !runtime.exists() {
        return missing("csharp", ".NET is not installed; run `make tools`");
    }
    let configuration = r#"{"runtimeOptions": {
        "framework": {"name": "Microsoft.NETCore.App", "version": "3.1.0"},
        "configProperties": {"System.Globalization.Invariant": true}}}"#;
    std::fs::write(program.with_extension("runtimeconfig.json"), configuration).unwrap();
    let mut dotnet = command(runtime);
    dotnet.env("DOTNET_CLI_TELEMETRY_OPTOUT", "1").arg(program);
    Some(dotnet)
}

pub fn zig() -> Option<Command> {
    let zig = cache("zig/ziglang/zig");
    if !zig.exists() {
        return missing("zig", "zig is not installed; run `make tools`");
    }
    let mut zig = command(zig);
    zig.env("ZIG_GLOBAL_CACHE_DIR", cache("zig-cache"));
    zig.env("ZIG_LOCAL_CACHE_DIR", cache("zig-cache"));
    Some(zig)
}

/// What parses the Swift files named to it.
pub fn swift_parser() -> Option<Command> {
    let packages = cache("swift");
    if !packages.join("tree_sitter_swift").exists() {
        return missing("swift", "its parser is not installed; run `make tools`");
    }
    let mut python = python()?;
    python.arg("tests/languages/parse_swift.py").arg(packages).arg("include/qwen35.h");
    Some(python)
}

/// Builds a Zig program that imports the wrapper as `qwen35`.
pub fn zig_program(zig: &mut Command, source: &Path, program: &Path) {
    // Options hold for the module that follows them.
    zig.args(["build-exe", "-lc", "-lqwen35", "-Iinclude", "--dep", "qwen35"]);
    zig.arg(format!("-Mroot={}", source.display()));
    zig.args(["-lc", "-Iinclude", "-Mqwen35=examples/zig/qwen35.zig"]);
    zig.arg(format!("-L{}", c::library_folder().display()));
    c::succeed(zig.arg(format!("-femit-bin={}", program.display())));
}
