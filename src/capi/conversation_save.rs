//! Conversations with their sessions as bytes: to a file or to memory, and back.

use std::ffi::{c_char, c_void};

use super::arguments::{Out, array, give_with};
use super::conversation::{Talk, qwen_conversation, with_session};
use super::guard::call;
use super::handle;
use super::save::{path, save_options};
use super::status::{Failure, QWEN_OK, qwen_status};

/// Saves a conversation and its session to a file, at any time, also in the middle of a reply
/// or while messages are being computed in steps: what qwen_session_save_file() saves, the
/// options, the messages, and the reply where it stands. Restored, it goes on with the piece
/// that would have come next. The file is replaced at once, as by qwen_session_save_file().
///
/// file, file_length: the path, used during the call.
/// flags: QWEN_SAVE_WITHOUT_MARKS or 0.
///
/// Returns as qwen_session_save_file().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_conversation_save_file(
    conversation: *const qwen_conversation,
    file: *const c_char,
    file_length: usize,
    flags: u32,
) -> qwen_status {
    // SAFETY: pointers are NULL or as the header asks for.
    call(|| unsafe {
        let talk = handle::read::<Talk>(conversation)?;
        let path = path(file, file_length)?;
        let session = talk.session.read()?;
        talk.conversation.save_to_file(&session, save_options(flags)?, path)?;
        Ok(QWEN_OK)
    })
}

/// Puts a conversation and its session where saved ones were, on this model or on the same
/// one in another process. Options and messages are those that were saved;
/// qwen_conversation_configure() changes the options from the next reply on. Callbacks are not
/// saved: those of this session stay. Else as qwen_session_restore_file().
///
/// file, file_length: the path, used during the call.
///
/// Returns as qwen_session_restore_file(). Without QWEN_OK conversation and session are as
/// before. QWEN_ERROR_FORMAT is also the answer to what qwen_session_save_file() saved.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_conversation_restore_file(
    conversation: *mut qwen_conversation,
    file: *const c_char,
    file_length: usize,
) -> qwen_status {
    // SAFETY: pointers are NULL or as the header asks for.
    call(|| unsafe {
        let mut talk = handle::write::<Talk>(conversation)?;
        let path = path(file, file_length)?;
        with_session(&mut talk, |conversation, session| {
            conversation.restore_from_file(session, path)
        })?;
        Ok(QWEN_OK)
    })
}

/// As qwen_conversation_save_file(), to memory.
///
/// flags: QWEN_SAVE_WITHOUT_MARKS or 0.
/// data, capacity, needed: a buffer of the caller, see Buffers; sizes in bytes. The size
/// grows with the sequence and the messages.
///
/// Returns as qwen_session_save_memory().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_conversation_save_memory(
    conversation: *const qwen_conversation,
    flags: u32,
    data: *mut c_void,
    capacity: usize,
    needed: *mut usize,
) -> qwen_status {
    // SAFETY: pointers are NULL or as the header asks for.
    call(|| unsafe {
        let needed = Out::new("needed", needed)?;
        needed.set(0);
        let talk = handle::read::<Talk>(conversation)?;
        let session = talk.session.read()?;
        let options = save_options(flags)?;
        let size = talk.conversation.saved_bytes(&session, options)?;
        give_with(size, "data", data.cast::<u8>(), capacity, &needed, |mut buffer| {
            talk.conversation.save(&session, options, &mut buffer).map_err(Failure::from)
        })
    })
}

/// As qwen_conversation_restore_file(), from memory.
///
/// data, size: used during the call.
///
/// Returns as qwen_conversation_restore_file(), without QWEN_ERROR_IO.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_conversation_restore_memory(
    conversation: *mut qwen_conversation,
    data: *const c_void,
    size: usize,
) -> qwen_status {
    // SAFETY: pointers are NULL or as the header asks for.
    call(|| unsafe {
        let mut talk = handle::write::<Talk>(conversation)?;
        let bytes = array("data", data.cast::<u8>(), size)?;
        with_session(&mut talk, |conversation, session| {
            conversation.restore_from_memory(session, bytes)
        })?;
        Ok(QWEN_OK)
    })
}
