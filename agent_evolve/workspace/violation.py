"""One thing that a candidate did and may not do."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Violation:
    """Attributes:
    path: POSIX path relative to the workspace.
    rule: a fixed word: ``layer``, ``manifest``, ``name``, ``mode``, ``link``, ``size``, ``count``,
        ``skill``, ``skill-name`` or ``locked``.
    message: the rest of a sentence that starts with the path.
    """

    path: str
    rule: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"
