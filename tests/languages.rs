//! The folders of examples/ in other languages: each wrapper's own tests, and each chat program
//! with the demo model, where the toolchain is installed.

#[path = "support/c.rs"]
mod c;
#[path = "support/languages.rs"]
mod languages;
#[path = "support/synthetic.rs"]
mod synthetic;
#[path = "support/temp.rs"]
mod temp;
#[path = "support/tiny_tokenizer.rs"]
mod tiny_tokenizer;
#[path = "support/toy.rs"]
mod toy;

use std::io::Write;
use std::process::{Command, Stdio};

use c::{not_run, succeed};
use temp::TempDir;

const DEMO: &str = "examples/demo-model";

/// Talks with a chat program: it must remember, end its lines, and name what it cannot open.
fn talk(language: &str, program: &dyn Fn() -> Command) {
    let run = |model: &str, input: &str| {
        let mut command = program();
        command.args([model, "40", "0"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        child.wait_with_output().unwrap()
    };
    let output =
        run(DEMO, "My name is Ada.\nWhat is my name?\nA \"quote\", \u{e9}, \\, \u{1F469}\n");
    assert!(output.status.success(), "{language}: {output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3, "{language}: {text:?}");
    assert!(lines[1].contains("Ada"), "{language}: {text:?}");
    let output = run("/no/such/model", "");
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{language}: {error}");
    assert!(error.contains("/no/such/model"), "{language}: {error}");
}

/// Without the library a program that opens it at run time says what to do.
fn miss(language: &str, mut program: Command) {
    program.arg(DEMO).env_remove("LD_LIBRARY_PATH").stdin(Stdio::null());
    let output = program.output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{language}: {error}");
    for part in ["chat: ", "libqwen35.so", "make install", "LD_LIBRARY_PATH"] {
        assert!(error.contains(part), "{language}: {error}");
    }
}

#[test]
fn every_folder_has_three_lines_to_read() {
    for language in ["csharp", "go", "luajit", "node", "python", "swift", "zig"] {
        let file = c::root().join("examples").join(language).join("README.md");
        let text = std::fs::read_to_string(&file).unwrap();
        assert_eq!(text.lines().count(), 3, "{}", file.display());
    }
}

#[test]
fn python() {
    if languages::python().is_none() {
        return;
    }
    if let Some(mut mypy) = languages::mypy() {
        succeed(mypy.arg("examples/python/qwen35"));
    }
    let (model, slow) = (toy::model(), toy::slow_model());
    let mut command = languages::python().unwrap();
    command.arg("tests/languages/test_python.py").arg(model.path()).arg(slow.path());
    succeed(&mut command);
    let chat = || {
        let mut python = languages::python().unwrap();
        python.args(["-m", "qwen35"]);
        python
    };
    talk("python", &chat);
    miss("python", chat());
}

/// The wheel in an environment of its own, without the sources and without LD_LIBRARY_PATH.
#[test]
fn python_wheel() {
    let Some(mut python) = languages::python() else { return };
    let folder = TempDir::new();
    python.arg("examples/python/build_wheel.py").arg(c::library_folder().join("libqwen35.so"));
    let said = succeed(python.arg(folder.path())).stdout;
    let wheel = String::from_utf8(said).unwrap().trim().to_owned();
    assert!(wheel.contains("-py3-none-manylinux_2_") && wheel.ends_with("_x86_64.whl"), "{wheel}");
    let place = folder.join("venv");
    let made = Command::new("python3").args(["-m", "venv"]).arg(&place).output().unwrap();
    if !made.status.success() {
        return not_run("the Python wheel: python3 cannot make a venv");
    }
    let mut install = Command::new(place.join("bin/pip"));
    install.args(["install", "--quiet", "--no-index", "--disable-pip-version-check", &wheel]);
    succeed(&mut install);
    let (model, slow) = (toy::model(), toy::slow_model());
    let mut tests = Command::new(place.join("bin/python"));
    tests.arg(c::root().join("tests/languages/test_python.py")).arg(model.path()).arg(slow.path());
    tests.env_remove("LD_LIBRARY_PATH").env_remove("PYTHONPATH");
    succeed(tests.current_dir(folder.path()));
}

#[test]
fn go() {
    let Some(mut go) = languages::go() else { return };
    let (model, slow, folder) = (toy::model(), toy::slow_model(), TempDir::new());
    let sources = c::root().join("examples/go");
    go.args(["test", "-count=1", "./..."]).current_dir(&sources);
    succeed(go.env("QWEN35_MODEL", model.path()).env("QWEN35_SLOW_MODEL", slow.path()));
    succeed(languages::go().unwrap().args(["vet", "./..."]).current_dir(&sources));
    let chat = folder.join("chat");
    let mut build = languages::go().unwrap();
    succeed(build.args(["build", "-o"]).arg(&chat).arg("./chat").current_dir(&sources));
    talk("go", &|| languages::command(&chat));
}

#[test]
fn node() {
    let Some(mut node) = languages::node() else { return };
    let (model, slow, folder) = (toy::model(), toy::slow_model(), TempDir::new());
    node.arg("tests/languages/test_node.js").arg(model.path()).arg(slow.path());
    succeed(node.arg(folder.join("saved")));
    let chat = || {
        let mut node = languages::node().unwrap();
        node.arg("examples/node/chat.js");
        node
    };
    talk("node", &chat);
    miss("node", chat());
}

#[test]
fn luajit() {
    let Some(mut luajit) = languages::luajit() else { return };
    let (model, folder) = (toy::model(), TempDir::new());
    luajit.arg("tests/languages/test_luajit.lua").arg(model.path()).arg(folder.join("saved"));
    succeed(&mut luajit);
    let chat = || {
        let mut luajit = languages::luajit().unwrap();
        luajit.arg("examples/luajit/chat.lua");
        luajit
    };
    talk("luajit", &chat);
    miss("luajit", chat());
}

#[test]
fn csharp() {
    let Some((_, mut mono)) = languages::mono() else { return };
    let (model, slow, folder) = (toy::model(), toy::slow_model(), TempDir::new());
    let (chat, test) = (folder.join("chat.exe"), folder.join("test.exe"));
    for (source, program) in
        [("examples/csharp/Chat.cs", &chat), ("tests/languages/Test.cs", &test)]
    {
        let (mut mcs, _) = languages::mono().unwrap();
        mcs.args(["-unsafe", "-warnaserror", source]).args(languages::CSHARP_WRAPPER);
        succeed(mcs.arg(format!("-out:{}", program.display())));
    }
    succeed(mono.arg(&test).arg(model.path()).arg(slow.path()));
    let by_mono = || {
        let (_, mut mono) = languages::mono().unwrap();
        mono.arg(&chat);
        mono
    };
    talk("csharp, Mono", &by_mono);
    miss("csharp, Mono", by_mono());
    let Some(mut dotnet) = languages::dotnet(&test) else { return };
    succeed(dotnet.arg(model.path()).arg(slow.path()));
    talk("csharp, .NET", &|| languages::dotnet(&chat).unwrap());
    miss("csharp, .NET", languages::dotnet(&chat).unwrap());
}

#[test]
fn zig() {
    if languages::zig().is_none() {
        return;
    }
    let folder = TempDir::new();
    let program = |source: &str, name: &str| {
        let program = folder.join(name);
        let mut zig = languages::zig().unwrap();
        languages::zig_program(&mut zig, source.as_ref(), &program);
        program
    };
    let (model, test) = (toy::model(), program("tests/languages/test.zig", "test"));
    succeed(languages::command(test).arg(model.path()).arg(folder.join("saved")));
    let chat = program("examples/zig/chat.zig", "chat");
    talk("zig", &|| languages::command(&chat));
}

/// What can be checked of Swift without Swift.
#[test]
fn swift() {
    if !c::Compiler("clang").exists() {
        return not_run("examples/swift: neither swiftc nor clang is installed");
    }
    // Its importer is clang's: the constants and structs that the wrapper uses must be there.
    let folder = TempDir::new();
    let source = folder.join("names.m");
    let mut names = std::collections::BTreeSet::new();
    let sources: Vec<_> = std::fs::read_dir(c::root().join("examples/swift"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "swift"))
        .collect();
    assert!(sources.len() >= 5, "{sources:?}");
    for file in &sources {
        let text = std::fs::read_to_string(file).unwrap();
        // Without comments, which speak of groups of constants.
        let code = text.lines().map(|line| line.split("//").next().unwrap());
        let text = code.collect::<Vec<_>>().join("\n");
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let words = text.split(|c| !is_name(c)).map(str::to_owned);
        names.extend(words.filter(|w| w.starts_with("qwen_") || w.starts_with("QWEN_")));
    }
    assert!(names.len() > 60);
    let mut code = "@import Qwen35;\n".to_owned();
    for (i, name) in names.iter().enumerate() {
        let value = match name.starts_with("QWEN_") {
            true => format!("int constant{i} = {name};\n"),
            false => format!("__typeof__({name}) *pointer{i};\n"),
        };
        code += &value;
    }
    std::fs::write(&source, code).unwrap();
    let module = folder.join("module");
    std::fs::create_dir_all(module.join("qwen35")).unwrap();
    std::fs::copy(c::root().join("include/qwen35.h"), module.join("qwen35.h")).unwrap();
    let map = module.join("qwen35/module.modulemap");
    std::fs::copy(c::root().join("packaging/module.modulemap"), map).unwrap();
    let mut clang = languages::command("clang");
    clang.args(["-fmodules", "-fsyntax-only", "-Werror"]).arg(&source);
    clang.arg(format!("-fmodules-cache-path={}", folder.join("cache").display()));
    succeed(clang.arg("-I").arg(module.join("qwen35")));
    // Its syntax, by a grammar that is not the compiler's.
    if let Some(mut parser) = languages::swift_parser() {
        succeed(parser.args(&sources));
    }
    // In CI too there is no Swift: that is said, and no failure.
    c::cannot_run("examples/swift: no Swift compiler where the tests run; the rest was checked");
}
