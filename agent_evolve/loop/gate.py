"""Whether a measured candidate becomes the head. Pure.

A gate is asked again and again: it is shown what has been measured and answers with the
measurements that it still needs, or with its decision. It never runs anything itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from ..types import Verdict
from .evidence import Ask, Decision, Evidence, Run, Summary, TaskChange, too_few
from .paired_gate import PairedGate

__all__ = [
    "POLICIES",
    "Ask",
    "Decision",
    "Evidence",
    "Gate",
    "NoGate",
    "NoRegression",
    "PairedGate",
    "Run",
    "TaskChange",
    "make_gate",
]


class Gate(Protocol):
    """Decides about a candidate from paired measurements."""

    @property
    def name(self) -> str:
        """How settings and reports call it."""

    def next(self, evidence: Evidence) -> Ask | Decision:
        """The runs still needed, or the decision. The same evidence gives the same answer."""


@dataclass(frozen=True, slots=True)
class NoGate:
    """Keeps every candidate unmeasured; its cycles are marked ``ungated``."""

    name: str = "none"

    def next(self, evidence: Evidence) -> Ask | Decision:
        return Decision("ungated", "kept without measuring: gate is 'none'", look=evidence.look)


@dataclass(frozen=True, slots=True)
class NoRegression:
    """Accepts a candidate whose holdout mean, over one run of each task, is not lower than the
    head's. Noise passes it about every other time: for graders and agents that always give the
    same score. A tie goes to the candidate, as it costs nothing here."""

    min_valid: float = 0.6
    name: str = "no_regression"

    def next(self, evidence: Evidence) -> Ask | Decision:
        needed = evidence.missing((task, 0) for task in evidence.tasks)
        if needed:
            return Ask(needed, "every task once")
        few = too_few(evidence, len(evidence.tasks), self.min_valid)
        if few:
            return few
        summary = Summary.of(evidence)
        before, after = summary.means
        verdict: Verdict = "accepted" if after >= before else "rejected"
        return summary.decision(verdict, f"holdout {summary.counts}", evidence)


POLICIES = ("paired", "no_regression", "none")


def make_gate(
    name: str,
    *,
    alpha: float = 0.05,
    min_effect: float = 0.02,
    repeats: int = 3,
    min_valid: float = 0.6,
    max_broken: int | None = None,
) -> Gate:
    """The gate of that name; settings that it does not have are left out.

    Raises ``ValueError`` for an unknown name.
    """
    match name:
        case "paired":
            return PairedGate(alpha, min_effect, repeats, min_valid, max_broken)
        case "no_regression":
            return NoRegression(min_valid)
        case "none":
            return NoGate()
    raise ValueError(f"unknown gate {name!r}; there are " + ", ".join(POLICIES))
