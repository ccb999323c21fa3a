"""Runs an evolution with a scripted model and kills its own process right after the N-th event of
its journal, or right before it.

usage: python -m tests.loop.killed_at_event WORKSPACE CYCLES SCRIPT N before|after  (N = 0: never)
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any


def main() -> None:
    place, cycles, script, kill_at, when = sys.argv[1:]
    from agent_evolve import Evolver
    from agent_evolve.journal import Journal
    from agent_evolve.llm.scripted import ScriptedModel

    append, complete = Journal.append, ScriptedModel.complete
    events = calls = 0

    def counted(self: Journal, type: str, **data: Any) -> Any:
        nonlocal events
        events += 1
        if events == int(kill_at) and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        made = append(self, type, **data)
        if events == int(kill_at):
            os.kill(os.getpid(), signal.SIGKILL)
        return made

    def bought(self: ScriptedModel, *given: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        with open(f"{place}.calls", "a") as file:  # noqa: PTH123 - what was bought, killed or not
            file.write(f"{calls}\n")
        return complete(self, *given, **options)

    Journal.append = counted  # type: ignore[method-assign]
    ScriptedModel.complete = bought  # type: ignore[method-assign]
    model = f"scripted:{script}"
    Evolver(place, model=model, evolver_model=model).run(cycles=int(cycles))
    print(events)


if __name__ == "__main__":
    main()
