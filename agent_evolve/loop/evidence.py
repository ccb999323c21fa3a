"""What has been measured of a candidate and its head, and what a gate says about it. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, Literal

from ..types import Verdict
from .statistics import Paired

Run = tuple[str, int]
"""A task's id and the seed (0, 1, 2, ...) of one solving of it."""

Fate = Literal["fixed", "broke", "same"]

MARGIN = 0.1
"""A task's mean score must move by this much to be called fixed or broke."""


@dataclass(frozen=True, slots=True)
class TaskChange:
    """What became of one holdout task. ``confirmed``: a fall that was seen again in fresh runs;
    ``None`` where none were made."""

    task: str
    fate: Fate
    head: float
    candidate: float
    runs: int
    confirmed: bool | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """A verdict with its numbers.

    Means are over the tasks that are valid on both sides, each task counted once however often it
    was run. ``lower`` and ``upper`` bound the true gain, with a chance of ``alpha`` outside each.
    The sentence ``reason`` names no task, as an engine may read it; ``tasks`` is for people only.
    ``look`` is how often this holdout had been asked since the last accepted change, this time
    included. ``runs`` counts the solvings of the candidate that the decision rests on.
    """

    verdict: Verdict
    reason: str
    head_mean: float | None = None
    candidate_mean: float | None = None
    valid: int = 0
    total: int = 0
    gain: float | None = None
    lower: float | None = None
    upper: float | None = None
    alpha: float | None = None
    p: float | None = None
    look: int = 1
    runs: int = 0
    tasks: Sequence[TaskChange] = ()
    stopped_early: bool = False

    @classmethod
    def from_record(cls, data: Mapping[str, Any]) -> Decision:
        """Back from the journal; fields that this version does not know are ignored."""
        known = {field.name for field in fields(cls)}
        tasks = tuple(TaskChange(**task) for task in data["tasks"])
        return cls(**{key: data[key] for key in known & data.keys()} | {"tasks": tasks})


@dataclass(frozen=True, slots=True)
class Ask:
    """Runs that head and candidate both still need."""

    runs: Sequence[Run]
    why: str = ""


@dataclass(frozen=True)
class Evidence:
    """What is known when the gate is asked.

    Args:
        tasks: ids of the holdout tasks, in the order in which they are to be measured.
        head, candidate: score in [0, 1] by run; ``None`` where the run ended invalid; a run that
            was not made is absent.
        look: how often the holdout was asked since the last accepted change, this time included.
        shrinks: whether the candidate's files are smaller than the head's.
    """

    tasks: Sequence[str]
    head: Mapping[Run, float | None] = field(default_factory=dict)
    candidate: Mapping[Run, float | None] = field(default_factory=dict)
    look: int = 1
    shrinks: bool = False

    def missing(self, runs: Iterable[Run]) -> list[Run]:
        return [run for run in runs if run not in self.head or run not in self.candidate]

    @cached_property
    def pairs(self) -> dict[str, list[tuple[float, float]]]:
        """Valid (head, candidate) scores by task, of the runs that both sides have."""
        found: dict[str, list[tuple[float, float]]] = {}
        for (task, seed), before in sorted(self.head.items()):
            after = self.candidate.get((task, seed))
            if before is not None and after is not None:
                found.setdefault(task, []).append((before, after))
        return {task: found[task] for task in self.tasks if task in found}

    @property
    def lost(self) -> list[float]:
        """The head's mean score on each task of which only the candidate has no valid run."""
        tried = {task for task, _ in self.candidate} - set(self.pairs)
        found: dict[str, list[float]] = {}
        for (task, _), score in self.head.items():
            if task in tried and score is not None:
                found.setdefault(task, []).append(score)
        return [math.fsum(scores) / len(scores) for scores in found.values()]

    def only(self, seeds: Callable[[int], bool]) -> Evidence:
        """The runs whose seed is wanted."""
        return Evidence(
            self.tasks,
            {run: score for run, score in self.head.items() if seeds(run[1])},
            {run: score for run, score in self.candidate.items() if seeds(run[1])},
            self.look,
            self.shrinks,
        )

    def before(self, seed: int) -> Evidence:
        """The runs with a smaller seed."""
        return self.only(lambda other: other < seed)


@dataclass(frozen=True, slots=True)
class Summary:
    """Task-level means of a paired measurement."""

    changes: tuple[TaskChange, ...]
    equal: bool
    runs: int

    @classmethod
    def of(cls, evidence: Evidence) -> Summary:
        changes = []
        for task, pairs in evidence.pairs.items():
            before = math.fsum(b for b, _ in pairs) / len(pairs)
            after = math.fsum(a for _, a in pairs) / len(pairs)
            moved = after - before
            fate: Fate = "fixed" if moved >= MARGIN else "broke" if moved <= -MARGIN else "same"
            changes.append(TaskChange(task, fate, before, after, len(pairs)))
        equal = all(b == a for pairs in evidence.pairs.values() for b, a in pairs)
        runs = sum(len(pairs) for pairs in evidence.pairs.values())
        return cls(tuple(changes), equal, runs)

    @property
    def n(self) -> int:
        return len(self.changes)

    @property
    def differences(self) -> list[float]:
        return [change.candidate - change.head for change in self.changes]

    @property
    def gain(self) -> float:
        return math.fsum(self.differences) / self.n

    @property
    def means(self) -> tuple[float, float]:
        """Of the head and of the candidate."""
        before = math.fsum(change.head for change in self.changes) / self.n
        after = math.fsum(change.candidate for change in self.changes) / self.n
        return before, after

    @property
    def counts(self) -> str:
        fates = [change.fate for change in self.changes]
        before, after = self.means
        return (
            f"{before:.3f} -> {after:.3f} on {self.n} tasks: {fates.count('fixed')} fixed, "
            f"{fates.count('broke')} broke, {fates.count('same')} the same"
        )

    def decision(
        self,
        verdict: Verdict,
        reason: str,
        evidence: Evidence,
        test: Paired | None = None,
        alpha: float | None = None,
    ) -> Decision:
        return Decision(
            verdict,
            reason,
            *self.means,
            self.n,
            len(evidence.tasks),
            self.gain,
            _finite(test.lower) if test else None,
            _finite(test.upper) if test else None,
            alpha,
            test.p if test else None,
            evidence.look,
            self.runs,
            self.changes,
        )


def too_few(evidence: Evidence, total: int, floor: float) -> Decision | None:
    valid = len(evidence.pairs)
    if valid and valid >= floor * total:
        return None
    return Decision(
        "unmeasured",
        f"only {valid} of {total} holdout tasks gave a valid score on both sides; "
        f"at least {floor:.0%} must",
        valid=valid,
        total=total,
        look=evidence.look,
    )


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
