"""Which tasks train and which decide."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..benchmarks.base import BenchmarkAdapter
from ..benchmarks.splits import split_by_hash
from ..config import EvolveConfig
from ..errors import BenchmarkError, ConfigurationError
from ..types import Task
from .gate import Gate, PairedGate, make_gate
from .scores import fingerprint

FEWEST_HOLDOUT = 3
"""A holdout of fewer tasks than this decides nothing; the run then goes without a gate. The gate
``paired`` needs more, as many as a gain on each of them takes to be beyond chance."""


@dataclass(frozen=True, slots=True)
class Splits:
    """Train, holdout and test tasks, disjoint in ids. ``test`` is empty where the benchmark has
    none of its own. ``note`` says where the holdout came from, or why there is none."""

    train: Sequence[Task]
    holdout: Sequence[Task]
    note: str
    test: Sequence[Task] = ()

    @property
    def gated(self) -> bool:
        return bool(self.holdout)


def choose_splits(benchmark: BenchmarkAdapter, config: EvolveConfig) -> Splits:
    """The benchmark's own holdout where it has one, else a seeded share of its train tasks.

    Raises ``BenchmarkError`` for no tasks, duplicate ids, or a holdout that overlaps train.
    """
    train = _tasks(benchmark, "train")
    if not train:
        raise BenchmarkError(
            f"{type(benchmark).__name__} has no train tasks",
            fix="check the 'tasks' and 'split' of benchmark: in manifest.yaml",
        )
    holdout = _tasks(benchmark, "holdout")
    if holdout and {t.id for t in holdout} == {t.id for t in train}:
        holdout = []  # the benchmark knows no splits and gives the same tasks for each
    if holdout:
        _refuse_overlap(train, holdout)
        note = f"{len(train)} train, {len(holdout)} holdout tasks, as the benchmark splits them"
    elif config.holdout_ratio > 0:
        ratios = {"holdout": config.holdout_ratio}
        parts = split_by_hash(train, ratios, config.seed)
        train, holdout = parts["train"], parts["holdout"]
        note = (
            f"{len(train)} train, {len(holdout)} holdout tasks: "
            f"holdout_ratio {config.holdout_ratio} of the benchmark's train tasks"
        )
    else:
        note = f"{len(train)} train tasks; holdout_ratio is 0, so nothing is gated"
    fewest = fewest_holdout(config)
    if holdout and (len(holdout) < fewest or not train):
        note = (
            f"{len(holdout)} holdout tasks of {len(train) + len(holdout)} are too few for the gate "
            f"{config.gate!r}, which needs {fewest}: changes are kept without a gate"
        )
        train, holdout = [*train, *holdout], []
    limit = config.holdout_limit
    if limit is not None and len(holdout) > limit:
        holdout = sorted(holdout, key=lambda task: fingerprint(config.seed, task.id))[:limit]
        note += f"; {limit} of the holdout are used"
    known = {task.id for task in (*train, *holdout)}
    test = tuple(task for task in _tasks(benchmark, "test") if task.id not in known)
    return Splits(tuple(train), tuple(holdout), note, test)


def check_unchanged(splits: Splits, first: Mapping[str, Sequence[str]] | None) -> None:
    """Raise ``ConfigurationError`` when the held-out tasks are not those of the first run.

    Train may grow. A holdout or test task that changes sides has been seen by the engine, or the
    looks at the holdout were counted for other tasks; neither may pass unnoticed.
    """
    if first is None:
        return
    for name, tasks in (("holdout", splits.holdout), ("test", splits.test)):
        now, then = {task.id for task in tasks}, set(first.get(name, ()))
        if name in first and now != then:
            shown = ", ".join(repr(task) for task in sorted(now ^ then)[:3])
            raise ConfigurationError(
                f"the {name} split is not that of the first run: {len(now - then)} tasks are new "
                f"and {len(then - now)} are gone, among them {shown}",
                fix="restore the tasks and the settings of the split (seed, holdout_ratio, "
                "holdout_limit, gate), or begin a new series: agent-evolve run --new",
            )


def gate_of(config: EvolveConfig) -> Gate:
    """The gate that a config names, with its settings."""
    return make_gate(
        config.gate,
        alpha=config.alpha,
        min_effect=config.min_effect,
        repeats=config.repeats,
        min_valid=config.min_valid,
        max_broken=config.max_broken,
    )


def fewest_holdout(config: EvolveConfig) -> int:
    """The fewest holdout tasks with which the gate of this config can ever accept a change."""
    gate = gate_of(config)
    return max(FEWEST_HOLDOUT, gate.fewest() if isinstance(gate, PairedGate) else 0)


def _tasks(benchmark: BenchmarkAdapter, split: str) -> list[Task]:
    tasks = benchmark.get_tasks(split=split, limit=None)
    repeated = [task_id for task_id, n in Counter(t.id for t in tasks).items() if n > 1]
    if repeated:
        raise BenchmarkError(
            f"{type(benchmark).__name__}: {len(repeated)} task ids stand more than once in the "
            f"{split} split, the first is {repeated[0]!r}",
            fix="give every task an id of its own",
        )
    return tasks


def _content(task: Task) -> str:
    """What is asked, with the files that come with it."""
    return fingerprint(task.input, *(task.metadata.get(key) for key in ("files", "directory")))


def _refuse_overlap(train: Sequence[Task], holdout: Sequence[Task]) -> None:
    ids = {task.id for task in train}
    inputs = {_content(task): task.id for task in train}
    for task in holdout:
        twin = task.id if task.id in ids else inputs.get(_content(task))
        if twin is not None:
            raise BenchmarkError(
                f"holdout task {task.id!r} is also train task {twin!r}; "
                "the gate would reward remembering it",
                fix="take it out of one of the splits",
            )
