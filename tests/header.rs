//! `include/qwen35.h` is what cbindgen makes of `src/capi/`, section by section.
//!
//! `make header` (that is `QWEN_WRITE_HEADER=1 cargo test --test header`) writes it; without
//! the variable the committed file is compared.

use std::path::Path;

/// A section of the header: title, file of `src/capi/`, and what cbindgen cannot express.
const SECTIONS: &[(&str, &str, &str)] = &[
    ("Status codes and errors", "status", ""),
    ("Version", "version", ""),
    (
        "Strings",
        "",
        "/** As the length of a string: it ends with a NUL, which is not part of it. */\n\
         #define QWEN_NUL SIZE_MAX",
    ),
    (
        "Model",
        "model",
        "/** Default options: qwen_model_options options = QWEN_MODEL_OPTIONS_INIT; */\n\
         #define QWEN_MODEL_OPTIONS_INIT \\\n    \
         { (uint32_t)sizeof(qwen_model_options), 0, 0, QWEN_ISA_AUTO, NULL, NULL, \\\n      \
         QWEN_LOG_NOTHING, 0, QWEN_WEIGHTS_STORED, QWEN_COMPUTE_AUTO, NULL, NULL, 0 }\n\n\
         /** For qwen_model_get_info(). */\n\
         #define QWEN_MODEL_INFO_INIT \\\n    \
         { (uint32_t)sizeof(qwen_model_info), 0, 0, 0, 0, 0, 0, 0, 0, QWEN_ISA_AUTO, 0, \\\n      \
         QWEN_WEIGHTS_STORED, QWEN_COMPUTE_AUTO }",
    ),
    ("Other ways to open", "open", ""),
    (
        "A folder that the host reads",
        "files",
        "/** The callbacks: set open and read. */\n\
         #define QWEN_FILE_CALLBACKS_INIT \\\n    \
         { (uint32_t)sizeof(qwen_file_callbacks), 0, NULL, NULL, NULL }",
    ),
    (
        "What a model costs",
        "estimate",
        "/** For qwen_model_estimate(). */\n\
         #define QWEN_MODEL_COST_INIT \\\n    \
         { (uint32_t)sizeof(qwen_model_cost), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }",
    ),
    (
        "Packed files",
        "pack",
        "/** Default options: qwen_pack_options options = QWEN_PACK_OPTIONS_INIT; */\n\
         #define QWEN_PACK_OPTIONS_INIT \\\n    \
         { (uint32_t)sizeof(qwen_pack_options), 0, QWEN_WEIGHTS_STORED, 0 }\n\n\
         /** For qwen_pack(). */\n\
         #define QWEN_PACK_INFO_INIT { (uint32_t)sizeof(qwen_pack_info), 0, 0, 0, 0 }",
    ),
    ("Tokens and text", "tokens", ""),
    ("Text while it is made", "stream", ""),
    ("Conversations", "chat", ""),
    (
        "Sampling",
        "sampling",
        "/** Default options: qwen_sampling_options options = QWEN_SAMPLING_OPTIONS_INIT; */\n\
         #define QWEN_SAMPLING_OPTIONS_INIT \\\n    \
         { (uint32_t)sizeof(qwen_sampling_options), 0, QWEN_PRESET_CHAT, 0, 0, 0, 0, 0, 0, 0, 0, \
         0, \\\n      0, NULL, 0 }",
    ),
    (
        "Session",
        "session",
        "/** Default options: qwen_session_options options = QWEN_SESSION_OPTIONS_INIT; */\n\
         #define QWEN_SESSION_OPTIONS_INIT \\\n    \
         { (uint32_t)sizeof(qwen_session_options), 0, 0, NULL, 0, 0, QWEN_OVERFLOW_REFUSE, 0, \\\n      \
         QWEN_KV_AUTO, 0 }",
    ),
    ("What a session is fed", "feed", ""),
    ("Forks and marks", "branch", ""),
    (
        "What is computed already",
        "reuse",
        "/** For qwen_session_get_feed_info(). */\n\
         #define QWEN_FEED_INFO_INIT \\\n    \
         { (uint32_t)sizeof(qwen_feed_info), 0, 0, 0, 0, 0, 0, 0, 0 }\n\n\
         /** For qwen_prefix_cache_get_info(). */\n\
         #define QWEN_PREFIX_CACHE_INFO_INIT \\\n    \
         { (uint32_t)sizeof(qwen_prefix_cache_info), 0, 0, 0, 0, 0, 0, 0 }",
    ),
    ("Saving and restoring", "save", ""),
    ("Session: a little at a time, and several at once", "step", ""),
    (
        "Statistics",
        "statistics",
        "/** For qwen_session_get_statistics() and qwen_model_get_statistics(). */\n\
         #define QWEN_STATISTICS_INIT \\\n    \
         { (uint32_t)sizeof(qwen_statistics), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }",
    ),
    ("Changing logits", "logits", ""),
    (
        "Judging text",
        "score",
        "/** For qwen_session_score(). */\n\
         #define QWEN_SCORE_INIT { (uint32_t)sizeof(qwen_score), 0, 0, 0, 0 }",
    ),
    (
        "Conversation over a session",
        "conversation",
        "/** Default options: qwen_conversation_options options =\n    \
         QWEN_CONVERSATION_OPTIONS_INIT; */\n\
         #define QWEN_CONVERSATION_OPTIONS_INIT \\\n    \
         { (uint32_t)sizeof(qwen_conversation_options), 0, QWEN_THINKING_DEFAULT, 0, 0, 0, \\\n      \
         NULL, 0, NULL, 0, NULL, NULL }",
    ),
    ("Conversation: turns", "conversation_turn", ""),
    (
        "Pieces of a reply",
        "pieces",
        "/** For qwen_conversation_next(). */\n\
         #define QWEN_PIECE_INIT \\\n    \
         { (uint32_t)sizeof(qwen_piece), QWEN_PIECE_NONE, QWEN_FINISH_NONE, 0, \\\n      \
         NULL, 0, NULL, 0, NULL, 0, NULL, 0, NULL, 0 }",
    ),
    ("Conversation: a little at a time", "conversation_step", ""),
    ("Conversation: saved", "conversation_save", ""),
];

const PROLOGUE: &str = "\
/*
 * qwen35.h: Qwen3.5 on CPUs, behind a C ABI.
 *
 * Generated from src/capi/ by `make header`. Do not edit.
 *
 * Rules that hold for every function:
 *
 * Results.   A qwen_status is returned: 0 is success, positive is an outcome that is no
 *            error, negative is an error; qwen_last_error() then says what and why. A
 *            handle that a failing call should have made is NULL. Every status can be
 *            QWEN_ERROR_INTERNAL (a defect) beside those listed, and every call on a handle
 *            QWEN_ERROR_INVALID_HANDLE or QWEN_ERROR_BUSY.
 * Threads.   A const handle may be used by many threads at once, a non-const handle by
 *            one at a time; a concurrent call returns QWEN_ERROR_BUSY and does nothing.
 *            qwen_session_cancel() may be called by any thread at any time.
 * Ownership. Handles are freed with their own function, in any order; freeing NULL is fine,
 *            and so is freeing a handle in use: the call inside is cancelled and the memory
 *            goes when it returns. Everything passed in is copied or used only during the
 *            call. Pointers handed out are borrowed, for as long as is said. Nothing is
 *            for free().
 * Strings.   Pointer and length in bytes, UTF-8; QWEN_NUL as the length means up to a NUL.
 *            With a length, U+0000 is text like any other. NULL with length 0 is empty.
 * Buffers.   (buffer, capacity, needed): *needed is set whenever the arguments are valid.
 *            With buffer NULL and capacity 0 that is all. A buffer that is too small gives
 *            QWEN_ERROR_BUFFER_TOO_SMALL and is not written to. No NUL is added.
 * Options.   Structs begin with struct_size: set it to sizeof, everything else to zero
 *            (the ..._OPTIONS_INIT macros do). Zero means default, and so does NULL
 *            instead of the struct.
 * Host.      The library prints nothing, reads no environment variables, installs no signal
 *            handlers, does not depend on the locale or the working directory, and never
 *            ends the process. After fork() a model of the parent computes no more in
 *            the child (QWEN_ERROR_FORKED): open it again there.
 * Stability. Every function is stable: it stays as it is as long as QWEN_ABI_VERSION does
 *            (docs/abi-stability.md). One that were not would begin with \"Experimental\".
 *
 * Token ids are int32_t, from 0 to one less than the vocabulary size.
 */
#ifndef QWEN35_H
#define QWEN35_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern \"C\" {
#endif
";

const EPILOGUE: &str = "
#ifdef __cplusplus
} /* extern \"C\" */
#endif

#endif /* QWEN35_H */
";

fn section(root: &Path, title: &str, file: &str, more: &str) -> String {
    let body = if file.is_empty() { String::new() } else { bindings(root, file) };
    let bar = "=".repeat(86);
    let mut text = format!("\n/* {bar}\n * {title}\n * {bar} */\n");
    for part in [body.trim(), more.trim()] {
        if !part.is_empty() {
            text += &format!("\n{part}\n");
        }
    }
    text
}

/// What cbindgen makes of one file. Types of other files are known by name only.
fn bindings(root: &Path, file: &str) -> String {
    let mut raw = Vec::new();
    cbindgen::Builder::new()
        .with_config(cbindgen::Config::from_file(root.join("cbindgen.toml")).unwrap())
        .with_src(root.join(format!("src/capi/{file}.rs")))
        .generate()
        .unwrap_or_else(|error| panic!("src/capi/{file}.rs: {error}"))
        .write(&mut raw);
    let raw = String::from_utf8(raw).unwrap();
    let lines: Vec<&str> = raw.lines().collect();
    let mut text = String::new();
    let mut i = 0;
    while i < lines.len() {
        let indent = &lines[i][..lines[i].len() - lines[i].trim_start().len()];
        if lines[i].trim() == "/**" && lines.get(i + 2).is_some_and(|l| l.trim() == "*/") {
            // A comment of one line takes one line.
            let words = lines[i + 1].trim().trim_start_matches("* ");
            text += &format!("{indent}/** {words} */\n");
            i += 3;
        } else {
            match lines[i].rsplit_once(' ') {
                // A negative macro must survive being part of an expression.
                Some((name, value)) if name.starts_with("#define") && value.starts_with('-') => {
                    text += &format!("{name} ({value})\n");
                }
                _ => text += &format!("{}\n", lines[i]),
            }
            i += 1;
        }
    }
    text
}

fn generate() -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut header = PROLOGUE.to_owned();
    for (title, file, more) in SECTIONS {
        header += &section(root, title, file, more);
    }
    header += EPILOGUE;
    header
}

#[test]
fn the_committed_header_is_the_generated_one() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("include/qwen35.h");
    let header = generate();
    if std::env::var_os("QWEN_WRITE_HEADER").is_some() {
        std::fs::write(&path, &header).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    let differs = header.lines().zip(committed.lines()).position(|(a, b)| a != b);
    assert!(
        committed == header,
        "{} is not what `make header` writes (first difference: line {:?})",
        path.display(),
        differs.map(|i| i + 1)
    );
}
