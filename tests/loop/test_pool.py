"""Jobs on threads: results and errors don't depend on how many threads there are."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from contextvars import ContextVar
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_evolve import Evolver
from agent_evolve.errors import ConfigurationError, InfrastructureError
from agent_evolve.loop import time_limit
from agent_evolve.loop.pool import run_all
from agent_evolve.loop.stopping import Cancelled, Drained, current_stop, stopping
from agent_evolve.loop.time_limit import abandoned, within

from .support import make_workspace, tags

WORKERS = (1, 2, 7, 64)
place_of: ContextVar[str] = ContextVar("place_of", default="nowhere")


def outcome(jobs, workers):
    try:
        return run_all(jobs, workers)
    except ValueError as error:
        return str(error)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.booleans() | st.just(False)), max_size=20))
def test_results_and_the_error_are_those_of_one_worker(plan):
    def job(number, milliseconds, fails):
        time.sleep(milliseconds / 1000)
        if fails:
            raise ValueError(f"job {number}")
        return number

    jobs = [partial(job, number, *how) for number, how in enumerate(plan)]
    first, *others = (outcome(jobs, workers) for workers in WORKERS)
    assert all(other == first for other in others)


@pytest.mark.parametrize("workers", WORKERS)
def test_each_job_has_a_copy_of_the_callers_context(workers):
    def job(number):
        seen = place_of.get()
        place_of.set(f"job {number}")
        return seen

    place_of.set("here")
    assert run_all([partial(job, n) for n in range(10)], workers) == ["here"] * 10
    assert place_of.get() == "here"


def test_so_many_run_at_once():
    barrier = threading.Barrier(64)
    assert len(run_all([partial(barrier.wait, 30)] * 64, 64)) == 64


@pytest.mark.parametrize("workers", WORKERS)
def test_after_a_request_nothing_begins_and_what_is_in_flight_ends(workers):
    begun, ended = [], []

    def job(number):
        begun.append(number)
        if number == 3:
            os.kill(os.getpid(), signal.SIGINT)
            while not current_stop().requested:
                time.sleep(0.001)
        time.sleep(0.02)
        ended.append(number)

    said = []
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(Drained) as caught, stopping(said.append):
        run_all([partial(job, n) for n in range(200)], workers)
    assert sorted(begun) == sorted(ended) == list(range(len(begun)))
    assert len(begun) < 200
    assert (caught.value.done, caught.value.total) == (len(ended), 200)
    assert 1 <= caught.value.finished <= workers
    assert len(said) == 1
    assert signal.getsignal(signal.SIGINT) is before


def test_jobs_that_were_all_done_are_not_stopped():
    with stopping(lambda _: None) as stop:
        assert run_all([stop.ask], 2) == [None]
        with pytest.raises(Drained):
            stop.check()


@pytest.mark.parametrize("workers", [1, 4])
def test_a_second_request_does_not_wait(workers):
    release = threading.Event()

    def job():
        within(60, "this", partial(release.wait, 60))

    def ask():
        for _ in range(2):
            time.sleep(0.2)
            os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=ask, daemon=True).start()
    began = time.monotonic()
    try:
        with pytest.raises(Cancelled), stopping(lambda _: None):
            run_all([job] * 8, workers)
        assert time.monotonic() - began < 5
    finally:
        release.set()


def test_a_call_that_does_not_end_is_left_behind_and_too_many_stop_the_run(monkeypatch):
    monkeypatch.setattr(time_limit, "MAX_ABANDONED", 2)
    release = threading.Event()
    started = abandoned()
    try:
        for count in (1, 2):
            with pytest.raises(InfrastructureError, match="can't be stopped"):
                within(0.02, "this", release.wait)
            assert abandoned() == started + count
        with pytest.raises(ConfigurationError, match="such threads still run"):
            within(0.02, "this", release.wait)
        assert within(5, "that", lambda: 7) == 7
    finally:
        release.set()
    deadline = time.monotonic() + 10
    while abandoned() > started:
        assert time.monotonic() < deadline
        time.sleep(0.01)


JITTER = """
import random, time
class Jittery(Leveller):
    def solve(self, task):
        time.sleep(random.random() / 200)
        if task.id == "train-4":
            raise ValueError("not this one")
        return super().solve(task)
"""


def test_results_tags_and_journal_do_not_depend_on_workers(tmp_path):
    def run(workers):
        place = make_workspace(tmp_path / f"w{workers}", agent="Jittery", parts=JITTER)
        manifest = json.loads((place / "manifest.yaml").read_text())
        manifest["agent"]["remembers"] = True
        (place / "manifest.yaml").write_text(json.dumps(manifest))
        result = Evolver(place, config={"solve_workers": workers}).run(3)
        return result.score_history, tags(place), journal(place)

    first, *others = (run(workers) for workers in WORKERS)
    assert len(first[1]) > 6
    for other in others:
        assert other == first


def journal(place: Path):
    """Every event without what the clock, the place and the number of workers decide."""
    events = []
    for line in (place / "evolution" / "journal.jsonl").read_text().splitlines():
        event = json.loads(line)
        event.pop("time")
        event.get("config", {}).pop("solve_workers", None)
        event.get("record", {}).pop("seconds", None)
        for commit in ("head", "commit"):  # the hash of a commit holds its time
            event.pop(commit, None)
        events.append(event)
    return events
