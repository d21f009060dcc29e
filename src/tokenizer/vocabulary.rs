//! The base vocabulary: ids and the bytes they stand for.

use super::hash::Key;
use crate::{Error, Result};

/// Ids are packed into 20 bits by the merge table.
pub const MAX_ID: u32 = (1 << 20) - 2;
const _: () = assert!((MAX_ID + 1).trailing_ones() == 20, "a mask");

/// Token bytes by id. An id without a token has no bytes.
#[derive(Debug, Default)]
pub struct Vocabulary {
    bytes: Vec<u8>,
    /// The token `id` is `bytes[starts[id]..starts[id + 1]]`.
    starts: Vec<u32>,
}

impl Vocabulary {
    /// One past the highest id.
    pub fn len(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    /// The bytes of all tokens, and where each ends.
    pub fn tables(&self) -> (&[u8], &[u32]) {
        (&self.bytes, self.starts.get(1..).unwrap_or_default())
    }

    /// The vocabulary of such tables, which may hold anything.
    pub fn from_tables(bytes: &[u8], ends: impl ExactSizeIterator<Item = u32>) -> Result<Self> {
        let bad = |what: String| Err(Error::format(format!("tokenizer.ends: {what}")));
        if ends.len() > MAX_ID as usize + 1 {
            return bad(format!("{} tokens, expected at most {}", ends.len(), MAX_ID + 1));
        }
        let mut starts = Vec::with_capacity(ends.len() + 1);
        starts.push(0);
        starts.extend(ends);
        if !starts.is_sorted() {
            return bad("not in ascending order".into());
        }
        let last = starts.last().copied().unwrap_or_default();
        if last as usize != bytes.len() {
            return bad(format!("the tokens end at {last}, but have {} bytes", bytes.len()));
        }
        Ok(Self { bytes: bytes.to_vec(), starts })
    }

    /// The bytes of a token; none if the id has no token.
    pub fn get(&self, id: u32) -> Option<&[u8]> {
        let start = *self.starts.get(id as usize)? as usize;
        let end = *self.starts.get(id as usize + 1)? as usize;
        (start < end).then(|| &self.bytes[start..end])
    }
}

/// Collects tokens in any order.
#[derive(Default)]
pub struct VocabularyBuilder {
    /// The bytes of all tokens, in the order of the file.
    pub bytes: Vec<u8>,
    /// The end of each token in `bytes`, and its id.
    pub ends: Vec<(u32, u32)>,
}

impl VocabularyBuilder {
    /// Orders by id; refuses ids that are used twice.
    pub fn build(self) -> Result<Vocabulary> {
        let len = self.ends.iter().map(|&(_, id)| id as usize + 1).max().unwrap_or(0);
        let in_order = self.ends.iter().enumerate().all(|(i, &(_, id))| i == id as usize);
        if in_order {
            let starts = std::iter::once(0).chain(self.ends.iter().map(|&(end, _)| end)).collect();
            return Ok(Vocabulary { bytes: self.bytes, starts });
        }
        let mut spans = vec![0..0usize; len];
        let mut start = 0;
        for &(end, id) in &self.ends {
            let span = &mut spans[id as usize];
            if span.start != span.end {
                let first = String::from_utf8_lossy(&self.bytes[span.clone()]);
                let second = String::from_utf8_lossy(&self.bytes[start..end as usize]);
                return Err(Error::format(format!(
                    "model.vocab: {first:?} and {second:?} have the same id {id}"
                )));
            }
            *span = start..end as usize;
            start = end as usize;
        }
        let mut bytes = Vec::with_capacity(self.bytes.len());
        let mut starts = Vec::with_capacity(len + 1);
        starts.push(0);
        for span in spans {
            bytes.extend_from_slice(&self.bytes[span]);
            starts.push(bytes.len() as u32);
        }
        Ok(Vocabulary { bytes, starts })
    }
}

/// Finds tokens by their bytes: open addressing.
pub struct Index {
    /// An id in the low 20 bits, and 12 bits of the hash, which spare nearly all comparisons with
    /// other tokens.
    slots: Vec<u32>,
    /// Tokens are a stranger's, who could make them collide.
    key: Key,
}

const ID_MASK: u32 = MAX_ID + 1;
const EMPTY: u32 = u32::MAX;

impl Index {
    /// Indexes the vocabulary; refuses two ids with the same bytes.
    pub fn new(vocabulary: &Vocabulary) -> Result<Self> {
        let size = (vocabulary.len() * 2).next_power_of_two().max(16);
        let mut index = Self { slots: vec![EMPTY; size], key: Key::random() };
        for id in 0..vocabulary.len() as u32 {
            super::stop::check(id as usize)?;
            let Some(bytes) = vocabulary.get(id) else { continue };
            let (slot, entry) = index.search(vocabulary, bytes);
            if index.slots[slot] != EMPTY {
                return Err(Error::format(format!(
                    "model.vocab: ids {} and {id} have the same token {:?}",
                    index.slots[slot] & ID_MASK,
                    String::from_utf8_lossy(bytes)
                )));
            }
            index.slots[slot] = entry | id;
        }
        Ok(index)
    }

    /// The id of the token with these bytes.
    #[inline]
    pub fn find(&self, vocabulary: &Vocabulary, bytes: &[u8]) -> Option<u32> {
        let (slot, _) = self.search(vocabulary, bytes);
        let found = self.slots[slot];
        (found != EMPTY).then_some(found & ID_MASK)
    }

    /// The slot that holds `bytes`, or the empty slot where they belong; and the bits of the hash
    /// that stand in it.
    #[inline]
    fn search(&self, vocabulary: &Vocabulary, bytes: &[u8]) -> (usize, u32) {
        let hash = self.key.hash(bytes);
        let tag = (hash >> 32) as u32 & !ID_MASK;
        let mask = self.slots.len() - 1;
        let mut slot = hash as usize & mask;
        loop {
            let found = self.slots[slot];
            let same = |id: u32| vocabulary.get(id) == Some(bytes);
            if found == EMPTY || (found & !ID_MASK == tag && same(found & ID_MASK)) {
                return (slot, tag);
            }
            slot = (slot + 1) & mask;
        }
    }
}
