//! scripts/download_model.sh against a local server that behaves badly.

#[path = "support/server.rs"]
mod server;
#[path = "support/temp.rs"]
mod temp;

use std::fmt::Write as _;
use std::io::Write;
use std::net::TcpListener;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use server::{Answer, Request, Server};
use temp::TempDir;

fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/download_model.sh")
}

fn is_installed(tool: &str) -> bool {
    Command::new(tool).arg("--version").output().is_ok()
}

/// Those of the two tools that are installed. One must be.
fn tools() -> Vec<&'static str> {
    let tools: Vec<_> = ["curl", "wget"].into_iter().filter(|t| is_installed(t)).collect();
    assert!(!tools.is_empty(), "neither curl nor wget is installed");
    for missing in ["curl", "wget"].iter().filter(|t| !tools.contains(t)) {
        eprintln!("NOT RUN: the cases with {missing}, which is not installed");
    }
    tools
}

/// Contents that no two files share.
fn content(name: &str, size: usize) -> Vec<u8> {
    let seed = name.bytes().fold(7usize, |a, b| a.wrapping_mul(31).wrapping_add(b.into()));
    (0..size).map(|i| ((i.wrapping_mul(2_654_435_761).wrapping_add(seed)) >> 7) as u8).collect()
}

fn sha256(bytes: &[u8]) -> String {
    let mut child =
        Command::new("sha256sum").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(bytes).unwrap();
    String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap()[..64].to_owned()
}

const SMALL: (&str, usize) = ("config.json", 700);
const LARGE: (&str, usize) = ("model.safetensors", 300_000);

fn small() -> Vec<u8> {
    content(SMALL.0, SMALL.1)
}

fn large() -> Vec<u8> {
    content(LARGE.0, LARGE.1)
}

/// A folder to load into and a manifest of the two files.
struct Place {
    temp: TempDir,
    dir: PathBuf,
}

impl Place {
    fn new() -> Place {
        let temp = TempDir::new();
        let mut manifest = String::new();
        for (name, bytes) in [(SMALL.0, small()), (LARGE.0, large())] {
            writeln!(manifest, "{} {} {name}", sha256(&bytes), bytes.len()).unwrap();
        }
        std::fs::write(temp.join("manifest"), manifest).unwrap();
        Place { dir: temp.join("model"), temp }
    }

    fn command(&self, shell: &str, server: &Server, tool: &str, more: &[&str]) -> Command {
        let mut command = Command::new(shell);
        command.arg(script()).args(["--retry-delay", "0", "--tool", tool]);
        command.args(["--base-url", &server.url, "--manifest"]).arg(self.temp.join("manifest"));
        command.args(more).arg(&self.dir);
        // No proxy or personal setting of the machine may change the test.
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", self.temp.path()).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn run(&self, server: &Server, tool: &str, more: &[&str]) -> Run {
        let start = Instant::now();
        let output = self.command("sh", server, tool, more).output().unwrap();
        assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
        Run::from(output)
    }

    fn file(&self, name: &str) -> Option<Vec<u8>> {
        std::fs::read(self.dir.join(name)).ok()
    }

    /// Both files are there and right, and nothing else is.
    #[track_caller]
    fn assert_complete(&self) {
        assert!(self.file(SMALL.0) == Some(small()), "small file");
        assert!(self.file(LARGE.0) == Some(large()), "large file");
        let mut names: Vec<_> =
            std::fs::read_dir(&self.dir).unwrap().map(|e| e.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, [SMALL.0, LARGE.0]);
    }
}

#[derive(Debug)]
struct Run {
    status: Option<i32>,
    text: String,
}

impl Run {
    fn from(output: Output) -> Run {
        assert!(output.stdout.is_empty(), "standard output is for --help alone");
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        Run { status: output.status.code(), text }
    }

    #[track_caller]
    fn succeeded(&self) -> &Run {
        assert_eq!(self.status, Some(0), "{}", self.text);
        self
    }

    #[track_caller]
    fn failed(&self, parts: &[&str]) -> &Run {
        assert_eq!(self.status, Some(1), "{}", self.text);
        self.says(parts)
    }

    #[track_caller]
    fn says(&self, parts: &[&str]) -> &Run {
        for part in parts {
            assert!(self.text.contains(part), "{part:?} is not in: {}", self.text);
        }
        self
    }
}

/// A good server but for the large file.
fn serving(large: impl Fn(usize) -> Answer + Send + Sync + 'static) -> Server {
    Server::new(move |path, before| match path {
        "/config.json" => Answer::Body(small()),
        "/model.safetensors" => large(before),
        _ => Answer::Status("404 Not Found"),
    })
}

fn of_large(server: &Server) -> Vec<usize> {
    server.requests().iter().filter(|r| r.path.contains("model")).map(|r| r.from).collect()
}

#[test]
fn whole_files_arrive_once() {
    for tool in tools() {
        let server = serving(|_| Answer::Body(large()));
        let place = Place::new();
        place.run(&server, tool, &[]).succeeded().says(&["[1/2] config.json", "All 2 files"]);
        place.assert_complete();
        assert_eq!(server.requests().len(), 2);
        place.run(&server, tool, &[]).succeeded().says(&["config.json: already there, checked"]);
        assert_eq!(server.requests().len(), 2, "nothing is loaded again");
        place.assert_complete();
    }
    // The same under another shell.
    if is_installed("bash") {
        let server =
            serving(|n| if n == 0 { Answer::CutAfter(large(), 9) } else { Answer::Body(large()) });
        let place = Place::new();
        Run::from(place.command("bash", &server, tools()[0], &[]).output().unwrap()).succeeded();
        place.assert_complete();
    }
}

#[test]
fn a_connection_that_breaks_off_is_taken_up_where_it_ended() {
    for tool in tools() {
        let server = serving(|n| match n {
            0..7 => Answer::CutAfter(large(), 40_000),
            _ => Answer::Body(large()),
        });
        let place = Place::new();
        place.run(&server, tool, &[]).succeeded().says(&["broke off", "going on after"]);
        place.assert_complete();
        let expected: Vec<usize> = (0..8).map(|i| i * 40_000).collect();
        assert_eq!(of_large(&server), expected, "{tool}");
    }
}

#[test]
fn a_killed_download_is_taken_up_by_the_next() {
    for tool in tools() {
        let server = serving(|n| match n {
            0 => Answer::Stall(large(), 100_000),
            _ => Answer::Body(large()),
        });
        let place = Place::new();
        let mut child = place.command("sh", &server, tool, &[]).spawn().unwrap();
        let part = place.dir.join("model.safetensors.part");
        wait_until(|| length(&part) > 50_000);
        assert_eq!(place.file(LARGE.0), None, "no half file under the final name");

        // Meanwhile no second download into the same folder.
        place.run(&server, tool, &[]).failed(&["another download", "is running"]);

        child.kill().unwrap();
        child.wait().unwrap();
        kill_children_of(&place);
        let loaded = length(&part);
        place.run(&server, tool, &[]).succeeded().says(&["going on after"]);
        place.assert_complete();
        assert_eq!(of_large(&server), [0, loaded as usize]);
    }
}

/// Makes the command notice Ctrl-C even if these tests run in the background of a script,
/// where it is ignored: a shell cannot undo that for itself.
#[allow(unsafe_code)]
fn attentive(command: &mut Command) -> &mut Command {
    // SAFETY: between fork and exec only `signal` is called, which may be called there.
    unsafe {
        command.pre_exec(|| {
            libc::signal(libc::SIGINT, libc::SIG_DFL);
            Ok(())
        })
    }
}

#[test]
fn ctrl_c_ends_at_once_and_keeps_what_was_loaded() {
    for tool in tools() {
        for signal in ["INT", "TERM"] {
            let server = serving(|_| Answer::Stall(large(), 100_000));
            let place = Place::new();
            let mut command = place.command("sh", &server, tool, &[]);
            let child = attentive(&mut command).spawn().unwrap();
            let part = place.dir.join("model.safetensors.part");
            wait_until(|| length(&part) > 50_000);
            let start = Instant::now();
            send_signal(&child, signal);
            let run = Run::from(child.wait_with_output().unwrap());
            assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
            assert_eq!(run.status, Some(130), "{}", run.text);
            run.says(&["Run the same command again"]);
            assert!(length(&part) > 50_000);
            assert!(!place.dir.join(".download.lock").exists());
        }
    }
}

#[test]
fn refusals_are_final_and_server_errors_are_tried_again() {
    for tool in tools() {
        for (status, code) in [("404 Not Found", "404"), ("403 Forbidden", "403")] {
            let server = serving(move |_| Answer::Status(status));
            let place = Place::new();
            let url = format!("{}/model.safetensors", server.url);
            place.run(&server, tool, &[]).failed(&["model.safetensors", code, &url]);
            assert_eq!(of_large(&server).len(), 1, "{tool} {code}");
            assert_eq!(place.file(LARGE.0), None);
        }
        for (status, code) in [("500 Internal Server Error", "500"), ("429 Too Many", "429")] {
            let server = serving(move |_| Answer::Status(status));
            let place = Place::new();
            place.run(&server, tool, &[]).failed(&["gave up after 5 attempts", code, "again"]);
            assert_eq!(of_large(&server).len(), 5, "{tool} {code}");
            assert_eq!(place.file(LARGE.0), None);
        }
        // An error in the middle, then the rest.
        let server = serving(|n| match n {
            0 => Answer::CutAfter(large(), 50_000),
            1..4 => Answer::Status("503 Service Unavailable"),
            _ => Answer::Body(large()),
        });
        let place = Place::new();
        place.run(&server, tool, &[]).succeeded();
        place.assert_complete();
        assert_eq!(of_large(&server), [0, 50_000, 50_000, 50_000, 50_000]);
    }
}

#[test]
fn wrong_bytes_never_get_the_name() {
    fn wrong() -> Vec<u8> {
        content("wrong", LARGE.1)
    }
    for tool in tools() {
        let server = serving(|_| Answer::Body(wrong()));
        let place = Place::new();
        place.run(&server, tool, &[]).failed(&["SHA-256", "not the published file"]);
        assert_eq!(place.file(LARGE.0), None);
        assert_eq!(place.file("model.safetensors.part"), None);

        // Wrong once, from a proxy say.
        let server = serving(|n| Answer::Body(if n == 0 { wrong() } else { large() }));
        let place = Place::new();
        place.run(&server, tool, &[]).succeeded().says(&["SHA-256 is", "starting over"]);
        place.assert_complete();

        // The rest of another file behind the first half.
        let server = serving(|n| match n {
            0 => Answer::CutAfter(wrong(), 50_000),
            _ => Answer::Body(large()),
        });
        let place = Place::new();
        place.run(&server, tool, &[]).succeeded().says(&["SHA-256 is"]);
        place.assert_complete();

        // A complete file that is too short, such as a pointer or a login page.
        let server = serving(|_| Answer::Body(b"version https://git-lfs".to_vec()));
        let place = Place::new();
        place.run(&server, tool, &[]).failed(&["ends", "not the published file"]);
        assert_eq!(place.file(LARGE.0), None);

        // Without end: neither the disk nor the user's patience runs out.
        let server = serving(|_| Answer::Endless);
        let place = Place::new();
        place.run(&server, tool, &[]).failed(&["more than the expected", "not the published file"]);
        assert_eq!(place.file(LARGE.0), None);
    }
}

#[test]
fn a_server_that_ignores_ranges_still_gives_the_file() {
    for tool in tools() {
        let server = serving(|n| match n {
            0 => Answer::CutAfter(large(), 50_000),
            _ => Answer::IgnoreRange(large()),
        });
        let place = Place::new();
        // wget starts over by itself, curl has to be told.
        let run = place.run(&server, tool, &[]);
        run.succeeded().says(&["broke off", "going on after"]);
        place.assert_complete();
    }
}

#[test]
fn redirections_are_followed() {
    for tool in tools() {
        let server = Server::new(|path, before| match path {
            "/config.json" => Answer::Redirect("/storage/a"),
            "/model.safetensors" => Answer::Redirect("/storage/b"),
            "/storage/a" => Answer::Body(small()),
            "/storage/b" if before == 0 => Answer::CutAfter(large(), 70_000),
            "/storage/b" => Answer::Body(large()),
            _ => Answer::Status("404 Not Found"),
        });
        let place = Place::new();
        place.run(&server, tool, &[]).succeeded();
        place.assert_complete();
        assert!(server.requests().contains(&Request { path: "/storage/b".into(), from: 70_000 }));
    }
}

#[test]
fn files_of_the_user_are_not_replaced_unasked() {
    for tool in tools() {
        let server = serving(|_| Answer::Body(large()));
        let place = Place::new();
        std::fs::create_dir(&place.dir).unwrap();
        std::fs::write(place.dir.join(SMALL.0), "mine").unwrap();
        place.run(&server, tool, &[]).failed(&["config.json is there", "--force"]);
        assert_eq!(place.file(SMALL.0).unwrap(), b"mine");
        place.run(&server, tool, &["--force"]).succeeded();
        place.assert_complete();
    }
}

#[test]
fn a_server_that_is_not_there_is_an_error() {
    for tool in tools() {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let server = Server::absent(&port.to_string());
        let place = Place::new();
        place.run(&server, tool, &[]).failed(&["config.json", "gave up", &server.url]);
    }
}

#[test]
fn folders_may_have_any_name() {
    let names: [&[u8]; 5] =
        ["Модель 模型 ’ \"$(x)`".as_bytes(), b"-rf", b" a\nb ", b"\xFF\xFE", b"deep/er/still"];
    for (i, name) in names.into_iter().enumerate() {
        let server = serving(|_| Answer::Body(large()));
        let mut place = Place::new();
        place.dir = place.temp.join(std::ffi::OsStr::from_bytes(name));
        let tool = tools()[i % tools().len()];
        place.run(&server, tool, &[]).succeeded();
        place.assert_complete();
    }
    // A relative name that begins like an option.
    let server = serving(|_| Answer::Body(large()));
    let mut place = Place::new();
    place.dir = PathBuf::from("-odd");
    let mut command = place.command("sh", &server, tools()[0], &["--"]);
    Run::from(command.current_dir(place.temp.path()).output().unwrap()).succeeded();
    place.dir = place.temp.join("-odd");
    place.assert_complete();
}

#[test]
fn usage_is_explained() {
    let run = |arguments: &[&str]| {
        Command::new("sh").arg(script()).args(arguments).stdin(Stdio::null()).output().unwrap()
    };
    for flag in ["--help", "-h"] {
        let output = run(&[flag]);
        assert!(output.status.success() && output.stderr.is_empty());
        assert!(String::from_utf8_lossy(&output.stdout).contains("Usage:"));
    }
    for arguments in [
        &["--nonsense"][..],
        &["a", "b"],
        &["--base-url"],
        &["--base-url", "ftp://x", "a"],
        &["--retry-delay", "x", "a"],
        &["--tool", "fetch", "a"],
        &[""],
    ] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("--help"));
    }

    // A manifest is checked before anything is loaded or made.
    let place = Place::new();
    let good = "0".repeat(64);
    for line in [
        format!("{good} 5 ../escape"),
        format!("{good} 5 .hidden"),
        format!("{good} 5 a/b"),
        format!("{good} 5 -x"),
        format!("{good} 5"),
        format!("{good} five name"),
        format!("{good} 5 name more"),
        format!("{} 5 name", &good[1..]),
        format!("{} 5 name", "g".repeat(64)),
        String::new(),
    ] {
        std::fs::write(place.temp.join("manifest"), &line).unwrap();
        let server = serving(|_| Answer::Body(large()));
        place.run(&server, tools()[0], &[]).failed(&["manifest"]);
        assert!(server.requests().is_empty() && !place.dir.exists(), "{line}");
    }
}

/// The built-in list is what was published at the pinned revision.
#[test]
fn the_published_files_add_up() {
    let text = std::fs::read_to_string(script()).unwrap();
    let files: Vec<(&str, u64, &str)> = text
        .lines()
        .filter_map(|line| {
            let words: Vec<&str> = line.split(' ').collect();
            let [sha, size, name] = words[..] else { return None };
            let is_sha = sha.len() == 64 && sha.bytes().all(|b| b.is_ascii_hexdigit());
            is_sha.then(|| (sha, size.parse().unwrap(), name))
        })
        .collect();
    assert_eq!(files.len(), 10);
    let model = files.iter().filter(|f| !f.2.contains("preprocessor"));
    assert_eq!(model.map(|f| f.1).sum::<u64>(), 1_769_904_871);
    let weights = files.last().unwrap();
    assert_eq!(weights.1, 8 + 59_840 + 1_746_882_752);
    assert!(text.contains("revision=2fc06364715b967f1860aea9cf38778875588b17"));
    // The one file of the list that the tests have, byte for byte.
    let config = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/configs/qwen3.5-0.8b.json");
    let config = std::fs::read(config).unwrap();
    let listed = files.iter().find(|f| f.2 == "config.json").unwrap();
    assert_eq!((listed.0, listed.1), (sha256(&config).as_str(), config.len() as u64));
}

/// The length of a file, 0 if there is none.
fn length(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |m| m.len())
}

#[track_caller]
fn wait_until(condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(20), "waited in vain");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn send_signal(child: &Child, signal: &str) {
    let status = Command::new("kill").args(["-s", signal, &child.id().to_string()]).status();
    assert!(status.unwrap().success());
}

/// Ends the loading tool that a killed script left behind; it is known by the test's own folder
/// on its command line.
fn kill_children_of(place: &Place) {
    let folder = place.dir.as_os_str().as_bytes();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let command = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        if command.windows(folder.len()).any(|w| w == folder) {
            let id = entry.file_name();
            let _ = Command::new("kill").arg(&id).status();
            wait_until(|| !Path::new("/proc").join(&id).join("exe").exists());
        }
    }
}
