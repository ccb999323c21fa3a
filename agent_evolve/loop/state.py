"""Where a workspace's evolution stands, as a function of its journal. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..journal import Event
from ..types import CycleRecord
from .records import cycle_from

FINISHED = ("cycles", "plateau", "engine")
"""Reasons for which a run is over; after any other the next run goes on with it."""


@dataclass(frozen=True, slots=True)
class RunState:
    """What the journal says.

    Attributes:
        records: every finished cycle, oldest first.
        run_first: number of the first cycle of the newest run, ``None`` before any run.
        run_over: whether the newest run ended by itself; an interrupted one is continued.
        opened: the ``cycle_started`` event of a cycle that has not finished.
        evolved: its ``evolved`` event, when the engine had finished.
        last_number: the highest number that a cycle has had, 0 before any.
        looks: candidates that the present holdout has judged since the last accepted one.
    """

    records: tuple[CycleRecord, ...] = ()
    run_first: int | None = None
    run_over: bool = True
    opened: Event | None = None
    evolved: Event | None = None
    last_number: int = 0
    looks: int = 0

    @property
    def next_cycle(self) -> int:
        if self.opened is not None:
            return int(self.opened["cycle"])
        return self.last_number + 1


def fold(events: Iterable[Event]) -> RunState:
    """The state after these events."""
    records: list[CycleRecord] = []
    run_first: int | None = None
    run_over = True
    opened = evolved = None
    last_number = looks = 0
    holdout: list[str] | None = None
    for event in events:
        match event.type:
            case "run_started":
                if run_over:
                    run_first = event["first_cycle"]
                run_over = False
                if event.get("holdout") != holdout:
                    holdout, looks = event.get("holdout"), 0
            case "run_stopped":
                run_over = event["reason"] in FINISHED
            case "cycle_started":
                opened, evolved = event, None
                last_number = max(last_number, event["cycle"])
            case "evolved":
                evolved = event
            case "cycle_finished":
                record = cycle_from(event["record"])
                records.append(record)
                looks = looks_after(looks, record)
                opened = evolved = None
            case "rolled_back":
                opened = evolved = None
                run_over = True
    return RunState(tuple(records), run_first, run_over, opened, evolved, last_number, looks)


def looks_after(looks: int, record: CycleRecord) -> int:
    """How often the holdout has been asked since the last accepted change, after this cycle."""
    if record.accepted:
        return 0
    return looks + (record.verdict in ("rejected", "cannot_tell") and record.look > 0)
