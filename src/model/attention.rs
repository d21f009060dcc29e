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
    let tokens = ws.tokens;
    let shape = AttentionShape {
        q_heads: config.num_attention_heads,
        kv_heads: config.num_key_value_heads,
        head_dim: config.head_dim,
    };
    let (hidden, dim) = (config.hidden_size, shape.head_dim);
    let (queries, keys) = (shape.q_heads * dim, shape.kv_heads * dim);

    let h = &ws.h[..tokens * hidden];
    let query_gate = &mut ws.projected[..tokens * 2 * queries];
    let q = &mut ws.mixed[..tokens * queries];
    let projected_k = &mut ws.z_or_keys[..tokens * keys];
    let k = &mut ws.keys[..tokens * keys];
    let v = &mut ws.values[..tokens * keys];
    let read_out = &mut ws.read_out[..tokens * queries];
    let pairs = config.rotary_dim / 2;
    let angles = (&ws.cos[..tokens * pairs], &ws.sin[..tokens * pairs]);

    linear(
        c,
        h,
        tokens,
        &mut [
            Job::store(weights.q_proj.matrix(), query_gate),
            Job::store(weights.k_proj.matrix(), projected_k),
            Job::store(weights.v_proj.matrix(), v),
        ],
    );
    let eps = config.rms_norm_eps;
    // A stride of two heads' width skips the gate behind each query.
    norm_rope(c, query_gate, shape.q_heads, 2 * dim, &weights.q_norm, eps, angles, q);
    norm_rope(c, projected_k, shape.kv_heads, dim, &weights.k_norm, eps, angles, k);

    kv.write(c.isa, ws.first_position, k, v)?;
    let scale = 1.0 / (dim as f32).sqrt();
    attention(c, shape, tokens, ws.first_position, q, kv, scale, read_out);
    sigmoid_gate(c, read_out, query_gate, dim);
    linear(
        c,
        read_out,
        tokens,
        &mut [Job::accumulate(weights.o_proj.matrix(), &mut ws.x[..tokens * hidden])],
    );
    Ok(())
}
