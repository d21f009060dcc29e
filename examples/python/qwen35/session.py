"""Sequences being continued."""

import ctypes
import os
import weakref
from array import array
from types import TracebackType
from typing import (
    Any,
    Callable,
    Iterator,
    List,
    Mapping,
    Optional,
    Sequence,
    Tuple,
    Type,
    Union,
)

from . import _abi
from ._calls import Calls
from ._library import Cancelled, Message, borrowed, check, conversation, ids, load, sized
from .model import Model
from .results import Fed, FeedInfo, Mark, Next, Queued, Score, Statistics, Step, statistics, step
from .sampling import Sampling

_OVERFLOWS = {
    "refuse": _abi.QWEN_OVERFLOW_REFUSE,
    "drop_turns": _abi.QWEN_OVERFLOW_DROP_TURNS,
}


_KV = {
    "auto": _abi.QWEN_KV_AUTO,
    "fp32": _abi.QWEN_KV_FP32,
    "fp16": _abi.QWEN_KV_FP16,
    "int8": _abi.QWEN_KV_INT8,
}


class Session:
    """A sequence on a model, used by one thread at a time. A concurrent call is an Error.

    context_limit: the most tokens it may hold; 0 is what the model was made for.
    cache_namespace: not 0: shares beginnings with the sessions that have the same number, through
        the prefix cache of the model.
    overflow: what happens to a conversation that does not fit: "refuse" (an Error) or
        "drop_turns" (its oldest turns are left out; overflow_reserve tokens are kept free).
    mark_limit: most marks held; 0 is 4.
    kv: how keys and values are stored: "fp32", "fp16", "int8" or "auto", which is FP32 for a
        model that computes exactly and FP16 for one that computes fast.
    """

    def __init__(
        self,
        model: Model,
        *,
        context_limit: int = 0,
        sampling: Optional[Sampling] = None,
        cache_namespace: int = 0,
        overflow: str = "refuse",
        overflow_reserve: int = 0,
        mark_limit: int = 0,
        kv: str = "auto",
    ) -> None:
        if overflow not in _OVERFLOWS:
            raise ValueError(f"overflow {overflow!r}: must be one of {', '.join(_OVERFLOWS)}")
        if kv not in _KV:
            raise ValueError(f"kv {kv!r}: must be one of {', '.join(_KV)}")
        for name, value, end in (
            ("context_limit", context_limit, 2**64),
            ("cache_namespace", cache_namespace, 2**64),
            ("overflow_reserve", overflow_reserve, 2**64),
            ("mark_limit", mark_limit, 2**32),
        ):
            if not 0 <= value < end:
                raise ValueError(f"{name} {value}: must be 0 or more")
        options = _abi.qwen_session_options(
            struct_size=ctypes.sizeof(_abi.qwen_session_options),
            context_limit=context_limit,
            cache_namespace=cache_namespace,
            overflow=_OVERFLOWS[overflow],
            overflow_reserve=overflow_reserve,
            mark_limit=mark_limit,
            kv=_KV[kv],
        )
        if sampling is not None:
            options.sampling = ctypes.pointer(sampling.raw())
        handle = ctypes.POINTER(_abi.qwen_session)()
        check(load().qwen_session_new(model.handle, options, handle))
        self._own(model, handle)

    def _own(self, model: Model, handle: Any) -> None:
        """Begins life as the owner of a qwen_session."""
        self._library = load()
        self._model = model
        self._handle = handle
        self._decoder = ctypes.POINTER(_abi.qwen_stream_decoder)()
        status = self._library.qwen_stream_decoder_new(
            model.handle, _abi.QWEN_TEXT_SKIP_SPECIAL, self._decoder
        )
        #: Makes its long calls.
        self.calls = Calls()
        self._free = weakref.finalize(self, _free, self._library, handle, self._decoder, self.calls)
        self._progress: Any = None
        self._logits_callback: Any = None
        self._progress_error: Optional[BaseException] = None
        check(status)

    def close(self) -> None:
        """Frees it. A call of another thread is cancelled."""
        self._free()

    def __enter__(self) -> "Session":
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
        """The qwen_session, for calls of the C interface; a closed one is a ValueError."""
        if not self._free.alive:
            raise ValueError("the session is closed")
        return self._handle

    def _call(self, function: Any, *arguments: Any) -> int:
        handle = self.handle
        return self.make_call(lambda: int(function(handle, *arguments)))

    def make_call(self, call: Callable[[], int]) -> int:
        """Makes a long call of the C interface that works with this session: Ctrl-C ends it,
        errors and a cancel become exceptions. Gives the status."""
        status = self.calls.make(call, self.cancel, self.forget_cancel)
        if status == _abi.QWEN_CANCELLED:
            raise self.take_error() or Cancelled("the call was cancelled")
        return status

    def forget_cancel(self) -> None:
        """Takes back a cancel that no call has answered."""
        if self._free.alive:
            self._library.qwen_session_cancel_clear(self._handle)

    def take_error(self) -> Optional[BaseException]:
        """What a callback raised in the last call, if it did; once."""
        error, self._progress_error = self._progress_error, None
        return error

    def feed(self, tokens: Sequence[int]) -> None:
        """Appends tokens and computes them."""
        data = ids(tokens)
        self._call(self._library.qwen_session_feed, data, len(data))

    def feed_text(self, text: str, *, added_tokens: bool = False) -> None:
        """Appends text, for plain continuation."""
        data = text.encode()
        flags = _abi.QWEN_TEXT_ADDED_TOKENS if added_tokens else 0
        self._call(self._library.qwen_session_feed_text, data, len(data), flags)

    def feed_chat(
        self,
        messages: Sequence[Message],
        *,
        tools: Optional[Sequence[Mapping[str, Any]]] = None,
        enable_thinking: Optional[bool] = None,
    ) -> Fed:
        """Makes the session hold exactly this conversation, ready for the answer.

        Call it once per turn with all messages so far: what the session holds already is
        not computed again.
        """
        total, computed = ctypes.c_size_t(), ctypes.c_size_t()
        chat = conversation(messages, tools, enable_thinking)
        self._call(
            self._library.qwen_session_feed_chat,
            *chat,
            0,
            ctypes.byref(total),
            ctypes.byref(computed),
        )
        return Fed(total.value, computed.value)

    @property
    def feed_info(self) -> FeedInfo:
        """What the last feed_chat() did, messages that were left out among it."""
        raw = _abi.qwen_feed_info(struct_size=ctypes.sizeof(_abi.qwen_feed_info))
        check(self._library.qwen_session_get_feed_info(self.handle, raw))
        return FeedInfo(
            raw.total,
            raw.computed,
            raw.cached,
            raw.dropped_messages,
            raw.kept_messages,
            raw.dropped_tokens,
            raw.kept_tokens,
        )

    def next(self) -> Optional[Next]:
        """Chooses the next token; None when the context is full."""
        token = ctypes.c_int32()
        status = self._call(self._library.qwen_session_next_token, ctypes.byref(token))
        if status == _abi.QWEN_LIMIT_REACHED:
            return None
        return Next(token.value, status == _abi.QWEN_END_OF_TURN)

    def stream(self, max_tokens: Optional[int] = None) -> Iterator[str]:
        """Text of the next tokens in whole characters, made while it is walked.

        It ends at an end of turn, at a full context, or after max_tokens. Leaving it early
        is fine: the session stands behind the last piece that was taken.
        """
        push, finish = (
            self._library.qwen_stream_decoder_push,
            self._library.qwen_stream_decoder_finish,
        )
        left = max_tokens
        borrowed(lambda *to: finish(self._decoder, *to))  # of a walk that was left
        while left is None or left > 0:
            found = self.next()
            if found is None or found.end_of_turn:
                break
            token = found.token
            piece = borrowed(lambda *to: push(self._decoder, token, *to))
            left = None if left is None else left - 1
            if piece:
                yield piece.decode()
        rest = borrowed(lambda *to: finish(self._decoder, *to))
        if rest:
            yield rest.decode()

    def enqueue(self, tokens: Sequence[int]) -> None:
        """Appends tokens for step() to compute; returns at once."""
        data = ids(tokens)
        check(self._library.qwen_session_enqueue(self.handle, data, len(data)))

    def enqueue_text(self, text: str, *, added_tokens: bool = False) -> None:
        """Appends text for step() to compute; returns at once."""
        data = text.encode()
        flags = _abi.QWEN_TEXT_ADDED_TOKENS if added_tokens else 0
        check(self._library.qwen_session_enqueue_text(self.handle, data, len(data), flags))

    def enqueue_chat(
        self,
        messages: Sequence[Message],
        *,
        tools: Optional[Sequence[Mapping[str, Any]]] = None,
        enable_thinking: Optional[bool] = None,
    ) -> Queued:
        """As feed_chat(), but leaves what is not computed yet to step()."""
        total, remaining = ctypes.c_size_t(), ctypes.c_size_t()
        chat = conversation(messages, tools, enable_thinking)
        call = self._library.qwen_session_enqueue_chat
        self._call(call, *chat, 0, ctypes.byref(total), ctypes.byref(remaining))
        return Queued(total.value, remaining.value)

    def step(self, seconds: float, *, input_only: bool = False) -> Step:
        """Goes on for about that long: with what is queued, then with the next token.

        For frame loops: call it once per frame until its status is not "working". 0 is the
        smallest advance. input_only: compute what is queued, generate nothing.
        """
        if not seconds >= 0:
            raise ValueError(f"seconds {seconds}: must be 0 or more")
        token, remaining = ctypes.c_int32(-1), ctypes.c_size_t()
        budget = int(min(seconds * 1e6, 2.0**63))
        flags = _abi.QWEN_STEP_INPUT if input_only else 0
        call = self._library.qwen_session_step
        status = self._call(call, budget, flags, ctypes.byref(token), ctypes.byref(remaining))
        return step(status, token.value, remaining.value)

    def fork(self) -> "Session":
        """An independent session that stands where this one does; what is computed is shared.

        It has its own copy of the random stream. Callbacks are not copied. The model must be
        open.
        """
        assert self._model.handle  # a closed one is a ValueError before anything is made
        handle = ctypes.POINTER(_abi.qwen_session)()
        check(self._library.qwen_session_fork(self.handle, handle))
        fork = Session.__new__(Session)
        fork._own(self._model, handle)
        return fork

    def mark(self) -> int:
        """Keeps the present position for rewind(); nothing is computed. Gives its name."""
        mark = ctypes.c_uint64()
        check(self._library.qwen_session_mark(self.handle, mark))
        return mark.value

    def unmark(self, mark: int) -> None:
        """Drops a mark."""
        check(self._library.qwen_session_unmark(self.handle, mark))

    @property
    def marks(self) -> List[Mark]:
        """The marks it holds, in order of position, those the library made among them."""
        call = self._library.qwen_session_marks
        marks = sized(_abi.qwen_mark, lambda *to: call(self.handle, *to))
        return [Mark(mark.id, mark.position, bool(mark.automatic)) for mark in marks]

    def rewind(self, mark: int, *, random: bool = False) -> None:
        """Goes back to a mark, bit for bit; nothing is computed.

        random: the random stream goes back too, so that the same calls give the same tokens.
        """
        flags = _abi.QWEN_REWIND_RANDOM if random else 0
        check(self._library.qwen_session_rewind(self.handle, mark, flags))

    def truncate(self, position: int) -> int:
        """Cuts the sequence to its first tokens; says how many were computed again for that."""
        computed = ctypes.c_size_t()
        self._call(self._library.qwen_session_truncate, position, ctypes.byref(computed))
        return computed.value

    def save(self, path: "Union[str, bytes, os.PathLike[str]]", *, marks: bool = True) -> None:
        """Saves it to a file, which is replaced at once. Restored, it goes on bit for bit.

        marks: with the marks, so that the next turn of a conversation computes only what is new.
        """
        place, flags = os.fsencode(path), 0 if marks else _abi.QWEN_SAVE_WITHOUT_MARKS
        self._call(self._library.qwen_session_save_file, place, len(place), flags)

    def restore(self, path: "Union[str, bytes, os.PathLike[str]]") -> None:
        """Puts it where a saved session of the same model was."""
        place = os.fsencode(path)
        self._call(self._library.qwen_session_restore_file, place, len(place))

    def save_to_bytes(self, *, marks: bool = True) -> bytes:
        """As save(), to memory."""
        flags = 0 if marks else _abi.QWEN_SAVE_WITHOUT_MARKS
        call = self._library.qwen_session_save_memory
        return bytes(sized(ctypes.c_char, lambda *to: call(self.handle, flags, *to)))

    def restore_from_bytes(self, data: bytes) -> None:
        """As restore(), from memory."""
        self._call(self._library.qwen_session_restore_memory, data, len(data))

    @property
    def attachment(self) -> bytes:
        """Bytes of yours that are saved, restored and forked with it."""
        data, size = ctypes.c_void_p(), ctypes.c_size_t()
        check(self._library.qwen_session_attachment(self.handle, data, size))
        return ctypes.string_at(data, size.value) if size.value else b""

    @attachment.setter
    def attachment(self, data: bytes) -> None:
        check(self._library.qwen_session_set_attachment(self.handle, data, len(data)))

    @property
    def statistics(self) -> Statistics:
        """What it has done since it was made."""
        return statistics(lambda to: self._library.qwen_session_get_statistics(self.handle, to))

    def logits(self) -> "array[float]":
        """A copy of the logits of the token after the sequence, as the network gives them."""
        data, count = ctypes.POINTER(ctypes.c_float)(), ctypes.c_size_t()
        self._call(self._library.qwen_session_logits, ctypes.byref(data), ctypes.byref(count))
        copy = array("f")
        copy.frombytes(ctypes.string_at(data, 4 * count.value))
        return copy

    def score(self, text: str, *, keep: bool = False) -> "Score":
        """How likely a text is after the sequence, which must not be empty.

        The session stays as it is, unless `keep` says that the text becomes part of it.
        """
        raw = _abi.qwen_score(struct_size=ctypes.sizeof(_abi.qwen_score))
        data = text.encode()
        flags = _abi.QWEN_SCORE_KEEP if keep else 0
        call = self._library.qwen_session_score_text
        self._call(call, data, len(data), flags, ctypes.byref(raw))
        return Score(raw.log_likelihood, raw.perplexity, raw.token_count, raw.best_count)

    def top_logprobs(self, count: int) -> List[Tuple[int, float]]:
        """The most likely next tokens and the logarithms of their probabilities."""
        top = (_abi.qwen_token_logprob * count)()
        self._call(self._library.qwen_session_top_logprobs, top, count)
        return [(entry.token, entry.logprob) for entry in top if entry.token >= 0]

    def embed(self, text: str, *, last: bool = False, normalize: bool = True) -> "array[float]":
        """An embedding of a text: the mean of the hidden states, or the last one."""
        data = text.encode()
        pooling = _abi.QWEN_POOLING_LAST if last else _abi.QWEN_POOLING_MEAN
        flags = _abi.QWEN_EMBED_NORMALIZE if normalize else 0
        needed = ctypes.c_size_t()
        call = self._library.qwen_session_embed_text
        place = (data, len(data), pooling, flags)
        self._call(call, *place, None, 0, ctypes.byref(needed))
        numbers = (ctypes.c_float * needed.value)()
        self._call(call, *place, numbers, needed.value, ctypes.byref(needed))
        return array("f", numbers)

    def set_logits_callback(
        self, callback: "Optional[Callable[[memoryview, List[int]], object]]"
    ) -> None:
        """Has callback(logits, tokens) called before each token is chosen.

        `logits` are floats to be changed in place (-math.inf bans a token; they are lent for
        the call), `tokens` the sequence. What it raises ends the call, which then raises it;
        returning False cancels. It must not use this session. None ends it.
        """

        def forward(logits: Any, count: int, tokens: Any, length: int, user: Any) -> int:
            try:
                place = ctypes.cast(logits, ctypes.POINTER(ctypes.c_float * count)).contents
                view: Any = memoryview(place).cast("B").cast("f")
                answer = callback(view, tokens[:length]) if callback is not None else None
                return int(answer is False)
            except BaseException as error:
                self._progress_error = error
                return 1

        kind = _abi.qwen_logits_callback
        raw = kind() if callback is None else kind(forward)
        check(self._library.qwen_session_set_logits_callback(self.handle, raw, None))
        self._logits_callback = raw  # must live as long as the library may call it

    @property
    def tokens(self) -> List[int]:
        """The sequence: all ids, fed and generated."""
        data, count = ctypes.POINTER(ctypes.c_int32)(), ctypes.c_size_t()
        check(self._library.qwen_session_tokens(self.handle, data, count))
        return data[: count.value]

    @property
    def position(self) -> int:
        """The length of the sequence."""
        position = ctypes.c_size_t()
        check(self._library.qwen_session_position(self.handle, position))
        return position.value

    @property
    def context_limit(self) -> int:
        """The most tokens the sequence may hold."""
        limit = ctypes.c_size_t()
        check(self._library.qwen_session_context_limit(self.handle, limit))
        return limit.value

    def set_sampling(self, sampling: Optional[Sampling]) -> None:
        """Chooses tokens so from now on; None is the default."""
        raw = None if sampling is None else ctypes.byref(sampling.raw())
        check(self._library.qwen_session_set_sampling(self.handle, raw))

    def set_progress(self, callback: Optional[Callable[[int, int], object]]) -> None:
        """Has callback(done, total) called during long calls, on the thread that computes.

        What it raises cancels the call, which then raises it; so does returning False (the
        call raises Cancelled). It must not use this session. None ends it.
        """

        def forward(done: int, total: int, user: Any) -> int:
            try:
                return int(callback is not None and callback(done, total) is False)
            except BaseException as error:
                self._progress_error = error
                return 1

        raw = _abi.qwen_progress_callback() if callback is None else _abi.qwen_progress_callback(forward)
        check(self._library.qwen_session_set_progress(self.handle, raw, None))
        self._progress = raw  # must live as long as the library may call it

    def reset(self) -> None:
        """Empties the sequence."""
        check(self._library.qwen_session_reset(self.handle))

    def cancel(self) -> None:
        """Cancels the call in progress, or the next one. Any thread, any time."""
        if self._free.alive:
            self._library.qwen_session_cancel(self._handle)


def _free(library: Any, session: Any, decoder: Any, calls: Calls) -> None:
    calls.close()
    library.qwen_session_free(session)
    library.qwen_stream_decoder_free(decoder)
