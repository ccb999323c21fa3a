"""Locked paths and headings: what the manifest's ``locked:`` keeps from every engine."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator, Sequence

from . import markdown, names
from .links import LINK, Entries, Leaves, Read, content, follow
from .violation import Violation

_HIDDEN = re.compile(
    rb"^ {0,3}<(?:!--.*?(?:-->|\Z)|(pre|script|style|textarea)\b.*?(?:</\1>|\Z))",
    re.I | re.M | re.S,
)
"""Blocks of HTML in which Markdown sees no headings, only text to leave alone."""


def violations(
    before: Entries, after: Entries, read: Read, changed: Sequence[str], locked: Iterable[str]
) -> Iterator[Violation]:
    """Changes to what is locked. A lock on a path covers all that can be read through it: what lies
    below, and where links lead; nothing new may be made there either. One on a heading
    (``skills/x#Rules``) covers that section's bytes, blank lines at its end left out, and which
    headings it stands under; a heading that ``before`` does not have protects nothing."""
    if not changed:
        return
    for lock in locked:
        path, heading = markdown.lock_file(lock)
        path = _spelt(path, before)
        if heading:
            yield from _section(before, after, read, lock, path, heading)
            continue
        covered = _covered(path, before, read)
        for place in changed:
            if any(_below(place, root) for root in covered):
                yield Violation(place, "locked", f"is locked by {lock!r} in the manifest")


def _spelt(path: str, entries: Entries) -> str:
    """``path`` as the tree spells it, where accents are composed in another way."""
    if path.isascii():
        return path
    depth = path.count("/") + 1
    beginnings = ("/".join(name.split("/")[:depth]) for name in entries)
    return next((name for name in beginnings if names.same(name, path)), path)


def _section(
    before: Entries, after: Entries, read: Read, lock: str, path: str, heading: str
) -> Iterator[Violation]:
    was, now = content(path, before, read), content(path, after, read)
    wanted = markdown.section(was, heading) if was is not None else None
    if was is None or wanted is None:
        return
    found = markdown.section(now, heading) if now is not None else None
    if now is None or found is None:
        what = "was removed"
    elif found != wanted:
        what = "was changed"
    elif _around(now, heading) != _around(was, heading):
        what = "was moved under other headings"
    elif _shown(was, heading) == wanted != _shown(now, heading):
        what = "was put in a comment or a block of HTML"
    else:
        return
    yield Violation(path, "locked", f"section {heading!r} {what}; {lock!r} is locked")


def _around(data: bytes, heading: str) -> list[list[str]]:
    """The headings that each section of a name stands under, from the outermost."""
    found: list[list[str]] = []
    above: list[tuple[int, str]] = []
    for _, level, text in markdown.marks(data):
        while above and above[-1][0] >= level:
            above.pop()
        if markdown.folded(text) == markdown.folded(heading):
            found.append([name for _, name in above])
        above.append((level, text))
    return found


def _shown(data: bytes, heading: str) -> bytes | None:
    return markdown.section(_HIDDEN.sub(b"", data), heading)


def _covered(path: str, before: Entries, read: Read) -> set[str]:
    """The path, and all that is reached from there: links, where they lead, links below that."""
    links = [name for name, (mode, _) in before.items() if mode == LINK]
    covered: set[str] = set()
    todo = {path}
    while todo:
        here = todo.pop()
        covered.add(here)
        reached: set[str] = set()
        with contextlib.suppress(Leaves):  # what leads out has nothing here to protect but itself
            reached.add(follow(here, before, read, reached))
        reached.update(name for name in links if _below(name, here))
        todo |= reached - covered
    return covered


def _below(path: str, root: str) -> bool:
    return path == root or path.startswith(root + "/")
