//! How much memory a sequence takes, without making one. What is too much for a number is the
//! largest one, never a small one.

use super::state::{RecurrentShape, State};
use super::workspace::{MAX_CHUNK, Workspace};
use crate::checkpoint::{Config, LayerKind};
use crate::kernels::{KvElement, PAGE_TOKENS};

/// Bytes of a new session: recurrent state, hidden state and logits.
pub fn session_start(config: &Config) -> u64 {
    let floats = (config.hidden_size + config.vocab_size) as u64;
    mark(config).saturating_add(floats.saturating_mul(size_of::<f32>() as u64))
}

/// Bytes of the recurrent state.
pub fn mark(config: &Config) -> u64 {
    RecurrentShape::new(config).most_bytes() as u64
}

/// Bytes of the ids of `tokens` tokens.
pub fn ids(tokens: usize) -> u64 {
    (tokens as u64).saturating_mul(size_of::<u32>() as u64)
}

/// Bytes of the keys and values of `tokens` tokens, which come in whole pages.
pub fn keys_and_values(config: &Config, element: KvElement, tokens: usize) -> u64 {
    let full = config.layer_kinds.iter().filter(|kind| **kind == LayerKind::Full).count() as u64;
    let page = State::kv_shape(config, element).page_bytes() as u64;
    let pages = tokens.div_ceil(PAGE_TOKENS) as u64;
    full.saturating_mul(pages).saturating_mul(page)
}

/// Bytes of the scratch memory of one pass over a prompt.
pub fn scratch(config: &Config) -> u64 {
    let floats = (Workspace::floats_per_token(config) as u64).saturating_mul(MAX_CHUNK as u64);
    floats.saturating_mul(size_of::<f32>() as u64).saturating_add(mark(config))
}
