//! The base vocabulary: ids and the bytes they stand for.

use crate::{Error, Result};

/// Ids are packed into 20 bits by the merge table.
pub const MAX_ID: u32 = (1 << 20) - 2;

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

/// Finds tokens by their bytes: open addressing over ids. Only needed while loading.
pub struct Index<'a> {
    vocabulary: &'a Vocabulary,
    slots: Vec<u32>,
}

const EMPTY: u32 = u32::MAX;

impl<'a> Index<'a> {
    /// Indexes the vocabulary; refuses two ids with the same bytes.
    pub fn new(vocabulary: &'a Vocabulary) -> Result<Self> {
        let size = (vocabulary.len() * 2).next_power_of_two().max(16);
        let mut index = Self { vocabulary, slots: vec![EMPTY; size] };
        for id in 0..vocabulary.len() as u32 {
            let Some(bytes) = vocabulary.get(id) else { continue };
            let slot = index.slot_of(bytes);
            if index.slots[slot] != EMPTY {
                return Err(Error::format(format!(
                    "model.vocab: ids {} and {id} have the same token {:?}",
                    index.slots[slot],
                    String::from_utf8_lossy(bytes)
                )));
            }
            index.slots[slot] = id;
        }
        Ok(index)
    }

    /// The id of the token with these bytes.
    pub fn find(&self, bytes: &[u8]) -> Option<u32> {
        let id = self.slots[self.slot_of(bytes)];
        (id != EMPTY).then_some(id)
    }

    /// The slot that holds `bytes`, or the empty slot where they belong.
    fn slot_of(&self, bytes: &[u8]) -> usize {
        let mask = self.slots.len() - 1;
        let mut slot = super::hash::hash(bytes) as usize & mask;
        while self.slots[slot] != EMPTY && self.vocabulary.get(self.slots[slot]) != Some(bytes) {
            slot = (slot + 1) & mask;
        }
        slot
    }
}
