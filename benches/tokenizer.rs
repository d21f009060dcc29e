//! How fast and how large the tokenizer is. One thread, wall time.
//!
//! ```text
//! cargo bench --bench tokenizer -- [--tokenizer DIR] [--rounds N] [--write DIR] [FILE ...]
//! ```
//!
//! DIR holds the real `tokenizer.json` (default: `$QWEN35_REAL_TOKENIZER`, else
//! `tests/.cache/real-tokenizer`, else `model`). Each FILE is a text to be measured, besides the
//! built-in kinds. `first` is the first time a freshly loaded tokenizer sees the text, `again` is
//! every later time, when its words are remembered; both are given as the best and the median of N
//! rounds, in MB (1,000,000 bytes) per second. `--write` leaves the texts in a folder, where
//! `benches/tokenizer_hf.py` measures Hugging Face `tokenizers` on them.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use qwen35::tokenizer::{AddedTokens, Special, StreamDecoder, Tokenizer};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

fn main() {
    let mut dir = default_dir();
    let mut rounds = 7;
    let mut write: Option<PathBuf> = None;
    let mut texts = built_in();
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut value = || args.next().unwrap_or_else(|| fail(&format!("{arg} needs a value")));
        match arg.as_str() {
            "--bench" => {}
            "--tokenizer" => dir = value().into(),
            "--rounds" => rounds = value().parse().unwrap_or_else(|_| fail("--rounds N")),
            "--write" => write = Some(value().into()),
            path => match std::fs::read_to_string(path) {
                Ok(text) => texts.push((path.to_owned(), text)),
                Err(error) => fail(&format!("{path}: {error}")),
            },
        }
    }
    if let Some(folder) = write {
        for (name, text) in &texts {
            let path = folder.join(format!("{}.txt", name.replace('/', "_")));
            if let Err(error) = std::fs::write(&path, text) {
                fail(&format!("{}: {error}", path.display()));
            }
        }
    }
    measure_load(&dir, rounds);
    let columns =
        ["text", "bytes", "tokens", "first best", "median", "again best", "median", "decode"];
    println!(
        "{:<16}{:>9}{:>9}{:>12}{:>9}{:>12}{:>9}{:>9}  MB/s",
        columns[0],
        columns[1],
        columns[2],
        columns[3],
        columns[4],
        columns[5],
        columns[6],
        columns[7]
    );
    for (name, text) in &texts {
        measure(&dir, rounds, name, text);
    }
}

fn fail(message: &str) -> ! {
    eprintln!("tokenizer bench: {message}");
    std::process::exit(2);
}

fn default_dir() -> PathBuf {
    if let Some(dir) = std::env::var_os("QWEN35_REAL_TOKENIZER") {
        return dir.into();
    }
    let candidates = ["tests/.cache/real-tokenizer", "model"].map(|dir| Path::new(ROOT).join(dir));
    let found = candidates.iter().find(|dir| dir.join("tokenizer.json").exists());
    found.unwrap_or(&candidates[0]).clone()
}

fn load(dir: &Path) -> Tokenizer {
    Tokenizer::from_dir(dir).unwrap_or_else(|error| fail(&error.to_string()))
}

fn measure_load(dir: &Path, rounds: usize) {
    let before = resident();
    let tokenizer = load(dir);
    let after = resident();
    let mut ids = Vec::new();
    tokenizer.encode("some words, and 12 more\n", AddedTokens::AsText, &mut ids);
    let mut times: Vec<f64> = (0..rounds)
        .map(|_| {
            let start = Instant::now();
            drop(load(dir));
            start.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    times.sort_by(f64::total_cmp);
    println!("{}: {} tokens", dir.display(), tokenizer.token_count());
    println!("load: best {:.0} ms, median {:.0} ms", times[0], times[times.len() / 2]);
    println!(
        "memory: {:.1} MB resident after loading, {:.1} MB at the peak",
        (after.0 - before.0) / 1e6,
        (after.1 - before.0) / 1e6
    );
}

/// Resident memory of this process, now and at its peak, in bytes.
fn resident() -> (f64, f64) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let kib = line.and_then(|l| l.trim().trim_end_matches("kB").trim().parse::<f64>().ok());
        kib.unwrap_or(f64::NAN) * 1024.0
    };
    (field("VmRSS:"), field("VmHWM:"))
}

fn measure(dir: &Path, rounds: usize, name: &str, text: &str) {
    let speed = |time: Duration| text.len() as f64 / 1e6 / time.as_secs_f64();
    let (mut first, mut again, mut decode) = (Vec::new(), Vec::new(), Vec::new());
    let mut ids = Vec::new();
    for _ in 0..rounds.max(1) {
        let tokenizer = load(dir);
        for repeat in 0..4 {
            ids = Vec::new();
            let start = Instant::now();
            tokenizer.encode(text, AddedTokens::AsText, &mut ids);
            let speed = speed(start.elapsed());
            if repeat == 0 { &mut first } else { &mut again }.push(speed);
        }
        let mut stream = StreamDecoder::new(Special::Keep);
        let mut decoded = String::new();
        let start = Instant::now();
        ids.iter().for_each(|&id| stream.push(&tokenizer, id, &mut decoded));
        decode.push(speed(start.elapsed()));
    }
    let summary = |speeds: &mut Vec<f64>| {
        speeds.sort_by(|a, b| b.total_cmp(a));
        (speeds[0], speeds[speeds.len() / 2])
    };
    let (first, again, decode) = (summary(&mut first), summary(&mut again), summary(&mut decode));
    println!(
        "{name:<16}{:>9}{:>9}{:>12.1}{:>9.1}{:>12.1}{:>9.1}{:>9.1}",
        text.len(),
        ids.len(),
        first.0,
        first.1,
        again.0,
        again.1,
        decode.0
    );
}

/// The built-in texts. Prose and code are this repository: its comments and documents, and its
/// programs. The others are made by a fixed rule.
fn built_in() -> Vec<(String, String)> {
    let (mut prose, mut code) = (String::new(), String::new());
    let mut folders = vec![PathBuf::from(ROOT)];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let name = entry.file_name();
            let hidden = name.to_string_lossy().starts_with('.');
            if path.is_dir() && !hidden && name != "target" && name != "build" && name != "data" {
                folders.push(path);
            } else if path.is_file() {
                files.push(path);
            }
        }
    }
    files.sort();
    for path in files {
        let kind = path.extension().and_then(|e| e.to_str()).unwrap_or_default();
        let is_code = matches!(kind, "rs" | "c" | "h" | "hpp" | "cpp" | "py" | "sh");
        if !is_code && kind != "md" || path.components().any(|c| c.as_os_str() == "tables") {
            continue;
        }
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        if is_code {
            code.push_str(&text);
            let comments = text.lines().filter_map(|line| {
                let line = line.trim_start();
                ["//! ", "/// ", "// "].iter().find_map(|mark| line.strip_prefix(mark))
            });
            comments.for_each(|line| prose.extend([line, "\n"]));
        } else {
            prose.push_str(&text);
        }
    }
    let mut random = Random(35);
    let letters = |n: usize, random: &mut Random| -> String {
        (0..n).map(|_| char::from(b'a' + random.below(26) as u8)).collect()
    };
    let mut json = String::from("[");
    while json.len() < 1_000_000 {
        let (id, name) = (random.below(1 << 20), letters(6, &mut random));
        let (x, y) = (random.below(10_000_000), random.below(2) == 0);
        json += &format!("{{\"id\":{id},\"name\":\"{name}\",\"value\":[0.{x},{id}],\"ok\":{y}}},");
    }
    vec![
        ("prose".into(), prose),
        ("code".into(), code),
        ("many scripts".into(), many_scripts(&mut random)),
        ("json".into(), json),
        ("one letter".into(), "a".repeat(1_000_000)),
        ("random letters".into(), letters(262_144, &mut random)),
    ]
}

/// 1 MB of words of seven scripts; a few words of each are frequent, as in real text.
fn many_scripts(random: &mut Random) -> String {
    let scripts = [
        ("的一是不了人我在有他这中大来上国个到说们为子和你地出道也时年得就那要下以生会", 4, ""),
        ("가나다라마바사아자하고는이에을를의한국어말사람오늘내일시간", 4, " "),
        ("اليمنتورسبدعهفقكجحصش", 8, " "),
        ("कनरसतमहलयदवपबग", 7, " "),
        ("กนรอาสมเวยลดตบทงหค", 9, ""),
        ("оеаинтсрвлкмдпуяызьбгч", 9, " "),
        ("😀😂🤣😊😍🙏👍🔥🎉✨", 2, " "),
    ];
    let mut out = String::new();
    let words = scripts.map(|(alphabet, longest, _)| {
        let alphabet: Vec<char> = alphabet.chars().collect();
        let mut word = || -> String {
            let len = 1 + random.below(longest);
            (0..len).map(|_| alphabet[random.skewed(alphabet.len())]).collect()
        };
        (0..3000).map(|_| word()).collect::<Vec<_>>()
    });
    while out.len() < 1_000_000 {
        let script = random.below(scripts.len());
        for _ in 0..5 + random.below(30) {
            out.push_str(&words[script][random.skewed(3000)]);
            out.push_str(scripts[script].2);
        }
        out.push_str([". ", ", ", "。", "\n"][random.below(4)]);
    }
    out
}

struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) as usize % n
    }

    /// Small numbers are more frequent.
    fn skewed(&mut self, n: usize) -> usize {
        let (a, b) = (self.below(n), self.below(n));
        a * b / n
    }
}
