"""Resource limits as the front part of a command line.

They are set by a program in front of the command rather than in a forked copy of this process,
which is not safe in a program with threads, and inside the sandbox, where the limit on processes
counts the sandbox's own.
"""

from __future__ import annotations

import os
import platform
import shutil
from pathlib import Path

from .types import Limits

_OPEN_FILES = 1024


def limiting_argv(limits: Limits, *, processes: int | None = None) -> list[str]:
    """What to put before a command so that it runs under ``limits``.

    ``processes`` replaces the number in ``limits``. With util-linux's ``prlimit`` all of them are
    set; elsewhere (macOS) the shell sets processor time and file size, the only two that hold
    there.
    """
    prlimit = shutil.which("prlimit")
    seconds = max(1, round(limits.cpu_seconds))
    if prlimit is None:
        blocks = max(1, limits.file_bytes // 512)
        script = f'ulimit -c 0; ulimit -t {seconds}; ulimit -f {blocks}; exec "$@"'
        return ["/bin/sh", "-c", script, "sh"]
    return [
        prlimit,
        f"--cpu={seconds}",
        f"--as={limits.memory_bytes}",
        f"--fsize={limits.file_bytes}",
        f"--nofile={_OPEN_FILES}",
        "--core=0",
        f"--nproc={limits.processes if processes is None else processes}",
        "--",
    ]


def process_allowance(limits: Limits, *, own_namespace: bool) -> int:
    """The number for RLIMIT_NPROC that lets a command have ``limits.processes``.

    Since Linux 5.14 a user namespace counts its own processes. Without one, or before, the kernel
    counts everything of the user, so what already runs is added.
    """
    if own_namespace and _kernel() >= (5, 14):
        return limits.processes
    return limits.processes + _threads_of(os.getuid())


def _kernel() -> tuple[int, int]:
    major, minor = platform.release().split("-")[0].split(".")[:2]
    return int(major), int(minor)


def _threads_of(uid: int) -> int:
    count = 0
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if process.stat().st_uid == uid:
                count += sum(1 for _ in (process / "task").iterdir())
        except OSError:
            continue  # ended meanwhile
    return count
