//! Remembers the tokens of words that were seen: text repeats its words, and a lookup costs a
//! fraction of the merges.
//!
//! The cache is exact (whole words are compared), bounded, and forgets a word when another one
//! needs its place. Words of up to 8 bytes and those of up to 16, which are nearly all, are held
//! in the tables themselves, in buckets of one or two lines of the processor's cache: memory is
//! what a lookup waits for, so the tables together are hardly larger than 1 MB.

use super::hash::{hash, mix};

/// The longest word that is remembered, in bytes.
const MAX_WORD: usize = u8::MAX as usize;
/// Bytes of words and tokens of words in the long table; when full, the table starts anew.
const LONG_BYTES: usize = 1 << 19;
const LONG_IDS: usize = 1 << 17;

/// Keeps the second factor of a hash from being small.
const SALT: u64 = 0xD6E8_FEB8_6659_FD93;
const SHORT_BUCKETS: usize = 1 << 13;
const MIDDLE_BUCKETS: usize = 1 << 12;
const LONG_BUCKETS: usize = 1 << 12;

/// See the module.
pub struct Cache {
    /// Words of up to 8 bytes.
    short: Box<[Bucket<u64, 4>]>,
    /// Words of 9 to 16 bytes.
    middle: Box<[Bucket<u128, 5>]>,
    long: Box<[LongBucket]>,
    bytes: Vec<u8>,
    ids: Vec<u32>,
}

/// Words with their tokens, the latest first. No word is zero.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Bucket<K, const N: usize> {
    words: [K; N],
    tokens: [Tokens; N],
}

/// Up to three tokens of 20 bits, and their number above.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Tokens(u64);

impl Tokens {
    /// The word has more tokens than fit: they are in the long table.
    const MANY: Self = Self(u64::MAX);

    fn pack(ids: &[u32]) -> Self {
        if ids.len() > 3 {
            return Self::MANY;
        }
        let packed = ids.iter().rev().fold(0, |packed, &id| packed << 20 | u64::from(id));
        Self(packed | (ids.len() as u64) << 60)
    }

    /// Appends the tokens without a branch on their number.
    #[inline]
    fn unpack(self, out: &mut Vec<u32>) {
        let len = out.len() + (self.0 >> 60) as usize;
        out.extend_from_slice(&[0, 20, 40].map(|shift| (self.0 >> shift) as u32 & 0xF_FFFF));
        out.truncate(len);
    }
}

impl<K: Copy + Default + PartialEq, const N: usize> Bucket<K, N> {
    fn table(len: usize) -> Box<[Self]> {
        let empty = Self { words: [K::default(); N], tokens: [Tokens::default(); N] };
        vec![empty; len].into()
    }

    /// Which place of the bucket holds the word can not be predicted, so it is computed.
    #[inline]
    fn find(&self, word: K) -> Option<Tokens> {
        let mut found = 0;
        for (i, &held) in self.words.iter().enumerate() {
            found |= usize::from(held == word) << i;
        }
        (found != 0).then(|| self.tokens[found.trailing_zeros() as usize % N])
    }

    fn insert(&mut self, word: K, tokens: Tokens) {
        self.words.copy_within(..N - 1, 1);
        self.tokens.copy_within(..N - 1, 1);
        self.words[0] = word;
        self.tokens[0] = tokens;
    }
}

/// Words of any length, the latest first.
#[derive(Clone, Copy, Default)]
#[repr(align(64))]
struct LongBucket([LongWord; 4]);

/// A word and its tokens, held in the common vectors. All zero if empty: no word has no bytes.
#[derive(Clone, Copy, Default)]
struct LongWord {
    /// The upper half of the hash.
    hash: u32,
    bytes: u32,
    ids: u32,
    len: u8,
    count: u8,
}

/// Where a word belongs: what [`Cache::find`] and [`Cache::insert`] both need.
#[derive(Clone, Copy)]
pub enum Place {
    Short(u64, usize),
    Middle(u128, usize),
    Long(u64),
    /// The word is not remembered.
    Nowhere,
}

impl Default for Cache {
    fn default() -> Self {
        Self {
            short: Bucket::table(SHORT_BUCKETS),
            middle: Bucket::table(MIDDLE_BUCKETS),
            long: vec![LongBucket::default(); LONG_BUCKETS].into(),
            bytes: Vec::new(),
            ids: Vec::new(),
        }
    }
}

impl Cache {
    /// Where the word `text[start..end]` belongs.
    #[inline]
    pub fn place(text: &[u8], start: usize, end: usize) -> Place {
        let len = end - start;
        if text[end - 1] == 0 {
            // Filled up with zeros, a word is told from all others unless it ends in zeros.
            return Place::Nowhere;
        }
        if len <= 8 {
            let word = u64::from_le_bytes(head(text, start)) << (64 - 8 * len) >> (64 - 8 * len);
            let hash = word.wrapping_mul(0x9E37_79B9_7F4A_7C15);
            Place::Short(word, (hash >> 40) as usize % SHORT_BUCKETS)
        } else if len <= 16 {
            let unused = 128 - 8 * len;
            let word = u128::from_le_bytes(head(text, start)) << unused >> unused;
            let hash = mix(word as u64 ^ 0x9E37_79B9_7F4A_7C15, (word >> 64) as u64 ^ SALT);
            Place::Middle(word, hash as usize % MIDDLE_BUCKETS)
        } else if len <= MAX_WORD {
            Place::Long(hash(&text[start..end]))
        } else {
            Place::Nowhere
        }
    }

    /// Appends the tokens of `word`, which belongs to `place`, if they are known.
    #[inline]
    pub fn find(&self, word: &[u8], place: Place, out: &mut Vec<u32>) -> bool {
        let tokens = match place {
            Place::Short(word, bucket) => self.short[bucket].find(word),
            Place::Middle(word, bucket) => self.middle[bucket].find(word),
            Place::Long(hash) => return self.find_long(word, hash, out),
            Place::Nowhere => None,
        };
        match tokens {
            None => false,
            Some(Tokens::MANY) => self.find_long(word, hash(word), out),
            Some(tokens) => {
                tokens.unpack(out);
                true
            }
        }
    }

    fn find_long(&self, word: &[u8], hash: u64, out: &mut Vec<u32>) -> bool {
        for held in &self.long[hash as usize % LONG_BUCKETS].0 {
            let (bytes, ids) = (held.bytes as usize, held.ids as usize);
            if held.hash == (hash >> 32) as u32
                && usize::from(held.len) == word.len()
                && self.bytes[bytes..bytes + word.len()] == *word
            {
                out.extend_from_slice(&self.ids[ids..ids + usize::from(held.count)]);
                return true;
            }
        }
        false
    }

    /// Remembers the tokens of `word`, which belongs to `place`.
    pub fn insert(&mut self, word: &[u8], place: Place, ids: &[u32]) {
        match place {
            Place::Short(word, bucket) => self.short[bucket].insert(word, Tokens::pack(ids)),
            Place::Middle(word, bucket) => self.middle[bucket].insert(word, Tokens::pack(ids)),
            Place::Long(hash) => self.insert_long(word, hash, ids),
            Place::Nowhere => {}
        }
        if ids.len() > 3 && matches!(place, Place::Short(..) | Place::Middle(..)) {
            self.insert_long(word, hash(word), ids);
        }
    }

    fn insert_long(&mut self, word: &[u8], hash: u64, ids: &[u32]) {
        if self.bytes.len() + word.len() > LONG_BYTES || self.ids.len() + ids.len() > LONG_IDS {
            self.long.fill(LongBucket::default());
            self.bytes.clear();
            self.ids.clear();
        }
        let LongBucket(words) = &mut self.long[hash as usize % LONG_BUCKETS];
        words.copy_within(..3, 1);
        words[0] = LongWord {
            hash: (hash >> 32) as u32,
            bytes: self.bytes.len() as u32,
            ids: self.ids.len() as u32,
            len: word.len() as u8,
            count: ids.len() as u8,
        };
        self.bytes.extend_from_slice(word);
        self.ids.extend_from_slice(ids);
    }
}

/// The `N` bytes from `start` on, filled up with zeros after the end of `text`.
#[inline]
fn head<const N: usize>(text: &[u8], start: usize) -> [u8; N] {
    if let Some(bytes) = text.get(start..start + N).and_then(|bytes| bytes.try_into().ok()) {
        return bytes;
    }
    let rest = &text[start..];
    let mut bytes = [0; N];
    bytes[..rest.len()].copy_from_slice(rest);
    bytes
}
