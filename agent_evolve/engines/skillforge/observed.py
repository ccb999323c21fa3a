"""Which observations a prompt shows, in which order, and how one reads."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ...types import Observation
from .budget import allocate, clip

Group = Literal["failed", "near miss", "solved"]

NEAR_MISS = 0.5
"""Unsolved with at least this score is a near miss."""

_QUOTED = re.compile(r"\"[^\"\n]*\"|'[^'\n]*'|`[^`\n]*`")
_NUMBER = re.compile(r"\b0x[0-9a-f]+\b|[-+]?\d[\d.,:/-]*")


@dataclass(frozen=True, slots=True)
class Case:
    """An observation with its number in this step and what kind of outcome it is."""

    number: int
    observation: Observation
    group: Group
    pattern: str

    @property
    def label(self) -> str:
        score = self.observation.feedback.score
        return f"observation {self.number:03}, {self.group}, score {score:.2f}"

    @property
    def file_name(self) -> str:
        """The file under ``$OBSERVATIONS`` that holds the whole of it."""
        return f"{self.number:03}.md"


def rank(observations: Sequence[Observation]) -> list[Case]:
    """All valid observations in the order in which they are worth reading: failures, near misses,
    solved ones; inside a group the failure patterns take turns, the most frequent first."""
    groups: dict[Group, list[Observation]] = {"failed": [], "near miss": [], "solved": []}
    for observation in observations:
        if observation.status != "invalid":
            groups[group_of(observation)].append(observation)
    cases: list[Case] = []
    for group, members in groups.items():
        for observation in _take_turns(members):
            cases.append(Case(len(cases) + 1, observation, group, pattern_of(observation)))
    return cases


def choose(cases: Sequence[Case], shown: int) -> list[Case]:
    """At most ``shown`` of the ranked cases; a fifth of the places is kept for solved ones, so that
    what works is seen too."""
    solved = [case for case in cases if case.group == "solved"]
    unsolved = [case for case in cases if case.group != "solved"]
    kept = min(len(solved), max(shown - len(unsolved), shown // 5))
    return [*unsolved[: shown - kept], *solved[:kept]]


def group_of(observation: Observation) -> Group:
    if observation.success:
        return "solved"
    return "near miss" if observation.feedback.score >= NEAR_MISS else "failed"


def pattern_of(observation: Observation) -> str:
    """What failures of one kind share: the feedback without its quotations and numbers."""
    if observation.success:
        return "solved"
    text = observation.trajectory.error or observation.feedback.detail or "no feedback"
    text = _NUMBER.sub("#", _QUOTED.sub("…", text.strip()[:500]))
    return " ".join(text.lower().split())[:100]


def patterns(cases: Sequence[Case]) -> list[tuple[str, int]]:
    """Failure patterns with how often each occurred, the most frequent first."""
    counts = Counter(case.pattern for case in cases if case.group != "solved")
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def tally(cases: Sequence[Case]) -> str:
    """One line: how many tasks were solved and the mean score."""
    if not cases:
        return "No valid observation in this cycle."
    counts = Counter(case.group for case in cases)
    mean = sum(case.observation.feedback.score for case in cases) / len(cases)
    told = ", ".join(f"{counts[g]} {g}" for g in ("failed", "near miss", "solved") if counts[g])
    return f"{len(cases)} tasks: {told}; mean score {mean:.2f}."


def brief(observation: Observation, limit: int) -> str:
    """The observation in at most about ``limit`` characters: task, answer, feedback, last steps."""
    fields = {
        "task": observation.task.input,
        "answer": observation.trajectory.output,
        "error": observation.trajectory.error or "",
        "feedback": observation.feedback.detail,
        "steps": _steps(observation.trajectory.steps[-6:]),
    }
    weights = {"task": 3.0, "answer": 3.0, "error": 2.0, "feedback": 3.0, "steps": 1.0}
    fields = {
        name: text for name, text in fields.items() if text.strip() or name in ("task", "answer")
    }
    room = limit - sum(len(name) + 3 for name in fields)
    shares = allocate({name: len(text) for name, text in fields.items()}, room, weights)
    return "\n".join(f"{name}: {clip(text, shares[name])}" for name, text in fields.items())


def whole(case: Case) -> str:
    """The observation with nothing left out, as a Markdown file."""
    observation = case.observation
    parts = [
        f"# {case.label}",
        f"task id: {observation.task.id}",
        f"## Task\n\n{observation.task.input}",
        f"## Answer\n\n{observation.trajectory.output}",
        f"## Feedback\n\n{observation.feedback.detail}",
    ]
    if observation.trajectory.error:
        parts.append(f"## Error\n\n{observation.trajectory.error}")
    for title, value in (
        ("Task metadata", dict(observation.task.metadata)),
        ("Grader's details", dict(observation.feedback.raw)),
        ("Metrics", observation.trajectory.metrics),
        ("Steps", observation.trajectory.steps),
        ("Conversation", observation.trajectory.conversation),
    ):
        if value:
            parts.append(f"## {title}\n\n{_json(value)}")
    return "\n\n".join(parts) + "\n"


def _take_turns(observations: Sequence[Observation]) -> list[Observation]:
    by_pattern: dict[str, list[Observation]] = defaultdict(list)
    for observation in observations:
        by_pattern[pattern_of(observation)].append(observation)
    queues = sorted(by_pattern.items(), key=lambda item: (-len(item[1]), item[0]))
    ordered: list[Observation] = []
    for turn in range(max((len(queue) for _, queue in queues), default=0)):
        ordered += [queue[turn] for _, queue in queues if turn < len(queue)]
    return ordered


def _steps(steps: Sequence[Any]) -> str:
    return "\n".join(_json(step, indent=None) for step in steps)


def _json(value: Any, indent: int | None = 1) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent, default=repr)
