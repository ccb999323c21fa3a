"""Reading what a confined program left behind, without trusting it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

_MOST_BYTES = 1024**2


def read_written(path: Path) -> str | None:
    """The text of a file that a sandboxed program wrote, ``None`` where there is none.

    Links are not followed, as they could point at files of the host, and nothing but a regular file
    is opened, as a pipe would block. At most 1 MiB is read; what is not UTF-8 is replaced.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        return None
    with os.fdopen(descriptor, "rb") as file:
        return file.read(_MOST_BYTES).decode("utf-8", "replace").strip()
