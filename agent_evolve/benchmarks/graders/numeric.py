"""Graders that compare numbers."""

from __future__ import annotations

import math
import re
from typing import Any, Literal

from ...errors import ConfigurationError
from ...runtime import Runtime
from ...types import Feedback
from .base import Case, Grader, feedback, shown

_NUMBER = re.compile(
    r"(?<![\w.])[-+−]?(?:\d{1,3}(?:,\d{3})+|\d+)?(?:\.\d+|(?<=\d)\.?)(?:[eE][-+]?\d+)?"
)


class Numeric(Grader):
    """Right when the number in the answer is near enough to the expected one.

    Numbers may have thousands commas, an exponent, and a unit or sign of currency around them.

    Args:
        tolerance: largest difference allowed, in the unit of the answer.
        relative: largest difference allowed as a share of the expected number; the larger of the
            two counts.
        which: which number of the answer counts: the ``last`` (default), the ``first``, or the
            ``only`` one.
    """

    def __init__(
        self,
        tolerance: float = 0.0,
        relative: float = 1e-9,
        which: Literal["first", "last", "only"] = "last",
    ) -> None:
        for name, value in (("tolerance", tolerance), ("relative", relative)):
            if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
                raise ConfigurationError(f"grader numeric: {name}: {value!r} is no number from 0")
        if which not in ("first", "last", "only"):
            raise ConfigurationError(f"grader numeric: which: {which!r} is not first, last or only")
        self._tolerance, self._relative, self._which = tolerance, relative, which

    def grade(self, case: Case, runtime: Runtime) -> Feedback:
        wanted = number(case.expected)
        assert wanted is not None  # why_not has refused it
        found = numbers(case.output)
        expected = f"expected {case.expected!r}"
        if not found:
            detail = f"{expected}, but no number stands in {shown(case.output)}"
            return feedback(0.0, detail, case.expected)
        if self._which == "only" and len(found) > 1:
            detail = f"{expected} alone, but {len(found)} numbers stand in {shown(case.output)}"
            return feedback(0.0, detail, case.expected)
        seen = found[0] if self._which == "first" else found[-1]
        allowed = max(self._tolerance, self._relative * abs(wanted))
        right = abs(seen - wanted) <= allowed
        detail = f"{expected}, got {seen:.12g}"
        if not right:
            detail += f", off by {abs(seen - wanted):.6g} where {allowed:.6g} is allowed"
        return feedback(float(right), detail, case.expected, seen=seen)

    def why_not(self, expected: Any) -> str:
        value = number(expected)
        return "" if value is not None else f"{expected!r} is not one finite number"

    def fingerprint(self) -> Any:
        return ["numeric", self._tolerance, self._relative, self._which]


def numbers(text: str) -> list[float]:
    """All finite numbers in a text, in order."""
    found = [float(m[0].replace(",", "").replace("−", "-")) for m in _NUMBER.finditer(text)]
    return [value for value in found if math.isfinite(value)]


def number(value: Any) -> float | None:
    """A number, or the only one in a text; ``None`` for anything else."""
    if isinstance(value, str):
        found = numbers(value)
        return found[0] if len(found) == 1 else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        made = float(value)
    except OverflowError:
        return None
    return made if math.isfinite(made) else None
