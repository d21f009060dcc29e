//! Text to token ids and back.
//!
//! ```text
//! text -> added.rs (spellings of added tokens, if they are honoured)
//!      -> nfc.rs   (normalization form C)
//!      -> split.rs (pieces: words, digits, punctuation, white space)
//!      -> cache.rs (words seen before), else bpe.rs over merges.rs -> ids
//! ids  -> vocabulary.rs -> bytes -> stream.rs -> text
//! ```
//!
//! Everything is read from `tokenizer.json` (file.rs) and `tokenizer_config.json` (config.rs), or
//! from the tables of a packed file (packed.rs), and the ids are those of Hugging Face `tokenizers` for any text. Character properties are in
//! unicode.rs, over tables generated from the reference's own behaviour.

mod added;
mod agenda;
mod alphabet;
mod bpe;
mod cache;
mod config;
mod file;
mod hash;
mod merges;
mod nfc;
mod packed;
mod split;
mod stop;
mod stream;
mod tables;
mod unicode;
mod vocabulary;

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::path::Path;
use std::sync::Mutex;

pub use added::AddedToken;
pub use packed::{OwnedTables, Tables};
pub use stop::Stop;
pub use stream::StreamDecoder;

use crate::error::shown;
use crate::{Error, Result, files};
use added::{MAX_SPELLING, Matcher, Stretch};
use cache::{Cache, Place};
use config::TokenizerConfig;
use file::{Pattern, TokenizerFile};
use merges::MergeTable;
use split::Splitter;
use unicode::Properties;
use vocabulary::{Index, Vocabulary};

/// The published tokenizer.json has 13 MB.
const MAX_FILE: u64 = 1 << 30;

/// What the spelling of an added token, such as `<|im_end|>`, is when it stands in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddedTokens {
    /// Ordinary text: the right choice for everything that a user wrote.
    AsText,
    /// The added token.
    Honour,
}

/// What becomes of special tokens in decoded text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Special {
    /// They are spelled out.
    Keep,
    /// They are left out. Added tokens that are not special (`<think>`, `<tool_call>`) stay.
    Skip,
}

/// A tokenizer. It never changes after it was loaded, and any number of threads can use it.
pub struct Tokenizer {
    vocabulary: Vocabulary,
    merges: MergeTable,
    /// Where the file says so, a piece that is a token is not merged step by step.
    whole: Option<Index>,
    nfc: bool,
    marks_in_words: bool,
    splitter: Splitter,
    /// By id.
    added: Vec<AddedToken>,
    /// Spellings to be found in the text as written, and in the normalized text.
    written: Matcher,
    normalized: Matcher,
    eos_token_id: Option<u32>,
    id_limit: u32,
    /// Memory for calls of [`Tokenizer::encode`]: each takes one and puts it back.
    spare: Mutex<Vec<Scratch>>,
}

/// What a tokenizer is made of, see [`Tokenizer`].
struct Parts {
    vocabulary: Vocabulary,
    merges: MergeTable,
    whole: Option<Index>,
    nfc: bool,
    marks_in_words: bool,
    /// By id.
    added: Vec<AddedToken>,
    eos_token_id: Option<u32>,
}

/// How many [`Scratch`] are kept between calls.
const MAX_SPARE: usize = 4;

#[derive(Default)]
struct Scratch {
    cache: Cache,
    workspace: bpe::Workspace,
}

impl Tokenizer {
    /// Reads `tokenizer.json` and, if it is there, `tokenizer_config.json` from a model folder.
    pub fn from_dir(dir: &Path) -> Result<Self> {
        let [path, config_path] = [dir.join("tokenizer.json"), dir.join("tokenizer_config.json")];
        let json = files::read(&path, MAX_FILE)?;
        let config = match files::is_listed(&config_path) {
            true => Some(files::read(&config_path, MAX_FILE)?),
            false => None,
        };
        Self::parse(&json, config.as_deref(), [&shown(&path), &shown(&config_path)])
    }

    /// Reads the text of a `tokenizer.json` and, optionally, of a `tokenizer_config.json`.
    pub fn from_json(tokenizer_json: &[u8], tokenizer_config: Option<&[u8]>) -> Result<Self> {
        Self::parse(tokenizer_json, tokenizer_config, ["tokenizer.json", "tokenizer_config.json"])
    }

    /// `names` is what messages call the two files.
    fn parse(json: &[u8], config: Option<&[u8]>, names: [&str; 2]) -> Result<Self> {
        let [in_file, in_config] = names.map(|name| move |e: Error| e.within(name));
        let config = config.map(TokenizerConfig::parse).transpose().map_err(in_config)?;
        let config = config.unwrap_or_default();
        let file = TokenizerFile::parse(json).map_err(in_file)?;
        let vocabulary = file.vocabulary.build().map_err(in_file)?;
        let index = Index::new(&vocabulary).map_err(in_file)?;
        let merges = MergeTable::new(&file.merges, &vocabulary, &index).map_err(in_file)?;
        let lists = names.into_iter().zip([file.added_tokens, config.added_tokens]);
        let added = join_added(lists, &vocabulary)?;
        let eos_token_id = match config.eos_token {
            None => None,
            Some(eos) => Some(find_added(&added, &eos).ok_or_else(|| {
                let eos = files::excerpt(&eos);
                in_config(Error::format(format!("eos_token {eos} is no added token")))
            })?),
        };
        Self::assemble(Parts {
            vocabulary,
            merges,
            whole: file.ignore_merges.then_some(index),
            nfc: file.nfc,
            marks_in_words: file.pattern == Pattern::MarksInWords,
            added,
            eos_token_id,
        })
    }

    /// Puts checked parts together.
    fn assemble(parts: Parts) -> Result<Self> {
        let Parts { vocabulary, merges, whole, nfc, marks_in_words, added, eos_token_id } = parts;
        let properties = Properties::new(marks_in_words);
        let matcher = |normalized: bool| {
            let tokens = added.iter().enumerate().filter(|(_, t)| t.normalized == normalized);
            let spellings: Vec<_> = tokens
                .map(|(i, token)| match normalized && nfc {
                    true => (i as u32, nfc::normalize(&token.content, &properties)),
                    false => (i as u32, Cow::Borrowed(token.content.as_str())),
                })
                .collect();
            Matcher::new(spellings.iter().map(|(i, spelling)| (*i, spelling.as_ref())))
        };
        let (written, normalized) = (matcher(false), matcher(true));
        if let Some(id) = eos_token_id.filter(|id| !added.iter().any(|token| token.id == *id)) {
            return Err(Error::format(format!("eos_token_id {id} is no added token")));
        }
        let highest_added = added.last().map_or(0, |token| token.id + 1);
        Ok(Self {
            id_limit: highest_added.max(vocabulary.len() as u32),
            vocabulary,
            merges,
            whole,
            nfc,
            marks_in_words,
            splitter: Splitter::new(properties),
            added,
            written,
            normalized,
            eos_token_id,
            spare: Mutex::default(),
        })
    }

    /// Appends the ids of `text` to `out`.
    pub fn encode(&self, text: &str, added: AddedTokens, out: &mut Vec<u32>) {
        let mut scratch = self.spare.lock().map_or(None, |mut s| s.pop()).unwrap_or_default();
        if added == AddedTokens::AsText || self.written.is_empty() {
            self.encode_written(text, added, &mut scratch, out);
        } else {
            self.written.split(text, &self.added, |stretch| match stretch {
                Stretch::Plain(text) => self.encode_written(text, added, &mut scratch, out),
                Stretch::Token(i) => out.push(self.added[i as usize].id),
            });
        }
        scratch.workspace.shrink();
        if let Ok(mut spare) = self.spare.lock()
            && spare.len() < MAX_SPARE
        {
            spare.push(scratch);
        }
    }

    /// Encodes a stretch between added tokens that are found in the text as written.
    fn encode_written(
        &self,
        text: &str,
        added: AddedTokens,
        scratch: &mut Scratch,
        out: &mut Vec<u32>,
    ) {
        let normal = match self.nfc {
            true => nfc::normalize(text, self.splitter.properties()),
            false => Cow::Borrowed(text),
        };
        if added == AddedTokens::AsText || self.normalized.is_empty() {
            return self.encode_normal(normal.as_bytes(), scratch, out);
        }
        self.normalized.split(&normal, &self.added, |stretch| match stretch {
            Stretch::Plain(text) => self.encode_normal(text.as_bytes(), scratch, out),
            Stretch::Token(i) => out.push(self.added[i as usize].id),
        });
    }

    /// Encodes normalized text without added tokens.
    fn encode_normal(&self, text: &[u8], scratch: &mut Scratch, out: &mut Vec<u32>) {
        for (start, end) in self.splitter.pieces(text) {
            let piece = &text[start..end];
            if let &[byte] = piece {
                out.push(self.merges.byte_id(byte));
                continue;
            }
            let place = Cache::place(text, start, end);
            if scratch.cache.find(piece, place, out) {
                continue;
            }
            let first = out.len();
            match self.whole.as_ref().and_then(|index| index.find(&self.vocabulary, piece)) {
                Some(id) => out.push(id),
                None => bpe::encode(&self.merges, piece, &mut scratch.workspace, out),
            }
            if !matches!(place, Place::Nowhere) {
                scratch.cache.insert(piece, place, &out[first..]);
            }
        }
    }

    /// Appends the bytes of `ids` to `out`. They need not be UTF-8: see [`Self::decode_text`] and
    /// [`StreamDecoder`]. An id without text (there are some between [`Self::token_count`] and the
    /// limit) adds nothing; an id at or above the limit is an error and leaves `out` as it was.
    pub fn decode(&self, ids: &[u32], special: Special, out: &mut Vec<u8>) -> Result<()> {
        let len = out.len();
        for (i, &id) in ids.iter().enumerate() {
            if id >= self.id_limit {
                out.truncate(len);
                return Err(Error::invalid_argument(format!(
                    "token id {id} at index {i}: ids are below {}",
                    self.id_limit
                )));
            }
            if special == Special::Keep || !self.is_special(id) {
                out.extend_from_slice(self.token_bytes(id).unwrap_or_default());
            }
        }
        Ok(())
    }

    /// The text of `ids`; bytes that are not UTF-8 become U+FFFD. Errors as [`Self::decode`].
    pub fn decode_text(&self, ids: &[u32], special: Special) -> Result<String> {
        let mut bytes = Vec::new();
        self.decode(ids, special, &mut bytes)?;
        Ok(match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
        })
    }

    /// The bytes of one token: of an added token, its spelling. None for an id without text.
    pub fn token_bytes(&self, id: u32) -> Option<&[u8]> {
        match self.added_token(id) {
            Some(token) => Some(token.content.as_bytes()),
            None => self.vocabulary.get(id),
        }
    }

    /// One past the highest id that has text.
    pub fn token_count(&self) -> usize {
        let highest_added = self.added.last().map_or(0, |token| token.id as usize + 1);
        highest_added.max(self.vocabulary.len())
    }

    /// Sets the limit of ids that [`Self::decode`] takes: the rows of the model's matrix, which
    /// may be more than there are tokens. A limit below [`Self::token_count`] is ignored.
    pub fn set_id_limit(&mut self, limit: u32) {
        self.id_limit = limit.max(self.token_count() as u32);
    }

    /// The added token with this id.
    fn added_token(&self, id: u32) -> Option<&AddedToken> {
        let first = self.added.first()?.id;
        if id < first {
            return None; // nearly all ids
        }
        self.added.binary_search_by_key(&id, |token| token.id).ok().map(|i| &self.added[i])
    }

    /// Whether the id is an added token that is special.
    pub fn is_special(&self, id: u32) -> bool {
        self.added_token(id).is_some_and(|token| token.special)
    }

    /// Whether the id is an added token.
    pub fn is_added(&self, id: u32) -> bool {
        self.added_token(id).is_some()
    }

    /// All added tokens by ascending id.
    pub fn added_tokens(&self) -> &[AddedToken] {
        &self.added
    }

    /// The id of the added token with this spelling.
    pub fn token_id(&self, content: &str) -> Option<u32> {
        find_added(&self.added, content)
    }

    /// The end-of-text token that `tokenizer_config.json` names.
    pub fn eos_token_id(&self) -> Option<u32> {
        self.eos_token_id
    }
}

impl fmt::Debug for Tokenizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokenizer")
            .field("token_count", &self.token_count())
            .field("ranks", &self.merges.rank_limit())
            .field("added", &self.added.len())
            .finish_non_exhaustive()
    }
}

fn find_added(added: &[AddedToken], content: &str) -> Option<u32> {
    added.iter().find(|token| token.content == content).map(|token| token.id)
}

/// Joins the lists of added tokens of some files, given by name, by id. Where both list a token,
/// `tokenizer_config.json` decides on its properties, as in Transformers.
fn join_added<'a>(
    lists: impl IntoIterator<Item = (&'a str, Vec<AddedToken>)>,
    vocabulary: &Vocabulary,
) -> Result<Vec<AddedToken>> {
    let mut added: BTreeMap<u32, AddedToken> = BTreeMap::new();
    let mut by_content: HashMap<String, u32> = HashMap::new();
    for (name, list) in lists {
        for token in list {
            let AddedToken { id, content, .. } = &token;
            let bad = |why: &str| {
                let content = files::excerpt(content);
                Error::format(format!("{name}: added token {content} (id {id}): {why}"))
            };
            if content.is_empty() {
                return Err(bad("the spelling is empty"));
            }
            if content.len() > MAX_SPELLING {
                let (len, most) = (content.len(), MAX_SPELLING);
                return Err(bad(&format!("the spelling has {len} bytes, expected at most {most}")));
            }
            if *id > vocabulary::MAX_ID {
                return Err(bad(&format!("ids are at most {}", vocabulary::MAX_ID)));
            }
            if token.single_word {
                return Err(Error::unsupported(bad("single_word is not supported").message()));
            }
            if vocabulary.get(*id).is_some_and(|base| base != content.as_bytes()) {
                return Err(bad("the id belongs to another token of model.vocab"));
            }
            if let Some(other) = by_content.insert(content.clone(), *id).filter(|other| other != id)
            {
                return Err(bad(&format!("the same spelling has the id {other} too")));
            }
            if let Some(other) = added.get(id).filter(|other| other.content != *content) {
                let other = files::excerpt(&other.content);
                return Err(bad(&format!("{other} has the same id")));
            }
            added.insert(*id, token);
        }
    }
    Ok(added.into_values().collect())
}
