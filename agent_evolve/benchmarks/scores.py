"""What a score may be."""

from __future__ import annotations

from dataclasses import replace
from numbers import Real
from reprlib import repr as repr_short

from ..errors import InvalidScoreError
from ..types import Feedback

_FIX = "mend the grader: a score is a finite number from 0 to 1"


def checked(feedback: object, where: str) -> Feedback:
    """The feedback with its score as a ``float``.

    Raises ``InvalidScoreError``, naming ``where`` it came from, for what is not a ``Feedback``, or
    has a score that is no number, NaN, infinite, or outside [0, 1].
    """
    if not isinstance(feedback, Feedback):
        raise InvalidScoreError(
            f"{where} gave a {type(feedback).__name__}, not a Feedback", fix=_FIX
        )
    score = feedback.score
    if not isinstance(score, Real) or not 0 <= score <= 1:  # false for NaN, too
        raise InvalidScoreError(f"{where} gave the score {repr_short(score)}", fix=_FIX)
    return replace(feedback, success=bool(feedback.success), score=float(score))
