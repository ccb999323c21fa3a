"""Batches and the plateau: values in, values out."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from agent_evolve.loop.batches import batch_for
from agent_evolve.loop.plateau import converged, failing
from agent_evolve.types import CycleRecord, Task


def tasks(n: int) -> list[Task]:
    return [Task(f"t{i}", f"input {i}") for i in range(n)]


@given(n=st.integers(1, 40), size=st.integers(1, 50), seed=st.integers())
def test_batches_rotate_through_all_tasks_before_any_comes_a_third_time(n, size, seed):
    all_tasks = tasks(n)
    cycles = -(-n // min(size, n))
    seen = [t.id for c in range(1, cycles + 1) for t in batch_for(all_tasks, c, size, seed).tasks]
    assert set(seen) == {t.id for t in all_tasks}
    assert max(seen.count(task_id) for task_id in seen) <= 2


@given(n=st.integers(1, 40), size=st.integers(1, 50), cycle=st.integers(1, 60), seed=st.integers())
def test_a_batch_has_the_asked_size_and_no_task_twice(n, size, cycle, seed):
    batch = batch_for(tasks(n), cycle, size, seed)
    ids = [t.id for t in batch.tasks]
    assert len(ids) == len(set(ids)) == min(n, size)
    assert batch == batch_for(tasks(n), cycle, size, seed)


def test_the_first_batches_are_not_the_first_tasks_again_and_again():
    first, second = (batch_for(tasks(20), c, 10, 0) for c in (1, 2))
    assert not {t.id for t in first.tasks} & {t.id for t in second.tasks}


def record(value: float | None, verdict: str = "accepted") -> CycleRecord:
    return CycleRecord(1, value, verdict, True)  # type: ignore[arg-type]


def test_a_plateau_is_max_minus_min_below_the_threshold_over_the_window():
    flat = [record(0.50), record(0.52), record(0.54)]
    assert converged(flat, 3, 0.05)
    assert not converged(flat, 3, 0.04)
    assert not converged(flat[:2], 3, 0.05)
    assert not converged([record(0.5), record(0.6), record(0.6)], 3, 0.05)


def test_failed_and_unmeasured_cycles_are_not_part_of_the_window():
    zeros = [record(0.0, "failed")] * 5 + [record(None, "unmeasured")] * 5
    assert not converged(zeros, 3, 0.05)
    mixed = [record(0.5), record(None, "unmeasured"), record(0.5), record(0.0, "failed")]
    assert not converged(mixed, 3, 0.05)
    assert converged([*mixed, record(0.5)], 3, 0.05)


def test_the_plateau_watches_the_holdout_where_there_is_one():
    noisy_train = [replace(record(x), holdout_score=0.7) for x in (0.1, 0.9, 0.5)]
    assert converged(noisy_train, 3, 0.05)


def test_failures_in_a_row_stop_a_run():
    bad = record(None, "unmeasured")
    assert failing([record(0.5), bad, record(0.0, "failed"), bad], 3)
    assert not failing([bad, bad, record(0.5), bad], 3)
