"""Runs jobs on threads and gives their results in order."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextvars import copy_context
from threading import Condition, Thread
from typing import Generic, TypeVar

from .stopping import Drained, current_stop

T = TypeVar("T")

WAIT_SECONDS = 0.5
"""After a cancel, threads get this long to end before they are left behind."""


def run_all(jobs: Sequence[Callable[[], T]], workers: int) -> list[T]:
    """The results of all jobs, in their order, whatever the number of workers.

    Jobs begin in their order, each in a copy of the caller's context. When one raises, no further
    one begins, those in flight are awaited (what they bought is recorded), and the error of the
    earliest job that failed is raised: it is the same one for any number of workers.

    Asked to stop (see ``stopping``), no further job begins and those in flight are awaited, then
    ``Drained`` is raised unless all jobs are done. ``Cancelled`` does not wait for them.
    """
    if workers == 1 or len(jobs) <= 1:
        return _one_by_one(jobs)
    return _Batch(jobs).run(min(workers, len(jobs)))


def _one_by_one(jobs: Sequence[Callable[[], T]]) -> list[T]:
    stop = current_stop()
    results: list[T] = []
    asked = False
    for job in jobs:
        if stop.requested:
            raise Drained(len(results), len(jobs), int(asked))
        results.append(copy_context().run(job))
        asked = stop.requested
    return results


class _Batch(Generic[T]):
    """Jobs that threads take in order, and what came of them by number."""

    def __init__(self, jobs: Sequence[Callable[[], T]]) -> None:
        self.jobs = jobs
        self.stop = current_stop()
        self.contexts = [copy_context() for _ in jobs]
        self.results: dict[int, T] = {}
        self.errors: dict[int, BaseException] = {}
        self.next = 0
        self.drained_from: int | None = None  # how many were done when the stop was noticed
        self.closed = False
        self.changed = Condition()

    def run(self, workers: int) -> list[T]:
        threads = [
            Thread(target=self._work, name=f"agent-evolve_{number}", daemon=True)
            for number in range(workers)
        ]
        try:
            for thread in threads:
                thread.start()
            with self.changed:
                while self._under_way():
                    self.changed.wait(0.2)
                    self._notice_stop()
        except BaseException:
            self.closed = True
            if self.stop.cancelled:
                self.stop.end_processes()
            _join(threads, WAIT_SECONDS if self.stop.cancelled else None)
            raise
        return self._outcome()

    def _work(self) -> None:
        while (number := self._take()) is not None:
            try:
                result = self.contexts[number].run(self.jobs[number])
            except BaseException as error:  # noqa: BLE001 - raised again by the thread that waits
                with self.changed:
                    self.errors[number] = error
                    self.changed.notify_all()
            else:
                with self.changed:
                    self.results[number] = result
                    if not self._under_way():
                        self.changed.notify_all()

    def _take(self) -> int | None:
        """The number of the next job, ``None`` when no more is to begin."""
        with self.changed:
            self._notice_stop()
            if not self._goes_on():
                return None
            self.next += 1
            return self.next - 1

    def _notice_stop(self) -> None:
        if self.stop.requested and self.drained_from is None:
            self.drained_from = len(self.results)

    def _goes_on(self) -> bool:
        stopped = self.closed or self.errors or self.stop.requested
        return not stopped and self.next < len(self.jobs)

    def _under_way(self) -> bool:
        return self._goes_on() or len(self.results) + len(self.errors) < self.next

    def _outcome(self) -> list[T]:
        if self.errors:
            raise self.errors[min(self.errors)]
        if len(self.results) < len(self.jobs):
            done = len(self.results)
            raise Drained(done, len(self.jobs), done - (self.drained_from or 0))
        return [self.results[number] for number in range(len(self.jobs))]


def _join(threads: Sequence[Thread], seconds: float | None) -> None:
    """Wait for threads to end, for so many seconds in all, or as long as it takes."""
    deadline = None if seconds is None else time.monotonic() + seconds
    for thread in threads:
        if thread.ident is not None:
            thread.join(None if deadline is None else max(0.0, deadline - time.monotonic()))
