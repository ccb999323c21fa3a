"""The engine's turn: it changes a copy of the workspace, and what it left there is looked at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..engines.base import EvolutionEngine, History, Trial
from ..errors import WorkspaceError
from ..journal import Event, Journal
from ..types import Observation, StepResult
from ..workspace import AgentWorkspace, Manifest
from ..workspace.layers import violations
from ..workspace.repository import Tree, Version, WorkspaceRepository
from .attempt import STOPS_THE_RUN, describe


@dataclass(frozen=True, slots=True)
class Evolved:
    """What came out of the engine's step. ``failure`` says why it can't be a candidate; the commit
    is then that of before, or that of the change which is refused."""

    commit: str
    tree: Tree
    result: StepResult
    failure: str = ""


@dataclass(frozen=True, slots=True)
class Evolution:
    """Lets an engine change the copy at ``candidate``; whatever it does there, only what the
    manifest lets change becomes a candidate."""

    engine: EvolutionEngine
    repository: WorkspaceRepository
    journal: Journal
    manifest: Manifest
    candidate: Path

    def step(
        self,
        number: int,
        before: Version,
        observations: Sequence[Observation],
        history: History,
        trial: Trial,
    ) -> Evolved:
        """Run the engine on a fresh copy of ``before``, commit what it left, and journal that.

        An engine that raises fails its cycle, not the run; errors that stop a run are raised.
        """
        tree = self.repository.load(before.commit)
        self.repository.materialise(tree, self.candidate, untouched=True)
        valid = [o for o in observations if o.status != "invalid"]
        failure, result = "", StepResult(False)
        try:
            workspace = AgentWorkspace(self.candidate, self.manifest)
            result = self.engine.step(workspace, valid, history, trial)
            if not isinstance(result, StepResult):
                failure = f"the engine returned a {type(result).__name__}, not a StepResult"
                result = StepResult(False)
        except STOPS_THE_RUN:
            raise
        except (Exception, SystemExit) as error:  # noqa: BLE001 - the user's code
            failure = f"the engine raised {describe(error)}"
        evolved = self._collect(number, before, tree, result, failure)
        self.journal.append(
            "evolved",
            cycle=number,
            commit=evolved.commit,
            tree=evolved.tree.id,
            summary=result.summary,
            metadata=result.metadata,
            stop=result.stop,
            failure=evolved.failure,
        )
        return evolved

    def earlier(self, done: Event) -> Evolved:
        """What an ``evolved`` event of an interrupted run says."""
        result = StepResult(True, done["summary"], dict(done["metadata"]), done["stop"])
        tree = self.repository.load(done["commit"])
        return Evolved(done["commit"], tree, result, done["failure"])

    def violations(self, before: Tree, after: Tree) -> str:
        """What a change may not do, in words; ``""`` when all is well."""
        found = violations(
            before.entries,
            after.entries,
            read=self.repository.read_blob,
            evolvable_layers=self.manifest.evolvable_layers,
            locked=self.manifest.locked,
        )
        return "; ".join(f"{v.path}: {v.message}" for v in found[:5])

    def _collect(
        self, number: int, before: Version, tree: Tree, result: StepResult, failure: str
    ) -> Evolved:
        """Commit what the engine left behind; after a failure that is what was there before."""
        failure = failure or self._strays()
        if failure:
            return Evolved(before.commit, tree, result, failure)
        try:
            after = self.repository.scan(self.candidate)
        except (OSError, ValueError, WorkspaceError) as error:
            return Evolved(before.commit, tree, result, describe(error))
        if after.private:
            failure = f"the engine wrote under a name kept for secrets: {after.private[0]}"
            return Evolved(before.commit, tree, result, failure)
        if after.id == tree.id:
            return Evolved(before.commit, tree, result)
        message = f"evo-{number}: {first_line(result.summary) or 'candidate'}"
        commit = self.repository.commit(after, message, [before.commit])
        return Evolved(commit, after, result, self.violations(tree, after))

    def _strays(self) -> str:
        """What lies beside the manifest and the layers, in words."""
        allowed = {"manifest.yaml", *self.manifest.layers}
        strays = sorted(item.name for item in self.candidate.iterdir() if item.name not in allowed)
        return f"the engine wrote outside the layers: {', '.join(strays[:5])}" if strays else ""


def first_line(text: str) -> str:
    """The start of a text, for a line that tells it."""
    return text.strip().split("\n", 1)[0][:100]
