//! What the machine can do at most: multiply-adds of each kind, and reading memory.
#![allow(unsafe_code)]

use std::hint::black_box;
use std::time::{Duration, Instant};

/// Operations per second (a multiply-add counts as two) or bytes per second.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limits {
    /// FP32 multiply-adds.
    pub fma: f64,
    /// BF16 dot products with FP32 sums (`vdpbf16ps`), 0 where the CPU has none.
    pub bf16: f64,
    /// INT8 dot products with INT32 sums (`vpdpbusd`), 0 where the CPU has none.
    pub int8: f64,
    /// Bytes read from memory.
    pub read: f64,
}

/// Bytes that no cache holds.
const MEMORY: usize = 512 << 20;
/// The same for [`Reader`], which holds them beside a model.
const BESIDE: usize = 192 << 20;
/// How long a [`Reader`] reads.
const LOOK: Duration = Duration::from_millis(25);
/// How long each is tried; the best of several tries counts.
const TRY: Duration = Duration::from_millis(60);
const TRIES: usize = 5;

/// Measures all limits with `threads` threads.
pub fn measure(threads: usize) -> Limits {
    let memory = Memory::new(MEMORY);
    let mut limits = Limits::default();
    for _ in 0..TRIES {
        limits.fma = limits.fma.max(together(threads, |_| rate(fma())));
        limits.bf16 = limits.bf16.max(together(threads, |_| rate(bf16())));
        limits.int8 = limits.int8.max(together(threads, |_| rate(int8())));
        limits.read = limits.read.max(together(threads, |thread| memory.read(thread, threads)));
    }
    limits
}

/// Reads memory now and then, because its speed changes within a run.
pub struct Reader {
    memory: Memory,
    threads: usize,
}

impl Reader {
    pub fn new(threads: usize) -> Self {
        Self { memory: Memory::new(BESIDE), threads }
    }

    /// Bytes per second that all threads read just now: the best of as many tries as the time
    /// is enough for.
    pub fn read(&self) -> f64 {
        let (start, mut best) = (Instant::now(), 0.0);
        while start.elapsed() < LOOK {
            best = together(self.threads, |n| self.memory.read(n, self.threads)).max(best);
        }
        best
    }
}

/// The sum of what each of `threads` threads measures at the same time.
fn together(threads: usize, work: impl Fn(usize) -> f64 + Sync) -> f64 {
    std::thread::scope(|scope| {
        let running: Vec<_> = (1..threads)
            .map(|n| {
                scope.spawn({
                    let work = &work;
                    move || work(n)
                })
            })
            .collect();
        let own = work(0);
        own + running.into_iter().filter_map(|thread| thread.join().ok()).sum::<f64>()
    })
}

/// Operations per second of a loop that does some and says how many; 0 without a loop.
fn rate(operations: Option<fn() -> f64>) -> f64 {
    let Some(operations) = operations else { return 0.0 };
    let start = Instant::now();
    let mut done = 0.0;
    while start.elapsed() < TRY {
        done += operations();
    }
    done / start.elapsed().as_secs_f64()
}

const TURNS: usize = 20_000;
/// Sums in flight: more than latency times throughput of every CPU of note.
const SUMS: usize = 16;

fn fma() -> Option<fn() -> f64> {
    if is_x86_feature_detected!("avx512f") {
        // SAFETY: the CPU has AVX-512.
        return Some(|| unsafe { fma_avx512() });
    }
    if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
        // SAFETY: the CPU has AVX2 and FMA.
        return Some(|| unsafe { fma_avx2() });
    }
    None
}

fn bf16() -> Option<fn() -> f64> {
    let has = is_x86_feature_detected!("avx512bf16") && is_x86_feature_detected!("avx512f");
    // SAFETY: the CPU has AVX-512 BF16.
    has.then_some(|| unsafe { bf16_avx512() })
}

fn int8() -> Option<fn() -> f64> {
    let has = is_x86_feature_detected!("avx512vnni") && is_x86_feature_detected!("avx512f");
    // SAFETY: the CPU has AVX-512 VNNI.
    has.then_some(|| unsafe { int8_avx512() })
}

#[target_feature(enable = "avx512f")]
fn fma_avx512() -> f64 {
    use std::arch::x86_64::*;
    let (a, b) = (_mm512_set1_ps(black_box(0.5)), _mm512_set1_ps(black_box(1.5)));
    let mut sums = [_mm512_setzero_ps(); SUMS];
    for _ in 0..TURNS {
        for sum in &mut sums {
            *sum = _mm512_fmadd_ps(a, b, *sum);
        }
    }
    black_box(sums);
    (TURNS * SUMS * 16 * 2) as f64
}

#[target_feature(enable = "avx2,fma")]
fn fma_avx2() -> f64 {
    use std::arch::x86_64::*;
    const SUMS: usize = 12;
    let (a, b) = (_mm256_set1_ps(black_box(0.5)), _mm256_set1_ps(black_box(1.5)));
    let mut sums = [_mm256_setzero_ps(); SUMS];
    for _ in 0..TURNS {
        for sum in &mut sums {
            *sum = _mm256_fmadd_ps(a, b, *sum);
        }
    }
    black_box(sums);
    (TURNS * SUMS * 8 * 2) as f64
}

#[target_feature(enable = "avx512f,avx512bf16")]
fn bf16_avx512() -> f64 {
    use std::arch::x86_64::*;
    let (a, b) = (_mm512_set1_ps(black_box(0.5)), _mm512_set1_ps(black_box(1.5)));
    let (a, b) = (_mm512_cvtne2ps_pbh(a, a), _mm512_cvtne2ps_pbh(b, b));
    let mut sums = [_mm512_setzero_ps(); SUMS];
    for _ in 0..TURNS {
        for sum in &mut sums {
            *sum = _mm512_dpbf16_ps(*sum, a, b);
        }
    }
    black_box(sums);
    (TURNS * SUMS * 32 * 2) as f64
}

#[target_feature(enable = "avx512f,avx512vnni")]
fn int8_avx512() -> f64 {
    use std::arch::x86_64::*;
    let (a, b) = (_mm512_set1_epi32(black_box(0x0102_0301)), _mm512_set1_epi32(black_box(-3)));
    let mut sums = [_mm512_setzero_si512(); SUMS];
    for _ in 0..TURNS {
        for sum in &mut sums {
            *sum = _mm512_dpbusd_epi32(*sum, a, b);
        }
    }
    black_box(sums);
    (TURNS * SUMS * 64 * 2) as f64
}

/// Memory in large pages where the system gives them.
struct Memory(Vec<u64>);

impl Memory {
    fn new(bytes: usize) -> Self {
        let mut words: Vec<u64> = Vec::with_capacity(bytes / 8);
        // SAFETY: advice on memory that the vector owns; refusal changes nothing.
        unsafe {
            let start = words.as_mut_ptr().cast::<libc::c_void>();
            let skip = start.align_offset(4096);
            libc::madvise(start.byte_add(skip), bytes - 4096, libc::MADV_HUGEPAGE);
        }
        words.extend((0..bytes as u64 / 8).map(|i| i.wrapping_mul(0x9E37_79B9)));
        Self(words)
    }

    /// Bytes per second with which one of `threads` threads reads its part once.
    fn read(&self, thread: usize, threads: usize) -> f64 {
        let part = self.0.len() / threads;
        let words = &self.0[thread * part..(thread + 1) * part];
        let start = Instant::now();
        // Eight sums, so that the additions keep up with the loads.
        let mut sums = [0u64; 8];
        for words in words.chunks_exact(8) {
            for (sum, word) in sums.iter_mut().zip(words) {
                *sum = sum.wrapping_add(*word);
            }
        }
        black_box(sums);
        size_of_val(words) as f64 / start.elapsed().as_secs_f64()
    }
}
