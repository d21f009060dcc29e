//! What a model will cost in memory, from its headers alone.

use std::path::Path;
use std::sync::Arc;

use super::{ModelOptions, Origin};
use crate::checkpoint::packed::PackedFile;
use crate::checkpoint::{Checkpoint, HostFolder};
use crate::kernels::KvElement;
use crate::model::{WeightFormat, loaded_bytes, sizes};
use crate::{Error, Result};

/// Memory of a model and of a session on it, in bytes. The tokenizer (some 10 MB at the
/// published vocabulary) and the code come on top.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Estimate {
    /// Weights in use.
    pub weights: u64,
    /// Of those, what is mapped from a file: the system can take it back, and processes share
    /// it. Tensors that lie unaligned in their file are copied and do not count.
    pub mapped: u64,
    /// A session that holds the asked number of tokens, with keys and values as sessions of
    /// such a model store them by default.
    pub session: u64,
    /// Of those, what it takes at the start; the rest grows with its tokens, in pages.
    pub session_start: u64,
    /// What each fork, and each position that can be returned to, takes beyond the pages it
    /// shares.
    pub mark: u64,
    /// Keys and values of the asked number of tokens in each format: the part of `session`
    /// that depends on it.
    pub kv: KvBytes,
    /// Scratch memory for each session that computes at the same time as others.
    pub scratch: u64,
}

/// Bytes of the keys and values of one sequence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KvBytes {
    /// In [`KvElement::F32`].
    pub f32: u64,
    /// In [`KvElement::F16`].
    pub f16: u64,
    /// In [`KvElement::I8`].
    pub i8: u64,
}

impl KvBytes {
    /// Those in `element`.
    pub fn of(self, element: KvElement) -> u64 {
        match element {
            KvElement::F32 => self.f32,
            KvElement::F16 => self.f16,
            KvElement::I8 => self.i8,
        }
    }
}

/// Bytes of the weights in `format`, and of those that stay in their file.
fn weight_bytes(checkpoint: &Checkpoint, format: WeightFormat) -> (u64, u64) {
    let packed = checkpoint.packed().is_some_and(|file| file.weight_format() != 0);
    if packed || format == WeightFormat::Stored {
        return (checkpoint.text_bytes(), checkpoint.aligned_bytes());
    }
    (loaded_bytes(checkpoint, format), 0)
}

impl super::Model {
    /// What opening `path` with `options` will take, and a session of `context` tokens
    /// (0: as many as the model was made for). Headers are read and checked, weights are not,
    /// nor is the tokenizer.
    ///
    /// # Errors
    /// As [`Model::open`](super::Model::open), for what is read.
    pub fn estimate(path: &Path, options: &ModelOptions, context: usize) -> Result<Estimate> {
        Self::estimate_origin(&Origin::open(path)?, options, context)
    }

    /// As [`Model::estimate`](super::Model::estimate) for a packed file in memory, which
    /// [`Model::open_memory`](super::Model::open_memory) is to open. Nothing is mapped then: the
    /// weights are the host's memory where that is used as it is.
    ///
    /// # Errors
    /// As [`Model::open_memory`](super::Model::open_memory).
    pub fn estimate_memory(
        file: &[u8],
        options: &ModelOptions,
        context: usize,
    ) -> Result<Estimate> {
        let mut read = |offset: u64, to: &mut [u8]| {
            let start = usize::try_from(offset).unwrap_or(usize::MAX);
            let part = file.get(start..).and_then(|rest| rest.get(..to.len()));
            to.copy_from_slice(part.ok_or_else(|| Error::internal("a read beyond the file"))?);
            Ok(())
        };
        Self::estimate_reader(file.len() as u64, &mut read, options, context)
    }

    /// As [`Model::estimate`](super::Model::estimate) for a packed file of `size` bytes that
    /// the host reads. Large weights are not read. Nothing is mapped then.
    ///
    /// # Errors
    /// As [`Model::open_reader`](super::Model::open_reader).
    pub fn estimate_reader(
        size: u64,
        read: &mut dyn FnMut(u64, &mut [u8]) -> Result<()>,
        options: &ModelOptions,
        context: usize,
    ) -> Result<Estimate> {
        let file = PackedFile::outline(size, read)?;
        let estimate = Self::estimate_origin(&Origin::Packed(Arc::new(file)), options, context)?;
        Ok(Estimate { mapped: 0, ..estimate })
    }

    /// As [`Model::estimate`](super::Model::estimate) for a folder that the host reads: of
    /// weight files, the headers. Nothing is mapped then.
    ///
    /// # Errors
    /// As [`Model::open_host`](super::Model::open_host).
    pub fn estimate_host(
        folder: Box<dyn HostFolder>,
        options: &ModelOptions,
        context: usize,
    ) -> Result<Estimate> {
        let estimate = Self::estimate_origin(&Origin::host(folder)?, options, context)?;
        Ok(Estimate { mapped: 0, ..estimate })
    }

    fn estimate_origin(
        origin: &Origin,
        options: &ModelOptions,
        context: usize,
    ) -> Result<Estimate> {
        if options.tokenizer_only {
            origin.tokenizer()?;
            return Ok(Estimate {
                weights: 0,
                mapped: 0,
                session: 0,
                session_start: 0,
                mark: 0,
                kv: KvBytes::default(),
                scratch: 0,
            });
        }
        let checkpoint = origin.checkpoint()?;
        let config = checkpoint.config();
        let context = match context {
            0 => config.max_position_embeddings,
            some => some,
        };
        let format = super::weight_format(&checkpoint, options.weights)?;
        let (weights, mapped) = weight_bytes(&checkpoint, format);
        let start = sizes::session_start(config);
        let kv_in = |element| sizes::keys_and_values(config, element, context);
        let kv = KvBytes {
            f32: kv_in(KvElement::F32),
            f16: kv_in(KvElement::F16),
            i8: kv_in(KvElement::I8),
        };
        let element = super::default_kv(super::compute_mode(format, options.compute));
        Ok(Estimate {
            weights,
            mapped,
            session: start.saturating_add(kv.of(element)).saturating_add(sizes::ids(context)),
            session_start: start,
            mark: sizes::mark(config),
            kv,
            scratch: sizes::scratch(config),
        })
    }
}
