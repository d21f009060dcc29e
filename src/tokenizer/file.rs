//! Reads `tokenizer.json`: streams the large parts, and refuses what this tokenizer is not.

use std::fmt;

use serde::Deserialize;
use serde::de::{
    DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde_json::Value;

use super::added::AddedToken;
use super::alphabet;
use super::stop;
use super::vocabulary::{MAX_ID, VocabularyBuilder};
use crate::values::Values;
use crate::{Error, Result};

/// Which published pre-tokenizer pattern the file has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Qwen3.5: combining marks belong to words.
    MarksInWords,
    /// Qwen2 and Qwen3: combining marks are punctuation.
    MarksArePunctuation,
}

/// The contents of a `tokenizer.json`, checked one by one but not yet against each other.
pub struct TokenizerFile {
    pub added_tokens: Vec<AddedToken>,
    /// Whether text is brought into normalization form C first.
    pub nfc: bool,
    pub pattern: Pattern,
    /// A whole pre-token that is in the vocabulary is taken as it is.
    pub ignore_merges: bool,
    pub vocabulary: VocabularyBuilder,
    pub merges: Merges,
}

impl TokenizerFile {
    /// Reads the text of a `tokenizer.json`.
    pub fn parse(json: &[u8]) -> Result<Self> {
        let json = json.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(json);
        let root: Root = serde_json::from_slice(json)
            .map_err(|e| stop::check(0).err().unwrap_or_else(|| Error::format(e.to_string())))?;
        let nfc = reads_nfc(&root.normalizer.0)?;
        let pattern = read_pre_tokenizer(&root.pre_tokenizer.0)?;
        check_post_processor(&root.post_processor.0)?;
        check_decoder(&root.decoder.0)?;
        root.model.check()?;
        Ok(Self {
            added_tokens: root.added_tokens.unwrap_or_default(),
            nfc,
            pattern,
            ignore_merges: root.model.ignore_merges.unwrap_or(false),
            vocabulary: root.model.vocab,
            merges: root.model.merges,
        })
    }
}

/// `truncation` and `padding` are left out: Transformers overrides both at each call.
#[derive(Deserialize)]
struct Root {
    added_tokens: Option<Vec<AddedToken>>,
    #[serde(default)]
    normalizer: Values,
    #[serde(default)]
    pre_tokenizer: Values,
    #[serde(default)]
    post_processor: Values,
    #[serde(default)]
    decoder: Values,
    model: Model,
}

#[derive(Deserialize)]
struct Model {
    #[serde(rename = "type")]
    kind: Option<String>,
    dropout: Option<f64>,
    unk_token: Option<String>,
    continuing_subword_prefix: Option<String>,
    end_of_word_suffix: Option<String>,
    fuse_unk: Option<bool>,
    byte_fallback: Option<bool>,
    ignore_merges: Option<bool>,
    vocab: VocabularyBuilder,
    merges: Merges,
}

impl Model {
    fn check(&self) -> Result<()> {
        let option = |name: &str, found: &dyn fmt::Debug| {
            Err(Error::unsupported(format!(
                "model.{name} is {found:?}: only byte-level BPE is read"
            )))
        };
        if let Some(kind) = self.kind.as_ref().filter(|kind| *kind != "BPE") {
            return option("type", kind);
        }
        if let Some(dropout) = self.dropout.filter(|p| *p != 0.0) {
            return option("dropout", &dropout);
        }
        for (name, found) in [
            ("unk_token", &self.unk_token),
            ("continuing_subword_prefix", &self.continuing_subword_prefix),
            ("end_of_word_suffix", &self.end_of_word_suffix),
        ] {
            if let Some(found) = found.as_ref().filter(|found| !found.is_empty()) {
                return option(name, found);
            }
        }
        for (name, found) in [("fuse_unk", self.fuse_unk), ("byte_fallback", self.byte_fallback)] {
            if found == Some(true) {
                return option(name, &true);
            }
        }
        if self.merges.is_empty() {
            return Err(Error::format(
                "model.merges is empty: every text would become single bytes",
            ));
        }
        Ok(())
    }
}

impl<'de> Deserialize<'de> for VocabularyBuilder {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        deserializer.deserialize_map(VocabularyVisitor)
    }
}

struct VocabularyVisitor;

impl<'de> Visitor<'de> for VocabularyVisitor {
    type Value = VocabularyBuilder;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("model.vocab, an object from tokens to ids")
    }

    fn visit_map<A: MapAccess<'de>>(
        self,
        mut map: A,
    ) -> std::result::Result<VocabularyBuilder, A::Error> {
        let mut builder = VocabularyBuilder::default();
        loop {
            let index = builder.ends.len();
            let at =
                |e: A::Error| A::Error::custom(format_args!("model.vocab, entry {index}: {e}"));
            stop::check(index).map_err(A::Error::custom)?;
            let start = builder.bytes.len();
            if map.next_key_seed(Spelling(&mut builder.bytes)).map_err(at)?.is_none() {
                return Ok(builder);
            }
            let id: u64 = map.next_value().map_err(at)?;
            if builder.bytes.len() == start {
                return Err(at(A::Error::custom("the token is empty")));
            }
            if id > u64::from(MAX_ID) {
                return Err(at(A::Error::custom(format_args!("id {id} is above {MAX_ID}"))));
            }
            let end = u32::try_from(builder.bytes.len())
                .map_err(|_| at(A::Error::custom("more than 4 GiB of tokens")))?;
            builder.ends.push((end, id as u32));
        }
    }
}

/// Reads one spelling in the byte-level alphabet and appends its bytes.
struct Spelling<'a>(&'a mut Vec<u8>);

impl<'de> DeserializeSeed<'de> for Spelling<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, d: D) -> std::result::Result<(), D::Error> {
        d.deserialize_str(self)
    }
}

impl Visitor<'_> for Spelling<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a token spelled in the byte-level alphabet")
    }

    fn visit_str<E: serde::de::Error>(self, spelling: &str) -> std::result::Result<(), E> {
        alphabet::append_bytes(spelling, self.0).map_err(|c| {
            E::custom(format_args!("{spelling:?}: {c:?} is not in the byte-level alphabet"))
        })
    }
}

/// The merges of the file, as bytes: the two halves of each follow each other.
#[derive(Default)]
pub struct Merges {
    bytes: Vec<u8>,
    /// The end of the left and of the right half in `bytes`.
    ends: Vec<(u32, u32)>,
}

impl Merges {
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// `(left, right, both)` of each merge, by rank.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8], &[u8])> {
        let starts = std::iter::once(0).chain(self.ends.iter().map(|&(_, end)| end as usize));
        starts.zip(&self.ends).map(|(start, &(middle, end))| {
            let (middle, end) = (middle as usize, end as usize);
            (&self.bytes[start..middle], &self.bytes[middle..end], &self.bytes[start..end])
        })
    }

    /// Reads the two halves and appends the merge.
    fn push<E: serde::de::Error>(
        &mut self,
        left: impl FnOnce(&mut Vec<u8>) -> std::result::Result<(), E>,
        right: impl FnOnce(&mut Vec<u8>) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let position = |bytes: &Vec<u8>| {
            u32::try_from(bytes.len()).map_err(|_| E::custom("more than 4 GiB of merges"))
        };
        let start = position(&self.bytes)?;
        left(&mut self.bytes)?;
        let middle = position(&self.bytes)?;
        right(&mut self.bytes)?;
        let end = position(&self.bytes)?;
        if start == middle || middle == end {
            return Err(E::custom("a half is empty"));
        }
        self.ends.push((middle, end));
        Ok(())
    }
}

impl<'de> Deserialize<'de> for Merges {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        deserializer.deserialize_seq(MergesVisitor)
    }
}

struct MergesVisitor;

impl<'de> Visitor<'de> for MergesVisitor {
    type Value = Merges;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("model.merges, a list of pairs of tokens")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> std::result::Result<Merges, A::Error> {
        let mut merges = Merges::default();
        loop {
            let index = merges.len();
            stop::check(index).map_err(A::Error::custom)?;
            let read = seq.next_element_seed(MergeSeed(&mut merges));
            let read =
                read.map_err(|e| A::Error::custom(format_args!("model.merges[{index}]: {e}")))?;
            if read.is_none() {
                return Ok(merges);
            }
        }
    }
}

/// Reads one merge, `"a b"` or `["a", "b"]`.
struct MergeSeed<'a>(&'a mut Merges);

impl<'de> DeserializeSeed<'de> for MergeSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, d: D) -> std::result::Result<(), D::Error> {
        d.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for MergeSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"a b\" or [\"a\", \"b\"]")
    }

    fn visit_str<E: serde::de::Error>(self, merge: &str) -> std::result::Result<(), E> {
        let Some((left, right)) = merge.split_once(' ') else {
            return Err(E::custom(format_args!("{merge:?} is not two tokens and one space")));
        };
        self.0
            .push(|bytes| Spelling(bytes).visit_str(left), |bytes| Spelling(bytes).visit_str(right))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> std::result::Result<(), A::Error> {
        // Both halves read from the same list, one after the other.
        let seq = std::cell::RefCell::new(seq);
        let half = |bytes: &mut Vec<u8>| {
            let read = seq.borrow_mut().next_element_seed(Spelling(bytes))?;
            read.ok_or_else(|| A::Error::custom("a list of fewer than two tokens"))
        };
        self.0.push(half, half)?;
        match seq.into_inner().next_element::<IgnoredAny>()? {
            None => Ok(()),
            Some(_) => Err(A::Error::custom("a list of more than two tokens")),
        }
    }
}

/// The `type` of a component of the file.
fn kind(component: &Value) -> &str {
    component["type"].as_str().unwrap_or("(no type)")
}

/// The members of a `Sequence` under its field `name`, or the component alone.
fn sequence<'a>(component: &'a Value, name: &str) -> &'a [Value] {
    match component[name].as_array() {
        Some(members) if kind(component) == "Sequence" => members,
        _ => std::slice::from_ref(component),
    }
}

fn unsupported<T>(what: &str, component: &Value, expected: &str) -> Result<T> {
    let mut found = component.to_string();
    if found.len() > 300 {
        found.truncate((0..=300).rev().find(|&i| found.is_char_boundary(i)).unwrap_or(0));
        found.push_str(" ...");
    }
    Err(Error::unsupported(format!("{what} {}: {found}; expected {expected}", kind(component))))
}

fn reads_nfc(normalizer: &Value) -> Result<bool> {
    if normalizer.is_null() {
        return Ok(false);
    }
    let members = sequence(normalizer, "normalizers");
    if let Some(other) = members.iter().find(|member| kind(member) != "NFC") {
        return unsupported("normalizer", other, "NFC or none");
    }
    Ok(!members.is_empty())
}

/// The spellings of the two patterns. `WORD` and `REST` are the parts that differ.
fn known_pattern(regex: &str) -> Option<Pattern> {
    let head = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?";
    let tail = r"]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
    match regex.strip_prefix(head)?.strip_suffix(tail)? {
        r"[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}" => Some(Pattern::MarksInWords),
        r"\p{L}+|\p{N}| ?[^\s\p{L}\p{N}" | r"[\p{L}]+|\p{N}| ?[^\s\p{L}\p{N}" => {
            Some(Pattern::MarksArePunctuation)
        }
        _ => None,
    }
}

fn read_pre_tokenizer(pre_tokenizer: &Value) -> Result<Pattern> {
    let expected = "a Sequence of Split (isolated, with a Qwen pattern) and ByteLevel (without \
                    prefix space and pattern of its own)";
    let [split, byte_level] = sequence(pre_tokenizer, "pretokenizers") else {
        return unsupported("pre_tokenizer", pre_tokenizer, expected);
    };
    if kind(split) != "Split" || split["behavior"] != "Isolated" || split["invert"] == true {
        return unsupported("pre_tokenizer", split, expected);
    }
    // `use_regex` is true where it is not written.
    let plain = byte_level["add_prefix_space"] == false && byte_level["use_regex"] == false;
    if kind(byte_level) != "ByteLevel" || !plain {
        return unsupported("pre_tokenizer", byte_level, expected);
    }
    let regex = split["pattern"]["Regex"].as_str().unwrap_or_default();
    match known_pattern(regex) {
        Some(pattern) => Ok(pattern),
        None => Err(Error::unsupported(format!(
            "pre_tokenizer: the pattern {} is not one of Qwen2, Qwen3 or Qwen3.5",
            split["pattern"]
        ))),
    }
}

fn check_post_processor(post_processor: &Value) -> Result<()> {
    if post_processor.is_null() {
        return Ok(());
    }
    match sequence(post_processor, "processors").iter().find(|p| kind(p) != "ByteLevel") {
        Some(other) => unsupported("post_processor", other, "ByteLevel or none"),
        None => Ok(()),
    }
}

fn check_decoder(decoder: &Value) -> Result<()> {
    match sequence(decoder, "decoders") {
        [only] if kind(only) == "ByteLevel" => Ok(()),
        _ => unsupported("decoder", decoder, "ByteLevel"),
    }
}
