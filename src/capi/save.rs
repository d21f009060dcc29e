//! Sessions as bytes: to a file or to memory, and back.

use std::ffi::{OsStr, c_char, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::null;

use super::arguments::{Out, array, bytes, flags, give_with};
use super::guard::call;
use super::handle;
use super::session::qwen_session;
use super::status::{Failure, QWEN_OK, Result, qwen_status};
use crate::Session;
use crate::session::SaveOptions;

/// For saving: leave the marks out. The saved session is smaller (by 19 MB for each mark at
/// 0.8B), but the next turn of a conversation computes the whole history again.
pub const QWEN_SAVE_WITHOUT_MARKS: u32 = 0x1;

pub(super) fn save_options(value: u32) -> Result<SaveOptions> {
    Ok(SaveOptions { without_marks: flags(value, QWEN_SAVE_WITHOUT_MARKS)? != 0 })
}

/// A path of the caller.
///
/// # Safety
/// As [`bytes`].
pub(super) unsafe fn path<'a>(file: *const c_char, length: usize) -> Result<&'a Path> {
    // SAFETY: the caller's promise.
    let name = unsafe { bytes("file", file, length) }?;
    if name.is_empty() || name.contains(&0) {
        return Err(Failure::argument("`file` is empty or holds a NUL"));
    }
    Ok(Path::new(OsStr::from_bytes(name)))
}

/// Keeps bytes of the caller with a session: the messages of a conversation, say, or where
/// the game stands. They are saved, restored and forked with it; the library does not look
/// at them. Every call replaces what was there.
///
/// data, size: copied; at most 64 MB. Size 0 removes it.
///
/// Returns QWEN_OK; QWEN_ERROR_INVALID_ARGUMENT; QWEN_ERROR_OUT_OF_MEMORY.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_session_set_attachment(
    session: *mut qwen_session,
    data: *const c_void,
    size: usize,
) -> qwen_status {
    // SAFETY: pointers are NULL or as the header asks for.
    call(|| unsafe {
        let mut session = handle::write::<Session>(session)?;
        let bytes = array("data", data.cast::<u8>(), size)?;
        let result = session.set_attachment(bytes);
        session.judge(result)?;
        Ok(QWEN_OK)
    })
}

/// Gives the bytes of qwen_session_set_attachment() back.
///
/// data: receives a borrowed pointer, valid until the next call on the session with a
/// non-const handle.
/// size: receives their number, 0 if there are none.
///
/// Returns QWEN_OK or QWEN_ERROR_INVALID_ARGUMENT.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_session_attachment(
    session: *const qwen_session,
    data: *mut *const c_void,
    size: *mut usize,
) -> qwen_status {
    // SAFETY: pointers are NULL or as the header asks for.
    call(|| unsafe {
        let (data, size) = (Out::new("data", data)?, Out::new("size", size)?);
        data.set(null());
        size.set(0);
        let session = handle::read::<Session>(session)?;
        let bytes = session.attachment();
        data.set(bytes.as_ptr().cast());
        size.set(bytes.len());
        Ok(QWEN_OK)
    })
}

/// Saves a session to a file: sequence, network state, marks, sampling options, random
/// stream, attachment. Restored, it goes on bit for bit as this one would have.
///
/// The file is replaced at once: whatever happens meanwhile, the end of the process or a
/// power failure included, afterwards the old file is there or the new one, whole. It is
/// written beside the old one, as its name with ".saving" behind, and is readable by its
/// owner only: it holds the conversation. Such a file that a killed process left behind is
/// removed by the next call for the same path. A symbolic link at the path is replaced, not
/// followed. What is not a regular file (a folder, a device, a pipe, a socket, or a link to
/// one) is refused and left alone.
///
/// file, file_length: the path, used during the call.
/// flags: QWEN_SAVE_WITHOUT_MARKS or 0.
///
/// Returns QWEN_OK; QWEN_ERROR_IO; QWEN_ERROR_BUSY, also if another session is being saved
/// to the same file; QWEN_ERROR_INVALID_ARGUMENT; QWEN_ERROR_OUT_OF_MEMORY. An error leaves
/// the old file as it was.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_session_save_file(
    session: *const qwen_session,
    file: *const c_char,
    file_length: usize,
    flags: u32,
) -> qwen_status {
    // SAFETY: pointers are NULL or as the header asks for.
    call(|| unsafe {
        let session = handle::read::<Session>(session)?;
        let path = path(file, file_length)?;
        session.save_to_file(save_options(flags)?, path)?;
        Ok(QWEN_OK)
    })
}

/// Puts a session where a saved one was, on this model or on the same one in another process:
/// the fingerprint, the weight format and the way of computing must be those it was saved
/// with. Context limit, namespace and overflow options stay this session's own; so does its
/// progress callback. Marks beyond its own limit are dropped, oldest first.
///
/// A stream decoder is put to the same place by qwen_stream_decoder_resume().
///
/// file, file_length: the path, used during the call.
///
/// Returns QWEN_OK; QWEN_ERROR_IO if the file cannot be read; QWEN_ERROR_FORMAT if it is
/// damaged, cut off or something else; QWEN_ERROR_UNSUPPORTED if it was saved with another
/// model, format or version; QWEN_ERROR_CONTEXT_OVERFLOW if the sequence is longer than this
/// session's limit; QWEN_ERROR_OUT_OF_MEMORY; QWEN_ERROR_INVALID_ARGUMENT. Without QWEN_OK
/// the session is as before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_session_restore_file(
    session: *mut qwen_session,
    file: *const c_char,
    file_length: usize,
) -> qwen_status {
    // SAFETY: pointers are NULL or as the header asks for.
    call(|| unsafe {
        let mut session = handle::write::<Session>(session)?;
        let path = path(file, file_length)?;
        let result = session.restore_from_file(path);
        session.judge(result)?;
        Ok(QWEN_OK)
    })
}

/// As qwen_session_save_file(), to memory.
///
/// flags: QWEN_SAVE_WITHOUT_MARKS or 0.
/// data, capacity, needed: a buffer of the caller, see Buffers; sizes in bytes. The size
/// grows with the sequence.
///
/// Returns QWEN_OK; QWEN_ERROR_BUFFER_TOO_SMALL; QWEN_ERROR_INVALID_ARGUMENT;
/// QWEN_ERROR_OUT_OF_MEMORY.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_session_save_memory(
    session: *const qwen_session,
    flags: u32,
    data: *mut c_void,
    capacity: usize,
    needed: *mut usize,
) -> qwen_status {
    // SAFETY: pointers are NULL or as the header asks for.
    call(|| unsafe {
        let needed = Out::new("needed", needed)?;
        needed.set(0);
        let session = handle::read::<Session>(session)?;
        let options = save_options(flags)?;
        let size = session.saved_bytes(options)?;
        give_with(size, "data", data.cast::<u8>(), capacity, &needed, |mut buffer| {
            session.save(options, &mut buffer).map_err(Failure::from)
        })
    })
}

/// As qwen_session_restore_file(), from memory.
///
/// data, size: used during the call.
///
/// Returns as qwen_session_restore_file(), without QWEN_ERROR_IO.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_session_restore_memory(
    session: *mut qwen_session,
    data: *const c_void,
    size: usize,
) -> qwen_status {
    // SAFETY: pointers are NULL or as the header asks for.
    call(|| unsafe {
        let mut session = handle::write::<Session>(session)?;
        let bytes = array("data", data.cast::<u8>(), size)?;
        let result = session.restore_from_memory(bytes);
        session.judge(result)?;
        Ok(QWEN_OK)
    })
}
