//! Where weights come from: a checkpoint, and what becomes of its matrices on the way.

use super::weights::Linear;
use crate::checkpoint::{Checkpoint, Config, Tensor};
use crate::kernels::quantized::{TILE_ROWS, quantize, split};
use crate::kernels::{Compute, TileFormat};
use crate::{Error, Result};

/// What weight matrices are made into when a model is opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum WeightFormat {
    /// Left as the checkpoint stores them, in its memory map.
    #[default]
    Stored,
    /// INT8 with a scale for every 32 weights of a row: 8.5 bits per weight.
    Int8,
    /// INT4 with a scale for every 32 weights of a row: 4.5 bits per weight.
    Int4,
}

impl WeightFormat {
    /// The format of quantized matrices, if they are.
    pub fn tiles(self) -> Option<TileFormat> {
        match self {
            Self::Stored => None,
            Self::Int8 => Some(TileFormat::Int8),
            Self::Int4 => Some(TileFormat::Int4),
        }
    }

    /// Its name in options: `bf16` (whatever type the checkpoint holds), `int8`, `int4`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Stored => "bf16",
            Self::Int8 => "int8",
            Self::Int4 => "int4",
        }
    }
}

/// Told how many bytes of weights have been read and how many there are; says whether to go
/// on.
pub type Progress<'a> = dyn FnMut(u64, u64) -> bool + 'a;

/// Weights that are quantized between two looks at the caller's wish to go on: some
/// milliseconds.
const PIECE: usize = 512 << 10;

/// Reads the tensors of a checkpoint one after the other.
pub struct Loader<'a> {
    checkpoint: &'a Checkpoint,
    format: WeightFormat,
    compute: &'a Compute<'a>,
    progress: &'a mut Progress<'a>,
    /// Bytes of the checkpoint that have been read.
    done: u64,
    /// Bytes of the weights made so far.
    bytes: u64,
}

impl<'a> Loader<'a> {
    /// Reads `checkpoint`, with matrices in `format`, which `compute` makes.
    pub fn new(
        checkpoint: &'a Checkpoint,
        format: WeightFormat,
        compute: &'a Compute<'a>,
        progress: &'a mut Progress<'a>,
    ) -> Self {
        Self { checkpoint, format, compute, progress, done: 0, bytes: 0 }
    }

    /// The model's configuration.
    pub(super) fn config(&self) -> &'a Config {
        self.checkpoint.config()
    }

    /// Bytes of all the weights that were asked for, as they are now.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The name of the output head where it is a tensor of its own, and not the embedding.
    pub(super) fn own_head(&self) -> Option<&'static str> {
        self.checkpoint.has("lm_head.weight").then_some("lm_head.weight")
    }

    /// The matrix `name`, `[rows, cols]`, in the format of the model.
    ///
    /// # Errors
    /// Those of [`Checkpoint::tensor`]; `Format` where a weight is not finite or too large
    /// to be quantized; `Cancelled` at the caller's wish; `OutOfMemory`.
    pub(super) fn linear(&mut self, name: &str, rows: usize, cols: usize) -> Result<Linear> {
        if let Some((format, tiles)) = self.checkpoint.tiles(name, rows, cols)? {
            if self.format.tiles() != Some(format.whole()) {
                return Err(Error::format(format!(
                    "tensor {name} holds {format:?} weights, expected {}",
                    self.format.name()
                )));
            }
            self.bytes += tiles.bytes();
            self.advance(tiles.bytes())?;
            return Linear::tiles(format, tiles, rows, cols);
        }
        let tensor = self.tensor(name, &[rows, cols])?;
        let read = tensor.bytes();
        let format = self.format.tiles();
        let format = format.and_then(|f| made_into(self.checkpoint, name, &[rows, cols], f));
        let Some(format) = format else {
            self.bytes += read;
            self.advance(read)?;
            return Linear::stored(tensor, rows, cols);
        };
        let compute = self.compute;
        let tiles = quantized(compute, name, tensor, format, &mut |bytes| self.advance(bytes))
            .map_err(|error| self.checkpoint.blame(name, error))?;
        self.bytes += tiles.bytes();
        Linear::tiles(format, tiles, rows, cols)
    }

    /// The matrix `name`, `[rows, cols]`, which is never quantized. It keeps the checkpoint
    /// mapped only if others do.
    ///
    /// # Errors
    /// As [`Loader::linear`].
    pub(super) fn wide_linear(&mut self, name: &str, rows: usize, cols: usize) -> Result<Linear> {
        let mut tensor = self.tensor(name, &[rows, cols])?;
        if self.format.tiles().is_some() && !self.checkpoint.is_read_by_host() {
            tensor = tensor.detached()?;
        }
        self.bytes += tensor.bytes();
        self.advance(tensor.bytes())?;
        self.check_finite(name, &tensor)?;
        Linear::stored(tensor, rows, cols)
    }

    /// The tensor `name` of shape `shape`, widened.
    ///
    /// # Errors
    /// As [`Loader::linear`].
    pub(super) fn vector(&mut self, name: &str, shape: &[usize]) -> Result<Vec<f32>> {
        let tensor = self.tensor(name, shape)?;
        self.bytes += tensor.bytes();
        self.advance(tensor.bytes())?;
        self.check_finite(name, &tensor)?;
        Ok(tensor.to_f32())
    }

    /// Where matrices are quantized, which refuses what is not finite, so does this for a tensor
    /// that stays as it is. Weights as stored are not looked through.
    fn check_finite(&self, name: &str, tensor: &Tensor) -> Result<()> {
        match self.format {
            WeightFormat::Stored => Ok(()),
            _ => check_finite(name, tensor).map_err(|error| self.checkpoint.blame(name, error)),
        }
    }

    /// The tensor `name`, which the host may have to read first.
    fn tensor(&mut self, name: &str, shape: &[usize]) -> Result<Tensor> {
        let checkpoint = self.checkpoint;
        checkpoint.tensor_in_steps(name, shape, &mut |bytes| self.advance(bytes))
    }

    /// Counts `bytes` of the checkpoint as read and asks whether to go on. Where the host
    /// reads, all bytes come twice: when they are read, and when they are used.
    fn advance(&mut self, bytes: u64) -> Result<()> {
        self.done += bytes;
        let times = if self.checkpoint.is_read_by_host() { 2 } else { 1 };
        // Rounding of pieces must not let the count end early or late.
        let total = (times * self.checkpoint.text_bytes()).max(self.done);
        if (self.progress)(self.done, total) {
            Ok(())
        } else {
            Err(Error::cancelled("opening the model was cancelled"))
        }
    }
}

/// Bytes of the weights of `checkpoint` with its matrices in `format`.
pub fn loaded_bytes(checkpoint: &Checkpoint, format: WeightFormat) -> u64 {
    let Some(format) = format.tiles() else { return checkpoint.text_bytes() };
    let mut bytes = 0u64;
    for (name, shape) in checkpoint.text_tensors() {
        let more = match shape[..] {
            [rows, cols] if made_into(checkpoint, &name, &shape, format).is_some() => {
                format.bytes(rows, cols).map_or(u64::MAX, |n| n as u64)
            }
            _ => checkpoint.stored_bytes(&name) as u64,
        };
        bytes = bytes.saturating_add(more);
    }
    bytes
}

/// Matrices that are never quantized: few weights, which decide how long the state remembers
/// and what is written to it.
const WIDE: [&str; 2] = ["in_proj_a.weight", "in_proj_b.weight"];

/// What the tensor `name` of `checkpoint` is made into where weights are quantized to `format`:
/// matrices are, but for the few weights that decide how long the recurrent state remembers; the
/// output matrix in two planes.
pub(crate) fn made_into(
    checkpoint: &Checkpoint,
    name: &str,
    shape: &[usize],
    format: TileFormat,
) -> Option<TileFormat> {
    let is_quantized = shape.len() == 2 && !WIDE.iter().any(|end| name.ends_with(end));
    let is_output = name == checkpoint.output_name();
    is_quantized.then_some(if is_output { format.planes() } else { format })
}

/// That `tensor`, which is called `name` and is not quantized, holds finite weights.
///
/// # Errors
/// `Format`, naming the first that is not.
pub(crate) fn check_finite(name: &str, tensor: &Tensor) -> Result<()> {
    let weights = tensor.to_f32();
    match weights.iter().position(|weight| !weight.is_finite()) {
        None => Ok(()),
        Some(at) => {
            Err(Error::format(format!("tensor {name}: weight {at} is not finite: {}", weights[at])))
        }
    }
}

/// The matrix `tensor`, which is called `name`, in tiles. `advance` is told the bytes of the
/// tensor that were read, and can end the work by an error.
///
/// # Errors
/// `Format` where a weight is not finite or too large; `OutOfMemory`; what `advance` returns.
pub(crate) fn quantized(
    compute: &Compute,
    name: &str,
    tensor: Tensor,
    format: TileFormat,
    advance: &mut dyn FnMut(u64) -> Result<()>,
) -> Result<Tensor> {
    let &[rows, cols] = tensor.shape() else {
        return Err(Error::internal(format!("{name} is no matrix")));
    };
    let (read, elements) = (tensor.bytes(), tensor.elements());
    let stored = Linear::stored(tensor, rows, cols)?;
    let refused = || Error::out_of_memory("quantized weights", elements);
    let size = format.bytes(rows, cols).ok_or_else(refused)?;
    let step = (PIECE / cols).next_multiple_of(TILE_ROWS).max(TILE_ROWS);
    let each = step / TILE_ROWS;
    let mut made = |piece: usize, out: &mut [u8]| {
        let piece = piece * step..rows.min((piece + 1) * step);
        let part = read * piece.len() as u64 / rows as u64;
        quantize(compute, &stored.matrix(), piece, format.whole(), out)
            .map_err(|error| error.within(format!("tensor {name}")))?;
        advance(part)
    };
    if !format.is_planes() {
        return Tensor::filled(size, |tiles| {
            let mut pieces = tiles.chunks_mut(each * format.tile_bytes(cols)).enumerate();
            pieces.try_for_each(|(piece, out)| made(piece, out))
        });
    }
    let (tile, rest_tile) = (format.tile_bytes(cols), format.rest_bytes(cols));
    let mut whole = Vec::new();
    let most = each * (tile + rest_tile);
    whole.try_reserve_exact(most).map_err(|_| Error::out_of_memory("quantized weights", most))?;
    Tensor::filled(size, |tiles| {
        let (first, rest) = tiles.split_at_mut(rows.div_ceil(TILE_ROWS) * tile);
        let pieces = first.chunks_mut(each * tile).zip(rest.chunks_mut(each * rest_tile));
        for (piece, (first, rest)) in pieces.enumerate() {
            whole.resize(first.len() + rest.len(), 0);
            made(piece, &mut whole)?;
            split(compute, format.whole(), cols, &whole, first, rest);
            compute.check()?;
        }
        Ok(())
    })
}
