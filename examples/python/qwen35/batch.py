"""Several sessions at once."""

import ctypes
from typing import List, Sequence

from . import _abi
from ._library import Error, load
from .results import Step, step
from .session import Session


def batch_step(sessions: Sequence[Session]) -> List[Step]:
    """Advances sessions of one model by one token each, and reads the weights once for all.

    Each gets exactly the token that next() would give it. A session that cannot go on (it is
    full, busy, cancelled, listed twice, has failed) says so in its place and does not disturb
    the others. Sessions of different models are an Error, and nothing is done.
    """
    if not sessions:
        return []
    library, count = load(), len(sessions)
    handles = (ctypes.POINTER(_abi.qwen_session) * count)(*(s.handle for s in sessions))
    tokens, statuses = (ctypes.c_int32 * count)(), (_abi.qwen_status * count)()

    def cancel() -> None:
        for session in sessions:
            session.cancel()

    def forget() -> None:
        for session in sessions:
            session.forget_cancel()

    sessions[0].calls.make(
        lambda: int(library.qwen_batch_step(handles, count, tokens, statuses)), cancel, forget
    )
    steps: List[Step] = []
    for session, token, status in zip(sessions, tokens, statuses):
        error = session.take_error()  # of a callback
        if status < 0:
            name = library.qwen_status_name(status).decode()
            error = Error(status, name, f"session {len(steps)} of the batch: {name}")
        steps.append(step(status, token, error=error))
    return steps
