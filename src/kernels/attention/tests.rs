use super::*;
use crate::kernels::simd::Isa;
use crate::kernels::testing::{Random, bits, compute, error};

#[derive(Clone)]
struct Case {
    shape: AttentionShape,
    element: KvElement,
    scale: f32,
    /// Tokens in the cache before the first row.
    before: usize,
    /// Rows.
    tokens: usize,
    q: Vec<f32>,
    keys: Vec<f32>,
    values: Vec<f32>,
}

impl Case {
    fn new(
        random: &mut Random,
        shape: AttentionShape,
        element: KvElement,
        before: usize,
        tokens: usize,
    ) -> Self {
        let width = shape.kv_heads * shape.head_dim;
        Self {
            shape,
            element,
            scale: 1.0 / (shape.head_dim as f32).sqrt(),
            before,
            tokens,
            q: random.vector(tokens * shape.q_heads * shape.head_dim, 3.0),
            keys: random.vector((before + tokens) * width, 3.0),
            values: random.vector((before + tokens) * width, 1.0),
        }
    }

    /// A cache that holds the first `tokens` tokens.
    fn cache(&self, isa: Isa, tokens: usize) -> KvPages {
        let AttentionShape { kv_heads, head_dim, .. } = self.shape;
        let n = tokens * kv_heads * head_dim;
        let mut kv =
            KvPages::new(crate::kernels::KvShape { kv_heads, head_dim, element: self.element });
        kv.write(isa, 0, &self.keys[..n], &self.values[..n]).unwrap();
        kv
    }

    /// What the cache makes of `rows`.
    fn stored(&self, rows: &[f32]) -> Vec<f64> {
        match self.element {
            KvElement::F32 => rows.iter().map(|&x| f64::from(x)).collect(),
            KvElement::F16 => rows.iter().map(|&x| f16::from_f32(x).to_f64()).collect(),
            KvElement::I8 => rows
                .chunks(self.shape.head_dim)
                .flat_map(|row| {
                    let largest = row.iter().fold(0.0f32, |max, x| max.max(x.abs()));
                    let (scale, inverse) = (largest / 127.0, 127.0 / largest);
                    let integer = move |x: &f32| f64::from((x * inverse).round_ties_even());
                    row.iter().map(move |x| integer(x) * f64::from(scale))
                })
                .collect(),
        }
    }

    /// Attention by definition, in `f64`, on what the cache stores.
    fn oracle(&self) -> Vec<f64> {
        let AttentionShape { q_heads, kv_heads, head_dim } = self.shape;
        let (keys, values) = (self.stored(&self.keys), self.stored(&self.values));
        let mut out = Vec::new();
        for t in 0..self.tokens {
            for h in 0..q_heads {
                let q = &self.q[(t * q_heads + h) * head_dim..][..head_dim];
                let at = |j: usize| (j * kv_heads + h / (q_heads / kv_heads)) * head_dim;
                let scores: Vec<f64> = (0..=self.before + t)
                    .map(|j| {
                        let key = &keys[at(j)..][..head_dim];
                        q.iter().zip(key).map(|(&q, &k)| f64::from(q) * k).sum::<f64>()
                            * f64::from(self.scale)
                    })
                    .collect();
                let max = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let weights: Vec<f64> = scores.iter().map(|s| (s - max).exp()).collect();
                let sum: f64 = weights.iter().sum();
                out.extend((0..head_dim).map(|d| {
                    let mean = |(j, w): (usize, &f64)| w * values[at(j) + d];
                    weights.iter().enumerate().map(mean).sum::<f64>() / sum
                }));
            }
        }
        out
    }

    /// Rows `first..first + n`, from a cache that ends with the last of them or later.
    fn rows(&self, isa: Isa, threads: usize, kv: &KvPages, first: usize, n: usize) -> Vec<f32> {
        let width = self.shape.q_heads * self.shape.head_dim;
        let mut out = vec![f32::NAN; n * width];
        let q = &self.q[first * width..][..n * width];
        compute(isa, threads, |c| {
            attention(c, self.shape, n, self.before + first, q, kv, self.scale, &mut out);
        });
        out
    }

    fn check(&self, random: &mut Random, tolerance: f64) {
        let want = self.oracle();
        let mut first: Option<Vec<f32>> = None;
        for isa in Isa::available() {
            let what = format!(
                "{:?} {:?}, {} + {} tokens, {}",
                self.shape,
                self.element,
                self.before,
                self.tokens,
                isa.name()
            );
            let kv = self.cache(isa, self.before + self.tokens);
            let whole = self.rows(isa, 1, &kv, 0, self.tokens);
            let found = error(&whole, &want, 1e-3);
            assert!(found < tolerance, "{what}: {found}");
            for threads in [1, 2, 3] {
                let most = [1, 7, 60][random.below(3)];
                let (mut pieces, mut at) = (Vec::new(), 0);
                for n in random.split(self.tokens, most) {
                    // Half of the time the later tokens are not in the cache yet.
                    if random.below(2) == 0 {
                        let kv = self.cache(isa, self.before + at + n);
                        pieces.extend(self.rows(isa, threads, &kv, at, n));
                    } else {
                        pieces.extend(self.rows(isa, threads, &kv, at, n));
                    }
                    at += n;
                }
                assert_eq!(bits(&pieces), bits(&whole), "{what}, up to {most} at a time");
            }
            if isa.name() != "scalar" {
                let first = first.get_or_insert_with(|| whole.clone());
                assert_eq!(bits(&whole), bits(first), "{what}");
            }
        }
    }
}

fn shape(q_heads: usize, kv_heads: usize, head_dim: usize) -> AttentionShape {
    AttentionShape { q_heads, kv_heads, head_dim }
}

#[test]
fn follows_the_definition_under_any_chunking() {
    let mut random = Random(7);
    for element in [KvElement::F32, KvElement::F16, KvElement::I8] {
        for shape in
            [shape(1, 1, 1), shape(4, 2, 16), shape(6, 1, 40), shape(10, 2, 21), shape(3, 3, 80)]
        {
            for (before, tokens) in [(0, 1), (0, 70), (63, 2), (100, 13)] {
                Case::new(&mut random, shape, element, before, tokens).check(&mut random, 2e-6);
            }
        }
    }
}

#[test]
fn segments_are_merged_the_same_way_for_one_row_and_for_many() {
    let mut random = Random(8);
    for element in [KvElement::F32, KvElement::F16, KvElement::I8] {
        for (before, tokens) in [(500, 30), (1023, 3), (1500, 60)] {
            let case = Case::new(&mut random, shape(8, 2, 32), element, before, tokens);
            case.check(&mut random, 2e-6);
        }
    }
}

#[test]
fn the_shapes_of_the_models() {
    let mut random = Random(9);
    for shape in [shape(8, 2, 256), shape(24, 4, 256)] {
        for element in [KvElement::F16, KvElement::I8] {
            Case::new(&mut random, shape, element, 500, 20).check(&mut random, 8e-6);
        }
    }
}

#[test]
fn large_scores_and_growing_maxima() {
    let mut random = Random(10);
    let mut case = Case::new(&mut random, shape(4, 2, 32), KvElement::F32, 600, 20);
    // Keys that grow along the context, so that the running maximum keeps changing, and
    // scores far beyond what exp can take.
    let width = 64;
    for (n, key) in case.keys.iter_mut().enumerate() {
        *key *= (n / width) as f32 * 0.3;
    }
    case.scale = 1.0;
    case.check(&mut random, 2e-4);
    case.scale = 0.0;
    case.check(&mut random, 2e-6);
}

/// What is lost by narrow keys and values, beside 32 bits: the figures of docs/quality.md.
#[test]
fn narrow_formats_stay_close_to_the_wide_one() {
    let mut random = Random(12);
    let shape = shape(8, 2, 256);
    let case = Case::new(&mut random, shape, KvElement::F32, 1000, 8);
    let wide = case.rows(Isa::best(), 1, &case.cache(Isa::best(), 1008), 0, 8);
    for (element, most) in [(KvElement::F16, 5e-4), (KvElement::I8, 2e-2)] {
        let case = Case { element, ..case.clone() };
        let narrow = case.rows(Isa::best(), 1, &case.cache(Isa::best(), 1008), 0, 8);
        let norm = |x: &mut dyn Iterator<Item = f32>| x.map(|x| x * x).sum::<f32>().sqrt();
        let lost = norm(&mut narrow.iter().zip(&wide).map(|(a, b)| a - b));
        let lost = lost / norm(&mut wide.iter().copied());
        assert!(lost > 0.0 && lost < most, "{element:?}: {lost}");
    }
}

#[test]
fn an_unsound_row_in_eight_bits_reaches_only_those_that_see_it() {
    let mut random = Random(13);
    let mut case = Case::new(&mut random, shape(4, 2, 32), KvElement::I8, 30, 10);
    let width = 64;
    case.keys[35 * width] = f32::NAN;
    case.values[35 * width] = f32::NAN;
    for isa in Isa::available() {
        let out = case.rows(isa, 1, &case.cache(isa, 40), 0, 10);
        for (t, row) in out.chunks_exact(4 * 32).enumerate() {
            assert_eq!(row.iter().any(|x| x.is_nan()), t >= 5, "{}, row {t}", isa.name());
        }
    }
}

#[test]
fn a_cancelled_call_returns() {
    let case = Case::new(&mut Random(11), shape(4, 2, 16), KvElement::F16, 0, 20);
    let kv = case.cache(Isa::best(), 20);
    let (pool, cancel) = (crate::pool::Pool::new(2).unwrap(), crate::kernels::Cancel::new());
    cancel.set();
    let c = Compute::new(Isa::best(), &pool, &cancel);
    let mut out = vec![7.0; case.q.len()];
    attention(&c, case.shape, 20, 0, &case.q, &kv, 1.0, &mut out);
    assert!(out.iter().all(|&x| x == 7.0));
}
