//! A Hugging Face folder on disk.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use super::mmap::Mapping;
use super::names::{Role, split_prefix};
use super::safetensors::{self, Entry};
use super::{Checkpoint, Config, Data, Found, Quantized, Source, WeightFile, index, locate};
use crate::error::{Error, Result, shown};
use crate::files::excerpt;

impl Checkpoint {
    /// Opens the folder `path`, or the folder of the weight file `path`.
    ///
    /// In a folder, `model.safetensors` is read if it is there, else the files that
    /// `model.safetensors.index.json` names, else the only `*.safetensors` file whose name begins
    /// with `model` (or the only one at all). Tensor names may have any chain of `model.` and
    /// `language_model.` in front. Vision and `mtp.` tensors and those of unknown modules are left
    /// alone; unknown ones of the modules of the text model are refused.
    ///
    /// # Errors
    ///
    /// `Io` where a file is missing or unreadable, `Format` where contents are damaged or
    /// contradict each other, `Unsupported` for other models, rope types and element types.
    pub fn open(path: &Path) -> Result<Checkpoint> {
        let location = locate::locate(path)?;
        let config = Config::from_dir(&location.directory)?;
        let (files, found) = match &location.weights {
            locate::Weights::File(file) => Self::open_single(file)?,
            locate::Weights::Index(index) => Self::open_sharded(index)?,
        };
        Self::checked(config, location.directory, files, found, Quantized::new(), Source::Folder)
    }

    fn open_single(path: &Path) -> Result<(Vec<WeightFile>, Found)> {
        let map = Arc::new(Mapping::open(path)?);
        let entries = safetensors::read_header(map.bytes()).map_err(|e| e.within(shown(path)))?;
        let found = entries.into_iter().map(|(name, entry)| (name, 0, entry)).collect();
        Ok((vec![WeightFile { path: path.to_owned(), data: Data::Map(map) }], found))
    }

    fn open_sharded(index_path: &Path) -> Result<(Vec<WeightFile>, Found)> {
        let index = index::Index::read(index_path)?;
        let mut files = Vec::new();
        let mut headers: Vec<HashMap<String, Entry>> = Vec::new();
        for path in &index.files {
            let (mut file, found) = Self::open_single(path)?;
            files.append(&mut file);
            headers.push(found.into_iter().map(|(name, _, entry)| (name, entry)).collect());
        }
        let found = Self::follow(index.tensors, headers, &files)
            .map_err(|e| e.within(shown(index_path)))?;
        Ok((files, found))
    }

    /// The tensors of an index, of which each names one of the `files` with their `headers`.
    pub(super) fn follow(
        index: Vec<(String, usize)>,
        mut headers: Vec<HashMap<String, Entry>>,
        files: &[WeightFile],
    ) -> Result<Found> {
        let mut found = Vec::new();
        for (name, file) in index {
            match headers[file].remove(&name) {
                Some(entry) => found.push((name, file, entry)),
                // Tuned saves drop vision or mtp tensors and keep the index of the original.
                None if split_prefix(&name).1 == Role::Other => {}
                None => {
                    return Err(Error::format(format!(
                        "tensor {} is said to be in {}, but that file does not hold it (the \
                         index belongs to other files?)",
                        excerpt(&name),
                        shown(&files[file].path),
                    )));
                }
            }
        }
        Ok(found)
    }
}
