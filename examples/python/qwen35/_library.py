"""Finds and opens the shared library, and turns statuses into exceptions."""

import ctypes
import json
import os
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from . import _abi

SONAME = "libqwen35.so.0"


class Error(Exception):
    """A call failed: `status` is the negative number, `name` its name in qwen35.h."""

    def __init__(self, status: int, name: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.name = name


class Cancelled(Exception):
    """cancel() or a progress callback ended the call. The session can be used on."""


_library: Optional[Any] = None


def load(path: Union[None, str, "os.PathLike[str]"] = None) -> Any:
    """Opens the library at `path`; later calls take that one.

    Without a path it is the one beside this file (in a wheel), or else the one that the
    system finds. Done by itself when the first model is opened.
    """
    global _library
    if _library is not None and path is None:
        return _library
    if path is None:
        beside = os.path.join(os.path.dirname(os.path.abspath(__file__)), SONAME)
        path = beside if os.path.exists(beside) else SONAME
    try:
        library = ctypes.CDLL(os.fspath(path))
    except OSError as error:
        raise ImportError(
            f"cannot open {path}: {error}. Install the wheel `qwen35`, run `make install` "
            "(and ldconfig), set LD_LIBRARY_PATH, or call qwen35.load(PATH)"
        ) from None
    found = library.qwen_abi_version()
    if found != _abi.QWEN_ABI_VERSION:
        raise ImportError(f"{path} has ABI {found}, this package needs {_abi.QWEN_ABI_VERSION}")
    for name, (result, parameters) in _abi.FUNCTIONS.items():
        try:
            function = getattr(library, name)
        except AttributeError:
            raise ImportError(
                f"{path} has no {name}: it is version {version_of(library)}, older than this package"
            ) from None
        function.restype = result
        function.argtypes = parameters
    _library = library
    return library


def version_of(library: Any) -> str:
    """What a library says of itself before its functions are declared."""
    library.qwen_version.restype = ctypes.c_char_p
    text: bytes = library.qwen_version()
    return text.decode()


def version() -> str:
    """The version of the library."""
    text: bytes = load().qwen_version()
    return text.decode()


def last_error(status: int) -> Error:
    """The exception for a failure of this thread's last call."""
    library = load()
    name: bytes = library.qwen_status_name(status)
    message: bytes = library.qwen_last_error()
    return Error(status, name.decode(), message.decode("utf-8", "replace"))


def check(status: int) -> int:
    """Raises for an error; gives positive outcomes back."""
    if status < 0:
        raise last_error(status)
    return status


def sized(kind: Any, call: Callable[[Any, int, Any], int]) -> Any:
    """Calls a function of the two-call rule: for the size, then for the contents."""
    needed = ctypes.c_size_t()
    check(call(None, 0, ctypes.byref(needed)))
    array = (kind * needed.value)()
    if needed.value:
        check(call(array, needed.value, ctypes.byref(needed)))
    return array


def borrowed(call: Callable[[Any, Any], int]) -> bytes:
    """Copies the bytes that a function lends."""
    data = ctypes.POINTER(ctypes.c_char)()
    length = ctypes.c_size_t()
    check(call(ctypes.byref(data), ctypes.byref(length)))
    return ctypes.string_at(data, length.value) if length.value else b""


Message = Mapping[str, Any]


def conversation(
    messages: Sequence[Message],
    tools: Optional[Sequence[Mapping[str, Any]]],
    enable_thinking: Optional[bool],
    add_generation_prompt: bool = True,
) -> Tuple[bytes, int]:
    """A conversation as JSON, and its length."""
    request: Dict[str, Any] = {
        "messages": list(messages),
        "add_generation_prompt": add_generation_prompt,
    }
    if tools is not None:
        request["tools"] = list(tools)
    if enable_thinking is not None:
        request["enable_thinking"] = enable_thinking
    data = json.dumps(request, ensure_ascii=False).encode()
    return data, len(data)


def ids(tokens: Sequence[int]) -> "ctypes.Array[ctypes.c_int32]":
    """Token ids as the library takes them; those outside 32 bits are an OverflowError."""
    for token in tokens:
        if not -(2**31) <= token < 2**31:
            raise OverflowError(f"token id {token} does not fit into 32 bits")
    return (ctypes.c_int32 * len(tokens))(*tokens)


def numbers(array: Any) -> List[int]:
    """The numbers of a ctypes array."""
    return list(array)
