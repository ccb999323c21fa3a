"""Names that lead to commits: read as git keeps them, written under git's own locks."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

from ..errors import VersionError

_PATIENCE = 2.0
"""Seconds a lock of somebody else may last. Ours last microseconds and only one run at a time makes
them, so one that is older was left by a killed process."""


class References:
    """The references of one git directory: loose files, and ``packed-refs`` behind them."""

    def __init__(self, git_dir: Path) -> None:
        self._git_dir = git_dir
        self._packed: tuple[tuple[int, int], dict[str, str]] = ((0, 0), {})

    def get(self, name: str) -> str | None:
        """The object id that a full name such as ``refs/tags/evo-1`` holds, else ``None``."""
        try:
            value = (self._git_dir / name).read_text("ascii").strip()
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return self._from_pack().get(name)
        except (OSError, UnicodeDecodeError) as error:
            raise VersionError(f"{self._git_dir / name} can't be read: {error}") from error
        if value.startswith("ref: "):
            return self.get(value[5:])
        if len(value) != 40:
            raise VersionError(
                f"{self._git_dir / name} is damaged: it holds {value[:60]!r}",
                fix="write the id of a commit there; 'agent-evolve log' lists them",
            )
        return value

    def names(self, prefix: str) -> list[str]:
        """What comes after ``prefix`` in the names directly below it."""
        found = {name[len(prefix) :] for name in self._from_pack() if name.startswith(prefix)}
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            found.update(os.listdir(self._git_dir / prefix))
        return sorted(name for name in found if not name.endswith(".lock"))

    def set(self, name: str, oid: str, expected: str | None) -> None:
        """Make a name lead to an object, if it holds ``expected`` (``None``: does not exist).

        Raises ``VersionError`` when it holds something else, or can't be written.
        """
        path = self._git_dir / name
        lock = path.with_name(path.name + ".lock")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = _take(lock)
            try:
                try:
                    now = self.get(name)
                    if now != expected:
                        raise VersionError(
                            f"{name} is {now or 'missing'}, not {expected or 'missing'}: "
                            "something else changed it",
                            fix="run again",
                        )
                    os.write(descriptor, oid.encode() + b"\n")
                    os.fsync(descriptor)
                finally:
                    os.close(descriptor)
                os.replace(lock, path)  # noqa: PTH105
            except BaseException:
                lock.unlink(missing_ok=True)
                raise
        except OSError as error:
            raise VersionError(
                f"{path} can't be written: {error.strerror}",
                fix="free some space, or correct the permissions, and run again",
            ) from error

    def _from_pack(self) -> dict[str, str]:
        path = self._git_dir / "packed-refs"
        try:
            about = path.stat()
        except FileNotFoundError:
            return {}
        stamp = (about.st_mtime_ns, about.st_ino)
        if self._packed[0] != stamp:
            found = {}
            for line in path.read_text("utf-8", "replace").splitlines():
                oid, _, name = line.partition(" ")
                if len(oid) == 40 and name:
                    found[name] = oid
            self._packed = (stamp, found)
        return self._packed[1]


def _take(lock: Path) -> int:
    """Make the lock file, waiting for another holder and taking over from a dead one."""
    give_up = time.monotonic() + _PATIENCE
    while True:
        try:
            return os.open(lock, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        except FileExistsError:
            if time.monotonic() > give_up:
                lock.unlink(missing_ok=True)
                give_up += _PATIENCE
            time.sleep(0.02)
