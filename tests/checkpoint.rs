//! Checkpoints that must open: the published layout and what tools make of it.

#[path = "support/synthetic.rs"]
mod synthetic;
#[path = "support/temp.rs"]
mod temp;

use qwen35::checkpoint::{Checkpoint, Dtype};
use synthetic::{Spec, Types};
use temp::TempDir;

#[test]
fn every_tensor_of_every_small_checkpoint_has_the_values_it_was_written_with() {
    for name in ["small-equal", "small-grouped", "small-odd", "small-flat"] {
        for types in [Types::Published, Types::Mixed, Types::All(Dtype::F16)] {
            let dir = TempDir::new();
            let spec = Spec { types, ..Spec::named(name) };
            spec.write(dir.path()).unwrap();
            let checkpoint = Checkpoint::open(dir.path()).unwrap_or_else(|e| panic!("{name}: {e}"));
            for expected in spec.tensors() {
                let short = expected.name.trim_start_matches(synthetic::PREFIX);
                let tensor = checkpoint.tensor(short, &expected.shape).unwrap();
                assert_eq!(tensor.dtype(), expected.dtype, "{short}");
                assert_eq!(tensor.to_f32(), expected.values(spec.seed), "{name} {short}");
            }
        }
    }
}

#[test]
#[ignore = "writes 1.5 GB"]
fn the_full_shapes_are_written_quickly() {
    let start = std::time::Instant::now();
    let dir = synthetic::full_0_8b().unwrap();
    eprintln!("written in {:?}", start.elapsed());
    let start = std::time::Instant::now();
    let checkpoint = Checkpoint::open(&dir).unwrap();
    eprintln!("opened in {:?}", start.elapsed());
    assert_eq!(checkpoint.text_bytes(), 1_504_791_232);
}
