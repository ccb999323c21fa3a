"""Makes what a cycle decided true: tags, head, the user's files, and the record of the cycle."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..journal import Journal, encode
from ..types import CycleRecord
from ..workspace.repository import Tree, Version, WorkspaceRepository
from .records import cycle_record


@dataclass(frozen=True, slots=True)
class Landing:
    """The effects of a finished cycle, in the order that lets a killed process go on: the tag
    before the head moves, the head before the user's files, and ``cycle_finished`` last.

    ``head`` is the version that entered the cycle, ``tree`` its files.
    """

    root: Path
    repository: WorkspaceRepository
    journal: Journal
    head: Version
    tree: Tree

    def keep_candidate(self, record: CycleRecord, commit: str) -> None:
        """Tag a change that is not, or not yet, the head, so that it can be looked at."""
        name = f"candidate-{record.cycle}"
        self.repository.tag(name, commit, message(name, record))

    def tag(self, record: CycleRecord, candidate: str | None) -> None:
        """Tag ``evo-N``: the candidate's commit where it was accepted, else the head's."""
        commit = self.head.commit
        if candidate is not None and candidate != commit:
            if record.accepted:
                commit = candidate
            elif not self.repository.has(f"candidate-{record.cycle}"):
                self.keep_candidate(record, candidate)
        name = f"evo-{record.cycle}"
        self.repository.tag(name, commit, message(name, record))

    def land(self, record: CycleRecord, *, keep_edits: bool) -> tuple[Version, Tree]:
        """Make the head and the user's files what ``evo-N`` says, and record the cycle.

        ``keep_edits`` keeps what the user edited since the cycle began, on top.
        """
        version, tree = self.repository.version(f"evo-{record.cycle}"), self.tree
        if version.commit != self.head.commit:
            tree = self.repository.load(version.commit)
            moved = self.repository.head
            if moved is None or moved.commit != version.commit:
                self.repository.advance(version.commit, self.head.commit)
            self.repository.apply(tree, self.tree, keep_edits=keep_edits)
        self.journal.append("cycle_finished", sync=True, record=cycle_record(record))
        return version, tree


def message(name: str, record: CycleRecord) -> str:
    """A tag's message: a line for people, the engine's words, and the whole record as JSON."""
    lines = [f"{name}: {record.verdict}, {record.reason}", "", record.summary.strip(), ""]
    return "\n".join([*lines, encode(cycle_record(record)).decode()])
