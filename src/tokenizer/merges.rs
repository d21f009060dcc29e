//! The merge table: which two tokens join, in which order of preference, and what they become.

use super::file::Merges;
use super::hash::Key;
use super::vocabulary::{Index, MAX_ID, Vocabulary};
use crate::{Error, Result};

/// No merge. Every rank is lower.
pub const NO_RANK: u32 = u32::MAX;

/// Ranks are packed into 24 bits, two ids into 40.
pub const RANK_BITS: u32 = 24;
const ID_BITS: u32 = 20;
const MAX_ID_MASK: u32 = (1 << ID_BITS) - 1;
/// No pair of ids is all ones, so no slot in use is [`EMPTY`].
const _: () = assert!(MAX_ID < (1 << ID_BITS) - 1);
/// [`NO_RANK`] in [`RANK_BITS`].
const NO_RANK_PACKED: u32 = (1 << RANK_BITS) - 1;

const EMPTY: u64 = u64::MAX;

/// A merge of a file, in ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Merge {
    pub left: u32,
    pub right: u32,
    pub result: u32,
}

/// Merges by their two halves; see [`MergeTable::rank`].
pub struct MergeTable {
    /// Open addressing; a slot is `left << 44 | right << 24 | rank`.
    slots: Vec<u64>,
    /// Merges are a stranger's, who could make them collide.
    key: Key,
    /// How far the hash is shifted right to give a slot.
    shift: u32,
    /// A bit for each hash in use. Most pairs that are asked for do not join, and these bits say
    /// so from a sixteenth of the memory.
    filter: Vec<u64>,
    filter_shift: u32,
    /// The id that the merge of each rank makes. Empty if ranks are these ids: see [`Self::new`].
    results: Vec<u32>,
    /// Ranks are below.
    rank_limit: usize,
    /// The id of each single byte.
    byte_ids: Box<[u32; 256]>,
    /// The rank of each pair of single bytes, `first << 8 | second`.
    byte_ranks: Box<[u32]>,
}

impl MergeTable {
    /// Resolves the merges of a file; every half and every result must be in the vocabulary, and
    /// so must every single byte.
    ///
    /// Only the order of ranks counts. Where merges are listed by ascending id of what they make,
    /// which is the rule, that id is the rank.
    pub fn new(merges: &Merges, vocabulary: &Vocabulary, index: &Index) -> Result<Self> {
        let mut byte_ids = Box::new([0; 256]);
        for (byte, id) in byte_ids.iter_mut().enumerate() {
            *id = index.find(vocabulary, &[byte as u8]).ok_or_else(|| {
                Error::format(format!("model.vocab has no token for the byte 0x{byte:02X}"))
            })?;
        }
        let mut resolved = Vec::with_capacity(merges.len());
        let mut result = 0;
        for (at, (left, right, both)) in merges.iter().enumerate() {
            super::stop::check(at)?;
            let find = |bytes: &[u8]| {
                index.find(vocabulary, bytes).ok_or_else(|| {
                    let token = String::from_utf8_lossy(bytes);
                    Error::format(format!("model.merges[{at}]: {token:?} is not in model.vocab"))
                })
            };
            let (left, right) = (find(left)?, find(right)?);
            // Nearly always the next id.
            let next = result + 1;
            result = if vocabulary.get(next) == Some(both) { next } else { find(both)? };
            resolved.push(Merge { left, right, result });
        }
        Self::build(&resolved, vocabulary, byte_ids)
    }

    /// The table of merges in ids by rank, which may be anything.
    pub fn from_ids(merges: Vec<Merge>, vocabulary: &Vocabulary) -> Result<Self> {
        let mut found = [None; 256];
        for id in 0..vocabulary.len() as u32 {
            if let Some(&[byte]) = vocabulary.get(id) {
                found[usize::from(byte)] = Some(id);
            }
        }
        let mut byte_ids = Box::new([0; 256]);
        for (byte, (id, found)) in byte_ids.iter_mut().zip(found).enumerate() {
            *id = found.ok_or_else(|| {
                Error::format(format!("the tokenizer has no token for the byte 0x{byte:02X}"))
            })?;
        }
        for (rank, Merge { left, right, result }) in merges.iter().enumerate() {
            super::stop::check(rank)?;
            let parts = (vocabulary.get(*left), vocabulary.get(*right), vocabulary.get(*result));
            let joins = match parts {
                (Some(left), Some(right), Some(both)) => {
                    both.split_at_checked(left.len()) == Some((left, right))
                }
                _ => false,
            };
            if !joins {
                return Err(Error::format(format!(
                    "tokenizer.merges: {left} and {right} do not make {result} (rank {rank})"
                )));
            }
        }
        Self::build(&merges, vocabulary, byte_ids)
    }

    fn build(
        resolved: &[Merge],
        vocabulary: &Vocabulary,
        byte_ids: Box<[u32; 256]>,
    ) -> Result<Self> {
        if resolved.len() >= NO_RANK_PACKED as usize {
            return Err(Error::unsupported(format!("the tokenizer has {} merges", resolved.len())));
        }
        let ascending = resolved.is_sorted_by(|a: &Merge, b: &Merge| a.result < b.result);
        let results = match ascending {
            true => Vec::new(),
            false => resolved.iter().map(|merge| merge.result).collect(),
        };
        let size = (resolved.len() * 2).next_power_of_two().max(64);
        let mut table = Self {
            slots: vec![EMPTY; size],
            key: Key::random(),
            shift: u64::BITS - size.ilog2(),
            filter: vec![0; size / 16],
            filter_shift: u64::BITS - size.ilog2() - 2,
            results,
            rank_limit: if ascending { vocabulary.len() } else { resolved.len() },
            byte_ids,
            byte_ranks: Box::default(),
        };
        for (at, &Merge { left, right, result }) in resolved.iter().enumerate() {
            super::stop::check(at)?;
            table.insert(left, right, if ascending { result } else { at as u32 });
        }
        table.byte_ranks = (0..1 << 16)
            .map(|pair| table.rank(table.byte_ids[pair >> 8], table.byte_ids[pair & 0xFF]))
            .collect();
        Ok(table)
    }

    fn key(left: u32, right: u32) -> u64 {
        u64::from(left) << ID_BITS | u64::from(right)
    }

    /// As in the reference, the last of two equal pairs counts.
    fn insert(&mut self, left: u32, right: u32, rank: u32) {
        let key = Self::key(left, right);
        let hash = self.key.word(key);
        let mask = self.slots.len() - 1;
        let bit = (hash >> self.filter_shift) as usize;
        self.filter[bit / 64] |= 1 << (bit % 64);
        let mut slot = (hash >> self.shift) as usize;
        while self.slots[slot] != EMPTY && self.slots[slot] >> RANK_BITS != key {
            slot = (slot + 1) & mask;
        }
        self.slots[slot] = key << RANK_BITS | u64::from(rank);
    }

    /// All merges by rank. Of two with equal halves, only the one that counts.
    pub fn merges(&self) -> Vec<Merge> {
        let used = self.slots.iter().copied().filter(|slot| *slot != EMPTY);
        let mut ranked: Vec<(u32, Merge)> = used
            .map(|slot| {
                let (key, rank) = (slot >> RANK_BITS, slot as u32 & NO_RANK_PACKED);
                let (left, right) = ((key >> ID_BITS) as u32, key as u32 & MAX_ID_MASK);
                (rank, Merge { left, right, result: self.result(rank) })
            })
            .collect();
        ranked.sort_unstable_by_key(|(rank, _)| *rank);
        ranked.into_iter().map(|(_, merge)| merge).collect()
    }

    /// The rank of joining two tokens, [`NO_RANK`] if they do not join.
    #[inline]
    pub fn rank(&self, left: u32, right: u32) -> u32 {
        let key = Self::key(left, right);
        let hash = self.key.word(key);
        let bit = (hash >> self.filter_shift) as usize;
        if self.filter[bit / 64] >> (bit % 64) & 1 == 0 {
            return NO_RANK;
        }
        let mask = self.slots.len() - 1;
        let mut slot = (hash >> self.shift) as usize;
        loop {
            let found = self.slots[slot & mask];
            if found >> RANK_BITS == key {
                return (found & ((1 << RANK_BITS) - 1)) as u32;
            }
            if found == EMPTY {
                return NO_RANK;
            }
            slot += 1;
        }
    }

    /// The rank of joining two single bytes.
    #[inline]
    pub fn byte_rank(&self, left: u8, right: u8) -> u32 {
        self.byte_ranks[usize::from(left) << 8 | usize::from(right)]
    }

    /// The token that the merge of `rank` makes.
    #[inline]
    pub fn result(&self, rank: u32) -> u32 {
        if self.results.is_empty() { rank } else { self.results[rank as usize] }
    }

    /// The token of a single byte.
    #[inline]
    pub fn byte_id(&self, byte: u8) -> u32 {
        self.byte_ids[usize::from(byte)]
    }

    /// Ranks are below.
    pub fn rank_limit(&self) -> usize {
        self.rank_limit
    }
}

/// Answers of [`MergeTable::rank`], positive and negative ones, in a table so small that it stays
/// in the processor's innermost caches: the pairs of a text repeat as its words do.
pub struct PairCache(Box<[u64]>);

const PAIRS: usize = 1 << 13;

impl Default for PairCache {
    fn default() -> Self {
        Self(vec![EMPTY; PAIRS].into())
    }
}

impl PairCache {
    /// [`MergeTable::rank`]; a cache must always be used with the same table.
    #[inline]
    pub fn rank(&mut self, table: &MergeTable, left: u32, right: u32) -> u32 {
        let key = MergeTable::key(left, right);
        let slot = (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) as usize % PAIRS;
        let found = self.0[slot];
        let rank = if found >> RANK_BITS == key {
            found as u32 & NO_RANK_PACKED
        } else {
            let rank = table.rank(left, right) & NO_RANK_PACKED;
            self.0[slot] = key << RANK_BITS | u64::from(rank);
            rank
        };
        if rank == NO_RANK_PACKED { NO_RANK } else { rank }
    }
}
