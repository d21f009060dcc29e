//! Where a model comes from: a Hugging Face folder, on disk or of the host, or a packed file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::chat::ChatTemplate;
use crate::checkpoint::host::{self, Documents};
use crate::checkpoint::packed::{Kind, PackedFile};
use crate::checkpoint::{self, Checkpoint, Config, HostFolder};
use crate::error::shown;
use crate::tokenizer::{Tables, Tokenizer};
use crate::{Error, Result};

/// The files of a model, opened part by part.
pub enum Origin {
    /// A folder, and the path that named it: the folder itself or a weight file in it.
    Folder {
        /// As given.
        path: PathBuf,
        /// Absolute.
        directory: PathBuf,
    },
    /// All in one file.
    Packed(Arc<PackedFile>),
    /// A folder that the host reads, on the thread that opens.
    Host {
        /// Its weight files are read through it.
        folder: Box<dyn HostFolder>,
        /// The others.
        documents: Documents,
    },
}

impl Origin {
    /// What is at `path`; a packed file is known by its first bytes.
    ///
    /// # Errors
    /// `Io`, `Format`, `Unsupported` or `InvalidArgument` for a path where no folder, weight file or
    /// packed file is, and as [`PackedFile::open`].
    pub fn open(path: &Path) -> Result<Self> {
        if !path.is_dir() && PackedFile::is_packed(path) {
            return Ok(Self::Packed(Arc::new(PackedFile::open(path)?)));
        }
        Ok(Self::Folder { path: path.to_owned(), directory: checkpoint::folder_of(path)? })
    }

    /// The folder of the host, whose small files are read now.
    ///
    /// # Errors
    /// As [`Documents::read`].
    pub fn host(folder: Box<dyn HostFolder>) -> Result<Self> {
        let documents = Documents::read(&*folder)?;
        Ok(Self::Host { folder, documents })
    }

    /// What messages call it.
    pub fn name(&self) -> String {
        match self {
            Self::Folder { path, .. } => shown(path),
            Self::Packed(file) => file.name().to_owned(),
            Self::Host { .. } => "a folder that is read by the host".to_owned(),
        }
    }

    /// What messages call the file `name` of it.
    pub fn file_name(&self, name: &str) -> String {
        match self {
            Self::Folder { directory, .. } => shown(&directory.join(name)),
            Self::Packed(_) | Self::Host { .. } => format!("{name} of {}", self.name()),
        }
    }

    /// The configuration and the weights.
    ///
    /// # Errors
    /// As [`Checkpoint::open`].
    pub fn checkpoint(&self) -> Result<Checkpoint> {
        match self {
            Self::Folder { path, .. } => Checkpoint::open(path),
            Self::Packed(file) => Checkpoint::open_packed(file),
            Self::Host { folder, documents } => Checkpoint::open_host(&**folder, documents),
        }
    }

    /// The configuration alone.
    ///
    /// # Errors
    /// As [`Config::from_dir`].
    pub fn config(&self) -> Result<Config> {
        match self {
            Self::Folder { directory, .. } => Config::from_dir(directory),
            Self::Packed(file) => Config::from_packed(file),
            Self::Host { documents, .. } => Config::from_json(
                host::present(&documents.config, "config.json")?,
                documents.generation_config.as_deref(),
            ),
        }
    }

    /// The tokenizer.
    ///
    /// # Errors
    /// `Io`, `Format` or `Unsupported`.
    pub fn tokenizer(&self) -> Result<Tokenizer> {
        match self {
            Self::Folder { directory, .. } => Tokenizer::from_dir(directory),
            Self::Packed(file) => {
                let tokenizer = Tokenizer::from_tables(&Tables {
                    settings: file.need(Kind::Text, "tokenizer")?,
                    bytes: file.need(Kind::Tokenizer, "tokenizer.bytes")?,
                    ends: file.need(Kind::Tokenizer, "tokenizer.ends")?,
                    merges: file.need(Kind::Tokenizer, "tokenizer.merges")?,
                });
                // It has tables of its own now.
                file.release(Kind::Tokenizer);
                tokenizer.map_err(|e| e.within(file.name()))
            }
            Self::Host { documents, .. } => Tokenizer::from_json(
                host::present(&documents.tokenizer, "tokenizer.json")?,
                documents.tokenizer_config.as_deref(),
            ),
        }
    }

    /// The chat template, if there is one. `spellings` are those of added tokens.
    ///
    /// # Errors
    /// As [`ChatTemplate::from_dir`].
    pub fn chat_template(&self, spellings: &[&str]) -> Result<Option<ChatTemplate>> {
        match self {
            Self::Folder { directory, .. } => ChatTemplate::from_dir(directory, spellings),
            Self::Packed(file) => match file.section(Kind::Text, "chat") {
                None => Ok(None),
                Some(document) => ChatTemplate::from_document(document, spellings)
                    .map(Some)
                    .map_err(|e| e.within(file.name())),
            },
            Self::Host { documents, .. } => ChatTemplate::from_files(
                documents.chat_template.as_deref(),
                documents.tokenizer_config.as_deref(),
                spellings,
            ),
        }
    }

    /// The chat template as it goes into a packed file.
    ///
    /// # Errors
    /// As [`ChatTemplate::document`].
    pub(crate) fn chat_document(&self) -> Result<Option<Vec<u8>>> {
        match self {
            Self::Folder { directory, .. } => ChatTemplate::document(directory),
            Self::Packed(file) => Ok(file.section(Kind::Text, "chat").map(<[u8]>::to_vec)),
            Self::Host { .. } => Err(Error::unsupported("the host has the files of this model")),
        }
    }
}
