"""Graders written in Python by whoever owns the tasks."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...entrypoint import load_object
from ...errors import BenchmarkError, ConfigurationError
from ...runtime import Runtime
from ...types import Feedback
from .base import Case, Grader, feedback, versus

_ARGUMENTS = ("task", "output", "expected", "hidden", "trajectory")


class PythonGrader(Grader):
    """Calls ``function``, named as ``file.py:function`` or ``module.function``.

    It takes ``task, output, expected`` and may ask by name for ``trajectory`` and ``hidden`` (the
    fields of the task that no agent sees). It returns True or False, a number from 0 to 1, a pair
    of that and words, a mapping with ``score`` and ``detail``, or a ``Feedback``.
    """

    needs_expected = False

    def __init__(self, function: str, root: Path = Path()) -> None:
        if not isinstance(function, str):
            raise ConfigurationError(f"grader python: function: {function!r} is no text")
        file, colon, name = function.rpartition(":")
        dotted = f"{file.removesuffix('.py').replace('/', '.')}.{name}" if colon else function
        self._named = function
        self._function = load_object(dotted, root, f"grader python, function {function!r}")
        if not callable(self._function):
            raise ConfigurationError(f"grader python: {function!r} can't be called")
        self._asked = self._asks()

    def _asks(self) -> tuple[str, ...]:
        parameters = list(inspect.signature(self._function).parameters.values())
        named = tuple(p.name for p in parameters if p.name in _ARGUMENTS)
        others = [p for p in parameters if p.name not in _ARGUMENTS and p.default is p.empty]
        if others and all(p.kind is not p.VAR_KEYWORD for p in others):
            raise ConfigurationError(
                f"grader python: {self._named!r} asks for {others[0].name!r}, which is not given",
                fix="its arguments may be " + ", ".join(_ARGUMENTS),
            )
        return named

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
        return ["python", self._named, source]


def _read(made: Any, case: Case, named: str) -> Feedback:
    """Feedback from what a grader returned; anything that says no score is its failure."""
    detail, raw = versus(case.expected, case.output), {}
    if isinstance(made, Mapping):
        raw = {str(key): value for key, value in made.items() if key not in ("score", "detail")}
        detail = str(made.get("detail", detail))
        made = made.get("score")
    elif isinstance(made, tuple) and len(made) == 2:
        made, detail = made[0], str(made[1])
    if not isinstance(made, int | float):
        raise BenchmarkError(
            f"{named} returned {made!r} as a score",
            fix="return True or False, a number from 0 to 1, or a pair of that and words",
        )
    return feedback(float(made), detail, case.expected, **raw)
