"""Finds processes that a command left behind, also those that moved to a session of their own.

Two traces are followed on Linux: an environment variable that every child inherits, and the tree
of children seen while the command ran. A process that both cleared its environment and was never
seen as a child can hide from this; a sandbox's pid namespace leaves no such gap, which is why
commands of unknown intent run there. Elsewhere only the process group is known.
"""

from __future__ import annotations

import os
import secrets
import signal
import time
from pathlib import Path

_PROC = Path("/proc")
MARKER = "AGENT_EVOLVE_PROCESS"


def children(pid: int) -> list[int]:
    """The pids of the living children of a process; empty when it is gone or can't be read."""
    found: list[int] = []
    try:
        for thread in Path(f"/proc/{pid}/task").iterdir():
            text = (thread / "children").read_text()
            found += [int(child) for child in text.split()]
    except OSError:
        return found
    return found


def descendants(pid: int) -> list[int]:
    """``pid`` and everything below it, parents first."""
    found = [pid]
    for one in found:
        found += [child for child in children(one) if child not in found]
    return found


def resident_bytes(pid: int) -> int:
    """Memory held in RAM by a process and everything below it. Shared pages count for each."""
    pages = 0
    for one in descendants(pid):
        try:
            pages += int(Path(f"/proc/{one}/statm").read_text().split()[1])
        except (OSError, IndexError):
            continue
    return pages * os.sysconf("SC_PAGE_SIZE")


def _birth(pid: int) -> str | None:
    """When a process started, in kernel ticks: tells it from a later one with the same pid."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else fields[19]


class Leftovers:
    """Remembers what a command started, so that all of it can be ended."""

    def __init__(self) -> None:
        self.mark = secrets.token_hex(8)
        self._seen: dict[int, str] = {}

    @property
    def environment(self) -> dict[str, str]:
        """To be added to the command's environment."""
        return {MARKER: self.mark}

    def observe(self, pid: int) -> None:
        """Remember the present children of the command."""
        for child in descendants(pid)[1:]:
            birth = _birth(child)
            if birth is not None:
                self._seen[child] = birth

    def alive(self) -> list[int]:
        """Processes of the command that still run, whatever session they are in."""
        found = {pid for pid, birth in self._seen.items() if _birth(pid) == birth}
        needle = f"{MARKER}={self.mark}".encode()
        if _PROC.is_dir():
            for folder in _PROC.iterdir():
                if folder.name.isdigit() and int(folder.name) != os.getpid():
                    try:
                        environment = (folder / "environ").read_bytes()
                    except OSError:
                        continue  # ended meanwhile, or another user's
                    if needle in environment and _birth(int(folder.name)) is not None:
                        found.add(int(folder.name))
        return sorted(found)

    def end(self, grace_seconds: float) -> None:
        """Ask what is left to stop, wait, then kill until nothing is left."""
        left = self.alive()
        if not left:
            return
        _signal(left, signal.SIGTERM)
        deadline = time.monotonic() + grace_seconds
        while left and time.monotonic() < deadline:
            time.sleep(0.01)
            left = self.alive()
        for _ in range(50):  # a process may fork while it is being looked for
            left = self.alive()
            if not left:
                return
            _signal(left, signal.SIGKILL)
            time.sleep(0.01)


def _signal(pids: list[int], number: signal.Signals) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            continue  # ended meanwhile, or changed its user
