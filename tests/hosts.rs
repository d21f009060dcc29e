//! The programs of examples/ as a person runs them: in pipes, in a terminal, on an old CPU.

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

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

use c::{Compiler, Link, not_run, succeed};
use temp::TempDir;

const DEMO: &str = "examples/demo-model";

/// A program of examples/, built against the library under test.
fn host(name: &str) -> PathBuf {
    static HOSTS: OnceLock<Vec<(&str, PathBuf)>> = OnceLock::new();
    let build = |name: &'static str| {
        let source = format!("examples/{name}.c");
        let sources = [&*source, "examples/host.c"];
        (name, Compiler("cc").build(name, "c11", &sources, &[], Link::Shared))
    };
    let hosts = HOSTS.get_or_init(|| {
        let chat = ["examples/chat.cpp"];
        let chat = Compiler("c++").build("chat", "c++17", &chat, &[], Link::Shared);
        let mut all: Vec<_> = ["qwen", "qwen-ids", "qwen-tokenize", "qwen-pack"].map(build).into();
        all.push(("chat", chat));
        all
    });
    hosts.iter().find(|(known, _)| *known == name).unwrap().1.clone()
}

/// Runs a host in the package's folder with `input` in a pipe.
fn run(name: &str, arguments: &[&str], input: &[u8]) -> Output {
    let mut command = Command::new(host(name));
    command.args(arguments).current_dir(c::root());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // A program that refuses its arguments may be gone before it reads.
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The standard output of a run that must succeed.
fn answer(name: &str, arguments: &[&str], input: &[u8]) -> String {
    let output = run(name, arguments, input);
    assert!(output.status.success(), "{name} {arguments:?}: {output:?}");
    text(&output.stdout)
}

/// Asserts that a run fails with `status` and says `part` on standard error, and nothing else.
fn refused(name: &str, arguments: &[&str], input: &[u8], status: i32, part: &str) {
    let output = run(name, arguments, input);
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{name} {arguments:?}: {error}");
    assert!(error.contains(part), "{name} {arguments:?}: {part:?} is not in {error:?}");
    assert!(output.stdout.is_empty(), "{name} {arguments:?}: {output:?}");
}

fn path(folder: &TempDir) -> String {
    folder.path().to_str().unwrap().to_owned()
}

#[test]
fn help_and_wrong_arguments() {
    for name in ["qwen", "qwen-ids", "qwen-tokenize", "qwen-pack", "chat"] {
        let help = answer(name, &["--help"], b"");
        assert!(help.starts_with(&format!("usage: {name} ")), "{help}");
        assert_eq!(answer(name, &["-h"], b""), help);
        refused(name, &["--nonsense"], b"", 2, "--nonsense");
    }
    refused("qwen", &[], b"", 2, "usage:");
    refused("qwen", &[DEMO], b"", 2, "is a model; what to answer is missing");
    refused("qwen", &["Hi", "0"], b"", 2, "N must be a whole number");
    refused("qwen", &["Hi", "1", "2"], b"", 1, "cannot open the model \"Hi\"");
    refused("qwen", &["--sample", "Hi", "5", "201"], b"", 2, "T must be");
    refused("qwen", &["--sample", "Hi", "5", "20", "101"], b"", 2, "K must be");
    refused("qwen", &["--chat", "5", "20", "0"], b"", 2, "K must be");
    refused("qwen", &["--chat", "5", "20", "1", "9"], b"", 2, "too many");
    refused("qwen", &["--temperature", "nan", "Hi"], b"", 2, "--temperature must be");
    refused("qwen", &["--temperature"], b"", 2, "needs a value");
    refused("qwen", &["--raw", "--chat"], b"", 2, "--raw");
    refused("qwen", &["/no/such/model", "Hi"], b"", 1, "/no/such/model");
    refused("qwen", &["--model", "/no/such/model", "--chat"], b"", 1, "/no/such/model");
    refused("qwen-ids", &[DEMO, "1,x", "3"], b"", 2, "\"x\"");
    refused("qwen-ids", &[DEMO, "1,2", "-3"], b"", 2, "N must be");
    refused("qwen-ids", &[DEMO, "1,999999", "3"], b"", 1, "999999");
    refused("qwen-ids", &[DEMO, "1", "3", "--isa", "mmx"], b"", 2, "--isa");
    refused("qwen-tokenize", &[], b"", 2, "usage:");
    refused("chat", &["1", "2", "3", "4"], b"", 2, "too many");
}

#[test]
fn a_full_disk_and_closed_streams_are_failures() {
    let failing = |name: &str, redirection: &str, arguments: &str, part: &str| {
        let line = format!("exec {} {arguments} {redirection}", host(name).display());
        let mut shell = Command::new("sh");
        shell.args(["-c", &line]).current_dir(c::root());
        let output = shell.output().unwrap();
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{line}: {error}");
        assert!(error.contains(part), "{line}: {error}");
    };
    let folder = TempDir::new();
    let ids = folder.join("ids");
    std::fs::write(&ids, "300 ".repeat(100_000)).unwrap();
    let full = "cannot write to standard output";
    for name in ["qwen", "qwen-ids", "qwen-tokenize", "qwen-pack", "chat"] {
        failing(name, "> /dev/full", "--help", full);
    }
    // What does not fit into the buffers fails before the last flush.
    failing(
        "qwen-tokenize",
        &format!("< {} > /dev/full", ids.display()),
        "examples/demo-model",
        full,
    );
    let decode = "examples/demo-model --decode";
    failing("qwen-tokenize", &format!("< {} > /dev/full", ids.display()), decode, full);
    failing("qwen", "> /dev/full", "examples/demo-model Hi 3", full);
    for (name, arguments) in [("qwen", "--chat"), ("chat", ""), ("qwen-tokenize", DEMO)] {
        failing(name, "<&-", arguments, "cannot read standard input");
    }
}

#[test]
fn a_model_is_packed_checked_and_used() {
    let folder = TempDir::new();
    let file = folder.join("demo.qwen");
    let file = file.to_str().unwrap();
    refused("qwen-pack", &[DEMO], b"", 2, "usage:");
    refused("qwen-pack", &["--verify", DEMO], b"", 1, "not a regular file");
    refused("qwen-pack", &["/no/such", file], b"", 1, "/no/such");
    assert_eq!(answer("qwen-pack", &[DEMO, file], b""), "");
    assert_eq!(answer("qwen-pack", &["--verify", file], b""), "");
    let info = answer("qwen-pack", &["--info", file, "100"], b"");
    assert!(info.contains("with 100 tokens"), "{info}");
    let question = "What is the capital of France?";
    let ask = |model: &str| answer("qwen", &["--model", model, question, "12"], b"");
    assert_eq!(ask(file), ask(DEMO));
    let ids = |model: &str| answer("qwen-ids", &[model, "1,2,3", "4"], b"");
    assert_eq!(ids(file), ids(DEMO));
    let mut bytes = std::fs::read(file).unwrap();
    bytes.truncate(bytes.len() - 1);
    std::fs::write(file, bytes).unwrap();
    refused("qwen-pack", &["--verify", file], b"", 1, "cut off");
    refused("qwen", &["--model", file, "Hi"], b"", 1, "cut off");
}

#[test]
fn weights_are_quantized_at_open_and_computed_exactly() {
    let question = "What is the capital of France?";
    let ask = |more: &[&str]| {
        answer("qwen", &[&["--model", DEMO], more, &[question, "12"][..]].concat(), b"")
    };
    let stored = ask(&[]);
    assert_eq!(ask(&["--weights", "bf16", "--compute", "exact"]), stored);
    // Small weights answer too; exact or fast, a run is repeatable.
    for weights in ["int8", "int4"] {
        for compute in ["exact", "fast"] {
            let arguments = ["--weights", weights, "--compute", compute];
            let said = ask(&arguments);
            assert!(said.trim().len() > 1, "{arguments:?}: {said:?}");
            assert_eq!(ask(&arguments), said, "{arguments:?}");
        }
        assert_eq!(ask(&["--weights", weights]), ask(&["--weights", weights, "--compute", "fast"]));
    }
    refused("qwen", &["--weights", "int5", "Hi"], b"", 2, "--weights");
    refused("qwen", &["--compute", "roughly", "Hi"], b"", 2, "--compute");
    // A packed file with small weights is small, answers the same, and stays what it is.
    let folder = TempDir::new();
    let file = folder.join("small.qwen");
    let file = file.to_str().unwrap();
    answer("qwen-pack", &["--weights", "int4", DEMO, file], b"");
    let size = |path: &Path| std::fs::metadata(path).unwrap().len();
    let whole = size(&c::root().join(DEMO).join("model.safetensors"));
    assert!(size(Path::new(file)) < whole / 3);
    let packed = answer("qwen", &["--model", file, question, "12"], b"");
    assert_eq!(packed, ask(&["--weights", "int4"]));
    refused("qwen", &["--model", file, "--weights", "int8", "Hi"], b"", 1, "holds int4 weights");
}

#[test]
fn text_must_be_utf8() {
    use std::os::unix::ffi::OsStrExt;
    let bad = std::ffi::OsStr::from_bytes(b"ab\xFF");
    let mut command = Command::new(host("qwen"));
    let output = command.args([DEMO.as_ref(), bad]).current_dir(c::root()).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(text(&output.stderr).contains("not UTF-8: invalid at byte 2"), "{output:?}");
    refused("qwen", &[DEMO, "--chat"], b"ab\xFF\n", 1, "not UTF-8: invalid at byte 2");
    refused("chat", &[DEMO], b"ab\xFF\n", 1, "not UTF-8");
    refused("qwen-tokenize", &[DEMO], b"\xF0\x9F", 1, "not UTF-8: cut off at byte 0");
    refused("qwen-tokenize", &[DEMO, "--chat"], b"[\"\xFF\"]", 1, "not UTF-8");
    refused("qwen-tokenize", &[DEMO, "--chat"], b"[", 1, "conversation");
    refused("qwen-tokenize", &[DEMO, "--decode"], b"1 two", 2, "\"two\"");
}

#[test]
fn one_answer() {
    let folder = toy::model();
    let model = path(&folder);
    let greedy = answer("qwen", &[&model, "hello", "12"], b"");
    assert!(greedy.ends_with('\n') && greedy.len() > 1, "{greedy:?}");
    // The same, said in other ways.
    for arguments in [
        vec!["--model", &model, "hello", "12"],
        vec!["--model", &model, "--max-tokens", "12", "--", "hello"],
        vec!["hello", "--temperature", "0", "--max-tokens", "12", "--model", &model],
        vec![&model, "--sample", "hello", "12", "0", "1"],
        vec![&model, "--sample", "hello", "12", "70", "1"],
        vec![&model, "hello", "12", "--threads", "1", "--stats"],
    ] {
        assert_eq!(answer("qwen", &arguments, b""), greedy, "{arguments:?}");
    }
    assert_ne!(answer("qwen", &[&model, "--raw", "hello", "12"], b""), greedy);
    assert_ne!(answer("qwen", &[&model, "--system", "Be brief.", "hello", "12"], b""), greedy);
    // A seed makes chance repeatable.
    let drawn = |seed| answer("qwen", &[&model, "--sample", "hello", "20", "--seed", seed], b"");
    assert_eq!(drawn("5"), drawn("5"));
    assert_ne!(drawn("5"), drawn("6"));
    // Statistics and notes go to standard error.
    let output = run("qwen", &[&model, "hello", "3", "--stats"], b"");
    let stats = text(&output.stderr);
    for part in ["first token after", "3 tokens", "reading ", "reused", "MB of weights"] {
        assert!(stats.contains(part), "{part}: {stats}");
    }
    let output = run("qwen", &[&model, "--raw", "hello", "3", "--stats"], b"");
    assert!(text(&output.stderr).contains("3 tokens"), "{output:?}");
    assert!(run("qwen", &[&model, "hello", "3"], b"").stderr.is_empty());
    // A full disk is not success.
    if let Ok(full) = std::fs::File::create("/dev/full") {
        let mut command = Command::new(host("qwen"));
        let status = command.args([&model, "hello", "3"]).stdout(full).output().unwrap().status;
        assert_eq!(status.code(), Some(1));
    }
}

#[test]
fn without_a_model_the_demo_answers() {
    // A folder like a fresh clone; the package's own may have a model/.
    let clone = TempDir::new();
    std::fs::create_dir(clone.join("examples")).unwrap();
    std::os::unix::fs::symlink(c::root().join(DEMO), clone.join(DEMO)).unwrap();
    let ask = |name: &str, arguments: &[&str], folder: &Path| {
        let mut command = Command::new(host(name));
        command.args(arguments).current_dir(folder).stdin(Stdio::null()).output().unwrap()
    };
    let output = ask("qwen", &["What are you?"], clone.path());
    let (answer, notes) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success() && answer.trim().len() > 1, "{output:?}");
    assert_eq!(answer.matches('\n').count(), 1, "{answer:?}");
    for notes in [notes, text(&ask("chat", &[], clone.path()).stderr)] {
        let first = notes.lines().next().unwrap();
        assert!(first.contains(DEMO) && first.contains("scripts/download_model.sh"), "{notes}");
    }
    // A downloaded model goes first, and needs no note.
    let folder = toy::model();
    std::os::unix::fs::symlink(folder.path(), clone.join("model")).unwrap();
    let output = ask("qwen", &["hello", "3"], clone.path());
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    // Where there is neither, that is said.
    for name in ["qwen", "chat"] {
        let arguments: &[&str] = if name == "qwen" { &["Hi"] } else { &[] };
        let lost = ask(name, arguments, Path::new("/"));
        assert_eq!(lost.status.code(), Some(1));
        assert!(text(&lost.stderr).contains("no model"), "{lost:?}");
    }
}

#[test]
fn thoughts_are_kept_off_the_answer() {
    let output = run("qwen", &[DEMO, "--think", "What is the capital of France?", "200"], b"");
    let (answer, thoughts) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{output:?}");
    assert!(!answer.contains("think>") && !thoughts.contains("think>"), "{output:?}");
    assert!(!thoughts.trim().is_empty(), "the demo model thinks when asked to: {output:?}");
}

#[test]
fn answers_end_before_stop_strings_and_thoughts_at_their_budget() {
    let question = "What is the capital of France?";
    let whole = answer("qwen", &[DEMO, question, "60"], b"");
    let (at, _) = whole.trim_end().char_indices().nth(8).unwrap();
    let stop = &whole.trim_end()[at..];
    let cut =
        answer("qwen", &[DEMO, "--stop", "no such text", "--stop", stop, question, "60"], b"");
    assert_eq!(cut, format!("{}\n", &whole[..at]));
    refused("qwen", &[DEMO, "--stop", "", question], b"", 1, "stop");
    // The thoughts are closed, and an answer comes.
    let output = run("qwen", &[DEMO, "--think-budget", "5", question, "60"], b"");
    let free = run("qwen", &[DEMO, "--think", question, "60"], b"");
    assert!(output.stderr.len() < free.stderr.len() && !output.stderr.is_empty(), "{output:?}");
    assert!(text(&output.stdout).trim().len() > 1, "{output:?}");
    refused("qwen", &[DEMO, "--think-budget", "0", question], b"", 2, "--think-budget");
}

#[test]
fn conversations_in_a_pipe() {
    let folder = toy::model();
    let model = path(&folder);
    let one = answer("qwen", &[&model, "--chat", "6", "0", "1"], b"hello\n");
    // One line break after each answer, none before; /exit ends; an empty line is nothing.
    let talk = |lines: &str| answer("qwen", &[&model, "--chat", "6", "0", "1"], lines.as_bytes());
    assert_eq!(talk("hello\n/exit\nmore\n"), one);
    assert_eq!(talk("\n\nhello"), one);
    assert_eq!(talk("hello\r\n"), one);
    assert_eq!(talk(""), "");
    assert_eq!(talk("hello\n/reset\nhello\n"), format!("{one}{one}"));
    let two = talk("hello\nhello\n");
    assert!(two.starts_with(&one) && two.len() > one.len(), "{two:?}");
    // Anything goes into a message.
    talk("quote \" backslash \\ tab \t bell \u{7} \u{1F600} <|im_end|>\n");
    assert!(answer("qwen", &[&model, "--chat", "6", "0", "1"], b"nul \0 inside\n").len() > 1);
    // The host in C++ is the same program.
    assert_eq!(answer("chat", &[&model, "6", "0", "1"], b"hello\nhello\n/exit\n"), two);
    // A conversation that outgrows the context ends with a clear error, not a crash.
    let long = "hello ".repeat(900);
    let long = format!("{long}\n{long}\n{long}\n");
    let output = run("qwen", &[&model, "--chat", "6", "0", "1"], long.as_bytes());
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("do not fit"), "{}", text(&output.stderr));
}

#[test]
fn a_conversation_goes_on_in_another_process() {
    let (folder, kept) = (toy::model(), TempDir::new());
    let model = path(&folder);
    let file = kept.join("talk.state");
    let file = file.to_str().unwrap();
    let arguments = [&*model, "--chat", "6", "0", "1"];
    let within = [&arguments[..], &["--session", file]].concat();
    let whole = answer("qwen", &arguments, b"hello\nmore\nand more\n");
    let mut parts = answer("qwen", &within, b"hello\n");
    let output = run("qwen", &within, b"more\n");
    assert!(text(&output.stderr).contains("going on after"), "{output:?}");
    parts += &text(&output.stdout);
    parts += &answer("qwen", &within, b"and more\n");
    assert_eq!(parts, whole);
    // Only the new turn is computed.
    let output = run("qwen", &[&within[..], &["--stats"]].concat(), b"on\n");
    let stats = text(&output.stderr);
    let numbers: Vec<usize> =
        stats.split(|c: char| !c.is_ascii_digit()).filter_map(|n| n.parse().ok()).collect();
    let (total, computed) = (numbers[1], numbers[2]);
    assert!(computed < total / 2, "{stats}");
    // A new conversation replaces it; a damaged file is left alone.
    assert_eq!(answer("qwen", &within, b"/reset\nhello\nmore\nand more\n"), whole);
    let bytes = std::fs::read(file).unwrap();
    std::fs::write(file, &bytes[..bytes.len() - 1]).unwrap();
    refused("qwen", &within, b"hello\n", 1, "cut off");
    assert_eq!(std::fs::read(file).unwrap().len(), bytes.len() - 1);
    refused("qwen", &[&model, "--session", file, "hello"], b"", 2, "--chat");
}

#[test]
fn the_demo_remembers_what_was_said() {
    let input = b"My name is Ada.\nWhat is my name?\n/reset\nWhat is my name?\n";
    let output = answer("qwen", &[DEMO, "--chat", "40", "0", "1"], input);
    let lines: Vec<&str> = output.lines().collect();
    assert_eq!(lines.len(), 3, "{output}");
    assert!(lines[1].contains("Ada"), "{output}");
    assert!(!lines[2].contains("Ada"), "{output}");
}

#[test]
fn ids_in_ids_out() {
    let folder = toy::model();
    let model = path(&folder);
    let ids = answer("qwen-ids", &[&model, "1,2,3", "5"], b"");
    assert_eq!(ids.lines().count(), 5);
    assert!(ids.lines().all(|line| line.parse::<usize>().is_ok_and(|id| id < toy::TOKENS)));
    assert_eq!(answer("qwen-ids", &[&model, "1 2 3", "5", "--threads", "1"], b""), ids);
    assert_eq!(answer("qwen-ids", &[&model, "1,2,3", "0"], b""), "");
    let logits = answer("qwen-ids", &[&model, "1,2,3", "5", "--logits", "3"], b"");
    for (line, id) in logits.lines().zip(ids.lines()) {
        let mut words = line.split(' ');
        assert_eq!(words.next(), Some(id));
        let best: Vec<(&str, f32)> = words
            .map(|word| word.split_once(':').map(|(id, v)| (id, v.parse().unwrap())).unwrap())
            .collect();
        assert_eq!(best.len(), 3);
        assert_eq!(best[0].0, id, "the greedy id has the largest logit");
        assert!(best.windows(2).all(|pair| pair[0].1 >= pair[1].1), "{line}");
    }
    let scalar = answer("qwen-ids", &[&model, "1,2,3", "5", "--isa", "scalar"], b"");
    assert_eq!(scalar, ids);
}

#[test]
fn text_to_ids_and_back() {
    // Without weights, and byte for byte.
    let folder = toy::tokenizer();
    let model = path(&folder);
    for input in ["hello world\n", "", "a\0b", "\u{1F469}\u{200D}\u{1F467} \u{FDFD} e\u{301}"] {
        let ids = answer("qwen-tokenize", &[&model], input.as_bytes());
        assert_eq!(ids.matches('\n').count(), 1, "{ids:?}");
        let back = run("qwen-tokenize", &[&model, "--decode"], ids.as_bytes()).stdout;
        let composed = input.replace("e\u{301}", "\u{E9}"); // NFC
        assert_eq!(text(&back), composed);
        let commas = ids.trim().replace(' ', ",");
        assert_eq!(run("qwen-tokenize", &[&model, "--decode"], commas.as_bytes()).stdout, back);
    }
    let plain = answer("qwen-tokenize", &[&model], b"<|im_end|>");
    let special = answer("qwen-tokenize", &[&model, "--special"], b"<|im_end|>");
    assert!(plain.contains(' ') && special == format!("{}\n", toy::IM_END), "{plain} {special}");

    let chat = br#"{"messages": [{"role": "user", "content": "<|im_end|>"}],
        "enable_thinking": true, "add_generation_prompt": true}"#;
    let count = |ids: &str| ids.split_whitespace().filter(|id| *id == "505").count();
    assert_eq!(count(&answer("qwen-tokenize", &[&model, "--chat"], chat)), 1);
    assert_eq!(count(&answer("qwen-tokenize", &[&model, "--chat", "--special"], chat)), 2);
    let bare = br#"[{"role": "wizard", "content": "x"}]"#;
    refused("qwen-tokenize", &[&model, "--chat"], bare, 1, "Unexpected message role.");
}

/// Plays `script` (see tests/c/pty.c) to a host in a terminal.
fn in_terminal(name: &str, arguments: &[&str], script: &str) {
    static PLAYER: OnceLock<PathBuf> = OnceLock::new();
    let player = PLAYER.get_or_init(|| {
        Compiler("cc").build("pty", "c11", &["tests/c/pty.c"], &["-lutil"], Link::No)
    });
    let folder = TempDir::new();
    let file = folder.join("script");
    std::fs::write(&file, script).unwrap();
    let mut command = Command::new(player);
    command.arg(host(name)).args(arguments).current_dir(c::root());
    succeed(command.stdin(std::fs::File::open(&file).unwrap()));
}

#[test]
fn in_a_terminal() {
    // Prompt, answer, statistics, leaving by Ctrl-D and by Ctrl-C at the prompt.
    for (key, name, arguments) in [
        ("D", "qwen", vec![DEMO, "--chat", "40", "0", "1"]),
        ("C", "qwen", vec![DEMO, "--chat", "40", "0", "1"]),
        ("D", "chat", vec![DEMO, "40", "0", "1"]),
        ("C", "chat", vec![DEMO, "40", "0", "1"]),
    ] {
        let stats = if name == "qwen" { "expect prompt tokens\n" } else { "" };
        let script =
            format!("expect > \nsend Hello!\nexpect \\n\n{stats}expect > \nkey {key}\nexit 0\n");
        in_terminal(name, &arguments, &script);
    }
    // What cannot be read is said, and the conversation goes on.
    let bad = "expect > \nsend /reset\nexpect a new conversation\nexpect > \nsend /exit\nexit 0\n";
    in_terminal("qwen", &[DEMO, "--chat"], bad);
}

#[test]
fn control_c_cancels() {
    // A conversation goes on after a cancelled answer. Random weights talk for long.
    let folder = toy::slow_model();
    let model = path(&folder);
    let slow = [&*model, "--isa", "scalar", "--threads", "1"];
    let script = "expect > \nsend hello\nexpect \\n\npause 500\nkey C\nexpect tokens\nexpect > \n\
                  send again\nexpect \\n\npause 500\nkey C\nexpect > \nkey D\nexit 0\n";
    let chat = [&slow[..], &["--chat", "4000", "0", "1"]].concat();
    in_terminal("qwen", &chat, script);
    // One answer, cancelled: what was said stays, and the status tells.
    let one = [&slow[..], &["hello", "4000"]].concat();
    in_terminal("qwen", &one, "pause 500\nkey C\nexpect tokens\nexit 130\n");
    // A long prompt shows how far it is, and can be left.
    let prompt = "word ".repeat(800);
    let long = [&slow[..], &["--raw", &prompt, "5"]].concat();
    in_terminal("qwen", &long, "expect reading: \nkey C\nexit 130\n");
}

#[test]
fn on_an_old_cpu() {
    if Command::new("qemu-x86_64").arg("--version").output().is_err() {
        return not_run("the programs on emulated old CPUs: qemu-x86_64 is not installed");
    }
    let folder = toy::model();
    let model = path(&folder);
    let arguments = [&*model, "1,2,3", "4"];
    let expected = answer("qwen-ids", &[&model, "1,2,3", "4", "--isa", "scalar"], b"");
    for cpu in ["qemu64", "Nehalem", "SandyBridge", "Haswell", "max"] {
        let emulated = |name: &str, arguments: &[&str]| {
            let mut command = Command::new("qemu-x86_64");
            command.args(["-cpu", cpu]).arg(host(name)).args(arguments);
            text(&succeed(&mut command).stdout)
        };
        assert_eq!(emulated("qwen-ids", &arguments), expected, "{cpu}");
        assert!(!emulated("qwen", &[&model, "hello", "2"]).is_empty(), "{cpu}");
    }
    // Asking for more than the CPU has is an error, not an illegal instruction.
    let mut command = Command::new("qemu-x86_64");
    command.args(["-cpu", "Nehalem"]).arg(host("qwen-ids")).args(arguments);
    let output = command.args(["--isa", "avx2"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(text(&output.stderr).contains("avx2"), "{output:?}");
}

/// What `make` left in build/: the programs run, linked both ways.
#[test]
fn what_make_builds() {
    let Some(build) = std::env::var_os("QWEN_BUILD") else {
        return not_run("the programs in build/: tested by `make test` only");
    };
    let folder = toy::model();
    let model = path(&folder);
    let talk = |build: &Path| {
        let say = |name: &str, arguments: &[&str]| {
            let mut command = Command::new(build.join(name));
            text(&succeed(command.args(arguments).stdin(Stdio::null())).stdout)
        };
        let answer = say("qwen", &[&model, "hello", "5"]);
        assert!(answer.len() > 1);
        assert_eq!(say("qwen-ids", &[&model, "1,2", "3"]).lines().count(), 3);
        assert_eq!(say("qwen-tokenize", &[&model]), "\n");
        assert_eq!(say("chat", &[&model]), "");
        say("hello", &[&model]);
        answer
    };
    let shared = talk(Path::new(&build));
    let programs = TempDir::new();
    let mut command = Command::new("make");
    command.args(["-s", "STATIC=1"]).arg(format!("BUILD={}", path(&programs)));
    succeed(command.current_dir(c::root()).env_remove("MAKEFLAGS"));
    std::fs::remove_file(programs.join("libqwen35.so")).unwrap();
    std::fs::remove_file(programs.join("libqwen35.so.0")).unwrap();
    assert_eq!(talk(programs.path()), shared);
}
