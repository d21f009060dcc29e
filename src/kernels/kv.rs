//! The key and value cache of one attention layer: pages of 64 tokens.
//!
//! A page holds, for every KV head, the keys of its tokens with the token index innermost,
//! `[kv_heads][head_dim][64]`, so that scores are computed side by side without a horizontal
//! sum; and the values in groups of 64 columns, `[kv_heads][groups][64 tokens][64]`, the
//! last group as wide as is left, rounded up to 16 with zeros. Both are read from front to
//! back, which the prefetchers of CPUs like. Pages start as zeros, so every element is
//! always a number.
//!
//! Pages are shared by [`KvPages::fork`] and copied when one of the owners writes.
#![allow(unsafe_code)]

mod bytes;

use std::sync::Arc;

use half::f16;

use super::buffer::{Buffer, Plain};
use super::simd::{Isa, LANES, Simd};
use crate::{Error, Result, dispatch};

/// Tokens of a page.
pub const PAGE_TOKENS: usize = 64;
/// Columns of a group of values.
pub(super) const GROUP_COLUMNS: usize = 64;

/// How keys and values are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KvElement {
    /// 32 bits, as computed.
    F32,
    /// 16 bits, rounded to nearest even; magnitudes above 65504 become 65504.
    F16,
}

impl KvElement {
    /// Bytes of an element.
    pub fn bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F16 => 2,
        }
    }
}

/// What a layer's cache holds for each token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KvShape {
    /// Heads of keys and values.
    pub kv_heads: usize,
    /// Elements of a head.
    pub head_dim: usize,
    /// Storage format.
    pub element: KvElement,
}

impl KvShape {
    /// Elements of a row of values, padding included.
    pub(super) fn padded_dim(self) -> usize {
        self.head_dim.next_multiple_of(LANES)
    }
    fn head_keys(self) -> usize {
        PAGE_TOKENS * self.head_dim
    }
    fn head_values(self) -> usize {
        PAGE_TOKENS * self.padded_dim()
    }
    /// Elements of a page, or `None` when that overflows.
    fn page_len(self) -> Option<usize> {
        let stride = self.head_dim.checked_next_multiple_of(LANES)?;
        stride.checked_add(self.head_dim)?.checked_mul(PAGE_TOKENS)?.checked_mul(self.kv_heads)
    }
    /// Bytes of a page.
    pub fn page_bytes(self) -> usize {
        self.page_len().unwrap_or(usize::MAX).saturating_mul(self.element.bytes())
    }
}

/// A storage format of keys and values.
pub(super) trait Element: Plain {
    /// Sixteen elements.
    ///
    /// # Safety
    /// `p` points to 16 readable elements.
    unsafe fn load<S: Simd>(s: S, p: *const Self) -> S::F32;
    /// Writes sixteen elements.
    ///
    /// # Safety
    /// `p` points to 16 writable elements.
    unsafe fn store<S: Simd>(s: S, p: *mut Self, v: S::F32);
    /// All zero bits.
    const ZERO: Self;
}

impl Element for f32 {
    const ZERO: Self = 0.0;
    #[inline(always)]
    unsafe fn load<S: Simd>(s: S, p: *const Self) -> S::F32 {
        // SAFETY: the caller's contract.
        unsafe { s.load_ptr(p) }
    }
    #[inline(always)]
    unsafe fn store<S: Simd>(s: S, p: *mut Self, v: S::F32) {
        // SAFETY: the caller's contract.
        unsafe { s.store_ptr(p, v) }
    }
}

impl Element for f16 {
    const ZERO: Self = f16::ZERO;
    #[inline(always)]
    unsafe fn load<S: Simd>(s: S, p: *const Self) -> S::F32 {
        // SAFETY: the caller's contract.
        unsafe { s.load_f16_ptr(p) }
    }
    #[inline(always)]
    unsafe fn store<S: Simd>(s: S, p: *mut Self, v: S::F32) {
        // An infinity in the cache would turn the masked products of earlier rows into NaN.
        // The operand order lets NaN through.
        let max = s.splat(f16::MAX.to_f32_const());
        let min = s.splat(f16::MIN.to_f32_const());
        let v = s.max(min, s.min(max, v));
        // SAFETY: the caller's contract.
        unsafe { s.store_f16_ptr(p, v) }
    }
}

enum Data {
    F32(Buffer<f32>),
    F16(Buffer<f16>),
}

/// Keys and values of [`PAGE_TOKENS`] tokens of one layer.
pub struct KvPage {
    data: Data,
}

impl KvPage {
    fn zeroed(shape: KvShape) -> Result<Self> {
        let len = shape
            .page_len()
            .ok_or_else(|| Error::out_of_memory("a page of the key and value cache", usize::MAX))?;
        let what = "a page of the key and value cache";
        let data = match shape.element {
            KvElement::F32 => Data::F32(Buffer::zeroed(len, what)?),
            KvElement::F16 => Data::F16(Buffer::zeroed(len, what)?),
        };
        Ok(Self { data })
    }

    fn try_clone(&self, shape: KvShape) -> Result<Self> {
        let mut copy = Self::zeroed(shape)?;
        match (&mut copy.data, &self.data) {
            (Data::F32(to), Data::F32(from)) => to.copy_from_slice(from),
            (Data::F16(to), Data::F16(from)) => to.copy_from_slice(from),
            _ => return Err(Error::internal("pages of one cache differ in format")),
        }
        Ok(copy)
    }

    /// Where the keys and values of `head` begin.
    pub(super) fn head<E: Element>(&self, shape: KvShape, head: usize) -> Head<'_, E> {
        assert!(head < shape.kv_heads);
        let all: &[E] = match &self.data {
            Data::F32(x) => cast(x),
            Data::F16(x) => cast(x),
        };
        let values = shape.kv_heads * shape.head_keys();
        Head {
            keys: &all[head * shape.head_keys()..][..shape.head_keys()],
            values: &all[values + head * shape.head_values()..][..shape.head_values()],
        }
    }
}

/// `x` if it is of the type asked for; the caller has matched the element type.
fn cast<A: Element, B: Element>(x: &[A]) -> &[B] {
    assert_eq!(std::any::TypeId::of::<A>(), std::any::TypeId::of::<B>());
    // SAFETY: `A` and `B` are the same type.
    unsafe { std::slice::from_raw_parts(x.as_ptr().cast(), x.len()) }
}

/// One head of a page.
pub(super) struct Head<'a, E> {
    /// `[head_dim][64]`
    pub keys: &'a [E],
    /// `[groups][64][columns of the group]`
    pub values: &'a [E],
}

/// The cache of one layer: pages in order.
///
/// It does not know how many tokens it holds: the sequence does, and what lies beyond is
/// never read. So a pass that is given up after [`KvPages::write`] has changed nothing.
pub struct KvPages {
    shape: KvShape,
    pages: Vec<Arc<KvPage>>,
}

impl KvPages {
    /// An empty cache.
    pub fn new(shape: KvShape) -> Self {
        Self { shape, pages: Vec::new() }
    }

    /// What it holds for each token.
    pub fn shape(&self) -> KvShape {
        self.shape
    }

    /// Tokens there is room for without another page.
    pub fn capacity(&self) -> usize {
        self.pages.len() * PAGE_TOKENS
    }

    /// Bytes of the pages, shared ones included.
    pub fn bytes(&self) -> usize {
        self.pages.len() * self.shape.page_bytes()
    }

    /// What tells each page from any other alive, with its bytes: caches that share pages
    /// count each once.
    pub fn page_identities(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let bytes = self.shape.page_bytes();
        self.pages.iter().map(move |page| (Arc::as_ptr(page).addr(), bytes))
    }

    /// The pages, in order.
    pub(super) fn pages(&self) -> &[Arc<KvPage>] {
        &self.pages
    }

    /// A second owner of the same pages; a page is copied when either writes to it.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn fork(&self) -> Result<Self> {
        let mut pages = Vec::new();
        reserve(&mut pages, self.pages.len())?;
        pages.extend(self.pages.iter().cloned());
        Ok(Self { shape: self.shape, pages })
    }

    /// Gives back the pages that hold none of the first `tokens` tokens.
    pub fn truncate(&mut self, tokens: usize) {
        self.pages.truncate(tokens.div_ceil(PAGE_TOKENS));
    }

    /// Makes the tokens `position..position + tokens` writable: adds missing pages and
    /// copies those shared with a fork. [`KvPages::write`] does so itself; calling this
    /// first moves the only thing that can fail to the start of a pass.
    ///
    /// # Errors
    /// `OutOfMemory`; the tokens before `position` are untouched.
    pub fn reserve(&mut self, position: usize, tokens: usize) -> Result<()> {
        if tokens == 0 {
            return Ok(());
        }
        let end = position
            .checked_add(tokens)
            .ok_or_else(|| Error::out_of_memory("the key and value cache", usize::MAX))?
            .div_ceil(PAGE_TOKENS);
        let writable = self.pages.len().min(end);
        for page in self.pages[..writable].iter_mut().skip(position / PAGE_TOKENS) {
            if Arc::get_mut(page).is_none() {
                *page = Arc::new(page.try_clone(self.shape)?);
            }
        }
        if end > self.pages.len() {
            let more = end - self.pages.len();
            reserve(&mut self.pages, more)?;
            while self.pages.len() < end {
                self.pages.push(Arc::new(KvPage::zeroed(self.shape)?));
            }
        }
        Ok(())
    }

    /// Stores the keys and values (`[tokens, kv_heads, head_dim]` each) of the tokens from
    /// `position` on.
    ///
    /// # Errors
    /// `OutOfMemory`; the tokens before `position` are untouched.
    ///
    /// # Panics
    /// When `keys` and `values` differ in length or are not whole tokens.
    pub fn write(&mut self, isa: Isa, position: usize, keys: &[f32], values: &[f32]) -> Result<()> {
        let width = self.shape.kv_heads * self.shape.head_dim;
        if width == 0 {
            return Ok(());
        }
        assert!(keys.len() == values.len() && keys.len().is_multiple_of(width));
        let tokens = keys.len() / width;
        self.reserve(position, tokens)?;
        let mut done = 0;
        while done < tokens {
            let slot = (position + done) % PAGE_TOKENS;
            // Up to 16 tokens, whose keys are transposed together.
            let n = LANES.min(PAGE_TOKENS - slot).min(tokens - done);
            let page = &mut self.pages[(position + done) / PAGE_TOKENS];
            let page = Arc::get_mut(page)
                .ok_or_else(|| Error::internal("a reserved page is still shared"))?;
            let keys = &keys[done * width..][..n * width];
            let values = &values[done * width..][..n * width];
            let shape = self.shape;
            dispatch!(isa, s => match &mut page.data {
                Data::F32(data) => write_rows(s, shape, data, slot, keys, values),
                Data::F16(data) => write_rows(s, shape, data, slot, keys, values),
            });
            done += n;
        }
        Ok(())
    }
}

fn reserve<T>(list: &mut Vec<T>, more: usize) -> Result<()> {
    list.try_reserve(more).map_err(|_| {
        Error::out_of_memory("the page table of the key and value cache", more * size_of::<T>())
    })
}

/// Writes up to 16 tokens, the first of them in slot `slot` of the page.
#[inline(always)]
fn write_rows<S: Simd, E: Element>(
    s: S,
    shape: KvShape,
    page: &mut [E],
    slot: usize,
    keys: &[f32],
    values: &[f32],
) {
    let KvShape { kv_heads, head_dim, .. } = shape;
    let width = kv_heads * head_dim;
    let tokens = keys.len() / width;
    assert!(tokens <= LANES && slot + tokens <= PAGE_TOKENS);
    let (page_keys, page_values) = page.split_at_mut(kv_heads * shape.head_keys());
    for head in 0..kv_heads {
        let page_keys = &mut page_keys[head * shape.head_keys()..][..shape.head_keys()];
        for first in (0..head_dim).step_by(LANES) {
            let n = LANES.min(head_dim - first);
            let mut block = [[E::ZERO; LANES]; LANES];
            for (t, row) in block[..tokens].iter_mut().enumerate() {
                let source = &keys[t * width + head * head_dim + first..][..n];
                // SAFETY: a row of `block` is 16 elements.
                unsafe { E::store(s, row.as_mut_ptr(), s.load_part(source)) };
            }
            for d in 0..n {
                let to = &mut page_keys[(first + d) * PAGE_TOKENS + slot..][..tokens];
                for (to, row) in to.iter_mut().zip(&block) {
                    *to = row[d];
                }
            }
        }
        let mut page_values = &mut page_values[head * shape.head_values()..][..shape.head_values()];
        for first in (0..head_dim).step_by(GROUP_COLUMNS) {
            let columns = GROUP_COLUMNS.min(shape.padded_dim() - first);
            let (group, rest) = page_values.split_at_mut(PAGE_TOKENS * columns);
            page_values = rest;
            let rows = group[slot * columns..][..tokens * columns].chunks_exact_mut(columns);
            for (t, row) in rows.enumerate() {
                let source = &values[t * width + head * head_dim + first..];
                let source = &source[..columns.min(head_dim - first)];
                for (to, from) in row.chunks_exact_mut(LANES).zip(source.chunks(LANES)) {
                    // SAFETY: `to` is 16 elements.
                    unsafe { E::store(s, to.as_mut_ptr(), s.load_part(from)) };
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(t: usize, head: usize, d: usize) -> f32 {
        (t * 1000 + head * 100 + d) as f32 / 8.0
    }

    fn rows(shape: KvShape, tokens: std::ops::Range<usize>, sign: f32) -> Vec<f32> {
        let mut out = Vec::new();
        for t in tokens {
            for h in 0..shape.kv_heads {
                out.extend((0..shape.head_dim).map(|d| sign * value(t, h, d)));
            }
        }
        out
    }

    fn check<E: Element + Into<f32>>(pages: &KvPages, tokens: usize, first_sign: f32) {
        let shape = pages.shape();
        for t in 0..tokens {
            let (page, slot) = (&pages.pages()[t / PAGE_TOKENS], t % PAGE_TOKENS);
            for h in 0..shape.kv_heads {
                let head = page.head::<E>(shape, h);
                for d in 0..shape.head_dim {
                    let key = head.keys[d * PAGE_TOKENS + slot];
                    assert_eq!(key.into(), first_sign * value(t, h, d));
                    let (group, d64) = (d / GROUP_COLUMNS, d % GROUP_COLUMNS);
                    let columns = GROUP_COLUMNS.min(shape.padded_dim() - group * GROUP_COLUMNS);
                    let v = head.values[group * GROUP_COLUMNS * PAGE_TOKENS + slot * columns + d64];
                    assert_eq!(v.into(), -first_sign * value(t, h, d));
                }
            }
        }
    }

    #[test]
    fn rows_come_back_under_any_chunking() {
        for isa in Isa::available() {
            for element in [KvElement::F32, KvElement::F16] {
                for (kv_heads, head_dim) in [(1, 1), (2, 24), (3, 16), (2, 5), (2, 150)] {
                    let shape = KvShape { kv_heads, head_dim, element };
                    for chunk in [1, 3, 16, 64, 75, 150] {
                        let mut pages = KvPages::new(shape);
                        let mut at = 0;
                        // 150 tokens keep every value exact in F16 only below 2048: use few.
                        let total = if element == KvElement::F16 { 2 } else { 150 };
                        while at < total {
                            let end = (at + chunk).min(total);
                            let k = rows(shape, at..end, 1.0);
                            let v = rows(shape, at..end, -1.0);
                            pages.write(isa, at, &k, &v).unwrap();
                            at = end;
                        }
                        match element {
                            KvElement::F32 => check::<f32>(&pages, total, 1.0),
                            KvElement::F16 => check::<f16>(&pages, total, 1.0),
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn forks_do_not_see_each_other() {
        let shape = KvShape { kv_heads: 2, head_dim: 24, element: KvElement::F32 };
        let isa = Isa::best();
        let mut one = KvPages::new(shape);
        one.write(isa, 0, &rows(shape, 0..100, 1.0), &rows(shape, 0..100, -1.0)).unwrap();
        let mut two = one.fork().unwrap();
        assert!(Arc::ptr_eq(&one.pages()[1], &two.pages()[1]));
        two.write(isa, 80, &rows(shape, 80..150, 1.0), &rows(shape, 80..150, -1.0)).unwrap();
        one.write(isa, 90, &rows(shape, 0..1, 1.0), &rows(shape, 0..1, -1.0)).unwrap();
        assert!(Arc::ptr_eq(&one.pages()[0], &two.pages()[0]));
        check::<f32>(&one, 90, 1.0);
        check::<f32>(&two, 150, 1.0);
        two.truncate(64);
        assert_eq!(two.capacity(), 64);
        assert_eq!(two.bytes(), shape.page_bytes());
    }

    #[test]
    fn f16_saturates_and_keeps_nan() {
        let shape = KvShape { kv_heads: 1, head_dim: 3, element: KvElement::F16 };
        for isa in Isa::available() {
            let mut pages = KvPages::new(shape);
            let row = [1e9, f32::NEG_INFINITY, f32::NAN];
            pages.write(isa, 0, &row, &row).unwrap();
            let head = pages.pages()[0].head::<f16>(shape, 0);
            let got: Vec<f32> = head.values[..3].iter().map(|x| x.to_f32()).collect();
            assert_eq!(got[..2], [65504.0, -65504.0]);
            assert!(got[2].is_nan());
        }
    }

    #[test]
    fn impossible_sizes_are_errors() {
        let shape = KvShape { kv_heads: 1 << 40, head_dim: 1 << 20, element: KvElement::F32 };
        let error = KvPages::new(shape).reserve(0, 1).unwrap_err();
        assert_eq!(error.kind(), crate::ErrorKind::OutOfMemory);
        let shape = KvShape { kv_heads: 1, head_dim: 1, element: KvElement::F32 };
        let error = KvPages::new(shape).reserve(usize::MAX, 1).unwrap_err();
        assert_eq!(error.kind(), crate::ErrorKind::OutOfMemory);
    }
}
