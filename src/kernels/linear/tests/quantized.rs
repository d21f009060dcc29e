use half::f16;

use super::*;

/// What products with quantized weights are defined to be: exact sums of each 32 columns,
/// scaled and added in order; with INT4 weights, in blocks of 128 columns that have one scale of
/// their inputs.
fn defined_products(
    format: TileFormat,
    tiles: &[u8],
    (rows, cols): (usize, usize),
    x: &[f32],
    fused: bool,
) -> Vec<f32> {
    let mul_add = |a: f32, b: f32, c: f32| if fused { a.mul_add(b, c) } else { a * b + c };
    let block = if format.is_int8() { 32 } else { 128 };
    let mut out = Vec::new();
    for x in x.chunks(cols) {
        for row in 0..rows {
            let (tile, rest) = format.tile(tiles, cols, row / 16);
            let mut sum = 0f32;
            for (first, x) in x.chunks(block).enumerate() {
                let largest = x.iter().fold(0f32, |m, v| m.max(v.abs()));
                if largest == 0.0 {
                    continue;
                }
                let mut inner = 0f32;
                for (n, x) in x.chunks(32).enumerate() {
                    let group = first * block / 32 + n;
                    let at = format.scales_at(group) + 2 * (row % 16);
                    let scale = f16::from_le_bytes([tile[at], tile[at + 1]]).to_f32();
                    let weights = &tile[format.weights_at(group)..];
                    let rest = &rest[format.rest_bytes(32 * group)..];
                    let mut exact = 0i32;
                    for (col, x) in x.iter().enumerate() {
                        let stored = format.stored(weights, rest, row % 16, col);
                        let code = i32::from(stored) - format.offset();
                        exact += code * (x * (127.0 / largest)).round_ties_even() as i32;
                    }
                    if format.is_int8() {
                        sum = mul_add(exact as f32, scale * (largest / 127.0), sum);
                    } else {
                        inner = mul_add(exact as f32, scale, inner);
                    }
                }
                if !format.is_int8() {
                    sum = mul_add(inner, largest / 127.0, sum);
                }
            }
            out.push(sum);
        }
    }
    out
}

/// Bytes that are a quantized matrix, extreme values included, off any alignment.
pub(in crate::kernels::linear) fn some_tiles(
    numbers: &mut Numbers,
    format: TileFormat,
    rows: usize,
    cols: usize,
) -> Vec<u8> {
    let mut tiles = vec![0; format.bytes(rows, cols).unwrap() + 1];
    let tile_bytes = format.tile_bytes(cols);
    let (first, rest) = tiles[1..].split_at_mut(rows.div_ceil(16) * tile_bytes);
    for group in rest.chunks_mut(format.group_bytes()) {
        let extreme = numbers.next() > 0.3;
        for byte in group {
            let any = (numbers.next() * 128.0 + 128.0) as u8;
            *byte = if extreme { [0, 255, 0xf0, 0x0f][any as usize % 4] } else { any };
        }
    }
    for tile in first.chunks_mut(tile_bytes) {
        let extreme = numbers.next() > 0.3;
        for group in 0..cols.div_ceil(32) {
            for scale in tile[format.scales_at(group)..][..32].chunks_mut(2) {
                scale.copy_from_slice(&f16::from_f32(numbers.next() * 0.01).to_le_bytes());
            }
            for byte in &mut tile[format.weights_at(group)..][..format.group_bytes()] {
                let any = (numbers.next() * 128.0 + 128.0) as u8;
                *byte = if extreme { [0, 255, 128, 0x0f][any as usize % 4] } else { any };
            }
        }
    }
    tiles
}

/// Every way to find integer dot products, both formats, every shape and number of tokens
/// and threads give the defined bits; AVX-512, AVX2 and VNNI the same ones.
#[test]
fn quantized_products_have_the_defined_bits() {
    let pools = [Pool::new(1).unwrap(), Pool::new(3).unwrap()];
    let cancel = Cancel::new();
    let shapes = [
        (1, 1),
        (3, 31),
        (16, 32),
        (17, 33),
        (50, 100),
        (33, 128),
        (70, 224),
        (130, 272),
        (40, 1031),
        (300, 64),
    ];
    for (at, (rows, cols)) in shapes.into_iter().enumerate() {
        let mut numbers = Numbers::new(at as u64);
        let mut x = numbers.take(33 * cols + 1);
        // Inputs of the largest magnitude throughout, none at all, and of very different size.
        x[1..1 + cols].iter_mut().for_each(|v| *v = v.signum() * 3.0);
        x[1 + cols..1 + 2 * cols].fill(0.0);
        for (n, v) in x[1 + 2 * cols..1 + 3 * cols].iter_mut().enumerate() {
            *v *= [1.0, 30.0, 0.0, 0.01, 5.0][n / 32 % 5];
        }
        let x = &x[1..];
        for format in TileFormat::ALL {
            let tiles = some_tiles(&mut numbers, format, rows, cols);
            let matrix = Matrix::new(Weights::Tiles(format, &tiles[1..]), rows, cols);
            let ups = TileFormat::ALL.map(|up| (up, some_tiles(&mut numbers, up, rows, cols)));
            for isa in Isa::available() {
                let fused = !matches!(isa, Isa::Scalar(_));
                let all = defined_products(format, &tiles[1..], (rows, cols), x, fused);
                for tokens in (1..=9).chain([12, 13, 32, 33]) {
                    let c =
                        Compute::new(isa, &pools[tokens % 2], &cancel).with_mode(ComputeMode::Fast);
                    let x = &x[..tokens * cols];
                    let mut out = vec![f32::NAN; tokens * rows];
                    let mut added = vec![1.5; tokens * rows];
                    let jobs =
                        &mut [Job::store(matrix, &mut out), Job::accumulate(matrix, &mut added)];
                    linear(&c, x, tokens, jobs);
                    c.check().unwrap();
                    let place = format!("{format:?} {} {rows}x{cols} x{tokens}", isa.name());
                    assert_eq!(bits(&out), bits(&all[..tokens * rows]), "{place}");
                    let sums: Vec<f32> = out.iter().map(|v| 1.5 + v).collect();
                    assert_eq!(bits(&added), bits(&sums), "{place}, added");
                    // One token, for which gate and up may be read together, and the same twice.
                    for (up, tiles) in ups.iter().filter(|_| tokens == 1) {
                        let up = Matrix::new(Weights::Tiles(*up, &tiles[1..]), rows, cols);
                        let (mut one, mut two) = (vec![f32::NAN; rows], vec![f32::NAN; 2 * rows]);
                        linear_swiglu(&c, x, 1, matrix, up, &mut one);
                        linear_swiglu(&c, &x.repeat(2), 2, matrix, up, &mut two);
                        c.check().unwrap();
                        assert_eq!(bits(&one), bits(&two[..rows]), "{place}, SwiGLU");
                    }
                }
            }
        }
    }
}

/// Saved sessions are bound to the bits of products. Whoever changes them counts
/// [`products_revision`] on, and puts the new sums here.
#[test]
fn other_products_are_another_revision() {
    let (rows, cols) = (20, 1000);
    let found = [TileFormat::Int8, TileFormat::Int4].map(|format| {
        let mut numbers = Numbers::new(77);
        let (tiles, x) = (some_tiles(&mut numbers, format, rows, cols), numbers.take(3 * cols));
        let mut out = vec![0.0; 3 * rows];
        let (pool, cancel) = (Pool::new(1).unwrap(), Cancel::new());
        let fused = Isa::available().find(|isa| !matches!(isa, Isa::Scalar(_)))?;
        let c = Compute::new(fused, &pool, &cancel).with_mode(ComputeMode::Fast);
        let matrix = Matrix::new(Weights::Tiles(format, &tiles[1..]), rows, cols);
        linear(&c, &x, 3, &mut [Job::store(matrix, &mut out)]);
        let bytes: Vec<u8> = out.iter().flat_map(|v| v.to_le_bytes()).collect();
        Some((products_revision(format), crate::checkpoint::packed::checksum(&bytes)))
    });
    if found[0].is_some() {
        assert_eq!(found, [Some((1, 4557561035987044020)), Some((2, 8198354052529682150))]);
    }
}

/// In exact mode the sums are those of the widened weights, by the definition of a dot
/// product; also where the mode is fast, but the weights are not quantized.
#[test]
fn exact_products_with_quantized_weights() {
    let pool = Pool::new(2).unwrap();
    let cancel = Cancel::new();
    for (rows, cols) in [(3, 31), (50, 100), (20, 600)] {
        let mut numbers = Numbers::new(3);
        let x = numbers.take(99 * cols);
        for format in TileFormat::ALL {
            let tiles = some_tiles(&mut numbers, format, rows, cols);
            let mut wide = vec![0.0; rows * cols];
            for (row, wide) in wide.chunks_mut(cols).enumerate() {
                format.widen_row(&tiles[1..], cols, row, wide);
            }
            let matrix = Matrix::new(Weights::Tiles(format, &tiles[1..]), rows, cols);
            let wide_matrix = Matrix::new(Weights::F32(&wide), rows, cols);
            for isa in Isa::available() {
                for tokens in [1, 5, 99] {
                    let x = &x[..tokens * cols];
                    let mut out = [vec![0.0; tokens * rows], vec![0.0; tokens * rows]];
                    let c = Compute::new(isa, &pool, &cancel);
                    linear(&c, x, tokens, &mut [Job::store(matrix, &mut out[0])]);
                    let c = Compute::new(isa, &pool, &cancel).with_mode(ComputeMode::Fast);
                    linear(&c, x, tokens, &mut [Job::store(wide_matrix, &mut out[1])]);
                    c.check().unwrap();
                    assert_eq!(bits(&out[0]), bits(&out[1]), "{format:?} {} x{tokens}", isa.name());
                }
            }
        }
    }
}

/// SwiGLU over quantized weights is the two products combined; infinities and NaN in one
/// token stay there.
#[test]
fn quantized_swiglu_and_special_inputs() {
    let pool = Pool::new(2).unwrap();
    let cancel = Cancel::new();
    let (rows, cols) = (70, 131);
    let mut numbers = Numbers::new(11);
    for format in TileFormat::ALL {
        let gate = some_tiles(&mut numbers, format, rows, cols);
        let up = some_tiles(&mut numbers, format, rows, cols);
        let matrix = |tiles| Matrix::new(Weights::Tiles(format, tiles), rows, cols);
        let (gate, up) = (matrix(&gate[1..]), matrix(&up[1..]));
        for isa in Isa::available() {
            for tokens in [1, 4, 20] {
                let c = Compute::new(isa, &pool, &cancel).with_mode(ComputeMode::Fast);
                let mut x = numbers.take(tokens * cols);
                let (mut g, mut u) = (vec![0.0; tokens * rows], vec![0.0; tokens * rows]);
                linear(&c, &x, tokens, &mut [Job::store(gate, &mut g), Job::store(up, &mut u)]);
                let mut out = vec![f32::NAN; tokens * rows];
                linear_swiglu(&c, &x, tokens, gate, up, &mut out);
                c.check().unwrap();
                for ((g, u), out) in g.iter().zip(&u).zip(&out) {
                    let exact = f64::from(*g) / (1.0 + (-f64::from(*g)).exp()) * f64::from(*u);
                    assert!((f64::from(*out) - exact).abs() <= exact.abs() * 6e-7 + 1e-37);
                }
                for special in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
                    x[0] = special;
                    let mut with = vec![0.0; tokens * rows];
                    linear(&c, &x, tokens, &mut [Job::store(gate, &mut with)]);
                    assert!(with[..rows].iter().all(|y| y.is_nan()));
                    assert_eq!(bits(&with[rows..]), bits(&g[rows..]));
                }
            }
        }
    }
}

/// Weights in formats whose inputs are rounded in ways of their own get what they get alone,
/// whatever is computed beside them and in which order; SwiGLU of two such is exact.
#[test]
fn formats_beside_each_other() {
    let pool = Pool::new(2).unwrap();
    let cancel = Cancel::new();
    let (rows, cols) = (70, 300);
    let mut numbers = Numbers::new(5);
    let w = Stored::new(0, &numbers.take(rows * cols));
    let tiles = TileFormat::ALL.map(|format| some_tiles(&mut numbers, format, rows, cols));
    let matrix = |n: usize| match n {
        4 => w.matrix(rows, cols),
        n => Matrix::new(Weights::Tiles(TileFormat::ALL[n], &tiles[n][1..]), rows, cols),
    };
    let x = numbers.take(20 * cols);
    for isa in Isa::available() {
        for tokens in [1, 3, 8, 20] {
            let c = Compute::new(isa, &pool, &cancel).with_mode(ComputeMode::Fast);
            let x = &x[..tokens * cols];
            let alone = [0, 1, 2, 3, 4].map(|n| {
                let mut out = vec![f32::NAN; tokens * rows];
                linear(&c, x, tokens, &mut [Job::store(matrix(n), &mut out)]);
                bits(&out)
            });
            for order in [[0, 1, 2, 3, 4], [4, 3, 0, 1, 2], [1, 3, 4, 2, 0]] {
                let mut outs = [(); 5].map(|()| vec![f32::NAN; tokens * rows]);
                let mut outs = outs.each_mut().map(Some);
                let mut jobs = order.map(|n| Job::store(matrix(n), outs[n].take().unwrap()));
                linear(&c, x, tokens, &mut jobs);
                for (n, job) in order.into_iter().zip(&jobs) {
                    let place = format!("{} x{tokens} {order:?}", isa.name());
                    assert!(bits(job.out) == alone[n], "{place}: {n}");
                }
            }
            for (gate, up) in [(0, 1), (3, 2)] {
                let mut outs = [(); 2].map(|()| vec![f32::NAN; tokens * rows]);
                linear_swiglu(&c, x, tokens, matrix(gate), matrix(up), &mut outs[0]);
                let exact = Compute::new(isa, &pool, &cancel);
                linear_swiglu(&exact, x, tokens, matrix(gate), matrix(up), &mut outs[1]);
                assert_eq!(bits(&outs[0]), bits(&outs[1]), "{} x{tokens}", isa.name());
            }
            c.check().unwrap();
        }
    }
}
