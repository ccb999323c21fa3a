"""Runs jobs on threads and gives their results in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextvars import copy_context
from typing import TypeVar

T = TypeVar("T")


def run_all(jobs: Sequence[Callable[[], T]], workers: int) -> list[T]:
    """The results of all jobs, in their order, whatever the number of workers.

    When a job raises, or on Ctrl-C, jobs that have not begun are dropped, those in flight are
    awaited (what they bought is recorded), and the exception is raised. A second Ctrl-C does not
    wait.
    """
    if workers == 1 or len(jobs) <= 1:
        return [job() for job in jobs]
    pool = ThreadPoolExecutor(min(workers, len(jobs)), thread_name_prefix="agent-evolve")
    futures: list[Future[T]] = [pool.submit(copy_context().run, job) for job in jobs]
    try:
        wait(futures, return_when=FIRST_EXCEPTION)
        failed = next(
            (f for f in futures if f.done() and not f.cancelled() and f.exception()), None
        )
        if failed is not None:
            pool.shutdown(wait=True, cancel_futures=True)
            failed.result()
        return [future.result() for future in futures]
    except KeyboardInterrupt:
        pool.shutdown(wait=True, cancel_futures=True)
        raise
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
