"""Conversations over a session: replies in pieces, thoughts and tool calls apart."""

import ctypes
import json
import os
import weakref
from dataclasses import dataclass
from types import TracebackType
from typing import (
    Any,
    Dict,
    Iterator,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Tuple,
    Type,
    Union,
)

from . import _abi
from ._library import Cancelled, Message, check, load, sized
from .results import Fed, Queued
from .session import Session

_KINDS = {
    _abi.QWEN_PIECE_THINKING: "thinking",
    _abi.QWEN_PIECE_TEXT: "text",
    _abi.QWEN_PIECE_TOOL_CALL: "tool_call",
}
_FINISHES = {
    _abi.QWEN_FINISH_END_OF_TURN: "end_of_turn",
    _abi.QWEN_FINISH_TOOL_CALLS: "tool_calls",
    _abi.QWEN_FINISH_STOP: "stop",
    _abi.QWEN_FINISH_LENGTH: "length",
    _abi.QWEN_FINISH_CONTEXT_FULL: "context_full",
    _abi.QWEN_FINISH_CANCELLED: "cancelled",
}


def _text(raw: Any, name: str) -> str:
    """A string of a struct, by its length: U+0000 may be inside."""
    length = getattr(raw, name + "_length")
    if not length:
        return ""
    place = getattr(_abi.qwen_piece, name).offset
    return ctypes.string_at(ctypes.c_void_p.from_buffer(raw, place).value or 0, length).decode()


@dataclass(frozen=True)
class Piece:
    """A piece of a reply: `kind` is "thinking", "text" or "tool_call".

    A tool call has `name`, `arguments` (typed by the tool's schema), `id`, and `problem`,
    which is empty for a proper call. One that is not whole must not be carried out.
    """

    kind: str
    text: str = ""
    name: str = ""
    arguments: Optional[Dict[str, Any]] = None
    id: str = ""
    problem: str = ""
    is_whole: bool = False


def _piece(raw: Any) -> Piece:
    arguments = _text(raw, "arguments")
    return Piece(
        kind=_KINDS[raw.kind],
        text=_text(raw, "text"),
        name=_text(raw, "name"),
        arguments=json.loads(arguments) if arguments else None,
        id=_text(raw, "id"),
        problem=_text(raw, "problem"),
        is_whole=bool(raw.is_whole),
    )


def _options(
    system: Optional[str],
    tools: Optional[Sequence[Mapping[str, Any]]],
    thinking: Optional[bool],
    thinking_budget: int,
    max_tokens: int,
    stop: Sequence[str],
) -> Tuple[Any, Any]:
    """Options as C has them, and what must live as long as they are used."""
    options = _abi.qwen_conversation_options(
        struct_size=ctypes.sizeof(_abi.qwen_conversation_options),
        thinking={
            None: _abi.QWEN_THINKING_DEFAULT,
            True: _abi.QWEN_THINKING_ON,
            False: _abi.QWEN_THINKING_OFF,
        }[thinking],
        thinking_budget=thinking_budget,
        max_tokens=max_tokens,
    )
    if system:
        data = system.encode()
        options.system, options.system_length = data, len(data)
    if tools is not None:
        data = json.dumps(list(tools)).encode()
        options.tools, options.tools_length = data, len(data)
    texts = [ctypes.create_string_buffer(text.encode()) for text in stop]
    char_pointer = ctypes.POINTER(ctypes.c_char)
    pointers = (char_pointer * len(texts))(*(ctypes.cast(t, char_pointer) for t in texts))
    lengths = (ctypes.c_size_t * len(texts))(*(len(t) - 1 for t in texts))
    if texts:
        options.stop = pointers
        options.stop_lengths = lengths
        options.stop_count = len(texts)
    return options, (texts, pointers, lengths)


class ReplyStep(NamedTuple):
    """What a step of a reply came to.

    status: "working" (the time is over and there is no piece yet), "piece" or "ended".
    remaining: tokens that are not computed yet.
    """

    status: str
    piece: Optional[Piece]
    remaining: int


class Conversation:
    """Messages, and the session that computes the replies.

    thinking: whether the model thinks first; None is as the template has it.
    thinking_budget, max_tokens: of a reply; 0 is no limit.
    stop: texts at which an answer ends.
    """

    def __init__(
        self,
        session: Session,
        *,
        system: Optional[str] = None,
        tools: Optional[Sequence[Mapping[str, Any]]] = None,
        thinking: Optional[bool] = None,
        thinking_budget: int = 0,
        max_tokens: int = 0,
        stop: Sequence[str] = (),
    ) -> None:
        self._library = load()
        self._session = session
        options, lent = _options(system, tools, thinking, thinking_budget, max_tokens, stop)
        handle = ctypes.POINTER(_abi.qwen_conversation)()
        check(self._library.qwen_conversation_new(session.handle, options, handle))
        del lent
        self._handle = handle
        self._free = weakref.finalize(self, self._library.qwen_conversation_free, handle)
        #: Why the last reply ended: "end_of_turn", "tool_calls", "stop", "length",
        #: "context_full", "cancelled"; None before.
        self.finish: Optional[str] = None

    def close(self) -> None:
        """Frees it; the session stays."""
        self._free()

    def __enter__(self) -> "Conversation":
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        value: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.close()

    @property
    def handle(self) -> Any:
        """The qwen_conversation, for calls of the C interface."""
        if not self._free.alive:
            raise ValueError("the conversation is closed")
        return self._handle

    def _call(self, function: Any, *arguments: Any) -> int:
        handle = self.handle
        return self._session.make_call(lambda: int(function(handle, *arguments)))

    def _fed(self, function: Any, *arguments: Any) -> Fed:
        total, computed = ctypes.c_size_t(), ctypes.c_size_t()
        self._call(function, *arguments, ctypes.byref(total), ctypes.byref(computed))
        return Fed(total.value, computed.value)

    def configure(
        self,
        *,
        system: Optional[str] = None,
        tools: Optional[Sequence[Mapping[str, Any]]] = None,
        thinking: Optional[bool] = None,
        thinking_budget: int = 0,
        max_tokens: int = 0,
        stop: Sequence[str] = (),
    ) -> None:
        """Goes on by other options from the next reply on; the system message stays if none is
        given."""
        options, lent = _options(system, tools, thinking, thinking_budget, max_tokens, stop)
        check(self._library.qwen_conversation_configure(self.handle, options))
        del lent

    def add(self, *messages: Message) -> None:
        """Adds messages without having them answered yet."""
        data = json.dumps(list(messages)).encode()
        check(self._library.qwen_conversation_add(self.handle, data, len(data)))

    def add_tool_result(self, id: str, result: str) -> None:
        """Adds the result of a tool call; send() without a message has it answered."""
        name, data = id.encode(), result.encode()
        add = self._library.qwen_conversation_add_tool_result
        check(add(self.handle, name, len(name), data, len(data)))

    def send(self, text: Optional[str] = None) -> Fed:
        """Adds a user's message, if one is given, and starts the reply to all so far."""
        if text is None:
            return self._fed(self._library.qwen_conversation_send, None, 0)
        data = text.encode()
        return self._fed(self._library.qwen_conversation_send_text, data, len(data))

    def enqueue(self, text: Optional[str] = None) -> Queued:
        """As send(), but computes nothing: step() does that."""
        total, remaining = ctypes.c_size_t(), ctypes.c_size_t()
        counts = (ctypes.byref(total), ctypes.byref(remaining))
        if text is None:
            check(self._library.qwen_conversation_enqueue(self.handle, None, 0, *counts))
        else:
            data = text.encode()
            call = self._library.qwen_conversation_enqueue_text
            check(call(self.handle, data, len(data), *counts))
        return Queued(total.value, remaining.value)

    def step(self, seconds: float) -> ReplyStep:
        """Goes on with the reply for about that long. For frame loops: call it once per frame
        until the status is "ended"; `finish` then says why. A reply is made either by reply()
        or by steps."""
        if not seconds >= 0:
            raise ValueError(f"a budget of {seconds} seconds")
        raw = _abi.qwen_piece(struct_size=ctypes.sizeof(_abi.qwen_piece))
        remaining = ctypes.c_size_t()
        arguments = (round(seconds * 1e6), ctypes.byref(raw), ctypes.byref(remaining))
        try:
            status = self._call(self._library.qwen_conversation_step, *arguments)
        except Cancelled:
            self.finish = "cancelled"
            raise
        if status == _abi.QWEN_WORKING:
            return ReplyStep("working", None, remaining.value)
        if raw.kind not in _KINDS:
            self.finish = _FINISHES.get(raw.finish)
            return ReplyStep("ended", None, remaining.value)
        return ReplyStep("piece", _piece(raw), remaining.value)

    def regenerate(self) -> Fed:
        """Drops the last reply and starts another one."""
        return self._fed(self._library.qwen_conversation_regenerate)

    def settle(self) -> Fed:
        """Computes now, while the user reads and types, what the next message would wait for:
        the last reply as the template writes it into history."""
        return self._fed(self._library.qwen_conversation_settle)

    def resume(self) -> None:
        """Goes on with a reply that ended by its length or was cancelled."""
        check(self._library.qwen_conversation_resume(self.handle))

    def undo(self) -> int:
        """Takes the last turn back; says how many messages that were."""
        removed = ctypes.c_size_t()
        check(self._library.qwen_conversation_undo(self.handle, removed))
        return removed.value

    def reply(self) -> Iterator[Piece]:
        """The pieces of the reply that was started, made while they are walked.

        Afterwards `finish` says why it ended.
        """
        raw = _abi.qwen_piece(struct_size=ctypes.sizeof(_abi.qwen_piece))
        self.finish = None
        while True:
            try:
                self._call(self._library.qwen_conversation_next, ctypes.byref(raw))
            except Cancelled:
                self.finish = "cancelled"
                raise
            if raw.kind not in _KINDS:
                self.finish = _FINISHES.get(raw.finish)
                return
            yield _piece(raw)

    def ask(self, text: str) -> Iterator[str]:
        """Sends a user's message and gives the text of the answer in pieces."""
        self.send(text)
        return (piece.text for piece in self.reply() if piece.kind == "text")

    @property
    def history(self) -> List[Dict[str, Any]]:
        """The messages so far."""
        call = self._library.qwen_conversation_history
        data = sized(ctypes.c_char, lambda *to: call(self.handle, *to))
        messages: List[Dict[str, Any]] = json.loads(bytes(data))
        return messages

    @history.setter
    def history(self, messages: Sequence[Message]) -> None:
        data = json.dumps(list(messages)).encode()
        check(self._library.qwen_conversation_set_history(self.handle, data, len(data)))

    def save(self, path: "Union[str, bytes, os.PathLike[str]]", *, marks: bool = True) -> None:
        """Saves it with its session to a file, which is replaced at once, a reply in progress
        included. Restored, it goes on bit for bit.

        marks: with the marks, so that the next turn computes only what is new.
        """
        place, flags = os.fsencode(path), 0 if marks else _abi.QWEN_SAVE_WITHOUT_MARKS
        self._call(self._library.qwen_conversation_save_file, place, len(place), flags)

    def restore(self, path: "Union[str, bytes, os.PathLike[str]]") -> None:
        """Puts it and its session where a saved conversation of the same model was."""
        place = os.fsencode(path)
        self._call(self._library.qwen_conversation_restore_file, place, len(place))

    def save_to_bytes(self, *, marks: bool = True) -> bytes:
        """As save(), to memory."""
        flags = 0 if marks else _abi.QWEN_SAVE_WITHOUT_MARKS
        call = self._library.qwen_conversation_save_memory
        return bytes(sized(ctypes.c_char, lambda *to: call(self.handle, flags, *to)))

    def restore_from_bytes(self, data: bytes) -> None:
        """As restore(), from memory."""
        self._call(self._library.qwen_conversation_restore_memory, data, len(data))

    def cancel(self) -> None:
        """Cancels the call in progress, or the next one. Any thread, any time."""
        if self._free.alive:
            self._library.qwen_conversation_cancel(self._handle)
