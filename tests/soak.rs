//! Random lives of sessions and conversations against a plain model of what they should hold.
//!
//! `QWEN35_SOAK_SEQUENCES` (default 1000), `QWEN35_SOAK_SEED`, `QWEN35_SOAK_SECONDS` (default
//! 3, of the threads), `QWEN35_SOAK_ISA` change what is run; `make soak` runs it longer, and
//! under valgrind where that is installed. A failure names the seed that shows it again.

#[path = "soak/life.rs"]
mod life;
#[path = "support/synthetic.rs"]
mod synthetic;
#[path = "soak/talk.rs"]
mod talk;
#[path = "support/temp.rs"]
mod temp;
#[path = "support/tiny_tokenizer.rs"]
mod tiny_tokenizer;
#[path = "support/toy.rs"]
mod toy;

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use life::{LIMIT, Life, below, some_ids};
use qwen35::sampling::Rng;
use qwen35::session::{CancelHandle, SaveOptions};
use qwen35::{ErrorKind, KvElement, Model, ModelOptions, WeightFormat};
use temp::TempDir;

fn setting(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name} is not a number: {text}")),
        Err(_) => default,
    }
}

fn model(threads: usize, weights: WeightFormat) -> (TempDir, Model) {
    let directory = toy::model();
    let isa = std::env::var("QWEN35_SOAK_ISA").ok();
    let prefix_cache_bytes = 1 << 20;
    let options = ModelOptions { threads, isa, weights, prefix_cache_bytes, ..Default::default() };
    let model = Model::open(directory.path(), &options).unwrap();
    (directory, model)
}

/// A saved session, and what it must hold again.
struct Saved {
    bytes: Vec<u8>,
    kv: KvElement,
    tokens: Vec<u32>,
    marks: Vec<(u64, usize)>,
    attachment: Vec<u8>,
}

/// One random life of a few sessions, which save themselves to `file` now and then.
fn sequence(model: &Model, file: &Path, seed: u64) {
    let rng = &mut Rng::new(seed);
    let mut lives = vec![Life::new(model, rng)];
    let mut saved: Vec<Saved> = Vec::new();
    for _ in 0..12 {
        let count = lives.len();
        let index = below(rng, count);
        let life = &mut lives[index];
        match below(rng, 18) {
            0 if count < 5 => lives.push(Life::new(model, rng)),
            0 | 1 if count < 5 => {
                let fork = lives[index].fork();
                lives.push(fork);
            }
            0..=3 => life.feed(&some_ids(rng, 70)),
            4 => life.generate(1 + below(rng, 6)),
            5 => {
                let ids = some_ids(rng, 70);
                life.step(&ids, rng);
            }
            6 => {
                // Cancelled before, or at a random point on the way.
                if below(rng, 2) == 0 {
                    life.session.cancel_handle().cancel();
                    life.session.cancel_handle().cancel();
                }
                let mut left = below(rng, 12);
                life.session.set_progress(Some(Box::new(move |_| {
                    left = left.saturating_sub(1);
                    if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                })));
                match below(rng, 3) {
                    0 => life.generate(2),
                    _ => life.feed(&some_ids(rng, 70)),
                }
                life.session.set_progress(None);
            }
            7 => match life.session.mark() {
                Ok(id) => life.marks.push((id, life.tokens.len())),
                Err(error) => assert_eq!(error.kind(), ErrorKind::InvalidState),
            },
            8 if !life.marks.is_empty() => {
                let (id, position) = life.marks[below(rng, life.marks.len())];
                life.session.rewind(id, below(rng, 2) == 0).unwrap();
                let wanted = life.tokens[..position].to_vec();
                life.settle(Ok(()), wanted);
            }
            9 if !life.marks.is_empty() => {
                let (id, _) = life.marks.swap_remove(below(rng, life.marks.len()));
                life.session.unmark(id).unwrap();
                assert!(life.session.unmark(id).is_err());
            }
            8 | 9 => {
                let position = below(rng, life.tokens.len() + 1);
                let result = life.session.truncate(position);
                let wanted = life.tokens[..position].to_vec();
                life.settle(result, wanted);
            }
            10 => {
                // What another one holds, and a little more: beginnings are shared.
                let mut wanted = life.tokens.clone();
                wanted.truncate(LIMIT - 30);
                wanted.extend(some_ids(rng, 30));
                let index = below(rng, count);
                let other = &mut lives[index];
                let result = other.session.set_tokens(&wanted);
                other.settle(result, wanted);
            }
            11 => {
                life.attachment = some_ids(rng, 20).iter().map(|id| *id as u8).collect();
                life.session.set_attachment(&life.attachment).unwrap();
            }
            12 => saved.push(Saved {
                bytes: match below(rng, 2) {
                    0 => life.session.save_to_memory(SaveOptions::default()).unwrap(),
                    _ => {
                        life.session.save_to_file(SaveOptions::default(), file).unwrap();
                        std::fs::read(file).unwrap()
                    }
                },
                kv: life.session.kv(),
                tokens: life.tokens.clone(),
                marks: life.marks.clone(),
                attachment: life.attachment.clone(),
            }),
            13 if !saved.is_empty() => {
                let Saved { bytes, kv, tokens, marks, attachment } =
                    &saved[below(rng, saved.len())];
                if *kv != life.session.kv() {
                    let error = life.session.restore_from_memory(bytes).unwrap_err();
                    assert_eq!(error.kind(), ErrorKind::Unsupported);
                    life.check(model);
                } else if below(rng, 3) == 0 {
                    let mut damaged = bytes.clone();
                    let at = below(rng, damaged.len());
                    damaged[at] ^= 1 << below(rng, 8);
                    life.session.restore_from_memory(&damaged).unwrap_err();
                    life.check(model);
                } else {
                    match below(rng, 2) {
                        0 => life.session.restore_from_memory(bytes).unwrap(),
                        _ => {
                            std::fs::write(file, bytes).unwrap();
                            life.session.restore_from_file(file).unwrap();
                        }
                    }
                    life.tokens = tokens.clone();
                    life.attachment = attachment.clone();
                    // Of the marks, those that this session has room for.
                    let held: Vec<u64> = life.session.marks().map(|mark| mark.id).collect();
                    life.marks = marks.clone();
                    life.marks.retain(|(id, _)| held.contains(id));
                }
            }
            14 => {
                life.session.reset().unwrap();
                life.settle(Ok(()), Vec::new());
                life.marks.clear();
            }
            15 if count > 1 => drop(lives.swap_remove(index)),
            16 => {
                let from = below(rng, count);
                life::batch(&mut lives[from..]);
            }
            17 => life.step_to_token(below(rng, 500) as u64),
            _ => life.check(model),
        }
    }
    // A twin draws the same tokens.
    let index = below(rng, lives.len());
    let _ = lives[index].session.logits(); // answers a cancel that waits
    let mut twin = lives[index].fork();
    twin.generate(4);
    lives[index].generate(4);
    assert_eq!(twin.tokens, lives[index].tokens);
    lives[index].check(model);
    let last = lives.len() - 1;
    lives[last].check(model);
}

/// Bytes of this process in memory.
fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

/// Runs `sequence` for all seeds; resident memory must not grow.
fn soak(count: u64, sequence: impl Fn(u64)) {
    let first = setting("QWEN35_SOAK_SEED", 1);
    let mut warm = 0;
    for i in 0..count {
        let seed = first + i;
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| sequence(seed)));
        if let Err(panic) = result {
            eprintln!("again: QWEN35_SOAK_SEED={seed} QWEN35_SOAK_SEQUENCES=1");
            std::panic::resume_unwind(panic);
        }
        if i == count / 3 {
            warm = resident();
        }
    }
    if count >= 100 {
        let grown = resident().saturating_sub(warm);
        println!("{count} sequences, {} KB grown in two thirds of them", grown >> 10);
        assert!(grown < 8 << 20, "memory grew by {grown} bytes in two thirds of the run");
    }
}

#[test]
fn random_lives_hold_what_they_should() {
    let (_directory, stored) = model(1, WeightFormat::Stored);
    let (_directory, quantized) = model(1, WeightFormat::Int8);
    let folder = TempDir::new();
    let file = folder.path().join("state");
    soak(setting("QWEN35_SOAK_SEQUENCES", 1000), |seed| {
        sequence(if seed % 4 == 0 { &quantized } else { &stored }, &file, seed);
    });
}

#[test]
fn random_conversations_hold_what_they_should() {
    let (_directory, model) = model(1, WeightFormat::Stored);
    let folder = TempDir::new();
    let file = folder.path().join("talk");
    soak(setting("QWEN35_SOAK_SEQUENCES", 1000), |seed| talk::sequence(&model, &file, seed));
}

#[test]
fn threads_share_sessions_and_cancel_each_other() {
    let (_directory, model) = model(2, WeightFormat::Stored);
    let seconds = setting("QWEN35_SOAK_SECONDS", 3);
    let seed = setting("QWEN35_SOAK_SEED", 1);
    let rng = &mut Rng::new(seed);
    let lives: Vec<Mutex<Life>> = (0..16).map(|_| Mutex::new(Life::new(&model, rng))).collect();
    let cancels: Vec<CancelHandle> =
        lives.iter().map(|life| life.lock().unwrap().session.cancel_handle()).collect();
    let end = Instant::now() + Duration::from_secs(seconds);
    let failed = AtomicBool::new(false);
    let calls = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let (lives, cancels, model) = (&lives, &cancels, &model);
            let (failed, calls) = (&failed, &calls);
            scope.spawn(move || {
                let rng = &mut Rng::new(seed.wrapping_mul(31) + thread);
                let work = std::panic::AssertUnwindSafe(|| {
                    while Instant::now() < end && !failed.load(Ordering::Relaxed) {
                        step(model, lives, cancels, rng);
                        calls.fetch_add(1, Ordering::Relaxed);
                    }
                });
                if let Err(panic) = std::panic::catch_unwind(work) {
                    failed.store(true, Ordering::Relaxed);
                    eprintln!("again: QWEN35_SOAK_SEED={seed} QWEN35_SOAK_SECONDS={seconds}");
                    std::panic::resume_unwind(panic);
                }
            });
        }
    });
    for life in &lives {
        life.lock().unwrap().check(&model);
    }
    assert!(calls.load(Ordering::Relaxed) > 16);
}

fn step(model: &Model, lives: &[Mutex<Life>], cancels: &[CancelHandle], rng: &mut Rng) {
    let index = below(rng, lives.len());
    if below(rng, 3) == 0 {
        cancels[index].cancel();
        return;
    }
    let Ok(mut life) = lives[index].try_lock() else { return };
    match below(rng, 10) {
        0 | 1 => life.feed(&some_ids(rng, 60)),
        2 | 3 => {
            let count = 1 + below(rng, 8);
            life.generate(count);
        }
        4 => {
            let position = below(rng, life.tokens.len() + 1);
            let result = life.session.truncate(position);
            let wanted = life.tokens[..position].to_vec();
            life.settle(result, wanted);
        }
        5 => {
            let mut fork = life.fork();
            drop(life);
            fork.generate(3);
            fork.check(model);
        }
        6 => {
            let bytes = life.session.save_to_memory(SaveOptions::default()).unwrap();
            life.session.restore_from_memory(&bytes).unwrap();
        }
        7 => {
            let ids = some_ids(rng, 60);
            life.step(&ids, rng);
        }
        8 => {
            // With another one that nobody has.
            if let Ok(mut other) = lives[below(rng, lives.len())].try_lock() {
                life::batch_of(&mut [&mut *life, &mut *other], false);
            }
        }
        _ => {
            if life.tokens.len() > LIMIT / 2 {
                life.session.reset().unwrap();
                life.settle(Ok(()), Vec::new());
            }
        }
    }
}
