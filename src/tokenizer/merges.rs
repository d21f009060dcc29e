//! The merge table: which two tokens join, in which order of preference, and what they become.

use super::file::Merges;
use super::hash::mix;
use super::vocabulary::{Index, MAX_ID, Vocabulary};
use crate::{Error, Result};

/// No merge. Every rank is lower.
pub const NO_RANK: u32 = u32::MAX;

/// Ranks are packed into 24 bits, two ids into 40.
const RANK_BITS: u32 = 24;
const ID_BITS: u32 = 20;
const _: () = assert!(MAX_ID < 1 << ID_BITS);

const EMPTY: u64 = u64::MAX;

/// Merges by their two halves; see [`MergeTable::rank`].
pub struct MergeTable {
    /// Open addressing; a slot is `left << 44 | right << 24 | rank`.
    slots: Vec<u64>,
    /// How far the hash is shifted right to give a slot.
    shift: u32,
    /// The id that the merge of each rank makes.
    results: Vec<u32>,
    /// The id of each single byte.
    byte_ids: Box<[u32; 256]>,
    /// The rank of each pair of single bytes, `first << 8 | second`.
    byte_ranks: Box<[u32]>,
}

impl MergeTable {
    /// Resolves the merges of a file; every half and every result must be in the vocabulary, and
    /// so must every single byte.
    pub fn new(merges: &Merges, vocabulary: &Vocabulary) -> Result<Self> {
        let index = Index::new(vocabulary)?;
        let mut byte_ids = Box::new([0; 256]);
        for (byte, id) in byte_ids.iter_mut().enumerate() {
            *id = index.find(&[byte as u8]).ok_or_else(|| {
                Error::format(format!("model.vocab has no token for the byte 0x{byte:02X}"))
            })?;
        }
        if merges.len() >= 1 << RANK_BITS {
            return Err(Error::unsupported(format!("model.merges has {} entries", merges.len())));
        }
        let size = (merges.len() * 2).next_power_of_two().max(64);
        let mut table = Self {
            slots: vec![EMPTY; size],
            shift: u64::BITS - size.ilog2(),
            results: Vec::with_capacity(merges.len()),
            byte_ids,
            byte_ranks: Box::default(),
        };
        for (rank, (left, right, both)) in merges.iter().enumerate() {
            let find = |bytes: &[u8]| {
                index.find(bytes).ok_or_else(|| {
                    let token = String::from_utf8_lossy(bytes);
                    Error::format(format!("model.merges[{rank}]: {token:?} is not in model.vocab"))
                })
            };
            let (left, right) = (find(left)?, find(right)?);
            // Most files list merges in the order of what they make.
            let next = table.results.last().map_or(0, |id| id + 1);
            let result = if vocabulary.get(next) == Some(both) { next } else { find(both)? };
            table.results.push(result);
            table.insert(left, right, rank as u32);
        }
        table.byte_ranks = (0..1 << 16)
            .map(|pair| table.rank(table.byte_ids[pair >> 8], table.byte_ids[pair & 0xFF]))
            .collect();
        Ok(table)
    }

    fn key(left: u32, right: u32) -> u64 {
        u64::from(left) << ID_BITS | u64::from(right)
    }

    fn first_slot(&self, key: u64) -> usize {
        (mix(key, 0x9E37_79B9_7F4A_7C15) >> self.shift) as usize
    }

    /// As in the reference, the last of two equal pairs counts.
    fn insert(&mut self, left: u32, right: u32, rank: u32) {
        let key = Self::key(left, right);
        let mask = self.slots.len() - 1;
        let mut slot = self.first_slot(key);
        while self.slots[slot] != EMPTY && self.slots[slot] >> RANK_BITS != key {
            slot = (slot + 1) & mask;
        }
        self.slots[slot] = key << RANK_BITS | u64::from(rank);
    }

    /// The rank of joining two tokens, [`NO_RANK`] if they do not join.
    #[inline]
    pub fn rank(&self, left: u32, right: u32) -> u32 {
        let key = Self::key(left, right);
        let mask = self.slots.len() - 1;
        let mut slot = self.first_slot(key);
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
        self.results[rank as usize]
    }

    /// The token of a single byte.
    #[inline]
    pub fn byte_id(&self, byte: u8) -> u32 {
        self.byte_ids[usize::from(byte)]
    }

    /// How many merges there are: ranks are below.
    pub fn len(&self) -> usize {
        self.results.len()
    }
}
