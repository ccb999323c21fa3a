"""Reading and writing files below a workspace's root, and never anywhere else."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from ..errors import WorkspaceError
from . import line_merge, names
from .atomic import write_bytes


class WorkspaceFiles:
    """A root directory. The kinds of files in it are mixed in by ``AgentWorkspace``."""

    root: Path

    def __init__(self, root: str | Path) -> None:
        self.root = Path(os.path.abspath(Path(root).expanduser()))  # noqa: PTH100 - keeps links

    def _place(self, *parts: str) -> Path:
        """A path below the root, links followed and found to stay inside."""
        path = self.root.joinpath(*parts)
        names.inside(self.root, path)
        return path

    def _read(self, path: Path) -> bytes | None:
        """The bytes of a regular file (also through a link that stays inside), ``None`` when there
        is none."""
        names.inside(self.root, path)
        try:
            return path.read_bytes() if path.is_file() else None
        except OSError as error:
            raise unreadable(error) from error

    def _write(self, path: Path, data: bytes, *, mode: int | None = None) -> None:
        names.inside(self.root, path)
        if path.is_dir():
            raise WorkspaceError(f"{path} is a directory; a file was to be written there")
        try:
            write_bytes(path, data, mode=mode)
        except OSError as error:
            raise WorkspaceError(
                f"{path} can't be written: {error.strerror}; what was there is unchanged",
                fix="free some space, or correct the permissions",
            ) from error

    def _read_text(self, path: Path) -> str | None:
        data = self._read(path)
        return None if data is None else line_merge.decode(data)

    def _write_text(self, path: Path, text: str, *, mode: int | None = None) -> None:
        """Write a text; in an existing file the lines that did not change keep their ends."""
        old = self._read(path) or b""
        new = line_merge.merge(old, text, keep_last_end=False)
        if new != old or not path.exists():
            self._write(path, new, mode=mode)

    def _delete(self, path: Path, what: str, name: str, known: list[str]) -> None:
        """Remove one file, or the link itself where it is one."""
        names.inside(self.root, path.parent)
        try:
            path.unlink()
        except FileNotFoundError:
            raise self._unknown(what, name, known) from None
        except OSError as error:
            raise WorkspaceError(f"{path} can't be deleted: {error.strerror}") from error

    def _unknown(self, what: str, name: str, known: list[str]) -> WorkspaceError:
        return WorkspaceError(unknown(what, name, known))

    def _list_files(self, *parts: str) -> Iterator[str]:
        """Sorted names of the regular files of a directory; hidden ones, and those whose names no
        reader takes, left out."""
        folder = self._place(*parts)
        if not folder.is_dir():
            return
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError as error:
            raise unreadable(error) from error
        for entry in entries:
            if entry.name[0] != "." and not names.unsafe(entry.name) and entry.is_file():
                yield entry.name

    def _existing(self, name: str, folder: Path) -> str:
        """``name`` as it is spelt on disk, where that differs only in how accents are composed."""
        if name.isascii() or not folder.is_dir() or (folder / name).exists():
            return name
        return next((n for n in os.listdir(folder) if names.same(n, name)), name)


def unreadable(error: OSError) -> WorkspaceError:
    """What reading a file or directory failed with."""
    return WorkspaceError(
        f"{error.filename} can't be read: {error.strerror}", fix="correct its permissions"
    )


def unknown(what: str, name: str, known: list[str]) -> str:
    """``unknown skill 'verfy'. Did you mean 'verify'? Known: ...``"""
    from ..errors import nearest

    near = nearest(name, known)
    guess = f" Did you mean {near!r}?" if near else ""
    listing = ", ".join(known[:20]) + (f" and {len(known) - 20} more" if len(known) > 20 else "")
    return f"unknown {what} {name!r}.{guess} Known: {listing or 'none'}"
