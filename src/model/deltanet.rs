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

use std::ops::Range;
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
    project(c, config, weights, ws);
    mix(c, config, weights, index, 0..ws.tokens, committed, None, ws)?;
    output(c, config, weights, ws);
    Ok(())
}

/// The products with the weights before the state comes in, for all tokens.
pub fn project(c: &Compute, config: &Config, weights: &DeltaNetWeights, ws: &mut Workspace) {
    let tokens = ws.tokens;
    let (values, channels) = (config.value_width(), config.conv_channels());
    let heads = config.linear_num_value_heads;
    linear(
        c,
        &ws.h[..tokens * config.hidden_size],
        tokens,
        &mut [
            Job::store(weights.in_proj_qkv.matrix(), &mut ws.projected[..tokens * channels]),
            Job::store(weights.in_proj_z.matrix(), &mut ws.z_or_keys[..tokens * values]),
            Job::store(weights.in_proj_a.matrix(), &mut ws.a[..tokens * heads]),
            Job::store(weights.in_proj_b.matrix(), &mut ws.b[..tokens * heads]),
        ],
    );
}

/// What the state takes part in, for tokens `rows` of the chunk, which belong to one
/// sequence. Of a batch, `row` says which sequence that is.
///
/// # Errors
/// `Internal` if the pending state is shared.
#[allow(clippy::too_many_arguments)]
pub fn mix(
    c: &Compute,
    config: &Config,
    weights: &DeltaNetWeights,
    index: usize,
    rows: Range<usize>,
    committed: &Recurrent,
    row: Option<usize>,
    ws: &mut Workspace,
) -> Result<()> {
    let shape = DeltaShape {
        key_heads: config.linear_num_key_heads,
        value_heads: config.linear_num_value_heads,
        key_dim: config.linear_key_head_dim,
        value_dim: config.linear_value_head_dim,
    };
    let of = |width: usize| rows.start * width..rows.end * width;
    let (values, channels) = (of(config.value_width()), of(config.conv_channels()));
    let heads = of(shape.value_heads);
    let sizes = RecurrentShape::new(config);
    let delta_range = index * sizes.delta..(index + 1) * sizes.delta;
    let conv_range = index * sizes.conv..(index + 1) * sizes.conv;

    let pending = match row {
        None => &mut ws.pending,
        Some(n) => &mut ws.batch.pending[n],
    };
    let pending = Arc::get_mut(pending)
        .ok_or_else(|| Error::internal("the state of a pass in progress is shared"))?;
    let projected = &ws.projected[channels.clone()];
    let mixed = &mut ws.mixed[channels];
    let z = &ws.z_or_keys[values.clone()];
    let (a, b) = (&ws.a[heads.clone()], &ws.b[heads.clone()]);
    let (g, beta) = (&mut ws.g[heads.clone()], &mut ws.beta[heads]);
    let read_out = &mut ws.read_out[values];

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
        rows.len(),
        mixed,
        g,
        beta,
        &committed.delta[delta_range.clone()],
        &mut pending.delta[delta_range],
        read_out,
    );
    gated_rms_norm(c, read_out, z, &weights.norm, config.rms_norm_eps);
    Ok(())
}

/// The product with the weights behind the state, for all tokens.
pub fn output(c: &Compute, config: &Config, weights: &DeltaNetWeights, ws: &mut Workspace) {
    let tokens = ws.tokens;
    let x = &mut ws.x[..tokens * config.hidden_size];
    let read_out = &ws.read_out[..tokens * config.value_width()];
    linear(c, read_out, tokens, &mut [Job::accumulate(weights.out_proj.matrix(), x)]);
}
