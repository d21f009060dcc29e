//! A cancel from another thread ends a call soon, wherever it is.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use qwen35::{ErrorKind, Model, ModelOptions, Result, Session, SessionOptions};

/// Far more than it takes on a machine that does nothing else; the least of some tries counts.
const BOUND: Duration = Duration::from_millis(50);
const TRIES: usize = 8;

fn demo() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/demo-model")
}

fn options(threads: usize) -> ModelOptions {
    ModelOptions { threads, ..ModelOptions::default() }
}

/// Calls `cancel` on another thread after `wait`; the time until `work`, which is to end with
/// `Cancelled`, returns.
fn answer<T>(
    wait: Duration,
    cancel: impl FnOnce() + Send,
    work: impl FnOnce() -> Result<T>,
) -> Duration {
    std::thread::scope(|scope| {
        let canceller = scope.spawn(move || {
            std::thread::sleep(wait);
            let asked = Instant::now();
            cancel();
            asked
        });
        let result = work();
        let returned = Instant::now();
        assert_eq!(result.err().map(|e| e.kind()), Some(ErrorKind::Cancelled));
        returned - canceller.join().unwrap()
    })
}

fn least(mut time: impl FnMut(u64) -> Duration) -> Duration {
    (0..TRIES as u64).map(&mut time).min().unwrap()
}

#[test]
fn prefill_and_decoding_end_soon_and_can_be_gone_on_with() {
    for threads in [1, 2] {
        let model = Model::open(&demo(), &options(threads)).unwrap();
        let limit = model.config().unwrap().max_position_embeddings;
        let tokens: Vec<u32> = (0..limit as u32).map(|n| 300 + n * 7 % 300).collect();
        let mut session = Session::new(&model, SessionOptions::default()).unwrap();
        let time = least(|n| {
            session.reset().unwrap();
            let handle = session.cancel_handle();
            // So soon that the prompt is far from its end.
            answer(
                Duration::from_micros(500 * n),
                move || handle.cancel(),
                || session.feed(&tokens),
            )
        });
        assert!(time < BOUND, "prefill, {threads} threads: {time:?}");
        assert!(session.position() < tokens.len());

        let time = least(|n| {
            session.reset().unwrap();
            session.feed(&tokens[..8]).unwrap();
            let handle = session.cancel_handle();
            answer(
                Duration::from_micros(700 * n),
                move || handle.cancel(),
                || {
                    loop {
                        // Its limit is thousands of tokens away.
                        session.next_token()?;
                        if session.position() + 1 == limit {
                            return Ok(());
                        }
                    }
                },
            )
        });
        assert!(time < BOUND, "decoding, {threads} threads: {time:?}");
        session.next_token().unwrap();
    }
}

#[test]
fn opening_ends_soon_also_while_only_the_tokenizer_is_missing() {
    // From the first report on, and from the last, when all weights are there.
    for late in [false, true] {
        let time = least(|_| {
            let asked = AtomicBool::new(false);
            let mut since = None;
            let mut go_on = |done: u64, total: u64| {
                let stop = !late || done + 64 >= total;
                if stop && !asked.swap(true, Ordering::Relaxed) {
                    since = Some(Instant::now());
                }
                !stop
            };
            let error = Model::open_with_progress(&demo(), &options(1), &mut go_on).err().unwrap();
            assert_eq!(error.kind(), ErrorKind::Cancelled);
            since.unwrap().elapsed()
        });
        assert!(time < BOUND, "late {late}: {time:?}");
    }
}
