//! Gated softmax attention, every fourth layer.
//!
//! ```text
//! q | gate = h Wq^T per head;  k, v = h Wk^T, h Wv^T
//! q, k <- rope(norm(q)), rope(norm(k))      over head_dim; v and gate stay as they are
//! o = softmax(q k^T / sqrt(head_dim), causal) v      query head i uses KV head i / (QH/KVH)
//! y = (o sigmoid(gate)) Wo^T
//! ```

use super::weights::AttentionWeights;
use super::workspace::Workspace;
use crate::Result;
use crate::checkpoint::Config;
use crate::kernels::{
    AttentionShape, Compute, Job, KvPages, attention, linear, norm_rope, sigmoid_gate,
};

/// Adds the mixer's output for `ws.h` to `ws.x`, for the tokens from `first` on, and the keys
/// and values of all of the chunk's tokens to `kv` behind its committed rows.
///
/// # Errors
/// `OutOfMemory` when `kv` cannot grow.
pub fn forward(
    c: &Compute,
    config: &Config,
    weights: &AttentionWeights,
    first: usize,
    kv: &mut KvPages,
    ws: &mut Workspace,
) -> Result<()> {
    project(c, config, weights, first, ws);
    mix(c, config, kv, &mut sequence(config, first, ws))?;
    output(c, config, weights, first, ws);
    Ok(())
}

fn shape(config: &Config) -> AttentionShape {
    AttentionShape {
        q_heads: config.num_attention_heads,
        kv_heads: config.num_key_value_heads,
        head_dim: config.head_dim,
    }
}

/// Keys and values of all tokens, queries and gates of those from `first` on.
pub fn project(
    c: &Compute,
    config: &Config,
    weights: &AttentionWeights,
    first: usize,
    ws: &mut Workspace,
) {
    let (tokens, shape) = (ws.tokens, shape(config));
    let (hidden, dim) = (config.hidden_size, shape.head_dim);
    let (queries, keys) = (shape.q_heads * dim, shape.kv_heads * dim);

    let query_gate = &mut ws.projected[first * 2 * queries..tokens * 2 * queries];
    let projected_k = &mut ws.z_or_keys[..tokens * keys];
    let h = &ws.h[..tokens * hidden];
    let q_job = Job::store(weights.q_proj.matrix(), query_gate);
    let k_job = Job::store(weights.k_proj.matrix(), projected_k);
    let v_job = Job::store(weights.v_proj.matrix(), &mut ws.values[..tokens * keys]);
    if first == 0 {
        linear(c, h, tokens, &mut [q_job, k_job, v_job]);
    } else {
        linear(c, h, tokens, &mut [k_job, v_job]);
        linear(c, &h[first * hidden..], tokens - first, &mut [q_job]);
    }
    let query_gate = &ws.projected[first * 2 * queries..tokens * 2 * queries];
    let projected_k = &ws.z_or_keys[..tokens * keys];
    let q = &mut ws.mixed[first * queries..tokens * queries];
    let k = &mut ws.keys[..tokens * keys];
    let pairs = config.rotary_dim / 2;
    let (cos, sin) = (&ws.cos[..tokens * pairs], &ws.sin[..tokens * pairs]);
    let of_queries = (&cos[first * pairs..], &sin[first * pairs..]);
    let eps = config.rms_norm_eps;
    // A stride of two heads' width skips the gate behind each query.
    norm_rope(c, query_gate, shape.q_heads, 2 * dim, &weights.q_norm, eps, of_queries, q);
    norm_rope(c, projected_k, shape.kv_heads, dim, &weights.k_norm, eps, (cos, sin), k);
}

/// Attention itself for some tokens of a pass, which are of one sequence. Letters as in
/// [`Workspace`]; Q is the number of the last tokens that look back, often all of them.
pub struct Mix<'a> {
    /// Where the first of the tokens stands in the sequence.
    position: usize,
    /// `[Q, QH D]`
    queries: &'a [f32],
    /// `[T, KVH D]`
    keys: &'a [f32],
    /// `[T, KVH D]`
    values: &'a [f32],
    /// `[Q, QH D]`
    read_out: &'a mut [f32],
}

/// All tokens of the pass in progress, which are of one sequence; those from `first` on look
/// back.
pub fn sequence<'a>(config: &Config, first: usize, ws: &'a mut Workspace) -> Mix<'a> {
    let (shape, tokens) = (shape(config), ws.tokens);
    let (query, keys) = (shape.q_heads * shape.head_dim, shape.kv_heads * shape.head_dim);
    let (queries, keys) = (first * query..tokens * query, tokens * keys);
    Mix {
        position: ws.first_position,
        queries: &ws.mixed[queries.clone()],
        keys: &ws.keys[..keys],
        values: &ws.values[..keys],
        read_out: &mut ws.read_out[queries],
    }
}

/// Each token of the pass in progress by itself: they are of one sequence each, where they
/// stand at `positions`.
pub fn rows<'a>(
    config: &Config,
    positions: impl Iterator<Item = usize>,
    ws: &'a mut Workspace,
) -> impl Iterator<Item = Mix<'a>> {
    let shape = shape(config);
    let (queries, keys) = (shape.q_heads * shape.head_dim, shape.kv_heads * shape.head_dim);
    let read_out = ws.read_out.chunks_exact_mut(queries);
    let inputs = ws.mixed.chunks_exact(queries).zip(ws.keys.chunks_exact(keys));
    let parts = inputs.zip(ws.values.chunks_exact(keys)).zip(read_out);
    positions.zip(parts).map(|(position, (((queries, keys), values), read_out))| Mix {
        position,
        queries,
        keys,
        values,
        read_out,
    })
}

impl Mix<'_> {
    /// Tokens of the sequence that are looked at, the most by any of these.
    pub fn context(&self) -> usize {
        self.position + 1
    }
}

/// Attention itself; `kv` gets the keys and values.
///
/// # Errors
/// `OutOfMemory` when `kv` cannot grow.
pub fn mix(c: &Compute, config: &Config, kv: &mut KvPages, mix: &mut Mix) -> Result<()> {
    let shape = shape(config);
    let Mix { position, queries, keys, values, read_out } = mix;
    let tokens = queries.len() / (shape.q_heads * shape.head_dim);
    let written = keys.len() / (shape.kv_heads * shape.head_dim);
    c.whole(|| kv.write(c.isa, *position, keys, values)).unwrap_or(Ok(()))?;
    let position = *position + written - tokens;
    let scale = 1.0 / (shape.head_dim as f32).sqrt();
    if !c.is_stopped() {
        attention(c, shape, tokens, position, queries, kv, scale, read_out);
    }
    Ok(())
}

/// The gate, and the product with the weights behind it, for the tokens from `first` on.
pub fn output(
    c: &Compute,
    config: &Config,
    weights: &AttentionWeights,
    first: usize,
    ws: &mut Workspace,
) {
    let (tokens, dim) = (ws.tokens, config.head_dim);
    let queries = config.num_attention_heads * dim;
    let read_out = &mut ws.read_out[first * queries..tokens * queries];
    sigmoid_gate(c, read_out, &ws.projected[first * 2 * queries..tokens * 2 * queries], dim);
    let x = &mut ws.x[first * config.hidden_size..tokens * config.hidden_size];
    linear(c, read_out, tokens - first, &mut [Job::accumulate(weights.o_proj.matrix(), x)]);
}
