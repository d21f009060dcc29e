//! Sessions in each format of keys and values: every way to a sequence gives the bits of the
//! plain one, formats do not mix, and what each takes is what was said before.

#[path = "support/synthetic.rs"]
mod synthetic;
#[path = "support/temp.rs"]
mod temp;
#[path = "support/tiny_tokenizer.rs"]
mod tiny_tokenizer;
#[path = "support/toy.rs"]
mod toy;

use std::time::Duration;

use qwen35::sampling::SamplingOptions;
use qwen35::session::{SaveOptions, batch_step};
use qwen35::{
    ComputeMode, ErrorKind, KvElement, Model, ModelOptions, Next, Session, SessionOptions,
};
use temp::TempDir;

const ALL: SaveOptions = SaveOptions { without_marks: false };
const FORMATS: [KvElement; 3] = [KvElement::F32, KvElement::F16, KvElement::I8];

fn model(isa: &str, threads: usize) -> (TempDir, Model) {
    let directory = toy::model();
    let options = ModelOptions {
        threads,
        isa: (!isa.is_empty()).then(|| isa.to_owned()),
        prefix_cache_bytes: 64 << 20,
        ..ModelOptions::default()
    };
    let model = Model::open(directory.path(), &options).unwrap();
    (directory, model)
}

fn session(model: &Model, kv: KvElement) -> Session {
    let sampling = SamplingOptions { seed: Some(3), ..SamplingOptions::default() };
    let options = SessionOptions { sampling, kv: Some(kv), ..SessionOptions::default() };
    let session = Session::new(model, options).unwrap();
    assert_eq!(session.kv(), kv);
    session
}

fn ids(count: usize, salt: u32) -> Vec<u32> {
    (0..count as u32).map(|i| (i * 7919 + salt * 31 + 3) % 250).collect()
}

fn generate(session: &mut Session, count: usize) -> Vec<u32> {
    (0..count)
        .map(|_| match session.next_token().unwrap() {
            Next::Token(id) | Next::EndOfTurn(id) => id,
            Next::LimitReached => panic!("limit reached"),
        })
        .collect()
}

fn logits(session: &mut Session) -> Vec<f32> {
    session.logits().unwrap().to_vec()
}

/// The logits after `tokens`, computed plainly.
fn plain(model: &Model, kv: KvElement, tokens: &[u32]) -> Vec<f32> {
    let mut session = session(model, kv);
    session.feed(tokens).unwrap();
    logits(&mut session)
}

#[test]
fn every_way_gives_the_bits_of_the_plain_one() {
    let (_directory, model) = model("", 2);
    for kv in FORMATS {
        let prompt = ids(600, 1);
        let expected = plain(&model, kv, &prompt);
        // In pieces, token by token at the end.
        let mut pieces = session(&model, kv);
        for part in [&prompt[..1], &prompt[1..130], &prompt[130..590]] {
            pieces.feed(part).unwrap();
        }
        prompt[590..].iter().for_each(|id| pieces.feed(&[*id]).unwrap());
        assert!(logits(&mut pieces) == expected, "{kv:?} in pieces");
        // In steps.
        let mut steps = session(&model, kv);
        steps.enqueue(&prompt).unwrap();
        while steps.remaining() > 0 {
            steps.step_input(Duration::from_micros(200)).unwrap();
        }
        assert!(logits(&mut steps) == expected, "{kv:?} in steps");
        // There and back, by a mark, by truncation, and in a fork that does not notice.
        let mark = pieces.mark().unwrap();
        let mut fork = pieces.fork().unwrap();
        pieces.feed(&ids(90, 2)).unwrap();
        assert!(logits(&mut fork) == expected, "{kv:?} fork");
        assert!(logits(&mut pieces) != expected);
        pieces.rewind(mark, true).unwrap();
        assert!(logits(&mut pieces) == expected, "{kv:?} rewound");
        pieces.truncate(100).unwrap();
        assert!(logits(&mut pieces) == plain(&model, kv, &prompt[..100]), "{kv:?} truncated");
        pieces.reset().unwrap();
        assert_eq!(pieces.kv(), kv);
        pieces.feed(&prompt).unwrap();
        assert!(logits(&mut pieces) == expected, "{kv:?} after a reset");
        // Judged as a whole, as by single logits.
        let mut judge = session(&model, kv);
        judge.feed(&prompt[..100]).unwrap();
        let score = judge.score(&prompt[100..200], false).unwrap();
        let mut single = session(&model, kv);
        single.feed(&prompt[..150]).unwrap();
        assert_eq!(single.logprobs(&prompt[150..151]).unwrap()[0], score.each[50], "{kv:?}");
    }
}

#[test]
fn instruction_sets_and_threads_agree() {
    let mut expected: Vec<Vec<u32>> = Vec::new();
    for isa in qwen35::kernels::Isa::available().map(|isa| isa.name()) {
        for threads in [1, 2] {
            if isa == "scalar" {
                continue;
            }
            let (_directory, model) = model(isa, threads);
            for (n, kv) in FORMATS.into_iter().enumerate() {
                let found = plain(&model, kv, &ids(700, 4));
                let bits: Vec<u32> = found.iter().map(|x| x.to_bits()).collect();
                if expected.len() == n {
                    expected.push(bits);
                } else {
                    assert!(expected[n] == bits, "{kv:?} {isa} {threads}");
                }
            }
        }
    }
    // They are formats indeed.
    assert!(expected.windows(2).all(|pair| pair[0] != pair[1]));
}

#[test]
fn saved_sessions_go_on_in_their_own_format_only() {
    let (_directory, model) = model("", 2);
    for kv in FORMATS {
        for length in [1, 64, 200] {
            let mut original = session(&model, kv);
            original.feed(&ids(length, 5)).unwrap();
            original.mark().unwrap();
            original.feed(&ids(7, 6)).unwrap();
            let saved = original.save_to_memory(ALL).unwrap();
            assert_eq!(saved.len(), original.saved_bytes(ALL).unwrap());
            let mut restored = session(&model, kv);
            restored.restore_from_memory(&saved).unwrap();
            assert!(saved == restored.save_to_memory(ALL).unwrap(), "{kv:?} {length}");
            assert!(logits(&mut restored) == logits(&mut original));
            assert_eq!(generate(&mut restored, 70), generate(&mut original, 70), "{kv:?}");
            for other in FORMATS.into_iter().filter(|other| *other != kv) {
                let mut other = session(&model, other);
                other.feed(&ids(5, 9)).unwrap();
                let before = other.save_to_memory(ALL).unwrap();
                let error = other.restore_from_memory(&saved).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Unsupported);
                for name in [kv.name(), other.kv().name()] {
                    assert!(error.message().contains(name), "{}", error.message());
                }
                assert!(before == other.save_to_memory(ALL).unwrap());
            }
        }
    }
}

#[test]
fn beginnings_are_shared_among_equals_only() {
    let (_directory, model) = model("", 1);
    let sharing = |kv| {
        let options =
            SessionOptions { kv: Some(kv), cache_namespace: Some(1), ..SessionOptions::default() };
        Session::new(&model, options).unwrap()
    };
    let start = model.turn_start_id().unwrap();
    let mut tokens = ids(400, 7);
    for at in [0, 200, 300] {
        tokens[at] = start;
    }
    for kv in FORMATS {
        let fed = sharing(kv).set_tokens(&tokens).unwrap();
        assert_eq!(fed.computed, 400, "{kv:?} finds nothing of the other formats");
        let mut second = sharing(kv);
        let fed = second.set_tokens(&tokens).unwrap();
        assert_eq!((fed.cached, fed.computed), (300, 100), "{kv:?}");
        assert!(logits(&mut second) == plain(&model, kv, &tokens), "{kv:?}");
    }
}

#[test]
fn formats_mix_in_a_batch() {
    let (_directory, model) = model("", 2);
    let made = |mixed: &mut Vec<Session>| -> Vec<Vec<u32>> {
        let mut ids = vec![Vec::new(); mixed.len()];
        for _ in 0..20 {
            let mut sessions: Vec<&mut Session> = mixed.iter_mut().collect();
            for (ids, next) in ids.iter_mut().zip(batch_step(&mut sessions).unwrap()) {
                match next.unwrap() {
                    Next::Token(id) | Next::EndOfTurn(id) => ids.push(id),
                    Next::LimitReached => panic!("limit reached"),
                }
            }
        }
        ids
    };
    let fresh = |n: usize| {
        let mut session = session(&model, FORMATS[n % 3]);
        session.feed(&ids(20 + 120 * n, n as u32)).unwrap();
        session
    };
    let mut together: Vec<Session> = (0..6).map(fresh).collect();
    let found = made(&mut together);
    for (n, found) in found.iter().enumerate() {
        let mut alone = fresh(n);
        assert_eq!(generate(&mut alone, 20), *found, "{:?}", alone.kv());
        assert!(logits(&mut alone) == logits(&mut together[n]));
    }
}

#[test]
fn memory_is_as_estimated() {
    let directory = toy::model();
    let estimate = |compute| {
        let options = ModelOptions { compute, ..ModelOptions::default() };
        Model::estimate(directory.path(), &options, 1000).unwrap()
    };
    let (exact, fast) = (estimate(None), estimate(Some(ComputeMode::Fast)));
    assert_eq!(exact.kv, fast.kv);
    assert_eq!(exact.session - exact.kv.f32, fast.session - fast.kv.f16);
    let (_directory, model) = model("", 1);
    assert_eq!(model.default_kv(), KvElement::F32);
    let bytes: Vec<u64> = FORMATS
        .into_iter()
        .map(|kv| {
            let mut session = session(&model, kv);
            let before = session.statistics().bytes;
            session.feed(&ids(1000, 1)).unwrap();
            let held = session.statistics().bytes - before;
            // What was fed is not much more than its ids.
            assert!((held - exact.kv.of(kv)).abs_diff(4000) <= 4200, "{kv:?}: {held}");
            exact.kv.of(kv)
        })
        .collect();
    assert_eq!(bytes[0], 2 * bytes[1]);
    assert!(2 * bytes[2] < bytes[0]);
    // More than a number can hold is the largest one.
    let options = ModelOptions::default();
    for context in [usize::MAX, usize::MAX / 2, usize::MAX / 64] {
        let much = Model::estimate(directory.path(), &options, context).unwrap();
        assert_eq!((much.session, much.kv.f32), (u64::MAX, u64::MAX), "{context}");
    }
}

/// A header of an odd length: no tensor can be used where it lies.
#[test]
fn unaligned_weights_are_not_estimated_as_mapped() {
    let directory = toy::model();
    let estimate = || Model::estimate(directory.path(), &ModelOptions::default(), 1).unwrap();
    let aligned = estimate();
    assert_eq!(aligned.mapped, aligned.weights);
    let path = directory.join("model.safetensors");
    let mut bytes = std::fs::read(&path).unwrap();
    let length = u64::from_le_bytes(bytes[..8].try_into().unwrap());
    let more = 1 + length % 2;
    for at in 0..more {
        bytes.insert((8 + length + at) as usize, b' ');
    }
    bytes[..8].copy_from_slice(&(length + more).to_le_bytes());
    assert_eq!((length + more) % 2, 1);
    std::fs::write(&path, bytes).unwrap();
    let unaligned = estimate();
    assert_eq!((unaligned.weights, unaligned.mapped), (aligned.weights, 0));
}
