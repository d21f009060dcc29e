use std::sync::Arc;

use super::super::DeltaInputs;
use super::super::held::Held;
use super::*;
use crate::kernels::elementwise::{delta_gates, gated_rms_norm};
use crate::kernels::simd::Isa;
use crate::kernels::testing::{Random, bits, compute, rows};
use crate::kernels::{Cancel, causal_conv_silu};
use crate::pool::Pool;

const EPS: f32 = 1e-6;

struct Layer {
    shape: DeltaShape,
    taps: ConvTaps,
    decay: Vec<f32>,
    dt_bias: Vec<f32>,
    norm: Vec<f32>,
}

impl Layer {
    fn new(random: &mut Random, shape: DeltaShape, width: usize) -> Self {
        let channels = shape.qkv_width();
        let taps = ConvTaps::new(&random.vector(channels * width, 1.0), channels, width).unwrap();
        let decay = (0..shape.value_heads).map(|_| -random.uniform(0.0, 2.0)).collect();
        let dt_bias = random.vector(shape.value_heads, 1.0);
        Self { shape, taps, decay, dt_bias, norm: random.vector(shape.value_dim, 1.0) }
    }

    fn weights(&self) -> DeltaWeights<'_> {
        let Self { taps, decay, dt_bias, norm, .. } = self;
        DeltaWeights { taps, decay, dt_bias, norm, eps: EPS }
    }
}

/// A sequence: all that it will be fed, and its state.
#[derive(Clone)]
struct Sequence {
    projected: Vec<f32>,
    z: Vec<f32>,
    a: Vec<f32>,
    b: Vec<f32>,
    state: Held,
    history: Vec<Arc<Buffer<f32>>>,
    out: Vec<f32>,
}

impl Sequence {
    fn new(random: &mut Random, layer: &Layer, tokens: usize) -> Self {
        let (shape, channels) = (layer.shape, layer.shape.qkv_width());
        let (heads, values) = (shape.value_heads, shape.value_heads * shape.value_dim);
        let history = random.vector((layer.taps.width() - 1) * channels, 2.0);
        let state = random.vector(shape.state_len(), 1.0);
        Self {
            projected: random.vector(tokens * channels, 2.0),
            z: random.vector(tokens * values, 2.0),
            a: random.vector(tokens * heads, 2.0),
            b: random.vector(tokens * heads, 2.0),
            state: Held::new(shape, &state),
            history: rows(&history, channels),
            out: Vec::new(),
        }
    }

    /// The tokens `at..at + n` by the operations for many.
    fn many(&mut self, c: &Compute, layer: &Layer, at: usize, n: usize) {
        let (shape, channels) = (layer.shape, layer.shape.qkv_width());
        let (heads, values) = (shape.value_heads, shape.value_heads * shape.value_dim);
        let part = |x: &[f32], width: usize| x[at * width..(at + n) * width].to_vec();
        let u = part(&self.projected, channels);
        let mut mixed = u.clone();
        causal_conv_silu(c, &u, &layer.taps, Parts::new(&self.history, 0, channels), &mut mixed);
        let (a, b) = (part(&self.a, heads), part(&self.b, heads));
        let (mut g, mut beta) = (a.clone(), b.clone());
        delta_gates(c, (&a, &b), (&layer.decay, &layer.dt_bias), &mut g, &mut beta);
        let mut out = self.state.rule(c, n, DeltaInputs::Mixed(&mixed), &g, &beta);
        gated_rms_norm(c, &mut out, &part(&self.z, values), &layer.norm, EPS);
        self.out.extend(out);
        self.history.extend(rows(&u, channels));
        self.history.drain(..n);
    }
}

/// Token `at` of all sequences by `delta_step`.
fn step(c: &Compute, layer: &Layer, sequences: &mut [Sequence], at: usize) {
    let (shape, channels) = (layer.shape, layer.shape.qkv_width());
    let (heads, values) = (shape.value_heads, shape.value_heads * shape.value_dim);
    let keeps = layer.taps.width() > 1;
    let kept = |_: &_| {
        let mut buffer = Buffer::zeroed(if keeps { channels } else { 0 }, "test").unwrap();
        buffer.fill(f32::NAN);
        buffer
    };
    let mut kept: Vec<_> = sequences.iter().map(kept).collect();
    let mut outs: Vec<_> = sequences.iter().map(|_| vec![f32::NAN; values]).collect();
    let mut states: Vec<_> = sequences.iter().map(|s| s.state.clone()).collect();
    Held::step(states.iter_mut(), |states| {
        let rows: Vec<DeltaRow> = sequences
            .iter()
            .zip(kept.iter_mut().zip(&mut outs).zip(states))
            .map(|(s, ((kept, out), (before, target)))| DeltaRow {
                projected: &s.projected[at * channels..][..channels],
                z: &s.z[at * values..][..values],
                a: &s.a[at * heads..][..heads],
                b: &s.b[at * heads..][..heads],
                history: Parts::new(&s.history, 0, channels),
                kept: SharedMut::new(kept),
                before,
                target,
                out: SharedMut::new(out),
            })
            .collect();
        delta_step(c, shape, &layer.weights(), &rows);
    });
    for (s, ((state, kept), out)) in
        sequences.iter_mut().zip(states.into_iter().zip(kept).zip(outs))
    {
        s.state = state;
        if keeps {
            s.history.push(Arc::new(kept));
            s.history.remove(0);
        }
        s.out.extend(out);
    }
}

fn shape(key_heads: usize, value_heads: usize, key_dim: usize, value_dim: usize) -> DeltaShape {
    DeltaShape { key_heads, value_heads, key_dim, value_dim }
}

/// Whatever the sequences beside it, the threads and the tokens that other calls compute at
/// once, a token gives the bits of the operations for many tokens.
#[test]
fn single_tokens_have_the_bits_of_many() {
    let mut random = Random(8);
    for (shape, width) in [
        (shape(1, 1, 1, 1), 4),
        (shape(1, 3, 24, 40), 4),
        (shape(2, 4, 7, 33), 1),
        (shape(3, 3, 33, 70), 2),
        (shape(2, 6, 128, 64), 4),
        (shape(8, 8, 128, 128), 4),
    ] {
        let layer = Layer::new(&mut random, shape, width);
        for (count, threads) in [(1, 1), (1, 2), (2, 3), (5, 2), (8, 2)] {
            const TOKENS: usize = 9;
            let sequences: Vec<_> =
                (0..count).map(|_| Sequence::new(&mut random, &layer, TOKENS)).collect();
            for isa in Isa::available() {
                let mut whole = sequences.clone();
                compute(isa, 2, |c| {
                    whole.iter_mut().for_each(|s| s.many(c, &layer, 0, TOKENS));
                });
                let mut alone = sequences.clone();
                let mut single = sequences.clone();
                compute(isa, threads, |c| {
                    for at in 0..TOKENS {
                        // Two tokens of some of them come by another call.
                        for (n, s) in single.iter_mut().enumerate() {
                            if at == 4 && n % 2 == 1 {
                                s.many(c, &layer, at, 2);
                            }
                        }
                        match at {
                            4 | 5 => single.iter_mut().enumerate().for_each(|(n, s)| {
                                if n % 2 == 0 {
                                    step(c, &layer, std::slice::from_mut(s), at);
                                }
                            }),
                            _ => step(c, &layer, &mut single, at),
                        }
                        for (n, (s, alone)) in single.iter().zip(&mut alone).enumerate() {
                            alone.many(c, &layer, at, 1);
                            let done = at != 4 || n % 2 == 0;
                            assert!(!done || s.state.bits() == alone.state.bits());
                        }
                    }
                });
                for (n, (single, whole)) in single.iter().zip(&whole).enumerate() {
                    let what = format!("{shape:?}, {n} of {count}, {}", isa.name());
                    assert_eq!(bits(&single.out), bits(&whole.out), "{what}");
                    assert!(single.state.bits() == whole.state.bits(), "{what}");
                }
            }
        }
    }
}

#[test]
fn a_cancelled_call_returns() {
    let mut random = Random(9);
    let layer = Layer::new(&mut random, shape(2, 2, 16, 16), 4);
    let mut sequences = [Sequence::new(&mut random, &layer, 1)];
    let (pool, cancel) = (Pool::new(2).unwrap(), Cancel::new());
    cancel.set();
    let c = Compute::new(Isa::best(), &pool, &cancel);
    step(&c, &layer, &mut sequences, 0);
    assert!(sequences[0].out.iter().all(|x| x.is_nan()));
    assert_eq!(c.check().unwrap_err().kind(), crate::ErrorKind::Cancelled);
}
