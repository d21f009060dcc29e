//! What the tests of the kernels share.

use std::sync::Arc;

use super::simd::Isa;
use super::{Buffer, Cancel, Compute};
use crate::pool::Pool;

/// A repeatable stream of numbers (splitmix64).
pub struct Random(pub u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
    /// Uniform in `low..high`.
    pub fn uniform(&mut self, low: f32, high: f32) -> f32 {
        low + (high - low) * ((self.next() >> 40) as f32 / (1u64 << 24) as f32)
    }
    /// Uniform in `0..n`.
    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
    /// `n` numbers in `-scale..scale`.
    pub fn vector(&mut self, n: usize, scale: f32) -> Vec<f32> {
        (0..n).map(|_| self.uniform(-scale, scale)).collect()
    }
    /// Lengths, 1 to `most` each, that add up to `total`.
    pub fn split(&mut self, total: usize, most: usize) -> Vec<usize> {
        let mut parts = Vec::new();
        let mut rest = total;
        while rest > 0 {
            let n = (1 + self.below(most)).min(rest);
            parts.push(n);
            rest -= n;
        }
        parts
    }
}

/// Runs `f` with `threads` threads and `isa`; it must end without an error.
pub fn compute<R>(isa: Isa, threads: usize, f: impl FnOnce(&Compute) -> R) -> R {
    let pool = Pool::new(threads).unwrap();
    let cancel = Cancel::new();
    let c = Compute::new(isa, &pool, &cancel);
    let result = f(&c);
    c.check().unwrap();
    result
}

/// Each row of `values` in a buffer of its own.
pub fn rows(values: &[f32], width: usize) -> Vec<Arc<Buffer<f32>>> {
    let row = |values: &[f32]| {
        let mut row = Buffer::zeroed(values.len(), "test").unwrap();
        row.copy_from_slice(values);
        Arc::new(row)
    };
    values.chunks_exact(width).map(row).collect()
}

/// Bits, so that -0 and 0 differ and NaN equals itself.
pub fn bits(x: &[f32]) -> Vec<u32> {
    x.iter().map(|x| x.to_bits()).collect()
}

/// The largest difference between `got` and `want`, over the largest of `want` (or `floor`).
pub fn error(got: &[f32], want: &[f64], floor: f64) -> f64 {
    assert_eq!(got.len(), want.len());
    assert!(got.iter().all(|x| x.is_finite()), "not finite");
    let scale = want.iter().fold(floor, |m, x| m.max(x.abs()));
    got.iter().zip(want).fold(0.0, |m, (&g, w)| f64::max(m, (f64::from(g) - w).abs())) / scale
}
