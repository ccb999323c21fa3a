"""Graders that compare texts. An expected answer may be a list: any one of them is right."""

from __future__ import annotations

import re
import unicodedata
from typing import Any

from ...runtime import Runtime
from ...types import Feedback
from .base import Case, Grader, alternatives, feedback, versus

_NOTHING = "is an empty list, so no answer is right"

_EDGE = " \t\n\r.,;:!?\"'`*_()[]{}«»“”‘’"


class Exact(Grader):
    """Right when the answer is the expected text, white space around it aside."""

    def grade(self, case: Case, runtime: Runtime) -> Feedback:
        right = case.output.strip() in {text.strip() for text in alternatives(case.expected)}
        return feedback(float(right), versus(case.expected, case.output), case.expected)

    def why_not(self, expected: Any) -> str:
        return _NOTHING if expected == [] else ""

    def fingerprint(self) -> Any:
        return "exact"


class Normalised(Grader):
    """As exact, but letter case, width and form of characters (NFKC), repeated white space, and
    punctuation or quotes around the answer make no difference."""

    def grade(self, case: Case, runtime: Runtime) -> Feedback:
        right = normalised(case.output) in {normalised(t) for t in alternatives(case.expected)}
        return feedback(float(right), versus(case.expected, case.output), case.expected)

    def why_not(self, expected: Any) -> str:
        return _NOTHING if expected == [] else ""

    def fingerprint(self) -> Any:
        return "normalised"


class Contains(Grader):
    """Right when the answer contains an expected text.

    Args:
        every: ask for all texts of a list; the score is the share that was found.
        ignore_case: letter case makes no difference.
        words: a text counts only as whole words.
    """

    def __init__(self, every: bool = False, ignore_case: bool = True, words: bool = False) -> None:
        self._every, self._ignore_case, self._words = every, ignore_case, words

    def grade(self, case: Case, runtime: Runtime) -> Feedback:
        wanted = alternatives(case.expected)
        missing = [text for text in wanted if not self._found(text, case.output)]
        if self._every:
            score = (len(wanted) - len(missing)) / len(wanted)
            listed = ", ".join(map(repr, missing[:5]))
            detail = f"lacks {listed}: " if missing else "has every text: "
        else:
            score = float(len(missing) < len(wanted))
            detail = "should contain: " if not score else "contains it: "
        return feedback(score, detail + versus(case.expected, case.output), case.expected)

    def _found(self, text: str, output: str) -> bool:
        if self._words:
            flags = re.IGNORECASE if self._ignore_case else 0
            return re.search(rf"(?<!\w){re.escape(text)}(?!\w)", output, flags) is not None
        if self._ignore_case:
            return text.casefold() in output.casefold()
        return text in output

    def why_not(self, expected: Any) -> str:
        if any(not text.strip() for text in alternatives(expected)) or expected == []:
            return "is empty, and every answer contains that"
        return ""

    def fingerprint(self) -> Any:
        return ["contains", self._every, self._ignore_case, self._words]


class Regex(Grader):
    """Right when the expected pattern is found in the answer.

    Args:
        full: the pattern must match the whole answer, white space around it aside.
        ignore_case: letter case makes no difference.
    """

    def __init__(self, full: bool = False, ignore_case: bool = False) -> None:
        self._full, self._flags = full, re.IGNORECASE if ignore_case else 0

    def grade(self, case: Case, runtime: Runtime) -> Feedback:
        right = any(self._matches(p, case.output.strip()) for p in alternatives(case.expected))
        detail = versus(case.expected, case.output).replace("expected", "expected a match of", 1)
        return feedback(float(right), detail, None, pattern=case.expected)

    def _matches(self, pattern: str, output: str) -> bool:
        search = re.fullmatch if self._full else re.search
        return search(pattern, output, self._flags) is not None

    def why_not(self, expected: Any) -> str:
        if "" in alternatives(expected) or expected == []:
            return "is empty, and every answer matches that"
        for pattern in alternatives(expected):
            try:
                re.compile(pattern, self._flags)
            except (re.error, RecursionError) as error:
                return f"{pattern!r} is no regular expression: {error}"
        return ""

    def fingerprint(self) -> Any:
        return ["regex", self._full, int(self._flags)]


def normalised(text: str) -> str:
    """The text as :class:`Normalised` compares it; one of nothing but punctuation keeps it, or an
    empty answer would be right where ``?`` is expected."""
    folded = " ".join(unicodedata.normalize("NFKC", text).casefold().split())
    return folded.strip(_EDGE) or folded
