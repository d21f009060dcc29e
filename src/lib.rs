//! Qwen3.5 on x86-64 CPUs: text in, text out, behind a C ABI.
//!
//! # The house
//!
//! One direction, no back and forth; a lower room never knows a higher one:
//!
//! ```text
//! bytes on disk -> checkpoint -> model
//! text -> tokenizer -> ids -> session -> model (decoder) -> logits -> sampling -> id -> stream decoder -> text
//!         chat (messages -> text)          kernels, pool
//! ```
//!
//! | module | what it holds |
//! |---|---|
//! | [`checkpoint`] | files to checked views: configuration, safetensors, tensor names |
//! | [`tokenizer`] | NFC, pre-tokenizer, byte-level BPE, added tokens, stream decoder |
//! | [`chat`] | messages to prompt by the checkpoint's own template |
//! | [`kernels`] | arithmetic for each instruction set, no knowledge of the model |
//! | [`pool`] | worker threads |
//! | [`model`] | the network: weights, state and one readable forward pass |
//! | [`sampling`] | logits to a token |
//! | [`statistics`] | what sessions have done, in numbers |
//! | [`engine`] | an opened checkpoint: network, tokenizer, template, threads |
//! | [`pack`] | a checkpoint to one packed file |
//! | [`log`] | messages for the host, silent by default |
//! | `files` | reading files of a stranger, and showing their contents in messages |
//! | `values` | JSON of a stranger as values, as many as a configuration has |
//! | `prefixes` | finding added tokens in texts |
//! | [`session`] | a sequence being continued: feed, next token, cancel, score |
//! | [`conversation`] | turns over a session: typed pieces of the reply, tool calls, history |
//! | `capi` | the C ABI, and the only home of `extern "C"` |

pub mod chat;
pub mod checkpoint;
pub mod conversation;
pub mod engine;
pub mod error;
mod files;
pub mod kernels;
pub mod log;
pub mod model;
mod new_file;
pub mod pack;
pub mod pool;
mod prefixes;
pub mod sampling;
pub mod session;
pub mod statistics;
pub mod tokenizer;
mod values;

mod capi;

pub use engine::{ChatEncoding, Estimate, KvBytes, Model, ModelOptions};
pub use error::{Error, ErrorKind, Result};
pub use kernels::{ComputeMode, KvElement};
pub use model::WeightFormat;
pub use session::{Next, Session, SessionOptions};
