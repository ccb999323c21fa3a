"""Writing a file so that a reader, a crash or a full disk never sees half of it."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
from pathlib import Path

_LEFTOVER = re.compile(r"\.agent-evolve-[0-9a-f]{16}\.tmp")


def is_leftover(name: str) -> bool:
    """Whether a file name is that of a temporary file whose writer was killed: it belongs to nobody
    and is left out of listings and snapshots."""
    return _LEFTOVER.fullmatch(name) is not None


def write_bytes(path: Path, data: bytes, *, mode: int | None = None) -> None:
    """Replace the content of ``path`` in one step, keeping the mode of an existing file.

    A link is written through, never replaced. Directories above are made. ``mode`` is that of a
    new file (default: 0o666 less the umask). On any error the old file is untouched and no
    temporary file is left behind.
    """
    target = os.path.realpath(path)
    folder = os.path.dirname(target)  # noqa: PTH120 - realpath gives a string
    os.makedirs(folder, exist_ok=True)  # noqa: PTH103
    try:
        keep: int | None = os.stat(target).st_mode & 0o7777  # noqa: PTH116
    except FileNotFoundError:
        keep = mode
    temporary = os.path.join(folder, f".agent-evolve-{secrets.token_hex(8)}.tmp")  # noqa: PTH118
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    fd = os.open(temporary, flags, 0o666)
    try:
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(fd, view) :]
            if keep is not None:
                os.chmod(temporary, keep)  # noqa: PTH101
            os.fsync(fd)
        finally:
            os.close(fd)
        os.replace(temporary, target)  # noqa: PTH105
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)  # noqa: PTH108
        raise


def append_line(path: Path, line: bytes) -> None:
    """Add one line (given without its end) to a file, starting on a line of its own.

    A last line without an end, torn by a crash or written by hand, keeps its bytes: the new line
    begins after it. The file's own line ends are used. An error takes back what was written. The
    line survives a killed process; it is not forced to the disk, which costs more than it is worth.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0), 0o666)
    try:
        size = os.fstat(fd).st_size
        os.lseek(fd, max(0, size - 2), os.SEEK_SET)
        tail = os.read(fd, 2)
        end = b"\r\n" if tail == b"\r\n" else b"\n"
        data = (b"" if not tail or tail.endswith(b"\n") else end) + line + end
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(fd, view) :]
        except OSError:
            os.ftruncate(fd, size)
            raise
    finally:
        os.close(fd)
