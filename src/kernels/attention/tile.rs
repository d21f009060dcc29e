//! A tile of rows against one page, and the online softmax of its rows.
// Loops over registers are plain counts, which the compiler unrolls for certain.
#![allow(clippy::needless_range_loop)]
#![allow(unsafe_code)]

use std::ptr::null;

use super::super::kv::{Element, GROUP_COLUMNS, Head, KvShape, PAGE_TOKENS};
use super::super::math;
use super::super::simd::{LANES, Simd, prefetch_far};

/// Vectors of tokens in a page.
const PAGE_VECTORS: usize = PAGE_TOKENS / LANES;
/// Vectors of columns in a group of values.
const GROUP_VECTORS: usize = GROUP_COLUMNS / LANES;

/// Rows that share keys and values: the query heads of one KV head for some tokens, token by
/// token.
#[derive(Clone, Copy)]
pub(super) struct Tile {
    pub shape: KvShape,
    pub kv_head: usize,
    /// Query heads of the KV head.
    pub group: usize,
    /// Index in the cache of the first token.
    pub position: usize,
    pub tokens: usize,
}

/// The working memory of a tile.
struct Work<'a> {
    /// `[rows, head_dim]`, scaled.
    queries: &'a mut [f32],
    /// `[rows, PAGE_TOKENS]`
    scores: &'a mut [f32],
    /// What the old sums of a row are multiplied by; `[rows, padded]`.
    factors: &'a mut [f32],
}

impl Tile {
    pub fn rows(&self) -> usize {
        self.tokens * self.group
    }

    fn padded_rows(&self) -> usize {
        self.rows().next_multiple_of(LANES)
    }

    /// Tokens of the cache that the last row sees.
    pub fn end(&self) -> usize {
        self.position + self.tokens
    }

    /// The first row that sees the token `position`.
    pub fn first_row(&self, position: usize) -> usize {
        position.saturating_sub(self.position).min(self.tokens) * self.group
    }

    /// Floats of a [`Softmax`].
    pub fn softmax_len(&self) -> usize {
        2 * self.padded_rows() + self.rows() * self.shape.padded_dim()
    }

    /// Floats of scratch memory.
    pub fn scratch_len(&self) -> usize {
        self.padded_rows() + self.rows() * (PAGE_TOKENS + self.shape.head_dim)
    }

    fn work<'a>(&self, scratch: &'a mut [f32]) -> Work<'a> {
        let (factors, rest) = scratch.split_at_mut(self.padded_rows());
        let (scores, rest) = rest.split_at_mut(self.rows() * PAGE_TOKENS);
        Work { queries: &mut rest[..self.rows() * self.shape.head_dim], scores, factors }
    }

    /// Collects the tile's rows of `q` (`[tokens, q_heads, head_dim]`), the first token
    /// being `first`, multiplied by `scale`.
    #[inline(always)]
    pub fn load_queries<S: Simd>(
        &self,
        s: S,
        q: &[f32],
        first: usize,
        q_heads: usize,
        scale: f32,
        scratch: &mut [f32],
    ) {
        let head_dim = self.shape.head_dim;
        let queries = self.work(scratch).queries;
        let scale = s.splat(scale);
        for (t, rows) in queries.chunks_exact_mut(self.group * head_dim).enumerate() {
            let from = ((first + t) * q_heads + self.kv_head * self.group) * head_dim;
            let from = &q[from..from + rows.len()];
            for (to, from) in rows.chunks_mut(LANES).zip(from.chunks(LANES)) {
                s.store_part(to, s.mul(s.load_part(from), scale));
            }
        }
    }

    /// Takes the page that begins at the token `start` into `softmax`. `next` is the page
    /// that will be needed after it: it is prefetched, evenly over the computation.
    #[inline(always)]
    pub fn page<S: Simd, E: Element>(
        &self,
        s: S,
        head: &Head<E>,
        next: Option<&Head<E>>,
        start: usize,
        softmax: &mut Softmax,
        scratch: &mut [f32],
    ) {
        let head_dim = self.shape.head_dim;
        let work = self.work(scratch);
        let first = self.first_row(start);
        let rows = self.rows();
        // Tokens of the page that the last row sees, and with it some other row may.
        let seen = PAGE_TOKENS.min(self.end() - start);

        let vectors = seen.div_ceil(LANES);
        let next_keys = next.map_or(null(), |next| next.keys.as_ptr());
        let next_values = next.map_or(null(), |next| next.values.as_ptr());
        for row in (first..rows).step_by(GROUP_ROWS) {
            let count = GROUP_ROWS.min(rows - row);
            let queries = &work.queries[row * head_dim..][..count * head_dim];
            let scores = &mut work.scores[row * PAGE_TOKENS..][..count * PAGE_TOKENS];
            let ahead = if row == first { next_keys } else { null() };
            scores_of(s, queries, count, head.keys, vectors, scores, ahead);
        }
        for row in first..rows {
            let seen = seen.min(self.position + row / self.group + 1 - start);
            let scores = &mut work.scores[row * PAGE_TOKENS..][..PAGE_TOKENS];
            if E::SCALED {
                multiply(s, &mut scores[..vectors * LANES], head.key_scales);
            }
            scores[seen..].fill(f32::NEG_INFINITY);
            let mut max = s.load(scores);
            for n in 1..PAGE_VECTORS {
                max = s.max(max, s.load(&scores[n * LANES..]));
            }
            let (old, max) = (softmax.max[row], s.max_lane(max));
            let new = if max > old { max } else { old };
            softmax.max[row] = new;
            work.factors[row] = old - new;
        }
        // A group of lanes may hold rows that are not in use: their factors are not either.
        for factors in work.factors[first / LANES * LANES..].chunks_exact_mut(LANES) {
            s.store(factors, math::exp(s, s.load(factors)));
        }
        for row in first..rows {
            let seen = seen.min(self.position + row / self.group + 1 - start);
            let scores = &mut work.scores[row * PAGE_TOKENS..][..PAGE_TOKENS];
            let max = s.splat(softmax.max[row]);
            for n in 0..seen.div_ceil(LANES) {
                let scores = &mut scores[n * LANES..][..LANES];
                s.store(scores, math::exp(s, s.sub(s.load(scores), max)));
            }
            scores[seen..].fill(0.0);
            let mut sum = s.load(scores);
            for n in 1..PAGE_VECTORS {
                sum = s.add(sum, s.load(&scores[n * LANES..]));
            }
            softmax.sum[row] = softmax.sum[row] * work.factors[row] + s.sum(sum);
            if E::SCALED {
                // Behind `seen` a scale may be NaN, which no earlier row must notice.
                multiply(s, &mut scores[..seen.next_multiple_of(LANES)], head.value_scales);
                scores[seen..].fill(0.0);
            }
        }
        let stride = self.shape.padded_dim();
        for row in (first..rows).step_by(GROUP_ROWS) {
            let count = GROUP_ROWS.min(rows - row);
            let weights = &work.scores[row * PAGE_TOKENS..][..count * PAGE_TOKENS];
            let factors = &work.factors[row..row + count];
            let out = &mut softmax.out[row * stride..][..count * stride];
            let ahead = if row == first { next_values } else { null() };
            values_of(s, weights, factors, count, head.values, seen, stride, out, ahead);
        }
    }
}

/// Multiplies whole vectors by the first of `factors`.
#[inline(always)]
fn multiply<S: Simd>(s: S, values: &mut [f32], factors: &[f32]) {
    for (values, factors) in values.chunks_exact_mut(LANES).zip(factors.chunks_exact(LANES)) {
        s.store(values, s.mul(s.load(values), s.load(factors)));
    }
}

/// The unnormalised softmax of a tile's rows over some tokens.
pub(super) struct Softmax<'a> {
    /// The largest score of each row.
    max: &'a mut [f32],
    /// The sum of the weights, `exp(score - max)`.
    sum: &'a mut [f32],
    /// The sum of the weighted values, `[rows, stride]`.
    out: &'a mut [f32],
    stride: usize,
}

impl<'a> Softmax<'a> {
    /// On `memory` of [`Tile::softmax_len`] floats, which keep their values.
    pub fn new(tile: &Tile, memory: &'a mut [f32]) -> Self {
        assert_eq!(memory.len(), tile.softmax_len());
        let (max, rest) = memory.split_at_mut(tile.padded_rows());
        let (sum, out) = rest.split_at_mut(tile.padded_rows());
        Self { max, sum, out, stride: tile.shape.padded_dim() }
    }

    /// Over no tokens.
    pub fn clear(&mut self) {
        self.max.fill(f32::NEG_INFINITY);
        self.sum.fill(0.0);
        self.out.fill(0.0);
    }

    /// Adds the tokens of `other` for the rows from `first` on.
    #[inline(always)]
    pub fn merge<S: Simd>(&mut self, s: S, other: &Softmax, first: usize) {
        let rows = self.out.len() / self.stride;
        for row in first..rows {
            let (mine, theirs) = (self.max[row], other.max[row]);
            let max = if theirs > mine { theirs } else { mine };
            let mut factors = [0.0; LANES];
            (factors[0], factors[1]) = (mine - max, theirs - max);
            let factors = s.to_array(math::exp(s, s.load(&factors)));
            self.max[row] = max;
            self.sum[row] = self.sum[row] * factors[0] + other.sum[row] * factors[1];
            let (a, b) = (s.splat(factors[0]), s.splat(factors[1]));
            let to = self.out[row * self.stride..][..self.stride].chunks_exact_mut(LANES);
            let from = other.out[row * self.stride..][..self.stride].chunks_exact(LANES);
            for (to, from) in to.zip(from) {
                s.store(to, s.mul_add(s.load(from), b, s.mul(s.load(to), a)));
            }
        }
    }

    /// The softmax-weighted mean of the values of `row`.
    #[inline(always)]
    pub fn write_row<S: Simd>(&self, s: S, row: usize, out: &mut [f32]) {
        let factor = s.splat(1.0 / self.sum[row]);
        let from = &self.out[row * self.stride..][..out.len()];
        for (to, from) in out.chunks_mut(LANES).zip(from.chunks(LANES)) {
            // Adding zero turns -0 into 0: whether an underflow to -0 met another masked
            // token, which makes it 0 too, depends on how many rows were computed together.
            let mean = s.add(s.mul(s.load_part(from), factor), s.splat(0.0));
            s.store_part(to, mean);
        }
    }
}

/// Rows computed together: with four vectors each they fill the registers of AVX-512, with
/// one those of AVX2.
const GROUP_ROWS: usize = 6;

/// True where there are 32 registers of 16 lanes.
const fn wide<S: Simd>() -> bool {
    align_of::<S::F32>() == 64
}

/// Runs an expression with the constant `$m` equal to `$count`, 1 to [`GROUP_ROWS`].
macro_rules! with_rows {
    ($count:expr, $m:ident => $body:expr) => {
        match $count {
            1 => {
                const $m: usize = 1;
                $body
            }
            2 => {
                const $m: usize = 2;
                $body
            }
            3 => {
                const $m: usize = 3;
                $body
            }
            4 => {
                const $m: usize = 4;
                $body
            }
            5 => {
                const $m: usize = 5;
                $body
            }
            _ => {
                const $m: usize = 6;
                $body
            }
        }
    };
}

/// Prefetches what `vectors` vectors at `index` take, of an array at `ahead`, unless null.
#[inline(always)]
fn fetch<E>(ahead: *const E, index: usize, vectors: usize) {
    let bytes = vectors * LANES * size_of::<E>();
    if !ahead.is_null() {
        let at = ahead.cast::<u8>().wrapping_add(index * LANES * size_of::<E>());
        for line in 0..bytes.div_ceil(64) {
            prefetch_far(at.wrapping_add(line * 64));
        }
    }
}

/// `pointer` moved by `count` elements; null stays null.
#[inline(always)]
fn offset<E>(pointer: *const E, count: usize) -> *const E {
    if pointer.is_null() { pointer } else { pointer.wrapping_add(count) }
}

/// Scores of `count` rows of queries against the first `vectors` vectors of tokens.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
fn scores_of<S: Simd, E: Element>(
    s: S,
    queries: &[f32],
    count: usize,
    keys: &[E],
    vectors: usize,
    scores: &mut [f32],
    ahead: *const E,
) {
    let head_dim = queries.len() / count;
    assert!((1..=GROUP_ROWS).contains(&count) && vectors <= PAGE_VECTORS);
    assert!(queries.len() == count * head_dim && scores.len() == count * PAGE_TOKENS);
    assert!(keys.len() == head_dim * PAGE_TOKENS);
    with_rows!(count, M => {
        let (queries, keys, scores) = (queries.as_ptr(), keys.as_ptr(), scores.as_mut_ptr());
        // SAFETY: the lengths were just checked.
        unsafe {
            if wide::<S>() && vectors > 1 {
                products_of::<S, E, M, PAGE_VECTORS>(s, queries, head_dim, keys, scores, ahead);
            } else {
                for n in 0..vectors {
                    let (keys, scores) = (keys.add(n * LANES), scores.add(n * LANES));
                    let ahead = offset(ahead, n * head_dim * LANES);
                    products_of::<S, E, M, 1>(s, queries, head_dim, keys, scores, ahead);
                }
            }
        }
    });
}

/// # Safety
/// `queries`: `M` rows of `head_dim`; `keys`: `N` vectors in each of `head_dim` rows of
/// [`PAGE_TOKENS`]; `scores`: `M` rows of [`PAGE_TOKENS`], of which `N` vectors are written.
#[inline(always)]
unsafe fn products_of<S: Simd, E: Element, const M: usize, const N: usize>(
    s: S,
    queries: *const f32,
    head_dim: usize,
    keys: *const E,
    scores: *mut f32,
    ahead: *const E,
) {
    // SAFETY: all accesses are within the rows and panels of the contract.
    unsafe {
        let mut sums = [[s.splat(0.0); N]; M];
        for d in 0..head_dim {
            let mut key = [s.splat(0.0); N];
            fetch(ahead, d * N, N);
            for n in 0..N {
                key[n] = E::load(s, keys.add(d * PAGE_TOKENS + n * LANES));
            }
            for m in 0..M {
                let query = s.splat(*queries.add(m * head_dim + d));
                for n in 0..N {
                    sums[m][n] = s.mul_add(query, key[n], sums[m][n]);
                }
            }
        }
        for m in 0..M {
            for n in 0..N {
                s.store_ptr(scores.add(m * PAGE_TOKENS + n * LANES), sums[m][n]);
            }
        }
    }
}

/// `out = factor out + weights V` for `count` rows and the first `seen` tokens.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
fn values_of<S: Simd, E: Element>(
    s: S,
    weights: &[f32],
    factors: &[f32],
    count: usize,
    values: &[E],
    seen: usize,
    stride: usize,
    out: &mut [f32],
    ahead: *const E,
) {
    assert!((1..=GROUP_ROWS).contains(&count) && seen <= PAGE_TOKENS);
    assert!(stride.is_multiple_of(LANES) && values.len() == PAGE_TOKENS * stride);
    assert!(weights.len() == count * PAGE_TOKENS && factors.len() == count);
    assert!(out.len() == count * stride);
    with_rows!(count, M => {
        let (weights, factors) = (weights.as_ptr(), factors.as_ptr());
        // SAFETY: the lengths were just checked, and `at` stays within a row.
        unsafe {
            for at in (0..stride).step_by(GROUP_COLUMNS) {
                let columns = GROUP_COLUMNS.min(stride - at);
                let values = values.as_ptr().add(at * PAGE_TOKENS);
                let ahead = offset(ahead, at * PAGE_TOKENS);
                let out = out.as_mut_ptr().add(at);
                if wide::<S>() && columns == GROUP_COLUMNS {
                    let value = Values { values, columns, seen, ahead };
                    columns_of::<S, E, M, GROUP_VECTORS>(s, weights, factors, value, stride, out);
                    continue;
                }
                for n in (0..columns).step_by(LANES) {
                    let ahead = offset(ahead, n * PAGE_TOKENS);
                    let value = Values { values: values.add(n), columns, seen, ahead };
                    columns_of::<S, E, M, 1>(s, weights, factors, value, stride, out.add(n));
                }
            }
        }
    });
}

/// A group of values, or some columns of one: `seen` rows, `columns` apart.
struct Values<E> {
    values: *const E,
    columns: usize,
    seen: usize,
    /// What to prefetch meanwhile.
    ahead: *const E,
}

/// # Safety
/// `weights`: `M` rows of [`PAGE_TOKENS`]; `factors`: `M`; `value`: `N` vectors in each row;
/// `out`: `N` vectors in each of `M` rows, `stride` apart.
#[inline(always)]
unsafe fn columns_of<S: Simd, E: Element, const M: usize, const N: usize>(
    s: S,
    weights: *const f32,
    factors: *const f32,
    value: Values<E>,
    stride: usize,
    out: *mut f32,
) {
    let Values { values, columns, seen, ahead } = value;
    // SAFETY: all accesses are within the rows of the contract.
    unsafe {
        let mut sums = [[s.splat(0.0); N]; M];
        for m in 0..M {
            let factor = s.splat(*factors.add(m));
            for n in 0..N {
                sums[m][n] = s.mul(factor, s.load_ptr(out.add(m * stride + n * LANES)));
            }
        }
        for j in 0..seen {
            let mut value = [s.splat(0.0); N];
            fetch(ahead, j * N, N);
            for n in 0..N {
                value[n] = E::load(s, values.add(j * columns + n * LANES));
            }
            for m in 0..M {
                let weight = s.splat(*weights.add(m * PAGE_TOKENS + j));
                for n in 0..N {
                    sums[m][n] = s.mul_add(weight, value[n], sums[m][n]);
                }
            }
        }
        for m in 0..M {
            for n in 0..N {
                s.store_ptr(out.add(m * stride + n * LANES), sums[m][n]);
            }
        }
    }
}
