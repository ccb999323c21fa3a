"""How an edit ended, whichever way it was made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .changes import Tree


@dataclass(frozen=True, slots=True)
class Outcome:
    """The files as they are now, the model's closing words, why it ended before it was done
    (empty when it was done), and counts for the record."""

    after: Tree
    words: str
    ended: str = ""
    counts: Mapping[str, Any] = field(default_factory=dict)
