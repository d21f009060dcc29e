//! The C ABI as C and C++ programs see it: the header in every standard, programs of tests/c
//! against the shared and the static library, and what the library file exports.

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

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use c::{Compiler, Link, not_run, run_c, succeed};
use temp::TempDir;

const C_STANDARDS: [&str; 4] = ["c99", "c11", "c17", "c2x"];
const CXX_STANDARDS: [&str; 6] = ["c++98", "c++11", "c++14", "c++17", "c++20", "c++2b"];

/// Compiles `source` without making a program.
fn check_syntax(compiler: &str, standard: &str, source: &Path, more: &[&str]) {
    let mut command = Command::new(compiler);
    command.arg(format!("-std={standard}")).args(c::WARNINGS).args(more).arg("-fsyntax-only");
    succeed(command.arg("-I").arg(c::root().join("include")).arg(source));
}

fn compilers(pairs: [(&'static str, &'static str); 2]) -> Vec<(&'static str, &'static str)> {
    let mut found = Vec::new();
    for (c, cxx) in pairs {
        if Compiler(c).exists() && Compiler(cxx).exists() {
            found.push((c, cxx));
        } else {
            not_run(&format!("the headers with {c} and {cxx}: not installed"));
        }
    }
    found
}

#[test]
fn the_header_compiles_in_every_standard() {
    let folder = TempDir::new();
    let (in_c, in_cxx) = (c::root().join("tests/c/header.c"), folder.join("header.cpp"));
    std::fs::copy(&in_c, &in_cxx).unwrap();
    for (cc, cxx) in compilers([("gcc", "g++"), ("clang", "clang++")]) {
        for standard in C_STANDARDS {
            check_syntax(cc, standard, &in_c, &["-Wstrict-prototypes", "-Wc++-compat"]);
        }
        for standard in CXX_STANDARDS {
            // C++98 has no SIZE_MAX or long long of its own; the C library brings both.
            let old = ["-Wno-long-long", "-D__STDC_LIMIT_MACROS"];
            check_syntax(cxx, standard, &in_cxx, if standard == "c++98" { &old } else { &[] });
        }
    }
}

#[test]
fn the_cxx_header_compiles_with_and_without_exceptions() {
    let folder = TempDir::new();
    let source = folder.join("twice.cpp");
    std::fs::write(&source, "#include \"qwen35.hpp\"\n#include \"qwen35.hpp\"\nint main() {}\n")
        .unwrap();
    for (_, cxx) in compilers([("gcc", "g++"), ("clang", "clang++")]) {
        for standard in ["c++17", "c++20", "c++2b"] {
            check_syntax(cxx, standard, &source, &[]);
            check_syntax(cxx, standard, &source, &["-fno-exceptions", "-fno-rtti"]);
        }
    }
}

#[test]
fn cxx_programs() {
    let model = toy::model();
    let sources = ["tests/c/wrapper.cpp"];
    for (standard, link) in [("c++17", Link::Shared), ("c++20", Link::Static)] {
        let program = Compiler("c++").build("wrapper", standard, &sources, &[], link);
        succeed(Command::new(&program).arg(model.path()));
    }
    // The same operations without exceptions.
    let plain = ["-fno-exceptions"];
    let program = Compiler("c++").build("results", "c++17", &sources, &plain, Link::Shared);
    succeed(Command::new(program).arg(model.path()));
}

#[test]
fn versions_and_layouts() {
    run_c("version", Link::Shared, &[]);
    run_c("version", Link::Static, &[]);
}

#[test]
fn tokens() {
    run_c("tokens", Link::Shared, &[&toy::model().path()]);
}

#[test]
fn sessions() {
    run_c("session", Link::Shared, &[&toy::model().path()]);
    run_c("session", Link::Static, &[&toy::model().path()]);
}

#[test]
fn conversations() {
    let demo = c::root().join("examples/demo-model");
    run_c("conversation", Link::Shared, &[&demo, &TempDir::new().path()]);
}

#[test]
fn scores() {
    run_c("score", Link::Shared, &[&toy::model().path()]);
}

#[test]
fn branches_and_saved_sessions() {
    for link in [Link::Shared, Link::Static] {
        run_c("branch", link, &[&toy::model().path(), &TempDir::new().path()]);
    }
}

#[test]
fn steps_and_batches() {
    run_c("steps", Link::Shared, &[&toy::model().path()]);
}

#[test]
fn handles() {
    run_c("handles", Link::Shared, &[&toy::model().path(), &TempDir::new().path()]);
}

#[test]
fn files_of_the_host() {
    run_c("files", Link::Shared, &[&toy::model().path()]);
}

#[test]
fn opening_and_packing() {
    run_c("open", Link::Shared, &[&toy::model().path(), &TempDir::new().path()]);
}

#[test]
fn threads() {
    run_c("threads", Link::Shared, &[&toy::model().path()]);
}

#[test]
fn memory_is_given_back() {
    let broken = toy::model();
    let file = broken.join("model.safetensors");
    let bytes = std::fs::read(&file).unwrap();
    std::fs::write(&file, &bytes[..bytes.len() / 2]).unwrap();
    run_c("memory", Link::Shared, &[&toy::model().path(), &broken.path()]);
}

/// Runs tests/c/process.c and asserts that nothing was printed.
fn process(arguments: &[&str]) {
    let model = toy::model();
    let path = model.path();
    let mut all: Vec<&dyn AsRef<std::ffi::OsStr>> = vec![&path];
    all.extend(arguments.iter().map(|a| a as &dyn AsRef<std::ffi::OsStr>));
    let output = run_c("process", Link::Shared, &all);
    assert!(output.stdout.is_empty() && output.stderr.is_empty(), "{output:?}");
}

#[test]
fn it_prints_nothing_and_leaves_the_process_alone() {
    for what in ["silent", "signals", "directory", "closed", "pipe"] {
        process(&[what]);
    }
}

#[test]
fn it_survives_fork() {
    process(&["fork"]);
}

#[test]
fn it_fails_softly_without_descriptors_or_memory() {
    process(&["descriptors"]);
    process(&["memory"]);
    process(&["large"]);
}

#[test]
fn it_does_not_read_the_locale() {
    // Made here, so that the test does not depend on what is installed.
    for (name, source) in [("de_DE.UTF-8", "de_DE"), ("tr_TR.UTF-8", "tr_TR")] {
        let folder = TempDir::new();
        let made = Command::new("localedef")
            .args(["-i", source, "-f", "UTF-8"])
            .arg(folder.join(name))
            .output();
        if !made.is_ok_and(|output| output.status.success()) {
            not_run(&format!("the locale {name}: localedef cannot make it here"));
            continue;
        }
        let model = toy::model();
        let source = "tests/c/process.c";
        let more = ["-Itests/c"];
        let program = Compiler("cc").build("locale", "c11", &[source], &more, Link::Shared);
        let mut command = Command::new(&program);
        command.arg(model.path()).args(["locale", name]).env("LOCPATH", folder.path());
        succeed(&mut command);
    }
}

#[test]
fn it_is_loaded_and_unloaded_many_times() {
    let folder = TempDir::new();
    let (library, copy) = (c::library_folder().join("libqwen35.so"), folder.join("libother.so"));
    std::fs::copy(&library, &copy).unwrap();
    run_c("dlopen", Link::No, &[&library, &copy, &toy::model().path()]);
}

/// A function of the header.
struct Prototype {
    name: String,
    result: String,
    /// Type and name of each.
    parameters: Vec<(String, String)>,
}

/// Every function of the header.
fn prototypes() -> Vec<Prototype> {
    let header = std::fs::read_to_string(c::root().join("include/qwen35.h")).unwrap();
    let mut code = String::new();
    let mut rest = header.as_str();
    while let Some((before, comment)) = rest.split_once("/*") {
        code += before;
        rest = comment.split_once("*/").unwrap().1;
    }
    code += rest;
    let code = code.replace("\\\n", " ");
    let lines = code.lines().filter(|line| !line.starts_with('#'));
    let code = lines.collect::<Vec<_>>().join(" ");
    // `TYPE name`, with the star of a pointer belonging to the type.
    let split = |text: &str| {
        let at = text.rfind([' ', '*']).unwrap() + 1;
        (text[..at].trim().to_owned(), text[at..].to_owned())
    };
    let mut found = Vec::new();
    for statement in code.split(';') {
        let Some((head, tail)) = statement.split_once('(') else { continue };
        if statement.contains("typedef") || !head.contains("qwen_") {
            continue;
        }
        let (result, name) = split(head.trim());
        let parameters = tail.trim().trim_end_matches(')').split(',').map(str::trim);
        let parameters = parameters.filter(|p| !p.is_empty() && *p != "void").map(split);
        found.push(Prototype { name, result, parameters: parameters.collect() });
    }
    found
}

#[test]
fn exactly_the_listed_symbols_are_exported() {
    let library = c::library_folder().join("libqwen35.so");
    let output = succeed(Command::new("nm").args(["-D", "--defined-only"]).arg(&library));
    let text = String::from_utf8(output.stdout).unwrap();
    let exported: BTreeSet<String> =
        text.lines().map(|line| line.split_whitespace().last().unwrap().to_owned()).collect();
    let list = std::fs::read_to_string(c::root().join("tests/c/symbols.txt")).unwrap();
    let listed: BTreeSet<String> = list.lines().map(str::to_owned).collect();
    assert_eq!(exported, listed, "exported by the library (left), in tests/c/symbols.txt (right)");
    let declared: BTreeSet<String> = prototypes().into_iter().map(|p| p.name).collect();
    assert_eq!(declared, listed, "declared in the header (left), in tests/c/symbols.txt (right)");
}

#[test]
fn the_library_file_is_hardened() {
    let library = c::library_folder().join("libqwen35.so");
    let read = |option: &str| {
        let output = succeed(Command::new("readelf").args([option, "-W"]).arg(&library));
        String::from_utf8(output.stdout).unwrap()
    };
    let dynamic = read("-d");
    for part in ["soname: [libqwen35.so.0]", "BIND_NOW", "NODELETE"] {
        assert!(dynamic.contains(part), "{part} is not in\n{dynamic}");
    }
    assert!(!dynamic.contains("TEXTREL"), "{dynamic}");
    let segments = read("-l");
    assert!(segments.contains("GNU_RELRO"), "{segments}");
    let stack = segments.lines().find(|line| line.contains("GNU_STACK")).unwrap();
    assert!(stack.contains("RW ") && !stack.contains("RWE"), "{stack}");
    // What it needs must be on every Linux: the C library and the unwinder of the compiler.
    for line in dynamic.lines().filter(|line| line.contains("(NEEDED)")) {
        let known = ["libc.so.6", "libm.so.6", "libgcc_s.so.1", "ld-linux-x86-64.so.2"];
        assert!(known.iter().any(|name| line.contains(name)), "{line}");
    }
}

/// Calls every function with every pointer NULL, one after the other and all at once. Each call
/// must come back, and with an error unless NULL is a documented choice.
#[test]
fn every_function_with_every_pointer_null() {
    // Where NULL is allowed: function and parameter.
    let allowed = [
        ("qwen_model_open", "options"),
        ("qwen_model_open_memory", "release"),
        ("qwen_model_open_memory", "user"),
        ("qwen_model_open_memory", "options"),
        ("qwen_model_open_reader", "user"),
        ("qwen_model_open_reader", "options"),
        ("qwen_model_open_files", "user"),
        ("qwen_model_open_files", "options"),
        ("qwen_model_estimate_memory", "options"),
        ("qwen_model_estimate_reader", "options"),
        ("qwen_model_estimate_reader", "user"),
        ("qwen_model_estimate_files", "options"),
        ("qwen_model_estimate_files", "user"),
        ("qwen_model_estimate", "options"),
        ("qwen_model_warm_up", "callback"),
        ("qwen_model_warm_up", "user"),
        ("qwen_pack", "options"),
        ("qwen_pack", "callback"),
        ("qwen_pack", "user"),
        ("qwen_pack", "info"),
        ("qwen_pack_verify", "callback"),
        ("qwen_pack_verify", "user"),
        ("qwen_session_new", "options"),
        ("qwen_session_set_sampling", "options"),
        ("qwen_session_set_progress", "callback"),
        ("qwen_session_set_progress", "user"),
        ("qwen_session_feed_chat", "total"),
        ("qwen_session_feed_chat", "computed"),
        ("qwen_session_enqueue_chat", "total"),
        ("qwen_session_enqueue_chat", "remaining"),
        ("qwen_session_step", "remaining"),
        ("qwen_session_truncate", "computed"),
        ("qwen_session_set_tokens", "computed"),
        ("qwen_model_free", "model"),
        ("qwen_session_free", "session"),
        ("qwen_stream_decoder_free", "decoder"),
        ("qwen_session_set_logits_callback", "callback"),
        ("qwen_session_set_logits_callback", "user"),
        ("qwen_session_chosen_logprobs", "logprob"),
        ("qwen_session_score", "logprobs"),
        ("qwen_session_score", "score"),
        ("qwen_session_score_text", "score"),
        ("qwen_conversation_new", "options"),
        ("qwen_conversation_configure", "options"),
        ("qwen_conversation_send", "total"),
        ("qwen_conversation_send", "computed"),
        ("qwen_conversation_send_text", "total"),
        ("qwen_conversation_send_text", "computed"),
        ("qwen_conversation_enqueue", "total"),
        ("qwen_conversation_enqueue", "remaining"),
        ("qwen_conversation_enqueue_text", "total"),
        ("qwen_conversation_enqueue_text", "remaining"),
        ("qwen_conversation_step", "remaining"),
        ("qwen_conversation_settle", "total"),
        ("qwen_conversation_settle", "computed"),
        ("qwen_conversation_regenerate", "total"),
        ("qwen_conversation_regenerate", "computed"),
        ("qwen_conversation_undo", "removed"),
        ("qwen_conversation_free", "conversation"),
    ];
    let mut body = String::new();
    let mut count = 0;
    for Prototype { name, result, parameters } in prototypes() {
        let pointers: Vec<usize> =
            (0..parameters.len()).filter(|&i| is_pointer(&parameters[i].0)).collect();
        // First no pointer is NULL, so that each NULL after it is what fails; last all are.
        let each = pointers.iter().map(|&i| vec![i]);
        for null in [vec![]].into_iter().chain(each).chain([pointers.clone()]) {
            let values: Vec<String> = (parameters.iter().enumerate())
                .map(|(i, (kind, parameter))| match null.contains(&i) {
                    true => "NULL".to_owned(),
                    false => value_for(kind, parameter, &name),
                })
                .collect();
            let may = null.iter().all(|&i| allowed.contains(&(&*name, &*parameters[i].1)));
            let call = format!("{name}({})", values.join(", "));
            body += &match (&*result, may) {
                ("qwen_status", true) => format!("    fresh();\n    CHECK({call} >= 0);\n"),
                ("qwen_status", false) => format!("    fresh();\n    CHECK({call} < 0);\n"),
                _ => format!("    fresh();\n    {call};\n"),
            };
            if result == "void" {
                // It was freed: make anew what the next call takes.
                body += "    open_all();\n";
            }
            count += 1;
        }
    }
    assert!(count > 100, "only {count} calls were found in the header");
    let source = NULLS.replace("/* calls */", &body);
    let folder = TempDir::new();
    let path = folder.join("nulls.c");
    std::fs::write(&path, source).unwrap();
    let more = ["-Itests/c", "-Wno-pointer-arith"];
    let path = path.to_str().unwrap();
    let program = Compiler("cc").build("nulls", "c11", &[path], &more, Link::Shared);
    succeed(Command::new(program).arg(toy::model().path()));
}

fn is_pointer(kind: &str) -> bool {
    kind.contains('*') || kind.ends_with("_callback")
}

/// A good argument for a parameter; the names are in [`NULLS`].
fn value_for(kind: &str, name: &str, function: &str) -> String {
    match (kind, name) {
        ("size_t", "size") if function == "qwen_conversation_restore_memory" => {
            "saved_talk_size".into()
        }
        ("const void *", "data") if function == "qwen_conversation_restore_memory" => {
            "saved_talk".into()
        }
        ("const char *", "file") if function.contains("conversation") => "talk_file".into(),
        ("size_t", "file_length") if function.contains("conversation") => "QWEN_NUL".into(),
        ("size_t", "size") if function.contains("restore") => "saved_size".into(),
        ("size_t", "size") if function.contains("attachment") => "3".into(),
        ("size_t", "size") if function.contains("sampling") => "sizeof sampling_options".into(),
        ("size_t", "size") if function.contains("session") => "sizeof session_options".into(),
        ("size_t", "size") if function.contains("conversation") => {
            "sizeof conversation_options".into()
        }
        ("size_t", "size") => "sizeof model_options".into(),
        ("size_t", "path_length") if function == "qwen_pack_verify" => "QWEN_NUL".into(),
        ("const char *", "path") if function == "qwen_pack_verify" => "packed".into(),
        ("size_t", "path_length") => "strlen(path)".into(),
        ("size_t", "source_length") => "strlen(path)".into(),
        ("const char *", "source") => "path".into(),
        ("size_t", "destination_length") => "QWEN_NUL".into(),
        ("const char *", "destination") => "packed".into(),
        ("const void *", "data") if function.contains("model") => "file".into(),
        ("size_t", "length")
            if function == "qwen_model_open_memory" || function == "qwen_model_estimate_memory" =>
        {
            "file_size".into()
        }
        ("uint64_t", "size") => "file_size".into(),
        ("uint64_t", "context") => "10".into(),
        ("size_t", "file_length") => "strlen(state_file)".into(),
        ("size_t", "position") => "2".into(),
        ("size_t", "capacity") if function.contains("save") => "sizeof saved".into(),
        ("uint64_t", "budget_us") => "1000".into(),
        ("uint64_t", _) => "mark".into(),
        ("uint64_t *", _) => "&number64".into(),
        ("const char *", "file") => "state_file".into(),
        ("void *", "data") => "scratch".into(),
        ("const void *", "data") => "saved".into(),
        ("const void **", _) => "&data".into(),
        ("qwen_mark *", _) => "marks".into(),
        ("qwen_feed_info *", _) => "&feed_info".into(),
        ("qwen_prefix_cache_info *", _) => "&cache_info".into(),
        ("size_t", "length") if function.contains("chat") => "strlen(json)".into(),
        ("size_t", "length")
            if function.ends_with("conversation_add")
                || function.ends_with("conversation_send")
                || function.ends_with("conversation_enqueue")
                || function.ends_with("set_history") =>
        {
            "strlen(json)".into()
        }
        ("size_t", "length" | "id_length" | "role_length") => "2".into(),
        ("qwen_session *const *", _) => "batch".into(),
        ("size_t", "count") if function == "qwen_batch_step" => "1".into(),
        ("qwen_status *", _) => "&batch_status".into(),
        ("qwen_statistics *", _) => "&statistics".into(),
        ("size_t", "count") => "3".into(),
        ("size_t", "capacity") => "4096".into(),
        ("const char *", "json") => "json".into(),
        ("const char *", "path") => "path".into(),
        ("const char *", _) => "\"hi\"".into(),
        ("char *", _) => "text".into(),
        ("uint32_t", "flags") => "0".into(),
        ("int32_t", _) | ("qwen_status", _) => "1".into(),
        ("int32_t *", "tokens") | ("const int32_t *", _) => "ids".into(),
        ("int32_t *" | "qwen_kv *", _) => "&token".into(),
        ("const int32_t **", _) => "&tokens".into(),
        ("const char **", _) => "&bytes".into(),
        ("const float **", _) => "&logits".into(),
        ("size_t *", _) => "&number".into(),
        ("uint32_t *", _) => "&kind".into(),
        ("const qwen_model *", _) | ("qwen_model *", _) => "model".into(),
        ("const qwen_session *", _) | ("qwen_session *", _) => "session".into(),
        ("qwen_stream_decoder *", _) => "decoder".into(),
        ("qwen_model **", _) => "&new_model".into(),
        ("qwen_session **", _) => "&new_session".into(),
        ("qwen_stream_decoder **", _) => "&new_decoder".into(),
        ("qwen_model_options *" | "const qwen_model_options *", _) => "&model_options".into(),
        ("qwen_session_options *" | "const qwen_session_options *", _) => "&session_options".into(),
        ("qwen_sampling_options *" | "const qwen_sampling_options *", _) => {
            "&sampling_options".into()
        }
        ("qwen_model_info *", _) => "&info".into(),
        ("qwen_model_cost *", _) => "&cost".into(),
        ("const qwen_pack_options *", _) => "&pack_options".into(),
        ("qwen_pack_info *", _) => "&pack_info".into(),
        ("qwen_progress_callback", _) => "on_progress".into(),
        ("qwen_logits_callback", _) => "on_logits".into(),
        ("float *", _) => "numbers".into(),
        ("qwen_token_logprob *", _) => "top".into(),
        ("qwen_score *", _) => "&score".into(),
        ("qwen_pooling", _) => "QWEN_POOLING_MEAN".into(),
        ("qwen_piece *", _) => "&piece".into(),
        ("const qwen_conversation *" | "qwen_conversation *", _) => "conversation".into(),
        ("qwen_conversation **", _) => "&new_conversation".into(),
        ("qwen_conversation_options *" | "const qwen_conversation_options *", _) => {
            "&conversation_options".into()
        }
        ("qwen_work_callback", _) => "on_work".into(),
        ("qwen_read_callback", _) => "on_read".into(),
        ("const qwen_file_callbacks *", _) => "&files".into(),
        ("qwen_release_callback", _) => "on_release".into(),
        ("void *", _) => "&number".into(),
        other => panic!("{function}: no value for {other:?}; add one"),
    }
}

const NULLS: &str = r#"
#include "check.h"

static qwen_model *model, *new_model;
static qwen_session *session, *new_session;
static qwen_stream_decoder *decoder, *new_decoder;
static qwen_model_options model_options = QWEN_MODEL_OPTIONS_INIT;
static qwen_session_options session_options = QWEN_SESSION_OPTIONS_INIT;
static qwen_sampling_options sampling_options = QWEN_SAMPLING_OPTIONS_INIT;
static qwen_model_info info = QWEN_MODEL_INFO_INIT;
static qwen_conversation *conversation, *new_conversation;
static qwen_conversation_options conversation_options = QWEN_CONVERSATION_OPTIONS_INIT;
static qwen_piece piece = QWEN_PIECE_INIT;
static qwen_session *batch[1];
static qwen_status batch_status;
static qwen_statistics statistics = QWEN_STATISTICS_INIT;
static qwen_score score = QWEN_SCORE_INIT;
static qwen_token_logprob top[4096];
static float numbers[4096];
static const char *path, *bytes, *json = "[{\"role\":\"user\",\"content\":\"hi\"}]";
static char text[4096];
static int32_t ids[4096] = {1, 2, 3}, token;
static const int32_t *tokens;
static const float *logits;
static size_t number;
static uint32_t kind;
static uint64_t mark, number64;
static unsigned char saved[1 << 20], scratch[1 << 20];
static unsigned char saved_talk[1 << 20];
static size_t saved_size, saved_talk_size;
static char state_file[4096], talk_file[4096];
static const void *data;
static qwen_mark marks[4096];
static qwen_feed_info feed_info = QWEN_FEED_INFO_INIT;
static qwen_prefix_cache_info cache_info = QWEN_PREFIX_CACHE_INFO_INIT;

static int32_t on_progress(size_t done, size_t total, void *user) {
    (void)done, (void)total, (void)user;
    return 0;
}

static int32_t on_logits(float *logits, size_t count, const int32_t *tokens, size_t token_count,
                         void *user) {
    (void)logits, (void)count, (void)tokens, (void)token_count, (void)user;
    return 0;
}

static char packed[4096], *file;
static size_t file_size;
static qwen_model_cost cost = QWEN_MODEL_COST_INIT;
static qwen_pack_options pack_options = QWEN_PACK_OPTIONS_INIT;
static qwen_pack_info pack_info = QWEN_PACK_INFO_INIT;

static int32_t on_work(uint64_t done, uint64_t total, void *user) {
    (void)done, (void)total, (void)user;
    return 0;
}

static int32_t on_read(uint64_t offset, void *buffer, size_t length, void *user) {
    (void)user;
    memcpy(buffer, file + offset, length);
    return 0;
}

static int32_t open_file(const char *name, size_t length, void **opened, uint64_t *size,
                         void *user) {
    char whole[4096];
    (void)user, (void)length;
    snprintf(whole, sizeof whole, "%s/%s", path, name);
    FILE *stream = fopen(whole, "rb");
    if (stream == NULL) {
        return QWEN_FILE_MISSING;
    }
    CHECK(fseek(stream, 0, SEEK_END) == 0);
    *size = (uint64_t)ftell(stream);
    *opened = stream;
    return 0;
}

static int32_t read_file(void *opened, uint64_t offset, void *buffer, size_t length, void *user) {
    (void)user;
    CHECK(fseek(opened, (long)offset, SEEK_SET) == 0);
    return fread(buffer, 1, length, opened) == length ? 0 : 1;
}

static void close_file(void *opened, void *user) {
    (void)user;
    fclose(opened);
}

static qwen_file_callbacks files = {sizeof files, 0, open_file, read_file, close_file};

static void on_release(void *data, size_t length, void *user) {
    (void)data, (void)length, (void)user;
}

static void pack_it(void) {
    FILE *stream;
    snprintf(packed, sizeof packed, "%s/packed", path);
    OK(qwen_pack(path, QWEN_NUL, packed, QWEN_NUL, NULL, NULL, NULL, &pack_info));
    file_size = (size_t)pack_info.file_bytes;
    file = malloc(file_size);
    stream = fopen(packed, "rb");
    CHECK(stream != NULL && file != NULL && fread(file, 1, file_size, stream) == file_size);
    fclose(stream);
}

static void open_all(void) {
    qwen_model_free(model);
    qwen_model_options cached = QWEN_MODEL_OPTIONS_INIT;
    cached.prefix_cache_bytes = 1 << 20;
    OK(qwen_model_open(path, QWEN_NUL, &cached, &model));
}

/* Handles as good as new for each call. */
static void fresh(void) {
    qwen_model_free(new_model);
    qwen_session_free(new_session);
    qwen_stream_decoder_free(new_decoder);
    new_model = NULL, new_session = NULL, new_decoder = NULL;
    qwen_session_free(session);
    qwen_stream_decoder_free(decoder);
    OK(qwen_session_new(model, NULL, &session));
    batch[0] = session;
    OK(qwen_session_feed(session, ids, 3));
    OK(qwen_session_mark(session, &mark));
    OK(qwen_session_save_memory(session, 0, saved, sizeof saved, &saved_size));
    OK(qwen_session_save_file(session, state_file, QWEN_NUL, 0));
    CHECK(qwen_session_next_token(session, &token) >= 0);
    OK(qwen_stream_decoder_new(model, 0, &decoder));
    /* A conversation with a reply that can be resumed, on a session of its own. */
    qwen_conversation_free(new_conversation);
    qwen_conversation_free(conversation);
    new_conversation = NULL;
    qwen_conversation_options one = QWEN_CONVERSATION_OPTIONS_INIT;
    qwen_session_options likely = QWEN_SESSION_OPTIONS_INIT;
    qwen_session *own = NULL;
    one.max_tokens = 1;
    sampling_options.preset = QWEN_PRESET_GREEDY;
    likely.sampling = &sampling_options;
    OK(qwen_session_new(model, &likely, &own));
    OK(qwen_conversation_new(own, &one, &conversation));
    qwen_session_free(own);
    OK(qwen_conversation_send_text(conversation, "hi", 2, NULL, NULL));
    while (qwen_conversation_next(conversation, &piece) == QWEN_OK) {
    }
    CHECK(piece.finish == QWEN_FINISH_LENGTH);
    OK(qwen_conversation_save_memory(conversation, 0, saved_talk, sizeof saved_talk,
                                     &saved_talk_size));
    OK(qwen_conversation_save_file(conversation, talk_file, QWEN_NUL, 0));
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    path = argv[1];
    pack_it();
    snprintf(state_file, sizeof state_file, "%s/nulls.state", path);
    snprintf(talk_file, sizeof talk_file, "%s/nulls.talk", path);
    open_all();
/* calls */
    return 0;
}
"#;
