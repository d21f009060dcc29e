//! Checkpoint files to checked, memory-mapped views.
//!
//! [`Checkpoint::open_packed`] takes a [`packed`] file, [`Checkpoint::open_host`] a folder that
//! the [`host`] program reads; [`Checkpoint::open`] reads a Hugging Face folder: `config.json` (and the end ids of
//! `generation_config.json`) into a [`Config`], and the safetensors file or files into a table of
//! tensors. Everything the text model needs is checked there: that each tensor is present, its
//! shape, its element type and its byte range. Nothing is copied; a [`Tensor`] is a view into the
//! mapped file.
//!
//! Files are taken as untrusted: damaged or hostile ones give an error that names the file and the
//! tensor, without large allocations and without reading past what is there. One thing cannot be
//! checked: a weight file must stay as it is while the model is open. If another process shortens
//! it, the system ends this one with SIGBUS at the next touch of the lost part; if it is
//! overwritten in place, results change. Replacing a file by renaming a new one over it is safe.

#[cfg(target_endian = "big")]
compile_error!("weight files are little-endian and are mapped as they are");

mod config;
mod fingerprint;
mod folder;
pub mod host;
mod index;
mod locate;
mod mmap;
mod names;
pub mod packed;
mod rope;
mod safetensors;
mod tensor;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::{Error, ErrorKind, Result, shown};

pub use config::{Config, LayerKind};
pub use host::{HostFile, HostFolder};
pub use mmap::HostMemory;
pub use tensor::{Dtype, Tensor};

use crate::files::{self, excerpt, list};
use crate::kernels::TileFormat;
pub(crate) use locate::folder_of;
use mmap::Mapping;
use names::{Role, split_prefix};
use packed::{Element, Kind, PackedFile};
use safetensors::Entry;

const CONFIG: &str = "config.json";
const GENERATION: &str = "generation_config.json";

/// An open checkpoint: its configuration and a checked table of its tensors.
///
/// Tensors keep the mapping alive, so the checkpoint itself may be dropped before them.
pub struct Checkpoint {
    config: Config,
    directory: PathBuf,
    files: Vec<WeightFile>,
    /// What stands in front of the text model's names, `model.language_model.` for one.
    prefix: String,
    /// Name without the prefix to its place.
    tensors: HashMap<String, Place>,
    /// Names without prefix that more than one tensor claims (none that the text model needs).
    ambiguous: Vec<String>,
    text_bytes: u64,
    aligned_bytes: u64,
    source: Source,
}

/// Where a checkpoint comes from.
enum Source {
    Folder,
    Packed(Arc<PackedFile>),
    Host,
}

struct WeightFile {
    path: PathBuf,
    data: Data,
}

/// Where the bytes of a weight file are.
enum Data {
    Map(Arc<Mapping>),
    /// To be read when they are asked for.
    Host(Box<dyn HostFile>),
}

/// Where a tensor lies.
struct Place {
    file: usize,
    /// The name as the file has it.
    full_name: String,
    entry: Entry,
    /// How it is quantized, if it is: the entry then holds the shape and the bytes.
    tiles: Option<TileFormat>,
}

/// The tensors of all files before names are resolved: full name, file, entry.
type Found = Vec<(String, usize, Entry)>;
/// How tensors are quantized, by full name.
type Quantized = HashMap<String, TileFormat>;

impl Checkpoint {
    /// The checkpoint in a packed file: the same tensors under the same names.
    ///
    /// # Errors
    /// As [`Checkpoint::open`].
    pub fn open_packed(file: &Arc<PackedFile>) -> Result<Checkpoint> {
        let config = Config::from_packed(file)?;
        let mut found = Vec::new();
        let mut quantized = Quantized::new();
        for (name, element, shape, range) in file.tensors() {
            if let Some(format) = element.tiles() {
                quantized.insert(name.to_owned(), format);
            }
            let dtype = match element {
                Element::BF16 => Dtype::BF16,
                Element::F16 => Dtype::F16,
                Element::F32 => Dtype::F32,
                _ if element.tiles().is_some() => Dtype::U8,
                _ => {
                    return Err(Error::format(format!(
                        "{}: tensor {} holds {element:?} elements",
                        file.name(),
                        excerpt(name)
                    )));
                }
            };
            let entry = Entry { dtype, shape: shape.to_vec(), range };
            found.push((name.to_owned(), 0, entry));
        }
        let path = PathBuf::from(file.name());
        let directory = path.parent().unwrap_or(Path::new("")).to_owned();
        let files = vec![WeightFile { path, data: Data::Map(file.map().clone()) }];
        Self::checked(config, directory, files, found, quantized, Source::Packed(file.clone()))
    }

    fn checked(
        config: Config,
        directory: PathBuf,
        files: Vec<WeightFile>,
        found: Found,
        quantized: Quantized,
        source: Source,
    ) -> Result<Checkpoint> {
        let mut checkpoint = Checkpoint {
            config,
            directory,
            files,
            prefix: String::new(),
            tensors: HashMap::new(),
            ambiguous: Vec::new(),
            text_bytes: 0,
            aligned_bytes: 0,
            source,
        };
        checkpoint.resolve_names(found, &quantized)?;
        checkpoint.check_text_model()?;
        Ok(checkpoint)
    }

    /// Fills the table under names without prefix.
    fn resolve_names(&mut self, found: Found, quantized: &Quantized) -> Result<()> {
        self.prefix = names::text_prefix(found.iter().map(|(name, ..)| name.as_str()))
            .map_err(|e| e.within(self.weights_shown()))?;
        let mut head: Option<String> = None;
        for (full_name, file, entry) in found {
            let (front, role) = split_prefix(&full_name);
            let short = full_name[front.len()..].to_owned();
            if role == Role::Head
                && let Some(other) = head.replace(full_name.clone())
            {
                return Err(Error::format(format!(
                    "{}: two output heads: {} and {}",
                    self.weights_shown(),
                    excerpt(&other),
                    excerpt(&full_name)
                )));
            }
            let tiles = quantized.get(&full_name).copied();
            let place = Place { file, full_name, entry, tiles };
            if self.tensors.insert(short.clone(), place).is_some() {
                self.ambiguous.push(short);
            }
        }
        Ok(())
    }

    /// Every tensor of the text model: presence, shape and element type.
    fn check_text_model(&mut self) -> Result<()> {
        let config = &self.config;
        let mut missing = Vec::new();
        let (mut total, mut aligned) = (0u64, 0u64);
        let expected = names::text_tensors(config, self.has(names::HEAD));
        for (name, shape) in &expected {
            match self.tensors.get(name) {
                None => missing.push(match name.as_str() {
                    names::HEAD => format!("{name} (config.json: tie_word_embeddings is false)"),
                    _ => format!("{}{name}", self.prefix),
                }),
                Some(place) => {
                    self.check_place(place, shape)?;
                    total += place.entry.bytes();
                    if place.entry.is_aligned() {
                        aligned += place.entry.bytes();
                    }
                }
            }
        }
        if !missing.is_empty() {
            return Err(Error::format(format!(
                "{}: {} of the text model {} missing: {}",
                self.weights_shown(),
                if missing.len() == 1 { "a tensor" } else { "tensors" },
                if missing.len() == 1 { "is" } else { "are" },
                list(&missing),
            )));
        }
        // Running without layers that the file holds would give plausible nonsense.
        let mut beyond: Vec<&str> = self
            .tensors
            .iter()
            .filter(|(name, _)| names::layer_of(name).is_some_and(|l| l >= config.layers()))
            .map(|(_, place)| place.full_name.as_str())
            .collect();
        if !beyond.is_empty() {
            beyond.sort_unstable();
            return Err(Error::format(format!(
                "{}: config.json has num_hidden_layers {}, but there are tensors of later layers: {}",
                self.weights_shown(),
                config.num_hidden_layers,
                list(&beyond),
            )));
        }
        // So would running without its biases and scales.
        let known: HashSet<&str> = expected.iter().map(|(name, _)| name.as_str()).collect();
        let mut unknown: Vec<&str> = self
            .tensors
            .iter()
            .filter(|(name, _)| !known.contains(name.as_str()) && names::changes_results(name))
            .map(|(_, place)| place.full_name.as_str())
            .collect();
        if !unknown.is_empty() {
            unknown.sort_unstable();
            return Err(Error::unsupported(format!(
                "{}: expected only the tensors of a Qwen3.5 text model in its layers, but there {} \
                 {}, which would change its results: {}",
                self.weights_shown(),
                if unknown.len() == 1 { "is" } else { "are" },
                if unknown.len() == 1 { "another one" } else { "others" },
                list(&unknown),
            )));
        }
        (self.text_bytes, self.aligned_bytes) = (total, aligned);
        Ok(())
    }

    fn check_place(&self, place: &Place, shape: &[usize]) -> Result<()> {
        let complain = |rest: String| {
            format!(
                "{}: tensor {} {rest}",
                shown(&self.files[place.file].path),
                excerpt(&place.full_name)
            )
        };
        if !names::same_shape(&place.full_name, &place.entry.shape, shape) {
            return Err(Error::format(complain(format!(
                "has shape {:?}, expected {shape:?} from config.json",
                place.entry.shape
            ))));
        }
        if place.tiles.is_none() && !place.entry.dtype.is_readable() {
            return Err(Error::unsupported(complain(format!(
                "holds {} elements; weights must be BF16, F16 or F32",
                place.entry.dtype
            ))));
        }
        Ok(())
    }

    /// The files in one phrase for messages.
    fn weights_shown(&self) -> String {
        match self.files.as_slice() {
            [one] => shown(&one.path),
            many if self.is_read_by_host() => format!("{} weight files", many.len()),
            many => format!("{} ({} weight files)", shown(&self.directory), many.len()),
        }
    }

    /// The model's configuration.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The folder, as an absolute path: where tokenizer and template lie.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// An error about the contents of the tensor `name`, with its file in front.
    pub(crate) fn blame(&self, name: &str, error: Error) -> Error {
        match self.tensors.get(name) {
            Some(place) if error.kind() == ErrorKind::Format => {
                error.within(shown(&self.files[place.file].path))
            }
            _ => error,
        }
    }

    /// The weight files.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.files.iter().map(|file| file.path.as_path())
    }

    /// Bytes of the tensors that the text model uses.
    pub fn text_bytes(&self) -> u64 {
        self.text_bytes
    }

    /// Of [`Checkpoint::text_bytes`], those of tensors that are used where they lie in a file that
    /// is mapped. The others are not aligned there and are copied.
    pub fn aligned_bytes(&self) -> u64 {
        self.aligned_bytes
    }

    /// The tensors that the text model uses, with their shapes, in the order of a pass.
    pub fn text_tensors(&self) -> Vec<(String, Vec<usize>)> {
        names::text_tensors(&self.config, self.has(names::HEAD))
    }

    /// Bytes of the tensor `name` as it is stored; 0 if there is none.
    pub fn stored_bytes(&self, name: &str) -> usize {
        self.tensors.get(name).map_or(0, |place| place.entry.range.len())
    }

    /// `config.json` and, if there is one, `generation_config.json`, as they are written.
    ///
    /// # Errors
    /// `Io` where a file cannot be read any more; `Unsupported` for a folder of the host.
    pub fn documents(&self) -> Result<(Vec<u8>, Option<Vec<u8>>)> {
        if self.is_read_by_host() {
            return Err(Error::unsupported("the host has the files of this checkpoint"));
        }
        if let Some(file) = self.packed() {
            let generation = file.section(Kind::Text, GENERATION).map(<[u8]>::to_vec);
            return Ok((file.need(Kind::Text, CONFIG)?.to_vec(), generation));
        }
        let read = |name: &str| files::read(&self.directory.join(name), config::MAX_CONFIG);
        let generation = files::is_listed(&self.directory.join(GENERATION));
        Ok((read(CONFIG)?, if generation { Some(read(GENERATION)?) } else { None }))
    }

    /// The packed file that this is, if it is one.
    pub fn packed(&self) -> Option<&PackedFile> {
        match &self.source {
            Source::Packed(file) => Some(file),
            _ => None,
        }
    }

    /// Whether the tensors are read by the host, each time they are asked for, into memory of
    /// our own.
    pub fn is_read_by_host(&self) -> bool {
        matches!(self.source, Source::Host)
    }

    /// Whether there is a tensor `name`, spelled without prefix as for [`Checkpoint::tensor`].
    pub fn has(&self, name: &str) -> bool {
        self.tensors.contains_key(name)
    }

    /// The tensor `name`, which must have `shape` and hold BF16, F16 or F32.
    ///
    /// `name` is spelled without prefix: `embed_tokens.weight`, `norm.weight`, `lm_head.weight`,
    /// `layers.0.mlp.up_proj.weight`, `mtp.fc.weight`, `visual.pos_embed.weight`. A convolution
    /// `[C, 1, K]` stored as `[C, K]` is accepted and given the asked shape. The data are not
    /// copied unless they lie unaligned in the file; then each call copies them once.
    ///
    /// # Errors
    /// `Format` for a name or shape that is not there; `OutOfMemory`; `Io` from the host.
    pub fn tensor(&self, name: &str, shape: &[usize]) -> Result<Tensor> {
        self.tensor_in_steps(name, shape, &mut |_| Ok(()))
    }

    /// As [`Checkpoint::tensor`]. Where the host reads, `progress` is told in between how many
    /// more bytes it has read, and can end that by an error.
    pub(crate) fn tensor_in_steps(
        &self,
        name: &str,
        shape: &[usize],
        progress: &mut dyn FnMut(u64) -> Result<()>,
    ) -> Result<Tensor> {
        let Some(place) = self.tensors.get(name) else {
            return Err(Error::format(format!(
                "{}: there is no tensor {}",
                self.weights_shown(),
                excerpt(name)
            )));
        };
        if self.ambiguous.iter().any(|other| other == name) {
            return Err(Error::format(format!(
                "{}: more than one tensor ends in {}",
                self.weights_shown(),
                excerpt(name)
            )));
        }
        self.check_place(place, shape)?;
        let file = &self.files[place.file];
        if place.tiles.is_some() {
            return Err(Error::format(format!(
                "{}: tensor {} is quantized, but must not be",
                shown(&file.path),
                excerpt(name)
            )));
        }
        let within = |e: Error| match e.kind() {
            ErrorKind::Cancelled => e,
            _ => e.within(format!("{}: {}", shown(&file.path), place.full_name)),
        };
        match &file.data {
            Data::Map(map) => Tensor::new(map, &place.entry, shape).map_err(within),
            Data::Host(host) => {
                let range = place.entry.range.clone();
                let entry = Entry { range: 0..range.len(), ..place.entry.clone() };
                let map = host::read_range(&**host, range, progress).map_err(within)?;
                Tensor::new(&map, &entry, shape).map_err(within)
            }
        }
    }

    /// The matrix `name`, `[rows, cols]`, if it is stored quantized: its layout, and U8
    /// elements in it, as many as it needs.
    ///
    /// # Errors
    /// `Format` if it has another shape.
    pub(crate) fn tiles(
        &self,
        name: &str,
        rows: usize,
        cols: usize,
    ) -> Result<Option<(TileFormat, Tensor)>> {
        let Some(place) = self.tensors.get(name) else { return Ok(None) };
        let Some(format) = place.tiles else { return Ok(None) };
        self.check_place(place, &[rows, cols])?;
        let Data::Map(map) = &self.files[place.file].data else {
            return Err(Error::internal("a quantized tensor outside of a packed file"));
        };
        let length = place.entry.range.len();
        Ok(Some((format, Tensor::new(map, &place.entry, &[length])?)))
    }

    /// The output matrix `[vocab_size, hidden_size]`: logits are its rows times the last hidden
    /// state.
    ///
    /// `lm_head.weight` if the checkpoint holds one, whatever `tie_word_embeddings` says; else
    /// the embedding of a tied model. This is what Transformers 5 does: a stored head that
    /// differs from the embedding is proof that the two are not tied. An untied checkpoint
    /// without a head is refused when it is opened.
    pub fn output_head(&self) -> Result<Tensor> {
        self.tensor(self.output_name(), &[self.config.vocab_size, self.config.hidden_size])
    }

    /// The name of the tensor that [`Checkpoint::output_head`] gives.
    pub(crate) fn output_name(&self) -> &'static str {
        if self.has(names::HEAD) { names::HEAD } else { names::EMBEDDING }
    }
}

impl std::fmt::Debug for Checkpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Checkpoint")
            .field("directory", &self.directory)
            .field("tensors", &self.tensors.len())
            .finish_non_exhaustive()
    }
}
