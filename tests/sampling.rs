//! The sampler from outside: edge cases, agreement with a plain reference, statistics.

use qwen35::ErrorKind;
use qwen35::sampling::{Rng, Sampler, SamplingOptions};

/// Everything off: draws from the softmax of the logits.
fn plain() -> SamplingOptions {
    SamplingOptions { temperature: 1.0, seed: Some(1), ..SamplingOptions::greedy() }
}

fn sampler(options: SamplingOptions, tokens: usize) -> Sampler {
    Sampler::new(options, tokens).unwrap()
}

fn pick(options: SamplingOptions, logits: &[f32]) -> u32 {
    sampler(options, logits.len()).sample(logits, &[], 0).unwrap()
}

fn invalid(options: SamplingOptions) -> String {
    let error = Sampler::new(options, 100).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    error.message().to_string()
}

/// The ids that the filters leave.
fn support(options: SamplingOptions, logits: &[f32]) -> Vec<u32> {
    let left = sampler(options, logits.len()).distribution(logits, &[], 0).unwrap();
    left.iter().map(|&(id, _)| id).collect()
}

/// Logits of a believable shape: a few high, a long tail.
fn random_logits(seed: u64, n: usize) -> Vec<f32> {
    let mut rng = Rng::new(seed);
    (0..n)
        .map(|_| {
            let normal: f64 = (0..12).map(|_| rng.next_f64()).sum::<f64>() - 6.0;
            (normal * 3.0) as f32
        })
        .collect()
}

// ---- temperature ---------------------------------------------------------------------

#[test]
fn temperature_zero_and_tiny_take_the_largest() {
    let logits = [0.5, 3.0, -1.0, 2.999, 3.0 - 1e-6];
    for temperature in [0.0, -0.0, 1e-40, 1e-7] {
        for seed in 0..50 {
            let options = SamplingOptions { temperature, seed: Some(seed), ..plain() };
            let greedy = temperature <= 1e-40;
            let id = pick(options, &logits);
            assert!(id == 1 || (!greedy && id == 4), "temperature {temperature}: {id}");
        }
    }
    // Equal logits: the lowest id.
    let logits = [1.0, 7.0, 7.0, 7.0];
    assert_eq!(pick(SamplingOptions::greedy(), &logits), 1);
    // Greedy over many blocks, the largest anywhere, and twice.
    let mut logits = random_logits(3, 5000);
    for at in [0, 1, 255, 256, 4095, 4999] {
        logits[at] = 50.0;
        logits[4999] = 50.0;
        assert_eq!(pick(SamplingOptions::greedy(), &logits), at as u32);
        logits[at] = 0.0;
    }
}

#[test]
fn any_finite_temperature_works() {
    let logits = [3.0, 2.0, 1.0, 0.0];
    for temperature in [1e-3, 2.0, 1e30, f32::MIN_POSITIVE, f32::MAX] {
        let options = SamplingOptions { temperature, ..plain() };
        let total: f64 = sampler(options, 4)
            .distribution(&logits, &[], 0)
            .unwrap()
            .iter()
            .map(|&(_, p)| p)
            .sum();
        assert!((total - 1.0).abs() < 1e-9);
    }
    // Very hot is uniform.
    let hot = sampler(SamplingOptions { temperature: 1e30, ..plain() }, 4)
        .distribution(&logits, &[], 0)
        .unwrap();
    assert!(hot.iter().all(|&(_, p)| (p - 0.25).abs() < 1e-6));
    for temperature in [f32::INFINITY, f32::NAN, -1.0, -1e-30] {
        let message = invalid(SamplingOptions { temperature, ..plain() });
        assert!(message.contains("temperature"), "{message}");
    }
    // Extreme logits do not overflow.
    let logits = [f32::MAX, f32::MIN, 0.0];
    for temperature in [1e-40, 1.0, f32::MAX] {
        assert_eq!(pick(SamplingOptions { temperature, seed: Some(5), ..plain() }, &logits), 0);
    }
}

// ---- filters -------------------------------------------------------------------------

#[test]
fn top_k_edges() {
    let logits = [3.0, 2.0, 1.0, 0.0];
    let k = |top_k| support(SamplingOptions { top_k, ..plain() }, &logits);
    assert_eq!(k(0), [0, 1, 2, 3]);
    assert_eq!(k(1), [0]);
    assert_eq!(k(2), [0, 1]);
    assert_eq!(k(4), [0, 1, 2, 3]);
    assert_eq!(k(9), [0, 1, 2, 3]);
    // Equals of the k-th stay, as in Transformers.
    let logits = [1.0, 5.0, 1.0, 1.0, 0.0];
    assert_eq!(support(SamplingOptions { top_k: 2, ..plain() }, &logits), [0, 1, 2, 3]);
    assert_eq!(support(SamplingOptions { top_k: 2, ..plain() }, &[0.0; 600]).len(), 600);
    // Banned tokens are no candidates even when k asks for more.
    let logits = [f32::NEG_INFINITY, 1.0, f32::NEG_INFINITY, 0.0];
    assert_eq!(support(SamplingOptions { top_k: 3, ..plain() }, &logits), [1, 3]);
}

#[test]
fn top_p_and_min_p_edges() {
    let logits = [3.0, 2.0, 1.0, 0.0];
    let p = |top_p| support(SamplingOptions { top_p, ..plain() }, &logits);
    assert_eq!(p(0.0), [0]);
    assert_eq!(p(1e-9), [0]);
    // Softmax: 0.6439, 0.2369, 0.0871, 0.0321.
    assert_eq!(p(0.64), [0]);
    assert_eq!(p(0.65), [0, 1]);
    assert_eq!(p(0.88), [0, 1]);
    assert_eq!(p(0.89), [0, 1, 2]);
    assert_eq!(p(0.97), [0, 1, 2, 3]);
    assert_eq!(p(1.0), [0, 1, 2, 3]);
    for top_p in [1.5, -0.1, f32::NAN] {
        assert!(invalid(SamplingOptions { top_p, ..plain() }).contains("top_p"));
    }
    let m = |min_p| support(SamplingOptions { min_p, ..plain() }, &logits);
    assert_eq!(m(0.0), [0, 1, 2, 3]);
    assert_eq!(m(0.1), [0, 1, 2]);
    assert_eq!(m(0.3), [0, 1]);
    assert_eq!(m(1.0), [0]);
    for min_p in [1.5, -0.1, f32::NAN] {
        assert!(invalid(SamplingOptions { min_p, ..plain() }).contains("min_p"));
    }
    // All equal: top-p goes by id, min-p keeps all.
    let flat = [0.25; 1000];
    assert_eq!(support(SamplingOptions { top_p: 0.0, ..plain() }, &flat), [0]);
    let half = support(SamplingOptions { top_p: 0.5, ..plain() }, &flat);
    assert_eq!(half, (0..500).collect::<Vec<u32>>());
    assert_eq!(support(SamplingOptions { min_p: 1.0, ..plain() }, &flat).len(), 1000);
}

// ---- logit bias ----------------------------------------------------------------------

#[test]
fn bias_is_checked_and_works() {
    let bias = |list: &[(u32, f32)]| SamplingOptions { logit_bias: list.to_vec(), ..plain() };
    assert!(invalid(bias(&[(100, 1.0)])).contains("token 100"));
    assert!(invalid(bias(&[(248_320, 1.0)])).contains("248320"));
    assert!(invalid(bias(&[(u32::MAX, 1.0)])).contains("4294967295"));
    assert!(invalid(bias(&[(3, f32::NAN)])).contains("token 3"));
    assert!(invalid(bias(&[(3, f32::INFINITY)])).contains("token 3"));
    let greedy = |list: &[(u32, f32)]| SamplingOptions {
        logit_bias: list.to_vec(),
        ..SamplingOptions::greedy()
    };
    let mut logits = random_logits(4, 100);
    logits[7] = 30.0;
    logits[9] = 29.0;
    assert_eq!(pick(greedy(&[]), &logits), 7);
    assert_eq!(pick(greedy(&[(7, -100.0)]), &logits), 9);
    assert_eq!(pick(greedy(&[(7, f32::NEG_INFINITY)]), &logits), 9);
    assert_eq!(pick(greedy(&[(42, 100.0)]), &logits), 42);
    // Before the filters: a boosted token passes top-k 1.
    let boosted = SamplingOptions { top_k: 1, ..bias(&[(42, 100.0)]) };
    assert_eq!(support(boosted, &logits), [42]);
    // Of duplicates the last counts.
    assert_eq!(pick(greedy(&[(42, 100.0), (42, 0.0)]), &logits), 7);
    assert_eq!(pick(greedy(&[(42, 0.0), (3, 1.0), (42, 100.0)]), &logits), 42);
    // An entry for every id at once.
    let n = 248_077;
    let all = (0..n as u32).rev().map(|id| (id, if id == 200_000 { 1.0 } else { 0.0 })).collect();
    let options = SamplingOptions { logit_bias: all, ..SamplingOptions::greedy() };
    assert_eq!(sampler(options, n).sample(&vec![0.0; 248_320], &[], 0).unwrap(), 200_000);
}

// ---- penalties -----------------------------------------------------------------------

/// The scores that `options` make of `logits`, read back from the distribution.
fn penalised(options: SamplingOptions, sequence: &[u32], output_start: usize) -> Vec<f64> {
    // Pairs of a token and its unpenalised twin give each change as a log ratio.
    let logits = [1.0f32, 1.0, -1.0, 0.5, 0.25, 2.0, 1.5, -3.0, 0.0, 0.0];
    let left = sampler(options, 10).distribution(&logits, sequence, output_start).unwrap();
    let anchor = left[9].1.ln();
    left.iter().map(|&(_, p)| p.ln() - anchor).collect()
}

fn assert_close(got: &[f64], want: &[f64]) {
    let close = got.len() == want.len() && got.iter().zip(want).all(|(a, b)| (a - b).abs() < 1e-5);
    assert!(close, "got {got:?}\nwant {want:?}");
}

const BASE: [f64; 10] = [1.0, 1.0, -1.0, 0.5, 0.25, 2.0, 1.5, -3.0, 0.0, 0.0];

#[test]
fn repetition_counts_the_most_recent_tokens() {
    let history = [5, 5, 6, 7];
    let with =
        |window| SamplingOptions { repetition_penalty: 2.0, penalty_window: window, ..plain() };
    // The last two: 6 (positive, halved) and 7 (negative, doubled). Prompt and output alike.
    let mut two = BASE;
    two[6] = 0.75;
    two[7] = -6.0;
    let mut all = two;
    all[5] = 1.0;
    for output_start in 0..=4 {
        assert_close(&penalised(with(Some(2)), &history, output_start), &two);
        assert_close(&penalised(with(Some(0)), &history, output_start), &BASE);
        assert_close(&penalised(with(None), &history, output_start), &all);
        assert_close(&penalised(with(Some(1000)), &history, output_start), &all);
    }
    // Once per token, however often it occurs; ids beyond the vocabulary are ignored.
    assert_close(&penalised(with(None), &[5; 50], 0), &{
        let mut want = BASE;
        want[5] = 1.0;
        want
    });
    assert_close(&penalised(with(None), &[10, 248_300, u32::MAX], 0), &BASE);
}

#[test]
fn presence_and_frequency_count_the_output_only() {
    let presence = SamplingOptions { presence_penalty: 1.5, ..plain() };
    assert_close(&penalised(presence.clone(), &[5], 1), &BASE);
    let mut want = BASE;
    want[6] -= 1.5;
    assert_close(&penalised(presence.clone(), &[5, 6, 6], 1), &want);
    let frequency = SamplingOptions { frequency_penalty: 0.5, ..plain() };
    want[6] = 1.5 - 1.0;
    assert_close(&penalised(frequency.clone(), &[5, 6, 6], 1), &want);
    // The window cuts the output too.
    let windowed = SamplingOptions { penalty_window: Some(1), ..frequency };
    want[6] = 1.5 - 0.5;
    assert_close(&penalised(windowed, &[5, 6, 6], 1), &want);
    // All three: repetition first, then the two others.
    let all = SamplingOptions {
        repetition_penalty: 2.0,
        presence_penalty: 1.0,
        frequency_penalty: 0.25,
        ..plain()
    };
    let mut want = BASE;
    want[5] = 1.0;
    want[6] = 0.75 - 1.0 - 0.5;
    assert_close(&penalised(all, &[5, 6, 6], 1), &want);
    // Negative penalties reward.
    let reward = SamplingOptions { presence_penalty: -1.0, ..plain() };
    let mut want = BASE;
    want[6] += 1.0;
    assert_close(&penalised(reward, &[6], 0), &want);
}

#[test]
fn penalty_ranges() {
    for value in [0.0, -1.0, f32::NAN, f32::INFINITY] {
        let options = SamplingOptions { repetition_penalty: value, ..plain() };
        assert!(invalid(options).contains("repetition_penalty"));
    }
    for value in [f32::NAN, f32::INFINITY] {
        let options = SamplingOptions { presence_penalty: value, ..plain() };
        assert!(invalid(options).contains("presence_penalty"));
        let options = SamplingOptions { frequency_penalty: value, ..plain() };
        assert!(invalid(options).contains("frequency_penalty"));
    }
    // A penalty that overflows is an error, not a token.
    let options = SamplingOptions { frequency_penalty: -f32::MAX, ..plain() };
    let error = sampler(options, 2).sample(&[1.0, 1.0], &[0, 0, 0], 0).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Numeric);
    assert!(error.message().contains("token 0"), "{error}");
}

// ---- errors and padding --------------------------------------------------------------

#[test]
fn bad_logits_are_an_error() {
    let n = 1000;
    let ban_all = (0..n as u32).map(|id| (id, f32::NEG_INFINITY)).collect::<Vec<_>>();
    for base in [
        SamplingOptions::greedy(),
        SamplingOptions { temperature: 0.8, ..plain() },
        SamplingOptions { temperature: 0.8, top_k: 20, top_p: 0.9, ..plain() },
    ] {
        let mut s = sampler(base.clone(), n);
        let before = s.rng().clone();
        let mut one = |logits: &[f32]| s.sample(logits, &[], 0).unwrap_err();
        for (logits, word) in [
            (vec![f32::NAN; n], "token 0 is NaN"),
            (edit(n, 777, f32::NAN), "token 777 is NaN"),
            (edit(n, 999, f32::INFINITY), "token 999 is inf"),
            (vec![f32::NEG_INFINITY; n], "no token is left"),
        ] {
            let error = one(&logits);
            assert_eq!(error.kind(), ErrorKind::Numeric);
            assert!(error.message().contains(word), "{error}");
        }
        assert_eq!(*s.rng(), before, "an error moved the random stream");
        // The sampler is usable afterwards.
        assert!(s.sample(&edit(n, 3, f32::NEG_INFINITY), &[], 0).unwrap() < n as u32);
        let options = SamplingOptions { logit_bias: ban_all.clone(), ..base };
        let error = sampler(options, n).sample(&vec![0.0; n], &[], 0).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Numeric);
    }
}

fn edit(n: usize, at: usize, value: f32) -> Vec<f32> {
    let mut logits = random_logits(8, n);
    logits[at] = value;
    logits
}

#[test]
fn padding_is_never_chosen_nor_looked_at() {
    let mut logits = random_logits(9, 100);
    logits.extend([1000.0, f32::NAN, f32::INFINITY]);
    for options in [
        SamplingOptions::greedy(),
        SamplingOptions { temperature: 1e30, ..plain() },
        SamplingOptions { temperature: 1e30, top_k: 99, ..plain() },
        SamplingOptions { temperature: 1e30, top_k: 5000, top_p: 0.99, ..plain() },
    ] {
        let mut s = sampler(options, 100);
        for _ in 0..2000 {
            assert!(s.sample(&logits, &[], 0).unwrap() < 100);
        }
    }
}

#[test]
fn wrong_lengths_are_errors() {
    let mut s = sampler(plain(), 100);
    let kind = |r: qwen35::Result<u32>| r.unwrap_err().kind();
    assert_eq!(kind(s.sample(&[0.0; 99], &[], 0)), ErrorKind::InvalidArgument);
    assert_eq!(kind(s.sample(&[0.0; 100], &[1, 2], 3)), ErrorKind::InvalidArgument);
    assert_eq!(Sampler::new(plain(), 0).unwrap_err().kind(), ErrorKind::InvalidArgument);
}

// ---- randomness ----------------------------------------------------------------------

/// Pearson's statistic of `draws` draws against the distribution in force.
fn chi_square(options: SamplingOptions, logits: &[f32], draws: usize) -> (f64, usize) {
    let mut s = sampler(options, logits.len());
    let expected = s.distribution(logits, &[], 0).unwrap();
    let mut counts = vec![0usize; logits.len()];
    for _ in 0..draws {
        counts[s.sample(logits, &[], 0).unwrap() as usize] += 1;
    }
    let mut statistic = 0.0;
    for &(id, p) in &expected {
        let want = p * draws as f64;
        assert!(want > 5.0, "too few draws for token {id}");
        statistic += (counts[id as usize] as f64 - want).powi(2) / want;
        counts[id as usize] = 0;
    }
    assert!(counts.iter().all(|&c| c == 0), "a filtered token was drawn");
    (statistic, expected.len() - 1)
}

#[test]
fn draws_follow_the_distribution() {
    let few = [3.0, 2.0, 1.0, 0.0];
    // 99.9 % quantiles of chi-square with 3, 1 and 599 degrees of freedom.
    let (x, freedom) = chi_square(SamplingOptions { seed: Some(11), ..plain() }, &few, 20_000);
    assert!(freedom == 3 && x < 16.27, "{x}");
    let options = SamplingOptions { seed: Some(12), top_k: 2, temperature: 0.7, ..plain() };
    let (x, freedom) = chi_square(options, &few, 20_000);
    assert!(freedom == 1 && x < 10.83, "{x}");
    // Over several blocks, whole vocabulary and filtered.
    let many: Vec<f32> = (0..600).map(|i| (i % 7) as f32 * 0.1).collect();
    let (x, freedom) = chi_square(SamplingOptions { seed: Some(13), ..plain() }, &many, 60_000);
    assert!(freedom == 599 && x < 710.0, "{x}");
    let options = SamplingOptions { seed: Some(14), top_k: 599, top_p: 0.97, ..plain() };
    let (x, freedom) = chi_square(options, &many, 60_000);
    assert!(freedom > 500 && x < 710.0, "{x}");
}

fn run(sampler: &mut Sampler, logits: &[f32], n: usize) -> Vec<u32> {
    (0..n).map(|_| sampler.sample(logits, &[], 0).unwrap()).collect()
}

#[test]
fn a_seed_gives_the_same_tokens_whatever_others_do() {
    let logits = random_logits(20, 500);
    let seeded = |seed| SamplingOptions { seed: Some(seed), ..plain() };
    let solo = run(&mut sampler(seeded(42), 500), &logits, 100);
    let (mut a, mut b, mut c) =
        (sampler(seeded(42), 500), sampler(seeded(42), 500), sampler(seeded(1), 500));
    let mut outputs = [vec![], vec![], vec![]];
    for _ in 0..100 {
        for (s, out) in [&mut a, &mut c, &mut b].into_iter().zip(&mut outputs) {
            out.push(s.sample(&logits, &[], 0).unwrap());
        }
    }
    assert_eq!(outputs[0], solo);
    assert_eq!(outputs[2], solo);
    assert_ne!(outputs[1], solo);
    // Seeds are all different, the extreme ones too, and none means a fresh one each time.
    let mut runs: Vec<Vec<u32>> = [0, 1, 1 << 32, u64::MAX, u64::MAX - 1]
        .into_iter()
        .map(|seed| run(&mut sampler(seeded(seed), 500), &logits, 30))
        .collect();
    for _ in 0..3 {
        let fresh = SamplingOptions { seed: None, ..plain() };
        runs.push(run(&mut sampler(fresh, 500), &logits, 30));
    }
    for i in 0..runs.len() {
        for j in 0..i {
            assert_ne!(runs[i], runs[j]);
        }
    }
}

#[test]
fn the_stream_is_saved_restored_and_keeps_its_place() {
    let logits = random_logits(21, 500);
    let mut s = sampler(plain(), 500);
    run(&mut s, &logits, 10);
    let state = s.rng().state();
    let want = run(&mut s, &logits, 20);
    let mut other = sampler(SamplingOptions { seed: Some(999), ..plain() }, 500);
    other.set_rng(Rng::from_state(state).unwrap());
    assert_eq!(run(&mut other, &logits, 20), want);
    // One number per drawn token whatever the filters leave; greedy takes none.
    let mut s = sampler(plain(), 500);
    s.set_options(SamplingOptions { top_k: 1, seed: None, ..plain() }).unwrap();
    run(&mut s, &logits, 10);
    s.set_options(SamplingOptions::greedy()).unwrap();
    run(&mut s, &logits, 5);
    assert_eq!(s.rng().state(), state);
    // A refused change changes nothing.
    let bad = SamplingOptions { top_p: 2.0, seed: Some(3), ..plain() };
    assert!(s.set_options(bad).is_err());
    assert_eq!(*s.options(), SamplingOptions::greedy());
    assert_eq!(s.rng().state(), state);
    // A given seed starts again.
    s.set_options(plain()).unwrap();
    assert_eq!(s.rng().state(), Rng::new(1).state());
}

#[test]
fn defaults_are_the_model_cards() {
    let o = SamplingOptions::default();
    assert_eq!((o.temperature, o.top_k, o.top_p, o.min_p), (1.0, 20, 1.0, 0.0));
    assert_eq!((o.presence_penalty, o.repetition_penalty, o.frequency_penalty), (2.0, 1.0, 0.0));
    assert_eq!((o.penalty_window, o.seed), (None, None));
    o.validate(248_077).unwrap();
}
