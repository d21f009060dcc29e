//! Random lives of sessions against a plain model of what they should hold.
//!
//! `QWEN35_SOAK_SEQUENCES` (default 1000), `QWEN35_SOAK_SEED`, `QWEN35_SOAK_SECONDS` (default
//! 3, of the threads), `QWEN35_SOAK_ISA` change what is run; `make soak` runs it longer, and
//! under valgrind where that is installed. A failure names the seed that shows it again.

#[path = "support/synthetic.rs"]
mod synthetic;
#[path = "support/temp.rs"]
mod temp;
#[path = "support/tiny_tokenizer.rs"]
mod tiny_tokenizer;
#[path = "support/toy.rs"]
mod toy;

use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use qwen35::sampling::{Rng, SamplingOptions};
use qwen35::session::{CancelHandle, SaveOptions};
use qwen35::{ErrorKind, Model, ModelOptions, Next, Session, SessionOptions};
use temp::TempDir;

const LIMIT: usize = 220;

fn setting(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name} is not a number: {text}")),
        Err(_) => default,
    }
}

fn model(threads: usize) -> (TempDir, Model) {
    let directory = toy::model();
    let isa = std::env::var("QWEN35_SOAK_ISA").ok();
    let options =
        ModelOptions { threads, isa, prefix_cache_bytes: 1 << 20, ..ModelOptions::default() };
    let model = Model::open(directory.path(), &options).unwrap();
    (directory, model)
}

/// A random number below `bound`.
fn below(rng: &mut Rng, bound: usize) -> usize {
    (rng.next_u64() % bound as u64) as usize
}

fn some_ids(rng: &mut Rng, most: usize) -> Vec<u32> {
    let count = 1 + below(rng, most);
    // Few different tokens, so that sequences share beginnings; turns begin among them.
    (0..count)
        .map(|_| match below(rng, 12) {
            0 => toy::IM_START,
            _ => below(rng, 40) as u32,
        })
        .collect()
}

/// A session, and what it must hold.
struct Life {
    session: Session,
    tokens: Vec<u32>,
    /// The caller's marks: name and the sequence then.
    marks: Vec<(u64, usize)>,
    attachment: Vec<u8>,
}

impl Life {
    fn new(model: &Model, rng: &mut Rng) -> Self {
        let sampling = match below(rng, 3) {
            0 => SamplingOptions::greedy(),
            _ => SamplingOptions { seed: Some(rng.next_u64()), ..SamplingOptions::default() },
        };
        let options = SessionOptions {
            context_limit: LIMIT,
            sampling,
            mark_limit: below(rng, 5),
            cache_namespace: (below(rng, 2) > 0).then_some(1),
            ..SessionOptions::default()
        };
        let session = Session::new(model, options).unwrap();
        Self { session, tokens: Vec::new(), marks: Vec::new(), attachment: Vec::new() }
    }

    fn fork(&self) -> Self {
        Self {
            session: self.session.fork().unwrap(),
            tokens: self.tokens.clone(),
            marks: self.marks.clone(),
            attachment: self.attachment.clone(),
        }
    }

    /// Takes the outcome of a call after which the session should hold `wanted`, or, if it was
    /// cancelled, a beginning of it.
    fn settle<T>(&mut self, result: qwen35::Result<T>, wanted: Vec<u32>) {
        match result {
            Ok(_) => assert_eq!(self.session.tokens(), wanted),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Cancelled, "{error}");
                let held = self.session.position();
                assert!(held <= wanted.len().max(self.tokens.len()));
                assert!(
                    wanted.starts_with(self.session.tokens())
                        || self.tokens.starts_with(self.session.tokens())
                );
            }
        }
        self.tokens = self.session.tokens().to_vec();
        let length = self.tokens.len();
        let held: Vec<u64> = self.session.marks().map(|mark| mark.id).collect();
        self.marks.retain(|(id, _)| held.contains(id));
        assert!(self.marks.iter().all(|(_, position)| *position <= length));
    }

    /// Queues and computes in steps, perhaps not to the end.
    fn step(&mut self, ids: &[u32], rng: &mut Rng) {
        if self.tokens.len() + ids.len() > LIMIT {
            return;
        }
        self.session.enqueue(ids).unwrap();
        let wanted = [&self.tokens, ids].concat();
        let budget = Duration::from_micros(below(rng, 300) as u64);
        let mut result = Ok(());
        for _ in 0..1 + below(rng, 8) {
            result = self.session.step_input(budget).map(drop);
            if result.is_err() {
                break;
            }
        }
        self.settle(result, wanted);
    }

    fn feed(&mut self, ids: &[u32]) {
        let result = self.session.feed(ids);
        if self.tokens.len() + ids.len() > LIMIT {
            assert_eq!(result.unwrap_err().kind(), ErrorKind::ContextOverflow);
            assert_eq!(self.session.tokens(), self.tokens);
            return;
        }
        self.settle(result, [&self.tokens, ids].concat());
    }

    fn generate(&mut self, count: usize) {
        for _ in 0..count {
            match self.session.next_token() {
                Ok(Next::Token(id) | Next::EndOfTurn(id)) => self.tokens.push(id),
                Ok(Next::LimitReached) => assert_eq!(self.tokens.len(), LIMIT),
                Err(error) if self.tokens.is_empty() => {
                    assert_eq!(error.kind(), ErrorKind::InvalidState);
                }
                Err(error) => assert_eq!(error.kind(), ErrorKind::Cancelled, "{error}"),
            }
            assert_eq!(self.session.tokens(), self.tokens);
        }
    }

    /// Compares with a plain session.
    fn check(&mut self, model: &Model) {
        assert_eq!(self.session.tokens(), self.tokens);
        assert_eq!(self.session.attachment(), self.attachment);
        if self.tokens.is_empty() {
            return;
        }
        let mut plain = Session::new(model, SessionOptions::default()).unwrap();
        plain.feed(&self.tokens).unwrap();
        let expected = plain.logits().unwrap();
        // A cancel that came too late for its call is answered by this one.
        let _ = self.session.logits();
        assert!(self.session.logits().unwrap() == expected, "after {:?}", self.tokens.len());
    }
}

/// A saved session, and what it must hold again.
struct Saved {
    bytes: Vec<u8>,
    tokens: Vec<u32>,
    marks: Vec<(u64, usize)>,
    attachment: Vec<u8>,
}

/// One random life of a few sessions.
fn sequence(model: &Model, seed: u64) {
    let rng = &mut Rng::new(seed);
    let mut lives = vec![Life::new(model, rng)];
    let mut saved: Vec<Saved> = Vec::new();
    for _ in 0..12 {
        let count = lives.len();
        let index = below(rng, count);
        let life = &mut lives[index];
        match below(rng, 16) {
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
                bytes: life.session.save_to_memory(SaveOptions::default()).unwrap(),
                tokens: life.tokens.clone(),
                marks: life.marks.clone(),
                attachment: life.attachment.clone(),
            }),
            13 if !saved.is_empty() => {
                let Saved { bytes, tokens, marks, attachment } = &saved[below(rng, saved.len())];
                if below(rng, 3) == 0 {
                    let mut damaged = bytes.clone();
                    let at = below(rng, damaged.len());
                    damaged[at] ^= 1 << below(rng, 8);
                    life.session.restore_from_memory(&damaged).unwrap_err();
                    life.check(model);
                } else {
                    life.session.restore_from_memory(bytes).unwrap();
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

#[test]
fn random_lives_hold_what_they_should() {
    let (_directory, model) = model(1);
    let count = setting("QWEN35_SOAK_SEQUENCES", 1000);
    let first = setting("QWEN35_SOAK_SEED", 1);
    let mut warm = 0;
    for i in 0..count {
        let seed = first + i;
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            sequence(&model, seed);
        }));
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
        assert!(grown < 8 << 20, "memory grew by {grown} bytes in two thirds of the run");
    }
}

#[test]
fn threads_share_sessions_and_cancel_each_other() {
    let (_directory, model) = model(2);
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
    match below(rng, 8) {
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
        _ => {
            if life.tokens.len() > LIMIT / 2 {
                life.session.reset().unwrap();
                life.settle(Ok(()), Vec::new());
            }
        }
    }
}
