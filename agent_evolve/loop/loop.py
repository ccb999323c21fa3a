"""The evolution loop: cycles until the target, a plateau, a cap, or trouble."""

from __future__ import annotations

import contextlib
import secrets
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..agents.base import BaseAgent
from ..benchmarks.base import BenchmarkAdapter
from ..config import EvolveConfig
from ..engines.base import EvolutionEngine
from ..errors import AgentEvolveError, BudgetExceeded, ConfigurationError
from ..journal import Journal
from ..llm import Ledger
from ..types import CycleRecord, EvolutionResult
from ..workspace import Manifest
from ..workspace.repository import Version, WorkspaceRepository
from .cycle import CycleRunner, Places
from .edits import adopt_edits, snapshot
from .estimate import estimate, words
from .history import EvolutionHistory
from .leaks import Secrets, secrets_of
from .measure import Measurer
from .observer import Observer
from .plateau import converged, failing
from .progress import Progress, Silent
from .records import cycle_from
from .review import finish_reviewed
from .scores import ScoreCache, agent_fingerprint, fingerprint, task_fingerprint
from .splits import Splits, check_unchanged, choose_splits, gate_of
from .state import RunState, fold
from .stopping import Stopped, current_stop

PREFIX = "agent-evolve-run-"


@dataclass(slots=True)
class EvolutionLoop:
    """Runs the evolution of one workspace.

    ``Evolver`` builds one from names and paths; build it yourself to hand in your own parts.

    Args:
        make_agent: gives the agent loaded from a directory.
        root: the user's workspace; its files change only when a version is accepted.
        repository: the versions of ``root``; the caller holds the run lock.
    """

    make_agent: Callable[[Path], BaseAgent]
    benchmark: BenchmarkAdapter
    engine: EvolutionEngine
    config: EvolveConfig
    root: Path
    manifest: Manifest
    repository: WorkspaceRepository
    journal: Journal
    ledger: Ledger
    progress: Progress = field(default_factory=Silent)

    def run(self, cycles: int, *, new: bool = False) -> EvolutionResult:
        """Run ``cycles`` cycles, or those that an interrupted run still owes.

        ``new`` begins a new series: the splits may be others than those of the first run, and looks
        at the holdout are counted from the start.

        Raises ``ConfigurationError`` and ``BenchmarkError`` before anything is spent where that can
        be known; ``KeyboardInterrupt`` after recording where the run stopped. Reaching a cap is
        no exception: the result says ``stopped == "budget"``.
        """
        state = fold(self.journal.events())
        if state.reviewed is not None:  # killed while it was carried out
            finish_reviewed(self.root, self.repository, self.journal, state)
            state = fold(self.journal.events())
        if state.waiting is not None:
            return self._still_waiting(state)
        evolvable = self.config.evolvable(self.manifest.evolvable_layers)
        splits = choose_splits(self.benchmark, self.config)
        if new:
            _refuse_unfinished(state)
        else:
            check_unchanged(splits, state.splits)
        self.progress.say(splits.note)
        self._say_estimate(cycles, splits)
        if new:
            self.journal.append("series_started", sync=True)
            state = fold(self.journal.events())
        work = _workplace(self.root)
        try:
            return self._run(cycles, state, splits, evolvable, Places(work))
        finally:
            shutil.rmtree(work, ignore_errors=True)  # when it failed before it began

    def _run(
        self,
        cycles: int,
        state: RunState,
        splits: Splits,
        evolvable: tuple[str, ...],
        places: Places,
    ) -> EvolutionResult:
        head = self._head(state)
        self.repository.materialise(head.commit, places.head)
        agent = self.make_agent(places.head)
        first = self._begin(state, splits, self._scored_by(agent, splits))
        runner = self._runner(agent, head, splits, evolvable, places)
        records = [record for record in state.records if record.cycle >= first]
        reason, start = "error", None
        try:
            start = runner.holdout_score()
            reason = self._cycles(runner, state, first + cycles, records)
        except BudgetExceeded as error:
            reason = "budget"
            self.progress.say(error.message)
        except KeyboardInterrupt as stopped:
            reason = stopped.reason if isinstance(stopped, Stopped) else "interrupted"
            raise
        finally:
            runner.cache.close()
            hindered = self.repository.settle()
            if hindered:
                self.progress.say(hindered)
            shutil.rmtree(places.base, ignore_errors=True)
            self.journal.append("run_stopped", sync=True, reason=reason)  # last: killed until here,
            # the same command goes on with this run instead of beginning another
        return self._result(records, reason, start, runner)

    def _say_estimate(self, cycles: int, splits: Splits) -> None:
        calls = self.journal.events("call")
        found = estimate(calls, self.config, cycles=cycles, holdout=len(splits.holdout))
        if found is not None:
            self.progress.say(words(found, self.config, cycles))

    def _still_waiting(self, state: RunState) -> EvolutionResult:
        """The result of a run that can't go on before a person has answered."""
        assert state.waiting is not None
        record = cycle_from(state.waiting["record"])
        return EvolutionResult(
            cycles_completed=0,
            final_score=record.holdout_score,
            score_history=(),
            converged=False,
            start_score=record.holdout_score,
            gated=record.candidate_score is not None,
            stopped="review",
            cycles=(record,),
        )

    def _cycles(
        self, runner: CycleRunner, state: RunState, end: int, records: list[CycleRecord]
    ) -> str:
        opened, evolved = state.opened, state.evolved
        for number in range(state.next_cycle, end):
            current_stop().check()
            record = runner.run(number, opened, evolved)
            opened = evolved = None
            records.append(record)
            if record.verdict == "review":
                return "review"
            if failing(records, self.config.max_failed_cycles):
                return "failing"
            if converged(records, self.config.egl_window, self.config.egl_threshold):
                return "plateau"
            if self._engine_stops(number):
                return "engine"
        return "cycles"

    def _engine_stops(self, number: int) -> bool:
        last = self.journal.last("evolved")
        return last is not None and last["cycle"] == number and bool(last["stop"])

    def _head(self, state: RunState) -> Version:
        """The version the run starts from: the head, with what was edited by hand since."""
        head = self.repository.head
        if state.opened is not None and head is not None:
            return self._head_of_opened(state)
        tree = snapshot(self.root, self.repository, self.progress)
        if head is None:
            commit = self.repository.commit(tree, "evo-0: the start", [])
            self.repository.advance(commit, None)
        elif head.tree != tree.id:
            self.progress.say("the workspace was edited by hand since; the run starts from that")
            adopt_edits(self.root, self.repository, self.journal, head, tree)
        now = self.repository.head
        if now is None:
            raise AgentEvolveError("the workspace has no version after its first snapshot")
        if not self.repository.has("evo-0"):
            self.repository.tag("evo-0", now.commit, "evo-0: the start")
        return now

    def _head_of_opened(self, state: RunState) -> Version:
        """The head when the interrupted cycle began; the cycle itself moves it on."""
        assert state.opened is not None
        self.progress.say(f"going on with cycle {state.next_cycle}, which was interrupted")
        return self.repository.version(state.opened["head"])

    def _begin(self, state: RunState, splits: Splits, scored_by: str) -> int:
        self.journal.append(
            "run_started",
            sync=True,
            first_cycle=state.next_cycle,
            engine=type(self.engine).__name__,
            benchmark=type(self.benchmark).__name__,
            config=self.config.model_dump(mode="json"),
            train=[task.id for task in splits.train],
            holdout=[task.id for task in splits.holdout],
            test=[task.id for task in splits.test],
            note=splits.note,
            scored_by=scored_by,
        )
        if state.run_over or state.run_first is None:
            return state.next_cycle
        return state.run_first

    def _scored_by(self, agent: BaseAgent, splits: Splits) -> str:
        """What besides the files decides a holdout score; another agent's is none of this one's."""
        grading = [task_fingerprint(self.benchmark, task) for task in splits.holdout]
        return fingerprint(agent_fingerprint(agent), grading)

    def _runner(
        self,
        agent: BaseAgent,
        head: Version,
        splits: Splits,
        evolvable: tuple[str, ...],
        places: Places,
    ) -> CycleRunner:
        state = fold(self.journal.events())
        cache = ScoreCache(self.root / "evolution" / "cache" / "scores.jsonl")
        workers = self.config.solve_workers
        return CycleRunner(
            agent=agent,
            make_agent=self.make_agent,
            engine=self.engine,
            config=self.config,
            manifest=self.manifest,
            root=self.root,
            repository=self.repository,
            journal=self.journal,
            observer=Observer(self.root, journal=self.journal),
            history=EvolutionHistory(self.root, journal=self.journal, repository=self.repository),
            measurer=Measurer(self.benchmark, self.ledger, cache, workers, self.progress),
            gate=gate_of(self.config),
            looks=state.looks,
            held=state.held,
            splits=splits,
            secrets=self._secrets(splits),
            places=places,
            progress=self.progress,
            head=head,
            evolvable=evolvable,
        )

    def _secrets(self, splits: Splits) -> Secrets:
        """What no candidate may hold. Reading the test tasks for it opens nothing: none is solved,
        and no engine or agent sees them."""
        tasks = {"train": splits.train, "holdout": splits.holdout, "test": splits.test}
        return secrets_of(self.benchmark, tasks)

    def _result(
        self,
        records: Sequence[CycleRecord],
        reason: str,
        start: float | None,
        runner: CycleRunner,
    ) -> EvolutionResult:
        curve = [record.plateau_score for record in records]
        measured = [score for score in curve if score is not None]
        return EvolutionResult(
            cycles_completed=sum(record.verdict != "review" for record in records),
            final_score=measured[-1] if measured else start,
            score_history=curve,
            converged=reason == "plateau",
            start_score=start,
            gated=runner.splits.gated and runner.gate.name != "none",
            stopped=reason,
            usd=round(self.ledger.usd, 6),
            cycles=tuple(records),
            details={"splits": runner.splits.note, "head": runner.head.commit},
        )


def _refuse_unfinished(state: RunState) -> None:
    if state.opened is not None:
        raise ConfigurationError(
            f"cycle {state.next_cycle} was interrupted; a new series would lose it",
            fix="finish it first: the same command without --new",
        )


def _workplace(root: Path) -> Path:
    """A new throwaway directory for a run; that of a run that was killed is removed.

    Its name is noted in the workspace before it is made, so none is ever lost.
    """
    note = root / "evolution" / "run.directory"
    with contextlib.suppress(OSError):
        left = Path(note.read_text("utf-8"))
        if left.name.startswith(PREFIX) and left.parent == Path(tempfile.gettempdir()):
            shutil.rmtree(left, ignore_errors=True)
    work = Path(tempfile.gettempdir()) / f"{PREFIX}{secrets.token_hex(8)}"
    note.write_text(str(work), encoding="utf-8")
    work.mkdir(mode=0o700)
    return work
