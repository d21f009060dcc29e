//! The weights of the text network: as views into the checkpoint's memory map, or quantized.
//!
//! As stored, matrices stay in their file, in their stored type. Quantized ones are made by
//! the [`Loader`] and owned. Vectors are copied, widened to `f32`; the offset of one that
//! the model's norms carry (`x * (1 + w)`) is added here, once, in `f32`. The norm inside
//! the linear layers is the exception: its weight is plain.

use std::ops::Range;

use super::head::Head;
use super::loader::Loader;
use crate::checkpoint::{Config, LayerKind, Tensor};
use crate::kernels::quantized::TILE_ROWS;
use crate::kernels::{ConvTaps, Matrix, TileFormat, Weights};
use crate::{Error, Result};

/// A weight matrix `[rows, cols]`: `y = x W^T`. Clones share the weights.
#[derive(Clone)]
pub struct Linear {
    storage: Storage,
    rows: usize,
    cols: usize,
}

#[derive(Clone)]
enum Storage {
    /// Row-major, of a type that [`weights_of`] knows.
    Stored(Tensor),
    /// In the layout of [`crate::kernels::quantized::layout`].
    Tiles(TileFormat, Tensor),
}

impl Linear {
    /// The weights in `tensor`, which is `[rows, cols]`.
    ///
    /// # Errors
    /// `Unsupported` for an element type that kernels do not read.
    pub(super) fn stored(tensor: Tensor, rows: usize, cols: usize) -> Result<Self> {
        if weights_of(&tensor).is_none() {
            let dtype = tensor.dtype();
            return Err(Error::unsupported(format!("a weight matrix of {dtype} elements")));
        }
        Ok(Self { storage: Storage::Stored(tensor), rows, cols })
    }

    /// The quantized weights in `tiles`, U8 elements, as many as such a matrix has bytes.
    ///
    /// # Errors
    /// `Format` where that is not so.
    pub(super) fn tiles(
        format: TileFormat,
        tiles: Tensor,
        rows: usize,
        cols: usize,
    ) -> Result<Self> {
        let (found, expected) = (tiles.u8().map(<[u8]>::len), format.bytes(rows, cols));
        if found.is_none() || found != expected {
            return Err(Error::format(format!(
                "quantized weights [{rows}, {cols}] in {tiles:?}: expected {expected:?} bytes"
            )));
        }
        Ok(Self { storage: Storage::Tiles(format, tiles), rows, cols })
    }

    /// The view that kernels take.
    pub fn matrix(&self) -> Matrix<'_> {
        let weights = match &self.storage {
            Storage::Stored(tensor) => weights_of(tensor).expect("checked when it was loaded"),
            Storage::Tiles(format, tiles) => {
                Weights::Tiles(*format, tiles.u8().expect("checked when it was made"))
            }
        };
        Matrix::new(weights, self.rows, self.cols)
    }

    /// Bytes of its weights.
    pub fn bytes(&self) -> u64 {
        self.matrix().weights.bytes() as u64
    }

    /// Whether the weights are stored as kernels widen them, in a mapped file, so that
    /// [`Linear::release`] does something.
    pub(super) fn is_stored_in_file(&self) -> bool {
        matches!(&self.storage, Storage::Stored(tensor) if tensor.is_file())
    }

    /// Whether the weights are in two planes.
    pub(super) fn is_planes(&self) -> bool {
        matches!(&self.storage, Storage::Tiles(format, _) if format.is_planes())
    }

    /// As [`Linear::release`], for the second plane of all rows.
    pub(super) fn release_second_plane(&self) {
        if let Storage::Tiles(format, tiles) = &self.storage
            && format.is_planes()
        {
            let first = self.rows.div_ceil(TILE_ROWS) * format.tile_bytes(self.cols);
            tiles.release(first..tiles.elements());
        }
    }

    /// Gives the memory pages of these rows back to the system, which reads them from the
    /// file again when they are needed.
    pub(super) fn release(&self, rows: Range<usize>) {
        if let Storage::Stored(tensor) = &self.storage {
            tensor.release(rows.start * self.cols..rows.end * self.cols);
        }
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
    pub(super) head: Head,
}

impl NetworkWeights {
    /// All weights of the text network of a checkpoint.
    ///
    /// # Errors
    /// As [`crate::checkpoint::Checkpoint::tensor`]: a tensor is absent or has another shape
    /// or type; those of [`Loader::linear`].
    pub(super) fn load(loader: &mut Loader) -> Result<Self> {
        let config = loader.config().clone();
        let (vocabulary, hidden) = (config.vocab_size, config.hidden_size);
        let layers = config
            .layer_kinds
            .iter()
            .enumerate()
            .map(|(index, kind)| load_layer(loader, &config, index, *kind))
            .collect::<Result<_>>()?;
        let embed_tokens = loader.linear("embed_tokens.weight", vocabulary, hidden)?;
        let head = match loader.own_head() {
            Some(name) => loader.linear(name, vocabulary, hidden)?,
            None => embed_tokens.clone(),
        };
        let final_norm = norm_plus_one(loader, "norm.weight", hidden)?;
        Ok(Self { embed_tokens, layers, final_norm, head: Head::new(head) })
    }
}

fn load_layer(
    loader: &mut Loader,
    config: &Config,
    index: usize,
    kind: LayerKind,
) -> Result<LayerWeights> {
    let (hidden, intermediate) = (config.hidden_size, config.intermediate_size);
    let name = |part: &str| format!("layers.{index}.{part}");
    let mixer = match kind {
        LayerKind::Linear => Mixer::DeltaNet(load_deltanet(loader, config, &name)?),
        LayerKind::Full => Mixer::Attention(load_attention(loader, config, &name)?),
    };
    Ok(LayerWeights {
        input_norm: norm_plus_one(loader, &name("input_layernorm.weight"), hidden)?,
        mixer,
        post_norm: norm_plus_one(loader, &name("post_attention_layernorm.weight"), hidden)?,
        mlp: MlpWeights {
            gate_proj: loader.linear(&name("mlp.gate_proj.weight"), intermediate, hidden)?,
            up_proj: loader.linear(&name("mlp.up_proj.weight"), intermediate, hidden)?,
            down_proj: loader.linear(&name("mlp.down_proj.weight"), hidden, intermediate)?,
        },
    })
}

fn load_deltanet(
    loader: &mut Loader,
    config: &Config,
    name: &dyn Fn(&str) -> String,
) -> Result<DeltaNetWeights> {
    let name = |part: &str| name(&format!("linear_attn.{part}"));
    let (hidden, heads) = (config.hidden_size, config.linear_num_value_heads);
    let (values, channels) = (config.value_width(), config.conv_channels());
    let width = config.linear_conv_kernel_dim;
    let mut neg_a = loader.vector(&name("A_log"), &[heads])?;
    for a in &mut neg_a {
        *a = -a.exp();
    }
    let taps = loader.vector(&name("conv1d.weight"), &[channels, 1, width])?;
    Ok(DeltaNetWeights {
        in_proj_qkv: loader.linear(&name("in_proj_qkv.weight"), channels, hidden)?,
        in_proj_z: loader.linear(&name("in_proj_z.weight"), values, hidden)?,
        // Few weights that decide how long the state remembers: never quantized.
        in_proj_a: loader.wide_linear(&name("in_proj_a.weight"), heads, hidden)?,
        in_proj_b: loader.wide_linear(&name("in_proj_b.weight"), heads, hidden)?,
        conv_taps: ConvTaps::new(&taps, channels, width)?,
        neg_a,
        dt_bias: loader.vector(&name("dt_bias"), &[heads])?,
        norm: loader.vector(&name("norm.weight"), &[config.linear_value_head_dim])?,
        out_proj: loader.linear(&name("out_proj.weight"), hidden, values)?,
    })
}

fn load_attention(
    loader: &mut Loader,
    config: &Config,
    name: &dyn Fn(&str) -> String,
) -> Result<AttentionWeights> {
    let name = |part: &str| name(&format!("self_attn.{part}.weight"));
    let (hidden, dim) = (config.hidden_size, config.head_dim);
    let (queries, keys) = (config.num_attention_heads * dim, config.num_key_value_heads * dim);
    Ok(AttentionWeights {
        q_proj: loader.linear(&name("q_proj"), 2 * queries, hidden)?,
        k_proj: loader.linear(&name("k_proj"), keys, hidden)?,
        v_proj: loader.linear(&name("v_proj"), keys, hidden)?,
        q_norm: norm_plus_one(loader, &name("q_norm"), dim)?,
        k_norm: norm_plus_one(loader, &name("k_norm"), dim)?,
        o_proj: loader.linear(&name("o_proj"), hidden, queries)?,
    })
}

fn norm_plus_one(loader: &mut Loader, name: &str, width: usize) -> Result<Vec<f32>> {
    let mut weight = loader.vector(name, &[width])?;
    for w in &mut weight {
        *w += 1.0;
    }
    Ok(weight)
}
