"""Where a workspace's evolution stands, as a function of its journal. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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
        waiting: the ``review`` event of an opened cycle whose candidate waits for a person.
        reviewed: the answer to it, when it was given but not yet carried out.
        last_number: the highest number that a cycle has had, 0 before any.
        held: holdout mean of the head as last measured; ``None`` before, after a change of the
            head that no cycle made, and for another agent, model or grading.
        splits: ids of the tasks of each split, as the first run of the series had them.
        openings: how often the test split has been opened.
        looks: candidates that the present holdout has judged since the last accepted one.
    """

    records: tuple[CycleRecord, ...] = ()
    run_first: int | None = None
    run_over: bool = True
    opened: Event | None = None
    evolved: Event | None = None
    waiting: Event | None = None
    reviewed: Event | None = None
    last_number: int = 0
    looks: int = 0
    held: float | None = None
    splits: Mapping[str, Sequence[str]] | None = None
    openings: int = 0

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
    opened = evolved = waiting = reviewed = None
    last_number = looks = openings = 0
    held: float | None = None
    scored_by: str | None = None
    splits: dict[str, list[str]] | None = None
    for event in events:
        match event.type:
            case "run_started":
                if run_over:
                    run_first = event["first_cycle"]
                run_over = False
                if event.get("scored_by") != scored_by:
                    scored_by, held = event.get("scored_by"), None
                if splits is None:
                    names = ("train", "holdout", "test")
                    splits = {name: event[name] for name in names if name in event.data}
            case "series_started":
                splits, looks, held, run_over = None, 0, None, True
            case "head_measured":
                held = event["mean"]
            case "edited":
                held = None
            case "test_opened":
                openings += 1
            case "run_stopped":
                run_over = event["reason"] in FINISHED
            case "cycle_started":
                opened, evolved = event, None
                waiting = reviewed = None
                last_number = max(last_number, event["cycle"])
            case "evolved":
                evolved = event
            case "review":
                waiting = event
            case "reviewed":
                reviewed = event
            case "cycle_finished":
                record = cycle_from(event["record"])
                records.append(record)
                looks = looks_after(looks, record)
                held = held if record.holdout_score is None else record.holdout_score
                opened = evolved = waiting = reviewed = None
            case "rolled_back":
                held = None
                opened = evolved = waiting = reviewed = None
                run_over = True
    return RunState(
        tuple(records),
        run_first,
        run_over,
        opened,
        evolved,
        waiting,
        reviewed,
        last_number,
        looks,
        held,
        splits,
        openings,
    )


def looks_after(looks: int, record: CycleRecord) -> int:
    """How often the holdout has been asked since the last accepted change, after this cycle."""
    if record.accepted:
        return 0
    return looks + (record.verdict in ("rejected", "cannot_tell") and record.look > 0)
