use half::{bf16, f16};

use super::*;
use crate::kernels::simd::Isa;
use crate::kernels::testing::{Random, compute};
use crate::kernels::{Matrix, Weights};

const SHAPES: [(usize, usize); 9] =
    [(1, 1), (3, 31), (16, 32), (17, 33), (5, 100), (48, 64), (31, 257), (2, 1031), (64, 96)];

/// Weights with a normal distribution, `scale` wide.
pub(super) fn normal(random: &mut Random, count: usize, scale: f32) -> Vec<f32> {
    (0..count)
        .map(|_| {
            let radius = (-2.0 * random.uniform(1e-7, 1.0).ln()).sqrt();
            scale * radius * (std::f32::consts::TAU * random.uniform(0.0, 1.0)).cos()
        })
        .collect()
}

pub(super) fn quantized(
    isa: Isa,
    w: &[f32],
    rows: usize,
    cols: usize,
    format: TileFormat,
) -> Vec<u8> {
    let mut out = vec![0xa5; format.bytes(rows, cols).unwrap()];
    let matrix = Matrix::new(Weights::F32(w), rows, cols);
    compute(isa, 2, |c| quantize(c, &matrix, 0..rows, format.whole(), &mut out)).unwrap();
    if format.is_planes() {
        let whole = out.clone();
        let (first, rest) = out.split_at_mut(rows.div_ceil(TILE_ROWS) * format.tile_bytes(cols));
        compute(isa, 2, |c| split(c, format.whole(), cols, &whole, first, rest));
    }
    out
}

pub(super) fn widened(tiles: &[u8], rows: usize, cols: usize, format: TileFormat) -> Vec<f32> {
    let mut wide = vec![f32::NAN; rows * cols];
    for (row, wide) in wide.chunks_mut(cols).enumerate() {
        format.widen_row(tiles, cols, row, wide);
    }
    wide
}

/// The sum of squared errors of a group by llama.cpp's Q8_0 and Q4_0, as their published
/// definition has it: the scale from the largest element, rounded to a half afterwards.
fn reference_error(format: TileFormat, w: &[f32]) -> f64 {
    let extreme = w.iter().fold(0f32, |m, &v| if v.abs() > m.abs() { v } else { m });
    let (divisor, least, most) = match format.is_int8() {
        true => (127.0 * extreme.signum(), -127.0, 127.0),
        false => (-8.0, -8.0, 7.0),
    };
    let scale = extreme / divisor;
    let inverse = if scale == 0.0 { 0.0 } else { 1.0 / scale };
    let stored = f64::from(f16::from_f32(scale).to_f32());
    let code = |v: f32| match format.is_int8() {
        true => (v * inverse).round(),
        false => (v * inverse + 8.5).floor() - 8.0,
    };
    let error = |&v: &f32| (f64::from(v) - f64::from(code(v).clamp(least, most)) * stored).powi(2);
    w.iter().map(error).sum()
}

#[test]
fn a_widened_row_is_what_the_layout_says() {
    for (rows, cols) in SHAPES {
        let w = normal(&mut Random(9), rows * cols, 0.02);
        for format in TileFormat::ALL {
            let tiles = quantized(Isa::best(), &w, rows, cols, format);
            let wide = widened(&tiles, rows, cols, format);
            for (n, wide) in wide.into_iter().enumerate() {
                let (row, col) = (n / cols, n % cols);
                let (tile, rest) = format.tile(&tiles, cols, row / 16);
                let at = format.scales_at(col / 32) + 2 * (row % 16);
                let scale = f16::from_le_bytes([tile[at], tile[at + 1]]).to_f32();
                let group = &tile[format.weights_at(col / 32)..];
                let rest = &rest[format.rest_bytes(col / 32 * 32)..];
                let stored = format.stored(group, rest, row % 16, col % 32);
                let code = i32::from(stored) - format.offset();
                assert_eq!(wide, code as f32 * scale, "{format:?} {row} {col}");
            }
        }
    }
}

#[test]
fn two_planes_hold_the_numbers_of_one() {
    for (rows, cols) in SHAPES {
        let w = normal(&mut Random(4), rows * cols, 0.02);
        for format in TileFormat::WHOLE {
            let both = [format, format.planes()].map(|format| {
                widened(&quantized(Isa::best(), &w, rows, cols, format), rows, cols, format)
            });
            assert_eq!(both[0], both[1], "{format:?} {rows} {cols}");
            assert_eq!(format.bytes(rows, cols), format.planes().bytes(rows, cols));
        }
    }
}

#[test]
fn a_tile_is_full_and_nothing_in_it_overlaps() {
    for format in TileFormat::ALL {
        for groups in 1..9 {
            let mut uses = vec![0; format.tile_bytes(32 * groups)];
            for group in 0..groups {
                uses[format.scales_at(group)..][..32].iter_mut().for_each(|n| *n += 1);
                let weights = &mut uses[format.weights_at(group)..][..format.group_bytes()];
                weights.iter_mut().for_each(|n| *n += 1);
            }
            let spare = uses.iter().filter(|&&n| n == 0).count();
            assert!(uses.iter().all(|&n| n < 2) && spare == groups % 2 * 32, "{groups} groups");
        }
    }
}

#[test]
fn every_instruction_set_makes_the_same_bytes() {
    for (rows, cols) in SHAPES {
        let w = normal(&mut Random(7), rows * cols, 0.02);
        for format in TileFormat::ALL {
            let first = quantized(Isa::named("scalar").unwrap(), &w, rows, cols, format);
            for isa in Isa::available() {
                assert_eq!(quantized(isa, &w, rows, cols, format), first, "{}", isa.name());
            }
        }
    }
}

/// Saved sessions are bound to the bytes that are made of given weights. Whoever changes them
/// counts [`REVISION`] on, and puts the new sums here.
#[test]
fn other_bytes_are_another_revision() {
    // Sums of the same operations on any machine, which a logarithm is not.
    let mut random = Random(7);
    let w: Vec<f32> = (0..48 * 96).map(|_| random.uniform(-0.05, 0.05)).collect();
    let sum =
        |format| crate::checkpoint::packed::checksum(&quantized(Isa::best(), &w, 48, 96, format));
    let found = (REVISION, sum(TileFormat::Int8), sum(TileFormat::Int4));
    assert_eq!(found, (2, 15309683333916551766, 11569373024107845595));
}

#[test]
fn no_group_is_worse_than_in_q8_0_and_q4_0_and_most_are_better() {
    let (rows, cols) = (64, 1024);
    let mut random = Random(3);
    for tails in [false, true] {
        let mut w = normal(&mut random, rows * cols, 0.02);
        if tails {
            w.iter_mut().for_each(|v| *v *= 1.0 + 1e4 * v.abs().powi(3));
        }
        // Measured: 0.768 and 0.889, with tails 0.835 and 0.933.
        let gains = if tails { [0.86, 0.95] } else { [0.79, 0.91] };
        for (format, gain) in [TileFormat::Int8, TileFormat::Int4].into_iter().zip(gains) {
            let wide = widened(&quantized(Isa::best(), &w, rows, cols, format), rows, cols, format);
            let (mut ours, mut theirs) = (0.0, 0.0);
            for (w, wide) in w.chunks(GROUP).zip(wide.chunks(GROUP)) {
                let error: f64 =
                    w.iter().zip(wide).map(|(&a, &b)| (f64::from(a) - f64::from(b)).powi(2)).sum();
                let reference = reference_error(format, w);
                assert!(error <= reference * 1.0001, "{format:?}: {error} {reference}");
                ours += error;
                theirs += reference;
            }
            println!(
                "{format:?}, tails {tails}: squared error {:.3} of the reference",
                ours / theirs
            );
            assert!(ours < gain * theirs, "{format:?}: {}", ours / theirs);
        }
    }
}

#[test]
fn padding_is_worth_nothing() {
    let (rows, cols) = (3, 40);
    for format in TileFormat::ALL {
        let w = normal(&mut Random(1), rows * cols, 1.0);
        let tiles = quantized(Isa::best(), &w, rows, cols, format);
        let scales = |group| &tiles[format.scales_at(group)..][..32];
        assert!((0..2).all(|group| scales(group)[2 * rows..].iter().all(|&b| b == 0)));
        for col in 40 - 32..32 {
            for row in 0..rows {
                let (tile, rest) = format.tile(&tiles, cols, 0);
                let (group, rest) =
                    (&tile[format.weights_at(1)..], rest.get(format.rest_bytes(32)..));
                let stored = format.stored(group, rest.unwrap_or(&[]), row, col);
                assert_eq!(i32::from(stored), format.offset());
            }
        }
    }
}

#[test]
fn types_and_pieces_make_no_difference() {
    let (rows, cols) = (37, 70);
    let w = normal(&mut Random(5), rows * cols, 0.1);
    let narrow: Vec<bf16> = w.iter().map(|&v| bf16::from_f32(v)).collect();
    let wide: Vec<f32> = narrow.iter().map(|v| v.to_f32()).collect();
    for format in TileFormat::WHOLE {
        let whole = quantized(Isa::best(), &wide, rows, cols, format);
        let matrix = Matrix::new(Weights::Bf16(&narrow), rows, cols);
        let mut pieces = vec![0; whole.len()];
        let (first, second) = pieces.split_at_mut(format.bytes(16, cols).unwrap());
        compute(Isa::best(), 2, |c| {
            quantize(c, &matrix, 0..16, format, first).unwrap();
            quantize(c, &matrix, 16..rows, format, second).unwrap();
        });
        assert_eq!(pieces, whole);
    }
}

#[test]
fn weights_without_a_scale() {
    for format in TileFormat::WHOLE {
        // Nothing, too little for a half, and little.
        for (value, exact) in [(0.0, true), (1e-12, false), (-3e-7, false), (4e5, false)] {
            let w = [value; 50];
            let wide = widened(&quantized(Isa::best(), &w, 1, 50, format), 1, 50, format);
            for v in wide {
                let allowed = if exact { 0.0 } else { f32::max(6e-8 / 2.0, value.abs() * 1e-3) };
                assert!((v - value).abs() <= allowed, "{format:?}: {value} became {v}");
            }
        }
        for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1e9] {
            for isa in Isa::available() {
                let mut w = vec![1.0; 40 * 40];
                w[20 * 40 + 39] = value;
                let matrix = Matrix::new(Weights::F32(&w), 40, 40);
                let mut out = vec![0; format.bytes(40, 40).unwrap()];
                let result = compute(isa, 1, |c| quantize(c, &matrix, 0..40, format, &mut out));
                let error = result.unwrap_err();
                assert_eq!(error.kind(), crate::ErrorKind::Format);
                assert!(error.message().contains("row 20"), "{error}");
            }
        }
    }
}

#[test]
fn sizes_that_cannot_be() {
    for format in TileFormat::ALL {
        assert_eq!(format.bytes(usize::MAX, 64), None);
        assert_eq!(format.bytes(1, usize::MAX), None);
        assert_eq!(format.bytes(0, 64), Some(0));
    }
    // 4.5 and 8.5 bits per weight, for the shapes of the model.
    assert_eq!(TileFormat::Int4.bytes(3584, 1024), Some(3584 * 1024 * 9 / 16));
    assert_eq!(TileFormat::Int8.bytes(1024, 3584), Some(3584 * 1024 * 17 / 16));
}
