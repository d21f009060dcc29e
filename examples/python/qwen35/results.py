"""What sessions say about themselves."""

import ctypes
from typing import Any, Callable, NamedTuple, Optional

from . import _abi
from ._library import check


class Next(NamedTuple):
    """A token, and whether it ends the turn."""

    token: int
    end_of_turn: bool


class Fed(NamedTuple):
    """The tokens of a conversation, and how many of them the call computed."""

    total: int
    computed: int


class Queued(NamedTuple):
    """The tokens of a conversation, and how many of them are still to be computed."""

    total: int
    remaining: int


class Step(NamedTuple):
    """What a step came to.

    status: "working" (the time is over, there is more to do), "done", "end_of_turn" (of the
        token), "limit_reached" (the context is full); of a batch also "cancelled" and "failed".
    token: the id, if one was chosen.
    remaining: tokens of the sequence that are not computed yet.
    error: what stopped this session of a batch.
    """

    status: str
    token: Optional[int]
    remaining: int = 0
    error: Optional[BaseException] = None


class Mark(NamedTuple):
    """A position that a session can go back to: its name for rewind(), the length of the
    sequence there, and whether the library made it while a conversation was fed."""

    id: int
    position: int
    automatic: bool


class Score(NamedTuple):
    """How likely a text is; see qwen_score in qwen35.h."""

    log_likelihood: float
    perplexity: float
    token_count: int
    best_count: int


class Statistics(NamedTuple):
    """Counts, seconds, bytes and tokens per second; see qwen_statistics in qwen35.h."""

    sessions: int
    input_tokens: int
    output_tokens: int
    reused_tokens: int
    cached_tokens: int
    input_seconds: float
    output_seconds: float
    first_token_seconds: float
    bytes: int
    input_rate: float
    output_rate: float


class FeedInfo(NamedTuple):
    """What the last call that fed something did; see qwen_feed_info in qwen35.h.

    dropped_messages: those left out because the conversation did not fit, after the first
        kept_messages.
    dropped_tokens: those of a plain sequence that were left out, after the first kept_tokens.
    """

    total: int
    computed: int
    cached: int
    dropped_messages: int
    kept_messages: int
    dropped_tokens: int
    kept_tokens: int


class PrefixCache(NamedTuple):
    """What the prefix cache of a model holds and has done; see qwen_prefix_cache_info."""

    bytes: int
    limit: int
    entries: int
    hits: int
    misses: int
    evictions: int


STATUSES = {
    _abi.QWEN_OK: "done",
    _abi.QWEN_END_OF_TURN: "end_of_turn",
    _abi.QWEN_LIMIT_REACHED: "limit_reached",
    _abi.QWEN_CANCELLED: "cancelled",
    _abi.QWEN_WORKING: "working",
}


def step(status: int, token: int, remaining: int = 0, error: Optional[BaseException] = None) -> Step:
    """A step from what the library says."""
    name = STATUSES.get(status, "failed")
    return Step(name, token if token >= 0 else None, remaining, error)


def statistics(call: Callable[[Any], int]) -> Statistics:
    """The statistics that a function of the library fills in."""
    raw = _abi.qwen_statistics(struct_size=ctypes.sizeof(_abi.qwen_statistics))
    check(call(raw))
    return Statistics(
        sessions=raw.sessions,
        input_tokens=raw.input_tokens,
        output_tokens=raw.output_tokens,
        reused_tokens=raw.reused_tokens,
        cached_tokens=raw.cached_tokens,
        input_seconds=raw.input_us / 1e6,
        output_seconds=raw.output_us / 1e6,
        first_token_seconds=raw.first_token_us / 1e6,
        bytes=raw.bytes,
        input_rate=raw.input_rate,
        output_rate=raw.output_rate,
    )
