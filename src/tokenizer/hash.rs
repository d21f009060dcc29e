//! A short hash of byte strings for the tables of the tokenizer.

const A: u64 = 0x9E37_79B9_7F4A_7C15;
const B: u64 = 0xD6E8_FEB8_6659_FD93;

/// Multiplies into 128 bits and folds the halves: every input bit reaches every output bit.
#[inline]
pub fn mix(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// Hashes a byte string of any length.
pub fn hash(bytes: &[u8]) -> u64 {
    let mut state = A ^ bytes.len() as u64;
    let mut chunks = bytes.chunks_exact(8);
    for chunk in &mut chunks {
        let word = chunk.try_into().map_or(0, u64::from_le_bytes);
        state = mix(state ^ word, B);
    }
    let mut tail = 0;
    for &byte in chunks.remainder() {
        tail = tail << 8 | u64::from(byte);
    }
    mix(mix(state ^ tail, B), A)
}
