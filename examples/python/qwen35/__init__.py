"""Qwen3.5 language models on x86-64 CPUs.

    import qwen35

    with qwen35.Model("path/to/Qwen3.5-0.8B") as model, model.session() as session:
        session.feed_chat([{"role": "user", "content": "Hello!"}])
        for piece in session.stream(max_tokens=100):
            print(piece, end="", flush=True)

Calls release the GIL. One model can be used by many threads; a session by one at a time.
Ctrl-C during a call cancels it and raises KeyboardInterrupt; the session can be used on.
"""

from ._library import Cancelled, Error, load, version
from .batch import batch_step
from .conversation import Conversation, Piece, ReplyStep
from .model import Model, ModelInfo
from .results import Fed, FeedInfo, Mark, Next, PrefixCache, Queued, Score, Statistics, Step
from .sampling import Sampling
from .session import Session

__all__ = [
    "Cancelled",
    "Conversation",
    "Error",
    "Fed",
    "FeedInfo",
    "Mark",
    "Model",
    "ModelInfo",
    "Next",
    "Piece",
    "PrefixCache",
    "Queued",
    "ReplyStep",
    "Sampling",
    "Score",
    "Session",
    "Statistics",
    "Step",
    "batch_step",
    "load",
    "version",
]
__version__ = "0.1.0"
