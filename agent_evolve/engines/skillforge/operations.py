"""What a reply can ask for, and how each is written in the reply's format."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

SEARCH = re.compile(r"^<{5,9}\s*SEARCH\s*$")
REPLACE = re.compile(r"^>{5,9}\s*REPLACE\s*$")
SEPARATOR = re.compile(r"^={7}\s*$")


@dataclass(frozen=True, slots=True)
class WriteFile:
    """Replace or create a file."""

    path: str
    text: str


@dataclass(frozen=True, slots=True)
class EditFile:
    """Replace passages of a file: pairs of (search, replacement). An empty search appends."""

    path: str
    passages: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete a file, or a skill with all its files."""

    path: str


@dataclass(frozen=True, slots=True)
class Remember:
    """Append a memory entry."""

    category: str
    entry: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Decide:
    """Accept a draft as a skill of its own, or reject it."""

    draft: str
    accept: bool


Operation = WriteFile | EditFile | Delete | Remember | Decide


def render(operations: Sequence[Operation], summary: str) -> str:
    """Operations in the format above, as ``parse_reply`` reads them.

    Raises ``ValueError`` for a passage that holds the format's own marks.
    """
    lines = ["CHANGES"]
    for operation in operations:
        match operation:
            case WriteFile(path, text):
                fence = "`" * max(3, *(len(run) + 1 for run in re.findall("`+", text)), 3)
                body = text if text.endswith("\n") else text + "\n"
                lines.append(f"FILE {path}\n{fence}\n{body}{fence}")
            case EditFile(path, passages):
                lines.append(f"EDIT {path}")
                lines += [_render_passage(old, new) for old, new in passages]
            case Delete(path):
                lines.append(f"DELETE {path}")
            case Remember(category, entry):
                lines.append(f"MEMORY[{category}] {json.dumps(dict(entry))}")
            case Decide(draft, accept):
                lines.append(f"{'ACCEPT' if accept else 'REJECT'} {draft}")
    return "\n".join([*lines, f"DONE {summary}".rstrip()]) + "\n"


def _render_passage(old: str, new: str) -> str:
    for line in f"{old}\n{new}".split("\n"):
        if SEARCH.match(line) or REPLACE.match(line) or SEPARATOR.match(line):
            raise ValueError(f"a passage can't hold the line {line!r}")
    parts = ["<<<<<<< SEARCH", *_block(old), "=======", *_block(new), ">>>>>>> REPLACE"]
    return "\n".join(parts)


def _block(text: str) -> list[str]:
    return [text.removesuffix("\n")] if text else []
