//! Inputs of products with quantized weights, rounded to INT8.
//!
//! Each 32 inputs of a token have a scale, the largest magnitude over 127. What a token's
//! inputs become depends on them alone, and is the same in every instruction set.
#![allow(unsafe_code)]

mod wide;

use super::layout::GROUP;
use crate::dispatch;
use crate::kernels::simd::{Isa, LANES, Simd};
use crate::kernels::{Buffer, Compute};
use crate::pool::SharedMut;
use crate::{Error, Result};

/// Elements worth a task of their own.
const TASK_ELEMENTS: usize = 8 << 10;
/// What the largest magnitude of a group becomes.
const LARGEST: f32 = 127.0;
/// Smaller groups are zeros: their products vanish, and a scale would not be a normal number.
const SMALLEST: f32 = 1e-30;

/// INT8 inputs `[tokens, cols]`. It grows to the largest size asked for.
#[derive(Default)]
pub(crate) struct QuantizedInput {
    values: Buffer<i8>,
    scales: Buffer<f32>,
    corrections: Buffer<i32>,
    tokens: usize,
    groups: usize,
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
        }
    }

    /// Groups of 32 columns, the last padded with zeros.
    pub fn groups(&self) -> usize {
        self.groups
    }

    /// `[groups, 32]` of token `token`, and those of the tokens behind it.
    pub fn values(&self, token: usize) -> &[i8] {
        &self.values[token * self.groups * GROUP..self.tokens * self.groups * GROUP]
    }

    /// `[groups]`: what a value of each group is worth.
    pub fn scales(&self, token: usize) -> &[f32] {
        &self.scales[token * self.groups..self.tokens * self.groups]
    }

    /// `[groups]`: -8 times the sum of each group's values.
    pub fn corrections(&self, token: usize) -> &[i32] {
        &self.corrections[token * self.groups..self.tokens * self.groups]
    }

    /// Takes the inputs `x`, `[tokens, cols]`.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn set(&mut self, c: &Compute, x: &[f32], tokens: usize, cols: usize) -> Result<()> {
        let groups = cols.div_ceil(GROUP);
        (self.tokens, self.groups) = (0, 0);
        grow(&mut self.values, tokens * groups * GROUP)?;
        grow(&mut self.scales, tokens * groups)?;
        grow(&mut self.corrections, tokens * groups)?;
        (self.tokens, self.groups) = (tokens, groups);
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
                        unsafe { wide::quantize_token(isa, x, values, scales, corrections) };
                    }
                    isa => {
                        dispatch!(isa, s => quantize_token(s, x, values, scales, corrections));
                    }
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
    x: &[f32],
    values: &mut [i8],
    scales: &mut [f32],
    corrections: &mut [i32],
) {
    let zero = s.splat(0.0);
    let mut zeros = zero;
    let outputs = values.chunks_exact_mut(GROUP).zip(&mut *scales).zip(&mut *corrections);
    for (x, ((values, scale), correction)) in x.chunks(GROUP).zip(outputs) {
        let (a, b) = (s.load_part(x), s.load_part(&x[LANES.min(x.len())..]));
        let magnitude = s.max(s.max(a, s.sub(zero, a)), s.max(b, s.sub(zero, b)));
        let largest = s.max_lane(magnitude);
        zeros = s.mul_add(b, zero, s.mul_add(a, zero, zeros));
        if largest < SMALLEST {
            (*scale, *correction) = (0.0, 0);
            values.fill(0);
            continue;
        }
        let inverse = s.splat(LARGEST / largest);
        let (a, b) = (s.round(s.mul(a, inverse)), s.round(s.mul(b, inverse)));
        *scale = largest / LARGEST;
        *correction = (s.sum(s.add(a, b)) as i32).wrapping_mul(-8);
        // SAFETY: a group is twice as long as the lanes are many.
        unsafe {
            s.store_i8_ptr(values.as_mut_ptr(), a);
            s.store_i8_ptr(values.as_mut_ptr().add(LANES), b);
        }
    }
    // Zero times anything finite is zero.
    if s.sum(zeros) != 0.0 {
        make_nan(values, scales, corrections);
    }
}

/// Calls `f` with this thread's quantized inputs, set to `x` (`[tokens, cols]`).
pub(crate) fn with_inputs(
    c: &Compute,
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
            Ok(mut inputs) => inputs.set(c, x, tokens, cols),
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

    /// Both ways, and what is at the ends of them: groups of zeros, of numbers too small for a
    /// scale, of ties, and of no numbers at all.
    #[test]
    fn inputs_are_the_same_in_every_instruction_set() {
        let mut random = Random(11);
        for cols in [32, 40, 480, 512, 1024, 3584] {
            let tokens = 7;
            let mut x = random.vector(tokens * cols, 3.0);
            let rows: Vec<&mut [f32]> = x.chunks_mut(cols).collect();
            let [zeros, small, ties, infinite, nan, large, _] = rows.try_into().unwrap();
            zeros[..32].fill(-0.0);
            small[..32].fill(0.9 * SMALLEST);
            small[31] = -SMALLEST * (1.0 - f32::EPSILON);
            ties.iter_mut().enumerate().for_each(|(n, x)| *x = n as f32 / 2.0);
            ties[..4].copy_from_slice(&[127.0, -0.5, 1.5, -127.0]);
            infinite[cols - 1] = f32::NEG_INFINITY;
            nan[cols / 2] = f32::NAN;
            large.fill(f32::MAX);
            let mut first = None;
            for isa in Isa::available() {
                let mut inputs = QuantizedInput::new();
                compute(isa, 2, |c| inputs.set(c, &x, tokens, cols)).unwrap();
                let groups = inputs.groups();
                for (t, sound) in [true, true, true, false, false, true, true].iter().enumerate() {
                    let scales = &inputs.scales(t)[..groups];
                    assert!(scales.iter().all(|scale| scale.is_nan() != *sound));
                    for g in 0..groups {
                        let values = &inputs.values(t)[g * GROUP..(g + 1) * GROUP];
                        let sum: i32 = values.iter().map(|&v| i32::from(v)).sum();
                        assert_eq!(inputs.corrections(t)[g], -8 * sum);
                        assert!(values.iter().all(|v| *v >= -127));
                    }
                }
                let found = (
                    inputs.values(0).to_vec(),
                    // One NaN is as good as another.
                    bits(inputs.scales(0))
                        .into_iter()
                        .map(|b| b.min(0x7fc0_0000))
                        .collect::<Vec<_>>(),
                    inputs.corrections(0).to_vec(),
                );
                assert!(*first.get_or_insert_with(|| found.clone()) == found, "{}", isa.name());
            }
        }
    }
}
