//! A short hash of byte strings for the tables of the tokenizer.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

const A: u64 = 0x9E37_79B9_7F4A_7C15;
const B: u64 = 0xD6E8_FEB8_6659_FD93;

/// Multiplies into 128 bits and folds the halves: every input bit reaches every output bit.
#[inline]
pub fn mix(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// Hashes a byte string of any length. Who knows this code can make strings with equal hashes: for
/// tables that do not grow slow by them.
pub fn hash(bytes: &[u8]) -> u64 {
    Key { start: A, factor: B }.hash(bytes)
}

/// What nobody knows who makes byte strings.
#[derive(Clone, Copy)]
pub struct Key {
    start: u64,
    factor: u64,
}

impl Key {
    /// One of its own for each call.
    pub fn random() -> Self {
        // The standard library's hash tables have such keys, too.
        let state = RandomState::new();
        Self { start: state.hash_one(1), factor: state.hash_one(2) | 1 }
    }

    /// Hashes a word.
    #[inline]
    pub fn word(self, word: u64) -> u64 {
        mix(word ^ self.start, self.factor)
    }

    /// Hashes a byte string of any length.
    #[inline]
    pub fn hash(self, bytes: &[u8]) -> u64 {
        let mut state = self.start ^ bytes.len() as u64;
        let mut chunks = bytes.chunks_exact(8);
        for chunk in &mut chunks {
            let word = chunk.try_into().map_or(0, u64::from_le_bytes);
            state = mix(state ^ word, self.factor);
        }
        let mut tail = 0;
        for &byte in chunks.remainder() {
            tail = tail << 8 | u64::from(byte);
        }
        mix(mix(state ^ tail, self.factor), A)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    /// Words that follow the state of a known key to zero, where all that came before is lost.
    #[test]
    fn collisions_need_the_key() {
        let strings: Vec<Vec<u8>> = (0..1000u64)
            .map(|n| [n.to_le_bytes(), mix(A ^ 16 ^ n, B).to_le_bytes()].concat())
            .collect();
        let hashes = |hash: &dyn Fn(&[u8]) -> u64| {
            strings.iter().map(|string| hash(string)).collect::<HashSet<_>>().len()
        };
        assert_eq!(hashes(&hash), 1);
        let key = Key::random();
        assert_eq!(hashes(&|bytes| key.hash(bytes)), strings.len());
    }
}
