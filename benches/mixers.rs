//! Convolution, delta rule and attention at the 0.8B shapes, against the measured limits.
//!
//! `cargo bench --bench mixers [-- FILTER]`, threads by `BENCH_THREADS=1,2`. Each figure is the best of several runs, as a
//! time and as a share of the limit (fused multiply-adds of one core times threads, or read
//! bandwidth) that this program measures first.

// Loops over registers are plain counts, which the compiler unrolls for certain.
#![allow(clippy::needless_range_loop)]
#![allow(unsafe_code)]

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use qwen35::dispatch;
use qwen35::kernels::simd::{Isa, LANES, Simd};
use qwen35::kernels::{
    AttentionShape, Buffer, Cancel, Compute, ConvTaps, DeltaAfter, DeltaInputs, DeltaRow,
    DeltaShape, DeltaState, DeltaTarget, DeltaWeights, KvElement, KvPages, KvShape, MOST_CHANGES,
    Parts, attention, causal_conv_silu, delta_rule, delta_step,
};
use qwen35::pool::{Pool, SharedMut};

/// CPU time of this thread: what one thread needs whatever else the machine does.
fn thread_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes the given structure.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// The best time of one call of `f`, over about half a second: of this thread if it works
/// alone, else by the clock on the wall.
fn best(alone: bool, mut f: impl FnMut()) -> Duration {
    f();
    let (begin, mut least) = (Instant::now(), Duration::MAX);
    let mut runs = 0;
    while begin.elapsed() < Duration::from_millis(500) || runs < 3 {
        let (start, cpu) = (Instant::now(), thread_time());
        f();
        let time = if alone { thread_time() - cpu } else { start.elapsed() };
        least = least.min(time);
        runs += 1;
    }
    least
}

fn numbers(n: usize, scale: f32) -> Vec<f32> {
    let mut state = 1u64;
    (0..n)
        .map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            ((state >> 40) as f32 / (1u64 << 23) as f32 - 1.0) * scale
        })
        .collect()
}

/// Multiply-adds of `f32` a second, one thread.
fn multiply_adds(isa: Isa) -> f64 {
    const ROUNDS: usize = 100_000;
    /// Enough to hide the latency, few enough for 16 registers.
    const CHAINS: usize = 6;
    #[inline(always)]
    fn rounds<S: Simd>(s: S) -> f32 {
        let (a, b) = (s.splat(black_box(0.5)), s.splat(black_box(0.25)));
        let mut sums = [s.splat(1.0); CHAINS];
        for _ in 0..ROUNDS {
            for n in 0..CHAINS {
                sums[n] = s.mul_add(sums[n], a, b);
            }
        }
        let mut sum = 0.0;
        for n in 0..CHAINS {
            sum += s.sum(sums[n]);
        }
        sum
    }
    let time = best(true, || {
        black_box(dispatch!(isa, s => rounds(s)));
    });
    (ROUNDS * CHAINS * LANES) as f64 / time.as_secs_f64()
}

/// Bytes a second that all threads together read from memory.
fn bandwidth(c: &Compute) -> f64 {
    let mut data = Buffer::zeroed(64 << 20, "bandwidth").unwrap();
    data.fill(1.0f32);
    let chunk = 1 << 18;
    let time = best(c.pool.threads() == 1, || {
        c.run(data.len() / chunk, |n| {
            let part = &data[n * chunk..][..chunk];
            dispatch!(c.isa, s => {
                let mut sums = [s.splat(0.0); 4];
                for x in part.chunks_exact(4 * LANES) {
                    for n in 0..4 {
                        sums[n] = s.add(sums[n], s.load(&x[n * LANES..]));
                    }
                }
                black_box(s.sum(s.add(s.add(sums[0], sums[1]), s.add(sums[2], sums[3]))));
            });
        });
    });
    (data.len() * 4) as f64 / time.as_secs_f64()
}

/// The inputs of a convolution before a token.
fn history(channels: usize) -> Vec<Arc<Buffer<f32>>> {
    let row = |_| {
        let mut row = Buffer::zeroed(channels, "history").unwrap();
        row.copy_from_slice(&numbers(channels, 1.0));
        Arc::new(row)
    };
    (0..3).map(row).collect()
}

struct Bench<'a> {
    c: &'a Compute<'a>,
    fma: f64,
    bandwidth: f64,
    filter: String,
}

impl Bench<'_> {
    /// Runs `f` and prints its time for each of `units`, and its share of the limits.
    fn report(&self, name: &str, units: usize, work: f64, bytes: f64, f: impl FnMut()) {
        if !name.contains(&self.filter) {
            return;
        }
        let time = best(self.c.pool.threads() == 1, f).as_secs_f64();
        println!(
            "  {name:<40} {:>9.2} us each   {:>5.1}% of FMA   {:>6.1} GB/s, {:>5.1}%",
            time * 1e6 / units as f64,
            100.0 * work / time / self.fma,
            bytes / time / 1e9,
            100.0 * bytes / time / self.bandwidth,
        );
    }

    fn conv(&self) {
        let (channels, width) = (6144, 4);
        let taps = ConvTaps::new(&numbers(channels * width, 0.5), channels, width).unwrap();
        let history = history(channels);
        for tokens in [1, 256] {
            let u = numbers(tokens * channels, 1.0);
            let mut out = u.clone();
            let work = (tokens * channels * width) as f64;
            self.report(&format!("conv, {tokens} tokens"), tokens, work, 0.0, || {
                let history = Parts::new(&history, 0, channels);
                causal_conv_silu(self.c, &u, &taps, history, &mut out);
            });
        }
    }

    fn delta(&self) {
        let shape = DeltaShape { key_heads: 16, value_heads: 16, key_dim: 128, value_dim: 128 };
        // As many layers as the model has, so that states come from memory as they do there.
        let layers = 18;
        let mut states = [(); 2].map(|()| {
            let mut state = Buffer::zeroed(layers * shape.state_len(), "states").unwrap();
            state.copy_from_slice(&numbers(layers * shape.state_len(), 0.1));
            state
        });
        for tokens in [4, 8, 64, 256] {
            let qkv = numbers(tokens * shape.qkv_width(), 1.0);
            let g: Vec<f32> = numbers(tokens * 16, 0.5).iter().map(|x| -x.abs()).collect();
            let beta: Vec<f32> = numbers(tokens * 16, 1.0).iter().map(|x| x.abs()).collect();
            let mut out = vec![0.0; tokens * 16 * 128];
            let work = (layers * tokens * shape.state_len() * 13 / 4) as f64;
            let bytes = (layers * shape.state_len() * 8) as f64;
            let name = format!("delta rule, {tokens} tokens, per layer-token");
            self.report(&name, layers * tokens, work, bytes, || {
                let [before, after] = &mut states;
                let after = after.chunks_exact_mut(shape.state_len());
                for (before, after) in before.chunks_exact(shape.state_len()).zip(after) {
                    let before = DeltaState { base: before, changes: Parts::new(&[], 0, 0) };
                    delta_rule(
                        self.c,
                        shape,
                        tokens,
                        DeltaInputs::Mixed(&qkv),
                        &g,
                        &beta,
                        before,
                        DeltaAfter { base: after, changes: Default::default() },
                        &mut out,
                    );
                }
                states.swap(0, 1);
            });
        }
    }

    /// One token of each of some sequences, in all layers: those of a block in turn, the last of
    /// which writes the states.
    fn step(&self) {
        let shape = DeltaShape { key_heads: 16, value_heads: 16, key_dim: 128, value_dim: 128 };
        let (layers, width, values) = (18, shape.qkv_width(), 16 * 128);
        let taps = ConvTaps::new(&numbers(width * 4, 0.5), width, 4).unwrap();
        let [decay, norm] = [-1.0, 1.0].map(|x| vec![x; 128]);
        let weights = DeltaWeights {
            taps: &taps,
            decay: &decay[..16],
            dt_bias: &norm[..16],
            norm: &norm,
            eps: 1e-6,
        };
        for sequences in [1, 2, 4, 8] {
            let name = format!("delta step, {sequences} sequences, per layer-token");
            if !name.contains(&self.filter) {
                continue;
            }
            let buffer = |len: usize| {
                let mut buffer = Buffer::zeroed(layers * len, "states").unwrap();
                buffer.copy_from_slice(&numbers(layers * len, 0.1));
                buffer
            };
            let history = history(layers * width);
            let states: Vec<_> = (0..sequences).map(|_| buffer(shape.state_len())).collect();
            let change = |_| Arc::new(buffer(shape.change_len()));
            let changes: Vec<Vec<_>> =
                (0..sequences).map(|_| (0..MOST_CHANGES).map(change).collect()).collect();
            let mut after: Vec<_> = (0..sequences).map(|_| buffer(shape.state_len())).collect();
            let (projected, z, gates) = (numbers(width, 1.0), numbers(values, 1.0), vec![0.5; 16]);
            let mut kept = vec![vec![0.0; width]; sequences];
            let mut outs = vec![vec![0.0; values]; sequences];
            let tokens = MOST_CHANGES + 1;
            let len = layers * sequences * shape.state_len();
            let (work, bytes) =
                ((tokens * 2 * len + (1 + tokens) * len) as f64, 4 * len * (tokens + 1));
            self.report(&name, tokens * layers * sequences, work, bytes as f64, || {
                for (made, layer) in
                    (0..tokens).flat_map(|made| (0..layers).map(move |l| (made, l)))
                {
                    let (len, change) = (shape.state_len(), shape.change_len());
                    let rows: Vec<_> = (0..sequences)
                        .zip(after.iter_mut().zip(&mut kept).zip(&mut outs))
                        .map(|(n, ((after, kept), out))| {
                            let target = &mut after[layer * len..][..len];
                            DeltaRow {
                                projected: &projected,
                                z: &z,
                                a: &gates,
                                b: &gates,
                                history: Parts::new(&history, layer * width, width),
                                kept: SharedMut::new(kept),
                                before: DeltaState {
                                    base: &states[n][layer * len..][..len],
                                    changes: Parts::new(
                                        &changes[n][..made],
                                        layer * change,
                                        change,
                                    ),
                                },
                                target: if made == MOST_CHANGES {
                                    DeltaTarget::State(SharedMut::new(target))
                                } else {
                                    DeltaTarget::Change(SharedMut::new(&mut target[..change]))
                                },
                                out: SharedMut::new(out),
                            }
                        })
                        .collect();
                    delta_step(self.c, shape, &weights, &rows);
                }
            });
        }
    }

    fn attention(&self) {
        let shape = AttentionShape { q_heads: 8, kv_heads: 2, head_dim: 256 };
        let width = shape.kv_heads * shape.head_dim;
        for element in [KvElement::F16, KvElement::F32, KvElement::I8] {
            let kv_shape = KvShape { kv_heads: 2, head_dim: 256, element };
            for (depth, tokens, layers) in [
                (0, 512, 1),
                (3584, 512, 1),
                (128, 1, 6),
                (1024, 1, 6),
                (4096, 1, 6),
                (16384, 1, 6),
                (4096, 4, 6),
            ] {
                let name =
                    format!("attention {element:?}, {tokens} tokens at {depth}, per layer-token");
                if !name.contains(&self.filter) {
                    continue;
                }
                let rows = numbers((depth + tokens) * width, 1.0);
                let layers: Vec<KvPages> = (0..layers)
                    .map(|_| {
                        let mut kv = KvPages::new(kv_shape);
                        kv.write(self.c.isa, 0, &rows, &rows).unwrap();
                        kv
                    })
                    .collect();
                let q = numbers(tokens * 8 * 256, 1.0);
                let mut out = q.clone();
                let seen: usize = (0..tokens).map(|t| depth + t + 1).sum();
                let work = (layers.len() * seen * 8 * 256 * 2) as f64;
                let bytes = (layers.len() * (depth + tokens) * width * 2 * element.bytes()) as f64;
                self.report(&name, layers.len() * tokens, work, bytes, || {
                    for kv in &layers {
                        attention(self.c, shape, tokens, depth, &q, kv, 0.0625, &mut out);
                    }
                });
            }
            let rows = numbers(512 * width, 1.0);
            let mut kv = KvPages::new(kv_shape);
            self.report(&format!("kv write {element:?}, 512 tokens"), 512, 0.0, 0.0, || {
                kv.write(self.c.isa, 7, &rows, &rows).unwrap();
            });
        }
    }
}

fn main() {
    // Cargo passes `--bench`; the first other argument selects figures by name.
    let filter = std::env::args().skip(1).find(|a| !a.starts_with("--")).unwrap_or_default();
    let threads: Vec<usize> = match std::env::var("BENCH_THREADS") {
        Ok(list) => list.split(',').filter_map(|n| n.parse().ok()).collect(),
        Err(_) => vec![1, 2],
    };
    for isa in Isa::available().filter(|isa| isa.name() != "scalar") {
        for threads in threads.clone() {
            let (pool, cancel) = (Pool::new(threads).unwrap(), Cancel::new());
            let c = Compute::new(isa, &pool, &cancel);
            let fma = multiply_adds(isa) * threads as f64;
            let bandwidth = bandwidth(&c);
            println!(
                "{}, {threads} threads: {:.1} G multiply-adds/s, {:.1} GB/s read",
                isa.name(),
                fma / 1e9,
                bandwidth / 1e9
            );
            let bench = Bench { c: &c, fma, bandwidth, filter: filter.clone() };
            bench.conv();
            bench.delta();
            bench.step();
            bench.attention();
        }
    }
}
