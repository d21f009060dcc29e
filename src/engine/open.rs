//! Opening: from a path, from memory, through the host's reads.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::{Engine, Inner, Model, ModelOptions, Origin};
use crate::checkpoint::packed::PackedFile;
use crate::checkpoint::{Checkpoint, Config, HostFolder, HostMemory};
use crate::kernels::{Cancel, Compute, ComputeMode, Isa, KvElement};
use crate::log::Level;
use crate::model::prefix_cache::PrefixCache;
use crate::model::{Loader, Network, Progress, WeightFormat};
use crate::pool::{Pool, with_signals_blocked};
use crate::tokenizer::{Stop, Tokenizer};
use crate::{Error, ErrorKind, Result};

/// How often the caller is asked whether to go on while nothing but the tokenizer is missing.
const ASK_AGAIN: Duration = Duration::from_micros(300);

impl Model {
    /// Opens the packed file or the Hugging Face folder at `path`, or the folder of the weight
    /// file at `path`.
    ///
    /// # Errors
    /// `Io`, `Format` or `Unsupported`, naming the file and what is wrong with it;
    /// `InvalidArgument` or `Unsupported` for options this machine cannot satisfy.
    pub fn open(path: &Path, options: &ModelOptions) -> Result<Self> {
        Self::open_with_progress(path, options, &mut |_, _| true)
    }

    /// As [`Model::open`]; `progress` is told, on this thread, how many bytes of weights
    /// have been read and how many there are. When it returns false, opening ends within
    /// some milliseconds.
    ///
    /// # Errors
    /// Those of [`Model::open`]; `Cancelled` when `progress` returned false.
    pub fn open_with_progress(
        path: &Path,
        options: &ModelOptions,
        progress: &mut Progress,
    ) -> Result<Self> {
        Self::open_from(Instant::now(), Origin::open(path)?, options, progress)
    }

    /// Opens a packed file that is in memory of the host; see [`PackedFile::from_memory`].
    /// `progress` is as for [`Model::open_with_progress`].
    ///
    /// # Errors
    /// As [`Model::open_with_progress`].
    pub fn open_memory(
        memory: Box<dyn HostMemory>,
        options: &ModelOptions,
        progress: &mut Progress,
    ) -> Result<Self> {
        let start = Instant::now();
        let file = PackedFile::from_memory(memory)?;
        Self::open_from(start, Origin::Packed(Arc::new(file)), options, progress)
    }

    /// Opens a packed file of `size` bytes that the host reads; see
    /// [`PackedFile::from_reader`]. `progress` is told on this thread how many of all bytes
    /// have been read, and then made into weights: twice `size` in all. When it returns false,
    /// opening ends after the read in progress, or within some milliseconds.
    ///
    /// # Errors
    /// As [`Model::open_with_progress`], and what `read` reports.
    pub fn open_reader(
        size: u64,
        read: &mut dyn FnMut(u64, &mut [u8]) -> Result<()>,
        options: &ModelOptions,
        progress: &mut Progress,
    ) -> Result<Self> {
        let start = Instant::now();
        let total = size.saturating_mul(2);
        let file = PackedFile::from_reader(size, read, &mut |done| match progress(done, total) {
            true => Ok(()),
            false => Err(Error::cancelled("opening the model was cancelled")),
        })?;
        let mut rest = |done: u64, all: u64| {
            let share = (u128::from(size) * u128::from(done) / u128::from(all.max(1))) as u64;
            progress(size + share, total)
        };
        Self::open_from(start, Origin::Packed(Arc::new(file)), options, &mut rest)
    }

    /// Opens a Hugging Face folder that the host reads; see [`Checkpoint::open_host`]. Tensors
    /// are read one by one and kept in memory, as stored or quantized; vision and drafting
    /// weights are not read. `progress` is told on this thread how many of all bytes have been
    /// read and made into weights, each counted for both. When it returns false, opening ends
    /// after the read in progress, or within some milliseconds.
    ///
    /// # Errors
    /// As [`Model::open_with_progress`], and what the host reports.
    pub fn open_host(
        folder: Box<dyn HostFolder>,
        options: &ModelOptions,
        progress: &mut Progress,
    ) -> Result<Self> {
        Self::open_from(Instant::now(), Origin::host(folder)?, options, progress)
    }

    fn open_from(
        start: Instant,
        origin: Origin,
        options: &ModelOptions,
        progress: &mut Progress,
    ) -> Result<Self> {
        let model = Self::open_origin(&origin, options, progress)?;
        model.tell_opened(&origin, start);
        Ok(model)
    }

    fn tell_opened(&self, origin: &Origin, start: Instant) {
        let log = &self.inner.log;
        log.write(Level::Info, || {
            let time = start.elapsed().as_secs_f64() * 1e3;
            let name = origin.name();
            match &self.inner.engine {
                Some(engine) => format!(
                    "opened {name} in {time:.1} ms: {:.1} MB of weights ({}), {} threads, {}",
                    engine.weight_bytes as f64 / 1e6,
                    engine.format.name(),
                    engine.pool.threads(),
                    engine.isa.name()
                ),
                None => format!("opened the tokenizer of {name} in {time:.1} ms"),
            }
        });
        match &self.inner.chat_template {
            Err(error) => log.write(Level::Warning, || format!("no chat: {error}")),
            Ok(None) => log.write(Level::Info, || "no chat template".to_owned()),
            Ok(Some(_)) => {}
        }
    }

    fn open_origin(
        origin: &Origin,
        options: &ModelOptions,
        progress: &mut Progress,
    ) -> Result<Self> {
        let isa = match &options.isa {
            Some(name) => Isa::named(name)?,
            None => Isa::best(),
        };
        let start = Instant::now();
        // The two halves of the time go side by side: parsing the vocabulary, and checking
        // the weights.
        let (stop, mut told) = (Stop::default(), (0, 0));
        let cancelled = || Error::cancelled("opening the model was cancelled");
        let (tokenizer, engine) = std::thread::scope(|scope| {
            let tokenizer = with_signals_blocked(|| {
                std::thread::Builder::new()
                    .name("qwen35-open".into())
                    .stack_size(2 << 20)
                    .spawn_scoped(scope, || stop.watch(|| origin.tokenizer()))
            });
            let engine = if options.tokenizer_only {
                Ok(None)
            } else {
                let note = &mut |done, total| {
                    told = (done, total);
                    progress(done, total)
                };
                Engine::open(origin, isa, options, note).map(Some)
            };
            if engine.is_err() {
                stop.ask();
            }
            let tokenizer = match tokenizer {
                Ok(thread) => {
                    // The weights are often there first: the caller is asked on meanwhile.
                    let mut goes_on = told.1 > 0 && engine.is_ok();
                    while goes_on && !thread.is_finished() {
                        std::thread::sleep(ASK_AGAIN);
                        goes_on = progress(told.0, told.1);
                        if !goes_on {
                            stop.ask();
                        }
                    }
                    let panicked = |_| Err(Error::internal("the tokenizer's reader panicked"));
                    let read = thread.join().unwrap_or_else(panicked);
                    if told.1 > 0 && !goes_on { Err(cancelled()) } else { read }
                }
                // No thread to be had: read it on this one. Little stack is enough.
                Err(_) => origin.tokenizer(),
            };
            (tokenizer, engine)
        });
        let (engine, mut tokenizer) = (engine?, tokenizer?);
        options.log.write(Level::Debug, || format!("tokenizer and weights: {:?}", start.elapsed()));
        let ask = &mut || match told.1 == 0 || progress(told.0, told.1) {
            true => Ok(()),
            false => Err(cancelled()),
        };
        ask()?;
        let spellings: Vec<&str> =
            tokenizer.added_tokens().iter().map(|token| token.content.as_str()).collect();
        let chat_template = match origin.chat_template(&spellings) {
            // Nothing is wrong with the template; it would be missing for the model's life.
            Err(error) if error.kind() == ErrorKind::OutOfMemory => return Err(error),
            other => other,
        };
        ask()?;
        options.log.write(Level::Debug, || format!("and chat template: {:?}", start.elapsed()));
        let configured = match &engine {
            Some(engine) => engine.network.config().eos_token_ids.clone(),
            // Tokenizer folders often come without a configuration.
            None => origin.config().map(|c| c.eos_token_ids).unwrap_or_default(),
        };
        if let Some(engine) = &engine {
            check_vocabulary(origin, &tokenizer, engine.network.config())?;
            tokenizer.set_id_limit(engine.network.config().vocab_size as u32);
        }
        let end_of_turn = end_of_turn_ids(&tokenizer, configured);
        let turn_start = tokenizer.token_id("<|im_start|>");
        let prefix_cache = match options.prefix_cache_bytes {
            0 => None,
            bytes => Some(PrefixCache::new(bytes)),
        };
        Ok(Self {
            inner: Arc::new(Inner {
                tokenizer,
                chat_template,
                end_of_turn,
                turn_start,
                engine,
                prefix_cache,
                log: options.log.clone(),
                totals: Arc::default(),
            }),
        })
    }
}

impl Engine {
    fn open(
        origin: &Origin,
        isa: Isa,
        options: &ModelOptions,
        progress: &mut Progress,
    ) -> Result<Self> {
        let checkpoint = origin.checkpoint()?;
        let fingerprint = checkpoint.fingerprint()?;
        let (pool, cancel) = (Pool::new(options.threads)?, Cancel::new());
        if let Some(shortage) = pool.shortage() {
            options.log.write(Level::Warning, || shortage.to_owned());
        }
        let compute = Compute::new(isa, &pool, &cancel);
        let format = weight_format(&checkpoint, options.weights)?;
        let quantizer = quantizer(&checkpoint, format);
        let mut loader = Loader::new(&checkpoint, format, &compute, progress);
        let network = Network::load(&mut loader)?;
        let weight_bytes = loader.bytes();
        let mode = compute_mode(format, options.compute);
        drop(compute);
        Ok(Self {
            network,
            isa,
            format,
            mode,
            pool,
            workspaces: Mutex::new(Vec::new()),
            weight_bytes,
            fingerprint,
            quantizer,
        })
    }
}

/// How a model with such weights computes, when `asked` is what the caller wants.
pub(super) fn compute_mode(format: WeightFormat, asked: Option<ComputeMode>) -> ComputeMode {
    asked.unwrap_or(match format {
        WeightFormat::Stored => ComputeMode::Exact,
        WeightFormat::Int8 | WeightFormat::Int4 => ComputeMode::Fast,
    })
}

/// How sessions store keys and values where nobody says otherwise: exact computing promises
/// FP32 arithmetic over everything, so nothing may be rounded on the way.
pub(super) fn default_kv(mode: ComputeMode) -> KvElement {
    match mode {
        ComputeMode::Exact => KvElement::F32,
        ComputeMode::Fast => KvElement::F16,
    }
}

/// What the matrices of `checkpoint` are made into, when `asked` is what the caller wants: a
/// packed file that is quantized stays as it is.
pub(crate) fn weight_format(checkpoint: &Checkpoint, asked: WeightFormat) -> Result<WeightFormat> {
    let Some(file) = checkpoint.packed() else { return Ok(asked) };
    let packed = match file.weight_format() {
        0 => return Ok(asked),
        1 => WeightFormat::Int8,
        2 => WeightFormat::Int4,
        other => {
            return Err(Error::unsupported(format!(
                "{}: weight format {other} is not known",
                file.name()
            )));
        }
    };
    if asked != WeightFormat::Stored && asked != packed {
        return Err(Error::unsupported(format!(
            "{}: holds {} weights, {} is asked for: pack the checkpoint again",
            file.name(),
            packed.name(),
            asked.name()
        )));
    }
    Ok(packed)
}

/// The [revision](crate::kernels::quantized::REVISION) of what quantizes, or has quantized, the
/// weights of `checkpoint` to `format`; 0 as stored.
pub(crate) fn quantizer(checkpoint: &Checkpoint, format: WeightFormat) -> u32 {
    match (checkpoint.packed(), format) {
        (Some(file), _) if file.weight_format() != 0 => file.quantizer(),
        (_, WeightFormat::Stored) => 0,
        _ => crate::kernels::quantized::REVISION,
    }
}

/// A tokenizer that can produce ids the embedding has no row for would fail in the middle of
/// a conversation: refuse the pair at once.
fn check_vocabulary(origin: &Origin, tokenizer: &Tokenizer, config: &Config) -> Result<()> {
    if tokenizer.token_count() > config.vocab_size {
        return Err(Error::format(format!(
            "{} knows {} tokens, with those that tokenizer_config.json adds; expected at most as \
             many as the embedding has rows, which are {} (vocab_size of {})",
            origin.file_name("tokenizer.json"),
            tokenizer.token_count(),
            config.vocab_size,
            origin.file_name("config.json")
        )));
    }
    Ok(())
}

fn end_of_turn_ids(tokenizer: &Tokenizer, configured: Vec<u32>) -> Vec<u32> {
    let named = ["<|im_end|>", "<|endoftext|>"].into_iter().filter_map(|n| tokenizer.token_id(n));
    let mut ids: Vec<u32> =
        configured.into_iter().chain(tokenizer.eos_token_id()).chain(named).collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}
