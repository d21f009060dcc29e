//! Products of BF16 weights with inputs rounded to BF16: the fast mode, where the CPU has
//! AVX-512 BF16.
//!
//! An instruction adds the products of sixteen pairs to sixteen `f32` sums. A dot product
//! again has one definition, whatever the number of tokens: lane `j` adds the columns
//! `32 g + 2 j` and `32 g + 2 j + 1` of the groups `g` in order, the last group padded with
//! zeros, and then the lanes are added by the tree of [`Simd::sum`](super::super::simd::Simd).
//!
//! Weights are used as they are stored. Some rows of them stay in the second-level cache
//! while all tokens pass by, in blocks of four rows by six tokens whose sums fill the
//! registers; the inputs of a block stay in the first-level cache, which is why long rows are
//! taken in segments.
#![allow(clippy::needless_range_loop)] // the loops over registers, see `direct`

use std::arch::x86_64::*;
use std::cell::RefCell;
use std::ops::Range;

use half::bf16;

use super::super::simd::{Avx512, Isa, Simd, prefetch_far};
use super::super::{Compute, ComputeMode, Weights};
use super::Product;
use super::direct::put_sums;
use super::runs::{self, Runs, STREAMS};
use super::scratch::{Line, Scratch};

/// Columns of a group: a register of weights.
const GROUP: usize = 32;
/// Rows of a block.
const R: usize = 4;
/// Tokens of a block, at most.
const T: usize = 6;
/// Groups of a segment at most: six tokens of so many are 24 KiB.
const SEGMENT: usize = 64;
/// How far ahead weights are asked for that come from memory, in bytes.
const AHEAD: usize = 32 << 10;
/// Fewer rows are too few to matter for speed, and what they decide (decay and write
/// strength of the recurrent state) is worth the exact way.
const MIN_ROWS: usize = 64;

/// The proof that the CPU has AVX-512 BF16.
#[derive(Clone, Copy)]
pub(super) struct Narrow(Avx512);

impl Narrow {
    /// The proof, where the mode and the instruction set ask for it and the CPU has it.
    pub fn of(c: &Compute) -> Option<Self> {
        match (c.mode, c.isa) {
            (ComputeMode::Fast, Isa::Avx512(isa)) if is_x86_feature_detected!("avx512bf16") => {
                Some(Self(isa))
            }
            _ => None,
        }
    }

    /// Whether the rows of all `matrices` are computed this way.
    pub fn takes<'a>(self, matrices: impl IntoIterator<Item = &'a super::Matrix<'a>>) -> bool {
        let fits = |m: &super::Matrix| matches!(m.weights, Weights::Bf16(_)) && m.rows >= MIN_ROWS;
        matrices.into_iter().all(fits)
    }
}

/// Inputs rounded to BF16, rows padded with zeros to whole groups.
#[derive(Clone, Copy)]
pub(super) struct Rounded<'a> {
    pub narrow: Narrow,
    /// `[tokens, stride]`
    values: &'a [bf16],
    stride: usize,
}

thread_local! {
    /// Rounded inputs of the calls of this thread.
    static ROUNDED: RefCell<Vec<bf16>> = const { RefCell::new(Vec::new()) };
}

/// Calls `f` with `x` (`[tokens, cols]`) rounded, if there is a use for it.
pub(super) fn with_rounded(
    c: &Compute,
    narrow: Option<Narrow>,
    x: &[f32],
    cols: usize,
    f: impl FnOnce(Option<Rounded>),
) {
    /// Tokens that one task rounds.
    const TOKENS: usize = 16;
    let Some(narrow) = narrow else { return f(None) };
    ROUNDED.with_borrow_mut(|values| {
        let stride = cols.next_multiple_of(GROUP);
        let len = x.len() / cols * stride;
        if values.len() < len {
            values.resize(len, bf16::ZERO);
        }
        let values = &mut values[..len];
        // They do not outlive a pause of the computation: other calls of this thread use them.
        c.prepare(|c| {
            c.run_chunks(values, TOKENS * stride, |task, out| {
                let first = task * TOKENS * cols;
                let x = &x[first..first + out.len() / stride * cols];
                // SAFETY: `narrow` is the proof that the CPU has the instructions.
                unsafe { round(narrow, x, cols, out, stride) };
            });
        });
        f(Some(Rounded { narrow, values, stride }));
    });
}

/// Rounds rows to nearest, ties to even.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx2,fma,f16c")]
fn round(_: Narrow, x: &[f32], cols: usize, out: &mut [bf16], stride: usize) {
    const LANES: usize = 16;
    for (x, out) in x.chunks_exact(cols).zip(out.chunks_exact_mut(stride)) {
        for (group, out) in out.chunks_exact_mut(LANES).enumerate() {
            let start = (group * LANES).min(cols);
            let left = (cols - start).min(LANES);
            let mask = ((1u32 << left) - 1) as u16;
            // SAFETY: `left` elements are in `x` from `start` on, and `out` holds sixteen.
            unsafe {
                let v = _mm512_maskz_loadu_ps(mask, x.as_ptr().add(start));
                let v: __m256i = std::mem::transmute(_mm512_cvtneps_pbh(v));
                _mm256_storeu_si256(out.as_mut_ptr().cast(), v);
            }
        }
    }
}

/// Computes `runs` of `product` for all tokens.
pub(super) fn compute(
    c: &Compute,
    product: &Product,
    input: Rounded,
    runs: Runs,
    scratch: &mut Scratch,
) {
    // SAFETY: `input.narrow` is the proof that the CPU has the instructions.
    unsafe {
        if runs.many > 1 {
            one_token(input.narrow, product, input, runs, scratch);
        } else {
            passes(input.narrow, c, product, input, runs.as_one(), scratch);
        }
    }
}

/// Computes `runs` of `product` for one token.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx2,fma,f16c")]
fn one_token(narrow: Narrow, product: &Product, input: Rounded, runs: Runs, scratch: &mut Scratch) {
    let (cols, stride, count) = (product.matrix.cols, input.stride, runs.count);
    assert!(input.values.len() == stride && stride >= cols && runs.many == STREAMS);
    let (_, sums, _) = scratch.parts(0, 2 * runs.len());
    let (first, second) = sums.split_at_mut(runs.len());
    let (whole, mask) = (cols / GROUP, (1u32 << (cols % GROUP)) - 1);
    let x = input.values.as_ptr();
    for (matrix, sums) in product.matrices().zip([&mut *first, &mut *second]) {
        let Weights::Bf16(w) = matrix.weights else { unreachable!("`takes` has looked") };
        let apart = runs.apart * cols;
        for row in 0..count {
            let w = &w[(runs.first + row) * cols..];
            assert!(w.len() >= (STREAMS - 1) * apart + cols);
            let mut acc = [[_mm512_setzero_ps(); STREAMS]];
            for g in 0..whole {
                let next = w.as_ptr().wrapping_add(g * GROUP).cast::<u8>();
                for n in 0..STREAMS {
                    prefetch_far(next.wrapping_add(2 * n * apart + runs::AHEAD));
                }
                // SAFETY: rows of `cols` columns, `apart` from each other, and inputs of whole
                // groups, just checked.
                unsafe { add::<STREAMS, 1>(&mut acc, w.as_ptr(), x, apart, stride, g, u32::MAX) };
            }
            if mask != 0 {
                // SAFETY: as above; the mask keeps to the columns there are.
                unsafe { add::<STREAMS, 1>(&mut acc, w.as_ptr(), x, apart, stride, whole, mask) };
            }
            let all = narrow.0.sum4(acc[0]);
            for n in 0..STREAMS {
                sums[n * count + row] = all[n];
            }
        }
    }
    for (n, (sums, ups)) in first.chunks_exact(count).zip(second.chunks_exact(count)).enumerate() {
        // SAFETY: these rows belong to the calling task.
        unsafe { product.out.put(narrow.0, 0, runs.run(n).start, sums, ups) };
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx2,fma,f16c")]
fn passes(
    narrow: Narrow,
    c: &Compute,
    product: &Product,
    input: Rounded,
    rows: Range<usize>,
    scratch: &mut Scratch,
) {
    let (cols, count) = (product.matrix.cols, rows.len());
    let blocks = count.div_ceil(R);
    let tokens = input.values.len() / input.stride;
    let matrices = product.matrices().count();
    let (lanes, sums, _) = scratch.parts(blocks * R * T, matrices * T * count);
    let mut token = 0;
    while token < tokens && !c.is_over() {
        let many = T.min(tokens - token);
        let x = &input.values[token * input.stride..][..many * input.stride];
        for (matrix, sums) in product.matrices().zip(sums.chunks_exact_mut(T * count)) {
            let Weights::Bf16(w) = matrix.weights else { unreachable!("`takes` has looked") };
            let pass = Pass {
                narrow,
                w: &w[rows.start * cols..rows.end * cols],
                cols,
                x,
                stride: input.stride,
                fetch: token == 0,
            };
            match many {
                1 => pass.rows::<1>(lanes, sums),
                2 => pass.rows::<2>(lanes, sums),
                3 => pass.rows::<3>(lanes, sums),
                4 => pass.rows::<4>(lanes, sums),
                5 => pass.rows::<5>(lanes, sums),
                _ => pass.rows::<T>(lanes, sums),
            }
        }
        let (first, second) = sums.split_at(T * count);
        for t in 0..many {
            let ups = if second.is_empty() { second } else { &second[t * count..][..count] };
            let first = &first[t * count..][..count];
            // SAFETY: these rows belong to the calling task.
            unsafe { product.out.put(narrow.0, token + t, rows.start, first, ups) };
        }
        token += many;
    }
}

/// Some rows of a matrix and a block of tokens.
struct Pass<'a> {
    narrow: Narrow,
    /// `[rows, cols]`
    w: &'a [bf16],
    cols: usize,
    /// `[tokens, stride]`
    x: &'a [bf16],
    stride: usize,
    /// Whether the weights come from memory.
    fetch: bool,
}

impl Pass<'_> {
    /// `sums[t * rows + row]` for all rows and the `N` tokens. `lanes` holds the sums of all
    /// blocks between segments.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx2,fma,f16c")]
    fn rows<const N: usize>(&self, lanes: &mut [Line], sums: &mut [f32]) {
        let rows = self.w.len() / self.cols;
        let groups = self.cols.div_ceil(GROUP);
        let segment = groups.div_ceil(groups.div_ceil(SEGMENT));
        assert!(self.x.len() == N * self.stride && self.stride == groups * GROUP);
        for first in (0..groups).step_by(segment) {
            let part = first..groups.min(first + segment);
            let mut row = 0;
            while row < rows {
                // One token reads each row to its end before the next: memory likes that.
                let many = if N > 1 && rows - row >= R { R } else { 1 };
                let lanes = &mut lanes[row * N..][..many * N];
                let sums = &mut sums[row..];
                if many == R {
                    self.block::<R, N>(row, part.clone(), lanes, sums);
                } else {
                    self.block::<1, N>(row, part.clone(), lanes, sums);
                }
                row += many;
            }
        }
    }

    /// Adds the groups `part` of `M` rows from `row` on to their sums, which begin with the
    /// first group and are finished with the last.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx2,fma,f16c")]
    fn block<const M: usize, const N: usize>(
        &self,
        row: usize,
        part: Range<usize>,
        lanes: &mut [Line],
        sums: &mut [f32],
    ) {
        let (cols, stride, rows) = (self.cols, self.stride, self.w.len() / self.cols);
        assert!(row + M <= rows && part.end <= cols.div_ceil(GROUP) && lanes.len() == M * N);
        let mut acc = [[_mm512_setzero_ps(); M]; N];
        if part.start > 0 {
            for t in 0..N {
                for r in 0..M {
                    // SAFETY: a line is sixteen values.
                    acc[t][r] = unsafe { _mm512_load_ps(lanes[t * M + r].0.as_ptr()) };
                }
            }
        }
        let whole = part.end.min(cols / GROUP);
        let (w, x) = (self.w[row * cols..].as_ptr(), self.x.as_ptr());
        let mut next = w.cast::<u8>().wrapping_add(AHEAD.max(2 * M * cols));
        for g in part.start..whole {
            if self.fetch {
                for _ in 0..M {
                    prefetch_far(next);
                    next = next.wrapping_add(64);
                }
            }
            // SAFETY: whole groups of `M` rows of weights and `N` of inputs, by the lengths
            // checked above and in `rows`.
            unsafe { add::<M, N>(&mut acc, w, x, cols, stride, g, u32::MAX) };
        }
        if whole < part.end {
            let mask = (1u32 << (cols % GROUP)) - 1;
            // SAFETY: as above; the mask keeps to the columns there are.
            unsafe { add::<M, N>(&mut acc, w, x, cols, stride, whole, mask) };
        }
        if part.end < cols.div_ceil(GROUP) {
            for t in 0..N {
                for r in 0..M {
                    // SAFETY: a line is sixteen values.
                    unsafe { _mm512_store_ps(lanes[t * M + r].0.as_mut_ptr(), acc[t][r]) };
                }
            }
        } else {
            for t in 0..N {
                put_sums(self.narrow.0, &acc[t], &mut sums[t * rows..][..M]);
            }
        }
    }
}

/// Adds the products of group `g`.
///
/// # Safety
/// `w` points to `M` rows, `apart` elements apart, which have the columns of the group that are
/// in `mask`, and `x` to `N` rows of `stride`, which have the whole group.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx2,fma,f16c")]
unsafe fn add<const M: usize, const N: usize>(
    acc: &mut [[__m512; M]; N],
    w: *const bf16,
    x: *const bf16,
    apart: usize,
    stride: usize,
    g: usize,
    mask: u32,
) {
    let mut weights = [_mm512_setzero_si512(); M];
    for r in 0..M {
        // SAFETY: by the contract.
        weights[r] = unsafe {
            let at = w.add(r * apart + g * GROUP);
            if mask == u32::MAX {
                _mm512_loadu_si512(at.cast())
            } else {
                _mm512_maskz_loadu_epi16(mask, at.cast())
            }
        };
    }
    for t in 0..N {
        // SAFETY: by the contract.
        let x = unsafe { _mm512_loadu_si512(x.add(t * stride + g * GROUP).cast()) };
        for r in 0..M {
            // SAFETY: the same 512 bits, seen as BF16.
            let (w, x) = unsafe {
                (
                    std::mem::transmute::<__m512i, __m512bh>(weights[r]),
                    std::mem::transmute::<__m512i, __m512bh>(x),
                )
            };
            acc[t][r] = _mm512_dpbf16_ps(acc[t][r], w, x);
        }
    }
}

#[cfg(test)]
mod tests;
