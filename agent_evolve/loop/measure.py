"""Runs an agent on tasks and gives what came of it, paying for nothing twice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from ..agents.base import BaseAgent
from ..benchmarks.base import BenchmarkAdapter
from ..errors import VersionError
from ..llm import Ledger, attributed
from ..types import Feedback, Observation, Status, Task, Trajectory
from ..workspace.repository import WorkspaceRepository
from .attempt import attempt
from .pool import run_all
from .progress import Progress, Silent
from .scores import ScoreCache, agent_fingerprint, fingerprint, task_fingerprint

Outcome = tuple[Trajectory, Feedback, Status]


@dataclass(slots=True)
class Measurer:
    """Solves and scores tasks with the run's workers, ledger and score cache."""

    benchmark: BenchmarkAdapter
    ledger: Ledger
    cache: ScoreCache
    workers: int = 1
    progress: Progress = field(default_factory=Silent)

    def solve(self, agent: BaseAgent, task: Task, turn: int = 0) -> Outcome:
        """One task, not looked up anywhere."""
        self.ledger.check_time("agent")
        if agent.reports_cost:
            self.ledger.check("agent")
        with attributed(task=task.id):
            outcome = attempt(agent, self.benchmark, task, turn)
            if agent.reports_cost:
                self._charge(agent, outcome[0])
        return outcome

    def each(
        self, tasks: Sequence[Task], job: Callable[[Task, int], Observation]
    ) -> list[Observation]:
        """Run a job for every task on the workers; results in task order."""
        return run_all(
            [partial(self._ticking, job, task, turn) for turn, task in enumerate(tasks)],
            self.workers,
        )

    def measure(
        self,
        agent: BaseAgent,
        tree: str,
        tasks: Sequence[Task],
        load: Callable[[], BaseAgent],
        seed: int = 0,
    ) -> list[Observation]:
        """Observations of a version on tasks; known scores are taken from the cache.

        A score is known by what decides it: the version, the agent, the task and its grading, the
        seed. What is not known is measured with the agent that ``load`` gives, a twin of ``agent``
        in a copy of its own: what it remembers of these tasks is thrown away with it.
        """
        who = agent_fingerprint(agent)
        keys = [fingerprint(tree, who, task_fingerprint(self.benchmark, t), seed) for t in tasks]
        known = [self.cache.get(key) for key in keys]
        twin = load() if None in known else agent

        def one(task: Task, turn: int) -> Observation:
            outcome = known[turn]
            if outcome is None:
                outcome = self.solve(twin, task, turn)
                self.cache.put(keys[turn], *outcome, tree=tree)
            return Observation(task, *outcome)

        with attributed(candidate=tree, seed=seed):
            return self.each(tasks, one)

    def _ticking(
        self, job: Callable[[Task, int], Observation], task: Task, turn: int
    ) -> Observation:
        observation = job(task, turn)
        self.progress.advance()
        return observation

    def _charge(self, agent: BaseAgent, trajectory: Trajectory) -> None:
        """Enter what the agent's program says it spent. Where it says no dollars, the price of
        its tokens counts; a cap in dollars that can't be held that way is refused."""
        metrics = trajectory.metrics
        told = any(metrics.get(key) for key in ("input_tokens", "output_tokens"))
        free = not told and self.ledger.budget.max_usd is None
        self.ledger.charge(
            "agent",
            str(agent.options.get("model") or type(agent).__name__),
            usd=metrics.get("usd", 0.0 if free else None),
            input_tokens=int(metrics.get("input_tokens", 0)),
            output_tokens=int(metrics.get("output_tokens", 0)),
            seconds=metrics.get("seconds", 0.0),
        )


def check_loaded(agent: BaseAgent, tree: str, repository: WorkspaceRepository) -> None:
    """Raise ``VersionError`` unless the files that the agent has loaded are those of ``tree``: an
    agent that changes its workspace while it loads would be measured as something else."""
    root = agent.workspace.root
    loaded = repository.scan(root, store=False).id
    if loaded != tree:
        raise VersionError(
            f"the agent {type(agent).__name__} is to be measured with the files {tree[:12]}, but "
            f"its workspace {root} holds {loaded[:12]} once it is loaded",
            fix="let it change files in export_to_fs only, and load from the workspace it is given",
        )


def scores(observations: Sequence[Observation]) -> dict[str, float | None]:
    """Score by task id, ``None`` where invalid."""
    return {observation.task.id: observation.score for observation in observations}


def mean(values: Sequence[float | None]) -> float | None:
    """Mean of the valid scores; ``None`` when there is none."""
    valid = [value for value in values if value is not None]
    return sum(valid) / len(valid) if valid else None
