"""What is known about tasks, whether it was just observed, observed before, or kept in memory."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...types import Observation

_EXPECTED = re.compile(
    r"""\bexpected:?\s+(["'`])(?P<quoted>.*?)\1(?!\w)"""
    r"""|\bexpected:[ \t]*(?P<bare>\S[^\n;]*?)(?=[,.;]?\s+(?:but|got|seen|was|saw)\b|[;\n]|$)""",
    re.IGNORECASE,
)
_ASKED_CHARS = 4_000
_ANSWER_CHARS = 4_000
_DETAIL_CHARS = 8_000
_LABEL_CHARS = 40
_LABELS_PER_CASE = 0.5


@dataclass(frozen=True, slots=True)
class Case:
    """One task and what is known of its answer.

    ``expected`` is the right answer, ``None`` where nobody said it. ``seen`` is what the agent
    answered and ``detail`` what the grader said about it. ``cycle`` is when it was observed.
    Of what was ``asked``, the first 4,000 characters are kept; a longer right answer counts as
    unknown, as a part of it would be wrong.
    """

    task_id: str
    asked: str
    expected: str | None
    seen: str = ""
    failed: bool = True
    category: str = ""
    detail: str = ""
    cycle: int = 0

    @property
    def answer_key(self) -> str:
        """The same for answers that differ in letter case and spaces only."""
        return " ".join((self.expected or "").casefold().split())


def case_from(observation: Observation) -> Case:
    """An observation as a case. The answer of a task that succeeded is the right one when the
    grader did not name another."""
    task, trajectory, feedback = observation.task, observation.trajectory, observation.feedback
    expected = expected_answer(feedback.raw, feedback.detail)
    if expected is None and observation.success:
        expected = trajectory.output
    if expected is not None and len(expected) > _ANSWER_CHARS:
        expected = None
    seen = trajectory.output
    if trajectory.error and not seen:
        seen = f"nothing, it failed: {trajectory.error}"
    return Case(
        task_id=task.id,
        asked=task.input[:_ASKED_CHARS],
        expected=expected,
        seen=seen,
        failed=not observation.success,
        category=str(task.metadata.get("category") or ""),
        detail=feedback.detail,
        cycle=observation.cycle,
    )


def case_from_memory(entry: Mapping[str, Any]) -> Case | None:
    """An example of ``memory/examples.jsonl`` as the failure it was made from."""
    asked, answer = entry.get("input"), entry.get("answer")
    if entry.get("kind") != "example" or not (isinstance(asked, str) and isinstance(answer, str)):
        return None
    category = str(entry.get("category") or "")
    return Case(str(entry.get("task_id") or asked), asked, answer, category=category)


def expected_answer(raw: Mapping[str, Any], detail: str) -> str | None:
    """The right answer as a grader gave it: ``raw["expected"]`` (JSON unless it is text; the first
    of several accepted texts), else what ``detail`` quotes after "expected" or "expected:"."""
    value = raw.get("expected")
    if value is None:
        found = _EXPECTED.search(detail[:_DETAIL_CHARS])
        if not found or found.end() == _DETAIL_CHARS:  # an answer cut short is a wrong one
            return None
        return found["bare"] or found["quoted"]
    if isinstance(value, list | tuple) and value and all(isinstance(item, str) for item in value):
        return str(value[0])
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def labelled(cases: Sequence[Case]) -> list[Case]:
    """The cases whose answers are labels, from which rules can be learned.

    In a category with labels the answers are short, on one line, and few: at most one different
    answer for two cases. Dates, SQL and JSON are not labels.
    """
    by_category: dict[str, list[Case]] = defaultdict(list)
    for case in cases:
        if case.expected is not None:
            by_category[case.category].append(case)
    found: list[Case] = []
    for group in by_category.values():
        keys = {case.answer_key for case in group}
        short = all(len(key) <= _LABEL_CHARS for key in keys)
        if short and len(keys) <= _LABELS_PER_CASE * len(group):
            found.extend(case for case in group if case.answer_key)
    return found
