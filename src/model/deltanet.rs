//! Gated DeltaNet, the linear attention of three layers in four.
//!
//! Per value head with state S `[DK, DV]`:
//!
//! ```text
//! q | k | v = silu(conv(h Wqkv^T))          q, k: l2-normalised, q / sqrt(DK)
//! beta = sigmoid(h Wb^T)                    g = -exp(A_log) softplus(h Wa^T + dt_bias)
//! S <- exp(g) S;  d = beta (v - S^T k);  S <- S + k d^T;  o = S^T q
//! y = (norm(o) w silu(h Wz^T)) Wout^T
//! ```

use std::sync::Arc;

use super::state::{Recurrent, RecurrentShape};
use super::weights::DeltaNetWeights;
use super::workspace::Workspace;
use crate::checkpoint::Config;
use crate::kernels::{
    Compute, DeltaShape, Job, causal_conv_silu, delta_gates, delta_rule, gated_rms_norm, linear,
};
use crate::{Error, Result};

/// Adds the mixer's output for `ws.h` to `ws.x`. `index` counts the linear layers.
/// Reads the state from `committed`, writes the one after the chunk to `ws.pending`.
///
/// # Errors
/// `Internal` if `ws.pending` is shared, which [`Workspace::ensure`] rules out.
pub fn forward(
    c: &Compute,
    config: &Config,
    weights: &DeltaNetWeights,
    index: usize,
    committed: &Recurrent,
    ws: &mut Workspace,
) -> Result<()> {
    let tokens = ws.tokens;
    let shape = DeltaShape {
        key_heads: config.linear_num_key_heads,
        value_heads: config.linear_num_value_heads,
        key_dim: config.linear_key_head_dim,
        value_dim: config.linear_value_head_dim,
    };
    let (values, channels) = (config.value_width(), config.conv_channels());
    let (hidden, heads) = (config.hidden_size, shape.value_heads);

    let pending = Arc::get_mut(&mut ws.pending)
        .ok_or_else(|| Error::internal("the state of a pass in progress is shared"))?;

    let h = &ws.h[..tokens * hidden];
    let projected = &mut ws.projected[..tokens * channels];
    let mixed = &mut ws.mixed[..tokens * channels];
    let z = &mut ws.z_or_keys[..tokens * values];
    let (a, b) = (&mut ws.a[..tokens * heads], &mut ws.b[..tokens * heads]);
    let (g, beta) = (&mut ws.g[..tokens * heads], &mut ws.beta[..tokens * heads]);
    let read_out = &mut ws.read_out[..tokens * values];
    let sizes = RecurrentShape::new(config);
    let delta_range = index * sizes.delta..(index + 1) * sizes.delta;
    let conv_range = index * sizes.conv..(index + 1) * sizes.conv;

    linear(
        c,
        h,
        tokens,
        &mut [
            Job::store(weights.in_proj_qkv.matrix(), projected),
            Job::store(weights.in_proj_z.matrix(), z),
            Job::store(weights.in_proj_a.matrix(), a),
            Job::store(weights.in_proj_b.matrix(), b),
        ],
    );
    causal_conv_silu(
        c,
        projected,
        &weights.conv_taps,
        &committed.conv[conv_range.clone()],
        &mut pending.conv[conv_range],
        mixed,
    );
    delta_gates(c, (a, b), (&weights.neg_a, &weights.dt_bias), g, beta);
    delta_rule(
        c,
        shape,
        tokens,
        mixed,
        g,
        beta,
        &committed.delta[delta_range.clone()],
        &mut pending.delta[delta_range],
        read_out,
    );
    gated_rms_norm(c, read_out, z, &weights.norm, config.rms_norm_eps);
    linear(
        c,
        read_out,
        tokens,
        &mut [Job::accumulate(weights.out_proj.matrix(), &mut ws.x[..tokens * hidden])],
    );
    Ok(())
}
