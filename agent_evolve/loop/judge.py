"""Measures head and candidate as far as the gate asks, and gives its decision."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from .gate import Decision, Evidence, Gate, Run
from .scores import fingerprint

Measure = Callable[[Sequence[Run]], Mapping[Run, float | None]]


def judge(
    gate: Gate,
    tasks: Sequence[str],
    head: Measure,
    candidate: Measure,
    *,
    look: int,
    shrinks: bool,
    seed: int,
) -> Decision:
    """Ask the gate, buy the runs that it asks for on both sides, and ask again until it decides.

    The tasks are shown in an order shuffled by ``seed``, so that its first slice is no corner of
    the task file. Asking for runs that are known already is an error of the gate.
    """
    order = sorted(tasks, key=lambda task: fingerprint(seed, "slice", task))
    known: tuple[dict[Run, float | None], dict[Run, float | None]] = ({}, {})
    while True:
        answer = gate.next(Evidence(order, dict(known[0]), dict(known[1]), look, shrinks))
        if isinstance(answer, Decision):
            return answer
        fresh = [run for run in answer.runs if run not in known[0] or run not in known[1]]
        if not fresh:
            raise AssertionError(f"the gate {gate.name!r} asks for runs that it has")
        for scores, measure in zip(known, (head, candidate), strict=True):
            scores.update(measure(fresh))
