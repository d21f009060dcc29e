//! The training text of the demo model and its held-out questions have nothing in common.

#[path = "support/c.rs"]
mod c;
#[path = "support/temp.rs"]
mod temp;

use std::process::Command;

use c::{not_run, succeed};

#[test]
fn the_held_out_questions_are_not_in_the_training_text() {
    if Command::new("python3").arg("--version").output().is_err() {
        return not_run("the split of the demo's questions: python3 is missing");
    }
    let mut command = Command::new("python3");
    command.args(["examples/demo-model/train/test_apart.py", "4000"]);
    // No __pycache__ in the source folder.
    command.env("PYTHONDONTWRITEBYTECODE", "1").current_dir(c::root());
    let output = succeed(&mut command);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains("held-out prompts; none of them"), "{said}");
}

/// Ten megabytes at most in the folder, leftovers of a training run aside.
#[test]
fn the_demo_is_small() {
    fn size(folder: &std::path::Path) -> u64 {
        let entries = std::fs::read_dir(folder).unwrap().map(Result::unwrap);
        let of = |entry: std::fs::DirEntry| match entry.file_name().to_str().unwrap() {
            "work" | "__pycache__" => 0,
            _ if entry.file_type().unwrap().is_dir() => size(&entry.path()),
            _ => entry.metadata().unwrap().len(),
        };
        entries.map(of).sum()
    }
    let bytes = size(&c::root().join("examples/demo-model"));
    assert!((7_000_000..=10_000_000).contains(&bytes), "{bytes} bytes");
}
