//! What the rule makes of the tokens of a block.
//!
//! With the state `S` before a block, decays `a_j`, and what a token changes, `k_s d_s^T`, the
//! state before token `j` of the block, decayed, is `A_j S` and what is left of the changes since:
//!
//! ```text
//! A_j  = a_0 ... a_j                 left of S
//! D_sj = a_(s+1) ... a_j             left of the change of token s
//! d_j  = b_j (v_j - A_j S^T k_j - sum over s < j of D_sj (k_s . k_j) d_s)
//! o_j  = A_j S^T q_j + sum over s <= j of D_sj (k_s . q_j) d_s
//! S    = A_3 S + sum over s of k_s (D_s3 d_s)^T    behind the block
//! ```
//!
//! All factors are products of decays, at most 1. This is the order of operations that gives the
//! bits, too: products of decays from the left, sums over `s` from the oldest token on.

use crate::kernels::simd::Simd;

/// Tokens of a block. Positions divisible by it begin one.
pub const BLOCK_TOKENS: usize = 4;

/// The numbers of a token for one value head.
#[derive(Clone, Copy, Default)]
pub(super) struct Token {
    /// `b_j`
    rate: f32,
    /// `A_j`
    pub left: f32,
    /// `D_sj`, for each token `s` of the block up to this one.
    pub kept: [f32; BLOCK_TOKENS],
    /// `D_sj (k_s . k_j)`
    by_key: [f32; BLOCK_TOKENS],
    /// `D_sj (k_s . q_j)`
    by_query: [f32; BLOCK_TOKENS],
}

impl Token {
    /// Token `j` of a block, behind `before`, if it is not the first. `keys` and `queries` are
    /// the products of the keys of the block up to this one with its key and its query.
    #[inline(always)]
    #[allow(clippy::needless_range_loop)] // the loops over registers, see `linear::direct`
    pub fn new(
        j: usize,
        before: Token,
        (decay, rate): (f32, f32),
        keys: [f32; BLOCK_TOKENS],
        queries: [f32; BLOCK_TOKENS],
    ) -> Self {
        let left = if j > 0 { before.left * decay } else { decay };
        let mut kept = if j > 0 { before.kept } else { [0.0; BLOCK_TOKENS] };
        let (mut by_key, mut by_query) = (keys, queries);
        // Those of later tokens are zeros.
        for s in 0..BLOCK_TOKENS {
            kept[s] *= decay;
        }
        kept[j] = 1.0;
        for s in 0..BLOCK_TOKENS {
            by_key[s] *= kept[s];
            by_query[s] *= kept[s];
        }
        Self { rate, left, kept, by_key, by_query }
    }

    /// `d_j`, which becomes `deltas[J]`, and `o_j` of token `J` of a block, for some columns of
    /// which `by_key` and `by_query` are `S^T k_j` and `S^T q_j`.
    #[inline(always)]
    #[allow(clippy::needless_range_loop)]
    pub fn read<S: Simd, const J: usize, const V: usize>(
        &self,
        s: S,
        deltas: &mut [[S::F32; V]; BLOCK_TOKENS],
        (by_key, by_query): ([S::F32; V], [S::F32; V]),
        value: [S::F32; V],
    ) -> [S::F32; V] {
        let (left, rate) = (s.splat(self.left), s.splat(self.rate));
        let mut out = value;
        for v in 0..V {
            let mut known = s.mul(left, by_key[v]);
            let mut read = s.mul(left, by_query[v]);
            for n in 0..J {
                known = s.mul_add(s.splat(self.by_key[n]), deltas[n][v], known);
                read = s.mul_add(s.splat(self.by_query[n]), deltas[n][v], read);
            }
            deltas[J][v] = s.mul(rate, s.sub(value[v], known));
            out[v] = s.mul_add(s.splat(self.by_query[J]), deltas[J][v], read);
        }
        out
    }

    /// `D_s3 d_s` for all tokens of a block of which this is the last.
    #[inline(always)]
    #[allow(clippy::needless_range_loop)]
    pub fn changes<S: Simd, const V: usize>(
        &self,
        s: S,
        mut deltas: [[S::F32; V]; BLOCK_TOKENS],
    ) -> [[S::F32; V]; BLOCK_TOKENS] {
        for n in 0..BLOCK_TOKENS {
            for v in 0..V {
                deltas[n][v] = s.mul(s.splat(self.kept[n]), deltas[n][v]);
            }
        }
        deltas
    }
}
