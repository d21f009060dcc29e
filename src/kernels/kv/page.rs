//! A page: memory for the keys and values of some tokens.
#![allow(unsafe_code)]

use half::f16;

use super::super::buffer::{Buffer, as_bytes, as_bytes_mut};
use super::super::simd::{Isa, LANES, Simd};
use super::slab::Block;
use super::{Element, GROUP_COLUMNS, KvElement, KvShape, PAGE_TOKENS};
use crate::{Error, Result, dispatch};

enum Data {
    F32(Block<f32>),
    F16(Block<f16>),
    I8(Block<i8>),
}

/// Keys and values of [`PAGE_TOKENS`] tokens of one layer.
pub struct KvPage {
    data: Data,
    /// `[keys, values][kv_heads][64]`, where elements have scales, else empty.
    scales: Buffer<f32>,
}

impl KvPage {
    pub(super) fn zeroed(shape: KvShape) -> Result<Self> {
        let what = "a page of the key and value cache";
        let refused = || Error::out_of_memory(what, usize::MAX);
        let len = shape.page_len().ok_or_else(refused)?;
        let scales = shape.page_scales().ok_or_else(refused)?;
        let data = match shape.element {
            KvElement::F32 => Data::F32(Block::zeroed(len, what)?),
            KvElement::F16 => Data::F16(Block::zeroed(len, what)?),
            KvElement::I8 => Data::I8(Block::zeroed(len, what)?),
        };
        Ok(Self { data, scales: Buffer::zeroed(scales, what)? })
    }

    pub(super) fn try_clone(&self, shape: KvShape) -> Result<Self> {
        let mut copy = Self::zeroed(shape)?;
        match (&mut copy.data, &self.data) {
            (Data::F32(to), Data::F32(from)) => to.copy_from_slice(from),
            (Data::F16(to), Data::F16(from)) => to.copy_from_slice(from),
            (Data::I8(to), Data::I8(from)) => to.copy_from_slice(from),
            _ => return Err(Error::internal("pages of one cache differ in format")),
        }
        copy.scales.copy_from_slice(&self.scales);
        Ok(copy)
    }

    /// Where the keys and values of `head` begin.
    pub(in crate::kernels) fn head<E: Element>(&self, shape: KvShape, head: usize) -> Head<'_, E> {
        assert!(head < shape.kv_heads);
        let all: &[E] = match &self.data {
            Data::F32(x) => cast(x),
            Data::F16(x) => cast(x),
            Data::I8(x) => cast(x),
        };
        let values = shape.kv_heads * shape.head_keys();
        let scales = |kind: usize| match E::SCALED {
            true => &self.scales[(kind * shape.kv_heads + head) * PAGE_TOKENS..][..PAGE_TOKENS],
            false => &[],
        };
        Head {
            keys: &all[head * shape.head_keys()..][..shape.head_keys()],
            values: &all[values + head * shape.head_values()..][..shape.head_values()],
            key_scales: scales(0),
            value_scales: scales(1),
        }
    }

    /// Writes up to 16 tokens, the first of them into slot `slot`.
    pub(super) fn write(
        &mut self,
        isa: Isa,
        shape: KvShape,
        slot: usize,
        keys: &[f32],
        values: &[f32],
    ) {
        let scales = &mut self.scales;
        dispatch!(isa, s => match &mut self.data {
            Data::F32(data) => write_rows(s, shape, data, scales, slot, keys, values),
            Data::F16(data) => write_rows(s, shape, data, scales, slot, keys, values),
            Data::I8(data) => write_rows(s, shape, data, scales, slot, keys, values),
        });
    }

    /// Its memory, in parts of always the same sizes.
    pub(super) fn parts(&self) -> [&[u8]; 2] {
        let data = match &self.data {
            Data::F32(data) => as_bytes(data),
            Data::F16(data) => as_bytes(data),
            Data::I8(data) => as_bytes(data),
        };
        [data, as_bytes(&self.scales)]
    }

    /// As [`KvPage::parts`], to be written to.
    pub(super) fn parts_mut(&mut self) -> [&mut [u8]; 2] {
        let data = match &mut self.data {
            Data::F32(data) => as_bytes_mut(data),
            Data::F16(data) => as_bytes_mut(data),
            Data::I8(data) => as_bytes_mut(data),
        };
        [data, as_bytes_mut(&mut self.scales)]
    }
}

/// `x` if it is of the type asked for; the caller has matched the element type.
fn cast<A: Element, B: Element>(x: &[A]) -> &[B] {
    assert_eq!(std::any::TypeId::of::<A>(), std::any::TypeId::of::<B>());
    // SAFETY: `A` and `B` are the same type.
    unsafe { std::slice::from_raw_parts(x.as_ptr().cast(), x.len()) }
}

/// One head of a page.
pub(in crate::kernels) struct Head<'a, E> {
    /// `[head_dim][64]`
    pub keys: &'a [E],
    /// `[groups][64][columns of the group]`
    pub values: &'a [E],
    /// `[64]`, or empty where elements have none.
    pub key_scales: &'a [f32],
    /// As `key_scales`.
    pub value_scales: &'a [f32],
}

/// Writes up to 16 tokens, the first of them in slot `slot` of the page. `scales` are those
/// of the page, if elements have scales.
#[inline(always)]
fn write_rows<S: Simd, E: Element>(
    s: S,
    shape: KvShape,
    page: &mut [E],
    scales: &mut [f32],
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
        let mut inverses = [[1.0; LANES]; 2];
        if E::SCALED {
            for (kind, rows) in [keys, values].into_iter().enumerate() {
                let scales = &mut scales[(kind * kv_heads + head) * PAGE_TOKENS + slot..];
                for t in 0..tokens {
                    let row = &rows[t * width + head * head_dim..][..head_dim];
                    (scales[t], inverses[kind][t]) = E::scale_of(s, row);
                }
            }
        }
        let page_keys = &mut page_keys[head * shape.head_keys()..][..shape.head_keys()];
        for first in (0..head_dim).step_by(LANES) {
            let n = LANES.min(head_dim - first);
            let mut block = [[E::ZERO; LANES]; LANES];
            for (t, row) in block[..tokens].iter_mut().enumerate() {
                let source = &keys[t * width + head * head_dim + first..][..n];
                // SAFETY: a row of `block` is 16 elements.
                unsafe { E::store(s, row.as_mut_ptr(), s.load_part(source), inverses[0][t]) };
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
                    unsafe { E::store(s, to.as_mut_ptr(), s.load_part(from), inverses[1][t]) };
                }
            }
        }
    }
}
