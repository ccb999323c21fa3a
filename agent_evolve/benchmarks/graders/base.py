"""What a grader is given and what it must say."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...runtime import Runtime
from ...types import Feedback, Task, Trajectory

_SHOWN = 300
_DETAIL = 4000


@dataclass(frozen=True, slots=True)
class Case:
    """One answer to grade: the task, the agent's ``output``, the ``expected`` answer (``None``
    where the task has none), and the fields of its record that no agent sees."""

    task: Task
    output: str
    expected: Any
    hidden: Mapping[str, Any]
    trajectory: Trajectory


class Grader(ABC):
    """Scores one answer, and says in words what was expected and what was seen."""

    needs_expected: bool = True
    needs_text: bool = True
    needs_sandbox: bool = False
    needs_model: bool = False
    model: str | None = None

    @abstractmethod
    def grade(self, case: Case, runtime: Runtime) -> Feedback:
        """Score in [0, 1]. An exception is the grader's own failure."""

    @abstractmethod
    def fingerprint(self) -> Any:
        """What besides the task decides a score, as JSON-able values."""

    def why_not(self, expected: Any) -> str:
        """Why this grader can't use an expected answer; ``""`` when it can."""
        return ""


def feedback(score: float, detail: str, expected: Any, **raw: Any) -> Feedback:
    """Feedback of a score; full marks are success. ``raw`` keeps the expected answer for engines,
    which see it for train tasks only. The middle of a detail beyond 4,000 characters is left out.
    """
    known = {} if expected is None else {"expected": expected}
    return Feedback(score >= 1.0, score, shortened(detail, _DETAIL), known | raw)


def versus(expected: Any, seen: str) -> str:
    """``expected 'a', got 'b'``, both shortened."""
    return f"expected {shown(expected)}, got {shown(seen)}"


def shown(value: Any) -> str:
    """A value in quotes, its middle left out when it is long; several alternatives joined."""
    if isinstance(value, list):
        return " or ".join(shown(item) for item in value[:5])
    return shortened(repr(value), _SHOWN)


def shortened(text: str, most: int) -> str:
    """A text, its middle left out when it has more than ``most`` characters."""
    half = most // 2
    return text if len(text) <= most else f"{text[:half]} ... {text[-half:]}"


def alternatives(expected: Any) -> list[str]:
    """The answers that are right: those of a list, or the only one. What is not text is taken as
    JSON writes it: ``true``, ``1.5``."""
    values = expected if isinstance(expected, list) else [expected]
    return [v if isinstance(v, str) else json.dumps(v, ensure_ascii=False) for v in values]
