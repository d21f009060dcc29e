//! Gated softmax attention, every fourth layer.
//!
//! ```text
//! q | gate = h Wq^T per head;  k, v = h Wk^T, h Wv^T
//! q, k <- rope(norm(q)), rope(norm(k))      over head_dim; v and gate stay as they are
//! o = softmax(q k^T / sqrt(head_dim), causal) v      query head i uses KV head i / (QH/KVH)
//! y = (o sigmoid(gate)) Wo^T
//! ```

use std::ops::Range;

use super::weights::AttentionWeights;
use super::workspace::Workspace;
use crate::Result;
use crate::checkpoint::Config;
use crate::kernels::{
    AttentionShape, Compute, Job, KvPages, attention, linear, norm_rope, sigmoid_gate,
};

/// Adds the mixer's output for `ws.h` to `ws.x`, and the chunk's keys and values to `kv`
/// behind its committed rows.
///
/// # Errors
/// `OutOfMemory` when `kv` cannot grow.
pub fn forward(
    c: &Compute,
    config: &Config,
    weights: &AttentionWeights,
    kv: &mut KvPages,
    ws: &mut Workspace,
) -> Result<()> {
    project(c, config, weights, ws);
    mix(c, config, 0..ws.tokens, ws.first_position, kv, ws)?;
    output(c, config, weights, ws);
    Ok(())
}

fn shape(config: &Config) -> AttentionShape {
    AttentionShape {
        q_heads: config.num_attention_heads,
        kv_heads: config.num_key_value_heads,
        head_dim: config.head_dim,
    }
}

/// Queries, gates, keys and values, for all tokens.
pub fn project(c: &Compute, config: &Config, weights: &AttentionWeights, ws: &mut Workspace) {
    let (tokens, shape) = (ws.tokens, shape(config));
    let (hidden, dim) = (config.hidden_size, shape.head_dim);
    let (queries, keys) = (shape.q_heads * dim, shape.kv_heads * dim);

    let query_gate = &mut ws.projected[..tokens * 2 * queries];
    let projected_k = &mut ws.z_or_keys[..tokens * keys];
    linear(
        c,
        &ws.h[..tokens * hidden],
        tokens,
        &mut [
            Job::store(weights.q_proj.matrix(), query_gate),
            Job::store(weights.k_proj.matrix(), projected_k),
            Job::store(weights.v_proj.matrix(), &mut ws.values[..tokens * keys]),
        ],
    );
    let q = &mut ws.mixed[..tokens * queries];
    let k = &mut ws.keys[..tokens * keys];
    let pairs = config.rotary_dim / 2;
    let angles = (&ws.cos[..tokens * pairs], &ws.sin[..tokens * pairs]);
    let eps = config.rms_norm_eps;
    // A stride of two heads' width skips the gate behind each query.
    norm_rope(c, query_gate, shape.q_heads, 2 * dim, &weights.q_norm, eps, angles, q);
    norm_rope(c, projected_k, shape.kv_heads, dim, &weights.k_norm, eps, angles, k);
}

/// Attention itself, for tokens `rows` of the chunk, which stand from `position` on in the
/// sequence of `kv`.
///
/// # Errors
/// `OutOfMemory` when `kv` cannot grow.
pub fn mix(
    c: &Compute,
    config: &Config,
    rows: Range<usize>,
    position: usize,
    kv: &mut KvPages,
    ws: &mut Workspace,
) -> Result<()> {
    let shape = shape(config);
    let of = |width: usize| rows.start * width..rows.end * width;
    let (queries, keys) = (of(shape.q_heads * shape.head_dim), of(shape.kv_heads * shape.head_dim));
    let (k, v) = (&ws.keys[keys.clone()], &ws.values[keys]);
    c.whole(|| kv.write(c.isa, position, k, v)).unwrap_or(Ok(()))?;
    let scale = 1.0 / (shape.head_dim as f32).sqrt();
    let (q, read_out) = (&ws.mixed[queries.clone()], &mut ws.read_out[queries]);
    if !c.is_stopped() {
        attention(c, shape, rows.len(), position, q, kv, scale, read_out);
    }
    Ok(())
}

/// The gate, and the product with the weights behind it, for all tokens.
pub fn output(c: &Compute, config: &Config, weights: &AttentionWeights, ws: &mut Workspace) {
    let (tokens, dim) = (ws.tokens, config.head_dim);
    let queries = config.num_attention_heads * dim;
    let read_out = &mut ws.read_out[..tokens * queries];
    sigmoid_gate(c, read_out, &ws.projected[..tokens * 2 * queries], dim);
    let x = &mut ws.x[..tokens * config.hidden_size];
    linear(c, read_out, tokens, &mut [Job::accumulate(weights.o_proj.matrix(), x)]);
}
