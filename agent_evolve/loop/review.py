"""A person's yes or no to a candidate that waits for it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ..errors import ConfigurationError
from ..journal import Event, Journal
from ..types import CycleRecord
from ..workspace.repository import WorkspaceRepository
from .edits import adopt_edits
from .landing import Landing
from .records import cycle_from
from .state import RunState, fold


def answer(
    root: Path,
    repository: WorkspaceRepository,
    journal: Journal,
    cycle: int,
    *,
    approved: bool,
    because: str = "",
) -> CycleRecord:
    """Finish the cycle that waits: make its candidate the head, or keep the head and remember why.

    Edits made by hand in the meantime are kept, as a version on top. The caller holds the run lock.
    Raises ``ConfigurationError`` when this cycle does not wait.
    """
    state = fold(journal.events())
    waiting = state.waiting
    if waiting is None or waiting["record"]["cycle"] != cycle:
        raise ConfigurationError(f"cycle {cycle} waits for nobody", fix=_fix(waiting))
    if state.reviewed is None:
        journal.append("reviewed", sync=True, cycle=cycle, approved=approved, because=because)
        state = fold(journal.events())
    elif state.reviewed["approved"] != approved:
        said = "approved" if state.reviewed["approved"] else "rejected"
        raise ConfigurationError(
            f"cycle {cycle} has been {said} already",
            fix=f"agent-evolve rollback evo-{cycle - 1} undoes a yes",
        )
    return finish_reviewed(root, repository, journal, state)


def finish_reviewed(
    root: Path, repository: WorkspaceRepository, journal: Journal, state: RunState
) -> CycleRecord:
    """Carry out the answer that the journal holds, from wherever a killed process left it."""
    waiting, reviewed, opened = state.waiting, state.reviewed, state.opened
    assert waiting is not None
    assert reviewed is not None
    assert opened is not None
    record = _answered(cycle_from(waiting["record"]), reviewed)
    head = repository.version(opened["head"])
    landing = Landing(root, repository, journal, head, repository.load(head.commit))
    if not repository.has(f"evo-{record.cycle}"):
        landing.tag(record, waiting["commit"])
    version, _ = landing.land(record, keep_edits=True)
    adopt_edits(root, repository, journal, version, repository.scan(root))
    repository.settle()
    return record


def _answered(record: CycleRecord, reviewed: Event) -> CycleRecord:
    if reviewed["approved"]:
        gated = record.candidate_score is not None
        return replace(
            record,
            verdict="accepted" if gated else "ungated",
            reason=f"approved by a person; {record.reason}",
            holdout_score=record.candidate_score if gated else record.holdout_score,
        )
    because = str(reviewed["because"]).strip()
    words = f"a person said no: {because}" if because else "a person said no"
    return replace(
        record, verdict="rejected", reason=f"{words}; {record.reason}", because=because or words
    )


def _fix(waiting: Event | None) -> str:
    if waiting is None:
        return "see which cycle waits: agent-evolve status"
    cycle = waiting["record"]["cycle"]
    return f"cycle {cycle} does: agent-evolve approve {cycle}"
