//! Which files make up the checkpoint that a path names.

use std::ffi::OsStr;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::index::{Index, MAX_INDEX, parse_checked};
use super::mmap::Mapping;
use super::packed;
use super::safetensors::{START, header_length, read_header};
use crate::error::{Error, ErrorKind, Result, shown};
use crate::files::{list, open_error, open_regular, read_text};

/// A checkpoint's folder and what to read the weights from.
#[derive(Debug)]
pub(super) struct Location {
    /// Absolute, so that a later change of the working directory does not matter.
    pub directory: PathBuf,
    pub weights: Weights,
}

#[derive(Debug)]
pub(super) enum Weights {
    /// One safetensors file.
    File(PathBuf),
    /// A `*.safetensors.index.json` that names the files.
    Index(PathBuf),
}

pub(super) const SINGLE: &str = "model.safetensors";
pub(super) const INDEX: &str = "model.safetensors.index.json";

/// Finds folder and weights for `path`: a folder, a weight file or an index file.
pub(super) fn locate(path: &Path) -> Result<Location> {
    let (given, is_folder) = resolve(path)?;
    if is_folder {
        if !given.join("config.json").exists() {
            return Err(no_config(&given));
        }
        let weights = weights_in(&given)?;
        return Ok(Location { directory: given, weights });
    }
    let directory = parent(&given);
    let weights = match named(given)? {
        Weights::Index(index) => Weights::Index(index),
        Weights::File(file) => {
            // Before the files beside it: it may be no weight file at all.
            check_start(&file)?;
            // One shard of several stands for all of them.
            let index = directory.join(INDEX);
            match index.exists() && Index::read(&index)?.files.contains(&file) {
                true => Weights::Index(index),
                false => Weights::File(file),
            }
        }
    };
    if !directory.join("config.json").exists() {
        return Err(no_config(&directory));
    }
    Ok(Location { directory, weights })
}

/// Finds the folder that `path` names, as [`locate`] would, for those who need its small files
/// only: a folder may be without weights, a weight file without the others. What is no model is
/// refused all the same.
pub(crate) fn folder_of(path: &Path) -> Result<PathBuf> {
    let (given, is_folder) = resolve(path)?;
    if is_folder {
        return Ok(given);
    }
    let directory = parent(&given);
    match named(given)? {
        Weights::File(file) => {
            check_start(&file)?;
            let map = Mapping::open(&file)?;
            read_header(map.bytes()).map_err(|e| e.within(shown(&file)))?;
        }
        Weights::Index(index) => {
            let text = read_text(&index, MAX_INDEX)?;
            parse_checked(&text).map_err(|e| e.within(shown(&index)))?;
        }
    }
    Ok(directory)
}

/// `path` from the root on, and whether it is a folder.
fn resolve(path: &Path) -> Result<(PathBuf, bool)> {
    if path.as_os_str().is_empty() {
        return Err(Error::invalid_argument("the model path is empty"));
    }
    let given = std::path::absolute(path).map_err(|e| Error::io(path, "resolve", &e))?;
    let meta = std::fs::metadata(&given).map_err(|e| open_error(&given, &e))?;
    Ok((given, meta.is_dir()))
}

/// The parent of the path as given, not of what it links to: in a download cache the files of a
/// folder are links to blobs elsewhere.
fn parent(given: &Path) -> PathBuf {
    given.parent().unwrap_or(Path::new("/")).to_owned()
}

/// What the name of the file `given` says it is.
fn named(given: PathBuf) -> Result<Weights> {
    let name = given.file_name().unwrap_or_default().to_string_lossy().into_owned();
    if name.ends_with(".safetensors.index.json") {
        Ok(Weights::Index(given))
    } else if name.ends_with(".json") {
        Err(Error::invalid_argument(format!(
            "{}: give the folder of the checkpoint or its .safetensors file",
            shown(&given)
        )))
    } else if let Some(kind) = foreign(&name) {
        Err(Error::unsupported(format!(
            "{}: {kind} files are not read; a safetensors checkpoint is needed",
            shown(&given)
        )))
    } else {
        Ok(Weights::File(given))
    }
}

/// Whether the file at `path`, which somebody named, begins as weight files do. Packed files have
/// been told apart before, and what looks like one is damaged.
fn check_start(path: &Path) -> Result<()> {
    let (file, size) = open_regular(path)?;
    let mut start = Vec::with_capacity(START);
    file.take(START as u64).read_to_end(&mut start).map_err(|e| Error::io(path, "read", &e))?;
    let result = if packed::resembles(&start) {
        Err(Error::format("the first 8 bytes of a packed file, damaged"))
    } else {
        header_length(&start, size).map(drop)
    };
    result.map_err(|error| {
        Error::new(
            error.kind(),
            format!(
                "{}: {}; expected a packed file or a safetensors file of weights",
                shown(path),
                error.message()
            ),
        )
    })
}

/// The weights of a folder.
fn weights_in(directory: &Path) -> Result<Weights> {
    let present = |name: &str| std::fs::symlink_metadata(directory.join(name)).is_ok();
    if present(SINGLE) {
        return Ok(Weights::File(directory.join(SINGLE)));
    }
    if present(INDEX) {
        return Ok(Weights::Index(directory.join(INDEX)));
    }
    let names = file_names(directory)?;
    let all: Vec<&PathBuf> = names
        .iter()
        .filter(|n| n.extension() == Some(OsStr::new("safetensors")) && !is_hidden(n))
        .collect();
    let named_model: Vec<&PathBuf> =
        all.iter().copied().filter(|n| n.to_string_lossy().starts_with("model")).collect();
    let candidates = if named_model.is_empty() { &all } else { &named_model };
    match candidates.as_slice() {
        [] => Err(no_weights(directory, &names)),
        [one] if shard_count(&one.to_string_lossy()) <= 1 => Ok(Weights::File(directory.join(one))),
        several => {
            let several: Vec<String> = several.iter().map(|n| shown(n)).collect();
            Err(Error::new(
                ErrorKind::Io,
                format!(
                    "{}: {INDEX} is missing, and without it the parts of the model are not known; \
                     there is {}",
                    shown(directory),
                    list(&several)
                ),
            ))
        }
    }
}

/// The total in a name such as `model-00001-of-00003.safetensors`, else 1.
fn shard_count(name: &str) -> u32 {
    let stem = name.strip_suffix(".safetensors").unwrap_or(name);
    stem.rsplit_once("-of-").and_then(|(_, total)| total.parse().ok()).unwrap_or(1)
}

fn is_hidden(name: &Path) -> bool {
    name.as_os_str().as_encoded_bytes().starts_with(b".")
}

/// The file names in `directory`, sorted, so that messages do not depend on the file system.
fn file_names(directory: &Path) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(directory).map_err(|e| Error::io(directory, "list", &e))?;
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|e| Error::io(directory, "list", &e))?;
        names.push(PathBuf::from(entry.file_name()));
    }
    names.sort_unstable();
    Ok(names)
}

/// The kind of a weight file that this library does not read.
fn foreign(name: &str) -> Option<&'static str> {
    match name.rsplit_once('.')?.1 {
        "gguf" => Some("GGUF"),
        "bin" | "pt" | "pth" => Some("PyTorch"),
        "onnx" => Some("ONNX"),
        _ => None,
    }
}

fn no_weights(directory: &Path, names: &[PathBuf]) -> Error {
    let other = names.iter().map(|n| shown(n)).find(|n| foreign(n).is_some());
    let unfinished = names.iter().any(|n| n.extension() == Some(OsStr::new("part")));
    let hint = match other {
        Some(name) => format!("; {name} is of a kind that is not read"),
        None if unfinished => "; the download is not finished".to_owned(),
        None => String::new(),
    };
    Error::new(
        ErrorKind::Io,
        format!(
            "{}: there is no {SINGLE}, {INDEX} or other .safetensors file{hint}",
            shown(directory)
        ),
    )
}

/// There is no `config.json`: say what the folder looks like instead.
fn no_config(directory: &Path) -> Error {
    let config = directory.join("config.json");
    if std::fs::symlink_metadata(&config).is_ok() {
        return open_error(&config, &std::io::ErrorKind::NotFound.into());
    }
    let names = file_names(directory).unwrap_or_default();
    let below: Vec<String> = names
        .iter()
        .filter(|n| directory.join(n).join("config.json").exists())
        .map(|n| shown(n))
        .collect();
    let snapshots = directory.join("snapshots");
    let hint = if snapshots.is_dir() {
        let revisions: Vec<String> =
            file_names(&snapshots).unwrap_or_default().iter().map(|n| shown(n)).collect();
        format!(
            "; this is the root of a download cache: open the folder of a revision in snapshots/ \
             (there is {})",
            if revisions.is_empty() { "none".to_owned() } else { list(&revisions) }
        )
    } else if !below.is_empty() {
        format!("; a folder below has one: {}", list(&below))
    } else if let Some(name) = names.iter().map(|n| shown(n)).find(|n| foreign(n).is_some()) {
        format!("; {name} is of a kind that is not read")
    } else {
        String::new()
    };
    Error::new(ErrorKind::Io, format!("{}: there is no config.json{hint}", shown(directory)))
}
