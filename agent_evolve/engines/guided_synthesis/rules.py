"""Rules that labelled cases support: "when the input mentions this, answer that". Pure.

A rule is proposed by failures only, has to hold for everything that is known (what the agent
already gets right counts as evidence against a rule as much as for it), and must be unlikely to
hold by chance.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import comb
from typing import Any

from ...matching import listed, mentions, normalise
from .cases import Case

MIN_FAILURES = 2
"""Failures that must share a pattern before it becomes a rule."""
MIN_PRECISION = 0.9
"""Share of the known cases with the pattern that have the rule's answer. Below nine supporting
cases this allows no conflict at all."""
MAX_CHANCE = 0.001
"""Highest probability that cases drawn at random would agree as those with the pattern do."""
_MIN_WORD = 3
_MIN_STEM = 5


@dataclass(frozen=True, slots=True)
class Rule:
    """``answer`` when a text mentions all of ``when``; counts are distinct known tasks."""

    when: tuple[str, ...]
    answer: str
    support: int
    conflicts: int = 0

    @property
    def precision(self) -> float:
        return self.support / (self.support + self.conflicts)

    def entry(self, existing: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The rule as a line of ``memory/rules.jsonl``: of an existing one only the counts."""
        if existing is not None:
            return {**existing, "support": self.support, "conflicts": self.conflicts}
        return {
            "kind": "rule",
            "rule": f'When the input mentions {listed(self.when)}, answer "{self.answer}".',
            "when": list(self.when),
            "answer": self.answer,
            "support": self.support,
            "conflicts": self.conflicts,
        }


def rule_from(entry: Mapping[str, Any]) -> Rule | None:
    """A line of ``memory/rules.jsonl`` in the form that this engine writes, else ``None``."""
    when, answer, support = entry.get("when"), entry.get("answer"), entry.get("support")
    if entry.get("kind") != "rule" or not isinstance(when, list) or not when:
        return None
    if not isinstance(answer, str) or type(support) is not int or support < 1:
        return None
    conflicts = entry.get("conflicts")
    return Rule(tuple(map(str, when)), answer, support, conflicts if type(conflicts) is int else 0)


def revise(existing: Sequence[Rule], cases: Sequence[Case], limit: int) -> list[Rule]:
    """The rules to keep: existing ones that still hold and new ones that failures propose, without
    those that add nothing, at most ``limit``, strongest first."""
    known = [(case, normalise(case.asked)) for case in cases]
    standing = [checked for rule in existing if (checked := _recount(rule, known))]
    return _cover([*standing, *_propose(known)], known, limit)


def _recount(rule: Rule, known: Sequence[tuple[Case, str]]) -> Rule | None:
    """The rule with its counts over all that is known, ``None`` when it does not hold any more.
    Counts never fall: the tasks that it was learned from may be forgotten by now."""
    key = _key(rule.answer)
    hits = [case.answer_key == key for case, text in known if _fires(rule, text)]
    support, conflicts = hits.count(True), hits.count(False)
    counted = replace(
        rule, support=max(rule.support, support), conflicts=max(rule.conflicts, conflicts)
    )
    return counted if counted.precision >= MIN_PRECISION else None


def _propose(known: Sequence[tuple[Case, str]]) -> list[Rule]:
    total = len(known)
    of_answer = Counter(case.answer_key for case, _ in known)
    spelled: dict[str, str] = {}
    holders: dict[str, list[int]] = defaultdict(list)
    for place, (case, text) in enumerate(known):
        spelled.setdefault(case.answer_key, case.expected or "")
        for pattern in patterns(text):
            holders[pattern].append(place)
    proposed = []
    for pattern, places in holders.items():
        holding = [known[place][0] for place in places]
        [(answer, support)] = Counter(case.answer_key for case in holding).most_common(1)
        failures = sum(case.failed for case in holding if case.answer_key == answer)
        rule = Rule((pattern,), spelled[answer], support, len(places) - support)
        if (
            failures >= MIN_FAILURES
            and rule.precision >= MIN_PRECISION
            and chance(total, of_answer[answer], support) <= MAX_CHANCE
        ):
            proposed.append(rule)
    return proposed


def patterns(normalised: str) -> set[str]:
    """What a rule may look for in a text: words, pairs of neighbouring words, stems."""
    words = normalised.split()
    found = {word for word in words if len(word) >= _MIN_WORD}
    found.update(
        f"{a} {b}"
        for a, b in pairwise(words)
        if "#" not in (a, b) and max(len(a), len(b)) >= _MIN_WORD
    )
    for word in found.copy():
        if " " not in word:
            found.update(f"{word[:size]}*" for size in range(_MIN_STEM, len(word) + 1))
    return found


def chance(total: int, of_answer: int, support: int) -> float:
    """Probability that ``support`` cases drawn from ``total`` all have an answer that ``of_answer``
    of them have (hypergeometric)."""
    return comb(of_answer, support) / comb(total, support)


def _cover(rules: Iterable[Rule], known: Sequence[tuple[Case, str]], limit: int) -> list[Rule]:
    """Greedy set cover: the rule that explains most of what no chosen rule explains yet, until
    none explains anything more. Of rules that explain the same, the most readable stays."""
    best: dict[tuple[str, ...], Rule] = {}
    for rule in rules:
        best.setdefault(rule.when, rule)
    explains = {
        rule: {
            place
            for place, (case, text) in enumerate(known)
            if case.answer_key == _key(rule.answer) and _fires(rule, text)
        }
        for rule in best.values()
    }
    chosen: list[Rule] = []
    explained: set[int] = set()
    while explains and len(chosen) < limit:
        top = max(explains, key=lambda rule: (_gain(rule, explains[rule], explained), *_rank(rule)))
        places = explains.pop(top)
        if _gain(top, places, explained) < 1:
            break
        chosen.append(top)
        explained |= places
    return sorted(chosen, key=lambda rule: (-rule.support, rule.answer, rule.when))


def _gain(rule: Rule, places: set[int], explained: set[int]) -> int:
    """Known cases that only this rule explains, plus forgotten ones that it was learned from."""
    return len(places - explained) + max(0, rule.support - len(places))


def _rank(rule: Rule) -> tuple[Any, ...]:
    """Among equals: more support; then a word before a phrase before a stem; then the longer."""
    text = " ".join(rule.when)
    return (rule.support, "*" not in text, " " not in text, len(text), text)


def _fires(rule: Rule, normalised: str) -> bool:
    return all(mentions(normalised, pattern) for pattern in rule.when)


def _key(answer: str) -> str:
    return " ".join(answer.casefold().split())
