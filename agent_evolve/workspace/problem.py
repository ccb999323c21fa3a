"""Something odd about one file of a workspace, said so that a person can go there and mend it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

Severity = Literal["error", "warning", "note"]


@dataclass(frozen=True, slots=True)
class Problem:
    """One finding.

    Attributes:
        line, column: where, counted from 1; columns count characters.
        message: what is wrong.
        fix: what to do about it; may be empty.
        severity: ``error``: the file can't be used; ``warning``: it is used, but some reader will
            refuse or misread it; ``note``: worth knowing.
        code: a short fixed word for the kind of finding, for programs.
        path: the file, relative to the workspace; empty while only its bytes are known.
    """

    line: int
    column: int
    message: str
    fix: str = ""
    severity: Severity = "warning"
    code: str = ""
    path: str = ""

    def at(self, path: str) -> Problem:
        """The same finding, in the file ``path``."""
        return replace(self, path=path)

    def __str__(self) -> str:
        return f"{self.path}:{self.line}:{self.column}: {self.message}"
