//! Scratch of one pass through the network.
//!
//! A workspace is as large as the largest chunk it has computed and is used again, so that
//! decoding allocates nothing per token. It belongs to no session: a model lends one to
//! whichever session computes.

use super::batch::BatchScratch;
use super::head::HeadScratch;
use super::recurrent::{Recurrent, Spare};
use crate::Result;
use crate::checkpoint::{Config, LayerKind};
use crate::kernels::Buffer;

/// Tokens computed together at most. Each weight is read once per chunk; more tokens gain
/// little speed and cost memory and responsiveness.
pub const MAX_CHUNK: usize = 256;

/// Tokens that there is room for at least: decoding needs one, a batch some.
const LEAST_ROWS: usize = 8;
/// Passes over few tokens after which the room for many is given back (23 MB at 0.8B): the
/// next prompt is far, and making it anew takes a few milliseconds.
const SMALL_PASSES: u32 = 16;

/// Buffers of one pass, each from the start of a cache line on; T tokens of the chunk, other letters as in [`super::weights`].
#[derive(Default)]
pub struct Workspace {
    capacity: usize,
    /// Passes since one needed so much.
    small_passes: u32,
    /// Tokens of the pass in progress.
    pub(super) tokens: usize,
    /// Whether the last layer computes all of them to the end, and not only the last one.
    pub(super) every_row: bool,
    /// Position of its first token.
    pub(super) first_position: usize,
    /// `[T, H]`: the residual stream.
    pub(super) x: Buffer<f32>,
    /// `[T, H]`: the normalised input of a block.
    pub(super) h: Buffer<f32>,
    /// `[T, C]` before the convolution, or `[T, QH 2 D]`, queries and gates interleaved.
    pub(super) projected: Buffer<f32>,
    /// `[T, QH D]`: queries.
    pub(super) mixed: Buffer<f32>,
    /// `[T, VH DV]`: z; or `[T, KVH D]`: keys as projected.
    pub(super) z_or_keys: Buffer<f32>,
    /// `[T, KVH D]`: keys, normalised and rotated.
    pub(super) keys: Buffer<f32>,
    /// `[T, KVH D]`
    pub(super) values: Buffer<f32>,
    /// `[T, VH]`: projection for the decay.
    pub(super) a: Buffer<f32>,
    /// `[T, VH]`: projection for the write strength.
    pub(super) b: Buffer<f32>,
    /// `[T, VH]`: logarithm of the decay.
    pub(super) g: Buffer<f32>,
    /// `[T, VH]`: write strength.
    pub(super) beta: Buffer<f32>,
    /// `[T, VH DV]` or `[T, QH D]`: what the mixer read out.
    pub(super) read_out: Buffer<f32>,
    /// `[T, I]`
    pub(super) activation: Buffer<f32>,
    /// `[T, rotary_dim / 2]`
    pub(super) cos: Buffer<f32>,
    /// `[T, rotary_dim / 2]`
    pub(super) sin: Buffer<f32>,
    /// The state after the pass, until it is committed.
    pub(super) pending: Recurrent,
    /// Memory for it.
    pub(super) spare: Spare,
    /// Of the head.
    pub(super) head: HeadScratch,
    /// What a pass over several sequences needs, too.
    pub(super) batch: BatchScratch,
}

/// How wide the rows are that layers need. A kind of layer that a network does not have needs
/// none, whatever sizes its configuration has for it.
#[derive(Default)]
struct Widths {
    /// QH D
    queries: usize,
    /// KVH D
    kv: usize,
    /// VH DV
    values: usize,
    /// C
    channels: usize,
    /// VH
    heads: usize,
}

impl Widths {
    fn new(config: &Config) -> Self {
        let mut widths = Self::default();
        if config.layer_kinds.contains(&LayerKind::Full) {
            widths.queries = config.num_attention_heads * config.head_dim;
            widths.kv = config.num_key_value_heads * config.head_dim;
        }
        if config.layer_kinds.contains(&LayerKind::Linear) {
            widths.values = config.value_width();
            widths.channels = config.conv_channels();
            widths.heads = config.linear_num_value_heads;
        }
        widths
    }
}

impl Workspace {
    /// Floats of all buffers together, for each token of a chunk.
    pub fn floats_per_token(config: &Config) -> usize {
        let Widths { queries, kv, values, channels, heads } = Widths::new(config);
        2 * config.hidden_size
            + channels.max(2 * queries)
            + queries
            + values.max(kv)
            + 2 * kv
            + 4 * heads
            + values.max(queries)
            + config.intermediate_size
            + config.rotary_dim
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        let buffers = [
            &self.x,
            &self.h,
            &self.projected,
            &self.mixed,
            &self.z_or_keys,
            &self.keys,
            &self.values,
            &self.a,
            &self.b,
            &self.g,
            &self.beta,
            &self.read_out,
            &self.activation,
            &self.cos,
            &self.sin,
        ];
        let values = buffers.iter().map(|buffer| buffer.len()).sum::<usize>();
        values * size_of::<f32>() + self.pending.bytes() + self.spare.bytes()
    }

    /// Makes room for `tokens` tokens of a network with `config`. What a prompt needed and
    /// the answer does not is given back after some passes.
    ///
    /// # Errors
    /// `OutOfMemory`; the workspace is as before.
    pub(super) fn ensure(&mut self, config: &Config, tokens: usize) -> Result<()> {
        let capacity = tokens.next_power_of_two().max(LEAST_ROWS);
        if capacity * 4 <= self.capacity {
            self.small_passes += 1;
        } else {
            self.small_passes = 0;
        }
        if tokens <= self.capacity && self.small_passes < SMALL_PASSES {
            return Ok(());
        }
        let room = |width: usize| Buffer::zeroed(capacity * width, "the workspace");
        let Widths { queries, kv, values, channels, heads } = Widths::new(config);
        *self = Self {
            capacity,
            small_passes: 0,
            tokens: 0,
            every_row: false,
            first_position: 0,
            x: room(config.hidden_size)?,
            h: room(config.hidden_size)?,
            projected: room(channels.max(2 * queries))?,
            mixed: room(queries)?,
            z_or_keys: room(values.max(kv))?,
            keys: room(kv)?,
            values: room(kv)?,
            a: room(heads)?,
            b: room(heads)?,
            g: room(heads)?,
            beta: room(heads)?,
            read_out: room(values.max(queries))?,
            activation: room(config.intermediate_size)?,
            cos: room(config.rotary_dim / 2)?,
            sin: room(config.rotary_dim / 2)?,
            head: std::mem::take(&mut self.head),
            batch: std::mem::take(&mut self.batch),
            pending: std::mem::take(&mut self.pending),
            spare: std::mem::take(&mut self.spare),
        };
        Ok(())
    }
}
