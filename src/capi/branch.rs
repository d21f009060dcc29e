//! Sessions that branch: forks, and marks to go back to.

use std::ptr::null_mut;

use super::arguments::{Out, flags, give};
use super::guard::call;
use super::handle;
use super::session::qwen_session;
use super::status::{QWEN_OK, qwen_status};
use crate::Session;

/// For qwen_session_rewind(): the random stream goes back too, so that the same calls give
/// the same tokens again.
pub const QWEN_REWIND_RANDOM: u32 = 0x1;

/// A position that a session can go back to.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct qwen_mark {
    /// Its name; no other mark of the session ever has the same.
    pub id: u64,
    /// Where it stands: the length of the sequence when it was made.
    pub position: u64,
    /// 1 if the library made it, while a conversation was fed. Such marks go when there is
    /// no room for a new one.
    pub automatic: u32,
    /// 0.
    pub reserved: u32,
}

/// Makes an independent session that stands where this one does: the same sequence, marks,
/// attachment and options, and its own copy of the random stream. Both then go on as if the
/// other did not exist.
///
/// It takes well under a millisecond and hardly any memory: what is computed is shared.
/// One of the first three tokens that either computes costs it a recurrent state of its own
/// (19 MB at 0.8B), and 64 tokens' keys and values. Callbacks are not copied.
///
/// fork: receives a handle owned by the caller, for qwen_session_free(); NULL on failure.
///
/// Returns QWEN_OK; QWEN_ERROR_OUT_OF_MEMORY; QWEN_ERROR_INVALID_ARGUMENT.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_session_fork(
    session: *const qwen_session,
    fork: *mut *mut qwen_session,
) -> qwen_status {
    // SAFETY: pointers are NULL or as the header asks for.
    call(|| unsafe {
        let out = Out::new("fork", fork)?;
        out.set(null_mut());
        let copy = handle::read::<Session>(session)?.fork()?;
        let cancel = copy.cancel_handle();
        out.set(handle::create(copy, cancel));
        Ok(QWEN_OK)
    })
}

/// Keeps the present position for qwen_session_rewind(). Nothing is computed; the mark costs
/// a recurrent state (19 MB at 0.8B) once the session has moved on.
///
/// A session holds mark_limit marks (see qwen_session_options), the library's own among them,
/// which make room for the caller's.
///
/// mark: receives the name of the mark, never 0.
///
/// Returns QWEN_OK; QWEN_ERROR_INVALID_STATE if the caller's own marks take all the room;
/// QWEN_ERROR_OUT_OF_MEMORY; QWEN_ERROR_INVALID_ARGUMENT.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_session_mark(
    session: *mut qwen_session,
    mark: *mut u64,
) -> qwen_status {
    // SAFETY: pointers are NULL or as the header asks for.
    call(|| unsafe {
        let out = Out::new("mark", mark)?;
        out.set(0);
        let mut session = handle::write::<Session>(session)?;
        let result = session.mark();
        out.set(session.judge(result)?);
        Ok(QWEN_OK)
    })
}

/// Drops a mark.
///
/// Returns QWEN_OK, or QWEN_ERROR_INVALID_ARGUMENT if the session does not hold it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_session_unmark(session: *mut qwen_session, mark: u64) -> qwen_status {
    // SAFETY: the header asks for NULL or a handle.
    call(|| unsafe {
        let mut session = handle::write::<Session>(session)?;
        let result = session.unmark(mark);
        session.judge(result)?;
        Ok(QWEN_OK)
    })
}

/// Lists the marks that the session holds, in order of position: the caller's, and those the
/// library made.
///
/// marks, capacity, needed: a buffer of the caller, see Buffers; sizes in marks.
///
/// Returns QWEN_OK; QWEN_ERROR_BUFFER_TOO_SMALL; QWEN_ERROR_INVALID_ARGUMENT.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_session_marks(
    session: *const qwen_session,
    marks: *mut qwen_mark,
    capacity: usize,
    needed: *mut usize,
) -> qwen_status {
    // SAFETY: pointers are NULL or as the header asks for.
    call(|| unsafe {
        let needed = Out::new("needed", needed)?;
        needed.set(0);
        let session = handle::read::<Session>(session)?;
        let list: Vec<qwen_mark> = session
            .marks()
            .map(|mark| qwen_mark {
                id: mark.id,
                position: mark.position as u64,
                automatic: mark.automatic.into(),
                reserved: 0,
            })
            .collect();
        give(&list, "marks", marks, capacity, &needed)
    })
}

/// Goes back to a mark: sequence and state are what they were there, bit for bit, and nothing
/// is computed. Marks behind it, and those made later at its place, are dropped; it stays. (One
/// made while input waited stands before that was computed: marks among the input go, too.)
/// Sampling options stay as they are.
///
/// flags: QWEN_REWIND_RANDOM, or 0: the random stream goes on, so that another attempt gives
/// other tokens.
///
/// Returns QWEN_OK; QWEN_ERROR_INVALID_ARGUMENT if the session does not hold the mark;
/// QWEN_ERROR_OUT_OF_MEMORY. Without QWEN_OK the session is as before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_session_rewind(
    session: *mut qwen_session,
    mark: u64,
    flags: u32,
) -> qwen_status {
    // SAFETY: the header asks for NULL or a handle.
    call(|| unsafe {
        let mut session = handle::write::<Session>(session)?;
        let random = self::flags(flags, QWEN_REWIND_RANDOM)? != 0;
        let result = session.rewind(mark, random);
        session.judge(result)?;
        Ok(QWEN_OK)
    })
}

/// Cuts the sequence to its first tokens. The recurrent state cannot be cut, so the session
/// goes back to the nearest mark before that position (or what the prefix cache holds, or
/// the start) and computes the rest again.
///
/// position: how many tokens are to stay.
/// computed: receives how many tokens were computed again; NULL if not wanted.
///
/// Returns QWEN_OK; QWEN_ERROR_INVALID_ARGUMENT if the sequence is shorter: the session is
/// then as before; QWEN_CANCELLED, QWEN_ERROR_OUT_OF_MEMORY and QWEN_ERROR_FORKED, which may
/// leave it with fewer tokens than wanted, as qwen_session_position() tells, and usable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_session_truncate(
    session: *mut qwen_session,
    position: usize,
    computed: *mut usize,
) -> qwen_status {
    // SAFETY: pointers are NULL or as the header asks for.
    call(|| unsafe {
        let computed = Out::optional("computed", computed)?;
        computed.iter().for_each(|out| out.set(0));
        let mut session = handle::write::<Session>(session)?;
        let result = session.truncate(position);
        let cost = session.judge(result)?;
        computed.iter().for_each(|out| out.set(cost));
        Ok(QWEN_OK)
    })
}
