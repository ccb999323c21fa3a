"""Graders written in Python by whoever owns the tasks."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from numbers import Real
from pathlib import Path, PurePosixPath
from typing import Any

from ...entrypoint import load_object
from ...errors import BenchmarkError, ConfigurationError
from ...runtime import Runtime
from ...types import Feedback
from ..contents import digest
from .base import Case, Grader, feedback, versus

_USUAL = ("task", "output", "expected")
_ARGUMENTS = (*_USUAL, "hidden", "trajectory")


class PythonGrader(Grader):
    """Calls ``function``, named as ``file.py:function`` or ``module.function``.

    It takes ``task, output, expected`` and may ask by name for ``trajectory`` and ``hidden`` (the
    fields of the task that no agent sees). It returns True or False, a number from 0 to 1, a pair
    of that and words, a mapping with ``score`` and ``detail`` (and ``success``, by default full
    marks), or a ``Feedback``.
    """

    needs_expected = False
    needs_text = False

    def __init__(self, function: str, root: Path = Path()) -> None:
        if not isinstance(function, str):
            raise ConfigurationError(f"grader python: function: {function!r} is no text")
        file, colon, name = function.rpartition(":")
        place = PurePosixPath(file)
        if colon and (place.is_absolute() or ".." in place.parts):
            raise ConfigurationError(
                f"grader python: {file} lies outside the workspace",
                fix=f"copy it there: function: {place.name}:{name}",
            )
        self._file = root / place if colon else None
        dotted = ".".join([*place.with_suffix("").parts, name]) if colon else function
        self._named = function
        self._function = load_object(dotted, root, f"grader python, function {function!r}")
        if not callable(self._function):
            raise ConfigurationError(f"grader python: {function!r} can't be called")
        self._asked = self._asks()

    def _asks(self) -> tuple[str, ...]:
        """The arguments that it is called with, by name; ``**more`` takes the usual three."""
        try:
            parameters = list(inspect.signature(self._function).parameters.values())
        except (TypeError, ValueError) as error:
            raise ConfigurationError(
                f"grader python: {self._named!r} does not say what it takes: {error}",
                fix="wrap it: def grade(output, expected): ...",
            ) from error
        asked: dict[str, None] = {}
        open_ended = any(p.kind is p.VAR_KEYWORD for p in parameters)
        for p in parameters:
            if p.kind is p.VAR_KEYWORD or (p.kind is p.VAR_POSITIONAL and open_ended):
                asked |= dict.fromkeys(_USUAL)
            elif p.name in _ARGUMENTS and p.kind not in (p.POSITIONAL_ONLY, p.VAR_POSITIONAL):
                asked[p.name] = None
            elif p.default is p.empty:
                raise ConfigurationError(
                    f"grader python: {self._named!r} asks for {p.name!r}, which is not given",
                    fix="its arguments may be " + ", ".join(_ARGUMENTS) + ", each by its name",
                )
        return tuple(asked)

    def grade(self, case: Case, runtime: Runtime) -> Feedback:
        given = {
            "task": case.task,
            "output": case.output,
            "expected": case.expected,
            "hidden": case.hidden,
            "trajectory": case.trajectory,
        }
        made = self._function(**{name: given[name] for name in self._asked})
        if isinstance(made, Feedback):
            return made
        return _read(made, case, self._named)

    def fingerprint(self) -> Any:
        try:
            source = inspect.getsource(inspect.getmodule(self._function) or self._function)
        except (OSError, TypeError):
            source = ""
        decides = ["python", self._named, source]
        own = self._file
        if own is not None and own.is_file() and own.read_text("utf-8", "replace") != source:
            decides.append(digest(own))  # what is called was made elsewhere: a partial, an import
        return decides


def _read(made: Any, case: Case, named: str) -> Feedback:
    """Feedback from what a grader returned; anything that says no score is its failure."""
    detail, raw, success = versus(case.expected, case.output), {}, None
    if isinstance(made, Mapping):
        told = ("score", "detail", "success")
        raw = {str(key): value for key, value in made.items() if key not in told}
        detail, success = str(made.get("detail", detail)), made.get("success")
        made = made.get("score")
    elif isinstance(made, tuple) and len(made) == 2:
        made, detail = made[0], str(made[1])
    if not isinstance(made, Real):
        raise BenchmarkError(
            f"{named} returned {made!r} as a score",
            fix="return True or False, a number from 0 to 1, or a pair of that and words",
        )
    given = feedback(float(made), detail, case.expected)
    return Feedback(
        given.success if success is None else bool(success),
        given.score,
        given.detail,
        {**given.raw, **raw},
    )
