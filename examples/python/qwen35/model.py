"""Opened checkpoints."""

import ctypes
import os
import weakref
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, List, Mapping, Optional, Sequence, Type, Union

from . import _abi
from ._library import Message, borrowed, check, conversation, ids, load, numbers, sized
from .results import PrefixCache, Statistics, statistics

if TYPE_CHECKING:
    from .sampling import Sampling
    from .session import Session

_ISAS = {
    "auto": _abi.QWEN_ISA_AUTO,
    "scalar": _abi.QWEN_ISA_SCALAR,
    "avx2": _abi.QWEN_ISA_AVX2,
    "avx512": _abi.QWEN_ISA_AVX512,
}

_WEIGHTS = {
    "bf16": _abi.QWEN_WEIGHTS_STORED,
    "int8": _abi.QWEN_WEIGHTS_INT8,
    "int4": _abi.QWEN_WEIGHTS_INT4,
}
_COMPUTE = {
    "auto": _abi.QWEN_COMPUTE_AUTO,
    "exact": _abi.QWEN_COMPUTE_EXACT,
    "fast": _abi.QWEN_COMPUTE_FAST,
}


def _name(known: Mapping[str, int], value: int) -> str:
    """The word for a constant; its number if the library is newer than these words."""
    return next((name for name, number in known.items() if number == value), str(value))


@dataclass(frozen=True)
class ModelInfo:
    """What a model is; see qwen_model_info in qwen35.h."""

    has_weights: bool
    has_chat_template: bool
    token_count: int
    vocab_size: int
    context_limit: int
    hidden_size: int
    layer_count: int
    threads: int
    isa: str
    weight_bytes: int
    weights: str
    compute: str


class Model:
    """The checkpoint in a Hugging Face folder. Many threads may use one at once.

    threads: how many compute; 0 is as many as the process may use.
    isa: "auto", "scalar", "avx2" or "avx512".
    weights: "bf16" (as the checkpoint stores them), "int8" or "int4".
    compute: "exact" (FP32), "fast" (dot products of narrow numbers) or "auto": exact for
        weights as stored, fast for quantized ones.
    prefix_cache_bytes: memory for beginnings that sessions share, see cache_namespace of Session.
    tokenizer_only: open tokenizer and chat template without weights.
    """

    def __init__(
        self,
        path: Union[str, bytes, "os.PathLike[str]"],
        *,
        threads: int = 0,
        isa: str = "auto",
        weights: str = "bf16",
        compute: str = "auto",
        prefix_cache_bytes: int = 0,
        tokenizer_only: bool = False,
    ) -> None:
        choices = (("isa", isa, _ISAS), ("weights", weights, _WEIGHTS), ("compute", compute, _COMPUTE))
        for name, value, known in choices:
            if value not in known:
                raise ValueError(f"{name} {value!r}: must be one of {', '.join(known)}")
        if not 0 <= threads < 2**32:
            raise ValueError(f"threads {threads}: must be 0 or more")
        if not 0 <= prefix_cache_bytes < 2**64:
            raise ValueError(f"prefix_cache_bytes {prefix_cache_bytes}: must be 0 or more")
        self._library = load()
        options = _abi.qwen_model_options(
            struct_size=ctypes.sizeof(_abi.qwen_model_options),
            flags=_abi.QWEN_MODEL_TOKENIZER_ONLY if tokenizer_only else 0,
            threads=threads,
            isa=_ISAS[isa],
            weights=_WEIGHTS[weights],
            compute=_COMPUTE[compute],
            prefix_cache_bytes=prefix_cache_bytes,
        )
        handle = ctypes.POINTER(_abi.qwen_model)()
        place = os.fsencode(path)
        check(self._library.qwen_model_open(place, len(place), options, handle))
        self._handle = handle
        self._free = weakref.finalize(self, self._library.qwen_model_free, handle)

    def close(self) -> None:
        """Frees it. Sessions that are open keep what they need."""
        self._free()

    def __enter__(self) -> "Model":
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
        """The qwen_model, for calls of the C interface; a closed model is a ValueError."""
        if not self._free.alive:
            raise ValueError("the model is closed")
        return self._handle

    @property
    def info(self) -> ModelInfo:
        """What this model is."""
        raw = _abi.qwen_model_info(struct_size=ctypes.sizeof(_abi.qwen_model_info))
        check(self._library.qwen_model_get_info(self.handle, raw))
        return ModelInfo(
            has_weights=bool(raw.has_weights),
            has_chat_template=bool(raw.has_chat_template),
            token_count=raw.token_count,
            vocab_size=raw.vocab_size,
            context_limit=raw.context_limit,
            hidden_size=raw.hidden_size,
            layer_count=raw.layer_count,
            threads=raw.threads,
            isa=_name(_ISAS, raw.isa),
            weight_bytes=raw.weight_bytes,
            weights=_name(_WEIGHTS, raw.weights),
            compute=_name(_COMPUTE, raw.compute),
        )

    @property
    def statistics(self) -> Statistics:
        """What all its sessions, the closed ones too, have done since it was opened."""
        return statistics(lambda to: self._library.qwen_model_get_statistics(self.handle, to))

    @property
    def prefix_cache(self) -> PrefixCache:
        """What the prefix cache holds and has done. An Error without prefix_cache_bytes."""
        raw = _abi.qwen_prefix_cache_info(struct_size=ctypes.sizeof(_abi.qwen_prefix_cache_info))
        check(self._library.qwen_prefix_cache_get_info(self.handle, raw))
        return PrefixCache(
            raw.bytes, raw.limit, raw.entries, raw.hits, raw.misses, raw.evictions
        )

    def clear_prefix_cache(self, cache_namespace: int = 0) -> None:
        """Forgets the beginnings of a namespace, or all. Sessions keep what they have."""
        check(self._library.qwen_prefix_cache_clear(self.handle, cache_namespace))

    @property
    def end_tokens(self) -> List[int]:
        """The ids that end a turn."""
        tokens = ctypes.POINTER(ctypes.c_int32)()
        count = ctypes.c_size_t()
        check(self._library.qwen_model_end_tokens(self.handle, tokens, count))
        return tokens[: count.value]

    def tokenize(self, text: str, *, added_tokens: bool = False) -> List[int]:
        """The ids of a text.

        added_tokens: spellings such as "<|im_end|>" become those tokens. Not for text that
        a user wrote.
        """
        data = text.encode()
        flags = _abi.QWEN_TEXT_ADDED_TOKENS if added_tokens else 0
        call = self._library.qwen_tokenize
        return numbers(
            sized(ctypes.c_int32, lambda *to: call(self.handle, data, len(data), flags, *to))
        )

    def detokenize_bytes(self, tokens: Sequence[int], *, skip_special: bool = False) -> bytes:
        """The exact bytes of tokens, which may begin or end inside a character."""
        array = ids(tokens)
        flags = _abi.QWEN_TEXT_SKIP_SPECIAL if skip_special else 0
        call = self._library.qwen_detokenize
        return bytes(
            sized(ctypes.c_char, lambda *to: call(self.handle, array, len(array), flags, *to))
        )

    def detokenize(self, tokens: Sequence[int], *, skip_special: bool = False) -> str:
        """The text of tokens, with U+FFFD for bytes that are no whole character."""
        return self.detokenize_bytes(tokens, skip_special=skip_special).decode("utf-8", "replace")

    def token_bytes(self, token: int) -> bytes:
        """The bytes of one token."""
        ids([token])
        call = self._library.qwen_token_bytes
        return borrowed(lambda *to: call(self.handle, token, *to))

    def token_kind(self, token: int) -> int:
        """A sum of QWEN_TOKEN_ constants."""
        ids([token])
        kind = ctypes.c_uint32()
        check(self._library.qwen_token_kind(self.handle, token, kind))
        return kind.value

    def find_token(self, spelling: str) -> Optional[int]:
        """The added token that is spelled so, or None."""
        data = spelling.encode()
        token = ctypes.c_int32()
        check(self._library.qwen_token_find(self.handle, data, len(data), token))
        return token.value if token.value >= 0 else None

    def render_chat(
        self,
        messages: Sequence[Message],
        *,
        tools: Optional[Sequence[Mapping[str, Any]]] = None,
        enable_thinking: Optional[bool] = None,
        add_generation_prompt: bool = True,
    ) -> str:
        """A conversation as the checkpoint's template writes it."""
        chat = conversation(messages, tools, enable_thinking, add_generation_prompt)
        call = self._library.qwen_chat_render
        return bytes(sized(ctypes.c_char, lambda *to: call(self.handle, *chat, 0, *to))).decode()

    def tokenize_chat(
        self,
        messages: Sequence[Message],
        *,
        tools: Optional[Sequence[Mapping[str, Any]]] = None,
        enable_thinking: Optional[bool] = None,
        add_generation_prompt: bool = True,
    ) -> List[int]:
        """The ids of a conversation."""
        chat = conversation(messages, tools, enable_thinking, add_generation_prompt)
        call = self._library.qwen_chat_tokenize
        return numbers(sized(ctypes.c_int32, lambda *to: call(self.handle, *chat, 0, *to)))

    def session(
        self,
        *,
        context_limit: int = 0,
        sampling: "Optional[Sampling]" = None,
        cache_namespace: int = 0,
        overflow: str = "refuse",
        overflow_reserve: int = 0,
        mark_limit: int = 0,
        kv: str = "auto",
    ) -> "Session":
        """A new session on this model; see Session."""
        from .session import Session

        return Session(
            self,
            context_limit=context_limit,
            sampling=sampling,
            cache_namespace=cache_namespace,
            overflow=overflow,
            overflow_reserve=overflow_reserve,
            mark_limit=mark_limit,
            kv=kv,
        )
