//! The C ABI: the only home of `extern "C"`.
//!
//! | file | what it holds |
//! |---|---|
//! | `status` | status codes, their names, the last error of a thread |
//! | `guard` | the wall that no panic passes |
//! | `handle` | opaque handles: kind, life, exclusive and shared use |
//! | `arguments` | checked pointers, strings, arrays, option structs |
//! | `version`, `model`, `open`, `files`, `estimate`, `pack`, `tokens`, `stream`, `chat`, `sampling`, `session`, `feed`, `branch`, `reuse`, `save`, `step`, `statistics`, `logits`, `score`, `conversation`, `conversation_turn`, `pieces`, `conversation_step`, `conversation_save` | one section of the header each |
//!
//! `include/qwen35.h` is generated from the doc comments here (`make header`), so they are
//! written for C programmers.

#![allow(unsafe_code, non_camel_case_types)]

#[cfg(not(panic = "unwind"))]
compile_error!("libqwen35 turns panics into status codes: build it with panic = \"unwind\"");

mod arguments;
mod branch;
mod chat;
mod conversation;
mod conversation_save;
mod conversation_step;
mod conversation_turn;
mod estimate;
mod feed;
mod files;
mod guard;
mod handle;
mod logits;
mod model;
mod open;
mod pack;
mod pieces;
mod reuse;
mod sampling;
mod save;
mod score;
mod session;
mod statistics;
mod status;
mod step;
mod stream;
mod tokens;
mod user;
mod version;
