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

use super::state::{Recurrent, RecurrentShape};
use super::weights::DeltaNetWeights;
use super::workspace::Workspace;
use crate::checkpoint::Config;
use crate::kernels::{
    Compute, DeltaInputs, DeltaRow, DeltaWeights, Job, delta_gates, delta_rule, delta_step,
    gated_rms_norm, linear,
};
use crate::pool::SharedMut;
use crate::{Error, Result};

/// Adds the mixer's output for `ws.h` to `ws.x`, for the tokens from `first` on. `index` counts
/// the linear layers. Reads the state from `committed`, writes the one after the chunk to `ws.pending`.
///
/// # Errors
/// `Internal` if `ws.pending` is not what `Recurrent::follow` makes.
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
    if ws.tokens == 1 {
        let row = StepRow {
            projected: &ws.projected[..config.conv_channels()],
            z: &ws.z_or_keys[..config.value_width()],
            a: &ws.a[..config.linear_num_value_heads],
            b: &ws.b[..config.linear_num_value_heads],
            out: &mut ws.read_out[..config.value_width()],
            committed,
            pending: &mut ws.pending,
        };
        let shape = RecurrentShape::new(config);
        let row = row.of_layer(shape, index)?;
        delta_step(c, shape.heads, &weights.of_step(config), &[row]);
    } else {
        mix(c, config, weights, index, committed, ws)?;
    }
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

/// What lies between the projections and the product behind the state, for some tokens of one
/// sequence.
fn mix(
    c: &Compute,
    config: &Config,
    weights: &DeltaNetWeights,
    index: usize,
    committed: &Recurrent,
    ws: &mut Workspace,
) -> Result<()> {
    let (shape, tokens) = (RecurrentShape::new(config), ws.tokens);
    let (values, channels) = (tokens * config.value_width(), tokens * config.conv_channels());
    let heads = tokens * config.linear_num_value_heads;
    let projected = &ws.projected[..channels];
    let before = committed.layer(shape, index);
    let after = ws.pending.after_some(committed, shape, index, projected)?;
    let inputs = DeltaInputs::Projected(projected, &weights.conv_taps, before.history);
    let (a, b) = (&ws.a[..heads], &ws.b[..heads]);
    let (g, beta) = (&mut ws.g[..heads], &mut ws.beta[..heads]);
    delta_gates(c, (a, b), (&weights.neg_a, &weights.dt_bias), g, beta);
    let read_out = &mut ws.read_out[..values];
    delta_rule(c, shape.heads, tokens, inputs, g, beta, before.delta, after, read_out);
    gated_rms_norm(c, read_out, &ws.z_or_keys[..values], &weights.norm, config.rms_norm_eps);
    Ok(())
}

/// The same for each token of the pass in progress by itself: they are of one sequence each,
/// whose states `committed` are in the same order.
///
/// # Errors
/// As [`forward`]; `OutOfMemory`.
pub fn step<'a>(
    c: &Compute,
    config: &Config,
    weights: &DeltaNetWeights,
    index: usize,
    committed: impl Iterator<Item = &'a Recurrent>,
    ws: &mut Workspace,
) -> Result<()> {
    let (values, channels) = (config.value_width(), config.conv_channels());
    let (heads, shape) = (config.linear_num_value_heads, RecurrentShape::new(config));
    let mut projected = ws.projected.chunks_exact(channels);
    let mut z = ws.z_or_keys.chunks_exact(values);
    let (mut a, mut b) = (ws.a.chunks_exact(heads), ws.b.chunks_exact(heads));
    let mut out = ws.read_out.chunks_exact_mut(values);
    let mut pending = ws.batch.pending.iter_mut();
    let short = || Error::internal("a pass has fewer rows than sequences");
    let mut rows = Vec::new();
    rows.try_reserve(ws.tokens).map_err(|_| Error::out_of_memory("the rows of a batch", 0))?;
    for committed in committed {
        let row = StepRow {
            projected: projected.next().ok_or_else(short)?,
            z: z.next().ok_or_else(short)?,
            a: a.next().ok_or_else(short)?,
            b: b.next().ok_or_else(short)?,
            out: out.next().ok_or_else(short)?,
            committed,
            pending: pending.next().ok_or_else(short)?,
        };
        rows.push(row.of_layer(shape, index)?);
    }
    delta_step(c, shape.heads, &weights.of_step(config), &rows);
    Ok(())
}

/// One token of one sequence. Letters as in [`Workspace`].
struct StepRow<'a> {
    /// `[C]`
    projected: &'a [f32],
    /// `[VH DV]`
    z: &'a [f32],
    /// `[VH]`
    a: &'a [f32],
    /// `[VH]`
    b: &'a [f32],
    /// `[VH DV]`
    out: &'a mut [f32],
    /// The state before it.
    committed: &'a Recurrent,
    /// The state after it.
    pending: &'a mut Recurrent,
}

impl<'a> StepRow<'a> {
    fn of_layer(self, shape: RecurrentShape, index: usize) -> Result<DeltaRow<'a>> {
        let Self { projected, z, a, b, out, committed, pending } = self;
        let before = committed.layer(shape, index);
        let (target, kept) = pending.after_one(shape, index)?;
        Ok(DeltaRow {
            projected,
            z,
            a,
            b,
            history: before.history,
            kept,
            before: before.delta,
            target,
            out: SharedMut::new(out),
        })
    }
}

impl DeltaNetWeights {
    fn of_step(&self, config: &Config) -> DeltaWeights<'_> {
        DeltaWeights {
            taps: &self.conv_taps,
            decay: &self.neg_a,
            dt_bias: &self.dt_bias,
            norm: &self.norm,
            eps: config.rms_norm_eps,
        }
    }
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
