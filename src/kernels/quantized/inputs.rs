//! Inputs of products with quantized weights, rounded to INT8.
//!
//! Each block of 1 or 4 groups of 32 inputs of a token has a scale, the largest magnitude over
//! 127, by the format of the weights ([`TileFormat::input_groups`]); the last block of a token
//! may have fewer. What a token's inputs become depends on them and the size of blocks alone,
//! and is the same in every instruction set.
#![allow(unsafe_code)]

mod wide;

use super::layout::{GROUP, TileFormat};
use crate::dispatch;
use crate::kernels::simd::{Isa, LANES, Simd};
use crate::kernels::{Buffer, Compute};
use crate::pool::SharedMut;
use crate::{Error, Result};

/// Elements worth a task of their own.
const TASK_ELEMENTS: usize = 8 << 10;
/// What the largest magnitude of a block becomes.
const LARGEST: f32 = 127.0;
/// Smaller blocks are zeros: their products vanish, and a scale would not be a normal number.
const SMALLEST: f32 = 1e-30;

/// INT8 inputs `[tokens, cols]`. It grows to the largest size asked for.
#[derive(Default)]
pub(crate) struct QuantizedInput {
    values: Buffer<i8>,
    scales: Buffer<f32>,
    corrections: Buffer<i32>,
    tokens: usize,
    groups: usize,
    block: usize,
}

impl QuantizedInput {
    /// No inputs.
    pub const fn new() -> Self {
        Self {
            values: Buffer::empty(),
            scales: Buffer::empty(),
            corrections: Buffer::empty(),
            tokens: 0,
            groups: 0,
            block: 1,
        }
    }

    /// Groups of 32 columns, the last padded with zeros.
    pub fn groups(&self) -> usize {
        self.groups
    }

    /// Groups that share a scale.
    pub fn block(&self) -> usize {
        self.block
    }

    /// `[groups, 32]` of token `token`, and those of the tokens behind it.
    pub fn values(&self, token: usize) -> &[i8] {
        &self.values[token * self.groups * GROUP..self.tokens * self.groups * GROUP]
    }

    /// `[groups]`: what a value of each group is worth, the same number throughout a block.
    pub fn scales(&self, token: usize) -> &[f32] {
        &self.scales[token * self.groups..self.tokens * self.groups]
    }

    /// `[groups]`: minus the offset of the weights times the sum of each group's values.
    pub fn corrections(&self, token: usize) -> &[i32] {
        &self.corrections[token * self.groups..self.tokens * self.groups]
    }

    /// Takes the inputs `x`, `[tokens, cols]`, for weights of `format`.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn set(
        &mut self,
        c: &Compute,
        format: TileFormat,
        x: &[f32],
        tokens: usize,
        cols: usize,
    ) -> Result<()> {
        let groups = cols.div_ceil(GROUP);
        (self.tokens, self.groups) = (0, 0);
        grow(&mut self.values, tokens * groups * GROUP)?;
        grow(&mut self.scales, tokens * groups)?;
        grow(&mut self.corrections, tokens * groups)?;
        (self.tokens, self.groups, self.block) = (tokens, groups, format.input_groups());
        let values = SharedMut::new(&mut self.values);
        let scales = SharedMut::new(&mut self.scales);
        let corrections = SharedMut::new(&mut self.corrections);
        let some = |first: usize, count: usize| {
            for token in first..first + count {
                // SAFETY: parts of different tokens are disjoint, and each token belongs to one
                // task.
                let values = unsafe { values.part(token * groups * GROUP, groups * GROUP) };
                // SAFETY: as above.
                let scales = unsafe { scales.part(token * groups, groups) };
                // SAFETY: as above.
                let corrections = unsafe { corrections.part(token * groups, groups) };
                let x = &x[token * cols..(token + 1) * cols];
                match c.isa {
                    Isa::Avx512(isa) if groups * GROUP == cols && groups.is_multiple_of(LANES) => {
                        // SAFETY: `isa` is the proof that the CPU has the instructions.
                        unsafe {
                            wide::quantize_token(isa, format, x, values, scales, corrections)
                        };
                    }
                    isa => dispatch!(isa, s => {
                        quantize_token(s, format, x, values, scales, corrections);
                    }),
                }
            }
        };
        let each = (TASK_ELEMENTS / cols).max(1);
        if tokens <= each {
            some(0, tokens);
        } else {
            c.run(tokens.div_ceil(each), |n| some(n * each, each.min(tokens - n * each)));
        }
        Ok(())
    }
}

fn grow<T: crate::kernels::Plain>(buffer: &mut Buffer<T>, len: usize) -> Result<()> {
    if buffer.len() < len {
        *buffer = Buffer::empty();
        *buffer = Buffer::zeroed(len, "inputs as INT8")?;
    }
    Ok(())
}

/// Makes what a row's infinities and NaN call for: all products of this token are NaN.
fn make_nan(values: &mut [i8], scales: &mut [f32], corrections: &mut [i32]) {
    scales.fill(f32::NAN);
    corrections.fill(0);
    values.fill(0);
}

#[inline(always)]
fn quantize_token<S: Simd>(
    s: S,
    format: TileFormat,
    x: &[f32],
    values: &mut [i8],
    scales: &mut [f32],
    corrections: &mut [i32],
) {
    let block = format.input_groups();
    let zero = s.splat(0.0);
    let mut zeros = zero;
    let outputs = values
        .chunks_mut(block * GROUP)
        .zip(scales.chunks_mut(block))
        .zip(corrections.chunks_mut(block));
    for (x, ((values, scales), corrections)) in x.chunks(block * GROUP).zip(outputs) {
        let mut magnitude = zero;
        for x in x.chunks(GROUP) {
            let (a, b) = (s.load_part(x), s.load_part(&x[LANES.min(x.len())..]));
            let both = s.max(s.max(a, s.sub(zero, a)), s.max(b, s.sub(zero, b)));
            magnitude = s.max(magnitude, both);
            zeros = s.mul_add(b, zero, s.mul_add(a, zero, zeros));
        }
        let largest = s.max_lane(magnitude);
        if largest < SMALLEST {
            scales.fill(0.0);
            corrections.fill(0);
            values.fill(0);
            continue;
        }
        let inverse = s.splat(LARGEST / largest);
        scales.fill(largest / LARGEST);
        let groups = values.chunks_exact_mut(GROUP).zip(corrections);
        for (x, (values, correction)) in x.chunks(GROUP).zip(groups) {
            let (a, b) = (s.load_part(x), s.load_part(&x[LANES.min(x.len())..]));
            let (a, b) = (s.round(s.mul(a, inverse)), s.round(s.mul(b, inverse)));
            *correction = (s.sum(s.add(a, b)) as i32).wrapping_mul(-format.offset());
            // SAFETY: a group is twice as long as the lanes are many.
            unsafe {
                s.store_i8_ptr(values.as_mut_ptr(), a);
                s.store_i8_ptr(values.as_mut_ptr().add(LANES), b);
            }
        }
    }
    // Zero times anything finite is zero.
    if s.sum(zeros) != 0.0 {
        make_nan(values, scales, corrections);
    }
}

/// Calls `f` with this thread's quantized inputs, set to `x` (`[tokens, cols]`) for weights of
/// `format`.
pub(crate) fn with_inputs(
    c: &Compute,
    format: TileFormat,
    x: &[f32],
    tokens: usize,
    cols: usize,
    f: impl FnOnce(&QuantizedInput),
) {
    thread_local! {
        static INPUTS: std::cell::RefCell<QuantizedInput> =
            const { std::cell::RefCell::new(QuantizedInput::new()) };
    }
    INPUTS.with(|inputs| {
        // They do not outlive a pause of the computation: other calls of this thread use them.
        let result = c.prepare(|c| match inputs.try_borrow_mut() {
            Ok(mut inputs) => inputs.set(c, format, x, tokens, cols),
            Err(_) => Err(Error::internal("quantized inputs entered twice")),
        });
        let result = result.unwrap_or(Ok(()));
        match result {
            Ok(()) => f(&inputs.borrow()),
            Err(error) => c.note(Err(error)),
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::testing::{Random, bits, compute};

    /// What one token's inputs are defined to be: values, scales and corrections.
    fn defined(format: TileFormat, x: &[f32]) -> (Vec<i8>, Vec<f32>, Vec<i32>) {
        let (groups, block) = (x.len().div_ceil(GROUP), format.input_groups());
        if x.iter().any(|x| !x.is_finite()) {
            return (vec![0; groups * GROUP], vec![f32::NAN; groups], vec![0; groups]);
        }
        let (mut values, mut scales) = (vec![0; groups * GROUP], vec![0.0; groups]);
        for g in 0..groups {
            let first = g / block * block * GROUP;
            let shared = &x[first..x.len().min(first + block * GROUP)];
            let largest = shared.iter().fold(0f32, |m, x| m.max(x.abs()));
            if largest >= SMALLEST {
                scales[g] = largest / 127.0;
                let own = &x[g * GROUP..x.len().min((g + 1) * GROUP)];
                for (value, x) in values[g * GROUP..].iter_mut().zip(own) {
                    *value = (x * (127.0 / largest)).round_ties_even() as i8;
                }
            }
        }
        let sum = |values: &[i8]| values.iter().map(|&v| i32::from(v)).sum::<i32>();
        let offset = format.offset();
        let corrections = values.chunks(GROUP).map(|values| -offset * sum(values)).collect();
        (values, scales, corrections)
    }

    /// Both ways, and what is at the ends of them: blocks of zeros, of numbers too small for a
    /// scale, of ties, of fewer groups, and of no numbers at all.
    #[test]
    fn inputs_are_the_defined_ones_in_every_instruction_set() {
        let mut random = Random(11);
        for cols in [1, 32, 40, 96, 130, 480, 512, 1000, 1024, 3584] {
            let tokens = 7;
            let mut x = random.vector(tokens * cols, 3.0);
            let rows: Vec<&mut [f32]> = x.chunks_mut(cols).collect();
            let [zeros, small, ties, infinite, nan, large, lone] = rows.try_into().unwrap();
            // A group, or a whole block.
            let some = if cols < 1024 { 32 } else { 128 }.min(cols);
            zeros[..some].fill(-0.0);
            small[..some].fill(0.9 * SMALLEST);
            small[some - 1] = -SMALLEST * (1.0 - f32::EPSILON);
            ties.iter_mut().enumerate().for_each(|(n, x)| *x = n as f32 / 2.0);
            ties[..4.min(cols)].copy_from_slice(&[127.0, -0.5, 1.5, -127.0][..4.min(cols)]);
            infinite[cols - 1] = f32::NEG_INFINITY;
            nan[cols / 2] = f32::NAN;
            large.fill(f32::MAX);
            // The largest of its block is in the last group.
            lone[cols - 1] = -40.0;
            for format in [TileFormat::Int8, TileFormat::Int4Planes] {
                for isa in Isa::available() {
                    let mut inputs = QuantizedInput::new();
                    compute(isa, 2, |c| inputs.set(c, format, &x, tokens, cols)).unwrap();
                    assert_eq!(inputs.block(), format.input_groups());
                    let groups = inputs.groups();
                    for (t, x) in x.chunks(cols).enumerate() {
                        let (values, scales, corrections) = defined(format, x);
                        let place = format!("{format:?} {} {cols}, token {t}", isa.name());
                        assert_eq!(inputs.values(t)[..groups * GROUP], values, "{place}");
                        assert_eq!(inputs.corrections(t)[..groups], corrections, "{place}");
                        // One NaN is as good as another.
                        let bits = |scales| bits(scales).into_iter().map(|b| b.min(0x7fc0_0000));
                        let found = &inputs.scales(t)[..groups];
                        assert!(bits(found).eq(bits(&scales)), "{place}: {found:?} {scales:?}");
                    }
                }
            }
        }
    }
}
