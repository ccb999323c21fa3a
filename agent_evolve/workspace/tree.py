"""A workspace's files as git sees them, without a file system."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

DIRECTORY = 0o40000

Entry = tuple[int, str]
"""Git mode and blob id."""


@dataclass(frozen=True, slots=True)
class Tree:
    """The manifest and the layers of one state of a workspace.

    Attributes:
        id: git's id of the tree object, which stands for all content, names and modes.
        entries: POSIX path relative to the workspace, to ``(mode, blob id)``; modes are git's
            0o100644, 0o100755 and 0o120000.
        private: paths that lay there and were left out because they look like secrets.
    """

    id: str
    entries: Mapping[str, Entry]
    private: tuple[str, ...] = field(default=(), compare=False)


def changed_paths(before: Mapping[str, Entry], after: Mapping[str, Entry]) -> list[str]:
    """Paths that differ between two trees, sorted."""
    if before is after:
        return []
    different = {path for path, entry in after.items() if before.get(path) != entry}
    different.update(path for path in before if path not in after)
    return sorted(different)
