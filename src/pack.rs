//! Packing: a checkpoint folder to one file, see [`crate::checkpoint::packed`].

use std::ops::ControlFlow;
use std::path::Path;

use crate::checkpoint::packed::{self, Element, Kind, PackedFile, Writer};
use crate::checkpoint::{Checkpoint, Dtype, Tensor};
use crate::engine::{Origin, quantizer, weight_format};
use crate::kernels::{Cancel, Compute, Isa, TileFormat};
use crate::model::WeightFormat;
use crate::model::loader::{check_finite, made_into, quantized};
use crate::pool::Pool;
use crate::{Error, Result};

/// What packing and verifying tell about their progress: bytes done and bytes to do. `Break`
/// cancels.
pub type PackProgress<'a> = &'a mut dyn FnMut(u64, u64) -> ControlFlow<()>;

/// How to pack.
#[derive(Clone, Copy, Debug, Default)]
pub struct PackOptions {
    /// What weight matrices are made into. A source that is quantized stays as it is.
    pub weights: WeightFormat,
    /// Threads that quantize, the caller's own included; 0: as many as this process may use.
    pub threads: usize,
}

/// What was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packed {
    /// Length of the file in bytes.
    pub bytes: u64,
    /// Bytes of the weights in it.
    pub weight_bytes: u64,
    /// The fingerprint of the checkpoint, see [`Checkpoint::fingerprint`].
    pub fingerprint: u64,
}

/// Packs the checkpoint `source` into the file `destination`, which is there whole or not at
/// all; a file that was there is replaced, and so is a link, which is not followed.
///
/// # Errors
/// As [`Model::open`](crate::Model::open) for the source; `Io` where the destination cannot be
/// written, or is something else than a regular file; `Busy` while another file is being packed
/// for the same destination; `Cancelled` by `progress`.
pub fn pack(
    source: &Path,
    destination: &Path,
    options: &PackOptions,
    progress: PackProgress,
) -> Result<Packed> {
    let origin = Origin::open(source)?;
    let checkpoint = origin.checkpoint()?;
    let format = weight_format(&checkpoint, options.weights)?;
    // What cannot be opened later is refused now.
    let tokenizer = origin.tokenizer()?;
    let tables = tokenizer.to_tables()?;

    let mut writer = Writer::create(destination)?;
    let (config, generation) = checkpoint.documents()?;
    writer.text("config.json", &config)?;
    if let Some(generation) = generation {
        writer.text("generation_config.json", &generation)?;
    }
    writer.text("tokenizer", &tables.settings)?;
    if let Some(chat) = origin.chat_document()? {
        writer.text("chat", &chat)?;
    }
    let mut table = |name: &str, element, shape: &[usize], bytes: &[u8]| {
        writer.section(Kind::Tokenizer, name, element, shape, bytes)
    };
    table("tokenizer.bytes", Element::U8, &[tables.bytes.len()], &tables.bytes)?;
    table("tokenizer.ends", Element::U32, &[tables.ends.len() / 4], &tables.ends)?;
    table("tokenizer.merges", Element::U32, &[tables.merges.len() / 12, 3], &tables.merges)?;

    let total = checkpoint.text_bytes();
    let mut tell = |done: u64| match progress(done, total) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(Error::cancelled("packing was cancelled")),
    };
    let (pool, cancel) = (Pool::new(options.threads)?, Cancel::new());
    let compute = Compute::new(Isa::best(), &pool, &cancel);
    let (mut done, mut weight_bytes) = (0, 0);
    let mut advance = |bytes: u64| {
        done += bytes;
        // Rounding of pieces must not let the count end late.
        tell(done.min(total))
    };
    for (name, shape) in checkpoint.text_tensors() {
        advance(0)?;
        let (element, tensor) = match made(&checkpoint, &name, &shape, format)? {
            Made::AsStored(tensor) => {
                advance(tensor.bytes())?;
                if format != WeightFormat::Stored {
                    check_finite(&name, &tensor).map_err(|error| checkpoint.blame(&name, error))?;
                }
                (element_of(&name, &tensor)?, tensor)
            }
            Made::Quantized(format, tensor) => {
                advance(tensor.bytes())?;
                (tiles_of(format), tensor)
            }
            Made::ToQuantize(format, tensor) => {
                let tiles = quantized(&compute, &name, tensor, format, &mut advance)
                    .map_err(|error| checkpoint.blame(&name, error))?;
                (tiles_of(format), tiles)
            }
        };
        writer.section(Kind::Weights, &name, element, &shape, tensor.as_bytes())?;
        weight_bytes += tensor.bytes();
    }
    let fingerprint = checkpoint.fingerprint()?;
    let quantizer = quantizer(&checkpoint, format);
    let weight_format = number_of(format);
    let bytes = writer.finish(packed::Header { weight_format, quantizer, fingerprint })?;
    // The file is there: too late to cancel.
    let _ = progress(total, total);
    Ok(Packed { bytes, weight_bytes, fingerprint })
}

/// What becomes of a tensor.
enum Made {
    AsStored(Tensor),
    /// It is in the source.
    Quantized(TileFormat, Tensor),
    ToQuantize(TileFormat, Tensor),
}

fn made(
    checkpoint: &Checkpoint,
    name: &str,
    shape: &[usize],
    format: WeightFormat,
) -> Result<Made> {
    if let &[rows, cols] = shape
        && let Some((format, tensor)) = checkpoint.tiles(name, rows, cols)?
    {
        return Ok(Made::Quantized(format, tensor));
    }
    let tensor = checkpoint.tensor(name, shape)?;
    Ok(match format.tiles() {
        Some(format) => match made_into(checkpoint, name, shape, format) {
            Some(format) => Made::ToQuantize(format, tensor),
            None => Made::AsStored(tensor),
        },
        None => Made::AsStored(tensor),
    })
}

fn element_of(name: &str, tensor: &Tensor) -> Result<Element> {
    match tensor.dtype() {
        Dtype::BF16 => Ok(Element::BF16),
        Dtype::F16 => Ok(Element::F16),
        Dtype::F32 => Ok(Element::F32),
        other => Err(Error::unsupported(format!("tensor {name} of {other}"))),
    }
}

fn tiles_of(format: TileFormat) -> Element {
    match format {
        TileFormat::Int8 => Element::Int8,
        TileFormat::Int4 => Element::Int4,
        TileFormat::Int8Planes => Element::Int8Planes,
        TileFormat::Int4Planes => Element::Int4Planes,
    }
}

/// As the header writes it.
fn number_of(format: WeightFormat) -> u32 {
    match format {
        WeightFormat::Stored => 0,
        WeightFormat::Int8 => 1,
        WeightFormat::Int4 => 2,
    }
}

/// Checks all of the packed file at `path`, weights and padding included, and that a model can
/// be made of it.
///
/// # Errors
/// As [`PackedFile::open`], `Format` for a section that is damaged, `Cancelled` by `progress`.
pub fn verify(path: &Path, progress: PackProgress) -> Result<()> {
    let file = std::sync::Arc::new(PackedFile::open(path)?);
    packed::verify(&file, &mut |done, total| match progress(done, total) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(Error::cancelled("the check was cancelled")),
    })?;
    let origin = Origin::Packed(file.clone());
    Checkpoint::open_packed(&file)?;
    origin.tokenizer()?;
    Ok(())
}
