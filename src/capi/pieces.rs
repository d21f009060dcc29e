//! The pieces of a reply.

use std::ffi::c_char;
use std::ptr::null;

use super::arguments::{Out, Sized32, fill};
use super::conversation::{Talk, qwen_conversation, with_session};
use super::guard::call;
use super::handle;
use super::status::{QWEN_CANCELLED, QWEN_END_OF_TURN, QWEN_LIMIT_REACHED, QWEN_OK, qwen_status};
use crate::conversation::{Finish, Piece, ToolCall};

/// What a piece of a reply is: one of the QWEN_PIECE constants.
pub type qwen_piece_kind = i32;

/// Not set.
pub const QWEN_PIECE_NONE: qwen_piece_kind = 0;
/// Thoughts: `text`.
pub const QWEN_PIECE_THINKING: qwen_piece_kind = 1;
/// Text of the answer: `text`.
pub const QWEN_PIECE_TEXT: qwen_piece_kind = 2;
/// A tool call: `name`, `arguments`, `id`, `is_whole`, `problem`, and as the model wrote it
/// in `text`.
pub const QWEN_PIECE_TOOL_CALL: qwen_piece_kind = 3;
/// The reply has ended: `finish`, and in `text` the stop string if one ended it.
pub const QWEN_PIECE_END: qwen_piece_kind = 4;

/// Why a reply ended: one of the QWEN_FINISH constants.
pub type qwen_finish = i32;

/// It has not.
pub const QWEN_FINISH_NONE: qwen_finish = 0;
/// The model ended its turn.
pub const QWEN_FINISH_END_OF_TURN: qwen_finish = 1;
/// The model ended its turn and has called tools: it waits for their results.
pub const QWEN_FINISH_TOOL_CALLS: qwen_finish = 2;
/// A stop string came.
pub const QWEN_FINISH_STOP: qwen_finish = 3;
/// The reply is as long as max_tokens; qwen_conversation_resume() goes on.
pub const QWEN_FINISH_LENGTH: qwen_finish = 4;
/// The session is as long as its limit.
pub const QWEN_FINISH_CONTEXT_FULL: qwen_finish = 5;
/// It was cancelled; qwen_conversation_resume() goes on.
pub const QWEN_FINISH_CANCELLED: qwen_finish = 6;

/// A piece of a reply. Strings are UTF-8 of whole characters, lent until the next call on
/// the conversation; behind each is a NUL that is not counted. Fields that a kind of piece
/// does not have are NULL or 0.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct qwen_piece {
    /// sizeof(qwen_piece)
    pub struct_size: u32,
    /// What the piece is.
    pub kind: qwen_piece_kind,
    /// Why the reply ended.
    pub finish: qwen_finish,
    /// 1 for a tool call that is whole. One that is not was cut by the end of the reply and
    /// must not be carried out.
    pub is_whole: u32,
    /// The text of the piece.
    pub text: *const c_char,
    /// Its length in bytes.
    pub text_length: usize,
    /// The function that is called.
    pub name: *const c_char,
    /// Its length in bytes.
    pub name_length: usize,
    /// A JSON object. The model writes all values as text; they are typed by the tool's
    /// schema: where it says integer, number, boolean, array, object or null, and the text is
    /// one in JSON, that it is, else a string.
    pub arguments: *const c_char,
    /// Its length in bytes.
    pub arguments_length: usize,
    /// A name for the call, unique in the conversation.
    pub id: *const c_char,
    /// Its length in bytes.
    pub id_length: usize,
    /// What is wrong with the form of the call, or does not fit the tool's schema (an unknown
    /// tool, a parameter that is missing, a value of another type). Empty for a proper call.
    pub problem: *const c_char,
    /// Its length in bytes.
    pub problem_length: usize,
}

// SAFETY: integers and raw pointers; struct_size first.
unsafe impl Sized32 for qwen_piece {
    const NAME: &'static str = "qwen_piece";
    const FIRST_SIZE: usize = 96;
}

pub(super) const EMPTY: qwen_piece = qwen_piece {
    struct_size: 0,
    kind: QWEN_PIECE_NONE,
    finish: QWEN_FINISH_NONE,
    is_whole: 0,
    text: null(),
    text_length: 0,
    name: null(),
    name_length: 0,
    arguments: null(),
    arguments_length: 0,
    id: null(),
    id_length: 0,
    problem: null(),
    problem_length: 0,
};

/// The strings of the last piece.
#[derive(Default)]
pub(super) struct Lent {
    strings: Vec<String>,
}

impl Lent {
    /// Keeps `text` until the next piece.
    fn lend(&mut self, mut text: String) -> (*const c_char, usize) {
        let length = text.len();
        text.push('\0');
        // The bytes stay where they are when the list grows.
        let pointer = text.as_ptr().cast();
        self.strings.push(text);
        (pointer, length)
    }

    /// `piece` for the caller, and the status it goes with.
    pub(super) fn piece(&mut self, piece: Piece) -> (qwen_piece, qwen_status) {
        self.strings.clear();
        let mut out = EMPTY;
        match piece {
            Piece::Thinking(text) => {
                out.kind = QWEN_PIECE_THINKING;
                (out.text, out.text_length) = self.lend(text);
            }
            Piece::Text(text) => {
                out.kind = QWEN_PIECE_TEXT;
                (out.text, out.text_length) = self.lend(text);
            }
            Piece::ToolCall(ToolCall { id, name, arguments, raw, whole, problem }) => {
                out.kind = QWEN_PIECE_TOOL_CALL;
                out.is_whole = whole.into();
                (out.text, out.text_length) = self.lend(raw);
                (out.name, out.name_length) = self.lend(name);
                (out.arguments, out.arguments_length) = self.lend(arguments);
                (out.id, out.id_length) = self.lend(id);
                (out.problem, out.problem_length) = self.lend(problem);
            }
            Piece::End(finish) => {
                out.kind = QWEN_PIECE_END;
                let status = match finish {
                    Finish::EndOfTurn => (QWEN_FINISH_END_OF_TURN, QWEN_END_OF_TURN),
                    Finish::ToolCalls => (QWEN_FINISH_TOOL_CALLS, QWEN_END_OF_TURN),
                    Finish::Stop(stop) => {
                        (out.text, out.text_length) = self.lend(stop);
                        (QWEN_FINISH_STOP, QWEN_END_OF_TURN)
                    }
                    Finish::Length => (QWEN_FINISH_LENGTH, QWEN_LIMIT_REACHED),
                    Finish::ContextFull => (QWEN_FINISH_CONTEXT_FULL, QWEN_LIMIT_REACHED),
                    Finish::Cancelled => (QWEN_FINISH_CANCELLED, QWEN_CANCELLED),
                };
                out.finish = status.0;
                return (out, status.1);
            }
        }
        (out, QWEN_OK)
    }
}

/// Makes the reply's next piece. A loop over a reply:
///     qwen_piece piece = QWEN_PIECE_INIT;
///     while ((status = qwen_conversation_next(conversation, &piece)) == QWEN_OK) { ... }
///     ... piece.finish says why it ended, if status is not negative
///
/// Text is given out as soon as it is sure to be no part of a stop string, a tag or an
/// unfinished character. A call makes as many tokens as that takes. At the end of a reply by
/// max_tokens, a full session or a cancel, bytes of an unfinished character are not given;
/// after qwen_conversation_resume() they are completed.
///
/// piece: filled as far as its struct_size reaches, which must be set; owned by the caller.
///
/// Returns QWEN_OK with thoughts, text or a tool call. With QWEN_PIECE_END, again and again:
/// QWEN_END_OF_TURN (the model's turn has ended, or a stop string came), QWEN_LIMIT_REACHED
/// or QWEN_CANCELLED; the reply is then the last message of the history.
/// QWEN_ERROR_INVALID_STATE if no reply was started, or the session's sequence was changed
/// during it; QWEN_ERROR_NUMERIC, QWEN_ERROR_OUT_OF_MEMORY and QWEN_ERROR_FORKED as
/// qwen_session_next_token(); QWEN_ERROR_INVALID_ARGUMENT. After an error the call can be
/// repeated, and the piece is QWEN_PIECE_NONE.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_conversation_next(
    conversation: *mut qwen_conversation,
    piece: *mut qwen_piece,
) -> qwen_status {
    // SAFETY: pointers are NULL or as the header asks for.
    call(|| unsafe {
        Out::new("piece", piece)?;
        fill("piece", piece, &EMPTY)?;
        let mut talk = handle::write::<Talk>(conversation)?;
        let found = with_session(&mut talk, |conversation, session| conversation.next(session))?;
        let (found, status) = talk.lent.piece(found);
        fill("piece", piece, &found)?;
        Ok(status)
    })
}
