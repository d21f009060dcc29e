//! Building and running C and C++ programs against the library under test.
#![allow(dead_code)]

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The sources.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The folder with the `libqwen35.so` and `libqwen35.a` that cargo built for this test.
pub fn library_folder() -> PathBuf {
    let folder = std::env::current_exe().unwrap().parent().unwrap().to_owned();
    assert!(folder.join("libqwen35.so").exists(), "no libqwen35.so in {folder:?}");
    // The SONAME is what programs look for when they start.
    let name = folder.join("libqwen35.so.0");
    let _ = std::os::unix::fs::symlink("libqwen35.so", &name);
    assert!(name.exists(), "{name:?} cannot be made");
    folder
}

/// How a program gets the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    Shared,
    Static,
    /// Not at all: it compiles only, or opens the library itself.
    No,
}

/// A compiler on the path.
#[derive(Clone, Copy, Debug)]
pub struct Compiler(pub &'static str);

pub const WARNINGS: [&str; 4] = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"];

impl Compiler {
    pub fn exists(self) -> bool {
        Command::new(self.0).arg("--version").output().is_ok_and(|o| o.status.success())
    }

    /// Compiles `sources` (relative to the package) to a program called `name`. Fails on any
    /// warning.
    pub fn build(
        self,
        name: &str,
        standard: &str,
        sources: &[&str],
        more: &[&str],
        link: Link,
    ) -> PathBuf {
        let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!(
            "{name}-{}-{standard}-{link:?}-{}",
            self.0,
            std::process::id()
        ));
        let library = library_folder();
        let mut command = Command::new(self.0);
        command.arg(format!("-std={standard}")).args(WARNINGS).args(more).arg("-g");
        command.arg("-I").arg(root().join("include")).arg("-I").arg(root().join("examples"));
        command.args(sources.iter().map(|source| root().join(source)));
        command.arg("-o").arg(&program);
        match link {
            Link::Shared => {
                command.arg("-L").arg(&library).arg("-lqwen35");
                command.arg(format!("-Wl,-rpath,{}", library.display()));
            }
            Link::Static => {
                command.arg(library.join("libqwen35.a"));
            }
            Link::No => {}
        }
        command.args(["-lpthread", "-ldl", "-lm"]);
        succeed(&mut command);
        program
    }
}

/// Runs it and asserts that it exits with 0.
pub fn succeed(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    assert!(
        output.status.success(),
        "{command:?}: {}\n--- standard output\n{}\n--- standard error\n{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

/// Builds tests/c/NAME.c with the system's C compiler and runs it.
pub fn run_c(name: &str, link: Link, arguments: &[&dyn AsRef<OsStr>]) -> Output {
    let source = format!("tests/c/{name}.c");
    let program = Compiler("cc").build(name, "c11", &[&source], &["-Itests/c"], link);
    let output = succeed(Command::new(&program).args(arguments.iter().map(|a| a.as_ref())));
    let _ = std::fs::remove_file(program);
    output
}

/// Says, past the test harness's capture, that a test could not run here. In CI, where
/// everything is installed, that is a failure.
pub fn not_run(what: &str) {
    assert!(std::env::var_os("QWEN_CI").is_none(), "could not run in CI: {what}");
    cannot_run(what);
}

/// The same for what cannot be installed in CI either.
pub fn cannot_run(what: &str) {
    let _ = writeln!(std::io::stderr(), "NOT RUN: {what}");
    if let Some(path) = std::env::var_os("QWEN_NOT_RUN") {
        let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
        writeln!(file, "{what}").unwrap();
    }
}
