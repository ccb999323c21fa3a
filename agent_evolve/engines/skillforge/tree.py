"""The files of a workspace's layers, as values."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ...workspace.left_out import is_rebuilt
from ...workspace.links import EXECUTABLE, FILE, LINK, Entries, Read

SPECIAL = 0
"""The mode of what is neither a file nor a link: a pipe, a socket, a device."""

PROMPT = "prompts/system.md"
DRAFTS = "skills/_drafts/"


@dataclass(frozen=True, slots=True)
class Entry:
    """A file: git's mode and its bytes. The bytes of a link say where it leads."""

    mode: int
    data: bytes

    @classmethod
    def of(cls, data: bytes, *, like: Entry | None = None) -> Entry:
        """A file with this content, executable when ``like`` is."""
        return cls(EXECUTABLE if like and like.mode == EXECUTABLE else FILE, data)

    @property
    def is_file(self) -> bool:
        return self.mode in (FILE, EXECUTABLE)

    def text(self) -> str | None:
        """The file's text, or ``None`` when it is not UTF-8, or not a file."""
        if not self.is_file:
            return None
        try:
            return self.data.decode("utf-8")
        except UnicodeDecodeError:
            return None


Tree = Mapping[str, Entry]
"""Relative path with forward slashes to what lies there; empty directories don't count."""


def scan(root: Path, layers: Iterable[str]) -> dict[str, Entry]:
    """The files under the layers of a workspace, in path order, without caches. Links are never
    followed, pipes and devices never opened; what was made unreadable is made readable again."""
    found: dict[str, Entry] = {}
    for layer in layers:
        _scan(root / layer, layer, found)
    return dict(sorted(found.items()))


def _scan(path: Path, name: str, found: dict[str, Entry]) -> None:
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if stat.S_ISLNK(mode):
        found[name] = Entry(LINK, os.fsencode(path.readlink()))
    elif stat.S_ISDIR(mode):
        _allow(path, mode, stat.S_IRWXU)
        for child in path.iterdir():
            if not is_rebuilt(child.name):
                _scan(child, f"{name}/{child.name}", found)
    elif stat.S_ISREG(mode):
        _allow(path, mode, stat.S_IRUSR | stat.S_IWUSR)
        found[name] = Entry(EXECUTABLE if mode & stat.S_IXUSR else FILE, path.read_bytes())
    else:
        found[name] = Entry(SPECIAL, b"")


def _allow(path: Path, mode: int, rights: int) -> None:
    if mode & rights != rights and os.getuid() in (0, path.lstat().st_uid):
        path.chmod(stat.S_IMODE(mode) | rights)


def measure(root: Path, layers: Iterable[str]) -> tuple[int, int]:
    """Number and bytes of all files under the layers, without reading any."""
    files = size = 0
    for layer in layers:
        for folder, _, names in os.walk(root / layer):
            for name in names:
                files += 1
                size += os.lstat(os.path.join(folder, name)).st_size  # noqa: PTH118
    return files, size


def as_blobs(before: Tree, after: Tree) -> tuple[Entries, Entries, Read]:
    """Two trees in the form in which ``workspace.layers`` compares them."""
    blobs: dict[str, bytes] = {}

    def entries(tree: Tree) -> Entries:
        found = {}
        for path, entry in tree.items():
            digest = hashlib.sha256(entry.data).hexdigest()
            blobs[digest] = entry.data
            found[path] = (entry.mode, digest)
        return found

    return entries(before), entries(after), blobs.__getitem__


def skill_of(path: str) -> str | None:
    """The skill a path belongs to, ``None`` for drafts and other layers."""
    parts = path.split("/")
    if len(parts) < 3 or parts[0] != "skills" or parts[1].startswith("_"):
        return None
    return parts[1]


def draft_of(path: str) -> str | None:
    """The name of the draft that lies at a path."""
    if path.startswith(DRAFTS) and path.endswith(".md") and path.count("/") == 2:
        return path[len(DRAFTS) : -len(".md")]
    return None


def skill_names(tree: Tree) -> set[str]:
    """Directories under ``skills/`` that hold a SKILL.md."""
    return {
        name
        for path in tree
        if path.endswith("/SKILL.md") and path.count("/") == 2 and (name := skill_of(path))
    }
