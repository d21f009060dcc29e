//! Link settings of the shared library, and the facts that `qwen_build_info` reports.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let env = |name: &str| std::env::var(name).unwrap_or_default();
    println!("cargo:rustc-env=QWEN_TARGET={}", env("TARGET"));
    println!("cargo:rustc-env=QWEN_PROFILE={}", env("PROFILE"));
    println!("cargo:rustc-env=QWEN_RUSTC={}", rustc_version(&env("RUSTC")));

    if env("CARGO_CFG_TARGET_OS") == "linux" {
        for argument in [
            // The name that programs record: it changes when the ABI does.
            "-Wl,-soname,libqwen35.so.0",
            // Dependencies carry #[no_mangle] symbols of their own; none may leak. A version
            // script cannot do this: rustc passes one itself, and linkers take only that.
            "-Wl,--exclude-libs,ALL",
            // Thread-local destructors of this library may run after dlclose(): stay mapped.
            "-Wl,-z,nodelete",
            "-Wl,-z,relro,-z,now",
            "-Wl,-z,noexecstack",
        ] {
            println!("cargo:rustc-cdylib-link-arg={argument}");
        }
    }
}

fn rustc_version(rustc: &str) -> String {
    let output = std::process::Command::new(rustc).arg("--version").output();
    let text = output.map(|o| String::from_utf8_lossy(&o.stdout).into_owned()).unwrap_or_default();
    text.split_whitespace().nth(1).unwrap_or("unknown").to_owned()
}
