"""Locked paths and headings: what the manifest's ``locked:`` keeps from every engine."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence

from . import markdown
from .links import LINK, Entries, Leaves, Read, content, follow
from .violation import Violation


def violations(
    before: Entries, after: Entries, read: Read, changed: Sequence[str], locked: Iterable[str]
) -> Iterator[Violation]:
    """Changes to what is locked. A lock on a path covers everything below it and what links there
    lead to; one on a heading (``skills/x#Rules``) covers that section's bytes, blank lines at its
    end left out. A lock on something that ``before`` does not have protects nothing."""
    if not changed:
        return
    for lock in locked:
        path, heading = markdown.lock_file(lock)
        if heading:
            yield from _section(before, after, read, lock, path, heading)
            continue
        covered = _covered(path, before, read)
        for place in changed:
            if any(_below(place, root) for root in covered):
                yield Violation(place, "locked", f"is locked by {lock!r} in the manifest")


def _section(
    before: Entries, after: Entries, read: Read, lock: str, path: str, heading: str
) -> Iterator[Violation]:
    path = next((name for name in before if _nfc(name) == _nfc(path)), path)
    was = content(path, before, read)
    wanted = markdown.section(was, heading) if was is not None else None
    if wanted is None:
        return
    now = content(path, after, read)
    found = markdown.section(now, heading) if now is not None else None
    if found != wanted:
        what = "was removed" if found is None else "was changed"
        yield Violation(path, "locked", f"section {heading!r} {what}; {lock!r} is locked")


def _covered(path: str, before: Entries, read: Read) -> set[str]:
    """The path, and where it and the links below it lead."""
    covered = {path}
    ways = [path, *(p for p, (mode, _) in before.items() if mode == LINK and _below(p, path))]
    for way in ways:
        try:
            covered.add(follow(way, before, read))
        except Leaves:
            continue  # a link that leaves has nothing here to protect
    return covered


def _below(path: str, root: str) -> bool:
    path, root = _nfc(path), _nfc(root)
    return path == root or path.startswith(root + "/")


def _nfc(text: str) -> str:
    return unicodedata.normalize("NFC", text)
