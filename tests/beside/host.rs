//! A program in Rust, with its own standard library, that has libqwen35.a inside: MODEL.

use std::ffi::{CStr, c_char, c_void};

unsafe extern "C" {
    fn qwen_model_open(
        path: *const c_char,
        length: usize,
        options: *const c_void,
        model: *mut *mut c_void,
    ) -> i32;
    fn qwen_session_new(model: *const c_void, options: *const c_void, out: *mut *mut c_void)
    -> i32;
    fn qwen_session_feed(session: *mut c_void, tokens: *const i32, count: usize) -> i32;
    fn qwen_session_next_token(session: *mut c_void, token: *mut i32) -> i32;
    fn qwen_session_free(session: *mut c_void);
    fn qwen_model_free(model: *mut c_void);
    fn qwen_last_error() -> *const c_char;
}

fn talk(path: &str) -> i32 {
    let (mut model, mut session) = (std::ptr::null_mut(), std::ptr::null_mut());
    let mut token = -1;
    unsafe {
        let none = std::ptr::null();
        assert_eq!(qwen_model_open(path.as_ptr().cast(), path.len(), none, &mut model), 0);
        assert_eq!(qwen_session_new(model, none, &mut session), 0);
        assert_eq!(qwen_session_feed(session, [1, 2, 3].as_ptr(), 3), 0);
        assert!(qwen_session_next_token(session, &mut token) >= 0);
        // An error inside the library is none of this program's panics.
        assert!(qwen_session_feed(session, [-5].as_ptr(), 1) < 0);
        assert!(CStr::from_ptr(qwen_last_error()).to_string_lossy().contains("-5"));
        qwen_session_free(session);
        qwen_model_free(model);
    }
    token
}

fn main() {
    let path = std::env::args().nth(1).expect("usage: host MODEL");
    // Both unwind: the hook and the panics of this program are its own.
    std::panic::set_hook(Box::new(|_| println!("the hook of the program")));
    let caught = std::panic::catch_unwind(|| panic!("mine"));
    assert!(caught.is_err());
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let path = path.clone();
            std::thread::spawn(move || talk(&path))
        })
        .collect();
    let tokens: Vec<i32> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    let caught = std::panic::catch_unwind(|| panic!("mine again"));
    assert!(caught.is_err());
    assert!(tokens.iter().all(|token| *token >= 0));
    println!("ok");
}
