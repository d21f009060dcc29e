//! Opening from memory and through the host's reads; what a model costs; warming up.

use std::ffi::{c_char, c_void};
use std::ops::ControlFlow;
use std::ptr::null_mut;

use super::arguments::{Out, Sized32, array, fill};
use super::guard::call;
use super::handle;
use super::model::{User, file_path, model_options, open_progress, qwen_model, qwen_model_options};
use super::status::{Failure, QWEN_OK, qwen_status};
use crate::checkpoint::HostMemory;
use crate::{Error, ErrorKind, Model};

/// Takes memory back that was lent to qwen_model_open_memory(). It is called once for each
/// call of that function, on any thread, under no lock, and must not call the library. It
/// must return: an exception or longjmp() through the library is undefined.
pub type qwen_release_callback =
    Option<unsafe extern "C" fn(data: *mut c_void, length: usize, user: *mut c_void)>;

/// Reads length bytes from offset on into buffer: all of them, or it fails. It is called on
/// the calling thread, under no lock, during the call it was given to. A return value other
/// than 0 ends that call with QWEN_ERROR_IO. It must return: an exception or longjmp() through
/// the library is undefined.
pub type qwen_read_callback = Option<
    unsafe extern "C" fn(offset: u64, buffer: *mut c_void, length: usize, user: *mut c_void) -> i32,
>;

/// Called on the calling thread during long calls: done of total, in what the function says.
/// A return value other than 0 ends the call with QWEN_CANCELLED. No lock is held. It must
/// return: an exception or longjmp() through the library is undefined.
pub type qwen_work_callback =
    Option<unsafe extern "C" fn(done: u64, total: u64, user: *mut c_void) -> i32>;

/// What a model takes in memory, in bytes, see qwen_model_estimate(). The tokenizer (some
/// 10 MB at the published vocabulary) comes on top. Set struct_size before asking.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct qwen_model_cost {
    /// sizeof(qwen_model_cost)
    pub struct_size: u32,
    /// 0.
    pub reserved: u32,
    /// Weights in use.
    pub weight_bytes: u64,
    /// Of those, what is mapped from a file: memory the operating system can take back and
    /// shares between processes.
    pub mapped_bytes: u64,
    /// A session that holds the number of tokens asked for, with QWEN_KV_AUTO.
    pub session_bytes: u64,
    /// Of those, what it takes at the start. The rest comes with its tokens, in pages of 64.
    pub session_start_bytes: u64,
    /// What each copy of a session, and each position that it can go back to, takes beyond
    /// the pages that are shared.
    pub copy_bytes: u64,
    /// Scratch memory for each session that computes at the same time as others. It is kept
    /// for the next ones.
    pub scratch_bytes: u64,
    /// The keys and values of the number of tokens asked for, in FP32: the part of
    /// session_bytes that the kv of qwen_session_options changes.
    pub kv_fp32_bytes: u64,
    /// The same in FP16.
    pub kv_fp16_bytes: u64,
    /// The same in INT8.
    pub kv_int8_bytes: u64,
}

// SAFETY: integers only, struct_size first.
unsafe impl Sized32 for qwen_model_cost {
    const NAME: &'static str = "qwen_model_cost";
    const FIRST_SIZE: usize = 56;
}

/// Memory of the host. Dropping it calls the host.
struct Lent {
    data: *const u8,
    length: usize,
    release: qwen_release_callback,
    user: User,
}

// SAFETY: the host promises that the bytes stay as they are until they are released, and that
// any thread may release them.
unsafe impl Send for Lent {}
// SAFETY: as above.
unsafe impl Sync for Lent {}

impl HostMemory for Lent {
    fn bytes(&self) -> &[u8] {
        if self.length == 0 {
            return &[];
        }
        // SAFETY: checked by the one who made it to be possible; readable and unchanged until
        // `release` by the host's promise.
        unsafe { std::slice::from_raw_parts(self.data, self.length) }
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: the host gave the function for being called so, once.
            unsafe { release(self.data.cast_mut().cast(), self.length, self.user.get()) };
        }
    }
}

/// Opens a packed file that is in memory: part of the program, of a pak file, decrypted.
///
/// data, length: the file, from qwen_pack(). Lent: readable and unchanged until release is
/// called. Used where it is if data is a multiple of 64; else it is copied, and released
/// before this function returns.
/// release: NULL, or called exactly once, whatever this function returns: when the model and
/// all that was made from it are gone, or before it returns, if it fails.
/// user: handed to release; never looked at.
/// options: NULL, or options, used during the call.
/// model: receives a handle owned by the caller, for qwen_model_free(); NULL on failure.
///
/// Returns as qwen_model_open(), without QWEN_ERROR_IO.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_model_open_memory(
    data: *const c_void,
    length: usize,
    release: qwen_release_callback,
    user: *mut c_void,
    options: *const qwen_model_options,
    model: *mut *mut qwen_model,
) -> qwen_status {
    // Made before anything can fail, so that it is released whatever happens.
    let mut lent = Lent { data: data.cast(), length: 0, release, user: User(user) };
    // SAFETY: pointers are NULL or as the header asks for.
    call(|| unsafe {
        // The host gets back the length that it gave, also one that cannot be.
        lent.length = length;
        array::<u8>("data", data.cast(), length)?;
        let memory = Box::new(lent);
        let out = Out::new("model", model)?;
        out.set(null_mut());
        let mut progress = open_progress(options)?;
        let options = model_options(options)?;
        let model = Model::open_memory(memory, &options, &mut progress)?;
        out.set(handle::create(model, ()));
        Ok(QWEN_OK)
    })
}

/// Opens a packed file that the host reads: out of a pak file, decrypting, from a network.
/// The header is read and checked before memory for the rest is asked for; then the file is
/// read once, from its start to its end, in parts of 8 MiB at most.
///
/// size: length of the file in bytes.
/// read: see qwen_read_callback; used during the call.
/// user: handed to read; never looked at.
/// options: NULL, or options, used during the call.
/// model: receives a handle owned by the caller, for qwen_model_free(); NULL on failure.
///
/// Returns as qwen_model_open(), with QWEN_ERROR_IO where read failed. The progress callback
/// of the options is called between reads and can end the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_model_open_reader(
    size: u64,
    read: qwen_read_callback,
    user: *mut c_void,
    options: *const qwen_model_options,
    model: *mut *mut qwen_model,
) -> qwen_status {
    // SAFETY: pointers are NULL or as the header asks for.
    call(|| unsafe {
        let out = Out::new("model", model)?;
        out.set(null_mut());
        let read = read.ok_or_else(|| Failure::argument("`read` is NULL"))?;
        let mut progress = open_progress(options)?;
        let options = model_options(options)?;
        let mut read = |offset: u64, buffer: &mut [u8]| match read(
            offset,
            buffer.as_mut_ptr().cast(),
            buffer.len(),
            user,
        ) {
            0 => Ok(()),
            code => Err(Error::new(
                ErrorKind::Io,
                format!("the host's read of {} bytes at {offset} failed with {code}", buffer.len()),
            )),
        };
        let model = Model::open_reader(size, &mut read, &options, &mut progress)?;
        out.set(handle::create(model, ()));
        Ok(QWEN_OK)
    })
}

/// Says what a model and a session on it will take in memory, before it is opened. Headers
/// are read and checked as by qwen_model_open(), weights are not read.
///
/// path, path_length: as for qwen_model_open().
/// options: those it will be opened with, used during the call; NULL for the defaults.
/// context: tokens of the session. 0: as many as the model was made for.
/// cost: filled as far as its struct_size reaches, which must be set; owned by the caller.
///
/// Returns as qwen_model_open().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_model_estimate(
    path: *const c_char,
    path_length: usize,
    options: *const qwen_model_options,
    context: u64,
    cost: *mut qwen_model_cost,
) -> qwen_status {
    // SAFETY: pointers are NULL or as the header asks for.
    call(|| unsafe {
        Out::new("cost", cost)?;
        let path = file_path("path", path, path_length)?;
        let options = model_options(options)?;
        let context = usize::try_from(context).unwrap_or(usize::MAX);
        let estimate = Model::estimate(path, &options, context)?;
        let value = qwen_model_cost {
            struct_size: 0,
            reserved: 0,
            weight_bytes: estimate.weights,
            mapped_bytes: estimate.mapped,
            session_bytes: estimate.session,
            session_start_bytes: estimate.session_start,
            copy_bytes: estimate.mark,
            scratch_bytes: estimate.scratch,
            kv_fp32_bytes: estimate.kv.f32,
            kv_fp16_bytes: estimate.kv.f16,
            kv_int8_bytes: estimate.kv.i8,
        };
        fill("cost", cost, &value)?;
        Ok(QWEN_OK)
    })
}

/// Does once what the first prompt would wait for: reads all weights, makes scratch memory,
/// wakes the threads. It takes about as long as the first token, which on a cold disk is the
/// time to read the weights.
///
/// callback: NULL, or what is told the layers done and to do, and may end the call.
/// user: handed to it; never looked at.
///
/// Returns QWEN_OK; QWEN_CANCELLED; QWEN_ERROR_INVALID_STATE with QWEN_MODEL_TOKENIZER_ONLY;
/// QWEN_ERROR_OUT_OF_MEMORY; QWEN_ERROR_FORKED. The model can be used in every case.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_model_warm_up(
    model: *const qwen_model,
    callback: qwen_work_callback,
    user: *mut c_void,
) -> qwen_status {
    // SAFETY: the header asks for NULL or a handle.
    call(|| unsafe {
        let model = handle::read::<Model>(model)?;
        let mut progress = work_progress(callback, user);
        model.warm_up(&mut |done, total| progress(done as u64, total as u64))?;
        Ok(QWEN_OK)
    })
}

/// The host's callback as what long operations take.
///
/// # Safety
/// The host gave `callback` for being called with `user` on this thread.
pub(super) unsafe fn work_progress(
    callback: qwen_work_callback,
    user: *mut c_void,
) -> impl FnMut(u64, u64) -> ControlFlow<()> {
    move |done, total| match callback {
        // SAFETY: the caller's promise.
        Some(callback) if unsafe { callback(done, total, user) } != 0 => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    }
}
