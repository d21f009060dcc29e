mod quantized;

use half::{bf16, f16};

use super::*;
use crate::kernels::Cancel;
use crate::kernels::simd::Isa;
use crate::pool::Pool;
pub(super) use quantized::some_tiles;

/// A reproducible stream of numbers in -1..1.
pub(crate) struct Numbers(u64);

impl Numbers {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }
    pub fn next(&mut self) -> f32 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 40) as f32 / (1 << 23) as f32) - 1.0
    }
    pub fn take(&mut self, count: usize) -> Vec<f32> {
        (0..count).map(|_| self.next()).collect()
    }
}

/// Weights of each type, which start off the natural alignment of a vector.
enum Stored {
    Bf16(Vec<bf16>),
    F16(Vec<f16>),
    F32(Vec<f32>),
}

impl Stored {
    fn new(kind: usize, values: &[f32]) -> Self {
        let values = std::iter::once(&7.0).chain(values);
        match kind {
            0 => Self::Bf16(values.map(|&v| bf16::from_f32(v)).collect()),
            1 => Self::F16(values.map(|&v| f16::from_f32(v)).collect()),
            _ => Self::F32(values.copied().collect()),
        }
    }
    fn matrix(&self, rows: usize, cols: usize) -> Matrix<'_> {
        let weights = match self {
            Self::Bf16(w) => Weights::Bf16(&w[1..]),
            Self::F16(w) => Weights::F16(&w[1..]),
            Self::F32(w) => Weights::F32(&w[1..]),
        };
        Matrix::new(weights, rows, cols)
    }
    fn widened(&self) -> Vec<f32> {
        match self {
            Self::Bf16(w) => w[1..].iter().map(|v| v.to_f32()).collect(),
            Self::F16(w) => w[1..].iter().map(|v| v.to_f32()).collect(),
            Self::F32(w) => w[1..].to_vec(),
        }
    }
}

/// The definition of a dot product, word for word.
fn defined_dot(x: &[f32], w: &[f32], fused: bool) -> f32 {
    let mut lanes = [0f32; 16];
    for k in 0..x.len().next_multiple_of(16) {
        let (x, w) = (x.get(k).copied().unwrap_or(0.0), w.get(k).copied().unwrap_or(0.0));
        let lane = &mut lanes[k % 16];
        *lane = if fused { x.mul_add(w, *lane) } else { x * w + *lane };
    }
    for half in [8, 4, 2, 1] {
        for i in 0..half {
            lanes[i] += lanes[i + half];
        }
    }
    lanes[0]
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|v| v.to_bits()).collect()
}

const SHAPES: [(usize, usize); 10] = [
    (1, 1),
    (3, 15),
    (5, 16),
    (7, 17),
    (64, 33),
    (61, 48),
    (130, 272),
    (9, 1031),
    (25, 600),
    (7, 2100),
];

/// Every instruction set, type, shape, number of tokens and number of threads gives
/// exactly the defined sums, stored or added. (97 tokens and more go by the panel.)
#[test]
fn every_path_gives_the_defined_bits() {
    let pools = [Pool::new(1).unwrap(), Pool::new(3).unwrap()];
    let cancel = Cancel::new();
    for (at, (rows, cols)) in SHAPES.into_iter().enumerate() {
        let mut numbers = Numbers::new(at as u64);
        let (w, x) = (numbers.take(rows * cols), numbers.take(103 * cols + 1));
        // Inputs that do not start at a multiple of anything.
        let x = &x[1..];
        let before = numbers.take(103 * rows);
        for kind in 0..3 {
            let stored = Stored::new(kind, &w);
            let wide = stored.widened();
            for isa in Isa::available() {
                let fused = !matches!(isa, Isa::Scalar(_));
                let mut expected = Vec::new();
                for x in x.chunks(cols) {
                    for w in wide.chunks(cols) {
                        expected.push(defined_dot(x, w, fused));
                    }
                }
                for tokens in (1..=20).chain([36, 41, 96, 97, 98, 99, 103]) {
                    let c = Compute::new(isa, &pools[tokens % 2], &cancel);
                    let (mut stored_out, mut added) =
                        (vec![f32::NAN; tokens * rows], before[..tokens * rows].to_vec());
                    let x = &x[..tokens * cols];
                    let matrix = stored.matrix(rows, cols);
                    let mut jobs = [
                        Job { matrix, out: &mut stored_out, mode: Mode::Store },
                        Job { matrix, out: &mut added, mode: Mode::Accumulate },
                    ];
                    linear(&c, x, tokens, &mut jobs);
                    c.check().unwrap();
                    let expected = &expected[..tokens * rows];
                    let place = format!("{} {rows}x{cols} type {kind} x{tokens}", isa.name());
                    assert_eq!(bits(&stored_out), bits(expected), "{place}");
                    let sums: Vec<f32> = before.iter().zip(expected).map(|(b, e)| b + e).collect();
                    assert_eq!(bits(&added), bits(&sums), "{place}, added");
                }
            }
        }
    }
}

/// The error against exact arithmetic stays within that of lane-wise summation.
#[test]
fn sums_are_close_to_exact_ones() {
    let pool = Pool::new(2).unwrap();
    let cancel = Cancel::new();
    let (rows, cols, tokens) = (20, 3584, 13);
    let mut numbers = Numbers::new(5);
    let (w, x) = (numbers.take(rows * cols), numbers.take(tokens * cols));
    let stored = Stored::new(0, &w);
    let wide = stored.widened();
    for isa in Isa::available() {
        let c = Compute::new(isa, &pool, &cancel);
        let mut out = vec![0.0; tokens * rows];
        let matrix = stored.matrix(rows, cols);
        linear(&c, &x, tokens, &mut [Job { matrix, out: &mut out, mode: Mode::Store }]);
        for (x, out) in x.chunks(cols).zip(out.chunks(rows)) {
            for (w, &y) in wide.chunks(cols).zip(out) {
                let products = x.iter().zip(w).map(|(&x, &w)| f64::from(x) * f64::from(w));
                let exact: f64 = products.clone().sum();
                let size: f64 = products.map(f64::abs).sum();
                // 224 additions in a lane and 4 in the tree, mostly cancelling roundings.
                assert!((f64::from(y) - exact).abs() <= size * 6e-8 * 4.0, "{y} {exact}");
            }
        }
    }
}

/// SwiGLU is the two products combined, with matrices of any types.
#[test]
fn swiglu_combines_two_products() {
    let pool = Pool::new(2).unwrap();
    let cancel = Cancel::new();
    for (rows, cols) in [(1, 3), (33, 80), (70, 131), (16, 1024)] {
        let mut numbers = Numbers::new(9);
        let gates: Vec<f32> = numbers.take(rows * cols).iter().map(|v| v * 0.3).collect();
        let (gate, up) = (Stored::new(0, &gates), numbers.take(rows * cols));
        let x = numbers.take(103 * cols);
        for kind in 0..3 {
            let up = Stored::new(kind, &up);
            let mut first: Option<Vec<u32>> = None;
            for isa in Isa::available() {
                for tokens in [103, 1, 2, 5, 16, 17, 97] {
                    let c = Compute::new(isa, &pool, &cancel);
                    let x = &x[..tokens * cols];
                    let mut products = [vec![0.0; tokens * rows], vec![0.0; tokens * rows]];
                    let [g, u] = &mut products;
                    let matrices = [gate.matrix(rows, cols), up.matrix(rows, cols)];
                    let job = |matrix, out| Job { matrix, out, mode: Mode::Store };
                    linear(&c, x, tokens, &mut [job(matrices[0], g), job(matrices[1], u)]);
                    let mut out = vec![f32::NAN; tokens * rows];
                    linear_swiglu(&c, x, tokens, matrices[0], matrices[1], &mut out);
                    c.check().unwrap();
                    for ((g, u), out) in g.iter().zip(u.iter()).zip(&out) {
                        let exact = f64::from(*g) / (1.0 + (-f64::from(*g)).exp()) * f64::from(*u);
                        assert!((f64::from(*out) - exact).abs() <= exact.abs() * 6e-7 + 1e-37);
                    }
                    if !matches!(isa, Isa::Scalar(_)) {
                        let all = first.get_or_insert_with(|| bits(&out));
                        assert_eq!(bits(&out), all[..tokens * rows], "{} x{tokens}", isa.name());
                    }
                }
            }
        }
    }
}

/// Infinities and NaN in one token or one row stay there.
#[test]
fn special_values_stay_in_their_row() {
    let pool = Pool::new(1).unwrap();
    let cancel = Cancel::new();
    let (rows, cols) = (13, 37);
    for isa in Isa::available() {
        for tokens in [3, 17, 97] {
            let mut numbers = Numbers::new(1);
            let mut w = numbers.take(rows * cols);
            let mut x = numbers.take(tokens * cols);
            w[5 * cols + 36] = f32::INFINITY;
            x[2 * cols] = f32::NAN;
            let stored = Stored::new(2, &w);
            let mut out = vec![0.0; tokens * rows];
            let matrix = stored.matrix(rows, cols);
            let c = Compute::new(isa, &pool, &cancel);
            linear(&c, &x, tokens, &mut [Job { matrix, out: &mut out, mode: Mode::Store }]);
            for (t, out) in out.chunks(rows).enumerate() {
                for (n, y) in out.iter().enumerate() {
                    assert_eq!(y.is_nan(), t == 2, "{t} {n} {y}");
                    assert_eq!(y.is_infinite(), t != 2 && n == 5, "{t} {n} {y}");
                }
            }
        }
    }
}

#[test]
fn nothing_is_computed_after_a_cancel() {
    let pool = Pool::new(2).unwrap();
    let cancel = Cancel::new();
    cancel.set();
    let stored = Stored::new(0, &[1.0; 64]);
    let c = Compute::new(Isa::best(), &pool, &cancel);
    let mut out = [5.0; 4];
    let matrix = stored.matrix(4, 16);
    linear(&c, &[1.0; 16], 1, &mut [Job { matrix, out: &mut out, mode: Mode::Store }]);
    assert_eq!(out, [5.0; 4]);
    assert_eq!(c.check().unwrap_err().kind(), crate::ErrorKind::Cancelled);
}
