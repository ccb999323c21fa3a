"""What a model call is made for: a cycle and its part, a version, a task.

    with attributed(cycle=3, part="solve", candidate=tree):
        with attributed(task="sum-1"):
            model.complete(request)

The ledger writes the scope into the record of each call. It travels in a context variable, so
work on other threads must run in a copy of the context (``loop.pool.run_all`` does that).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, Literal

Part = Literal["baseline", "solve", "evolve", "measure", "evaluate"]


@dataclass(frozen=True, slots=True)
class Scope:
    """What calls are made for now; empty where nobody has said.

    Attributes:
        cycle: number of the cycle, 0 for the measurement before the first one.
        part: the step of the run.
        candidate: tree hash of the version at work.
        task: id of the task.
        seed: seed of the attempt.
    """

    cycle: int | None = None
    part: Part | Literal[""] = ""
    candidate: str = ""
    task: str = ""
    seed: int | None = None

    def record(self) -> dict[str, Any]:
        """As it stands in the record of a call."""
        return {
            "cycle": self.cycle,
            "part": self.part,
            "candidate": self.candidate,
            "task": self.task,
            "seed": self.seed,
        }


_scope: ContextVar[Scope] = ContextVar("agent_evolve_scope", default=Scope())  # noqa: B039


def scope() -> Scope:
    """The scope of the calls made now, on this thread."""
    return _scope.get()


@contextmanager
def attributed(
    *,
    cycle: int | None = None,
    part: Part | None = None,
    candidate: str | None = None,
    task: str | None = None,
    seed: int | None = None,
) -> Iterator[None]:
    """Calls made inside are for this; what is left out stays as it is around."""
    told: dict[str, Any] = {
        "cycle": cycle,
        "part": part,
        "candidate": candidate,
        "task": task,
        "seed": seed,
    }
    changes = {name: value for name, value in told.items() if value is not None}
    token = _scope.set(replace(_scope.get(), **changes))
    try:
        yield
    finally:
        _scope.reset(token)
