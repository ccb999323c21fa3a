"""How answers are scored; each grader is found by its name."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...errors import ConfigurationError, UnknownNameError
from .base import Case, Grader
from .command import CommandGrader
from .judge import Judge
from .numeric import Numeric
from .python import PythonGrader
from .structured import Json
from .text import Contains, Exact, Normalised, Regex

__all__ = ["GRADERS", "Case", "Grader", "make_grader"]

GRADERS: Mapping[str, type[Grader]] = {
    "exact": Exact,
    "normalised": Normalised,
    "contains": Contains,
    "regex": Regex,
    "numeric": Numeric,
    "json": Json,
    "python": PythonGrader,
    "command": CommandGrader,
    "judge": Judge,
}
_ALIASES = {"normalized": "normalised", "callable": "python", "number": "numeric"}


def make_grader(told: str | Mapping[str, Any], root: Path) -> Grader:
    """The grader that a manifest tells: a name, ``file.py:function``, or a mapping.

        grader: normalised
        grader: grader.py:grade
        grader: {name: json, match: fields}

    Raises ``ConfigurationError`` for an unknown name or option.
    """
    if isinstance(told, str):
        told = {"name": "python", "function": told} if ":" in told else {"name": told}
    given = told.get("name") if isinstance(told, Mapping) else None
    if not isinstance(given, str):
        raise ConfigurationError(
            f"grader: {told!r} names no grader", fix="one of " + ", ".join(GRADERS)
        )
    name = _ALIASES.get(given, given)
    if name not in GRADERS:
        raise UnknownNameError("grader", name, GRADERS)
    cls = GRADERS[name]
    options = {str(key): value for key, value in told.items() if key != "name"}
    known = [key for key in inspect.signature(cls).parameters if key != "root"]
    for option in options:
        if option not in known:
            raise UnknownNameError(f"option of the grader {name!r}", option, known)
    if "root" in inspect.signature(cls).parameters:
        options["root"] = root
    try:
        return cls(**options)
    except TypeError as error:
        raise ConfigurationError(
            f"the grader {name!r} can't be made: {error}", fix=f"its options: {', '.join(known)}"
        ) from error
