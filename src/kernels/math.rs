//! Functions of sixteen lanes, by polynomials of our own: the same operations, and so the
//! same bits, in every instruction set with fused multiply-add.
//!
//! Errors are against `f64`, measured over the whole range (see the tests): at most
//! 1 ulp for [`exp`], 3 ulp for the others (of which results below 1e-36 may come out as 0).
//! NaN comes out as NaN.

use super::simd::Simd;

const LOG2_E: f32 = std::f32::consts::LOG2_E;
/// ln 2 in two parts; the first has so few bits that its product with any exponent of
/// `f32` is exact.
const LN_2_HIGH: f32 = 0.693_359_4;
const LN_2_LOW: f32 = -2.121_944_4e-4;

/// `e^x`: 0 below about -104, infinite above about 88.72, with gradual underflow.
#[inline(always)]
pub fn exp<S: Simd>(s: S, x: S::F32) -> S::F32 {
    // `max` and `min` give their second operand when one is NaN. Beyond these bounds the
    // result is 0 or infinite already at the bound.
    let x = s.min(s.splat(89.0), s.max(s.splat(-104.5), x));
    let n = s.round(s.mul(x, s.splat(LOG2_E)));
    let r = s.mul_add(n, s.splat(-LN_2_HIGH), x);
    let r = s.mul_add(n, s.splat(-LN_2_LOW), r);
    // e^r = 1 + r + r^2 q(r) on |r| <= ln(2)/2, minimax, relative error 3.1e-9.
    let q = s.splat(0.001_381_459_9);
    let q = s.mul_add(q, r, s.splat(0.008_368_717));
    let q = s.mul_add(q, r, s.splat(0.041_668_39));
    let q = s.mul_add(q, r, s.splat(0.166_665_21));
    let q = s.mul_add(q, r, s.splat(0.499_999_94));
    let p = s.add(s.mul_add(q, s.mul(r, r), r), s.splat(1.0));
    s.scale_by_exp2(p, n)
}

/// `1 / (1 + e^-x)`
#[inline(always)]
pub fn sigmoid<S: Simd>(s: S, x: S::F32) -> S::F32 {
    let one = s.splat(1.0);
    s.div(one, s.add(one, exp(s, s.sub(s.splat(0.0), x))))
}

/// `x * sigmoid(x)`, computed as `x / (1 + e^-x)`.
#[inline(always)]
pub fn silu<S: Simd>(s: S, x: S::F32) -> S::F32 {
    s.div(x, s.add(s.splat(1.0), exp(s, s.sub(s.splat(0.0), x))))
}

/// `ln(1 + e^x)`, without overflow: `max(x, 0) + ln(1 + e^-|x|)`.
#[inline(always)]
pub fn softplus<S: Simd>(s: S, x: S::F32) -> S::F32 {
    let minus = s.sub(s.splat(0.0), x);
    // The smaller of x and -x; NaN stays NaN because x is the second operand.
    let y = exp(s, s.min(minus, x));
    // ln(1 + y) = 2 artanh(t) with t = y / (2 + y) <= 1/3, artanh(t) = t + t u h(u) for
    // u = t^2: minimax, relative error 4.6e-9.
    let t = s.div(y, s.add(s.splat(2.0), y));
    let u = s.mul(t, t);
    let h = s.splat(0.140_122_3);
    let h = s.mul_add(h, u, s.splat(0.139_995_71));
    let h = s.mul_add(h, u, s.splat(0.200_108_5));
    let h = s.mul_add(h, u, s.splat(0.333_332_06));
    let artanh = s.mul_add(s.mul(t, u), h, t);
    s.mul_add(s.splat(2.0), artanh, s.max(s.splat(0.0), x))
}

#[cfg(test)]
mod tests;
