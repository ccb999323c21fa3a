"""Measures one version on one split."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..benchmarks.base import BenchmarkAdapter
from ..config import EvolveConfig
from ..errors import BenchmarkError, ConfigurationError
from ..llm import attributed
from ..types import Observation, Task
from .measure import mean
from .opened import Opened
from .splits import choose_splits
from .state import fold

SPLITS = ("train", "holdout", "test")


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A version's results on a split. ``mean`` is over the valid tasks."""

    version: str
    commit: str
    split: str
    observations: Sequence[Observation]
    usd: float

    @property
    def mean(self) -> float | None:
        return mean([o.score for o in self.observations])

    @property
    def valid(self) -> int:
        return sum(o.score is not None for o in self.observations)


def evaluate(version: str, split: str, opened: Opened) -> Evaluation:
    """Measure a version in a throwaway copy, and journal the result.

    Raises ``VersionError`` for an unknown version, ``ConfigurationError`` for an unknown split, and
    ``BenchmarkError`` when the split has no tasks.
    """
    tasks = _tasks(split, opened.benchmark, opened.config)
    found = opened.repository.version(version)
    if split == "test":  # recorded before anything is seen of it
        _open_test(version, found.commit, opened)
    opened.progress.phase(0, split, len(tasks))
    with (
        opened.loaded(opened.repository.load(found.commit)) as (agent, measurer),
        attributed(part="evaluate"),
    ):
        observations = measurer.measure(agent, found.tree, tasks, lambda: agent)
    usd = round(opened.ledger.usd, 6)
    result = Evaluation(version, found.commit, split, observations, usd)
    opened.journal.append(
        "evaluated",
        sync=True,
        version=version,
        commit=found.commit,
        tree=found.tree,
        split=split,
        mean=result.mean,
        valid=result.valid,
        total=len(tasks),
    )
    return result


def _open_test(version: str, commit: str, opened: Opened) -> None:
    opened.journal.append("test_opened", sync=True, by="eval", version=version, commit=commit)
    times = _nth(fold(opened.journal.events()).openings)
    opened.progress.say(f"the test split is opened, for the {times} time; it is recorded")


def _nth(n: int) -> str:
    ending = "th" if 10 < n % 100 < 14 else {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")
    return f"{n}{ending}"


def check_split(split: str) -> None:
    """Raise ``ConfigurationError`` for a split that there is not."""
    if split not in SPLITS:
        raise ConfigurationError(
            f"unknown split {split!r}", fix="--split takes one of " + ", ".join(SPLITS)
        )


def _tasks(split: str, benchmark: BenchmarkAdapter, config: EvolveConfig) -> Sequence[Task]:
    if split == "test":
        tasks: Sequence[Task] = benchmark.get_tasks(split="test", limit=None)
        known = {task.id for task in benchmark.get_tasks(split="train", limit=None)}
        if any(task.id in known for task in tasks):
            raise BenchmarkError(
                f"{type(benchmark).__name__} has no test split of its own: "
                "it gives train tasks for it",
                fix="return [] for splits that do not exist, or give test tasks ids of their own",
            )
    else:
        splits = choose_splits(benchmark, config)
        tasks = splits.train if split == "train" else splits.holdout
    if not tasks:
        raise BenchmarkError(
            f"the {split} split has no tasks",
            fix=f"mark some tasks with the split {split!r} in the task file",
        )
    return tasks
