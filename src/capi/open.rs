//! Opening from memory and through the host's reads; warming up.

use std::ffi::c_void;
use std::ops::ControlFlow;
use std::ptr::null_mut;

use super::arguments::{Out, array};
use super::guard::call;
use super::handle;
use super::model::{User, model_options, open_progress, qwen_model, qwen_model_options};
use super::status::{Failure, QWEN_OK, Result, qwen_status};
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
/// First the header is read, and the table of sections, which is at the end of the file. They
/// are checked before memory for the file is asked for. Then all of it is read, these two
/// again, from its start to its end, in parts of 8 MiB at most. So read has to go back: what
/// can only be read once from start to end has to be kept by the host.
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
        let mut progress = open_progress(options)?;
        let options = model_options(options)?;
        let mut read = host_read(read, user)?;
        let model = Model::open_reader(size, &mut read, &options, &mut progress)?;
        out.set(handle::create(model, ()));
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

/// The host's reads of a packed file.
///
/// # Safety
/// The host gave `read` for being called with `user` on this thread.
pub(super) unsafe fn host_read(
    read: qwen_read_callback,
    user: *mut c_void,
) -> Result<impl FnMut(u64, &mut [u8]) -> crate::Result<()>> {
    let read = read.ok_or_else(|| Failure::argument("`read` is NULL"))?;
    Ok(move |offset: u64, buffer: &mut [u8]| {
        let (to, length) = (buffer.as_mut_ptr().cast(), buffer.len());
        // SAFETY: the caller's promise; `length` bytes are writable.
        match unsafe { read(offset, to, length, user) } {
            0 => Ok(()),
            code => Err(Error::new(
                ErrorKind::Io,
                format!("the host's read of {length} bytes at {offset} failed with {code}"),
            )),
        }
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
