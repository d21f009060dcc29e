//! Remembers the tokens of words that were seen: text repeats its words, and a lookup costs a
//! fraction of the merges.
//!
//! The cache is exact (whole words are compared), bounded, and forgets a word when another one
//! needs its place.

use super::hash::{hash, mix};

/// The longest word that is remembered, in bytes.
const MAX_WORD: usize = 120;
/// Words of up to 15 bytes and three tokens have a table of their own.
const SHORT_WORD: usize = 15;
const SHORT_SLOTS: usize = 1 << 14;
const LONG_SLOTS: usize = 1 << 13;
/// Bytes of words and tokens of words in the long table; when full, the table starts anew.
const LONG_BYTES: usize = 1 << 19;
const LONG_IDS: usize = 1 << 17;

/// See the module.
pub struct Cache {
    short: Box<[ShortSlot]>,
    long: Box<[LongSlot]>,
    bytes: Vec<u8>,
    ids: Vec<u32>,
}

/// A word in place. All zero if empty.
#[derive(Clone, Copy, Default)]
struct ShortSlot {
    word: Key,
    ids: [u32; 3],
    count: u32,
}

/// A word and its tokens, held in the common vectors. All zero if empty.
#[derive(Clone, Copy, Default)]
struct LongSlot {
    hash: u64,
    bytes: u32,
    ids: u32,
    len: u16,
    count: u16,
}

/// A word of up to 15 bytes, filled up with zeros, and its length in the last byte.
type Key = [u64; 2];

/// What [`Cache::find`] needs and [`Cache::insert`] needs again.
#[derive(Clone, Copy)]
pub enum Place {
    Short(Key, usize),
    Long(u64),
    /// Too long to be remembered.
    Nowhere,
}

impl Default for Cache {
    fn default() -> Self {
        Self {
            short: vec![ShortSlot::default(); SHORT_SLOTS].into(),
            long: vec![LongSlot::default(); LONG_SLOTS].into(),
            bytes: Vec::new(),
            ids: Vec::new(),
        }
    }
}

impl Cache {
    /// Where the word `text[start..end]` belongs.
    #[inline]
    pub fn place(&self, text: &[u8], start: usize, end: usize) -> Place {
        let len = end - start;
        if len <= SHORT_WORD {
            let key = key(text, start, len);
            let slot = mix(key[0] ^ 0x9E37_79B9_7F4A_7C15, key[1] ^ 0xD6E8_FEB8_6659_FD93);
            Place::Short(key, slot as usize % SHORT_SLOTS)
        } else if len <= MAX_WORD {
            Place::Long(hash(&text[start..end]))
        } else {
            Place::Nowhere
        }
    }

    /// Appends the tokens of `word`, which belongs to `place`, if they are known.
    #[inline]
    pub fn find(&self, word: &[u8], place: Place, out: &mut Vec<u32>) -> bool {
        match place {
            Place::Short(key, slot) => {
                let slot = &self.short[slot];
                if slot.word != key {
                    return self.find_long(word, hash(word), out);
                }
                out.extend_from_slice(&slot.ids[..(slot.count as usize).min(3)]);
                true
            }
            Place::Long(hash) => self.find_long(word, hash, out),
            Place::Nowhere => false,
        }
    }

    fn find_long(&self, word: &[u8], hash: u64, out: &mut Vec<u32>) -> bool {
        let slot = &self.long[hash as usize % LONG_SLOTS];
        if slot.hash != hash || usize::from(slot.len) != word.len() {
            return false;
        }
        let (bytes, ids) = (slot.bytes as usize, slot.ids as usize);
        if self.bytes[bytes..bytes + word.len()] != *word {
            return false;
        }
        out.extend_from_slice(&self.ids[ids..ids + usize::from(slot.count)]);
        true
    }

    /// Remembers the tokens of `word`, which belongs to `place`.
    pub fn insert(&mut self, word: &[u8], place: Place, ids: &[u32]) {
        match place {
            Place::Short(key, slot) if ids.len() <= 3 => {
                let mut new = ShortSlot { word: key, ids: [0; 3], count: ids.len() as u32 };
                new.ids[..ids.len()].copy_from_slice(ids);
                self.short[slot] = new;
            }
            Place::Short(..) => self.insert_long(word, hash(word), ids),
            Place::Long(hash) => self.insert_long(word, hash, ids),
            Place::Nowhere => {}
        }
    }

    fn insert_long(&mut self, word: &[u8], hash: u64, ids: &[u32]) {
        if self.bytes.len() + word.len() > LONG_BYTES || self.ids.len() + ids.len() > LONG_IDS {
            self.long.fill(LongSlot::default());
            self.bytes.clear();
            self.ids.clear();
        }
        self.long[hash as usize % LONG_SLOTS] = LongSlot {
            hash,
            bytes: self.bytes.len() as u32,
            ids: self.ids.len() as u32,
            len: word.len() as u16,
            count: ids.len() as u16,
        };
        self.bytes.extend_from_slice(word);
        self.ids.extend_from_slice(ids);
    }
}

/// The key of `text[start..start + len]`, `len` up to 15.
#[inline]
fn key(text: &[u8], start: usize, len: usize) -> Key {
    let mut key = match text.get(start..start + 16).and_then(|bytes| bytes.try_into().ok()) {
        Some(bytes) => u128::from_le_bytes(bytes) & ((1 << (8 * len)) - 1),
        None => {
            let mut bytes = [0; 16];
            bytes[..len].copy_from_slice(&text[start..start + len]);
            u128::from_le_bytes(bytes)
        }
    };
    key |= (len as u128) << 120;
    [key as u64, (key >> 64) as u64]
}
