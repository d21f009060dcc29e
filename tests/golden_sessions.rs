//! What a sequence's results may not depend on: how it was cut into calls, the number of
//! threads, other sessions; and what happens where the context ends.

mod support {
    pub mod golden;
    pub mod synthetic;
    pub mod temp;
    pub mod tiny_tokenizer;
}

use qwen35::sampling::SamplingOptions;
use qwen35::{ErrorKind, Model, ModelOptions, Next, Session, SessionOptions};
use support::golden::{Golden, greedy_options, instruction_sets, open, session, take};
use support::temp::TempDir;

/// Round the sizes of the parts that work is split into: register tiles, chunks, pages.
const LENGTHS: [usize; 19] =
    [1, 2, 3, 4, 5, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 257];
const NAMES: [&str; 3] = ["small-equal", "small-grouped", "small-odd"];

fn bits(logits: &[f32]) -> Vec<u32> {
    assert!(logits.iter().all(|v| v.is_finite()));
    logits.iter().map(|v| v.to_bits()).collect()
}

/// Logits after `prompt`, fed `step` tokens at a time, and 32 greedy tokens.
fn run(model: &Model, prompt: &[u32], step: usize) -> (Vec<u32>, Vec<u32>) {
    let mut session = session(model);
    for part in prompt.chunks(step) {
        session.feed(part).unwrap();
    }
    let logits = bits(session.logits().unwrap());
    (logits, take(&mut session, 32))
}

#[test]
fn prefill_in_one_call_is_token_by_token_bit_for_bit() {
    for name in NAMES {
        let golden = Golden::read(name);
        for isa in instruction_sets() {
            let model = open(&golden, isa, 2);
            for n in LENGTHS {
                let prompt = golden.prompt(n);
                let single = run(&model, &prompt, 1);
                // Other cuts of the longer prompts, which take the time.
                let steps = if isa == "scalar" && n > 65 { vec![n] } else { vec![n, 7, 64] };
                for step in steps {
                    assert_eq!(run(&model, &prompt, step), single, "{name} {isa}: {n} by {step}");
                }
            }
        }
    }
}

/// Past every internal limit of a pass, where the library itself cuts the prompt.
#[test]
fn a_long_prefill_is_token_by_token_bit_for_bit() {
    let golden = Golden::read("small-grouped");
    let isa = instruction_sets().pop().unwrap();
    let model = open(&golden, isa, 2);
    let prompt = golden.prompt(2500);
    let single = run(&model, &prompt, 1);
    for step in [2500, 1000, 513] {
        assert_eq!(run(&model, &prompt, step), single, "by {step}");
    }
}

#[test]
fn threads_change_no_bit() {
    for name in NAMES {
        let golden = Golden::read(name);
        for isa in instruction_sets() {
            let one = open(&golden, isa, 1);
            for threads in [2, 3, 7] {
                let other = open(&golden, isa, threads);
                for n in [1, 3, 65, 200] {
                    let prompt = golden.prompt(n);
                    let expected = run(&one, &prompt, n);
                    assert_eq!(run(&other, &prompt, n), expected, "{name} {isa} {threads}: {n}");
                }
            }
        }
    }
}

#[test]
fn avx2_and_avx512_agree_bit_for_bit() {
    let sets = instruction_sets();
    if !sets.contains(&"avx512") {
        println!("not run: this CPU has no AVX-512");
        return;
    }
    for name in NAMES {
        let golden = Golden::read(name);
        let (narrow, wide) = (open(&golden, "avx2", 1), open(&golden, "avx512", 1));
        for n in [1, 5, 64, 129] {
            let prompt = golden.prompt(n);
            assert_eq!(run(&narrow, &prompt, n), run(&wide, &prompt, n), "{name}: {n}");
        }
    }
}

/// Several sequences, decoded a token each in turn, are each what they are alone.
#[test]
fn interleaved_sessions_are_isolated() {
    let golden = Golden::read("small-grouped");
    let model = open(&golden, instruction_sets().pop().unwrap(), 2);
    let prompts: Vec<Vec<u32>> = [1, 3, 17, 64, 130]
        .iter()
        .map(|&n| golden.prompt(n).into_iter().map(|id| (id + 31 * n as u32) % 500).collect())
        .collect();
    let alone: Vec<Vec<u32>> = prompts
        .iter()
        .map(|prompt| {
            let mut session = session(&model);
            session.feed(prompt).unwrap();
            take(&mut session, 24)
        })
        .collect();
    let mut sessions: Vec<Session> = prompts.iter().map(|_| session(&model)).collect();
    for (session, prompt) in sessions.iter_mut().zip(&prompts) {
        session.feed(prompt).unwrap();
    }
    let mut together = vec![Vec::new(); prompts.len()];
    for _ in 0..24 {
        for (session, ids) in sessions.iter_mut().zip(&mut together) {
            ids.extend(take(session, 1));
        }
    }
    assert_eq!(together, alone);
}

/// The same with a thread of its own for every session.
#[test]
fn concurrent_sessions_are_isolated() {
    let golden = Golden::read("small-equal");
    let model = open(&golden, instruction_sets().pop().unwrap(), 2);
    let work = |n: usize| run(&model, &golden.prompt(n), n);
    let lengths = [1, 3, 17, 64, 130, 257];
    let alone: Vec<_> = lengths.iter().map(|&n| work(n)).collect();
    let together: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = lengths.iter().map(|&n| scope.spawn(move || work(n))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(together, alone);
}

#[test]
fn reset_leaves_nothing_behind() {
    let golden = Golden::read("small-odd");
    let model = open(&golden, instruction_sets().pop().unwrap(), 2);
    let prompt = golden.prompt(65);
    let fresh = run(&model, &prompt, 65);
    let mut session = session(&model);
    session.feed(&golden.prompt(200)).unwrap();
    take(&mut session, 5);
    session.reset().unwrap();
    assert_eq!(session.position(), 0);
    session.feed(&prompt).unwrap();
    assert_eq!(bits(session.logits().unwrap()), fresh.0);
    assert_eq!(take(&mut session, 32), fresh.1);
}

#[test]
fn generation_stops_at_the_context_limit() {
    let golden = Golden::read("small-equal");
    let model = open(&golden, instruction_sets().pop().unwrap(), 1);
    let limited = |limit| Session::new(&model, greedy_options(limit)).unwrap();

    let mut session = limited(64);
    session.feed(&golden.prompt(40)).unwrap();
    let expected = run(&model, &golden.prompt(40), 40).1;
    assert_eq!(take(&mut session, 24), expected[..24]);
    for _ in 0..2 {
        assert_eq!(session.next_token().unwrap(), Next::LimitReached);
        assert_eq!(session.position(), 64);
    }
    // What was produced is still there, and so are the logits after it.
    assert_eq!(session.tokens()[40..], expected[..24]);
    assert!(session.logits().is_ok());

    let mut session = limited(64);
    session.feed(&golden.prompt(64)).unwrap();
    assert_eq!(session.next_token().unwrap(), Next::LimitReached);

    let mut session = limited(1);
    session.feed(&[3]).unwrap();
    assert_eq!(session.next_token().unwrap(), Next::LimitReached);

    // 0 means the model's own limit; more than that is refused.
    assert_eq!(limited(0).context_limit(), 4096);
    let refused = Session::new(&model, greedy_options(4097));
    assert_eq!(refused.err().unwrap().kind(), ErrorKind::InvalidArgument);
}

#[test]
fn a_prompt_that_does_not_fit_is_refused_whole() {
    let golden = Golden::read("small-equal");
    let model = open(&golden, instruction_sets().pop().unwrap(), 1);
    let mut session = Session::new(&model, greedy_options(512)).unwrap();
    session.feed(&golden.prompt(10)).unwrap();
    let before = bits(session.logits().unwrap());
    let error = session.feed(&golden.prompt(2000)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ContextOverflow);
    // How much is needed and how much there is.
    assert!(error.message().contains("2000") && error.message().contains("502"), "{error}");
    assert_eq!(session.position(), 10);
    assert_eq!(bits(session.logits().unwrap()), before);
    session.feed(&golden.prompt(502)).unwrap();
    assert_eq!(session.position(), 512);
    assert_eq!(session.feed(&[1]).unwrap_err().kind(), ErrorKind::ContextOverflow);
}

#[test]
fn ids_without_a_row_are_refused_whole() {
    let golden = Golden::read("small-equal");
    let model = open(&golden, instruction_sets().pop().unwrap(), 1);
    let mut session = session(&model);
    for bad in [512, u32::MAX] {
        let error = session.feed(&[1, 2, bad, 3]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.message().contains(&bad.to_string()), "{error}");
        assert_eq!(session.position(), 0);
    }
    session.feed(&[]).unwrap();
    assert_eq!(session.next_token().unwrap_err().kind(), ErrorKind::InvalidState);
    assert_eq!(session.logits().unwrap_err().kind(), ErrorKind::InvalidState);
}

/// The matrix may have more rows than the tokenizer has tokens: those are never chosen, whatever
/// the logits and the bias say, but a caller may feed them, and they decode to nothing.
#[test]
fn rows_without_text_are_never_chosen() {
    let golden = Golden::read("small-equal");
    let folder = TempDir::new();
    golden.write(folder.path());
    let known = 400;
    support::tiny_tokenizer::write(folder.path(), known);
    let model = Model::open(folder.path(), &ModelOptions::default()).unwrap();
    let mut beyond = 0;
    for n in 1..40 {
        let mut session = session(&model);
        session.feed(&golden.prompt(n)).unwrap();
        let logits = session.logits().unwrap().to_vec();
        let best = |count: usize| {
            (0..count).max_by(|&a, &b| logits[a].total_cmp(&logits[b])).unwrap() as u32
        };
        beyond += usize::from(best(512) >= known as u32);
        assert_eq!(take(&mut session, 1), [best(known)]);
    }
    assert!(beyond > 0, "no prompt tells the two apart");

    for id in [known as u32, 511] {
        let mut sampling = SamplingOptions::greedy();
        sampling.logit_bias = vec![(id, 100.0)];
        let options = SessionOptions { sampling, ..SessionOptions::default() };
        // Refusing the bias is as good as ignoring it.
        if let Ok(mut session) = Session::new(&model, options) {
            session.feed(&golden.prompt(5)).unwrap();
            assert!(take(&mut session, 1)[0] < known as u32);
        }
        let mut session = session(&model);
        session.feed(&[1, id]).unwrap();
        take(&mut session, 1);
    }
}
