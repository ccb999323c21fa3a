"""Corrected failures kept as examples: merged when nearly the same, a diverse few when too many.
Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from ...matching import Index
from .cases import Case

SAME = 0.9
"""Similarity from which two questions with the same answer are one example."""
_NEAR = 16
"""How many of the nearest questions are looked at for one that is nearly the same."""
_SHAPED_CHARS = 40


def written_as(case: Case, existing: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """A case with a known answer as a line of ``memory/examples.jsonl``: as it stands there, if it
    does."""
    if existing is not None:
        return dict(existing)
    entry = {
        "kind": "example",
        "input": case.asked,
        "answer": case.expected,
        "task_id": case.task_id,
    }
    return entry | {"category": case.category} if case.category else entry


def merge(kept: Sequence[Case], new: Sequence[Case]) -> list[Case]:
    """``kept`` and then those of ``new`` that say something else.

    A task that is kept already, or a question nearly the same with the same answer, adds nothing.
    When the answer to a kept task, or to the very same question, has changed, the new one replaces
    it.
    """
    merged = list(kept)
    answerable = [case for case in new if case.expected is not None and case.asked.strip()]
    index = Index([case.asked for case in [*kept, *answerable]])
    place_of = {case.task_id: place for place, case in enumerate(merged)}
    place_by_text = {case.asked: place for place, case in enumerate(merged)}
    merged_at = {place: place for place in range(len(kept))}
    for at, case in enumerate(answerable, start=len(kept)):
        place = place_of.get(case.task_id, place_by_text.get(case.asked))
        if place is not None:
            if merged[place].answer_key != case.answer_key:
                merged[place] = case
            continue
        near = [found for found in index.nearest(case.asked, _NEAR) if found.place in merged_at]
        if any(
            found.similarity >= SAME
            and merged[merged_at[found.place]].answer_key == case.answer_key
            for found in near
        ):
            continue
        place_of[case.task_id] = place_by_text[case.asked] = merged_at[at] = len(merged)
        merged.append(case)
    return merged


def diverse(cases: Sequence[Case], limit: int, labels: frozenset[str]) -> list[Case]:
    """At most ``limit`` cases that differ as much as possible, in their given order.

    Each kind of answer (a label, or the shape of a free answer within its category) gives one in
    turn, the most frequent kind first; within a kind, the case least like those already taken.
    ``labels`` names the categories whose answers are labels.
    """
    if len(cases) <= limit:
        return list(cases)
    groups: dict[tuple[str, str], list[int]] = defaultdict(list)
    for place, case in enumerate(cases):
        kind = case.answer_key if case.category in labels else shape(case.expected or "")
        groups[case.category, kind].append(place)
    queues = [_farthest_first(group, cases, limit) for group in groups.values()]
    queues.sort(key=lambda queue: -len(queue))
    taken: list[int] = []
    turn = 0
    while len(taken) < limit:
        row = [queue[turn] for queue in queues if turn < len(queue)]
        taken.extend(row[: limit - len(taken)])
        turn += 1
    return [cases[place] for place in sorted(taken)]


def _farthest_first(group: Sequence[int], cases: Sequence[Case], limit: int) -> list[int]:
    """The group ordered so that each is the least like all before it; the first given starts.
    (Gonzalez 1985, k-center.) Those beyond ``limit`` can't be taken and stay in their order."""
    index = Index([cases[place].asked for place in group])
    closeness = [0.0] * len(group)
    left = list(range(len(group)))
    ordered: list[int] = []
    while left and len(ordered) < limit:
        pick = min(left, key=lambda at: (closeness[at], at))
        left.remove(pick)
        ordered.append(pick)
        for near in index.nearest(cases[group[pick]].asked, len(group)):
            closeness[near.place] = max(closeness[near.place], near.similarity)
    return [group[at] for at in [*ordered, *left]]


def shape(answer: str) -> str:
    """The form of an answer: ``2024-03-01`` is ``9999-99-99``, ``1 March`` is ``9 Aa``; of a long
    answer only the first word, such as ``SELECT …`` or ``{ …``."""
    if len(answer) > _SHAPED_CHARS:
        found = re.match(r"\s*(\w+|\S)", answer[:_SHAPED_CHARS])
        return f"{found[1][:_SHAPED_CHARS].upper() if found else ''} …"
    lowered = re.sub(r"[^\W\d_]+", lambda word: _letters(word[0]), answer.strip())
    return re.sub(r"\d", "9", lowered)


def _letters(word: str) -> str:
    if word.isupper():
        return "A"
    return "a" if word[0].islower() else "Aa"
