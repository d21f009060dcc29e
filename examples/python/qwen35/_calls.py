"""Long calls that Ctrl-C can end.

Python runs signal handlers in the main thread, between its own instructions, so none runs while
the main thread is inside the library. There a helper thread makes the call, and the main thread
waits for it in a way that signals interrupt. Other threads make their calls themselves.
"""

import os
import queue
import threading
from typing import Any, Callable, Optional, Tuple

from ._library import last_error


class _Job:
    def __init__(self, call: Callable[[], int]) -> None:
        self.call = call
        self.done = threading.Event()
        self.unwanted = False
        self.status: Optional[int] = None
        self.error: Optional[Exception] = None

    def run(self) -> None:
        """Makes the call, at most once."""
        if self.done.is_set():
            return
        try:
            if not self.unwanted:
                self.status = self.call()
                if self.status < 0:
                    self.error = last_error(self.status)  # the message belongs to this thread
        except Exception as error:
            self.error = error
        finally:
            self.done.set()


def _work(jobs: "queue.SimpleQueue[Optional[_Job]]") -> None:
    while True:
        job = jobs.get()
        if job is None:
            return
        job.run()


class Calls:
    """Makes the long calls of one session."""

    def __init__(self) -> None:
        self._helper: Optional[Tuple[int, "queue.SimpleQueue[Optional[_Job]]"]] = None

    def close(self) -> None:
        """Ends the helper thread."""
        if self._helper is not None:
            self._helper[1].put(None)

    def _jobs(self) -> "queue.SimpleQueue[Optional[_Job]]":
        if self._helper is None or self._helper[0] != os.getpid():  # threads do not survive fork
            jobs: "queue.SimpleQueue[Optional[_Job]]" = queue.SimpleQueue()
            threading.Thread(target=_work, args=(jobs,), daemon=True, name="qwen35").start()
            self._helper = (os.getpid(), jobs)
        return self._helper[1]

    def make(
        self, call: Callable[[], int], cancel: Callable[[], Any], forget: Callable[[], Any]
    ) -> int:
        """The status of call(). When a signal handler raises, cancel() is to end the call,
        forget() to take back a cancel that came too late for that."""
        job = _Job(call)
        if threading.current_thread() is not threading.main_thread():
            job.run()
        else:
            jobs = self._jobs()
            try:
                jobs.put(job)
                job.done.wait()
            except BaseException:
                job.unwanted = True
                cancel()
                jobs.put(job)  # in case it was not there yet; it runs once
                while not job.done.is_set():
                    try:
                        job.done.wait()
                    except BaseException:
                        cancel()
                forget()
                raise
        if job.error is not None:
            raise job.error
        assert job.status is not None
        return job.status
