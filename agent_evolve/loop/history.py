"""Questions about the past: observations, scores, versions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ..errors import VersionError
from ..journal import Journal
from ..types import CycleRecord, Observation
from ..workspace import Manifest
from ..workspace.repository import WorkspaceRepository
from .observer import batch_numbers, batch_path, in_order, read_batch
from .records import cycle_from, observation_from


@dataclass(frozen=True, slots=True)
class Summary:
    """Counts over all recorded train observations.

    ``mean_score`` is over the valid ones (``scored`` and ``agent_failed``), ``None`` without any.
    """

    total: int
    scored: int
    agent_failed: int
    invalid: int
    mean_score: float | None
    batches: int


class EvolutionHistory:
    """Query access to the past of a workspace. Holds train observations only.

    Args:
        workspace_path: the workspace directory.
        journal, repository: shared with a running loop; opened from the workspace otherwise.
    """

    def __init__(
        self,
        workspace_path: str | Path,
        *,
        journal: Journal | None = None,
        repository: WorkspaceRepository | None = None,
    ) -> None:
        self._root = Path(workspace_path)
        self._journal = journal or Journal(self._root / "evolution" / "journal.jsonl")
        self._given = repository

    @cached_property
    def _repository(self) -> WorkspaceRepository:
        if self._given is not None:
            return self._given
        manifest = Manifest.load(self._root)
        return WorkspaceRepository.open(self._root, manifest.layers, create=False)

    @property
    def cycles(self) -> list[CycleRecord]:
        """All finished cycles, oldest first."""
        return [cycle_from(event["record"]) for event in self._journal.events("cycle_finished")]

    @property
    def latest_cycle(self) -> int:
        """Number of the newest finished cycle, 0 before the first."""
        last = self._journal.last("cycle_finished")
        return int(last["record"]["cycle"]) if last else 0

    def get_observations(
        self, last_n_cycles: int | None = 3, only_failures: bool = False
    ) -> list[Observation]:
        """Train observations of the newest batches, oldest first. ``None`` means of all.

        With ``only_failures``: those that were scored or failed without success; invalid ones say
        nothing about the agent and are left out.
        """
        directory = self._root / "evolution" / "observations"
        numbers = batch_numbers(directory)
        if last_n_cycles is not None:
            numbers = numbers[-last_n_cycles:] if last_n_cycles > 0 else []
        orders = {event["cycle"]: event["tasks"] for event in self._journal.events("batch")}
        found = [
            observation_from(record)
            for number in numbers
            for record in in_order(read_batch(batch_path(directory, number)), orders.get(number))
        ]
        if only_failures:
            return [o for o in found if o.status != "invalid" and not o.success]
        return found

    def get_summary_stats(self) -> Summary:
        """Counts and mean over all flushed batches, read from the journal."""
        total = scored = failed = batches = 0
        points = 0.0
        for event in self._journal.events("batch"):
            batches += 1
            statuses = event["statuses"]
            total += len(statuses)
            scored += statuses.count("scored")
            failed += statuses.count("agent_failed")
            points += sum(score for score in event["scores"] if score is not None)
        valid = scored + failed
        mean = points / valid if valid else None
        return Summary(total, scored, failed, total - valid, mean, batches)

    def get_score_curve(self) -> list[tuple[int, float]]:
        """(cycle, score) of every measured cycle: its holdout mean, else its train batch mean."""
        return [
            (record.cycle, score)
            for record in self.cycles
            if (score := record.plateau_score) is not None
        ]

    def get_workspace_diff(self, a: str, b: str) -> str:
        """What ``git diff a b`` prints, for versions such as ``evo-1``."""
        return self._repository.diff(a, b)

    def read_file_at(self, ref: str, path: str) -> str:
        """A file's text at a version. Raises ``VersionError`` for an unknown version or path."""
        return self._repository.read_file_at(ref, path).decode("utf-8", "surrogateescape")

    def list_versions(self) -> list[str]:
        """Names of all versions, oldest first."""
        try:
            return self._repository.names()
        except VersionError:
            return []
