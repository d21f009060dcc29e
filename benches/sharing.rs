//! How the engine shares its time: steps with a budget, cancels, settling of replies, batches of
//! sessions, and several models and busy hosts beside each other.
//!
//! ```text
//! cargo bench --bench sharing -- --model DIR [--threads 2] [--weights stored|int8|int4]
//!     [--measure step,cancel,settle,batch,busy,two]
//!     [--prompt 2000] [--budget 4000] [--calls 1000] [--sessions 8] [--output 16]
//! ```
//!
//! Every figure is a ratio of things measured in turns in one run, or a distribution of
//! times of calls; on a shared machine the largest of those belong to the machine.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use qwen35::conversation::{Conversation, ConversationOptions, Piece};
use qwen35::sampling::SamplingOptions;
use qwen35::session::{Step, batch_step};
use qwen35::tokenizer::AddedTokens;
use qwen35::{Model, ModelOptions, Session, SessionOptions, WeightFormat};

struct Arguments {
    model: PathBuf,
    threads: usize,
    weights: WeightFormat,
    measure: Vec<String>,
    prompt: usize,
    budget: u64,
    calls: usize,
    sessions: usize,
    output: usize,
}

fn main() {
    let arguments = parse();
    for what in &arguments.measure {
        match what.as_str() {
            "step" => step(&arguments),
            "cancel" => cancel(&arguments),
            "settle" => settle(&arguments),
            "batch" => batch(&arguments),
            "busy" => busy(&arguments),
            "two" => two(&arguments),
            other => fail(&format!("--measure {other}: step, cancel, settle, batch, busy or two")),
        }
    }
}

fn open(arguments: &Arguments) -> Model {
    let options = ModelOptions {
        threads: arguments.threads,
        weights: arguments.weights,
        ..ModelOptions::default()
    };
    Model::open(&arguments.model, &options).unwrap_or_else(|e| fail(&e.to_string()))
}

fn session(model: &Model) -> Session {
    let sampling = SamplingOptions::greedy();
    let options = SessionOptions { sampling, ..SessionOptions::default() };
    Session::new(model, options).unwrap_or_else(|e| fail(&e.to_string()))
}

fn prompt(length: usize) -> Vec<u32> {
    (0..length as u32).map(|i| i * 7919 % 50_000).collect()
}

/// Prefill in steps against prefill at once, in turns, until enough calls were timed.
fn step(arguments: &Arguments) {
    let model = open(arguments);
    let tokens = prompt(arguments.prompt);
    let budget = Duration::from_micros(arguments.budget);
    let (mut times, mut stepped, mut whole) = (Vec::new(), Vec::new(), Vec::new());
    let warm_up = || must(session(&model).feed(&tokens[..tokens.len().min(300)]));
    warm_up();
    while times.len() < arguments.calls {
        let mut at_once = session(&model);
        let began = Instant::now();
        must(at_once.feed(&tokens));
        whole.push(began.elapsed().as_secs_f64());

        let mut in_steps = session(&model);
        must(in_steps.enqueue(&tokens));
        let began = Instant::now();
        loop {
            let call = Instant::now();
            let step = must(in_steps.step_input(budget));
            times.push(call.elapsed().as_secs_f64() * 1e3);
            if step == Step::Ready {
                break;
            }
        }
        stepped.push(began.elapsed().as_secs_f64());
        assert!(must(at_once.logits()) == must(in_steps.logits()), "steps changed the result");
    }
    let calls = times.len();
    println!("{} tokens, budget {} us, {calls} calls", tokens.len(), arguments.budget);
    times.sort_by(f64::total_cmp);
    let at = |fraction: f64| times[((calls - 1) as f64 * fraction) as usize];
    println!(
        "  step ms: median {:.2}, p90 {:.2}, p99 {:.2}, max {:.2}",
        at(0.5),
        at(0.9),
        at(0.99),
        at(1.0)
    );
    let (stepped, whole) = (median(&mut stepped), median(&mut whole));
    println!(
        "  at once {whole:.2} s, in steps {stepped:.2} s: {:+.1}%",
        100.0 * (stepped / whole - 1.0)
    );

    // Decoding in steps.
    let (mut in_steps, mut times) = (session(&model), Vec::new());
    must(in_steps.feed(&tokens[..20.min(tokens.len())]));
    let mut made = 0;
    while made < arguments.output {
        let call = Instant::now();
        made += usize::from(must(in_steps.step(budget)) != Step::Working);
        times.push(call.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    let at = |fraction: f64| times[((times.len() - 1) as f64 * fraction) as usize];
    println!(
        "  decode: {} calls for {made} tokens, ms: median {:.2}, p99 {:.2}",
        times.len(),
        at(0.5),
        at(0.99)
    );
}

/// From a cancel on another thread to the return of the call: in prefill, in decoding, and in
/// opening.
fn cancel(arguments: &Arguments) {
    let model = open(arguments);
    let tokens = prompt(arguments.prompt);
    let mut times = Vec::new();
    for n in 0..40u64 {
        let mut session = session(&model);
        let handle = session.cancel_handle();
        times.extend(answer(
            20_000 + 13_700 * n,
            move || handle.cancel(),
            || session.feed(&tokens).is_err(),
        ));
    }
    report("prefill", times);

    let (mut session, mut times) = (session(&model), Vec::new());
    must(session.feed(&tokens[..tokens.len().min(20)]));
    for n in 0..40u64 {
        let handle = session.cancel_handle();
        times.extend(answer(
            10_000 + 3_700 * n,
            move || handle.cancel(),
            || {
                while session.next_token().is_ok() {}
                true
            },
        ));
    }
    report("decoding", times);
    drop((session, model));

    let options = ModelOptions {
        threads: arguments.threads,
        weights: arguments.weights,
        ..ModelOptions::default()
    };
    let began = Instant::now();
    must(Model::open_with_progress(&arguments.model, &options, &mut |_, _| true));
    let (whole, mut times) = (began.elapsed().as_micros() as u64, Vec::new());
    for n in 0..20u64 {
        let asked = Arc::new(AtomicBool::new(false));
        let set = Arc::clone(&asked);
        times.extend(answer(
            whole * n / 20,
            move || set.store(true, Ordering::Relaxed),
            || {
                let go_on = &mut |_, _| !asked.load(Ordering::Relaxed);
                Model::open_with_progress(&arguments.model, &options, go_on).is_err()
            },
        ));
    }
    report(&format!("opening (which takes {} ms)", whole / 1000), times);
}

/// Milliseconds from `cancel`, which another thread calls after some microseconds, to the
/// return of `work`; nothing if that was done before.
fn answer(
    after: u64,
    cancel: impl FnOnce() + Send + 'static,
    work: impl FnOnce() -> bool,
) -> Option<f64> {
    let canceller = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_micros(after));
        let now = Instant::now();
        cancel();
        now
    });
    let cancelled = work();
    let returned = Instant::now();
    let asked = canceller.join().unwrap_or_else(|_| fail("the canceller panicked"));
    cancelled.then(|| (returned - asked).as_secs_f64() * 1e3)
}

fn report(what: &str, mut times: Vec<f64>) {
    times.sort_by(f64::total_cmp);
    match times.last() {
        Some(most) => println!(
            "cancel in {what}: {} times, median {:.2} ms, max {most:.2} ms",
            times.len(),
            times[times.len() / 2]
        ),
        None => println!("cancel in {what}: it was always done before"),
    }
}

/// What settling a reply costs beside making it, and what it spares the next turn. The replies
/// are forced, so that their length is known.
fn settle(arguments: &Arguments) {
    let model = open(arguments);
    let end = model.tokenizer().token_id("<|im_end|>").unwrap_or_else(|| fail("no <|im_end|>"));
    let mut words = Vec::new();
    let text = "The river goes on through the valley, past the old mill and the fields. ";
    model.tokenizer().encode(&text.repeat(40), AddedTokens::AsText, &mut words);
    let ms = |began: Instant| began.elapsed().as_secs_f64() * 1e3;
    for length in [20, 60, 200] {
        let (mut made, mut settled, mut computed) = (Vec::new(), Vec::new(), 0);
        let mut next = [Vec::new(), Vec::new()];
        // Both ways in turns.
        for round in 0..6 {
            let settles = round % 2 == 0;
            let script: VecDeque<u32> = words[..length].iter().copied().collect();
            let script = Arc::new(Mutex::new(script));
            let mut session = session(&model);
            session.set_logits_hook(Some(Box::new(move |logits, _| {
                let mut script = script.lock().unwrap_or_else(|poison| poison.into_inner());
                let token = script.pop_front().unwrap_or(end);
                logits.fill(f32::NEG_INFINITY);
                logits[token as usize] = 0.0;
                ControlFlow::Continue(())
            })));
            let options = ConversationOptions { thinking: Some(false), ..Default::default() };
            let mut talk = must(Conversation::new(&model, options));
            must(talk.send_text(&mut session, "Tell me about the river, please."));
            let began = Instant::now();
            while !matches!(must(talk.next(&mut session)), Piece::End(_)) {}
            made.push(ms(began));
            if settles {
                let began = Instant::now();
                computed = must(talk.settle(&mut session)).computed;
                settled.push(ms(began));
            }
            let began = Instant::now();
            must(talk.send_text(&mut session, "And what comes behind the fields?"));
            next[usize::from(settles)].push(ms(began));
        }
        println!(
            "reply of {length} tokens: made in {:.0} ms, settled in {:.0} ms ({computed} tokens); \
             the next turn begins after {:.0} ms, without settling after {:.0} ms",
            median(&mut made),
            median(&mut settled),
            median(&mut next[1]),
            median(&mut next[0]),
        );
    }
}

/// Tokens per second of one session, and of several advanced together, in turns.
fn batch(arguments: &Arguments) {
    let model = open(arguments);
    let tokens = prompt(64);
    let count = arguments.sessions;
    let mut sessions: Vec<Session> = (0..=count).map(|_| session(&model)).collect();
    for (n, session) in sessions.iter_mut().enumerate() {
        must(session.feed(&tokens[n..]));
        must(session.next_token());
    }
    let (mut alone, mut together) = (Vec::new(), Vec::new());
    // Not all tokens cost the same: every fourth one writes the recurrent state.
    const TOKENS: usize = 4;
    for round in 0..arguments.output {
        let began = Instant::now();
        for _ in 0..TOKENS {
            must(sessions[count].next_token());
        }
        let one = began.elapsed().as_secs_f64() / TOKENS as f64;
        let mut batch: Vec<&mut Session> = sessions[..count].iter_mut().collect();
        let began = Instant::now();
        for _ in 0..TOKENS {
            let outcomes = must(batch_step(&mut batch));
            assert!(outcomes.iter().all(Result::is_ok));
        }
        let all = began.elapsed().as_secs_f64() / TOKENS as f64;
        if round > 1 {
            alone.push(one);
            together.push(all);
        }
    }
    let (one, all) = (1.0 / median(&mut alone), count as f64 / median(&mut together));
    println!("one session {one:.2} tok/s, {count} together {all:.2} tok/s: {:.2} times", all / one);
    let head = must(model.head_counts());
    println!(
        "head: {} choices from the first plane, {} tried so in vain",
        head.choices, head.failures
    );
}

/// Decoding beside a host that keeps as many threads busy, in turns with an idle one.
fn busy(arguments: &Arguments) {
    let model = open(arguments);
    let mut session = session(&model);
    must(session.feed(&prompt(20)));
    must(session.next_token());
    let (mut idle, mut loaded) = (Vec::new(), Vec::new());
    for round in 0..6 {
        let rate = |session: &mut Session| {
            let began = Instant::now();
            for _ in 0..arguments.output {
                must(session.next_token());
            }
            arguments.output as f64 / began.elapsed().as_secs_f64()
        };
        if round % 2 == 0 {
            idle.push(rate(&mut session));
            continue;
        }
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..arguments.threads {
                scope.spawn(|| {
                    let mut x = 1u64;
                    while !stop.load(Ordering::Relaxed) {
                        x = std::hint::black_box(x.wrapping_mul(0x9E37_79B9_7F4A_7C15));
                    }
                });
            }
            loaded.push(rate(&mut session));
            stop.store(true, Ordering::Relaxed);
        });
    }
    let (idle, loaded) = (median(&mut idle), median(&mut loaded));
    println!(
        "undisturbed {idle:.2} tok/s, beside {} busy threads {loaded:.2} tok/s: {:.0}%",
        arguments.threads,
        100.0 * loaded / idle
    );
}

/// Two sessions of one model, and of two models, on two threads, against one alone.
fn two(arguments: &Arguments) {
    let models = [open(arguments), open(arguments)];
    let run = |sessions: Vec<Session>| {
        let began = Instant::now();
        let count = sessions.len();
        std::thread::scope(|scope| {
            for mut session in sessions {
                scope.spawn(move || {
                    for _ in 0..arguments.output {
                        must(session.next_token());
                    }
                });
            }
        });
        (count * arguments.output) as f64 / began.elapsed().as_secs_f64()
    };
    let ready = |model: &Model| {
        let mut session = session(model);
        must(session.feed(&prompt(20)));
        must(session.next_token());
        session
    };
    let mut rates = [Vec::new(), Vec::new(), Vec::new()];
    for _ in 0..3 {
        rates[0].push(run(vec![ready(&models[0])]));
        rates[1].push(run(vec![ready(&models[0]), ready(&models[0])]));
        rates[2].push(run(vec![ready(&models[0]), ready(&models[1])]));
    }
    let [one, same, other] = rates.map(|mut rates| median(&mut rates));
    println!(
        "one session {one:.2} tok/s; two of one model {same:.2} tok/s together ({:.0}%); one each of two models {other:.2} ({:.0}%)",
        100.0 * same / one,
        100.0 * other / one
    );
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn must<T>(result: qwen35::Result<T>) -> T {
    result.unwrap_or_else(|e| fail(&e.to_string()))
}

fn parse() -> Arguments {
    let mut parsed = Arguments {
        model: PathBuf::new(),
        threads: 2,
        weights: WeightFormat::Stored,
        measure: ["step", "cancel", "settle", "batch", "busy", "two"].map(String::from).to_vec(),
        prompt: 2000,
        budget: 4000,
        calls: 1000,
        sessions: 8,
        output: 16,
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(option) = arguments.next() {
        let mut value =
            || arguments.next().unwrap_or_else(|| fail(&format!("{option} needs a value")));
        match option.as_str() {
            "--model" => parsed.model = value().into(),
            "--threads" => parsed.threads = number(&value()),
            "--weights" => {
                parsed.weights = match value().as_str() {
                    "stored" => WeightFormat::Stored,
                    "int8" => WeightFormat::Int8,
                    "int4" => WeightFormat::Int4,
                    other => fail(&format!("--weights {other}: stored, int8 or int4")),
                }
            }
            "--measure" => parsed.measure = value().split(',').map(String::from).collect(),
            "--prompt" => parsed.prompt = number(&value()),
            "--budget" => parsed.budget = number(&value()) as u64,
            "--calls" => parsed.calls = number(&value()),
            "--sessions" => parsed.sessions = number(&value()).max(1),
            "--output" => parsed.output = number(&value()).max(3),
            // Cargo adds this one.
            "--bench" => {}
            other => fail(&format!("unknown option {other}; see the head of benches/sharing.rs")),
        }
    }
    if parsed.model.as_os_str().is_empty() {
        fail("--model DIR is needed");
    }
    parsed
}

fn number(text: &str) -> usize {
    text.parse().unwrap_or_else(|_| fail(&format!("{text:?} is not a number")))
}

fn fail(message: &str) -> ! {
    eprintln!("sharing: {message}");
    std::process::exit(2)
}
