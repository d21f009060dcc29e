//! What this library is, and what it found to run on.

use std::ffi::{CString, c_char};
use std::sync::OnceLock;

use super::guard::call;
use super::status::QWEN_OK;
use crate::kernels::simd::Isa;

/// The version of this header, to compare with qwen_version() at run time.
pub const QWEN_VERSION_MAJOR: u32 = 0;
/// See QWEN_VERSION_MAJOR.
pub const QWEN_VERSION_MINOR: u32 = 1;
/// See QWEN_VERSION_MAJOR.
pub const QWEN_VERSION_PATCH: u32 = 0;
/// The version of the binary interface, to compare with qwen_abi_version() at run time. It
/// changes, with the SONAME, when a program must be compiled again.
pub const QWEN_ABI_VERSION: u32 = 0;

/// The version of the library: "MAJOR.MINOR.PATCH". The text is static.
#[unsafe(no_mangle)]
pub extern "C" fn qwen_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}

/// The QWEN_ABI_VERSION that the library was built with. A program whose header says
/// another number must not go on.
#[unsafe(no_mangle)]
pub extern "C" fn qwen_abi_version() -> u32 {
    QWEN_ABI_VERSION
}

/// How the library was built: version, compiler, target, profile. For reports of defects;
/// the form may change. The text is static.
#[unsafe(no_mangle)]
pub extern "C" fn qwen_build_info() -> *const c_char {
    const INFO: &str = concat!(
        "libqwen35 ",
        env!("CARGO_PKG_VERSION"),
        " (rustc ",
        env!("QWEN_RUSTC"),
        ", ",
        env!("QWEN_TARGET"),
        ", ",
        env!("QWEN_PROFILE"),
        ")\0"
    );
    INFO.as_ptr().cast()
}

/// What the library found on this CPU: the instruction sets it can use and the one it
/// chooses unless qwen_model_options.isa says otherwise. For reports; the form may change.
///
/// The text is borrowed and stays as it is until the process ends.
#[unsafe(no_mangle)]
pub extern "C" fn qwen_cpu_info() -> *const c_char {
    static INFO: OnceLock<CString> = OnceLock::new();
    let mut text = c"unknown".as_ptr();
    call(|| {
        text = INFO
            .get_or_init(|| {
                let names: Vec<_> = Isa::available().map(Isa::name).collect();
                let best = Isa::best().name();
                let info = format!("x86-64: {} (chosen: {best})", names.join(" "));
                CString::new(info).unwrap_or_default()
            })
            .as_ptr();
        Ok(QWEN_OK)
    });
    text
}

const _: () = {
    /// A decimal number, at compile time.
    const fn number(text: &str) -> u32 {
        let (bytes, mut value, mut i) = (text.as_bytes(), 0, 0);
        while i < bytes.len() {
            value = value * 10 + (bytes[i] - b'0') as u32;
            i += 1;
        }
        value
    }
    assert!(QWEN_VERSION_MAJOR == number(env!("CARGO_PKG_VERSION_MAJOR")));
    assert!(QWEN_VERSION_MINOR == number(env!("CARGO_PKG_VERSION_MINOR")));
    assert!(QWEN_VERSION_PATCH == number(env!("CARGO_PKG_VERSION_PATCH")));
};
