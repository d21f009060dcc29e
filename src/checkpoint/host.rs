//! Checkpoint folders that the host opens and reads: out of a pak file, decrypting.
//!
//! The host knows files by the names they have in the folder, their sizes, and bytes at an
//! offset. Small files are read at once, with a limit for each; of weight files the header and
//! then the tensors that are asked for, and nothing else. What the host says of sizes is taken
//! as untrusted as what it reads.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use super::index::{MAX_INDEX, parse_checked, some_missing};
use super::locate::{INDEX, SINGLE};
use super::mmap::Mapping;
use super::safetensors::{Entry, LENGTH, START, header_length, parse_header};
use super::{Checkpoint, Config, Data, Quantized, Source, WeightFile};
use crate::files::{decode, excerpt};
use crate::{Error, Result};

/// A folder of the host. Its methods are called on the thread that opens the checkpoint.
pub trait HostFolder: Send + Sync {
    /// The file `name`, as it is called in the folder; `None` if there is none.
    ///
    /// # Errors
    /// `Io` where there is one that cannot be opened.
    fn open(&self, name: &str) -> Result<Option<Box<dyn HostFile>>>;
}

/// An open file of the host. Dropping it closes it.
pub trait HostFile: Send + Sync {
    /// Its length in bytes; the same at each call.
    fn size(&self) -> u64;

    /// Fills `buffer` with the bytes from `offset` on, which lie within its length.
    ///
    /// # Errors
    /// `Io` where they cannot be read.
    fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<()>;
}

/// The small files of a checkpoint folder, as they are written; `None` for those that are not
/// there.
pub struct Documents {
    /// `config.json`
    pub config: Option<Vec<u8>>,
    /// `generation_config.json`
    pub generation_config: Option<Vec<u8>>,
    /// `tokenizer.json`
    pub tokenizer: Option<Vec<u8>>,
    /// `tokenizer_config.json`
    pub tokenizer_config: Option<Vec<u8>>,
    /// `chat_template.jinja`
    pub chat_template: Option<Vec<u8>>,
}

/// Far above the published files (4 kB to 20 MB), far below what would hurt.
const MAX_DOCUMENT: u64 = 16 << 20;
const MAX_TOKENIZER: u64 = 256 << 20;
/// Bytes that are read at a time: not every reader can do all at once, and who wants to cancel
/// is asked in between.
const STEP: usize = 8 << 20;

impl Documents {
    /// Reads them.
    ///
    /// # Errors
    /// `Io` from the host; `Format` for a file that is too long; `OutOfMemory`.
    pub fn read(folder: &dyn HostFolder) -> Result<Documents> {
        let read = |name, limit| read_document(folder, name, limit);
        Ok(Documents {
            config: read("config.json", MAX_DOCUMENT)?,
            generation_config: read("generation_config.json", MAX_DOCUMENT)?,
            tokenizer: read("tokenizer.json", MAX_TOKENIZER)?,
            tokenizer_config: read("tokenizer_config.json", MAX_DOCUMENT)?,
            chat_template: read("chat_template.jinja", MAX_DOCUMENT)?,
        })
    }
}

/// What `document` holds.
///
/// # Errors
/// `Io`, naming the file, where there is none.
pub fn present<'a>(document: &'a Option<Vec<u8>>, name: &str) -> Result<&'a [u8]> {
    document.as_deref().ok_or_else(|| missing(name))
}

/// The host has no file `name`.
pub(super) fn missing(name: &str) -> Error {
    Error::new(crate::ErrorKind::Io, format!("{name}: the host has no such file"))
}

impl Checkpoint {
    /// Opens the checkpoint in a folder of the host, whose small files are `documents`:
    /// `model.safetensors` if there is one, else the files that `model.safetensors.index.json`
    /// names. Headers are read and checked now, tensors each time they are asked for.
    ///
    /// # Errors
    /// As [`Checkpoint::open`], and what the host reports.
    pub fn open_host(folder: &dyn HostFolder, documents: &Documents) -> Result<Checkpoint> {
        let config = present(&documents.config, "config.json")?;
        let config = Config::from_json(config, documents.generation_config.as_deref())?;
        let mut files = Vec::new();
        let found = if let Some(file) = folder.open(SINGLE)? {
            let entries = read_header(&*file, SINGLE)?;
            files.push(WeightFile { path: SINGLE.into(), data: Data::Host(file) });
            entries.into_iter().map(|(name, entry)| (name, 0, entry)).collect()
        } else if let Some(index) = read_document(folder, INDEX, MAX_INDEX)? {
            let within = |e: Error| e.within(INDEX);
            let (names, tensors) = decode(index).and_then(|t| parse_checked(&t)).map_err(within)?;
            let (mut headers, mut absent) = (Vec::new(), Vec::new());
            for name in &names {
                let Some(file) = folder.open(name)? else {
                    absent.push(name.clone());
                    continue;
                };
                headers.push(read_header(&*file, name)?);
                files.push(WeightFile { path: PathBuf::from(name), data: Data::Host(file) });
            }
            some_missing(&absent, names.len(), false).map_err(within)?;
            Self::follow(tensors, headers, &files).map_err(within)?
        } else {
            return Err(Error::new(
                crate::ErrorKind::Io,
                format!("the host has neither {SINGLE} nor {INDEX}"),
            ));
        };
        Self::checked(config, PathBuf::new(), files, found, Quantized::new(), Source::Host)
    }
}

/// The tensors of a safetensors file.
fn read_header(file: &dyn HostFile, name: &str) -> Result<HashMap<String, Entry>> {
    let size = file.size();
    let start = usize::try_from(size).unwrap_or(START).min(START);
    let first = read_bytes(file, 0, start, name)?;
    let length = header_length(&first, size).map_err(|e| e.within(excerpt(name)))?;
    let header = read_bytes(file, LENGTH as u64, length, name)?;
    parse_header(&header, size).map_err(|e| e.within(excerpt(name)))
}

/// The bytes of the file `name`, at most `limit` of them.
pub(super) fn read_document(
    folder: &dyn HostFolder,
    name: &str,
    limit: u64,
) -> Result<Option<Vec<u8>>> {
    let Some(file) = folder.open(name)? else { return Ok(None) };
    let size = file.size();
    if size > limit {
        return Err(Error::format(format!(
            "{}: {size} bytes long, expected at most {limit}",
            excerpt(name)
        )));
    }
    read_bytes(&*file, 0, size as usize, name).map(Some)
}

/// `length` bytes of `file` from `offset` on.
pub(super) fn read_bytes(
    file: &dyn HostFile,
    offset: u64,
    length: usize,
    name: &str,
) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let refused = |_| Error::out_of_memory(&format!("the contents of {}", excerpt(name)), length);
    bytes.try_reserve_exact(length).map_err(refused)?;
    bytes.resize(length, 0);
    read_steps(file, offset, &mut bytes, &mut |_| Ok(()))?;
    Ok(bytes)
}

/// The bytes `range` of `file` in memory of our own. `progress` is told how many more were
/// read, and can end it by an error.
pub(super) fn read_range(
    file: &dyn HostFile,
    range: std::ops::Range<usize>,
    progress: &mut dyn FnMut(u64) -> Result<()>,
) -> Result<Arc<Mapping>> {
    let fill = |to: &mut [u8]| read_steps(file, range.start as u64, to, progress);
    Mapping::filled(range.len(), fill).map(Arc::new)
}

fn read_steps(
    file: &dyn HostFile,
    offset: u64,
    to: &mut [u8],
    progress: &mut dyn FnMut(u64) -> Result<()>,
) -> Result<()> {
    for (step, part) in to.chunks_mut(STEP).enumerate() {
        file.read(offset + (step * STEP) as u64, part)?;
        progress(part.len() as u64)?;
    }
    Ok(())
}
