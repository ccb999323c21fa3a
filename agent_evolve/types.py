"""The values that cross rooms: tasks, what agents did with them, how that was scored.

Plain dataclasses, no behaviour beyond derived properties, no imports from the rest of the package.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

Split = Literal["train", "holdout", "test"]
"""``train``: engines see it. ``holdout``: decides acceptance. ``test``: sealed."""

Status = Literal["scored", "agent_failed", "invalid"]
"""``scored``: the benchmark graded an answer. ``agent_failed``: the agent raised or gave up; it
counts as 0.0. ``invalid``: infrastructure failed (outage, refusal, harness time-out, a grader that
raised); it counts for nothing."""


@dataclass(frozen=True, slots=True)
class Task:
    """One thing an agent is asked to do.

    ``metadata`` reaches the agent, so it must never hold the expected answer: a benchmark keeps
    answers to itself, by task id.
    """

    id: str
    input: str
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Trajectory:
    """What an agent did with a task: its final ``output`` and how it got there.

    ``steps`` are tool uses, e.g. ``{"tool": "bash", "action": "ls", "output": "..."}``.
    ``error`` is set when the agent failed; such a trajectory scores 0.0 without being graded.
    ``metrics`` holds numbers about the run (``usd``, ``turns``, ``seconds``, tokens).
    """

    task_id: str
    output: str = ""
    steps: list[dict[str, Any]] = field(default_factory=list)
    conversation: list[dict[str, Any]] = field(default_factory=list)
    error: str | None = None
    metrics: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Feedback:
    """How a trajectory was scored.

    ``score`` lies in [0, 1]. ``detail`` says in words what was expected and what was seen; engines
    read it. ``raw`` keeps whatever else the grader measured (per-field scores, exit codes).
    """

    success: bool
    score: float
    detail: str = ""
    raw: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Observation:
    """A task, what the agent did, and how it was scored, at one cycle."""

    task: Task
    trajectory: Trajectory
    feedback: Feedback
    status: Status = "scored"
    cycle: int = 0

    @property
    def score(self) -> float | None:
        """The score, or ``None`` when the observation is invalid and counts for nothing."""
        return None if self.status == "invalid" else self.feedback.score

    @property
    def success(self) -> bool:
        return self.status == "scored" and self.feedback.success


@dataclass(frozen=True, slots=True)
class SkillMeta:
    """A skill as listed: ``name`` is the directory's, which is how everything refers to it."""

    name: str
    description: str
    path: Path


@dataclass(slots=True)
class StepResult:
    """What an engine says about its step.

    ``mutated`` is the engine's own claim; the loop counts the change from the trees and records
    that. ``stop`` ends the run after this cycle.
    """

    mutated: bool
    summary: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)
    stop: bool = False


Verdict = Literal[
    "accepted",
    "rejected",
    "cannot_tell",
    "unchanged",
    "unmeasured",
    "ungated",
    "failed",
    "review",
]
"""What became of a cycle's candidate. ``accepted``: it is better beyond chance, and is the head
now. ``rejected``: it is no better, or was refused for what it holds. ``cannot_tell``: neither could
be shown with these tasks; the head stays. ``unchanged``: the engine changed nothing. ``ungated``:
kept without measuring, as there is no holdout. ``unmeasured``: too few valid results to judge.
``failed``: the engine raised, or changed what it may not. ``review``: it would be the head, and
waits for a person's yes or no; the cycle is not finished."""


@dataclass(frozen=True, slots=True)
class CycleRecord:
    """One cycle as recorded in the journal and in the message of the tag ``evo-N``.

    ``score`` is the mean over the train batch of the version that entered the cycle.
    ``head_score`` and ``candidate_score`` are means over the same valid holdout tasks;
    ``holdout_score`` is that of the version which left the cycle. ``None`` means not measured.
    ``lower`` and ``upper`` bound the true gain of the candidate, where the gate gives an interval.
    ``look`` counts the candidates that this holdout has judged since the last accepted one, this
    one included; 0 where none was judged.
    ``because`` is what a person gave as the reason for a no; engines are told.
    ``changes`` counts files per layer: ``{"memory": {"added": 1, "modified": 0, "deleted": 0}}``.
    """

    cycle: int
    score: float | None
    verdict: Verdict
    mutated: bool
    summary: str = ""
    reason: str = ""
    head_score: float | None = None
    candidate_score: float | None = None
    holdout_score: float | None = None
    lower: float | None = None
    upper: float | None = None
    look: int = 0
    because: str = ""
    valid: int = 0
    total: int = 0
    changes: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    usd: float = 0.0
    seconds: float = 0.0
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def accepted(self) -> bool:
        return self.verdict in ("accepted", "ungated")

    @property
    def plateau_score(self) -> float | None:
        """The score that plateau detection watches; ``None`` keeps the cycle out of the window."""
        if self.verdict in ("unmeasured", "failed"):
            return None
        return self.holdout_score if self.holdout_score is not None else self.score


@dataclass(frozen=True, slots=True)
class EvolutionResult:
    """What a run did. ``final_score`` belongs to the version that is now in the workspace: its
    holdout mean, or the last train batch mean when there is no holdout (``gated`` is false)."""

    cycles_completed: int
    final_score: float | None
    score_history: Sequence[float | None]
    converged: bool
    start_score: float | None = None
    gated: bool = True
    stopped: str = "cycles"
    usd: float = 0.0
    cycles: Sequence[CycleRecord] = ()
    details: Mapping[str, Any] = field(default_factory=dict)
