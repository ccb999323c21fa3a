"""One cycle: solve, observe, snapshot, evolve, gate, snapshot, record, reload.

Each step first asks whether it has been done already, by the journal or by a tag that exists, and
then takes the result from there: a process killed at any point and started again ends with the
same tags. The order of effects is what makes that true: a commit before its tag, the tag before the
head moves, the head before the user's files, and ``cycle_finished`` last.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from ..agents.base import BaseAgent
from ..config import EvolveConfig
from ..engines.base import EvolutionEngine
from ..errors import VersionError
from ..journal import Event, Journal
from ..llm import Totals, attributed
from ..types import CycleRecord, Observation, Task
from ..workspace import Manifest
from ..workspace.layers import count_changes
from ..workspace.powers import Power, contents, needing_approval, new_powers
from ..workspace.repository import Tree, Version, WorkspaceRepository
from ..workspace.tree import changed_paths
from .attempt import STOPS_THE_RUN, describe
from .batches import Batch, batch_for
from .edits import adopt_edits, snapshot
from .evolution import Evolution, Evolved, first_line
from .gate import Decision, Gate, Run
from .history import EvolutionHistory
from .judge import judge
from .landing import Landing
from .leaks import Secrets, find_leaks
from .measure import Measurer, check_loaded, mean, scores
from .observer import Observer
from .progress import Progress
from .records import cycle_from, cycle_record, observation_from
from .scores import ScoreCache
from .splits import Splits
from .state import looks_after
from .trial import TrialRunner


@dataclass(slots=True)
class Places:
    """The throwaway directories of a run: the agent's copy of the head, the copy that the engine
    changes, and a plain copy of what is measured."""

    base: Path
    head: Path = field(init=False)
    candidate: Path = field(init=False)
    measured: Path = field(init=False)

    def __post_init__(self) -> None:
        self.head = self.base / "head"
        self.candidate = self.base / "candidate"
        self.measured = self.base / "measured"


@dataclass(slots=True)
class CycleRunner:
    """Runs the cycles of one workspace. ``agent`` is loaded from ``head``, the accepted version."""

    agent: BaseAgent
    make_agent: Callable[[Path], BaseAgent]
    engine: EvolutionEngine
    config: EvolveConfig
    manifest: Manifest
    root: Path
    repository: WorkspaceRepository
    journal: Journal
    observer: Observer
    history: EvolutionHistory
    measurer: Measurer
    gate: Gate
    looks: int
    held: float | None
    """The head's holdout mean: of every task once at first, of what the gate measured since."""
    splits: Splits
    secrets: Secrets
    places: Places
    progress: Progress
    head: Version
    evolvable: tuple[str, ...]
    head_tree: Tree = field(init=False)
    evolution: Evolution = field(init=False)

    def __post_init__(self) -> None:
        self.head_tree = self.repository.load(self.head.commit)
        self.evolution = Evolution(
            self.engine,
            self.repository,
            self.journal,
            replace(self.manifest, evolvable_layers=self.evolvable),
            self.places.candidate,
        )

    @property
    def cache(self) -> ScoreCache:
        return self.measurer.cache

    def holdout_score(self, cycle: int = 0) -> float | None:
        """The head's mean on the holdout, measured unless it is known already."""
        if not self.splits.gated or self.gate.name == "none":
            return None
        if self.held is None:
            every = [(task.id, 0) for task in self.splits.holdout]
            self.held = mean(list(self._measure(self.head_tree, cycle, every).values()))
            self.journal.append("head_measured", tree=self.head_tree.id, mean=self.held)
        return self.held

    def run(self, number: int, opened: Event | None, evolved: Event | None) -> CycleRecord:
        """Run cycle ``number``, or what is left of it when ``opened`` says that it had begun."""
        began = time.monotonic()
        if opened is None:
            self.journal.append("cycle_started", cycle=number, head=self.head.commit)
        if self.repository.has(f"evo-{number}"):
            return self._finish(self._tagged_record(number), resumed=True)
        batch = batch_for(self.splits.train, number, self.config.batch_size, self.config.seed)
        observations = self._solve(number, batch)
        before = self._snapshot_before(number)
        score = mean([o.score for o in observations])
        valid = sum(o.score is not None for o in observations)
        powers: Sequence[Power] = ()
        record = CycleRecord(
            number, score, "unmeasured", False, valid=valid, total=len(observations)
        )
        if valid == 0 or valid < self.config.min_valid * len(observations):
            record = replace(record, reason=_too_few(observations, valid, self.config.min_valid))
            outcome = None
        else:
            outcome = self._evolve(number, before, observations, evolved)
            record, powers = self._decide(number, record, outcome)
        record = replace(
            record,
            usd=round(self.measurer.ledger.totals("cycle").get(str(number), Totals()).usd, 6),
            seconds=round(time.monotonic() - began, 3),
        )
        if outcome is not None and record.verdict == "review":
            return self._wait(record, outcome, powers)
        self._landing.tag(record, _changed(outcome, self.head_tree))
        return self._finish(record)

    # -- solve and observe -------------------------------------------------------------------

    def _solve(self, number: int, batch: Batch) -> list[Observation]:
        self.progress.phase(number, "solve", len(batch.tasks))
        held = {record["task_id"]: record for record in self.observer.begin(number)}
        tree = self.head_tree.id
        exported = self.repository.has(f"pre-evo-{number}")

        def one(task: Task, turn: int) -> Observation:
            if task.id in held:
                if not exported:
                    self.agent.restore(turn, held[task.id].get("kept", ()))
                return observation_from(held[task.id])
            trajectory, feedback, status = self.measurer.solve(self.agent, task, turn)
            kept = self.agent.buffered(turn)
            return self.observer.record(
                task, trajectory, feedback, status=status, tree=tree, kept=kept
            )

        with attributed(cycle=number, part="solve", candidate=tree):
            observations = self.measurer.each(batch.tasks, one)
        if not exported:
            self._export()
        if not self._flushed(number):
            self.observer.flush([task.id for task in batch.tasks])
        return observations

    def _flushed(self, number: int) -> bool:
        last = self.journal.last("batch", "cycle_started")
        return last is not None and last.type == "batch" and last["cycle"] == number

    def _export(self) -> None:
        try:
            self.agent.export_to_fs()
        except STOPS_THE_RUN:
            raise
        except (Exception, SystemExit) as error:  # noqa: BLE001 - the user's code; the cycle can go on without it
            self.progress.say(f"the agent's export_to_fs raised {describe(error)}; left out")

    # -- snapshots ---------------------------------------------------------------------------

    def _snapshot_before(self, number: int) -> Version:
        """Commit what the agent itself wrote (memories, drafts) and tag it ``pre-evo-N``."""
        name = f"pre-evo-{number}"
        if self.repository.has(name):
            return self.repository.version(name)
        tree = self.repository.scan(self.places.head)
        refused = self.evolution.violations(self.head_tree, tree)
        if refused:
            self.progress.say(f"what the agent wrote is left out: {refused}")
            tree = self.head_tree
        commit = self.head.commit
        if tree.id != self.head_tree.id:
            commit = self.repository.commit(tree, f"{name}: written by the agent", [commit])
        self.repository.tag(name, commit, f"{name}: before the engine")
        return self.repository.version(name)

    @property
    def _landing(self) -> Landing:
        return Landing(self.root, self.repository, self.journal, self.head, self.head_tree)

    def _finish(self, record: CycleRecord, *, resumed: bool = False) -> CycleRecord:
        """Land what ``evo-N`` says and reload the agent.

        A cycle that was interrupted here keeps what the user edited in the meantime, on top.
        """
        self.head, self.head_tree = self._landing.land(record, keep_edits=resumed)
        self.looks = looks_after(self.looks, record)
        if resumed:
            self._adopt_edits()
        self.reload()
        self.engine.on_cycle_end(record.accepted, record.plateau_score)
        self.progress.cycle_done(record)
        return record

    def _wait(self, record: CycleRecord, evolved: Evolved, powers: Sequence[Power]) -> CycleRecord:
        """Leave the cycle open until a person has said yes or no to its candidate."""
        self._landing.keep_candidate(record, evolved.commit)
        self.journal.append(
            "review",
            sync=True,
            commit=evolved.commit,
            powers=[asdict(power) for power in powers],
            record=cycle_record(record),
        )
        self.progress.cycle_done(record)
        return record

    def _adopt_edits(self) -> None:
        tree = snapshot(self.root, self.repository, self.progress)
        self.head = adopt_edits(self.root, self.repository, self.journal, self.head, tree)
        self.head_tree = tree

    def reload(self) -> None:
        """Give the agent the head's files: read again (hot) or a new agent (cold)."""
        self.repository.materialise(self.head_tree, self.places.head, untouched=True)
        if self.manifest.reload_strategy == "cold":
            self.agent = self.make_agent(self.places.head)
        else:
            self.agent.reload_from_fs()

    def _tagged_record(self, number: int) -> CycleRecord:
        message = self.repository.version(f"evo-{number}").message
        try:
            return cycle_from(json.loads(message.strip().rsplit("\n", 1)[-1]))
        except (ValueError, TypeError) as error:
            raise VersionError(
                f"the tag evo-{number} holds no cycle record: {error}",
                fix=f"delete the tag (git tag -d evo-{number}) and run again",
            ) from error

    # -- evolve ------------------------------------------------------------------------------

    def _evolve(
        self, number: int, before: Version, observations: Sequence[Observation], done: Event | None
    ) -> Evolved:
        if done is not None:
            return self.evolution.earlier(done)
        self.progress.phase(number, "evolve", 1)
        trial = TrialRunner(self.agent, self.measurer, self.splits.train)
        with attributed(cycle=number, part="evolve", candidate=before.tree):
            evolved = self.evolution.step(number, before, observations, self.history, trial)
        self.progress.advance()
        return evolved

    # -- gate --------------------------------------------------------------------------------

    def _decide(
        self, number: int, record: CycleRecord, evolved: Evolved
    ) -> tuple[CycleRecord, Sequence[Power]]:
        """The record with its verdict, and the powers that need a person's yes."""
        changes = count_changes(self.head_tree.entries, evolved.tree.entries)
        record = replace(
            record,
            mutated=evolved.tree.id != self.head_tree.id,
            summary=evolved.result.summary,
            metadata=evolved.result.metadata,
            changes=changes,
            holdout_score=self.held,
        )
        if evolved.failure:
            return replace(record, verdict="failed", reason=evolved.failure), ()
        if not record.mutated:
            held = self.holdout_score(number)
            return replace(record, verdict="unchanged", reason="no change", holdout_score=held), ()
        before, after = self._contents(self.head_tree), self._contents(evolved.tree)
        refused = self._leaked(before, after)
        if refused:
            return replace(record, verdict="rejected", reason=refused), ()
        judged = self._judged(number, record, evolved)
        if not judged.accepted:
            return judged, ()
        powers = needing_approval(new_powers(before, after), self.manifest.allowed_powers)
        if powers or self.config.review:
            first = "; ".join(power.describe() for power in powers[:3])
            why = f"it gains powers that need a yes ({first})" if powers else "every change does"
            reason = f"waits for a yes, as {why}; {judged.reason}"
            return replace(
                judged, verdict="review", reason=reason, holdout_score=record.holdout_score
            ), powers
        if judged.verdict == "accepted":
            self.held = judged.candidate_score
        return judged, ()

    def _leaked(
        self, before: Mapping[str, tuple[str, bytes]], after: Mapping[str, tuple[str, bytes]]
    ) -> str:
        """Why a candidate is refused unmeasured, in words that an engine may read; people are told
        the whole of it."""
        texts = [{path: data for path, (_, data) in side.items()} for side in (before, after)]
        leaks = find_leaks(texts[0], texts[1], self.secrets)
        for leak in leaks:
            self.progress.say(str(leak))
        refused = [leak for leak in leaks if leak.refused]
        if not refused:
            return ""
        self.journal.append("leaked", leaks=[str(leak) for leak in refused])
        places = "; ".join(leak.place() for leak in refused[:3])
        return f"refused unmeasured, as it holds what it may not know: {places}"

    def _contents(self, tree: Tree) -> dict[str, tuple[str, bytes]]:
        return contents(tree.entries, self.repository.read_blob)

    def _judged(self, number: int, record: CycleRecord, evolved: Evolved) -> CycleRecord:
        if not self.splits.gated:
            return replace(record, verdict="ungated", reason="kept without a gate: no holdout")
        decision = self._gate(number, evolved.tree)
        accepted = decision.verdict == "accepted"
        return replace(
            record,
            verdict=decision.verdict,
            reason=decision.reason,
            head_score=decision.head_mean,
            candidate_score=decision.candidate_mean,
            holdout_score=decision.candidate_mean if accepted else self.held,
            lower=decision.lower,
            upper=decision.upper,
            look=decision.look if decision.gain is not None else 0,
        )

    def _gate(self, number: int, candidate: Tree) -> Decision:
        """Ask the gate until it decides, and journal the decision with its report by task; what
        was decided before the process was killed stands."""
        head, earlier = self.head_tree, self.journal.last("judged", "cycle_started")
        if earlier is not None and earlier.type == "judged" and earlier["cycle"] == number:
            return Decision.from_record(earlier.data)
        decision = judge(
            self.gate,
            [task.id for task in self.splits.holdout],
            lambda runs: self._measure(head, number, runs),
            lambda runs: self._measure(candidate, number, runs),
            look=self.looks + 1,
            shrinks=self._grown(head, candidate) < 0,
            seed=self.config.seed,
        )
        self.journal.append(
            "judged",
            cycle=number,
            gate=self.gate.name,
            head=head.id,
            candidate=candidate.id,
            **asdict(decision),
        )
        return decision

    def _grown(self, before: Tree, after: Tree) -> int:
        """Bytes that the files have gained."""

        def size(tree: Tree, path: str) -> int:
            entry = tree.entries.get(path)
            return len(self.repository.read_blob(entry[1])) if entry else 0

        paths = changed_paths(before.entries, after.entries)
        return sum(size(after, path) - size(before, path) for path in paths)

    def _measure(self, tree: Tree, cycle: int, runs: Sequence[Run]) -> dict[Run, float | None]:
        """Scores of a version in these runs, in a plain copy of it."""
        asked: dict[int, list[Task]] = {}
        wanted = set(runs)
        for seed in sorted({seed for _, seed in runs}):
            asked[seed] = [t for t in self.splits.holdout if (t.id, seed) in wanted]

        def twin() -> BaseAgent:
            self.repository.materialise(tree, self.places.measured)
            agent = self.agent.at(self.places.measured)
            check_loaded(agent, tree.id, self.repository)
            return agent

        self.progress.phase(cycle, "holdout", len(runs))
        found: dict[Run, float | None] = {}
        with attributed(cycle=cycle, part="measure" if cycle else "baseline"):
            for seed, tasks in asked.items():
                measured = self.measurer.measure(self.agent, tree.id, tasks, twin, seed)
                found |= {(task, seed): score for task, score in scores(measured).items()}
        return found


def _changed(evolved: Evolved | None, head: Tree) -> str | None:
    """The commit of a change, where there is one."""
    return evolved.commit if evolved is not None and evolved.tree.id != head.id else None


def _too_few(observations: Sequence[Observation], valid: int, floor: float) -> str:
    first = next(o for o in observations if o.status == "invalid")
    return (
        f"only {valid} of {len(observations)} train tasks gave a valid score, at least {floor:.0%} "
        f"must; the first that did not: {first.task.id}: {first_line(_why(first))}"
    )


def _why(observation: Observation) -> str:
    return observation.feedback.detail or observation.trajectory.error or "no reason given"
