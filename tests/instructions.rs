//! The library's machine code: vector instructions beyond SSE2, the base of x86-64, stand only
//! in functions that are entered after a look at the CPU.

#[path = "support/c.rs"]
mod c;

use std::collections::BTreeMap;
use std::process::Command;

/// Functions that may hold them, by the beginning or a part of their names: the kernels, which
/// are entered through the value that proves the instruction set, and functions of other
/// crates that choose at run time in the same manner.
const GUARDED: [&str; 9] = [
    "as qwen35::kernels::simd::Simd>::run::enter",
    "as qwen35::kernels::simd::Simd>::run_alone::enter",
    "as qwen35::kernels::quantized::dots::Dots>::run::enter",
    "qwen35::kernels::simd::avx",
    "qwen35::kernels::linear::narrow::",
    "qwen35::kernels::quantized::inputs::wide::",
    "memchr::arch::x86_64::",
    "half::binary16::arch::x86::",
    // An intrinsic that was not inlined: slow, but reached from the functions above only.
    "core::core_arch::x86",
];

#[test]
fn vector_instructions_stand_in_guarded_functions() {
    let library = c::library_folder().join("libqwen35.so");
    let output = Command::new("objdump")
        .args(["--disassemble", "--no-show-raw-insn", "--demangle"])
        .arg(&library)
        .output();
    let Ok(output) = output else {
        return c::not_run("the scan of the machine code: there is no objdump");
    };
    assert!(output.status.success(), "objdump {}", library.display());
    let text = String::from_utf8_lossy(&output.stdout);
    let (mut found, mut function) = (BTreeMap::<&str, usize>::new(), "");
    let mut instructions = 0;
    for line in text.lines() {
        if let Some(name) = line.strip_suffix(">:").and_then(|line| line.split_once(" <")) {
            function = name.1;
        } else if let Some((_, instruction)) = line.split_once(":\t") {
            instructions += 1;
            if is_beyond_sse2(instruction) {
                *found.entry(function).or_default() += 1;
            }
        }
    }
    assert!(instructions > 100_000, "objdump printed {instructions} instructions");
    for isa in ["avx2::Avx2 as", "avx512::Avx512 as"] {
        let is_there = found.keys().any(|function| function.contains(isa));
        assert!(is_there, "no kernels for {isa}: does this test still know their names?");
    }
    found.retain(|function, _| !GUARDED.iter().any(|guarded| function.contains(guarded)));
    assert!(found.is_empty(), "instructions beyond SSE2 in {found:#?}");
}

/// An instruction of the AVX families (each mnemonic of which begins with `v`, but for those
/// of the mask registers), or of BMI and others that came with them. Not `tzcnt`: an older
/// CPU runs it as `bsf`, which compilers use where the two agree.
fn is_beyond_sse2(instruction: &str) -> bool {
    let mnemonic = instruction.split_ascii_whitespace().next().unwrap_or("");
    let base = ["verr", "verw", "vmcall", "vmfunc"];
    (mnemonic.starts_with('v') && !base.contains(&mnemonic))
        || instruction.contains("%k0")
        || instruction.contains("%k1")
        || ["andn", "bextr", "blsi", "blsr", "blsmsk", "mulx", "pdep", "pext", "rorx", "sarx"]
            .contains(&mnemonic)
        || ["shlx", "shrx", "popcnt", "lzcnt"].contains(&mnemonic)
}
