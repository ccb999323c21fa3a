"""Lends files to the user a sandbox runs as, and takes them back.

Root is exempt from the limit on processes, so a sandbox started by root runs its command as another
user, who must be able to write the throwaway copy. Afterwards every file belongs to whom it did
before, new ones to the owner of the copy, so that later code and git see nothing unusual.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path


@contextmanager
def lent(paths: Sequence[Path], uid: int) -> Iterator[None]:
    """Inside, everything under ``paths`` that belonged to its top's owner belongs to ``uid``.

    No process of ``uid`` may be alive when the block ends. Links are never followed.
    """
    owners = [(path, os.lstat(path)) for path in paths]
    try:
        for path, owner in owners:
            _change_owner(path, owner.st_uid, uid, uid)
        yield
    finally:
        for path, owner in owners:
            if path.exists():
                _change_owner(path, uid, owner.st_uid, owner.st_gid)


@contextmanager
def readable_by_others(paths: Sequence[Path]) -> Iterator[dict[Path, Path]]:
    """For each path the place to read it from: itself, or a copy where another user may not look.

    Only the rights below the path count, as its parents are not seen inside a sandbox.
    """
    with ExitStack() as stack:
        sources: dict[Path, Path] = {}
        for path in paths:
            sources[path] = path
            if not _open_to_others(path):
                folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="readable-")))
                sources[path] = _open_copy(path, folder / "copy")
        yield sources


def _change_owner(top: Path, of: int, uid: int, gid: int) -> None:
    """Give ``top`` and what lies below to ``uid``, where it belongs to ``of``.

    Walks with one open directory and relative names: neither the depth of the tree nor the length
    of its paths is limited by this process.
    """
    info = os.lstat(top)
    if not stat.S_ISDIR(info.st_mode):
        if info.st_uid == of:
            os.chown(top, uid, gid, follow_symlinks=False)
        return
    here = os.open(top, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        if info.st_uid == of:
            os.fchown(here, uid, gid)
        pending = [_change_entries(here, of, uid, gid)]
        while pending:
            if pending[-1]:
                flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
                below = os.open(pending[-1].pop(), flags, dir_fd=here)
                os.close(here)
                here = below
                pending.append(_change_entries(here, of, uid, gid))
            else:
                pending.pop()
                if pending:
                    above = os.open("..", os.O_RDONLY | os.O_DIRECTORY, dir_fd=here)
                    os.close(here)
                    here = above
    finally:
        os.close(here)


def _change_entries(folder: int, of: int, uid: int, gid: int) -> list[str]:
    """Change what lies directly in an open directory; the names of its subdirectories."""
    directories = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.stat(follow_symlinks=False).st_uid == of:
                os.chown(entry.name, uid, gid, dir_fd=folder, follow_symlinks=False)
            if entry.is_dir(follow_symlinks=False):
                directories.append(entry.name)
    return directories


def _open_to_others(top: Path) -> bool:
    pending = [top]
    while pending:
        path = pending.pop()
        info = path.lstat()
        if stat.S_ISLNK(info.st_mode):
            continue
        if stat.S_ISDIR(info.st_mode):
            if not (info.st_mode & stat.S_IROTH and info.st_mode & stat.S_IXOTH):
                return False
            pending += path.iterdir()
        elif not info.st_mode & stat.S_IROTH:
            return False
    return True


def _open_copy(source: Path, target: Path) -> Path:
    if source.is_dir():
        shutil.copytree(source, target, symlinks=True, ignore=_special_files)
    else:
        shutil.copy(source, target)
    for path in [target, *target.rglob("*")] if target.is_dir() else [target]:
        if not path.is_symlink():
            path.chmod(path.stat().st_mode | (0o055 if path.is_dir() else 0o044))
    return target


def _special_files(folder: str, names: list[str]) -> set[str]:
    """Pipes, sockets and devices: copying one would block or fail."""
    kept = (stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK)
    return {n for n in names if stat.S_IFMT((Path(folder) / n).lstat().st_mode) not in kept}
