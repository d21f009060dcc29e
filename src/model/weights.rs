//! The weights of the text network, as views into the checkpoint's memory map.
//!
//! Matrices stay in their file, in their stored type. Only vectors are copied, widened to
//! `f32`; the offset of one that the model's norms carry (`x * (1 + w)`) is added here,
//! once, in `f32`. The norm inside the linear layers is the exception: its weight is plain.

use crate::checkpoint::{Checkpoint, Config, LayerKind, Tensor};
use crate::kernels::{ConvTaps, Matrix, Weights};
use crate::{Error, Result};

/// A weight matrix `[rows, cols]`, row-major: `y = x W^T`.
#[derive(Clone)]
pub struct Linear {
    tensor: Tensor,
    rows: usize,
    cols: usize,
}

impl Linear {
    fn load(checkpoint: &Checkpoint, name: &str, rows: usize, cols: usize) -> Result<Self> {
        Self::of(checkpoint.tensor(name, &[rows, cols])?, rows, cols)
    }

    fn of(tensor: Tensor, rows: usize, cols: usize) -> Result<Self> {
        if weights_of(&tensor).is_none() {
            let dtype = tensor.dtype();
            return Err(Error::unsupported(format!("a weight matrix of {dtype} elements")));
        }
        Ok(Self { tensor, rows, cols })
    }

    /// The view that kernels take.
    pub fn matrix(&self) -> Matrix<'_> {
        let weights = weights_of(&self.tensor).expect("checked when it was loaded");
        Matrix::new(weights, self.rows, self.cols)
    }
}

fn weights_of(tensor: &Tensor) -> Option<Weights<'_>> {
    if let Some(values) = tensor.bf16() {
        Some(Weights::Bf16(values))
    } else if let Some(values) = tensor.f16() {
        Some(Weights::F16(values))
    } else {
        tensor.f32().map(Weights::F32)
    }
}

/// Gated DeltaNet. H hidden_size, KH/VH key/value heads, DK/DV their sizes,
/// C = 2 KH DK + VH DV channels, ordered q | k | v.
pub struct DeltaNetWeights {
    /// `[C, H]`
    pub in_proj_qkv: Linear,
    /// `[VH DV, H]`
    pub in_proj_z: Linear,
    /// `[VH, H]`: decay
    pub in_proj_a: Linear,
    /// `[VH, H]`: write strength
    pub in_proj_b: Linear,
    /// `[C, width]`: tap `width - 1` multiplies the current token
    pub conv_taps: ConvTaps,
    /// `[VH]`: `-exp(A_log)`
    pub neg_a: Vec<f32>,
    /// `[VH]`
    pub dt_bias: Vec<f32>,
    /// `[DV]`, plain weight
    pub norm: Vec<f32>,
    /// `[H, VH DV]`
    pub out_proj: Linear,
}

/// Gated softmax attention. QH query heads, KVH key and value heads, D head_dim.
pub struct AttentionWeights {
    /// `[QH 2 D, H]`: per head D rows of query, then D rows of gate
    pub q_proj: Linear,
    /// `[KVH D, H]`
    pub k_proj: Linear,
    /// `[KVH D, H]`
    pub v_proj: Linear,
    /// `[D]`, 1 + w
    pub q_norm: Vec<f32>,
    /// `[D]`, 1 + w
    pub k_norm: Vec<f32>,
    /// `[H, QH D]`
    pub o_proj: Linear,
}

/// What mixes information between positions in a layer.
pub enum Mixer {
    /// Linear attention with a recurrent state.
    DeltaNet(DeltaNetWeights),
    /// Softmax attention over a KV cache.
    Attention(AttentionWeights),
}

/// SwiGLU feed-forward. I intermediate_size.
pub struct MlpWeights {
    /// `[I, H]`
    pub gate_proj: Linear,
    /// `[I, H]`
    pub up_proj: Linear,
    /// `[H, I]`
    pub down_proj: Linear,
}

/// One layer.
pub struct LayerWeights {
    /// `[H]`, 1 + w
    pub input_norm: Vec<f32>,
    /// DeltaNet or attention
    pub mixer: Mixer,
    /// `[H]`, 1 + w
    pub post_norm: Vec<f32>,
    /// Feed-forward
    pub mlp: MlpWeights,
}

/// All weights of the text network.
pub struct NetworkWeights {
    /// `[vocab_size, H]`
    pub embed_tokens: Linear,
    /// `num_hidden_layers` layers
    pub layers: Vec<LayerWeights>,
    /// `[H]`, 1 + w
    pub final_norm: Vec<f32>,
    /// `[vocab_size, H]`: turns the last hidden state into logits. The same memory as
    /// `embed_tokens` when the two are tied.
    pub head: Linear,
}

impl NetworkWeights {
    /// Views all tensors of the text network of `checkpoint`.
    ///
    /// # Errors
    /// As [`Checkpoint::tensor`]: a tensor is absent or has another shape or type.
    pub fn load(checkpoint: &Checkpoint) -> Result<Self> {
        let config = checkpoint.config();
        let hidden = config.hidden_size;
        let layers = config
            .layer_kinds
            .iter()
            .enumerate()
            .map(|(index, kind)| load_layer(checkpoint, config, index, *kind))
            .collect::<Result<_>>()?;
        Ok(Self {
            embed_tokens: Linear::load(
                checkpoint,
                "embed_tokens.weight",
                config.vocab_size,
                hidden,
            )?,
            layers,
            final_norm: norm_plus_one(checkpoint, "norm.weight", hidden)?,
            head: Linear::of(checkpoint.output_head()?, config.vocab_size, hidden)?,
        })
    }
}

fn load_layer(
    checkpoint: &Checkpoint,
    config: &Config,
    index: usize,
    kind: LayerKind,
) -> Result<LayerWeights> {
    let hidden = config.hidden_size;
    let intermediate = config.intermediate_size;
    let name = |part: &str| format!("layers.{index}.{part}");
    let linear = |part: &str, rows, cols| Linear::load(checkpoint, &name(part), rows, cols);
    let mixer = match kind {
        LayerKind::Linear => Mixer::DeltaNet(load_deltanet(checkpoint, config, &name)?),
        LayerKind::Full => Mixer::Attention(load_attention(checkpoint, config, &name)?),
    };
    Ok(LayerWeights {
        input_norm: norm_plus_one(checkpoint, &name("input_layernorm.weight"), hidden)?,
        mixer,
        post_norm: norm_plus_one(checkpoint, &name("post_attention_layernorm.weight"), hidden)?,
        mlp: MlpWeights {
            gate_proj: linear("mlp.gate_proj.weight", intermediate, hidden)?,
            up_proj: linear("mlp.up_proj.weight", intermediate, hidden)?,
            down_proj: linear("mlp.down_proj.weight", hidden, intermediate)?,
        },
    })
}

fn load_deltanet(
    checkpoint: &Checkpoint,
    config: &Config,
    name: &dyn Fn(&str) -> String,
) -> Result<DeltaNetWeights> {
    let hidden = config.hidden_size;
    let value_heads = config.linear_num_value_heads;
    let (values, channels) = (config.value_width(), config.conv_channels());
    let width = config.linear_conv_kernel_dim;
    let linear = |part: &str, rows, cols| {
        Linear::load(checkpoint, &name(&format!("linear_attn.{part}")), rows, cols)
    };
    let vector = |part: &str, shape: &[usize]| -> Result<Vec<f32>> {
        Ok(checkpoint.tensor(&name(&format!("linear_attn.{part}")), shape)?.to_f32())
    };
    let mut neg_a = vector("A_log", &[value_heads])?;
    for a in &mut neg_a {
        *a = -a.exp();
    }
    Ok(DeltaNetWeights {
        in_proj_qkv: linear("in_proj_qkv.weight", channels, hidden)?,
        in_proj_z: linear("in_proj_z.weight", values, hidden)?,
        in_proj_a: linear("in_proj_a.weight", value_heads, hidden)?,
        in_proj_b: linear("in_proj_b.weight", value_heads, hidden)?,
        conv_taps: ConvTaps::new(
            &vector("conv1d.weight", &[channels, 1, width])?,
            channels,
            width,
        )?,
        neg_a,
        dt_bias: vector("dt_bias", &[value_heads])?,
        norm: vector("norm.weight", &[config.linear_value_head_dim])?,
        out_proj: linear("out_proj.weight", hidden, values)?,
    })
}

fn load_attention(
    checkpoint: &Checkpoint,
    config: &Config,
    name: &dyn Fn(&str) -> String,
) -> Result<AttentionWeights> {
    let hidden = config.hidden_size;
    let queries = config.num_attention_heads * config.head_dim;
    let keys = config.num_key_value_heads * config.head_dim;
    let linear = |part: &str, rows, cols| {
        Linear::load(checkpoint, &name(&format!("self_attn.{part}.weight")), rows, cols)
    };
    Ok(AttentionWeights {
        q_proj: linear("q_proj", 2 * queries, hidden)?,
        k_proj: linear("k_proj", keys, hidden)?,
        v_proj: linear("v_proj", keys, hidden)?,
        q_norm: norm_plus_one(checkpoint, &name("self_attn.q_norm.weight"), config.head_dim)?,
        k_norm: norm_plus_one(checkpoint, &name("self_attn.k_norm.weight"), config.head_dim)?,
        o_proj: linear("o_proj", hidden, queries)?,
    })
}

fn norm_plus_one(checkpoint: &Checkpoint, name: &str, width: usize) -> Result<Vec<f32>> {
    let mut weight = checkpoint.tensor(name, &[width])?.to_f32();
    for w in &mut weight {
        *w += 1.0;
    }
    Ok(weight)
}
