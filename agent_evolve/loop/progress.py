"""What a run tells whoever watches it."""

from __future__ import annotations

from typing import Protocol

from ..types import CycleRecord


class Progress(Protocol):
    """Callbacks of a run. They are called from the thread that runs the loop, except ``advance``,
    which may come from a worker."""

    def say(self, text: str) -> None:
        """A sentence for a person."""

    def phase(self, cycle: int, name: str, total: int) -> None:
        """A part of a cycle begins: ``solve``, ``evolve``, ``holdout``; ``total`` steps of it."""

    def advance(self) -> None:
        """One step of the phase is done."""

    def cycle_done(self, record: CycleRecord) -> None:
        """A cycle was recorded."""


class Silent:
    """Tells nobody."""

    def say(self, text: str) -> None: ...
    def phase(self, cycle: int, name: str, total: int) -> None: ...
    def advance(self) -> None: ...
    def cycle_done(self, record: CycleRecord) -> None: ...
