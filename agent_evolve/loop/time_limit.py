"""A time limit on code that can't be stopped: its thread is left behind."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextvars import Context, copy_context
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any, TypeVar

from ..errors import ConfigurationError, InfrastructureError

T = TypeVar("T")

MAX_ABANDONED = 16
"""So many threads that were left behind and still run stop the run."""

logger = logging.getLogger(__name__)


def within(seconds: float, what: str, call: Callable[[], T]) -> T:
    """What ``call`` returns or raises, run in another thread with a copy of the context.

    Raises ``InfrastructureError`` when it has not ended after ``seconds``. Its thread goes on,
    since Python can stop none; it keeps no process from exiting. ``ConfigurationError`` when more
    than ``MAX_ABANDONED`` such threads still run: they would take the time of the tasks to come.
    """
    helper = _idle_or_new()
    job = _Job(copy_context(), call)
    helper.jobs.put(job)
    try:
        ended = job.wait(seconds)
    except BaseException:
        helper.jobs.put(None)
        raise
    if not ended:
        _abandon(helper, seconds, what)
    _idle.append(helper)
    if job.error is not None:
        raise job.error
    result: T = job.result
    return result


def abandoned() -> int:
    """How many threads were left behind and still run."""
    with _lock:
        _abandoned[:] = [helper for helper in _abandoned if helper.busy]
        return len(_abandoned)


class _Job:
    def __init__(self, context: Context, call: Callable[[], Any]) -> None:
        self.context, self.call = context, call
        self.result: Any = None
        self.error: BaseException | None = None
        self._done = Lock()
        self._done.acquire()

    def run(self) -> None:
        try:
            self.result = self.context.run(self.call)
        except BaseException as error:  # noqa: BLE001 - raised again by the thread that waits
            self.error = error
        finally:
            self._done.release()

    def wait(self, seconds: float) -> bool:
        return self._done.acquire(timeout=min(seconds, 1e6))


class _Helper:
    """A thread that runs one job after the other."""

    def __init__(self) -> None:
        self.jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self.busy = False
        Thread(target=self._run, name="agent-evolve-task", daemon=True).start()

    def _run(self) -> None:
        while (job := self.jobs.get()) is not None:
            self.busy = True
            job.run()
            self.busy = False


def _idle_or_new() -> _Helper:
    try:
        return _idle.pop()
    except IndexError:
        return _Helper()


def _abandon(helper: _Helper, seconds: float, what: str) -> None:
    helper.jobs.put(None)  # it ends after this call, should that ever end
    with _lock:
        _abandoned.append(helper)
    left = abandoned()
    said = f"{what} did not end within {seconds:g} seconds and can't be stopped"
    if left > MAX_ABANDONED:
        raise ConfigurationError(
            f"{said}; {left} such threads still run",
            fix="give the agent's own calls a time limit, or raise task_timeout under 'config:'",
        )
    logger.warning("%s; its thread is left behind (%d now)", said, left)
    raise InfrastructureError(said, fix="raise task_timeout under 'config:' in manifest.yaml")


_lock = Lock()
_abandoned: list[_Helper] = []
_idle: list[_Helper] = []
