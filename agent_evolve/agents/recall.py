"""An agent that needs no model: it answers from the workspace's own memory and rules.

It knows nothing that its files do not say, so it gets better exactly when they do.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ..errors import ConfigurationError, UnknownNameError
from ..matching import Index, listed, mentions, normalise, quoted
from ..types import Task, Trajectory
from .base import BaseAgent

_DEFAULT = re.compile(r"^\s*default\s*:(.*)$", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Rule:
    """``answer`` when a text mentions all of ``when``; ``support`` counts the tasks behind it."""

    when: tuple[str, ...]
    answer: str
    support: int

    def fires(self, normalised: str) -> bool:
        return all(mentions(normalised, pattern) for pattern in self.when)


@dataclass(frozen=True, slots=True)
class Example:
    """A question with its right answer."""

    input: str
    answer: str


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer and the step that says why it was given."""

    text: str
    step: Mapping[str, Any]


class Recollection:
    """What memory entries say about a text: rules first, then the nearest examples.

    Args:
        memories: entries of any category. Those of kind ``rule`` with ``when`` and ``answer``
            and those of kind ``example`` with ``input`` and ``answer`` are used; others say
            nothing about an answer.
        neighbours: how many of the nearest examples vote, each with its similarity.
        min_similarity: examples less similar than this, from 0 to 1, have no vote.
    """

    def __init__(
        self,
        memories: Iterable[Mapping[str, Any]],
        neighbours: int = 12,
        min_similarity: float = 0.07,
    ) -> None:
        entries = list(memories)
        self.rules = [rule for entry in entries if (rule := _rule(entry))]
        self.examples = [example for entry in entries if (example := _example(entry))]
        self._neighbours = neighbours
        self._min_similarity = min_similarity

    @cached_property
    def _index(self) -> Index:
        return Index([example.input for example in self.examples])

    def answer(self, text: str) -> Answer | None:
        """The answer to ``text``, or ``None`` when neither a rule nor an example speaks to it."""
        return self._by_rule(normalise(text)) or self._by_example(text)

    def _by_rule(self, normalised: str) -> Answer | None:
        """Every rule that fires votes with its support; the strongest rule breaks a tie."""
        fired = [rule for rule in self.rules if rule.fires(normalised)]
        if not fired:
            return None
        votes: dict[str, int] = defaultdict(int)
        for rule in fired:
            votes[rule.answer] += rule.support
        best = max(fired, key=lambda rule: (votes[rule.answer], rule.support))
        others = sorted({rule.answer for rule in fired} - {best.answer})
        return Answer(
            best.answer,
            {
                "tool": "rule",
                "action": f"mentions {listed(best.when)} -> {best.answer}",
                "support": best.support,
                "against": others,
                "output": best.answer,
            },
        )

    def _by_example(self, text: str) -> Answer | None:
        near = [
            found
            for found in self._index.nearest(text, self._neighbours)
            if found.similarity >= self._min_similarity
        ]
        if not near:
            return None
        votes: dict[str, float] = defaultdict(float)
        for found in near:
            votes[self.examples[found.place].answer] += found.similarity
        best = max(near, key=lambda found: votes[self.examples[found.place].answer])
        example = self.examples[best.place]
        return Answer(
            example.answer,
            {
                "tool": "example",
                "action": f"most like {quoted(example.input)} -> {example.answer}",
                "similarity": round(best.similarity, 3),
                "votes": {answer: round(vote, 3) for answer, vote in votes.items()},
                "output": example.answer,
            },
        )


class RecallAgent(BaseAgent):
    """Answers by rule, else by the nearest examples, else with the default of the prompt.

    The default is a line ``default: ANSWER`` in ``prompts/system.md``. One step of the trajectory
    names the rule or example that answered. The same files give the same answers.

    Manifest options under ``agent:``: ``neighbours`` (default 12, from 1) and ``min_similarity``
    (default 0.07, from 0 to 1), as in ``Recollection``. Others raise ``UnknownNameError``.
    """

    def reload_from_fs(self) -> None:
        super().reload_from_fs()
        self._recollection = Recollection(self.memories, **_checked(self.options))
        self._default = default_answer(self.system_prompt)

    def solve(self, task: Task) -> Trajectory:
        answer = self._recollection.answer(task.input) or self._fallback()
        return Trajectory(task.id, output=answer.text, steps=[dict(answer.step)])

    def _fallback(self) -> Answer:
        if self._default is None:
            action = (
                "nothing in memory speaks to this, and prompts/system.md has no 'default:' line"
            )
            return Answer("", {"tool": "default", "action": action, "output": ""})
        action = "nothing in memory speaks to this: the default of prompts/system.md"
        return Answer(self._default, {"tool": "default", "action": action, "output": self._default})


def default_answer(prompt: str) -> str | None:
    """The answer of the first ``default: ANSWER`` line of a prompt, ``None`` without one."""
    found = _DEFAULT.search(prompt)
    return found[1].strip().strip("`\"'") if found else None


def _rule(entry: Mapping[str, Any]) -> Rule | None:
    when, answer, support = entry.get("when"), entry.get("answer"), entry.get("support", 1)
    if entry.get("kind") != "rule" or not isinstance(answer, str):
        return None
    patterns: Sequence[Any] = [when] if isinstance(when, str) else when or ()
    if not patterns or not all(isinstance(pattern, str) for pattern in patterns):
        return None
    return Rule(tuple(patterns), answer, support if isinstance(support, int) else 1)


def _example(entry: Mapping[str, Any]) -> Example | None:
    asked, answer = entry.get("input"), entry.get("answer")
    if entry.get("kind") != "example" or not (isinstance(asked, str) and isinstance(answer, str)):
        return None
    return Example(asked, answer)


def _checked(options: Mapping[str, Any]) -> dict[str, Any]:
    known = {"neighbours": (1, 1_000), "min_similarity": (0.0, 1.0)}
    for name, value in options.items():
        if name not in known:
            raise UnknownNameError("option of the recall agent", name, known)
        low, high = known[name]
        whole = name == "neighbours"
        right = isinstance(value, int if whole else int | float) and not isinstance(value, bool)
        if not right or not low <= value <= high:
            wanted = "a whole number" if whole else "a number"
            raise ConfigurationError(
                f"agent option {name} is {value!r}; it must be {wanted} from {low} to {high}",
                fix=f"change or remove '{name}:' under 'agent:' in manifest.yaml",
            )
    return dict(options)
