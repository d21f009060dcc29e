//! Feed-forward block: `x += down(silu(gate h) * up h)`.

use super::weights::MlpWeights;
use crate::kernels::{Compute, Job, linear, linear_swiglu};

/// Adds the block's output for `h` `[tokens, H]` to the residual stream `x` `[tokens, H]`.
/// `activation` is scratch, `[tokens, I]`.
pub fn forward(
    c: &Compute,
    weights: &MlpWeights,
    tokens: usize,
    h: &[f32],
    activation: &mut [f32],
    x: &mut [f32],
) {
    let (gate, up) = (weights.gate_proj.matrix(), weights.up_proj.matrix());
    linear_swiglu(c, h, tokens, gate, up, activation);
    linear(c, activation, tokens, &mut [Job::accumulate(weights.down_proj.matrix(), x)]);
}
