"""Finds the tree of a directory, reading again only what changed since it was last asked."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import WorkspaceError
from .left_out import is_rebuilt, is_secret
from .links import EXECUTABLE, FILE, LINK
from .objects import EMPTY_TREE, tree_bytes
from .tree import DIRECTORY, Entry, Tree

MAX_BYTES = 64 * 1024**2
"""A layer may not hold a file above this; versions would become too large to work with."""

_SETTLED_NS = 50_000_000
"""A time stamp this much older than the moment of reading can't hide a later change: file systems
count in steps of some milliseconds, and two writes within one step look the same."""

Signature = tuple[int, int, int, int]
Put = Callable[[str, bytes], str]


@dataclass(slots=True)
class _Node:
    """A directory as last seen."""

    signature: Signature | None = None
    listed: bool = False
    files: dict[str, tuple[Signature, Entry]] = field(default_factory=dict)
    nodes: dict[str, _Node] = field(default_factory=dict)
    rest: list[str] = field(default_factory=list)
    """Names that are not kept: caches, secrets, pipes."""
    tree: str = ""
    flat: dict[str, Entry] = field(default_factory=dict)


class Scanner:
    """The manifest and the layers of one directory.

    A file is taken as unchanged when its inode, size and times are the same and those times are
    settled; a directory's listing likewise. Links are never followed.

    Args:
        put: stores an object and returns its id, or only computes it.
    """

    def __init__(self, root: Path, layers: Sequence[str], put: Put) -> None:
        self.root = root
        self._top = {"manifest.yaml", *layers}
        self._put = put
        self._node = _Node()
        self._last: Tree | None = None
        self.seen: Tree | None = None
        """What the last scan found; set to ``None`` by whoever changes files after it."""

    def scan(self) -> Tree:
        """The tree as it is now.

        Raises ``WorkspaceError`` for a file that can't be read or is above ``MAX_BYTES``.
        """
        try:
            changed = self._directory(self._node, str(self.root), "")
        except FileNotFoundError as error:
            raise WorkspaceError(
                f"{error.filename} disappeared while it was read", fix="run again"
            ) from error
        except OSError as error:
            raise WorkspaceError(
                f"{error.filename} can't be read: {error.strerror}",
                fix="correct its permissions, or move it out of the layers",
            ) from error
        if changed or self._last is None:
            node = self._node
            private = tuple(sorted(path for path in self.leftovers() if is_secret(_name(path))))
            self._last = Tree(node.tree or EMPTY_TREE, node.flat, private)
        self.seen = self._last
        return self._last

    def leftovers(self) -> list[str]:
        """Paths that lay there at the last scan and are in no tree: caches, secrets, pipes, and
        directories without a file; layers themselves are left out."""
        found: list[str] = []
        todo = [("", self._node)]
        while todo:
            prefix, node = todo.pop()
            for name in node.rest:
                found.append(prefix + name)
            for name, child in node.nodes.items():
                if child.tree or not prefix:
                    todo.append((f"{prefix}{name}/", child))
                else:
                    found.append(prefix + name)
        return found

    def _directory(self, node: _Node, path: str, prefix: str) -> bool:
        """Bring a node up to date; whether its tree changed."""
        now = time.time_ns()
        about = os.lstat(path)
        signature = (about.st_ctime_ns, about.st_mtime_ns, 0, about.st_ino)
        changed = not node.listed or node.signature != signature
        if changed:
            self._list(node, path, prefix)
            settled = max(about.st_ctime_ns, about.st_mtime_ns) < now - _SETTLED_NS
            node.signature, node.listed = (signature if settled else None), True
            changed = True
        for name, (known, entry) in node.files.items():
            file = f"{path}/{name}"
            about = os.lstat(file)
            if known == (about.st_ctime_ns, about.st_mtime_ns, about.st_size, about.st_ino):
                continue
            fresh = self._file(file, about)
            node.files[name] = fresh
            changed = changed or fresh[1] != entry
        for name, child in node.nodes.items():
            if self._directory(child, f"{path}/{name}", f"{prefix}{name}/"):
                changed = True
        if changed:
            changed = self._rebuild(node, prefix)
        return changed

    def _list(self, node: _Node, path: str, prefix: str) -> None:
        files: dict[str, tuple[Signature, Entry]] = {}
        nodes: dict[str, _Node] = {}
        rest: list[str] = []
        unknown: tuple[Signature, Entry] = ((0, 0, 0, 0), (0, ""))
        with os.scandir(path) as listing:
            for item in listing:
                name = item.name
                if not prefix and name not in self._top:
                    continue
                if is_rebuilt(name) or is_secret(name):
                    rest.append(name)
                elif item.is_dir(follow_symlinks=False):
                    nodes[name] = node.nodes.get(name) or _Node()
                elif item.is_symlink() or item.is_file(follow_symlinks=False):
                    files[name] = node.files.get(name, unknown)
                else:
                    rest.append(name)
        node.files, node.nodes, node.rest = files, nodes, rest

    def _file(self, path: str, about: os.stat_result) -> tuple[Signature, Entry]:
        now = time.time_ns()
        signature = (about.st_ctime_ns, about.st_mtime_ns, about.st_size, about.st_ino)
        settled = max(about.st_ctime_ns, about.st_mtime_ns) < now - _SETTLED_NS
        entry = (git_mode(about.st_mode), self._put("blob", read_file(path, about)))
        return (signature if settled else (0, 0, 0, 0)), entry

    def _rebuild(self, node: _Node, prefix: str) -> bool:
        entries = [(name, *entry) for name, (_, entry) in node.files.items()]
        flat = {prefix + name: entry for name, (_, entry) in node.files.items()}
        for name, child in node.nodes.items():
            if child.tree:
                entries.append((name, DIRECTORY, child.tree))
                flat.update(child.flat)
        before = node.tree
        node.flat = flat
        node.tree = self._put("tree", tree_bytes(entries)) if entries else ""
        return node.tree != before


def git_mode(mode: int) -> int:
    """Git's mode of a file or link."""
    if stat.S_ISLNK(mode):
        return LINK
    return EXECUTABLE if mode & 0o100 else FILE


def read_file(path: str, about: os.stat_result) -> bytes:
    """What a version keeps of a file: its bytes or, of a link, where it leads."""
    if stat.S_ISLNK(about.st_mode):
        return os.fsencode(os.readlink(path))  # noqa: PTH115
    if about.st_size > MAX_BYTES:
        raise WorkspaceError(
            f"{path} has {about.st_size / 1024**2:.0f} MiB; a layer holds files "
            f"up to {MAX_BYTES // 1024**2} MiB",
            fix="keep it outside of the layers and refer to it",
        )
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as file:
        return file.read(MAX_BYTES + 1)


def _name(path: str) -> str:
    return path.rpartition("/")[2]
