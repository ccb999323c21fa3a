"""What a candidate may change, found by comparing two trees: whichever engine, tool or model made
the change, and whatever it says about it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from . import locks, names
from .links import EXECUTABLE, FILE, LINK, Entries, Leaves, Read, follow
from .skill_rules import skill_violations
from .tree import changed_paths
from .violation import Violation

__all__ = ["MAX_ADDED_FILES", "MAX_FILE_BYTES", "Violation", "count_changes", "violations"]

MAX_FILE_BYTES = 1024**2
"""A candidate may not add a file above this, nor grow one beyond it."""
MAX_ADDED_FILES = 2000
"""A candidate may add this many files to the workspace."""


@dataclass(frozen=True, slots=True)
class _Change:
    """Two trees and the paths in which they differ, sorted."""

    before: Entries
    after: Entries
    read: Read
    paths: tuple[str, ...]


def violations(
    before: Entries,
    after: Entries,
    *,
    read: Read,
    evolvable_layers: Iterable[str],
    locked: Iterable[str] = (),
) -> list[Violation]:
    """Everything in ``after`` that a change from ``before`` may not do; ``[]`` when all is well.

    Trees map POSIX paths relative to the workspace to ``(git mode, blob id)``; ``read`` gives a
    blob's bytes. Faults that ``before`` has already, such as a skill with broken frontmatter, are
    not held against a candidate that leaves them.
    """
    change = _Change(before, after, read, tuple(changed_paths(before, after)))
    found = list(_outside(change, tuple(evolvable_layers)))
    found += _names(change)
    found += _modes(change)
    found += _links(change)
    found += _sizes(change)
    found += skill_violations(before, after, read, change.paths)
    found += locks.violations(before, after, read, change.paths, locked)
    return found


def count_changes(before: Entries, after: Entries) -> dict[str, dict[str, int]]:
    """Files added, modified and deleted in each layer that changed. A moved file counts as one
    deleted and one added.

        {"memory": {"added": 1, "modified": 0, "deleted": 0}}
    """
    counts: dict[str, dict[str, int]] = {}
    for path in changed_paths(before, after):
        layer = counts.setdefault(path.split("/")[0], {"added": 0, "modified": 0, "deleted": 0})
        kind = "added" if path not in before else "modified" if path in after else "deleted"
        layer[kind] += 1
    return dict(sorted(counts.items()))


def _outside(change: _Change, layers: tuple[str, ...]) -> Iterator[Violation]:
    allowed = ", ".join(layers)
    for path in change.paths:
        if path == "manifest.yaml":
            message = "the manifest may not be changed by an engine"
            yield Violation(path, "manifest", message)
        elif path.split("/")[0] not in layers or "/" not in path:
            yield Violation(
                path, "layer", f"lies outside of the layers that may change ({allowed})"
            )


def _names(change: _Change) -> Iterator[Violation]:
    """New files and directories with names that not every system can hold."""
    added = [path for path in change.paths if path not in change.before]
    if not added:
        return
    known = set()
    for path in change.before:
        while path not in known:
            known.add(path)
            path = path.rpartition("/")[0]
    for path in added:
        here = ""
        for part in path.split("/"):
            here = f"{here}/{part}" if here else part
            broken = None if here in known else names.unportable(part, limit=200)
            if broken:
                yield Violation(path, "name", f"{part!r} can't be a file name here: {broken}")
                break


def _modes(change: _Change) -> Iterator[Violation]:
    for path in change.paths:
        mode = _mode(change.after, path)
        if path in change.after and mode not in (FILE, EXECUTABLE, LINK):
            what = "a git repository" if mode == 0o160000 else f"of the unknown mode {mode:o}"
            yield Violation(path, "mode", f"is {what}; only files and links can be kept")


def _links(change: _Change) -> Iterator[Violation]:
    """Links that leave. Where one came, went or changed, all are followed: the way of one may lead
    through another."""
    before, after = change.before, change.after
    if not any(LINK in (_mode(before, path), _mode(after, path)) for path in change.paths):
        return
    for path, (mode, _) in after.items():
        if mode != LINK:
            continue
        try:
            follow(path, after, change.read)
        except Leaves as leaves:
            if path in change.paths or _stayed(path, change):
                yield Violation(path, "link", f"is a link that {leaves}")


def _mode(entries: Entries, path: str) -> int:
    return entries.get(path, (0, ""))[0]


def _stayed(path: str, change: _Change) -> bool:
    try:
        follow(path, change.before, change.read)
    except Leaves:
        return False
    return True


def _sizes(change: _Change) -> Iterator[Violation]:
    added = 0
    for path in change.paths:
        old = change.before.get(path)
        mode, blob = change.after.get(path, (0, ""))
        added += old is None
        if mode not in (FILE, EXECUTABLE) or (old and old[1] == blob):
            continue
        size = len(change.read(blob))
        limit = MAX_FILE_BYTES
        if size > limit and old is not None and old[0] in (FILE, EXECUTABLE):
            limit = max(limit, len(change.read(old[1])))
        if size > limit:
            message = f"has {size:,} bytes; at most {limit:,} are allowed"
            yield Violation(path, "size", message)
    if added > MAX_ADDED_FILES:
        message = f"{added:,} files are added; at most {MAX_ADDED_FILES:,} are allowed"
        yield Violation(".", "count", message)
