use super::held::Held;
use super::*;
use crate::kernels::buffer::Parts;
use crate::kernels::simd::Isa;
use crate::kernels::testing::{Random, bits, compute, error};
use crate::kernels::{Buffer, Compute, ConvTaps};

struct Case {
    shape: DeltaShape,
    tokens: usize,
    qkv: Vec<f32>,
    g: Vec<f32>,
    beta: Vec<f32>,
    state: Vec<f32>,
}

impl Case {
    fn new(random: &mut Random, shape: DeltaShape, tokens: usize) -> Self {
        let heads = shape.value_heads;
        Self {
            shape,
            tokens,
            qkv: random.vector(tokens * shape.qkv_width(), 2.0),
            g: (0..tokens * heads).map(|_| -random.uniform(0.0, 1.5).powi(3)).collect(),
            beta: (0..tokens * heads).map(|_| random.uniform(0.0, 1.0)).collect(),
            state: random.vector(shape.state_len(), 1.0),
        }
    }

    /// The rule by definition, in `f64`: outputs, and the state behind the last whole block.
    fn oracle(&self) -> (Vec<f64>, Vec<f64>) {
        let DeltaShape { key_heads, value_heads, key_dim, value_dim } = self.shape;
        let mut state: Vec<f64> = self.state.iter().map(|&x| f64::from(x)).collect();
        let (mut out, mut kept) = (Vec::new(), state.clone());
        let unit = |x: &[f32]| -> Vec<f64> {
            let sum: f64 = x.iter().map(|&x| f64::from(x).powi(2)).sum();
            x.iter().map(|&x| f64::from(x) / (sum + 1e-6).sqrt()).collect()
        };
        for t in 0..self.tokens {
            let row = &self.qkv[t * self.shape.qkv_width()..][..self.shape.qkv_width()];
            for h in 0..value_heads {
                let kh = h / (value_heads / key_heads);
                let q = unit(&row[kh * key_dim..][..key_dim]);
                let k = unit(&row[(key_heads + kh) * key_dim..][..key_dim]);
                let v = &row[2 * key_heads * key_dim + h * value_dim..][..value_dim];
                let decay = f64::from(self.g[t * value_heads + h]).exp();
                let beta = f64::from(self.beta[t * value_heads + h]);
                let s = &mut state[h * key_dim * value_dim..][..key_dim * value_dim];
                s.iter_mut().for_each(|x| *x *= decay);
                for j in 0..value_dim {
                    let known: f64 = (0..key_dim).map(|i| s[i * value_dim + j] * k[i]).sum();
                    let delta = beta * (f64::from(v[j]) - known);
                    (0..key_dim).for_each(|i| s[i * value_dim + j] += k[i] * delta);
                    let read: f64 = (0..key_dim).map(|i| s[i * value_dim + j] * q[i]).sum();
                    out.push(read / (key_dim as f64).sqrt());
                }
            }
            if (t + 1).is_multiple_of(BLOCK_TOKENS) {
                kept.clone_from(&state);
            }
        }
        (out, kept)
    }

    /// Outputs and state, from calls for as many tokens each as `chunks` says.
    fn run(&self, isa: Isa, threads: usize, chunks: &[usize]) -> (Vec<f32>, Held) {
        let (width, heads) = (self.shape.qkv_width(), self.shape.value_heads);
        let (mut state, mut out, mut at) = (Held::new(self.shape, &self.state), Vec::new(), 0);
        compute(isa, threads, |c| {
            for &n in chunks {
                let inputs = DeltaInputs::Mixed(&self.qkv[at * width..(at + n) * width]);
                let gates = at * heads..(at + n) * heads;
                let (g, beta) = (&self.g[gates.clone()], &self.beta[gates]);
                out.extend(state.rule(c, n, inputs, g, beta));
                at += n;
            }
        });
        (out, state)
    }

    fn check(&self, random: &mut Random, tolerance: f64) {
        let (want, want_state) = self.oracle();
        let mut first: Option<(Vec<f32>, Held)> = None;
        for isa in Isa::available() {
            let whole = self.run(isa, 1, &[self.tokens]);
            let what = format!("{:?}, {} tokens, {}", self.shape, self.tokens, isa.name());
            assert!(error(&whole.0, &want, 1e-3) < tolerance, "{what}");
            assert!(error(whole.1.base(), &want_state, 1e-3) < tolerance, "{what}");
            for threads in [1, 2, 3, 5] {
                let pieces = self.run(isa, threads, &random.split(self.tokens, 1 + 30 * threads));
                assert_eq!(bits(&pieces.0), bits(&whole.0), "{what}, {threads} threads");
                assert!(pieces.1.bits() == whole.1.bits(), "{what}, {threads} threads");
            }
            if isa.name() != "scalar" {
                let first = first.get_or_insert_with(|| whole.clone());
                assert_eq!(bits(&whole.0), bits(&first.0), "{what}");
                assert!(whole.1.bits() == first.1.bits(), "{what}");
            }
        }
    }
}

fn shape(key_heads: usize, value_heads: usize, key_dim: usize, value_dim: usize) -> DeltaShape {
    DeltaShape { key_heads, value_heads, key_dim, value_dim }
}

#[test]
fn follows_the_definition_under_any_chunking() {
    let mut random = Random(2);
    for shape in [
        shape(1, 1, 1, 1),
        shape(2, 2, 16, 16),
        shape(1, 3, 24, 40),
        shape(2, 4, 7, 33),
        shape(3, 3, 33, 70),
        shape(4, 4, 128, 128),
        shape(2, 6, 128, 64),
    ] {
        for tokens in [1, 2, 3, 4, 5, 7, 64, 65, 150] {
            Case::new(&mut random, shape, tokens).check(&mut random, 3e-6);
        }
    }
}

#[test]
fn extreme_gates_and_inputs() {
    let mut random = Random(3);
    let mut case = Case::new(&mut random, shape(2, 4, 32, 48), 40);
    for (n, (g, beta)) in case.g.iter_mut().zip(&mut case.beta).enumerate() {
        *g = [0.0, -1e-7, -50.0, -300.0, f32::MIN][n % 5];
        *beta = [0.0, 1.0, 1.0][n % 3];
    }
    // Keys and queries of zeros, and very large ones.
    let width = case.shape.qkv_width();
    case.qkv[..width].fill(0.0);
    case.qkv[2 * width..3 * width].iter_mut().for_each(|x| *x *= 1e6);
    case.check(&mut random, 3e-6);
}

#[test]
fn long_sequences_stay_accurate() {
    let mut random = Random(4);
    Case::new(&mut random, shape(1, 1, 64, 32), 2000).check(&mut random, 3e-6);
}

#[test]
fn no_tokens_keep_the_state() {
    let mut random = Random(5);
    let case = Case::new(&mut random, shape(1, 2, 8, 8), 0);
    assert_eq!(case.run(Isa::best(), 2, &[0]).1.base(), case.state);
}

#[test]
fn a_cancelled_call_returns() {
    let case = Case::new(&mut Random(6), shape(2, 2, 16, 16), 3);
    let (pool, cancel) = (crate::pool::Pool::new(2).unwrap(), crate::kernels::Cancel::new());
    cancel.set();
    let c = Compute::new(Isa::best(), &pool, &cancel);
    let mut state = Held::new(case.shape, &case.state);
    let out = state.rule(&c, 3, DeltaInputs::Mixed(&case.qkv), &case.g, &case.beta);
    assert!(out.iter().all(|x| x.is_nan()));
    assert_eq!(c.check().unwrap_err().kind(), crate::ErrorKind::Cancelled);
    assert_eq!(state.base(), case.state);
}

#[test]
fn a_convolution_before_it_is_the_same_done_on_the_way() {
    let mut random = Random(8);
    for (shape, width) in [
        (shape(1, 1, 1, 1), 4),
        (shape(2, 4, 7, 33), 3),
        (shape(3, 3, 33, 70), 4),
        (shape(4, 4, 128, 128), 4),
    ] {
        let channels = shape.qkv_width();
        let taps = random.vector(channels * width, 1.0);
        let taps = ConvTaps::new(&taps, channels, width).unwrap();
        let history: Vec<_> = (1..width)
            .map(|_| {
                let mut row = Buffer::zeroed(channels, "test").unwrap();
                row.copy_from_slice(&random.vector(channels, 2.0));
                std::sync::Arc::new(row)
            })
            .collect();
        let history = Parts::new(&history, 0, channels);
        for tokens in [1, 3, 4, 70, 130] {
            let case = Case::new(&mut random, shape, tokens);
            for isa in Isa::available() {
                let run = |threads, inputs| {
                    let mut state = Held::new(shape, &case.state);
                    let out = compute(isa, threads, |c| {
                        state.rule(c, tokens, inputs, &case.g, &case.beta)
                    });
                    (bits(&out), state.bits())
                };
                let mut mixed = vec![0.0; case.qkv.len()];
                compute(isa, 2, |c| {
                    crate::kernels::causal_conv_silu(c, &case.qkv, &taps, history, &mut mixed);
                });
                let want = run(1, DeltaInputs::Mixed(&mixed));
                for threads in [1, 2, 3, 5] {
                    let found = run(threads, DeltaInputs::Projected(&case.qkv, &taps, history));
                    assert!(found == want, "{shape:?}, {tokens} tokens, {}", isa.name());
                }
            }
        }
    }
}
