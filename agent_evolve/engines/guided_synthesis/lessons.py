"""Failures as short sentences: what was asked, expected and seen, and what they share. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from ...matching import listed, normalise, quoted
from .cases import Case
from .evidence import Evidence
from .examples import shape

_SHARED_WORDS = 3
_QUOTE = 60
_MIN_WORD = 3


def learn(
    existing: Sequence[Mapping[str, Any]],
    evidence: Evidence,
    labels: frozenset[str],
    limit: int,
) -> list[dict[str, Any]]:
    """The lessons to keep: failures of one kind become one lesson, merged with the lesson that
    memory already has of that kind; at most ``limit``, those seen most often and then latest.

    A failure counts once: this cycle's, and earlier ones that came after the lesson's cycle (those
    of refused candidates, whose files were not kept). ``labels`` names the categories whose answers
    are labels.
    """
    lessons = {str(lesson.get("about")): dict(lesson) for lesson in existing}
    kinds: dict[str, list[Case]] = defaultdict(list)
    for case in evidence.failed_before:
        about = _kind(case, case.category in labels)
        if about not in lessons or case.cycle > _whole(lessons[about].get("cycle")):
            kinds[about].append(case)
    for case in evidence.failed_now:
        kinds[_kind(case, case.category in labels)].append(case)
    known = evidence.known
    usual = Counter(word for case in known for word in set(normalise(case.asked).split()))
    for about, cases in kinds.items():
        lessons[about] = {
            "kind": "lesson",
            "lesson": _sentence(cases, _shared(cases, known, usual)),
            "about": about,
            "count": _whole(lessons.get(about, {}).get("count")) + len(cases),
            "cycle": max(case.cycle for case in cases),
        }
    ranked = sorted(lessons.values(), key=_weight, reverse=True)[:limit]
    keep = {str(lesson.get("about")) for lesson in ranked}
    return [lesson for about, lesson in lessons.items() if about in keep]


def _kind(case: Case, label: bool) -> str:
    """What failures that teach the same have in common; the key by which lessons are merged."""
    if case.expected is None:
        return f"{case.category}: wrong, right answer unknown".removeprefix(": ")
    form = (lambda answer: quoted(answer, _QUOTE)) if label else shape
    seen = form(case.seen) if case.seen.strip() else "nothing"
    about = f"{case.category}: {form(case.expected)}, not {seen}"
    return about.removeprefix(": ")


def _sentence(cases: Sequence[Case], shared: Sequence[str]) -> str:
    """One lesson in words, with the newest case as its example."""
    case = cases[-1]
    about = f" about {listed(shared)}" if shared else ""
    seen = quoted(case.seen, _QUOTE) if case.seen.strip() else "nothing"
    start = f"Asked{about}, e.g. {quoted(case.asked, _QUOTE)}: "
    if case.expected is None:
        said = (
            f" The grader said: {quoted(case.detail, 2 * _QUOTE)}." if case.detail.strip() else ""
        )
        return f"{start}{seen} was wrong.{said}"
    return f"{start}expected {quoted(case.expected, _QUOTE)}, answered {seen}."


def _shared(cases: Sequence[Case], known: Sequence[Case], usual: Mapping[str, int]) -> list[str]:
    """Up to three words of these failures that tasks with their answer often have, and others
    rarely do."""
    alike = {case.task_id: case for case in known if case.answer_key == cases[-1].answer_key}
    alike |= {case.task_id: case for case in cases}
    found = Counter(word for case in alike.values() for word in set(normalise(case.asked).split()))
    here = {word for case in cases for word in normalise(case.asked).split()}
    telling = [
        (found[word] ** 2 / max(usual[word], found[word]), found[word], word)
        for word in here
        if found[word] >= 2 and len(word) >= _MIN_WORD and 2 * found[word] > usual[word]
    ]
    telling.sort(key=lambda item: (-item[0], -item[1], item[2]))
    return [word for _, _, word in telling[:_SHARED_WORDS]]


def _weight(lesson: Mapping[str, Any]) -> tuple[int, int, str]:
    return _whole(lesson.get("count")), _whole(lesson.get("cycle")), str(lesson.get("about"))


def _whole(value: Any) -> int:
    """A count from a file that a person may have edited."""
    return value if type(value) is int else 0
