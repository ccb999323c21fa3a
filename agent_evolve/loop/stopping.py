"""Ctrl-C: once finishes what is in flight and stops, twice cancels it.

with stopping():
    loop.run(cycles)
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType
from typing import Literal

from ..execution.leftovers import descendants

SIGNALS = (signal.SIGINT, signal.SIGTERM)
CANCEL_SECONDS = 3.0
"""What is cancelled gets this long to end before it is left behind."""

Reason = Literal["drained", "cancelled"]


class Stopped(KeyboardInterrupt):
    """A person stopped the run. ``reason`` is what the journal's ``run_stopped`` says."""

    reason: Reason = "cancelled"


class Cancelled(Stopped):
    """Stopped at once: what was in flight is lost and is done again by the next run."""

    def __str__(self) -> str:
        return "cancelled: what was in flight is lost, what was finished before is kept"


class Drained(Stopped):
    """Stopped after what was in flight had finished and was recorded.

    ``done`` and ``total`` count the tasks of the part of the run that was stopped, ``finished``
    those that were in flight when it was asked to stop.
    """

    reason: Reason = "drained"

    def __init__(self, done: int = 0, total: int = 0, finished: int = 0) -> None:
        self.done, self.total, self.finished = done, total, finished
        super().__init__()

    def __str__(self) -> str:
        if not self.total:
            return "stopped between two parts of the run: nothing was in flight"
        return (
            f"stopped: {self.finished} in flight finished, {self.done} of {self.total} tasks "
            "of this part are done and kept"
        )


class Stop:
    """Whether a person asked the run to stop (``requested``), and to stop at once (``cancelled``).

    The first ``ask`` requests, each later one cancels.
    """

    def __init__(self, tell: Callable[[str], None] | None = None) -> None:
        self.requested = False
        self.cancelled = False
        self._tell = tell or _to_stderr
        self.before: frozenset[int] = frozenset()
        """Processes that ran below this one when the run began."""

    def ask(self) -> None:
        """Request a stop. Raises ``Cancelled`` when one is requested already."""
        if not self.requested:
            self.requested = True
            self._tell("finishing what is in flight; Ctrl-C again cancels it")
            return
        self.cancelled = True
        raise Cancelled

    def check(self) -> None:
        """Raise ``Drained`` or ``Cancelled`` when a stop was asked for. To be called where nothing
        is in flight."""
        self.check_cancelled()
        if self.requested:
            raise Drained

    def check_cancelled(self) -> None:
        """Raise ``Cancelled`` when what is in flight must not be recorded any more."""
        if self.cancelled:
            raise Cancelled

    def end_processes(self) -> None:
        """Kill every process that was started below this one since the run began, until none is
        left or ``CANCEL_SECONDS`` have passed. Where there is no ``/proc``, each program's own
        time limit ends it."""
        deadline = time.monotonic() + CANCEL_SECONDS
        while left := set(descendants(os.getpid())) - self.before:
            for pid in left:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            if time.monotonic() > deadline:
                return
            time.sleep(0.02)  # the thread that started it collects it


_current: ContextVar[Stop | None] = ContextVar("agent_evolve_stop", default=None)


def current_stop() -> Stop:
    """The stop of the run that the calling code belongs to; outside of any, one never asked."""
    return _current.get() or _NEVER


@contextmanager
def stopping(tell: Callable[[str], None] | None = None) -> Iterator[Stop]:
    """Makes SIGINT and SIGTERM ask the run inside to stop.

    Only the main thread can take signals; in another one the yielded ``Stop`` is asked by nobody
    but its holder. What handled the signals before does so again afterwards.

    Args:
        tell: receives one sentence when the first signal comes, inside a signal handler; the
            default writes it to stderr.

    Raises ``Drained`` or ``Cancelled``, both kinds of ``KeyboardInterrupt``, from inside.
    """
    stop = Stop(tell)
    stop.before = frozenset(descendants(os.getpid()))
    token = _current.set(stop)
    before = _handle(stop)
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        _current.reset(token)
        if stop.cancelled:
            stop.end_processes()


def _handle(stop: Stop) -> dict[signal.Signals, signal._HANDLER]:
    if threading.current_thread() is not threading.main_thread():
        return {}

    def handler(number: int, frame: FrameType | None) -> None:
        stop.ask()

    # A handler that Python did not set (None) could not be put back: it is left in place.
    numbers = [number for number in SIGNALS if signal.getsignal(number) is not None]
    return {number: signal.signal(number, handler) for number in numbers}


def _to_stderr(text: str) -> None:
    """A handler may interrupt a write to ``sys.stderr``, so the file is written past it."""
    with contextlib.suppress(OSError):
        os.write(2, f"\n{text}\n".encode())


_NEVER = Stop()
