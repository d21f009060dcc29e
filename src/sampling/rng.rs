//! The random stream.

use std::hash::{BuildHasher, Hasher};

/// xoshiro256++ of Blackman and Vigna (public domain), seeded by four outputs of
/// splitmix64: period 2^256 - 1, and every seed (0 too) gives its own stream.
///
/// The same seed gives the same numbers on every machine. The four words of
/// [`Rng::state`] are the whole state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rng {
    s: [u64; 4],
}

impl Rng {
    /// The stream of `seed`.
    pub fn new(seed: u64) -> Self {
        let mut x = seed;
        let mut next = || {
            x = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mut z = x;
            z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            z ^ (z >> 31)
        };
        Self { s: [next(), next(), next(), next()] }
    }

    /// The state, to be stored.
    pub fn state(&self) -> [u64; 4] {
        self.s
    }

    /// A stream from a stored state; `None` for all zeros, which is no state of this
    /// generator (it would give zeros for ever).
    pub fn from_state(s: [u64; 4]) -> Option<Self> {
        (s != [0; 4]).then_some(Self { s })
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        let s = &mut self.s;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// The next number in [0, 1), a multiple of 2^-53.
    pub fn next_f64(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }
}

/// A seed that differs from call to call and from process to process: the standard
/// library draws the keys of its hash maps from the system's random source.
pub(super) fn fresh_seed() -> u64 {
    std::collections::hash_map::RandomState::new().build_hasher().finish()
}

#[cfg(test)]
mod tests {
    use super::Rng;

    /// Reference values computed with an independent implementation in Python.
    #[test]
    fn known_values() {
        assert_eq!(Rng::new(0).state()[0], 0xE220_A839_7B1D_CDAF);
        let mut rng = Rng::from_state([1, 2, 3, 4]).unwrap();
        let first: Vec<u64> = (0..4).map(|_| rng.next_u64()).collect();
        assert_eq!(first, [41943041, 58720359, 3588806011781223, 3591011842654386]);
    }

    #[test]
    fn zero_state_is_refused() {
        assert_eq!(Rng::from_state([0; 4]), None);
    }
}
