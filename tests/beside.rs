//! The library beside others in one process: hosts with signal handlers of their own, a program
//! in Rust with its own standard library. (Loading twice, threads, locale and fork are in
//! tests/capi.rs; llama.cpp's library is in tests/beside/run.sh, `make test-beside`.)

#[path = "support/c.rs"]
mod c;
#[path = "support/synthetic.rs"]
mod synthetic;
#[path = "support/temp.rs"]
mod temp;
#[path = "support/tiny_tokenizer.rs"]
mod tiny_tokenizer;
#[path = "support/toy.rs"]
mod toy;

use std::process::Command;

use c::{Compiler, Link, not_run, succeed};
use temp::TempDir;

#[test]
fn a_host_with_a_handler_for_faults() {
    let sources = ["tests/beside/segv.c"];
    let program = Compiler("cc").build("segv", "c11", &sources, &[], Link::Shared);
    succeed(Command::new(&program).arg(toy::model().path()));
    let _ = std::fs::remove_file(program);
}

#[test]
fn inside_the_jvm() {
    let there = |name: &str| Command::new(name).arg("-version").output().is_ok();
    // <java home>/include has jni.h; javac is a link into it.
    let home = Command::new("sh").args(["-c", "readlink -f \"$(command -v javac)\""]).output();
    let home = home.map(|o| String::from_utf8_lossy(&o.stdout).trim().to_owned());
    let home = home.unwrap_or_default().trim_end_matches("/bin/javac").to_owned();
    let include = std::path::PathBuf::from(home).join("include");
    if !there("java") || !there("javac") || !include.join("jni.h").exists() {
        return not_run("the library inside a JVM: no JDK is installed");
    }
    let (folder, model, library) = (TempDir::new(), toy::model(), c::library_folder());
    let shim = folder.join("libshim.so");
    let mut cc = Command::new("cc");
    cc.args(c::WARNINGS).args(["-shared", "-fPIC", "tests/beside/jvm.c", "-Iinclude", "-o"]);
    cc.arg(&shim).arg("-I").arg(&include).arg("-I").arg(include.join("linux"));
    cc.arg("-L").arg(&library).arg("-lqwen35").arg(format!("-Wl,-rpath,{}", library.display()));
    succeed(cc.current_dir(c::root()));
    let mut javac = Command::new("javac");
    javac.arg("-d").arg(folder.path()).arg("tests/beside/Jvm.java").current_dir(c::root());
    succeed(&mut javac);
    let mut java = Command::new("java");
    java.arg("-cp").arg(folder.path()).arg("Jvm").arg(shim).arg(model.path());
    assert_eq!(succeed(&mut java).stdout, b"ok\n");
}

#[test]
fn statically_in_a_rust_program() {
    if !Compiler("rustc").exists() {
        return not_run("the static library in a Rust program: rustc is not on the path");
    }
    let (folder, model) = (TempDir::new(), toy::model());
    // With the program's panics unwinding, optimised or not.
    for (name, optimise) in [("debug", "opt-level=0"), ("release", "opt-level=2")] {
        let program = folder.join(name);
        let mut rustc = Command::new("rustc");
        rustc.args(["--edition", "2024", "-C", optimise, "-l", "static=qwen35", "-L"]);
        rustc.arg(c::library_folder()).arg(c::root().join("tests/beside/host.rs"));
        succeed(rustc.arg("-o").arg(&program));
        let output = succeed(Command::new(&program).arg(model.path()));
        let said = String::from_utf8(output.stdout).unwrap();
        assert_eq!(said, "the hook of the program\nthe hook of the program\nok\n");
    }
}
