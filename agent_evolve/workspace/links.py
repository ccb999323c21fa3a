"""Where links lead within a tree that is not on any disk."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from . import line_merge
from .names import PRIVATE

FILE, EXECUTABLE, LINK = 0o100644, 0o100755, 0o120000
"""The three modes that git gives to what a layer may hold."""

Entries = Mapping[str, tuple[int, str]]
"""A tree: POSIX path relative to the workspace, to git mode and blob id."""
Read = Callable[[str], bytes]
"""Gives a blob's content by its id."""

_MAX_HOPS = 40
_WINDOWS = re.compile(r"[A-Za-z]:|.*\\")


class Leaves(Exception):
    """A link that does not stay in the workspace; the text says where it leads."""


def follow(path: str, entries: Entries, read: Read, passed: set[str] | None = None) -> str:
    """``path`` with every link in it followed, as a file system would, one component at a time.

    What it leads to need not exist. The links on the way are added to ``passed``. Raises ``Leaves``
    for a way that climbs above the root, is absolute, runs in circles, or ends at the root or in
    the history beside the layers.
    """
    done: list[str] = []
    todo = path.split("/")[::-1]
    hops = 0
    while todo:
        part = todo.pop()
        if part in ("", "."):
            continue
        if part == "..":
            if not done:
                raise Leaves("leads out of the workspace")
            done.pop()
            continue
        done.append(part)
        mode, blob = entries.get("/".join(done), (0, ""))
        if mode != LINK:
            continue
        hops += 1
        if passed is not None:
            passed.add("/".join(done))
        target = line_merge.decode(read(blob))
        if hops > _MAX_HOPS:
            raise Leaves("leads in a circle")
        if target.startswith("/") or _WINDOWS.match(target):
            raise Leaves(f"leads to {target!r}, which is no path relative to it")
        done.pop()
        todo += target.split("/")[::-1]
    if not done:
        raise Leaves("leads to the workspace as a whole")
    if done[0].casefold() in PRIVATE:
        raise Leaves(f"leads into {done[0]}/, which holds the history")
    return "/".join(done)


def content(path: str, entries: Entries, read: Read) -> bytes | None:
    """The bytes of the file that ``path`` leads to, ``None`` when it leads to none."""
    try:
        mode, blob = entries.get(follow(path, entries, read), (0, ""))
    except Leaves:
        return None
    return read(blob) if mode in (FILE, EXECUTABLE) else None
