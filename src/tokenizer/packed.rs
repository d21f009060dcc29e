//! The tokenizer as the tables of a packed file: what `tokenizer.json` and
//! `tokenizer_config.json` come to, without the parsing. `docs/packed-format.md` says how each
//! table is written.
//!
//! Hash tables are not part of it: they are made anew, which takes a few milliseconds and
//! needs no trust.

use serde::{Deserialize, Serialize};

use super::added::AddedToken;
use super::merges::{Merge, MergeTable};
use super::vocabulary::{Index, Vocabulary};
use super::{Parts, Tokenizer};
use crate::{Error, Result};

/// A tokenizer in tables.
pub struct Tables<'a> {
    /// JSON.
    pub settings: &'a [u8],
    /// The bytes of all tokens of the vocabulary.
    pub bytes: &'a [u8],
    /// `u32` little-endian: where each token ends.
    pub ends: &'a [u8],
    /// `u32` little-endian, three of each merge.
    pub merges: &'a [u8],
}

/// The same with memory of its own.
pub struct OwnedTables {
    /// See [`Tables`].
    pub settings: Vec<u8>,
    /// See [`Tables`].
    pub bytes: Vec<u8>,
    /// See [`Tables`].
    pub ends: Vec<u8>,
    /// See [`Tables`].
    pub merges: Vec<u8>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    nfc: bool,
    marks_in_words: bool,
    ignore_merges: bool,
    eos_token_id: Option<u32>,
    added_tokens: Vec<AddedToken>,
}

impl Tokenizer {
    /// The tables of this tokenizer.
    ///
    /// # Errors
    /// None that is known of.
    pub fn to_tables(&self) -> Result<OwnedTables> {
        let settings = Settings {
            nfc: self.nfc,
            marks_in_words: self.marks_in_words,
            ignore_merges: self.whole.is_some(),
            eos_token_id: self.eos_token_id,
            added_tokens: self.added.clone(),
        };
        let (bytes, ends) = self.vocabulary.tables();
        let merges = self.merges.merges();
        Ok(OwnedTables {
            settings: serde_json::to_vec(&settings)
                .map_err(|e| Error::internal(format!("the tokenizer's settings: {e}")))?,
            bytes: bytes.to_vec(),
            ends: ends.iter().flat_map(|end| end.to_le_bytes()).collect(),
            merges: merges
                .iter()
                .flat_map(|merge| [merge.left, merge.right, merge.result])
                .flat_map(u32::to_le_bytes)
                .collect(),
        })
    }

    /// The tokenizer of `tables`, which may hold anything.
    ///
    /// # Errors
    /// `Format`, naming the table and what is wrong in it.
    pub fn from_tables(tables: &Tables) -> Result<Self> {
        let settings: Settings = serde_json::from_slice(tables.settings)
            .map_err(|e| Error::format(format!("tokenizer: {e}")))?;
        let ends = words(tables.ends).map(|[end]| end);
        let vocabulary = Vocabulary::from_tables(tables.bytes, ends)?;
        let merges =
            words(tables.merges).map(|[left, right, result]| Merge { left, right, result });
        let merges = MergeTable::from_ids(merges.collect(), &vocabulary)?;
        let whole = match settings.ignore_merges {
            true => Some(Index::new(&vocabulary)?),
            false => None,
        };
        Self::assemble(Parts {
            added: super::join_added([("settings", settings.added_tokens)], &vocabulary)?,
            vocabulary,
            merges,
            whole,
            nfc: settings.nfc,
            marks_in_words: settings.marks_in_words,
            eos_token_id: settings.eos_token_id,
        })
    }
}

/// Little-endian numbers, `N` at a time; a rest that is too short is left out.
fn words<const N: usize>(bytes: &[u8]) -> impl ExactSizeIterator<Item = [u32; N]> {
    bytes.chunks_exact(4 * N).map(|group| {
        std::array::from_fn(|i| {
            let mut word = [0; 4];
            word.copy_from_slice(&group[4 * i..4 * i + 4]);
            u32::from_le_bytes(word)
        })
    })
}
