//! How close the matrix products come to the machine's limits.
//!
//! ```text
//! cargo bench --bench kernels -- [--threads 1,2] [--isa avx512,avx2] [--tokens 1,4,8,64,512]
//!     [--weights bf16,int8,int4] [--rounds 15] [--measure shapes,rows]
//! ```
//!
//! Prints, for each shape of the 0.8B model, GFLOP/s and the share of the multiply-add
//! peak (of `vpdpbusd` for quantized weights, where the CPU has it), and GB/s and the share
//! of the read bandwidth. The limits are measured in the same
//! rounds as the products, one after the other, and of each the best round counts: on a
//! shared machine the best is what the code can do, and other figures are the neighbours'.
//!
//! With `rows`, what several tokens cost beside one: the products of a layer and a part of the
//! head, for each number of `--tokens` in turn, in each round with other weights; medians.

use std::hint::black_box;

use half::bf16;
use qwen35::dispatch;
use qwen35::kernels::quantized::quantize;
use qwen35::kernels::simd::{Isa, LANES, Simd, prefetch};
use qwen35::kernels::{
    Cancel, Compute, ComputeMode, Job, Matrix, TileFormat, Weights, linear, linear_swiglu,
};
use qwen35::pool::Pool;

/// (name, columns, rows, whether gate and up are fused)
const SHAPES: [(&str, usize, usize, bool); 6] = [
    ("qkv", 1024, 6144, false),
    ("gate+up", 1024, 3584, true),
    ("down", 3584, 1024, false),
    ("out", 2048, 1024, false),
    ("k", 1024, 512, false),
    ("head", 1024, 248_320, false),
];

fn main() {
    let list = |name: &str, default: &str| -> Vec<String> {
        let mut arguments = std::env::args().skip_while(|a| a != name).skip(1);
        let value = arguments.next().unwrap_or_else(|| default.to_owned());
        value.split(',').map(str::to_owned).collect()
    };
    let numbers = |name: &str, default: &str| -> Vec<usize> {
        list(name, default).iter().map(|v| v.parse().expect("a number")).collect()
    };
    let rounds = numbers("--rounds", "15")[0];
    let measures = list("--measure", "shapes");
    let memory = Memory::new();
    for isa in list("--isa", Isa::best().name()) {
        let isa = Isa::named(&isa).expect("--isa");
        for &threads in &numbers("--threads", "1,2") {
            let pool = Pool::new(threads).expect("threads");
            measure_regions(&pool);
            let cancel = Cancel::new();
            for weights in list("--weights", "bf16") {
                let (format, mode) = match weights.as_str() {
                    "bf16" => (None, ComputeMode::Exact),
                    "int8" => (Some(TileFormat::Int8), ComputeMode::Fast),
                    "int4" => (Some(TileFormat::Int4), ComputeMode::Fast),
                    other => panic!("--weights {other}"),
                };
                let c = Compute::new(isa, &pool, &cancel).with_mode(mode);
                let counts = numbers("--tokens", "1,4,8,64,512");
                if measures.iter().any(|what| what == "rows") {
                    println!("\n{weights}, {}, {threads} threads, rows in turn", isa.name());
                    measure_rows(&c, &memory, format, &counts, rounds);
                }
                if measures.iter().all(|what| what != "shapes") {
                    continue;
                }
                if let Some(format) = format {
                    measure_quantizing(&c, &memory, format);
                }
                for &tokens in &counts {
                    println!("\n{weights}, {}, {threads} threads, {tokens} tokens", isa.name());
                    measure(&c, &memory, format, tokens, rounds);
                }
            }
        }
    }
}

/// Weights that no cache holds.
struct Memory(Vec<bf16>);

impl Memory {
    /// In large pages, as a mapped model is where the system allows it.
    #[allow(unsafe_code)]
    fn new() -> Self {
        const ELEMENTS: usize = 256 << 20;
        let mut weights: Vec<bf16> = Vec::with_capacity(ELEMENTS);
        // SAFETY: advice on memory that the vector owns; refusal changes nothing.
        unsafe {
            let start = weights.as_mut_ptr().cast::<libc::c_void>();
            let skip = start.align_offset(4096);
            libc::madvise(start.byte_add(skip), 2 * ELEMENTS - 4096, libc::MADV_HUGEPAGE);
        }
        weights.extend((0..ELEMENTS).map(|i| bf16::from_bits(0x3c00 + (i % 251) as u16)));
        Self(weights)
    }

    /// A matrix, another one in each round. Any bytes are quantized weights.
    #[allow(unsafe_code)]
    fn matrix(
        &self,
        format: Option<TileFormat>,
        rows: usize,
        cols: usize,
        round: usize,
    ) -> Matrix<'_> {
        let weights = match format {
            None => Weights::Bf16(self.part(rows * cols, round)),
            Some(format) => {
                let bytes = format.bytes(rows, cols).expect("a size");
                let part = self.part(bytes.div_ceil(2), round);
                // SAFETY: the same memory as bytes, of which every value is one.
                let part = unsafe { std::slice::from_raw_parts(part.as_ptr().cast(), bytes) };
                Weights::Tiles(format, part)
            }
        };
        Matrix::new(weights, rows, cols)
    }

    /// `elements` weights, other ones in each round.
    fn part(&self, elements: usize, round: usize) -> &[bf16] {
        // From the start of a cache line on, as in the model.
        let all = &self.0[self.0.as_ptr().align_offset(64)..];
        let places = (all.len() / elements).max(1);
        let start = round * 7 % places * elements;
        &all[start..start + elements]
    }
}

/// What a region costs in which hardly anything is done: the median of many, again and again,
/// because it depends on how far the cores are from each other just now.
fn measure_regions(pool: &Pool) {
    const REGIONS: usize = 2000;
    print!("\n{} threads, a region of one short task for each:", pool.threads());
    for _ in 0..8 {
        let mut times = Vec::with_capacity(REGIONS);
        let mut data = vec![[0u64; 16]; pool.threads()];
        for _ in 0..REGIONS {
            let start = std::time::Instant::now();
            pool.run_parts(&mut data, |n, part| part.iter_mut().for_each(|v| *v += n as u64))
                .expect("a region");
            times.push(start.elapsed().as_nanos());
            // As long as a short step of the caller alone.
            let start = std::time::Instant::now();
            while start.elapsed().as_nanos() < 2000 {}
        }
        times.sort_unstable();
        print!(" {}", times[REGIONS / 2]);
    }
    println!(" ns");
}

/// How fast weights are quantized when a model is opened.
fn measure_quantizing(c: &Compute, memory: &Memory, format: TileFormat) {
    let (rows, cols) = (4096, 1024);
    let mut tiles = vec![0; format.bytes(rows, cols).expect("a size")];
    let mut time = f64::INFINITY;
    for round in 0..5 {
        let matrix = memory.matrix(None, rows, cols, round);
        let start = now(c.pool.threads());
        quantize(c, &matrix, 0..rows, format, &mut tiles).expect("weights that can be quantized");
        time = time.min(now(c.pool.threads()) - start);
    }
    let rate = (rows * cols) as f64 / time;
    println!(
        "\n{format:?}, {}, {} threads: {:.0} million weights quantized per second, which makes \
         {:.2} s for the 0.8B model",
        c.isa.name(),
        c.pool.threads(),
        rate / 1e6,
        752.4e6 / rate
    );
}

fn measure(c: &Compute, memory: &Memory, format: Option<TileFormat>, tokens: usize, rounds: usize) {
    let threads = c.pool.threads();
    for (name, cols, rows, fused) in SHAPES {
        if name == "head" && tokens > 8 {
            continue;
        }
        let weights = cols * rows * if fused { 2 } else { 1 };
        let flops = 2.0 * weights as f64 * tokens as f64;
        let x: Vec<f32> = (0..tokens * cols + LANES).map(|i| (i % 17) as f32 / 16.0).collect();
        // From the start of a cache line on, as in the model.
        let x = &x[x.as_ptr().align_offset(64)..][..tokens * cols];
        let mut out = vec![0.0; tokens * rows];
        // Enough of it that a round lasts some milliseconds.
        let repeat = (1e-3 * 1e11 / flops).ceil().min(8.0) as usize;
        let bytes =
            memory.matrix(format, rows, cols, 0).weights.bytes() * if fused { 2 } else { 1 };
        let (mut peak, mut bandwidth, mut time) = (0f64, 0f64, f64::INFINITY);
        for round in 0..rounds {
            peak = peak.max(if format.is_some() { integer_dots(c) } else { multiply_adds(c) });
            bandwidth = bandwidth.max(read(c, memory, round));
            let start = now(threads);
            for turn in 0..repeat {
                // Every second one, so that gate and up are new each time.
                let round = 2 * (round * repeat + turn);
                let matrix = memory.matrix(format, rows, cols, round);
                if fused {
                    let up = memory.matrix(format, rows, cols, round + 1);
                    linear_swiglu(c, x, tokens, matrix, up, &mut out);
                } else {
                    linear(c, x, tokens, &mut [Job::store(matrix, &mut out)]);
                }
            }
            time = time.min((now(threads) - start) / repeat as f64);
        }
        black_box(&out);
        println!(
            "{name:>8} [{cols} -> {rows}]: {:8.1} us, {:6.1} GFLOP/s = {:3.0}% of {:5.1}, {:5.1} GB/s = {:3.0}% of {:4.1}",
            time * 1e6,
            flops / time / 1e9,
            100.0 * flops / time / peak,
            peak / 1e9,
            bytes as f64 / time / 1e9,
            100.0 * bytes as f64 / time / bandwidth,
            bandwidth / 1e9,
        );
    }
    c.check().expect("computing");
}

/// (columns, rows) of the products of a layer with a linear mixer, and of an eighth of the head,
/// which is what falls to three layers.
const LAYER: [(usize, usize); 7] = [
    (1024, 6144),
    (1024, 2048),
    (2048, 1024),
    (1024, 3584),
    (1024, 3584),
    (3584, 1024),
    (1024, 31_040),
];

/// What the products of several tokens cost, in times of those of the first of `counts`.
fn measure_rows(
    c: &Compute,
    memory: &Memory,
    format: Option<TileFormat>,
    counts: &[usize],
    rounds: usize,
) {
    let most = counts.iter().copied().max().unwrap_or(1);
    let x: Vec<f32> = (0..most * 3584 + LANES).map(|i| (i % 17) as f32 / 16.0).collect();
    let x = &x[x.as_ptr().align_offset(64)..];
    let mut out = vec![0.0; most * 31_040];
    let mut times = vec![Vec::with_capacity(rounds); counts.len()];
    let mut place = 0;
    for _ in 0..rounds {
        for (&tokens, times) in counts.iter().zip(&mut times) {
            let start = now(c.pool.threads());
            for (cols, rows) in LAYER {
                // A prime number of parts further on: what was read long ago.
                place += 11;
                let matrix = memory.matrix(format, rows, cols, place);
                let job = Job::store(matrix, &mut out[..tokens * rows]);
                linear(c, &x[..tokens * cols], tokens, &mut [job]);
            }
            times.push((now(c.pool.threads()) - start) * 1e6);
        }
    }
    c.check().expect("computing");
    let mut first = 0.0;
    for (tokens, times) in counts.iter().zip(&mut times) {
        times.sort_unstable_by(f64::total_cmp);
        let (median, low) = (times[rounds / 2], times[rounds / 10]);
        first = if first == 0.0 { median } else { first };
        println!(
            "{tokens:>8} tokens: {median:8.1} us ({low:.1} in the best tenth), {:.2} times the first",
            median / first
        );
    }
}

/// Floating-point operations per second of independent multiply-adds on all threads.
fn multiply_adds(c: &Compute) -> f64 {
    let tasks = 2 * c.pool.threads();
    let start = now(c.pool.threads());
    c.run(tasks, |_| {
        dispatch!(c.isa, s => {
            black_box(all_chains(s));
        });
    });
    2.0 * (tasks * TURNS * LANES * 12) as f64 / (now(c.pool.threads()) - start)
}

/// Operations (two per multiply-add) per second of independent integer dot products on all
/// threads; of multiply-adds where the CPU has none.
#[allow(unsafe_code)]
fn integer_dots(c: &Compute) -> f64 {
    if !std::arch::is_x86_feature_detected!("avx512vnni") {
        return multiply_adds(c);
    }
    let tasks = 2 * c.pool.threads();
    let start = now(c.pool.threads());
    c.run(tasks, |_| {
        // SAFETY: the CPU has the instructions, as just seen.
        black_box(unsafe { dot_chains() });
    });
    2.0 * (tasks * TURNS * 64 * 12) as f64 / (now(c.pool.threads()) - start)
}

/// Twelve chains of `vpdpbusd` of 64 products.
#[target_feature(enable = "avx512f,avx512vnni")]
fn dot_chains() -> i32 {
    use std::arch::x86_64::*;
    let (w, x) = (_mm512_set1_epi8(black_box(3)), _mm512_set1_epi8(black_box(-2)));
    let mut chains = [_mm512_setzero_si512(); 12];
    for _ in 0..TURNS {
        for chain in &mut chains {
            *chain = _mm512_dpbusd_epi32(*chain, w, x);
        }
    }
    let mut sum = 0;
    for chain in chains {
        sum ^= _mm512_reduce_add_epi32(chain);
    }
    sum
}

/// Seconds: of one thread the time it ran, so that other processes on its core do not
/// count; of several the time that passed.
#[allow(unsafe_code)]
fn now(threads: usize) -> f64 {
    let clock = if threads == 1 { libc::CLOCK_THREAD_CPUTIME_ID } else { libc::CLOCK_MONOTONIC };
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is writable.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// Multiply-adds of one chain.
const TURNS: usize = 20_000;

/// Twelve chains of sixteen lanes, as many at a time as fit the registers.
#[inline(always)]
fn all_chains<S: Simd>(s: S) -> f32 {
    match S::PARTS {
        1 => chains::<S, 12>(s),
        2 => (0..2).map(|_| chains::<S, 6>(s)).sum(),
        _ => (0..4).map(|_| chains::<S, 3>(s)).sum(),
    }
}

#[inline(always)]
fn chains<S: Simd, const CHAINS: usize>(s: S) -> f32 {
    let (factor, term) = (s.splat(black_box(0.999)), s.splat(black_box(0.001)));
    let mut chains = [s.splat(1.0); CHAINS];
    for _ in 0..TURNS {
        for chain in &mut chains {
            *chain = s.mul_add(*chain, factor, term);
        }
    }
    chains.into_iter().map(|chain| s.sum(chain)).sum()
}

/// Bytes per second of reading 64 MiB on all threads.
fn read(c: &Compute, memory: &Memory, round: usize) -> f64 {
    const ELEMENTS: usize = 32 << 20;
    const TASK: usize = 32 << 10;
    let part = memory.part(ELEMENTS, round);
    let start = now(c.pool.threads());
    c.run(ELEMENTS / TASK, |task| {
        let run = &part[task * TASK..][..TASK];
        let words: u64 = dispatch!(c.isa, _s => sum_words(run));
        black_box(words);
    });
    2.0 * ELEMENTS as f64 / (now(c.pool.threads()) - start)
}

#[inline(always)]
fn sum_words(run: &[bf16]) -> u64 {
    let mut sums = [0u16; 256];
    for chunk in run.chunks_exact(256) {
        for line in chunk.chunks(32) {
            prefetch(line.as_ptr().wrapping_add(2048));
        }
        for (sum, w) in sums.iter_mut().zip(chunk) {
            *sum ^= w.to_bits();
        }
    }
    sums.iter().map(|&s| u64::from(s)).sum()
}
