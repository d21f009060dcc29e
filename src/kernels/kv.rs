//! The key and value cache of one attention layer: pages of 64 tokens.
//!
//! A page holds, for every KV head, the keys of its tokens with the token index innermost,
//! `[kv_heads][head_dim][64]`, so that scores are computed side by side without a horizontal
//! sum; and the values in groups of 64 columns, `[kv_heads][groups][64 tokens][64]`, the
//! last group as wide as is left, rounded up to 16 with zeros. Both are read from front to
//! back, which the prefetchers of CPUs like. Pages start as zeros, so every element is
//! always a number.
//!
//! In 8 bits, each token's key and each token's value have a scale for every head, beside the
//! page: `[keys, values][kv_heads][64]`. A scale multiplies a whole score, or a whole weight,
//! so the products run over the integers as they are.
//!
//! Pages are shared by [`KvPages::fork`] and copied when one of the owners writes.

mod bytes;
mod element;
mod page;
mod slab;

use std::sync::Arc;

pub(super) use element::Element;
pub(super) use page::Head;
use page::KvPage;

use super::simd::{Isa, LANES};
use crate::{Error, Result};

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
    /// 8 bits, with an `f32` scale for each token and head that makes the largest magnitude
    /// 127. A key or value that holds an infinity or NaN becomes NaN as a whole.
    I8,
}

impl KvElement {
    /// Bytes of an element, scales not counted.
    pub fn bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F16 => 2,
            Self::I8 => 1,
        }
    }

    /// Its name in options and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "fp32",
            Self::F16 => "fp16",
            Self::I8 => "int8",
        }
    }

    /// Whether there are scales.
    fn is_scaled(self) -> bool {
        self == Self::I8
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
    /// Scales of a page, or `None` when that overflows.
    fn page_scales(self) -> Option<usize> {
        match self.element.is_scaled() {
            true => self.kv_heads.checked_mul(2 * PAGE_TOKENS),
            false => Some(0),
        }
    }
    /// Bytes of a page, or `None` when that overflows.
    fn checked_page_bytes(self) -> Option<usize> {
        let elements = self.page_len()?.checked_mul(self.element.bytes())?;
        elements.checked_add(self.page_scales()?.checked_mul(size_of::<f32>())?)
    }
    /// Bytes of a page.
    pub fn page_bytes(self) -> usize {
        self.checked_page_bytes().unwrap_or(usize::MAX)
    }
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

    /// Bytes of the pages that are not also those of `other` at the same place. Caches that share
    /// pages share a beginning: the look ends at the first such page from the end.
    pub fn bytes_beside(&self, other: &Self) -> usize {
        let shared =
            |n: &usize| other.pages.get(*n).is_some_and(|of| Arc::ptr_eq(of, &self.pages[*n]));
        let first = (0..self.pages.len()).rev().find(shared).map_or(0, |n| n + 1);
        (self.pages.len() - first) * self.shape.page_bytes()
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
            page.write(isa, self.shape, slot, keys, values);
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

#[cfg(test)]
mod tests {
    use half::f16;

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
                            _ => check::<f16>(&pages, total, 1.0),
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
    fn eight_bits_keep_each_row_to_half_a_step_and_say_what_is_no_number() {
        let mut random = crate::kernels::testing::Random(5);
        for (kv_heads, head_dim) in [(1, 1), (2, 24), (3, 40), (2, 150)] {
            let shape = KvShape { kv_heads, head_dim, element: KvElement::I8 };
            let width = kv_heads * head_dim;
            let mut all: Vec<f32> = random.vector(100 * width, 3.0);
            // A row of zeros, one too small for a scale, a large one, and two unsound ones.
            for (t, value) in [(3, 0.0), (4, 1e-36), (5, 1e36), (6, f32::NAN), (7, f32::INFINITY)] {
                all[t * width..t * width + head_dim].fill(value);
            }
            let mut first: Option<Vec<u8>> = None;
            for isa in Isa::available() {
                let mut pages = KvPages::new(shape);
                pages.write(isa, 0, &all[..70 * width], &all[..70 * width]).unwrap();
                pages.write(isa, 70, &all[70 * width..], &all[70 * width..]).unwrap();
                for (n, row) in all.chunks_exact(head_dim).enumerate() {
                    let (t, h) = (n / kv_heads, n % kv_heads);
                    let (page, slot) = (&pages.pages()[t / PAGE_TOKENS], t % PAGE_TOKENS);
                    let head = page.head::<i8>(shape, h);
                    let scale = head.key_scales[slot];
                    assert_eq!(scale.to_bits(), head.value_scales[slot].to_bits());
                    let largest = row.iter().fold(0.0f32, |max, x| max.max(x.abs()));
                    if row.iter().any(|x| !x.is_finite()) {
                        assert!(scale.is_nan());
                        continue;
                    }
                    for (d, x) in row.iter().enumerate() {
                        let key = f32::from(head.keys[d * PAGE_TOKENS + slot]) * scale;
                        let step = largest / 127.0;
                        assert!((key - x).abs() <= step * 0.5001 + 1e-30, "{x} became {key}");
                    }
                }
                let parts = pages.pages().iter().flat_map(|page| page.parts());
                let bytes: Vec<u8> = parts.flatten().copied().collect();
                assert_eq!(bytes.len(), pages.bytes());
                assert!(bytes == *first.get_or_insert_with(|| bytes.clone()), "{}", isa.name());
            }
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
