use super::super::simd::{Isa, LANES};
use super::*;
use crate::dispatch;

#[derive(Clone, Copy, Debug)]
enum Function {
    Exp,
    Sigmoid,
    Silu,
    Softplus,
}

impl Function {
    const ALL: [Self; 4] = [Self::Exp, Self::Sigmoid, Self::Silu, Self::Softplus];

    #[inline(always)]
    fn lanes<S: Simd>(self, s: S, x: S::F32) -> S::F32 {
        match self {
            Self::Exp => exp(s, x),
            Self::Sigmoid => sigmoid(s, x),
            Self::Silu => silu(s, x),
            Self::Softplus => softplus(s, x),
        }
    }

    fn exact(self, x: f64) -> f64 {
        match self {
            Self::Exp => x.exp(),
            Self::Sigmoid => 1.0 / (1.0 + (-x).exp()),
            Self::Silu => x / (1.0 + (-x).exp()),
            Self::Softplus => x.max(0.0) + (-x.abs()).exp().ln_1p(),
        }
    }

    fn apply(self, isa: Isa, x: &mut [f32]) {
        dispatch!(isa, s => for x in x.chunks_exact_mut(LANES) {
            let y = self.lanes(s, s.load(x));
            s.store(x, y);
        });
    }
}

/// Distance from the exact value in units of the last place at that value.
fn ulps(value: f32, exact: f64) -> f64 {
    let (magnitude, smallest) = (exact.abs() as f32, f32::from_bits(1));
    let ulp = f64::from((f32::from_bits(magnitude.to_bits() + 1) - magnitude).max(smallest));
    (f64::from(value) - exact).abs() / ulp
}

/// Every 1021st number of both signs up to where the functions are flat.
fn inputs() -> Vec<f32> {
    let last = 120f32.to_bits();
    let positive = (0..last).step_by(1021).map(f32::from_bits);
    let mut all: Vec<f32> = positive.flat_map(|x| [x, -x]).collect();
    all.resize(all.len().next_multiple_of(LANES), 0.0);
    all
}

/// The bounds that the module's comment states.
#[test]
fn errors_are_small() {
    for function in Function::ALL {
        let bound = match function {
            Function::Exp => 1.0,
            _ => 3.0,
        };
        for isa in Isa::available() {
            let inputs = inputs();
            let mut outputs = inputs.clone();
            function.apply(isa, &mut outputs);
            let mut worst = (0.0, 0.0);
            for (&x, &y) in inputs.iter().zip(&outputs) {
                let exact = function.exact(f64::from(x));
                if exact > f64::from(f32::MAX) {
                    assert_eq!(y, f32::INFINITY, "{function:?}({x})");
                } else if exact.abs() < 1e-36 && !matches!(function, Function::Exp) {
                    // The quotient by an infinite exponential.
                    assert!((f64::from(y) - exact).abs() < 1e-36, "{function:?}({x})");
                } else if ulps(y, exact) > worst.0 {
                    worst = (ulps(y, exact), x);
                }
            }
            println!("{function:?} {}: {:.2} ulp at {}", isa.name(), worst.0, worst.1);
            assert!(worst.0 <= bound, "{function:?} {}: {worst:?}", isa.name());
        }
    }
}

#[test]
fn fused_instruction_sets_agree_bit_for_bit() {
    for function in Function::ALL {
        let mut first: Option<Vec<u32>> = None;
        for isa in Isa::available().filter(|isa| !matches!(isa, Isa::Scalar(_))) {
            let mut values = inputs();
            function.apply(isa, &mut values);
            let bits: Vec<u32> = values.iter().map(|v| v.to_bits()).collect();
            assert_eq!(first.get_or_insert_with(|| bits.clone()), &bits, "{function:?}");
        }
    }
}

#[test]
fn extremes() {
    let infinite = f32::INFINITY;
    let cases = [
        (
            Function::Exp,
            [(infinite, infinite), (-infinite, 0.0), (1e30, infinite), (-1e30, 0.0), (0.0, 1.0)],
        ),
        (
            Function::Sigmoid,
            [(infinite, 1.0), (-infinite, 0.0), (1e30, 1.0), (-1e30, 0.0), (0.0, 0.5)],
        ),
        (
            Function::Silu,
            [(infinite, infinite), (1e30, 1e30), (-1e30, -0.0), (0.0, 0.0), (-200.0, -0.0)],
        ),
        (
            Function::Softplus,
            [(infinite, infinite), (-infinite, 0.0), (1e30, 1e30), (-1e30, 0.0), (50.0, 50.0)],
        ),
    ];
    for isa in Isa::available() {
        for (function, cases) in cases {
            for (x, expected) in cases {
                let mut values = [x; LANES];
                function.apply(isa, &mut values);
                assert_eq!(values, [expected; LANES], "{function:?}({x}) {}", isa.name());
            }
            let mut values = [f32::NAN; LANES];
            function.apply(isa, &mut values);
            assert!(values.iter().all(|v| v.is_nan()), "{function:?}(NaN) {}", isa.name());
        }
    }
}
