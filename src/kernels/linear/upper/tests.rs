use half::f16;

use super::super::tests::{Numbers, some_tiles};
use super::*;
use crate::kernels::quantized::{quantize, split};
use crate::kernels::simd::Isa;
use crate::kernels::testing::{Random, bits, compute};
use crate::kernels::{ComputeMode, Job, linear};

const FORMATS: [TileFormat; 2] = [TileFormat::Int8Planes, TileFormat::Int4Planes];

/// Estimate and deviation of each product of one row of inputs, by the definition, and how far
/// the estimate can be off because sums start from integers.
fn defined(
    format: TileFormat,
    tiles: &[u8],
    (rows, cols): (usize, usize),
    x: &[f32],
) -> Vec<(f64, f64, f64)> {
    let step = if format.is_int8() { 16 } else { 4 };
    // Columns whose inputs share a scale.
    let block = if format.is_int8() { 32 } else { 128 };
    let row = |row: usize| {
        let (tile, rest) = format.tile(tiles, cols, row / 16);
        let (mut estimate, mut variance, mut off) = (0.0, 0.0, 0.0);
        for (group, own) in x.chunks(32).enumerate() {
            let shared = x.chunks(block).nth(group * 32 / block).unwrap();
            let largest = shared.iter().fold(0f32, |m, v| m.max(v.abs()));
            if largest == 0.0 {
                continue;
            }
            let at = format.scales_at(group) + 2 * (row % 16);
            let scale = f16::from_le_bytes([tile[at], tile[at + 1]]).to_f32();
            let scale = f64::from(scale) * f64::from(largest / 127.0);
            let weights = &tile[format.weights_at(group)..];
            let rest = &rest[format.rest_bytes(32 * group)..];
            off += scale.abs() * f64::from(step) / 2.0;
            for (col, x) in own.iter().enumerate() {
                let stored = i32::from(format.stored(weights, rest, row % 16, col));
                let upper = f64::from(stored / step * step - format.offset());
                let x = f64::from((x * (127.0 / largest)).round_ties_even());
                estimate += scale * x * (upper + f64::from(step - 1) / 2.0);
                variance += (scale * x).powi(2) * f64::from(step * step - 1) / 12.0;
            }
        }
        (estimate, variance.sqrt(), off)
    };
    (0..rows).map(row).collect()
}

/// The bounds of every instruction set are those of the definition, for any number of tokens,
/// whose rows have the bits that they have alone.
#[test]
fn bounds_are_the_defined_ones() {
    let shapes = [(1, 1), (3, 31), (17, 33), (130, 272), (40, 1031), (300, 64), (1100, 96)];
    for (at, (rows, cols)) in shapes.into_iter().enumerate() {
        let mut numbers = Numbers::new(at as u64);
        let mut x = numbers.take(9 * cols);
        x[..cols].iter_mut().for_each(|v| *v = v.signum() * 3.0);
        x[cols / 2] *= 30.0;
        x[cols..2 * cols].fill(0.0);
        for format in FORMATS {
            let tiles = some_tiles(&mut numbers, format, rows, cols);
            let matrix = Matrix::new(Weights::Tiles(format, &tiles[1..]), rows, cols);
            let want: Vec<_> = x
                .chunks(cols)
                .flat_map(|x| defined(format, &tiles[1..], (rows, cols), x))
                .collect();
            for isa in Isa::available() {
                let mut first = Vec::new();
                for tokens in (1..=9).rev() {
                    let mut out = vec![f32::NAN; tokens * rows];
                    let inputs = &mut BoundInputs::default();
                    let x = &x[..tokens * cols];
                    compute(isa, 2, |c| {
                        let c = Compute::new(c.isa, c.pool, c.cancel).with_mode(ComputeMode::Fast);
                        assert!(upper_bounds(&c, x, tokens, &matrix, inputs, &mut out).unwrap());
                    });
                    if first.is_empty() {
                        for (n, (&got, &(estimate, sigma, off))) in
                            out.iter().zip(&want).enumerate()
                        {
                            let growth = f64::from(growth(format));
                            let grown = estimate.max(estimate * growth);
                            let bound = grown + 1.01 * f64::from(deviations(format)) * sigma;
                            let most = off * growth + 1e-5 * (estimate.abs() + sigma);
                            let place = format!("{format:?} {} {rows}x{cols} {n}", isa.name());
                            let got = f64::from(got);
                            assert!((got - bound).abs() <= most, "{place}: {got} {bound} {most}");
                        }
                        first = bits(&out);
                    }
                    assert_eq!(bits(&out), first[..tokens * rows], "{} x{tokens}", isa.name());
                }
            }
        }
    }
}

/// Products of chosen tiles have the bits of all products; values are not read beyond them.
#[test]
fn tiles_alone_have_the_same_bits() {
    for (rows, cols) in [(1, 1), (17, 33), (130, 272), (300, 64)] {
        let mut numbers = Numbers::new(3);
        let x = numbers.take(cols);
        for format in TileFormat::ALL {
            let tiles = some_tiles(&mut numbers, format, rows, cols);
            let matrix = Matrix::new(Weights::Tiles(format, &tiles[1..]), rows, cols);
            for isa in Isa::available() {
                compute(isa, 2, |c| {
                    let c = Compute::new(c.isa, c.pool, c.cancel).with_mode(ComputeMode::Fast);
                    let mut all = vec![0.0; rows];
                    linear(&c, &x, 1, &mut [Job::store(matrix, &mut all)]);
                    let chosen: Vec<u32> =
                        (0..rows.div_ceil(16) as u32).filter(|n| n % 3 != 1).rev().collect();
                    let mut some = vec![f32::NAN; chosen.len() * 16];
                    linear_tiles(&c, &x, &matrix, &chosen, &mut some);
                    for (&tile, some) in chosen.iter().zip(some.chunks(16)) {
                        let first = tile as usize * 16;
                        let want = &all[first..rows.min(first + 16)];
                        assert_eq!(bits(&some[..want.len()]), bits(want), "{format:?}");
                    }
                    let mut tops = vec![0.0; rows.div_ceil(16)];
                    largest_of_tiles(&c, &all, &mut tops);
                    for (top, all) in tops.iter().zip(all.chunks(16)) {
                        assert_eq!(*top, all.iter().fold(f32::NEG_INFINITY, |m, &v| m.max(v)));
                    }
                });
            }
        }
    }
}

/// What the bounds are made for: products of ordinary weights are off by as much as the
/// deviation says, and come nowhere near the bounds. Prints the figures of the documentation.
#[test]
fn deviations_are_those_of_ordinary_weights() {
    let (rows, cols) = (4096, 1024);
    let mut random = Random(5);
    let normal = |random: &mut Random, count: usize| -> Vec<f32> {
        let sum = |random: &mut Random| random.vector(12, 0.5).iter().sum::<f32>();
        (0..count).map(|_| sum(random)).collect()
    };
    let (w, x) = (normal(&mut random, rows * cols), normal(&mut random, cols));
    for format in FORMATS {
        let mut whole = vec![0; format.bytes(rows, cols).unwrap()];
        let mut tiles = whole.clone();
        let (first, rest) = tiles.split_at_mut(rows / TILE_ROWS * format.tile_bytes(cols));
        let matrix = Matrix::new(Weights::F32(&w), rows, cols);
        let mut exact = vec![0.0; rows];
        compute(Isa::best(), 2, |c| {
            quantize(c, &matrix, 0..rows, format.whole(), &mut whole).unwrap();
            split(c, format.whole(), cols, &whole, first, rest);
        });
        compute(Isa::best(), 2, |c| {
            let c = Compute::new(c.isa, c.pool, c.cancel).with_mode(ComputeMode::Fast);
            let matrix = Matrix::new(Weights::Tiles(format, &tiles), rows, cols);
            linear(&c, &x, 1, &mut [Job::store(matrix, &mut exact)]);
        });
        let defined = defined(format, &tiles, (rows, cols), &x);
        let (mut square, mut most, mut share, mut size) = (0.0f64, 0.0f64, 0.0, 0.0);
        for (&exact, &(estimate, sigma, _)) in exact.iter().zip(&defined) {
            let (exact, off) = (f64::from(exact), f64::from(exact) - estimate);
            square += (off / sigma).powi(2) / rows as f64;
            most = most.max((off / sigma).abs());
            share += off * exact;
            size += exact * exact;
        }
        let share = share / size;
        println!(
            "{format:?}: {:.3} deviations, at most {most:.2}, share {share:.4}",
            square.sqrt()
        );
        assert!((0.9..1.1).contains(&square.sqrt()) && most < 5.0);
        assert!(share.abs() < 1.5 * (f64::from(growth(format)) - 1.0));
    }
}

#[test]
fn no_bounds_without_numbers() {
    let mut numbers = Numbers::new(8);
    for format in FORMATS {
        let mut tiles = some_tiles(&mut numbers, format, 40, 64);
        for isa in Isa::available() {
            for bad in [f32::NAN, f32::INFINITY] {
                let mut x = numbers.take(64);
                x[40] = bad;
                let matrix = Matrix::new(Weights::Tiles(format, &tiles[1..]), 40, 64);
                let mut out = [0.0; 40];
                compute(isa, 1, |c| {
                    let inputs = &mut BoundInputs::default();
                    assert!(!upper_bounds(c, &x, 1, &matrix, inputs, &mut out).unwrap());
                });
            }
        }
        // A scale of the last row but seven.
        let at = 1 + 2 * format.tile_bytes(64) + format.scales_at(1);
        tiles[at..at + 2].copy_from_slice(&f16::NAN.to_le_bytes());
        let x = numbers.take(64);
        for isa in Isa::available() {
            let matrix = Matrix::new(Weights::Tiles(format, &tiles[1..]), 40, 64);
            let mut out = [0.0; 40];
            compute(isa, 1, |c| {
                let inputs = &mut BoundInputs::default();
                assert!(!upper_bounds(c, &x, 1, &matrix, inputs, &mut out).unwrap());
            });
        }
    }
}
