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

/// Adds the mixer's output for `ws.h` to `ws.x`, for the tokens from `first` on. `index` counts
/// the linear layers. Reads the state from `committed`, writes the one after the chunk to `ws.pending`.
///
/// # Errors
/// `Internal` if `ws.pending` is shared, which `Workspace::ensure` rules out.
pub fn forward(
    c: &Compute,
    config: &Config,
    weights: &DeltaNetWeights,
    first: usize,
    index: usize,
    committed: &Recurrent,
    ws: &mut Workspace,
) -> Result<()> {
    project(c, config, weights, ws);
    mix(c, config, weights, index, &mut sequence(config, committed, ws)?);
    output(c, config, weights, first, ws);
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

/// What the state of one sequence takes part in: some tokens of a pass and two states.
/// Letters as in [`Workspace`].
pub struct Mix<'a> {
    /// `[T, C]`
    projected: &'a [f32],
    /// `[T, C]`
    mixed: &'a mut [f32],
    /// `[T, VH DV]`
    z: &'a [f32],
    /// `[T, VH]`
    a: &'a [f32],
    /// `[T, VH]`
    b: &'a [f32],
    /// `[T, VH]`
    g: &'a mut [f32],
    /// `[T, VH]`
    beta: &'a mut [f32],
    /// `[T, VH DV]`
    read_out: &'a mut [f32],
    /// The state before these tokens.
    committed: &'a Recurrent,
    /// The state after them.
    pending: &'a mut Recurrent,
}

/// All tokens of the pass in progress, which are of one sequence.
///
/// # Errors
/// `Internal` if the pending state is shared.
pub fn sequence<'a>(
    config: &Config,
    committed: &'a Recurrent,
    ws: &'a mut Workspace,
) -> Result<Mix<'a>> {
    let tokens = ws.tokens;
    let (values, channels) = (tokens * config.value_width(), tokens * config.conv_channels());
    let heads = tokens * config.linear_num_value_heads;
    Ok(Mix {
        projected: &ws.projected[..channels],
        mixed: &mut ws.mixed[..channels],
        z: &ws.z_or_keys[..values],
        a: &ws.a[..heads],
        b: &ws.b[..heads],
        g: &mut ws.g[..heads],
        beta: &mut ws.beta[..heads],
        read_out: &mut ws.read_out[..values],
        committed,
        pending: own(&mut ws.pending)?,
    })
}

/// Each token of the pass in progress by itself: they are of one sequence each, whose states
/// `committed` are in the same order.
///
/// # Errors
/// As [`sequence`].
pub fn rows<'a>(
    config: &Config,
    committed: impl Iterator<Item = &'a Recurrent>,
    ws: &'a mut Workspace,
) -> Result<Vec<Mix<'a>>> {
    let (values, channels) = (config.value_width(), config.conv_channels());
    let heads = config.linear_num_value_heads;
    let mut projected = ws.projected.chunks_exact(channels);
    let mut mixed = ws.mixed.chunks_exact_mut(channels);
    let mut z = ws.z_or_keys.chunks_exact(values);
    let (mut a, mut b) = (ws.a.chunks_exact(heads), ws.b.chunks_exact(heads));
    let (mut g, mut beta) = (ws.g.chunks_exact_mut(heads), ws.beta.chunks_exact_mut(heads));
    let mut read_out = ws.read_out.chunks_exact_mut(values);
    let mut pending = ws.batch.pending.iter_mut();
    let short = || Error::internal("a pass has fewer rows than sequences");
    let mut mixes = Vec::new();
    mixes.try_reserve(ws.tokens).map_err(|_| Error::out_of_memory("the rows of a batch", 0))?;
    for committed in committed {
        mixes.push(Mix {
            projected: projected.next().ok_or_else(short)?,
            mixed: mixed.next().ok_or_else(short)?,
            z: z.next().ok_or_else(short)?,
            a: a.next().ok_or_else(short)?,
            b: b.next().ok_or_else(short)?,
            g: g.next().ok_or_else(short)?,
            beta: beta.next().ok_or_else(short)?,
            read_out: read_out.next().ok_or_else(short)?,
            committed,
            pending: own(pending.next().ok_or_else(short)?)?,
        });
    }
    Ok(mixes)
}

fn own(pending: &mut Arc<Recurrent>) -> Result<&mut Recurrent> {
    let shared = || Error::internal("the state of a pass in progress is shared");
    Arc::get_mut(pending).ok_or_else(shared)
}

/// What the state takes part in. `index` counts the linear layers.
pub fn mix(c: &Compute, config: &Config, weights: &DeltaNetWeights, index: usize, mix: &mut Mix) {
    let shape = DeltaShape {
        key_heads: config.linear_num_key_heads,
        value_heads: config.linear_num_value_heads,
        key_dim: config.linear_key_head_dim,
        value_dim: config.linear_value_head_dim,
    };
    let Mix { projected, mixed, z, a, b, g, beta, read_out, committed, pending } = mix;
    let tokens = g.len() / shape.value_heads;
    let sizes = RecurrentShape::new(config);
    let delta = index * sizes.delta..(index + 1) * sizes.delta;
    let conv = index * sizes.conv..(index + 1) * sizes.conv;
    causal_conv_silu(
        c,
        projected,
        &weights.conv_taps,
        &committed.conv[conv.clone()],
        &mut pending.conv[conv],
        mixed,
    );
    delta_gates(c, (a, b), (&weights.neg_a, &weights.dt_bias), g, beta);
    let (before, after) = (&committed.delta[delta.clone()], &mut pending.delta[delta]);
    delta_rule(c, shape, tokens, mixed, g, beta, before, after, read_out);
    gated_rms_norm(c, read_out, z, &weights.norm, config.rms_norm_eps);
}

/// The product with the weights behind the state, for the tokens from `first` on.
pub fn output(
    c: &Compute,
    config: &Config,
    weights: &DeltaNetWeights,
    first: usize,
    ws: &mut Workspace,
) {
    let (tokens, width) = (ws.tokens, config.value_width());
    let x = &mut ws.x[first * config.hidden_size..tokens * config.hidden_size];
    let read_out = &ws.read_out[first * width..tokens * width];
    linear(c, read_out, tokens - first, &mut [Job::accumulate(weights.out_proj.matrix(), x)]);
}
