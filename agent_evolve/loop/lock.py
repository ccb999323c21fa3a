"""One run at a time per workspace."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..errors import WorkspaceBusyError
from ..workspace.location import evolution_directory


@contextmanager
def run_lock(root: Path, what: str) -> Iterator[None]:
    """Hold the workspace; raises ``WorkspaceBusyError`` naming the holder when somebody else does.

    The operating system drops the lock when its holder dies, however it dies. ``evolution/`` is
    made here, with a ``.gitignore`` that keeps all of it out of every repository.
    """
    from filelock import FileLock, Timeout

    directory = evolution_directory(root)
    holder = directory / "run.holder.json"
    lock = FileLock(directory / "run.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout as error:
        raise WorkspaceBusyError(
            f"{root} is in use by {_describe(holder)}",
            fix="wait for it to end, or stop that process",
        ) from error
    try:
        me = {"pid": os.getpid(), "host": socket.gethostname(), "what": what, "since": time.time()}
        holder.write_text(json.dumps(me), encoding="utf-8")
        yield
    finally:
        holder.unlink(missing_ok=True)
        lock.release()


def _describe(holder: Path) -> str:
    try:
        told = json.loads(holder.read_text(encoding="utf-8"))
        since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(told["since"]))
        return f"'{told['what']}', process {told['pid']} on {told['host']}, since {since}"
    except (OSError, ValueError, KeyError):
        return "another process"
