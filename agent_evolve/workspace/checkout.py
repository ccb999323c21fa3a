"""Puts a version's files into a directory: a throwaway copy, or the user's own workspace."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import WorkspaceChangedError, WorkspaceError
from .atomic import is_leftover, write_bytes
from .links import EXECUTABLE, LINK
from .objects import object_id
from .scanner import Scanner, git_mode, read_file
from .tree import Entry, Tree, changed_paths

Read = Callable[[str], bytes]

_OTHER: Entry = (0, "")
"""What lies on disk is neither a file nor a link, or lies behind a link."""


class Copy:
    """A throwaway directory that holds exactly one version at a time.

    Only what differs from what lies there is written; a copy that can't be mended that way is made
    anew. Whatever else lies there is removed, caches too, as one would shadow a changed module.
    """

    def __init__(self, root: Path, layers: Sequence[str], scanner: Scanner) -> None:
        self._root, self._layers, self._scanner = root, tuple(layers), scanner

    def become(self, tree: Tree, read: Read, *, untouched: bool = False) -> None:
        """Make the directory hold this tree and nothing else; layers are there even when empty.

        ``untouched`` says that nothing has been written there since it was last scanned.
        """
        known = self._scanner.seen if untouched else None
        self._scanner.seen = None
        try:
            self._mend(tree, known or self._scanner.scan(), read)
        except (OSError, WorkspaceError):
            self._root.mkdir(parents=True, exist_ok=True)
            empty(self._root)
            self._mend(tree, self._scanner.scan(), read)
        self._scanner.seen = None

    def _mend(self, tree: Tree, here: Tree, read: Read) -> None:
        for name in os.listdir(self._root):
            if name != "manifest.yaml" and name not in self._layers:
                remove(self._root / name)
        for path in self._scanner.leftovers():
            remove(self._root / path)
        changed = changed_paths(here.entries, tree.entries) if here.id != tree.id else []
        for path in changed:
            if path in here.entries:
                remove(self._root / path)
                _remove_empty(self._root, path)
        for path in changed:
            if path in tree.entries:
                create(self._root / path, tree.entries[path], read)
        for layer in self._layers:
            if layer not in tree.entries and not (self._root / layer).is_dir():
                (self._root / layer).mkdir()


@dataclass(frozen=True, slots=True)
class Applied:
    """What was done to the user's files. ``kept`` names those left as somebody else edited them."""

    written: tuple[str, ...]
    kept: tuple[str, ...] = ()


def apply(root: Path, tree: Tree, base: Tree, read: Read, *, keep_edits: bool = False) -> Applied:
    """Bring the files of the user's workspace from ``base`` to ``tree``.

    Every file is looked at before any is touched. One that is neither as in ``base`` nor as in
    ``tree`` was edited by somebody else: then ``WorkspaceChangedError`` is raised and nothing is
    replaced or, with ``keep_edits``, that file stays as it is. Each file is replaced atomically;
    after a crash the same call does the rest.
    """
    todo: list[str] = []
    edited: list[str] = []
    changed = changed_paths(base.entries, tree.entries)
    _sweep({path.rpartition("/")[0] for path in changed}, root)
    for path in changed:
        wanted = tree.entries.get(path)
        found = _on_disk(root, path, base, tree)
        if found == _OTHER and _has_below(path, base, tree):
            found = None  # a directory that makes way for a file, or has taken its place
        if found == wanted:
            continue
        ours = _same(found, base.entries.get(path)) or _same(found, wanted)
        (todo if ours else edited).append(path)
    if edited and not keep_edits:
        raise WorkspaceChangedError(
            f"{len(edited)} files in {root} were edited while the run wanted to replace them, "
            f"the first is {edited[0]}; nothing was replaced",
            fix="run again to go on with your edits on top of what was found",
        )
    todo = [path for path in todo if not any(path.startswith(f"{kept}/") for kept in edited)]
    for path in todo:
        if path not in tree.entries:
            remove(root / path)
            _remove_empty(root, path)
    for path in todo:
        if path in tree.entries:
            _replace(root / path, tree.entries[path], read)
    return Applied(tuple(todo), tuple(edited))


def create(path: Path, entry: Entry, read: Read) -> None:
    """Write one file or link of a version where nothing lies yet; directories above are made."""
    mode, oid = entry
    if mode == LINK:
        path.parent.mkdir(parents=True, exist_ok=True)
        os.symlink(os.fsdecode(read(oid)), path)  # noqa: PTH211 - the target's bytes as they are
        return
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    permissions = 0o777 if mode == EXECUTABLE else 0o666
    try:
        descriptor = os.open(path, flags, permissions)
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, flags, permissions)
    with os.fdopen(descriptor, "wb") as file:
        file.write(read(oid))


def remove(path: Path) -> None:
    """Remove a file, a link itself, or a directory with all in it, whatever its permissions."""
    try:
        about = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return
    if not stat.S_ISDIR(about.st_mode):
        path.unlink()
        return

    def unlock(function: Callable[[str], object], name: str, _: object) -> None:
        with contextlib.suppress(OSError):
            os.chmod(os.path.dirname(name), 0o700)  # noqa: PTH101, PTH120
            os.chmod(name, 0o700, follow_symlinks=False)  # noqa: PTH101
        function(name)

    shutil.rmtree(path, onerror=unlock)


def empty(root: Path) -> None:
    """Remove everything in a directory."""
    with contextlib.suppress(OSError):
        root.chmod(0o700)
    for name in os.listdir(root):
        remove(root / name)


def _replace(path: Path, entry: Entry, read: Read) -> None:
    mode, oid = entry
    try:
        if path.is_symlink() or (mode == LINK and path.exists()):
            path.unlink()
        if mode == LINK:
            create(path, entry, read)
            return
        write_bytes(path, read(oid))
        now = path.stat().st_mode
        if (mode == EXECUTABLE) != bool(now & 0o100):
            path.chmod(now | (now & 0o444) >> 2 if mode == EXECUTABLE else now & ~0o111)
    except OSError as error:
        raise WorkspaceError(
            f"{path} can't be written: {error.strerror}; the version itself is kept in git",
            fix="free some space, or correct the permissions, and run again",
        ) from error


def _on_disk(root: Path, path: str, *trees: Tree) -> Entry | None:
    """What lies at a path, in git's terms: ``None`` for nothing, else an entry or ``_OTHER``."""
    parts = path.split("/")
    for depth in range(1, len(parts)):
        above = "/".join(parts[:depth])
        try:
            about = (root / above).lstat()
        except FileNotFoundError:
            return None
        if not stat.S_ISDIR(about.st_mode):
            ours = any(above in known.entries for known in trees)
            return None if ours else _OTHER  # a file that makes way, or has taken its place
    file = root / path
    try:
        about = file.lstat()
    except FileNotFoundError:
        return None
    if not (stat.S_ISREG(about.st_mode) or stat.S_ISLNK(about.st_mode)):
        return _OTHER
    return git_mode(about.st_mode), object_id("blob", read_file(str(file), about))


def _sweep(directories: set[str], root: Path) -> None:
    """Remove what a killed process left of its own writing."""
    for directory in directories:
        place = root / directory
        if place.is_dir() and not place.is_symlink():
            for name in filter(is_leftover, os.listdir(place)):
                (place / name).unlink(missing_ok=True)


def _has_below(path: str, *trees: Tree) -> bool:
    return any(other.startswith(f"{path}/") for tree in trees for other in tree.entries)


def _same(found: Entry | None, known: Entry | None) -> bool:
    """Equal in kind and content. Executable or not makes no difference here: some file systems
    can't say."""
    if found is None or known is None:
        return found is known
    return found[1] == known[1] and (found[0] == LINK) == (known[0] == LINK)


def _remove_empty(root: Path, path: str) -> None:
    """Remove directories that a removal left empty, down to but not including the layer."""
    while (path := path.rpartition("/")[0]) and "/" in path:
        try:
            (root / path).rmdir()
        except OSError:
            return
