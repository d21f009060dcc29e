use super::*;
use crate::kernels::quantized::{quantize, split};
use crate::kernels::testing::{Random, bits, compute};
use crate::kernels::{Isa, Job, TileFormat, linear};

const FORMATS: [TileFormat; 2] = [TileFormat::Int8Planes, TileFormat::Int4Planes];

type Adjust<'a> = &'a mut dyn FnMut(&mut [f32]);

fn normal(random: &mut Random, count: usize) -> Vec<f32> {
    (0..count).map(|_| random.vector(12, 0.5).iter().sum()).collect()
}

fn in_planes(w: &[f32], rows: usize, cols: usize, format: TileFormat) -> Vec<u8> {
    let mut whole = vec![0; format.bytes(rows, cols).unwrap()];
    let mut tiles = whole.clone();
    let (first, rest) = tiles.split_at_mut(rows.div_ceil(TILE_ROWS) * format.tile_bytes(cols));
    let matrix = Matrix::new(Weights::F32(w), rows, cols);
    compute(Isa::best(), 2, |c| {
        quantize(c, &matrix, 0..rows, format.whole(), &mut whole).unwrap();
        split(c, format.whole(), cols, &whole, first, rest);
    });
    tiles
}

fn fast<R>(isa: Isa, f: impl FnOnce(&Compute) -> R) -> R {
    compute(isa, 2, |c| f(&Compute::new(c.isa, c.pool, c.cancel).with_mode(ComputeMode::Fast)))
}

/// The logits that choices of the `most` largest of the first `tokens` need, or none; checks
/// that nothing that belongs to the largest is missing, and that what is there is exact.
fn largest(
    c: &Compute,
    planes: &Planes,
    matrix: &Matrix,
    x: &[f32],
    (tokens, most): (usize, usize),
    adjust: &mut dyn FnMut(&mut [f32]),
) -> Option<Vec<f32>> {
    let mut all = vec![0.0; matrix.rows];
    linear(c, x, 1, &mut [Job::store(*matrix, &mut all)]);
    let mut some = vec![f32::NAN; matrix.rows];
    let scratch = &mut PlanesScratch::default();
    let mut choices = [Choice { tokens, most, adjust: &mut *adjust }];
    planes.largest(c, matrix, x, &mut choices, scratch, &mut some).unwrap()?;
    let mut adjusted = all[..tokens].to_vec();
    adjust(&mut adjusted);
    let mut sorted = adjusted.clone();
    sorted.sort_by(|a, b| b.total_cmp(a));
    let least = sorted[most - 1];
    for (row, &logit) in some.iter().enumerate() {
        let belongs = row < tokens && adjusted[row] >= least;
        assert!(!belongs || logit != f32::NEG_INFINITY, "row {row} of {tokens}, most {most}");
        assert!(
            logit == f32::NEG_INFINITY || (row < tokens && logit.to_bits() == all[row].to_bits())
        );
    }
    Some(some)
}

/// Weights of which some rows fit the inputs, as in a trained model.
fn peaked(random: &mut Random, x: &[f32], rows: usize) -> Vec<f32> {
    let mut w = normal(random, rows * x.len());
    for _ in 0..30 {
        let (row, part) = (random.below(rows), random.uniform(0.3, 1.5));
        for (w, x) in w[row * x.len()..].iter_mut().zip(x) {
            *w += part * x;
        }
    }
    w
}

#[test]
fn the_largest_are_among_them() {
    let (rows, cols) = (8190, 256);
    let mut random = Random(1);
    let x = normal(&mut random, cols);
    for format in FORMATS {
        for (peaks, most) in [(true, 1), (true, 20), (false, 1), (false, 20)] {
            let w = match peaks {
                true => peaked(&mut random, &x, rows),
                false => normal(&mut random, rows * cols),
            };
            let tiles = in_planes(&w, rows, cols, format);
            let matrix = Matrix::new(Weights::Tiles(format, &tiles), rows, cols);
            for isa in Isa::available() {
                let planes = Planes::default();
                for tokens in [8000, 8190] {
                    let nothing = &mut |_: &mut [f32]| ();
                    let bias = &mut |logits: &mut [f32]| {
                        logits[5] += 30.0;
                        logits[6] = f32::NEG_INFINITY;
                        logits[70..90].iter_mut().for_each(|v| *v *= 0.7);
                    };
                    let adjusts: [Adjust<'_>; 2] = [nothing, bias];
                    for adjust in adjusts {
                        fast(isa, |c| largest(c, &planes, &matrix, &x, (tokens, most), adjust));
                    }
                }
                let counts = planes.counts();
                let (choices, failures) = (counts.choices, counts.failures);
                println!("{format:?} peaks {peaks} most {most}: {counts:?}");
                // So few rows without any peak are many candidates for two bits.
                let (all, none) = (choices == 4, failures == 4);
                let expected = match (peaks, format.is_int8(), most) {
                    (true, ..) | (false, true, 1) => all,
                    (false, false, _) => none,
                    _ => true,
                };
                assert!(expected, "{counts:?}");
                assert!(counts.rows <= choices * 8192 / 4);
            }
        }
    }
}

#[test]
fn choices_together_are_those_alone() {
    let (rows, cols) = (16384, 128);
    let mut random = Random(2);
    for format in FORMATS {
        let x = normal(&mut random, 5 * cols);
        let mut w = normal(&mut random, rows * cols);
        for (n, x) in x.chunks(cols).enumerate() {
            for row in [100 * n, 5000 + n] {
                w[row * cols..][..cols].iter_mut().zip(x).for_each(|(w, x)| *w += 2.0 * x);
            }
        }
        let tiles = in_planes(&w, rows, cols, format);
        let matrix = Matrix::new(Weights::Tiles(format, &tiles), rows, cols);
        for isa in Isa::available() {
            fast(isa, |c| {
                let planes = Planes::default();
                let alone: Vec<_> = x
                    .chunks(cols)
                    .map(|x| largest(c, &planes, &matrix, x, (rows, 2), &mut |_| ()).unwrap())
                    .collect();
                let mut adjusts = [(); 5].map(|()| |_: &mut [f32]| ());
                let mut choices: Vec<_> = adjusts
                    .iter_mut()
                    .map(|adjust| Choice { tokens: rows, most: 2, adjust })
                    .collect();
                assert!(planes.are_of_use(c, &matrix, &choices[..1]));
                let mut together = vec![0.0; 5 * rows];
                let scratch = &mut PlanesScratch::default();
                let rows =
                    planes.largest(c, &matrix, &x, &mut choices, scratch, &mut together).unwrap();
                assert!(rows.is_some());
                assert_eq!(bits(&together), bits(&alone.concat()), "{format:?} {}", isa.name());
            });
        }
    }
}

/// Whatever the weights and inputs, the largest are not missed: where the bounds do not tell
/// rows apart or do not hold, all are asked for.
#[test]
fn weights_against_the_bounds() {
    let (rows, cols) = (5000, 160);
    let mut random = Random(3);
    let x = normal(&mut random, cols);
    let positive: Vec<f32> = x.iter().map(|v| v.abs() + 0.1).collect();
    let mut huge = x.clone();
    huge[37] = 1e5;
    let peaks = peaked(&mut random, &x, rows);
    // All rows the same.
    let equal = peaks[..cols].repeat(rows);
    // All weights of a row the same, so that all residuals have one sign.
    let mut flat = Vec::new();
    for row in 0..rows {
        let value = 1.0 - (row * 7919 % rows) as f32 / rows as f32 * 0.05;
        flat.extend(std::iter::repeat_n(value, cols));
        flat[row * cols] = 1.1;
        flat[row * cols + 32..row * cols + 35].fill(-1.1);
    }
    // Rows in pairs; the second differs from the first by a step of one weight.
    let mut pairs = peaks.clone();
    for row in (0..rows).step_by(2) {
        let (first, second) = pairs[row * cols..][..2 * cols].split_at_mut(cols);
        second.copy_from_slice(first);
        let at = 1 + row / 2 % 31;
        let most = first[..32].iter().fold(0f32, |m, v| m.max(v.abs()));
        second[at] += most / 120.0 * x[at].signum();
    }
    let cases = [
        ("equal", &equal, &x, Some(false)),
        ("flat", &flat, &positive, None),
        ("pairs", &pairs, &x, Some(true)),
        ("huge", &peaks, &huge, None),
        ("peaks", &peaks, &x, Some(true)),
    ];
    for (name, w, x, works) in cases {
        for format in FORMATS {
            let tiles = in_planes(w, rows, cols, format);
            let matrix = Matrix::new(Weights::Tiles(format, &tiles), rows, cols);
            for isa in Isa::available() {
                for most in [1, 2, 20] {
                    let planes = Planes::default();
                    fast(isa, |c| largest(c, &planes, &matrix, x, (rows, most), &mut |_| ()));
                    let counts = planes.counts();
                    println!("{name} {format:?} {} {most}: {counts:?}", isa.name());
                    assert!(works.is_none_or(|works| works == (counts.failures == 0)));
                }
            }
        }
    }
}

#[test]
fn what_is_not_a_number_asks_for_all() {
    let (rows, cols) = (5000, 64);
    let mut random = Random(4);
    let x = normal(&mut random, cols);
    let w = peaked(&mut random, &x, rows);
    for format in FORMATS {
        let mut tiles = in_planes(&w, rows, cols, format);
        let at = 250 * format.tile_bytes(cols) + format.scales_at(1);
        tiles[at..at + 2].copy_from_slice(&half::f16::NAN.to_le_bytes());
        let matrix = Matrix::new(Weights::Tiles(format, &tiles), rows, cols);
        let planes = Planes::default();
        let none = fast(Isa::best(), |c| largest(c, &planes, &matrix, &x, (rows, 1), &mut |_| ()));
        assert!(none.is_none());
    }
}

/// After failures the planes rest, longer each time, and not any more after a success.
#[test]
fn failures_are_followed_by_a_rest() {
    let (rows, cols) = (5000, 64);
    let mut random = Random(5);
    let x = normal(&mut random, cols);
    let w = peaked(&mut random, &x, rows);
    let good = in_planes(&w, rows, cols, TileFormat::Int8Planes);
    let bad = in_planes(&w[..cols].repeat(rows), rows, cols, TileFormat::Int8Planes);
    let planes = Planes::default();
    fast(Isa::best(), |c| {
        let tries = |tiles: &[u8]| {
            let weights = Weights::Tiles(TileFormat::Int8Planes, tiles);
            let matrix = Matrix::new(weights, rows, cols);
            let mut adjust = |_: &mut [f32]| ();
            let mut choices = [Choice { tokens: rows, most: 1, adjust: &mut adjust }];
            if !planes.are_of_use(c, &matrix, &choices) {
                return false;
            }
            let (scratch, logits) = (&mut PlanesScratch::default(), &mut vec![0.0; rows]);
            planes.largest(c, &matrix, &x, &mut choices, scratch, logits).unwrap();
            true
        };
        assert!(tries(&good) && tries(&good));
        let tried: Vec<usize> = (0..100).filter(|_| tries(&bad)).collect();
        assert_eq!(tried, [0, 2, 6, 14, 30, 62]);
        let next = (100..200).find(|_| tries(&good));
        assert_eq!(next, Some(126));
        assert!(tries(&good) && tries(&bad) && !tries(&bad) && tries(&bad));
    });
}

/// The demo model on the prompts of its golden answers: what is chosen from part of the logits
/// is what all of them say.
#[test]
fn the_demo_model_chooses_the_same() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read(root.join("tests/data/demo_golden.json")).unwrap();
    let golden: serde_json::Value = serde_json::from_slice(&text).unwrap();
    let ids = |value: &serde_json::Value| -> Vec<u32> {
        value.as_array().unwrap().iter().map(|id| id.as_u64().unwrap() as u32).collect()
    };
    for weights in [crate::WeightFormat::Int8, crate::WeightFormat::Int4] {
        let options = crate::ModelOptions { weights, threads: 2, ..Default::default() };
        let model = crate::Model::open(&root.join("examples/demo-model"), &options).unwrap();
        let planes = Planes::default();
        for conversation in golden["conversations"].as_array().unwrap() {
            for turn in conversation["turns"].as_array().unwrap() {
                let (prompt, answer) = (ids(&turn["prompt"]), ids(&turn["answer"]));
                model
                    .compute(&crate::kernels::Cancel::new(), |network, c, ws| {
                        let config = network.config();
                        let mut state = crate::model::State::new(config, model.default_kv())?;
                        network.forward(c, &prompt, &mut state, ws, |_| Ok(()))?;
                        let matrix = network.weights.head.weights.matrix();
                        let tokens = model.tokenizer().token_count().min(matrix.rows);
                        for &token in answer.iter().take(12) {
                            for most in [1, 20] {
                                let adjust = &mut |_: &mut [f32]| ();
                                let hidden = &state.last_hidden;
                                largest(c, &planes, &matrix, hidden, (tokens, most), adjust);
                            }
                            network.forward(c, &[token], &mut state, ws, |_| Ok(()))?;
                        }
                        Ok(())
                    })
                    .unwrap();
            }
        }
        let counts = planes.counts();
        println!("{weights:?}: {counts:?}");
        assert!(counts.choices > 0, "{counts:?}");
    }
}
