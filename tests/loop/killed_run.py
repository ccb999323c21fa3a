"""Runs an evolution and kills its own process with SIGKILL at the N-th step it takes on disk.

usage: python -m tests.loop.killed_run WORKSPACE CYCLES N     (N = 0: count the steps, kill never)
"""

from __future__ import annotations

import os
import signal
import sys

WRITING = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "os.link", "os.symlink"}


def main() -> None:
    place, cycles, kill_at = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    from agent_evolve import Evolver

    evolver = Evolver(place)
    steps = 0

    def count(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal steps
        if event == "open":
            flags = arguments[2]
            writes = isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR)
            if not writes:
                return
        elif event not in WRITING:
            return
        steps += 1
        if steps == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(count)
    evolver.run(cycles=cycles)
    print(steps)


if __name__ == "__main__":
    main()
