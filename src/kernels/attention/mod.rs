//! Causal attention over the pages of a key and value cache.
//!
//! Query heads that share a KV head, and neighbouring tokens, form the rows of a tile:
//! every key and value is loaded once for all of them. The softmax is computed online, page
//! by page, within segments of [`SEGMENT_TOKENS`] tokens; segments are merged in order.
//! Pages and segments have absolute boundaries, so a row's result is made by the same
//! operations in the same order whether it is computed alone or with others, by one thread
//! or with its segments spread over many.
#![allow(unsafe_code)]

mod tile;

use std::cell::RefCell;

use half::f16;

use super::Compute;
use super::buffer::{Buffer, Scratch, with_scratch};
use super::kv::{Element, KvElement, KvPages, PAGE_TOKENS};
use super::simd::Simd;
use crate::dispatch;
use crate::pool::SharedMut;
use tile::{Softmax, Tile};

/// Tokens of the cache whose softmax is computed in one run; the unit that a long context is
/// split into when there are few rows.
const SEGMENT_TOKENS: usize = 512;
const SEGMENT_PAGES: usize = SEGMENT_TOKENS / PAGE_TOKENS;
/// Rows of a tile, as far as whole tokens allow.
const TILE_ROWS: usize = 48;
/// Tokens of a tile times tokens of the cache, at most, in a computation that may be cut
/// between tasks: 12 tokens that see 4096.
const PACED_TILE: usize = 48 << 10;

thread_local! {
    /// What a task works with.
    static SCRATCH: Scratch = const { RefCell::new(Buffer::empty()) };
    /// The segments' results, for the calling thread to merge.
    static PARTIALS: Scratch = const { RefCell::new(Buffer::empty()) };
}

/// Heads and their size. Query head `h` uses KV head `h / (q_heads / kv_heads)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttentionShape {
    /// Heads of queries; a multiple of `kv_heads`.
    pub q_heads: usize,
    /// Heads of keys and values.
    pub kv_heads: usize,
    /// Elements of a head.
    pub head_dim: usize,
}

/// `out = softmax(scale q K^T) V`, each row over the tokens up to its own.
///
/// - `first_position`: index in the cache of the first row; row `t` sees the tokens
///   `0..=first_position + t`, which have been written to `kv`.
/// - `q`, `out`: `[tokens, q_heads, head_dim]`.
///
/// Short of scratch memory, it fails with `OutOfMemory`.
///
/// # Panics
/// When a slice does not have the length said above, or `kv` is of another shape or shorter
/// than the rows need.
#[allow(clippy::too_many_arguments)]
pub fn attention(
    c: &Compute,
    shape: AttentionShape,
    tokens: usize,
    first_position: usize,
    q: &[f32],
    kv: &KvPages,
    scale: f32,
    out: &mut [f32],
) {
    let AttentionShape { q_heads, kv_heads, head_dim } = shape;
    assert!(kv_heads > 0 && q_heads.is_multiple_of(kv_heads));
    assert_eq!((kv.shape().kv_heads, kv.shape().head_dim), (kv_heads, head_dim));
    assert_eq!(q.len(), tokens * q_heads * head_dim);
    assert_eq!(out.len(), q.len());
    assert!(tokens <= kv.capacity() && first_position <= kv.capacity() - tokens);
    if out.is_empty() {
        return;
    }
    let call = Call { c, shape, kv, tokens, first_position, q, scale, out: SharedMut::new(out) };
    let segments = (first_position + tokens).div_ceil(SEGMENT_TOKENS);
    if tokens <= call.tile_tokens() && segments > 1 {
        call.by_segments(segments);
    } else {
        call.by_tiles();
    }
}

/// The arguments of one call.
struct Call<'a> {
    c: &'a Compute<'a>,
    shape: AttentionShape,
    kv: &'a KvPages,
    tokens: usize,
    first_position: usize,
    q: &'a [f32],
    scale: f32,
    out: SharedMut<'a, f32>,
}

impl Call<'_> {
    /// Query heads of a KV head.
    fn group(&self) -> usize {
        self.shape.q_heads / self.shape.kv_heads
    }

    /// Tokens of a tile. Where a task should be short, fewer of them look back at a long
    /// context; that costs speed, since they share its keys and values less.
    fn tile_tokens(&self) -> usize {
        let most = (TILE_ROWS / self.group()).max(1);
        if self.c.is_paced() {
            most.min(PACED_TILE / (self.first_position + self.tokens)).max(1)
        } else {
            most
        }
    }

    /// The tile of tokens `first..first + tokens` for `kv_head`.
    fn tile(&self, kv_head: usize, first: usize, tokens: usize) -> Tile {
        Tile {
            shape: self.kv.shape(),
            kv_head,
            group: self.group(),
            position: self.first_position + first,
            tokens,
        }
    }

    /// Many rows: a task is a tile with all that it sees. Late rows, which see most, first.
    fn by_tiles(&self) {
        let kv_heads = self.shape.kv_heads;
        let tiles = self.tokens.div_ceil(self.tile_tokens());
        self.c.run(tiles * kv_heads, |task| {
            let first = (tiles - 1 - task / kv_heads) * self.tile_tokens();
            let tokens = self.tile_tokens().min(self.tokens - first);
            let tile = self.tile(task % kv_heads, first, tokens);
            let result = tile.softmax_len();
            self.c.note(with_scratch(&SCRATCH, tile.scratch_len() + 2 * result, |scratch| {
                let (all, rest) = scratch.split_at_mut(result);
                let (one, rest) = rest.split_at_mut(result);
                let all = Softmax::new(&tile, all);
                let one = Softmax::new(&tile, one);
                dispatch!(self.c.isa, s => match self.kv.shape().element {
                    KvElement::F32 => self.whole_tile::<_, f32>(s, &tile, first, all, one, rest),
                    KvElement::F16 => self.whole_tile::<_, f16>(s, &tile, first, all, one, rest),
                    KvElement::I8 => self.whole_tile::<_, i8>(s, &tile, first, all, one, rest),
                });
            }));
        });
    }

    #[inline(always)]
    fn whole_tile<'m, S: Simd, E: Element>(
        &self,
        s: S,
        tile: &Tile,
        first: usize,
        mut all: Softmax<'m>,
        mut one: Softmax<'m>,
        scratch: &mut [f32],
    ) {
        tile.load_queries(s, self.q, first, self.shape.q_heads, self.scale, scratch);
        for segment in 0..tile.end().div_ceil(SEGMENT_TOKENS) {
            // The first segment needs no merging: every row sees it.
            let to = if segment == 0 { &mut all } else { &mut one };
            let after = (segment + 1, tile.kv_head);
            if !self.segment::<S, E>(s, tile, segment, after, to, scratch) {
                return;
            }
            if segment > 0 {
                all.merge(s, &one, tile.first_row(segment * SEGMENT_TOKENS));
            }
        }
        self.finish(s, tile, first, &all);
    }

    /// Few rows and a long context: a task is one segment for one KV head.
    fn by_segments(&self, segments: usize) {
        let kv_heads = self.shape.kv_heads;
        let tile = self.tile(0, 0, self.tokens);
        let result = tile.softmax_len();
        self.c.note(self.c.kept(&PARTIALS, segments * kv_heads * result, |partials| {
            // In order of the cache, KV heads side by side: all tasks are about equal.
            self.c.run_chunks(partials, result, |task, partial| {
                let tile = Tile { kv_head: task % kv_heads, ..tile };
                let mut partial = Softmax::new(&tile, partial);
                self.c.note(with_scratch(&SCRATCH, tile.scratch_len(), |scratch| {
                    let segment = task / kv_heads;
                    let after = ((task + 1) / kv_heads, (task + 1) % kv_heads);
                    let to = &mut partial;
                    dispatch!(self.c.isa, s => {
                        tile.load_queries(s, self.q, 0, self.shape.q_heads, self.scale, scratch);
                        match self.kv.shape().element {
                            KvElement::F32 => {
                                self.segment::<_, f32>(s, &tile, segment, after, to, scratch)
                            }
                            KvElement::F16 => {
                                self.segment::<_, f16>(s, &tile, segment, after, to, scratch)
                            }
                            KvElement::I8 => {
                                self.segment::<_, i8>(s, &tile, segment, after, to, scratch)
                            }
                        }
                    });
                }));
            });
            self.c.whole(|| self.merge_segments(&tile, partials));
        }));
    }

    /// Merges the segments' results (of each segment, those of the KV heads) in order.
    fn merge_segments(&self, tile: &Tile, partials: &mut [f32]) {
        let (kv_heads, result) = (self.shape.kv_heads, tile.softmax_len());
        let (all, rest) = partials.split_at_mut(kv_heads * result);
        for (kv_head, all) in all.chunks_exact_mut(result).enumerate() {
            let tile = Tile { kv_head, ..*tile };
            let mut all = Softmax::new(&tile, all);
            dispatch!(self.c.isa, s => {
                for (n, one) in rest.chunks_exact_mut(kv_heads * result).enumerate() {
                    let one = Softmax::new(&tile, &mut one[kv_head * result..][..result]);
                    all.merge(s, &one, tile.first_row((n + 1) * SEGMENT_TOKENS));
                }
                self.finish(s, &tile, 0, &all);
            });
        }
    }

    /// The softmax of one segment for a tile; false when cancelled. `after` is the segment, and
    /// its KV head, that this thread most likely looks at next.
    #[inline(always)]
    fn segment<S: Simd, E: Element>(
        &self,
        s: S,
        tile: &Tile,
        segment: usize,
        after: (usize, usize),
        to: &mut Softmax,
        scratch: &mut [f32],
    ) -> bool {
        to.clear();
        let end = tile.end().div_ceil(PAGE_TOKENS).min((segment + 1) * SEGMENT_PAGES);
        for page in segment * SEGMENT_PAGES..end {
            if self.c.is_over() {
                return false;
            }
            let pages = self.kv.pages();
            let head = pages[page].head::<E>(self.kv.shape(), tile.kv_head);
            let (next, kv_head) = match page + 1 < end {
                true => (page + 1, tile.kv_head),
                false => (after.0 * SEGMENT_PAGES, after.1),
            };
            let next = pages.get(next).map(|next| next.head::<E>(self.kv.shape(), kv_head));
            tile.page(s, &head, next.as_ref(), page * PAGE_TOKENS, to, scratch);
        }
        true
    }

    /// Writes the rows of a tile whose first token is `first`.
    #[inline(always)]
    fn finish<S: Simd>(&self, s: S, tile: &Tile, first: usize, all: &Softmax) {
        let AttentionShape { q_heads, head_dim, .. } = self.shape;
        for row in 0..tile.rows() {
            let (t, h) = (first + row / tile.group, tile.kv_head * tile.group + row % tile.group);
            // SAFETY: each row of each KV head belongs to one tile.
            let out = unsafe { self.out.part((t * q_heads + h) * head_dim, head_dim) };
            all.write_row(s, row, out);
        }
    }
}

#[cfg(test)]
mod tests;
