//! `make install`, `make uninstall` and `make dist`: what is installed is complete, can be moved,
//! and is found by pkg-config and CMake, shared and static, with gcc and clang.
//!
//! The library is the one in build/ when `make test` runs this, else the one cargo built for it.

#[path = "support/c.rs"]
mod c;
#[path = "support/temp.rs"]
mod temp;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use c::{Compiler, not_run, succeed};
use temp::TempDir;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// C compiler, C++ compiler, way of linking, and the standards of the two languages.
const WAYS: [(&str, &str, &str, &str, &str); 4] = [
    ("gcc", "g++", "shared", "99", "17"),
    ("gcc", "g++", "static", "11", "20"),
    ("clang", "clang++", "shared", "17", "20"),
    ("clang", "clang++", "static", "99", "17"),
];

/// A command that sees nothing of the make and the cargo that run this test. LD_LIBRARY_PATH of
/// `cargo test` would go before what a program records.
fn command(name: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(name);
    for variable in ["MAKEFLAGS", "MFLAGS", "MAKELEVEL", "LD_LIBRARY_PATH", "PREFIX", "DESTDIR"] {
        command.env_remove(variable);
    }
    command.current_dir(c::root());
    command
}

fn output(command: &mut Command) -> String {
    String::from_utf8(succeed(command).stdout).unwrap()
}

fn exists(tool: &str) -> bool {
    Command::new(tool).arg("--version").output().is_ok_and(|o| o.status.success())
}

fn demo() -> PathBuf {
    c::root().join("examples/demo-model")
}

/// A folder as `make` leaves it in build/, with the library that is there already.
fn build_folder() -> TempDir {
    let folder = TempDir::new();
    let made = std::env::var_os("QWEN_BUILD").map(PathBuf::from).unwrap_or_else(c::library_folder);
    for name in ["libqwen35.so.0", "libqwen35.a"] {
        symlink(made.join(name).canonicalize().unwrap(), folder.join(name)).unwrap();
    }
    folder
}

/// `make TARGET`, taking the library as it is.
fn make(build: &TempDir, target: &str, variables: &[String]) -> Command {
    let mut command = command("make");
    command.args(["-s", "-o", "library", target]).args(variables);
    command.arg(format!("BUILD={}", build.path().display()));
    command
}

/// Every file below `folder`, relative to it.
fn files(folder: &Path) -> BTreeSet<String> {
    let (mut found, mut open) = (BTreeSet::new(), vec![folder.to_owned()]);
    while let Some(next) = open.pop() {
        for entry in std::fs::read_dir(&next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.is_symlink() {
                open.push(path);
            } else {
                found.insert(path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned());
            }
        }
    }
    found
}

/// The shared libraries that a program asks for.
fn needed(program: &Path) -> String {
    let text = output(command("readelf").args(["-d", "-W"]).arg(program));
    text.lines().filter(|line| line.contains("(NEEDED)")).collect()
}

/// Runs a program with `input` in a pipe; it must succeed.
fn run(program: &Path, library: Option<&Path>, arguments: &[&str], input: &str) -> String {
    let mut command = command(program);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.envs(library.map(|folder| ("LD_LIBRARY_PATH", folder)));
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Runs those of the example programs that are in `folder`.
fn run_examples(folder: &Path, link: &str, library: Option<&Path>) {
    let demo = demo();
    let demo = demo.to_str().unwrap();
    let runs: [(&str, &[&str], &str); 6] = [
        ("hello", &[demo], ""),
        ("chat", &[demo, "4", "0", "1"], "Hello!\n"),
        ("qwen", &["--model", demo, "Hello!", "4"], ""),
        ("qwen-ids", &[demo, "1,2,3", "2"], ""),
        ("qwen-tokenize", &[demo], "Hello!"),
        ("qwen-pack", &["--info", demo, "2048"], ""),
    ];
    let mut count = 0;
    for (name, arguments, input) in runs {
        let program = folder.join(name);
        if program.exists() {
            let needed = needed(&program);
            assert_eq!(needed.contains("[libqwen35.so.0]"), link == "shared", "{needed}");
            assert!(needed.contains("libqwen35") == (link == "shared"), "{needed}");
            let text = run(&program, library, arguments, input);
            assert!(text.trim().len() > 1, "{name}: {text:?}");
            count += 1;
        }
    }
    let saved = folder.join("saved-session");
    // The small programs; tests/examples.rs looks at what they say.
    for language in ["c", "cpp"] {
        let Ok(programs) = std::fs::read_dir(folder.join(language)) else { continue };
        for program in programs {
            let program = program.unwrap().path();
            let needed = needed(&program);
            assert_eq!(needed.contains("[libqwen35.so.0]"), link == "shared", "{needed}");
            let mut arguments = vec![demo];
            // What they cannot do without.
            match program.file_name().and_then(|name| name.to_str()) {
                Some("rank") => arguments.push("Hello!"),
                Some("save") => arguments.push(saved.to_str().unwrap()),
                Some("words") => arguments.extend(["Hello!", "xyz"]),
                _ => {}
            }
            assert!(run(&program, library, &arguments, "").trim().len() > 1, "{program:?}");
            count += 1;
        }
    }
    assert!(count >= 2, "no programs in {folder:?}");
}

/// The small programs of examples/c or examples/cpp, by name.
fn small_programs(language: &str) -> Vec<String> {
    let folder = std::fs::read_dir(c::root().join("examples").join(language)).unwrap();
    let names = folder.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let suffix = format!(".{language}");
    let names: Vec<String> =
        names.filter_map(|name| name.strip_suffix(&suffix).map(str::to_owned)).collect();
    assert!(names.len() > 3, "{names:?}");
    names
}

/// The compilers that are here, with how each links and what language it is asked for.
fn ways() -> Vec<(&'static str, &'static str, &'static str, &'static str, &'static str)> {
    let mut found = Vec::new();
    for way in WAYS {
        if Compiler(way.0).exists() && Compiler(way.1).exists() {
            found.push(way);
        } else {
            not_run(&format!("the installed library with {} and {}: not installed", way.0, way.1));
        }
    }
    found
}

/// Arguments that pkg-config gives.
fn pkg_config(prefix: &Path, arguments: &[&str]) -> Vec<String> {
    let mut command = command("pkg-config");
    command.env_remove("PKG_CONFIG_PATH").env("PKG_CONFIG_LIBDIR", prefix.join("lib/pkgconfig"));
    output(command.args(arguments)).split_whitespace().map(str::to_owned).collect()
}

fn use_with_pkg_config(prefix: &Path) {
    if !exists("pkg-config") {
        return not_run("the installed library with pkg-config: not installed");
    }
    for module in ["qwen35", "qwen35-static"] {
        assert_eq!(pkg_config(prefix, &["--modversion", module]), [VERSION]);
    }
    let examples = c::root().join("examples");
    let compile = |compiler: &str, standard: &str, program: &Path, more: &[String]| {
        let name = program.file_name().unwrap().to_str().unwrap();
        let extension = if name == "chat" { "cpp" } else { "c" };
        let mut command = command(compiler);
        command.arg(format!("-std={standard}")).args(c::WARNINGS);
        command.arg(examples.join(format!("{name}.{extension}")));
        if name.starts_with("qwen") {
            command.arg(examples.join("host.c"));
        }
        succeed(command.arg("-o").arg(program).args(more));
    };
    for (cc, cxx, link, c_standard, cxx_standard) in ways() {
        let folder = TempDir::new();
        let module = if link == "shared" { "qwen35" } else { "qwen35-static" };
        let flags = pkg_config(prefix, &["--cflags", "--libs", module]);
        for name in ["hello", "qwen", "qwen-ids", "qwen-tokenize", "qwen-pack"] {
            compile(cc, &format!("c{c_standard}"), &folder.join(name), &flags);
        }
        compile(cxx, &format!("c++{cxx_standard}"), &folder.join("chat"), &flags);
        for (language, compiler, standard) in
            [("c", cc, format!("c{c_standard}")), ("cpp", cxx, format!("c++{cxx_standard}"))]
        {
            std::fs::create_dir(folder.join(language)).unwrap();
            for name in small_programs(language) {
                let mut command = command(compiler);
                command.arg(format!("-std={standard}")).args(c::WARNINGS);
                command.arg(examples.join(language).join(format!("{name}.{language}")));
                command.arg("-o").arg(folder.join(language).join(&name)).args(&flags);
                succeed(command.args(["-lpthread", "-lm"]));
            }
        }
        let library = prefix.join("lib");
        run_examples(folder.path(), link, (link == "shared").then_some(&library));
    }
    // Every standard. C++ before 17 uses the C header: hello.c is a C++ program as well.
    for (cc, cxx, link, ..) in ways() {
        let folder = TempDir::new();
        let module = if link == "shared" { "qwen35" } else { "qwen35-static" };
        let flags = pkg_config(prefix, &["--cflags", "--libs", module]);
        for standard in ["c99", "c11", "c17", "c++11", "c++14", "c++17", "c++20"] {
            let (compiler, language) =
                if standard.contains("++") { (cxx, "c++") } else { (cc, "c") };
            let mut command = command(compiler);
            command.args(["-x", language, &format!("-std={standard}")]).args(c::WARNINGS);
            command.arg(examples.join("hello.c")).args(["-x", "none", "-o"]);
            succeed(command.arg(folder.join("hello")).args(&flags));
            let library = (link == "shared").then(|| prefix.join("lib"));
            let demo = demo();
            run(&folder.join("hello"), library.as_deref(), &[demo.to_str().unwrap()], "");
        }
    }
    // The libraries named are all that is needed beside the C library and its unwinder.
    let folder = TempDir::new();
    let mut flags = pkg_config(prefix, &["--cflags", "--libs", "qwen35-static"]);
    flags.extend(["-nodefaultlibs", "-lgcc_s", "-lc"].map(str::to_owned));
    compile("cc", "c11", &folder.join("hello"), &flags);
    // A program without any shared library. (glibc warns of its own resolver.)
    let mut flags = pkg_config(prefix, &["--static", "--cflags", "--libs", "qwen35"]);
    flags.push("-static".to_owned());
    compile("cc", "c11", &folder.join("qwen-ids"), &flags);
    assert_eq!(needed(&folder.join("qwen-ids")), "");
    run_examples(folder.path(), "static", None);
}

/// Builds tests/c/install/ with CMake and runs what comes out.
fn with_cmake(
    how: &str,
    (cc, cxx, link, c_standard, cxx_standard): (&str, &str, &str, &str, &str),
    more: &[String],
) {
    let folder = TempDir::new();
    let mut configure = command("cmake");
    configure.arg("-S").arg(c::root().join("tests/c/install")).arg("-B").arg(folder.path());
    configure.arg(format!("-DSOURCES={}", c::root().display())).args(more);
    configure.args([
        format!("-DHOW={how}"),
        format!("-DLINK={link}"),
        format!("-DCMAKE_C_COMPILER={cc}"),
        format!("-DCMAKE_CXX_COMPILER={cxx}"),
        format!("-DCMAKE_C_STANDARD={c_standard}"),
        format!("-DCMAKE_CXX_STANDARD={cxx_standard}"),
    ]);
    succeed(&mut configure);
    succeed(command("cmake").arg("--build").arg(folder.path()));
    run_examples(folder.path(), link, None);
}

fn use_with_cmake(prefix: &Path) {
    if !exists("cmake") {
        return not_run("the installed library with CMake: not installed");
    }
    let prefix = format!("-DCMAKE_PREFIX_PATH={}", prefix.display());
    for way in ways() {
        with_cmake("package", way, std::slice::from_ref(&prefix));
    }
}

/// What is installed, relative to the prefix.
fn expected_files() -> BTreeSet<String> {
    let mut names: BTreeSet<String> = [
        "bin/qwen",
        "lib/libqwen35.so",
        "lib/libqwen35.so.0",
        "lib/libqwen35.a",
        "lib/pkgconfig/qwen35.pc",
        "lib/pkgconfig/qwen35-static.pc",
        "lib/cmake/qwen35/qwen35Config.cmake",
        "lib/cmake/qwen35/qwen35ConfigVersion.cmake",
        "include/qwen35.h",
        "include/qwen35.hpp",
        "include/qwen35/module.modulemap",
        "share/man/man1/qwen.1",
        "share/doc/qwen35/README.md",
        "share/doc/qwen35/LICENSE",
        "share/doc/qwen35/third-party-licenses.txt",
    ]
    .map(str::to_owned)
    .into();
    names.insert(format!("lib/libqwen35.so.{VERSION}"));
    names
}

#[test]
fn installed_moved_used_and_uninstalled() {
    let (build, place) = (build_folder(), TempDir::new());
    let stage = format!("DESTDIR={}", place.path().display());
    succeed(&mut make(&build, "install", &[stage, "PREFIX=/opt/qwen".to_owned()]));

    let installed = place.join("opt/qwen");
    let mut found = files(&installed);
    // Toolchains without documentation do not bring this one.
    found.remove("share/doc/qwen35/rust-standard-library.html");
    assert_eq!(found, expected_files());
    let outside = files(place.path()).into_iter().find(|name| !name.starts_with("opt/qwen/"));
    assert_eq!(outside, None, "installed outside the prefix");
    let target = |name: &str| std::fs::read_link(installed.join("lib").join(name)).unwrap();
    assert_eq!(target("libqwen35.so"), Path::new("libqwen35.so.0"));
    assert_eq!(target("libqwen35.so.0"), Path::new(&format!("libqwen35.so.{VERSION}")));
    for name in found.iter().filter(|name| name.contains("pkgconfig") || name.contains("cmake")) {
        let text = std::fs::read_to_string(installed.join(name)).unwrap();
        assert!(!text.contains("/opt") && !text.contains('@'), "{name}:\n{text}");
    }

    let moved = place.join("moved");
    std::fs::rename(&installed, &moved).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| use_with_pkg_config(&moved));
        scope.spawn(|| use_with_cmake(&moved));
    });
    let demo = demo();
    let arguments = ["--model", demo.to_str().unwrap(), "Hello!", "4"];
    assert!(run(&moved.join("bin/qwen"), None, &arguments, "").len() > 1);
    module_map(&moved);

    // Uninstalling takes what was installed and nothing else.
    std::fs::write(moved.join("include/other.h"), "").unwrap();
    let prefix = format!("PREFIX={}", moved.display());
    succeed(&mut make(&build, "uninstall", &[prefix]));
    assert_eq!(files(&moved), ["include/other.h".to_owned()].into());
    for own in ["lib/cmake/qwen35", "include/qwen35", "share/doc/qwen35"] {
        assert!(!moved.join(own).exists(), "{own} is left");
    }
}

/// clang reads the module map. (Swift itself is not run.)
fn module_map(prefix: &Path) {
    if !exists("clang") {
        return not_run("the module map: clang is not installed");
    }
    let folder = TempDir::new();
    let source = folder.join("import.m");
    let code =
        "@import Qwen35;\nint main(void) { return qwen_abi_version() != QWEN_ABI_VERSION; }\n";
    std::fs::write(&source, code).unwrap();
    let mut command = command("clang");
    command.args(["-fmodules", "-fsyntax-only", "-Werror"]).arg(&source);
    command.arg(format!("-fmodules-cache-path={}", folder.join("cache").display()));
    succeed(command.arg("-I").arg(prefix.join("include/qwen35")));
}

#[test]
fn a_prefix_must_be_absolute() {
    let build = build_folder();
    for target in ["uninstall", "install"] {
        let output = make(&build, target, &["PREFIX=some/where".to_owned()]).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success());
        assert!(text.contains("PREFIX must be an absolute path, it is \"some/where\""), "{text}");
    }
}

/// Library folders of distributions with several architectures.
#[test]
fn other_folders() {
    if !exists("pkg-config") {
        return not_run("other installation folders: pkg-config is not installed");
    }
    let (build, place) = (build_folder(), TempDir::new());
    let prefix = format!("PREFIX={}", place.path().display());
    let library = place.join("lib/x86_64-linux-gnu");
    let variables = [prefix, format!("LIBDIR={}", library.display()), "STRIP=".to_owned()];
    succeed(&mut make(&build, "install", &variables));
    let mut command = command("pkg-config");
    command.env("PKG_CONFIG_LIBDIR", library.join("pkgconfig"));
    command.args(["--variable=includedir", "qwen35"]);
    let include = PathBuf::from(output(&mut command).trim());
    assert_eq!(include.canonicalize().unwrap(), place.join("include").canonicalize().unwrap());
    succeed(&mut make(&build, "uninstall", &variables));
    assert!(files(place.path()).is_empty(), "{:?}", files(place.path()));
}

#[test]
fn sources_in_a_cmake_project() {
    if std::env::var_os("QWEN_BUILD").is_none() {
        // It builds the release library, which only `make test` has done already.
        return not_run("add_subdirectory and FetchContent: run by `make test` only");
    }
    if !exists("cmake") {
        return not_run("add_subdirectory and FetchContent: CMake is not installed");
    }
    let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or("target".into());
    let target = c::root().join(target);
    let more = [format!("-DQWEN35_CARGO_TARGET_DIR={}", target.display())];
    with_cmake("subdirectory", ("cc", "c++", "shared", "11", "17"), &more);
    with_cmake("fetch", ("cc", "c++", "static", "11", "17"), &more);
}

#[test]
fn an_archive_for_other_machines() {
    let (build, place) = (build_folder(), TempDir::new());
    let zig = languages_cache("zig/ziglang/zig");
    if !zig.exists() {
        not_run("an archive for an old glibc: Zig is not installed; run `make tools`");
    }
    let cache = languages_cache("zig-cache");
    let mut dist = make(&build, "dist", &[]);
    dist.env("ZIG_GLOBAL_CACHE_DIR", &cache).env("ZIG_LOCAL_CACHE_DIR", &cache);
    let said = output(&mut dist);
    let glibc = said.split("needs glibc ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap();
    let name = format!("libqwen35-{VERSION}-x86_64-linux-gnu");
    let archive = build.join(format!("{name}.tar.gz"));
    succeed(command("tar").arg("-xzf").arg(&archive).arg("-C").arg(place.path()));
    let folder = place.join(&name);
    let found = files(&folder);
    for expected in expected_files() {
        assert!(found.contains(&expected), "{expected} is not in the archive");
    }
    for model in ["config.json", "model.safetensors", "tokenizer.json"] {
        assert!(found.contains(&format!("examples/demo-model/{model}")), "{model}");
    }
    let readme = std::fs::read_to_string(folder.join("README.txt")).unwrap();
    assert!(readme.contains(&format!("with glibc {glibc} or newer")), "{glibc}: {readme}");
    // That is so of every file, and the oldest that Rust's own library runs on.
    let mut code: Vec<PathBuf> = ["qwen", "qwen-ids", "qwen-tokenize", "qwen-pack"]
        .map(|n| folder.join("bin").join(n))
        .into();
    let library = folder.join("lib").join(format!("libqwen35.so.{VERSION}"));
    code.push(library.clone());
    for file in &code {
        let asked = newest_glibc(file);
        let stated = version(glibc);
        assert!(asked <= stated, "{file:?} asks for glibc {asked:?}, {stated:?} is stated");
        assert!(!zig.exists() || stated <= (2, 17), "made with Zig for glibc {stated:?}");
    }
    for text in ["zig-license.txt", "llvm-libunwind-license.txt"] {
        assert_eq!(found.contains(&format!("share/doc/qwen35/{text}")), zig.exists(), "{text}");
    }
    // Linked anew, the library is what it was: its symbols, its flags.
    let symbols = output(command("nm").args(["-D", "--defined-only", "-f", "posix"]).arg(&library));
    let mut symbols: Vec<&str> =
        symbols.lines().map(|line| line.split([' ', '@']).next().unwrap()).collect();
    symbols.sort_unstable();
    let listed = std::fs::read_to_string(c::root().join("tests/c/symbols.txt")).unwrap();
    assert_eq!(symbols, listed.lines().collect::<Vec<_>>());
    let flags = output(command("readelf").args(["-dlW"]).arg(&library));
    assert!(flags.contains("[libqwen35.so.0]") && flags.contains("NODELETE"), "{flags}");
    assert!(flags.contains("BIND_NOW") && flags.contains("GNU_RELRO"), "{flags}");
    assert!(!flags.contains("TEXTREL") && !flags.contains("RWE"), "{flags}");
    // Programs can be made of it, shared and static.
    for (name, module) in [("shared", "qwen35"), ("static", "qwen35-static")] {
        if !exists("pkg-config") {
            not_run("programs with the archive: pkg-config is not installed");
            break;
        }
        let program = place.join(name);
        let mut cc = command("cc");
        cc.arg(folder.join("examples/hello.c")).arg("-o").arg(&program);
        succeed(cc.args(pkg_config(&folder, &["--cflags", "--libs", module])));
        let demo = folder.join("examples/demo-model");
        run(&program, Some(&folder.join("lib")), &[demo.to_str().unwrap()], "");
    }
    // As its README says, from its own folder, with nothing of this one.
    let mut chat = command(folder.join("bin/qwen"));
    chat.args(["--chat", "4", "0", "1"]).current_dir(&folder).stdin(Stdio::null());
    succeed(&mut chat);
    for host in ["qwen-ids", "qwen-tokenize", "qwen-pack"] {
        succeed(command(folder.join("bin").join(host)).arg("--help"));
    }
    // Without Zig the files are those of this machine.
    succeed(&mut make(&build, "portable", &["ZIG=".to_owned()]));
    let (one, other) = (build.join("portable/libqwen35.so.0"), build.join("libqwen35.so.0"));
    assert!(std::fs::read(one).unwrap() == std::fs::read(other).unwrap());
}

/// What `make tools` installed.
fn languages_cache(name: &str) -> PathBuf {
    c::root().join("tests/.cache/languages").join(name)
}

fn version(text: &str) -> (u32, u32) {
    let mut numbers = text.split('.').map(|part| part.parse().unwrap());
    (numbers.next().unwrap(), numbers.next().unwrap_or(0))
}

/// The newest symbol version of glibc that a file asks for.
fn newest_glibc(file: &Path) -> (u32, u32) {
    let text = output(command("objdump").arg("-T").arg(file));
    let found = text.split("GLIBC_").skip(1).filter_map(|rest| {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        rest[..end].contains('.').then(|| version(&rest[..end]))
    });
    found.max().unwrap()
}

#[test]
fn the_man_page_has_every_option() {
    let page = std::fs::read_to_string(c::root().join("packaging/qwen.1.in")).unwrap();
    let page = page.replace("\\-", "-");
    let source = std::fs::read_to_string(c::root().join("examples/qwen.c")).unwrap();
    let help = source.split("static const char help[]").nth(1).unwrap();
    let help = help.split("\";\n\n").next().unwrap();
    let is_option = |word: &&str| word.starts_with("--");
    let options: BTreeSet<&str> =
        help.split(|c: char| !c.is_ascii_alphanumeric() && c != '-').filter(is_option).collect();
    assert!(options.len() > 10, "{options:?}");
    for option in options {
        assert!(page.contains(option), "{option} of qwen --help is not in packaging/qwen.1.in");
    }
    if !exists("groff") {
        return not_run("the layout of the man page: groff is not installed");
    }
    let mut command = command("groff");
    command.args(["-man", "-ww", "-z", "-Tutf8", "packaging/qwen.1.in"]);
    let said = succeed(&mut command);
    assert!(said.stderr.is_empty(), "{}", String::from_utf8_lossy(&said.stderr));
}
