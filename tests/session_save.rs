//! Saved sessions: what comes back goes on bit for bit; what is damaged or foreign is refused
//! and changes nothing; a file is always whole.

#[path = "support/synthetic.rs"]
mod synthetic;
#[path = "support/temp.rs"]
mod temp;
#[path = "support/tiny_tokenizer.rs"]
mod tiny_tokenizer;
#[path = "support/toy.rs"]
mod toy;

use std::io::Write;
use std::ops::ControlFlow;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use qwen35::chat::ChatRequest;
use qwen35::pack::{PackOptions, pack};
use qwen35::sampling::SamplingOptions;
use qwen35::session::{MAX_ATTACHMENT, SaveOptions};
use qwen35::{ChatEncoding, ComputeMode, ErrorKind, Model, ModelOptions, Next};
use qwen35::{Session, SessionOptions, WeightFormat};
use temp::TempDir;

const ALL: SaveOptions = SaveOptions { without_marks: false };

fn open(path: &Path) -> Model {
    Model::open(path, &ModelOptions { threads: 2, ..ModelOptions::default() }).unwrap()
}

fn model() -> (TempDir, Model) {
    let directory = toy::model();
    let model = open(directory.path());
    (directory, model)
}

fn drawing(seed: u64) -> SessionOptions {
    let sampling = SamplingOptions { seed: Some(seed), ..SamplingOptions::default() };
    SessionOptions { sampling, ..SessionOptions::default() }
}

fn session(model: &Model, seed: u64) -> Session {
    Session::new(model, drawing(seed)).unwrap()
}

fn ids(count: usize) -> Vec<u32> {
    (0..count as u32).map(|i| (i * 7919 + 3) % 250).collect()
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

#[test]
fn a_restored_session_goes_on_as_the_saved_one() {
    let (directory, model) = model();
    let again = open(directory.path());
    for length in [0, 1, 3, 63, 64, 65, 128, 300] {
        for generated in [0, 1, 5] {
            if length == 0 && generated > 0 {
                continue;
            }
            let mut original = session(&model, 1);
            original.feed(&ids(length)).unwrap();
            original.mark().unwrap();
            generate(&mut original, generated);
            original.set_attachment(format!("{length}").as_bytes()).unwrap();
            let saved = original.save_to_memory(ALL).unwrap();
            assert_eq!(saved.len(), original.saved_bytes(ALL).unwrap());
            assert!(saved == original.save_to_memory(ALL).unwrap(), "the same bytes");

            // Into a used session, of another opening of the same folder.
            let mut restored = session(&again, 2);
            restored.feed(&ids(70)).unwrap();
            restored.mark().unwrap();
            restored.restore_from_memory(&saved).unwrap();
            assert_eq!(restored.tokens(), original.tokens());
            assert_eq!(restored.attachment(), original.attachment());
            assert!(saved == restored.save_to_memory(ALL).unwrap(), "{length} {generated}");
            if length > 0 {
                assert!(logits(&mut restored) == logits(&mut original));
                assert_eq!(generate(&mut restored, 20), generate(&mut original, 20));
            }
            restored.feed(&ids(80)).unwrap();
            original.feed(&ids(80)).unwrap();
            assert!(logits(&mut restored) == logits(&mut original));
        }
    }
}

#[test]
fn input_that_waits_is_saved_as_such() {
    let (_directory, model) = model();
    for generated in [0, 2] {
        let mut original = session(&model, 1);
        original.feed(&ids(50)).unwrap();
        generate(&mut original, generated);
        original.enqueue(&ids(90)).unwrap();
        // Part of a pass may be done; it is no part of what is saved.
        original.step_input(Duration::from_micros(50)).unwrap();
        let mark = original.mark().unwrap();
        let saved = original.save_to_memory(ALL).unwrap();
        let mut restored = session(&model, 2);
        restored.restore_from_memory(&saved).unwrap();
        assert_eq!(restored.tokens(), original.tokens());
        assert_eq!(restored.remaining(), original.remaining());
        let mut fork = restored.fork().unwrap();
        assert!(logits(&mut restored) == logits(&mut original));
        assert_eq!(generate(&mut restored, 10), generate(&mut original, 10));
        // Back to where it waited: a cancel drops what is queued, and only that.
        for session in [&mut original, &mut restored, &mut fork] {
            session.rewind(mark, true).unwrap();
            session.cancel_handle().cancel();
            assert_eq!(session.step(Duration::MAX).unwrap_err().kind(), ErrorKind::Cancelled);
            let kept = session.position();
            assert!((50 + generated..50 + generated + 90).contains(&kept), "{kept}");
            assert_eq!(session.remaining(), kept.min(1).min(session.remaining()));
        }
        assert!(logits(&mut restored) == logits(&mut original));
    }
}

/// A mark stands for tokens; when a cancel drops some of them, because they were not computed, the
/// mark goes with them. Else it would lead back to whatever has come in their place.
#[test]
fn a_mark_on_input_that_a_cancel_drops_is_gone() {
    let (_directory, model) = model();
    let mut session = session(&model, 1);
    session.feed(&ids(20)).unwrap();
    let before = session.mark().unwrap();
    session.enqueue(&ids(90)).unwrap();
    let waiting = session.mark().unwrap();
    session.cancel_handle().cancel();
    assert_eq!(session.step(Duration::MAX).unwrap_err().kind(), ErrorKind::Cancelled);
    assert_eq!(session.position(), 20);
    assert!(session.marks().all(|mark| mark.position <= 20));
    session.feed(&ids(120)[30..]).unwrap();
    session.rewind(waiting, false).unwrap_err();
    assert_eq!(session.position(), 110);
    session.rewind(before, false).unwrap();
    assert_eq!(session.tokens(), ids(20));
}

#[test]
fn every_sampling_option_comes_back() {
    let (_directory, model) = model();
    let sampling = SamplingOptions {
        temperature: 0.7,
        top_k: 11,
        top_p: 0.9,
        min_p: 0.01,
        repetition_penalty: 1.2,
        presence_penalty: 0.5,
        frequency_penalty: 0.25,
        penalty_window: Some(9),
        logit_bias: vec![(5, -1.5), (7, f32::NEG_INFINITY), (5, 2.0)],
        seed: Some(u64::MAX),
    };
    let options = SessionOptions { sampling, ..SessionOptions::default() };
    let mut original = Session::new(&model, options).unwrap();
    original.feed(&ids(20)).unwrap();
    generate(&mut original, 15);
    let saved = original.save_to_memory(ALL).unwrap();
    let mut restored = session(&model, 1);
    restored.restore_from_memory(&saved).unwrap();
    assert!(saved == restored.save_to_memory(ALL).unwrap());
    assert_eq!(generate(&mut restored, 60), generate(&mut original, 60));
}

#[test]
fn the_next_turn_after_a_restart_computes_its_own_tokens() {
    let (directory, model) = model();
    let request = |texts: &[(&'static str, String)]| {
        ChatRequest::from_turns(texts.iter().map(|(role, text)| (*role, text.as_str())))
    };
    let mut texts = vec![("system", "be kind ".repeat(20)), ("user", "hello ".repeat(20))];
    let mut original = session(&model, 1);
    original.feed_chat(&request(&texts), ChatEncoding::Safe).unwrap();
    generate(&mut original, 8);
    let user = original.mark().unwrap();
    generate(&mut original, 2);
    let saved = original.save_to_memory(ALL).unwrap();
    let without = original.save_to_memory(SaveOptions { without_marks: true }).unwrap();
    assert!(without.len() < saved.len());

    texts.extend([("assistant", "hi".to_owned()), ("user", "and now".to_owned())]);
    let again = open(directory.path());
    let mut restored = session(&again, 2);
    restored.restore_from_memory(&saved).unwrap();
    let mut rewound = restored.fork().unwrap();
    let fed = restored.feed_chat(&request(&texts), ChatEncoding::Safe).unwrap();
    let expected = original.feed_chat(&request(&texts), ChatEncoding::Safe).unwrap();
    assert_eq!(fed, expected);
    assert!(fed.computed < fed.total / 3, "{fed:?}");
    assert!(logits(&mut restored) == logits(&mut original));

    // The caller's own mark is there under its name, and new ones get new names.
    rewound.rewind(user, true).unwrap();
    assert!(rewound.mark().unwrap() > user);
    assert_eq!(generate(&mut rewound, 2).len(), 2);

    let mut bare = session(&again, 2);
    bare.restore_from_memory(&without).unwrap();
    assert_eq!(bare.marks().len(), 0);
    let fed = bare.feed_chat(&request(&texts), ChatEncoding::Safe).unwrap();
    assert_eq!(fed.computed, fed.total);
    assert!(logits(&mut bare) == logits(&mut original));

    // A session that holds fewer marks keeps the newest.
    let mut few = Session::new(&again, SessionOptions { mark_limit: 1, ..drawing(1) }).unwrap();
    few.restore_from_memory(&saved).unwrap();
    assert_eq!(few.marks().map(|mark| mark.id).collect::<Vec<_>>(), [user]);
}

/// Refuses `bytes` with an error of one of `kinds`, and goes on as if nothing had been.
fn refused(target: &Session, bytes: &[u8], kinds: &[ErrorKind], what: &str) {
    let mut trial = target.fork().unwrap();
    let error = trial.restore_from_memory(bytes).expect_err(what);
    assert!(kinds.contains(&error.kind()), "{what}: {:?} {error}", error.kind());
    assert!(error.message().len() > 20, "{what}: {error}");
    assert_eq!(trial.tokens(), target.tokens(), "{what}");
    assert_eq!(trial.attachment(), b"mine", "{what}");
    let mut untouched = target.fork().unwrap();
    assert_eq!(generate(&mut trial, 16), generate(&mut untouched, 16), "{what}");
}

#[test]
fn damaged_states_are_refused_whole() {
    let (_directory, model) = model();
    let mut original = session(&model, 1);
    original.feed(&ids(100)).unwrap();
    original.mark().unwrap();
    generate(&mut original, 3);
    let saved = original.save_to_memory(ALL).unwrap();
    let mut target = session(&model, 5);
    target.feed(&ids(9)).unwrap();
    target.set_attachment(b"mine").unwrap();

    let damaged = [ErrorKind::Format, ErrorKind::Unsupported];
    for i in 0..16 {
        let at = saved.len() * i / 16;
        refused(&target, &saved[..at], &[ErrorKind::Format], &format!("cut at {at}"));
        for bit in [1, 128] {
            let mut bytes = saved.clone();
            bytes[at] ^= bit;
            refused(&target, &bytes, &damaged, &format!("byte {at}"));
        }
    }
    for at in (0..256).step_by(4) {
        for width in [4, 8] {
            let mut bytes = saved.clone();
            bytes[at..at + width].fill(0xFF);
            refused(&target, &bytes, &damaged, &format!("{width} bytes of ones at {at}"));
            // With a header checksum that fits, as a forger would make it.
            if at + width <= 120 {
                let sum = checksum(&bytes[..120]);
                bytes[120..128].copy_from_slice(&sum.to_le_bytes());
                let mut trial = target.fork().unwrap();
                let result = trial.restore_from_memory(&bytes);
                // Only what nothing depends on may pass: reserved numbers, and the name of the
                // next mark.
                assert!(result.is_err() || at >= 60, "{at} {width}");
            }
        }
    }
    // Of the names of marks, those that leave none for the next are not taken.
    for (next, fits) in [(1u64 << 62, true), ((1 << 63) + 1, false), (u64::MAX, false)] {
        let mut bytes = saved.clone();
        bytes[96..104].copy_from_slice(&next.to_le_bytes());
        let sum = checksum(&bytes[..120]);
        bytes[120..128].copy_from_slice(&sum.to_le_bytes());
        if fits {
            let mut trial = target.fork().unwrap();
            trial.restore_from_memory(&bytes).unwrap();
            assert_eq!(trial.mark().unwrap(), next);
            trial.save_to_memory(ALL).unwrap();
        } else {
            refused(&target, &bytes, &[ErrorKind::Format], "no names left");
        }
    }
    for at in [saved.len() - 1, saved.len() - 8, saved.len() - 9, 128, 200] {
        let mut bytes = saved.clone();
        bytes[at] ^= 4;
        refused(&target, &bytes, &damaged, &format!("byte {at}"));
    }
    let longer = [&saved[..], &[0]].concat();
    refused(&target, &longer, &[ErrorKind::Format], "one byte more");
    for other in [&b""[..], b"x", &[0; 4096], b"{\"messages\":[]}"] {
        refused(&target, other, &[ErrorKind::Format], "another file");
    }
    // And the whole one is taken.
    target.restore_from_memory(&saved).unwrap();
    assert_eq!(generate(&mut target, 16), generate(&mut original, 16));
}

/// XXH64 as the format describes it, for headers of 120 bytes.
fn checksum(bytes: &[u8]) -> u64 {
    const P: [u64; 5] = [
        0x9E37_79B1_85EB_CA87,
        0xC2B2_AE3D_27D4_EB4F,
        0x1656_67B1_9E37_79F9,
        0x85EB_CA77_C2B2_AE63,
        0x27D4_EB2F_1656_67C5,
    ];
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    let round = |lane: u64, input: u64| {
        lane.wrapping_add(input.wrapping_mul(P[1])).rotate_left(31).wrapping_mul(P[0])
    };
    let mut lanes = [P[0].wrapping_add(P[1]), P[1], 0, 0u64.wrapping_sub(P[0])];
    let whole = bytes.len() / 32 * 32;
    for at in (0..whole).step_by(8) {
        let lane = at / 8 % 4;
        lanes[lane] = round(lanes[lane], word(at));
    }
    let turned = [1, 7, 12, 18].iter().zip(lanes).map(|(by, lane)| lane.rotate_left(*by));
    let mut h = turned.fold(0u64, u64::wrapping_add);
    for lane in lanes {
        h = (h ^ round(0, lane)).wrapping_mul(P[0]).wrapping_add(P[3]);
    }
    h = h.wrapping_add(bytes.len() as u64);
    assert!(bytes.len().is_multiple_of(8) && bytes.len() >= 32);
    for at in (whole..bytes.len()).step_by(8) {
        h = (h ^ round(0, word(at))).rotate_left(27).wrapping_mul(P[0]).wrapping_add(P[3]);
    }
    h = (h ^ (h >> 33)).wrapping_mul(P[1]);
    h = (h ^ (h >> 29)).wrapping_mul(P[2]);
    h ^ (h >> 32)
}

#[test]
fn foreign_states_are_refused() {
    let (_directory, model) = model();
    let mut target = session(&model, 5);
    target.feed(&ids(9)).unwrap();
    target.set_attachment(b"mine").unwrap();

    // The same shapes, other weights.
    let other = TempDir::new();
    let mut spec = synthetic::Spec::named("small-equal");
    spec.text_mut()["eos_token_id"] = toy::END_OF_TEXT.into();
    spec.seed += 1;
    spec.write(other.path()).unwrap();
    tiny_tokenizer::write(other.path(), spec.size("vocab_size"));
    let other_model = open(other.path());
    assert_ne!(other_model.fingerprint().unwrap(), model.fingerprint().unwrap());
    let mut foreign = session(&other_model, 1);
    foreign.feed(&ids(10)).unwrap();
    let saved = foreign.save_to_memory(ALL).unwrap();
    refused(&target, &saved, &[ErrorKind::Unsupported], "another model");

    // The same model in another folder is the same model.
    let copy = toy::model();
    assert_eq!(open(copy.path()).fingerprint().unwrap(), model.fingerprint().unwrap());

    // Of other weights made from it, or of another way of computing, it says which.
    let options = |weights, compute| ModelOptions { weights, compute, ..ModelOptions::default() };
    for (options, name) in [
        (options(WeightFormat::Int4, None), "int4.2 fast"),
        (options(WeightFormat::Int8, Some(ComputeMode::Exact)), "int8.2 exact"),
        (options(WeightFormat::Stored, Some(ComputeMode::Fast)), "stored fast"),
    ] {
        let other = Model::open(copy.path(), &options).unwrap();
        let mut foreign = session(&other, 1);
        foreign.feed(&ids(10)).unwrap();
        let saved = foreign.save_to_memory(ALL).unwrap();
        refused(&target, &saved, &[ErrorKind::Unsupported], name);
        let error = target.restore(&mut &saved[..], saved.len() as u64).unwrap_err();
        assert!(error.message().contains(name), "{error}");
    }

    // Longer than this session may be.
    let mut long = session(&model, 1);
    long.feed(&ids(100)).unwrap();
    let saved = long.save_to_memory(ALL).unwrap();
    let options = SessionOptions { context_limit: 99, ..drawing(5) };
    let mut short = Session::new(&model, options).unwrap();
    short.feed(&ids(9)).unwrap();
    short.set_attachment(b"mine").unwrap();
    refused(&short, &saved, &[ErrorKind::ContextOverflow], "too long");

    // Another version.
    let mut newer = saved.clone();
    newer[8] = 99;
    let sum = checksum(&newer[..120]);
    newer[120..128].copy_from_slice(&sum.to_le_bytes());
    refused(&target, &newer, &[ErrorKind::Unsupported], "version 99");
    let limit = vec![0; MAX_ATTACHMENT + 1];
    assert_eq!(target.set_attachment(&limit).unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(target.attachment(), b"mine");
}

/// A state goes with the model, not with the file it was opened from: what was saved on the
/// folder goes on with what was packed of it, and the other way round.
#[test]
fn states_go_from_folder_to_packed_file_and_back() {
    let (directory, _) = model();
    for weights in [WeightFormat::Stored, WeightFormat::Int8, WeightFormat::Int4] {
        let path = directory.join("packed.qwen");
        let packing = PackOptions { weights, threads: 1 };
        pack(directory.path(), &path, &packing, &mut |_, _| ControlFlow::Continue(())).unwrap();
        let options = ModelOptions { weights, threads: 1, ..ModelOptions::default() };
        let folder = Model::open(directory.path(), &options).unwrap();
        let packed = Model::open(&path, &ModelOptions::default()).unwrap();
        for (from, to) in [(&folder, &packed), (&packed, &folder)] {
            let mut first = session(from, 7);
            first.feed(&ids(50)).unwrap();
            let saved = first.save_to_memory(ALL).unwrap();
            let mut second = session(to, 1);
            second.restore(&mut &saved[..], saved.len() as u64).unwrap();
            assert_eq!(generate(&mut second, 20), generate(&mut first, 20));
            assert_eq!(logits(&mut second), logits(&mut first));
        }
    }
}

#[test]
fn files_are_replaced_or_left() {
    let (_directory, model) = model();
    let folder = TempDir::new();
    let path = folder.join("a chat é.state");
    let mut session = session(&model, 1);
    session.feed(&ids(30)).unwrap();
    session.save_to_file(ALL, &path).unwrap();
    let first = std::fs::read(&path).unwrap();
    assert!(first == session.save_to_memory(ALL).unwrap());
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
    // What a killed process left behind is in nobody's way.
    let half = folder.join("a chat é.state.saving");
    std::fs::write(&half, "half of something").unwrap();
    session.feed(&ids(5)).unwrap();
    session.save_to_file(ALL, &path).unwrap();
    assert!(!half.exists());
    // Nor does it lend its mode or its other names.
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let shared = folder.join("shared");
        std::fs::write(&half, "mine").unwrap();
        std::fs::hard_link(&half, &shared).unwrap();
        std::fs::set_permissions(&half, std::fs::Permissions::from_mode(0o666)).unwrap();
        session.save_to_file(ALL, &path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(std::fs::read(&shared).unwrap(), b"mine");
        std::fs::remove_file(shared).unwrap();
        // A link under that name is not followed, and not ours to remove.
        std::os::unix::fs::symlink("elsewhere", &half).unwrap();
        let error = session.save_to_file(ALL, &path).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io);
        assert!(error.message().contains("it is a symbolic link, expected nothing"), "{error}");
        assert!(!folder.join("elsewhere").exists());
        std::fs::remove_file(&half).unwrap();
    }
    let second = std::fs::read(&path).unwrap();
    assert!(second != first && second == session.save_to_memory(ALL).unwrap());
    // Somebody else is saving to it.
    let other = std::fs::File::create(&half).unwrap();
    other.lock().unwrap();
    let error = session.save_to_file(ALL, &path).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy);
    drop(other);
    assert!(std::fs::read(&path).unwrap() == second);
    session.save_to_file(ALL, &path).unwrap();

    let pipe = folder.join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let bad = [
        (folder.join("no/such/folder"), "No such file"),
        (folder.path().to_owned(), "a folder"),
        ("/".into(), "a folder"),
        (folder.join("new/"), "a folder"),
        (pipe.clone(), "a pipe"),
        ("/dev/full".into(), "a device"),
    ];
    for (bad, why) in bad {
        let error = session.save_to_file(ALL, &bad).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io, "{error}");
        assert!(error.message().contains(why), "{error}");
        assert_eq!(session.restore_from_file(&bad).unwrap_err().kind(), ErrorKind::Io);
    }
    std::fs::remove_file(pipe).unwrap();
    let names: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(names.len(), 1, "{names:?}");
    let error = session.restore_from_file(Path::new("/dev/zero")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io, "{error}");
    // A full disk: the old file stays.
    if Path::new("/dev/full").exists() {
        struct Full(std::fs::File);
        impl Write for Full {
            fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
                self.0.write(bytes)
            }
            fn flush(&mut self) -> std::io::Result<()> {
                self.0.flush()
            }
        }
        let mut full = Full(std::fs::File::create("/dev/full").unwrap());
        assert_eq!(session.save(ALL, &mut full).unwrap_err().kind(), ErrorKind::Io);
    }
}

const CHILD: &str = "QWEN35_TEST_SAVING_CHILD";

/// Not a test of its own: what the next one starts and kills. Saves two states in turn, for
/// ever, and says when it has begun.
#[test]
fn saving_child() {
    let Some(arguments) = std::env::var_os(CHILD) else { return };
    let arguments = arguments.into_string().unwrap();
    let (model, file) = arguments.split_once('|').unwrap();
    let model = open(Path::new(model));
    let (mut odd, mut even) = (session(&model, 1), session(&model, 2));
    odd.feed(&ids(301)).unwrap();
    even.feed(&ids(200)).unwrap();
    println!("ready");
    std::io::stdout().flush().unwrap();
    loop {
        odd.save_to_file(ALL, Path::new(file)).unwrap();
        even.save_to_file(ALL, Path::new(file)).unwrap();
    }
}

#[test]
fn a_killed_save_leaves_the_old_file_or_the_new() {
    let (directory, model) = model();
    let folder = TempDir::new();
    let file = folder.join("killed.state");
    let mut session = session(&model, 1);
    session.feed(&ids(200)).unwrap();
    session.save_to_file(ALL, &file).unwrap();
    let arguments = format!("{}|{}", directory.path().display(), file.display());
    let mut found = [0, 0];
    for round in 0..50u64 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "saving_child", "--nocapture", "--test-threads=1"])
            .env(CHILD, &arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut said = String::new();
        let mut output = std::io::BufReader::new(child.stdout.take().unwrap());
        while !said.contains("ready") {
            said.clear();
            assert!(std::io::BufRead::read_line(&mut output, &mut said).unwrap() > 0);
        }
        std::thread::sleep(Duration::from_micros(round * 613 % 20_000));
        child.kill().unwrap();
        child.wait().unwrap();
        session.restore_from_file(&file).unwrap();
        found[session.position() % 2] += 1;
        assert!([301, 200].contains(&session.position()));
        assert_eq!(session.tokens(), ids(session.position()));
    }
    session.save_to_file(ALL, &file).unwrap();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left behind");
    assert_eq!(found[0] + found[1], 50);
}
