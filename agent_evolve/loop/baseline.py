"""How good the head is, how much its scores move by themselves, and what could be shown at all."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain

from ..agents.base import BaseAgent
from ..config import EvolveConfig
from ..errors import BenchmarkError
from ..llm import attributed
from ..types import Task
from ..workspace.repository import Tree
from .gate import PairedGate
from .measure import Measurer
from .opened import Opened
from .splits import choose_splits
from .statistics import paired, smallest_gain, standard_error, within

POWER = 0.8
"""With what chance the smallest gain would be found."""
DRIFT = 0.005
"""Chance, on each side, that equal files are said to drift."""


@dataclass(frozen=True, slots=True)
class Baseline:
    """The head measured on its holdout, ``repeats`` times.

    Attributes:
        mean: over the tasks; ``None`` when no run was valid.
        noise: standard deviation of one run's score about its task's mean; ``None`` where no task
            was run twice.
        again: the mean of the same files in as many fresh runs (A/A); ``None`` without ``aa``.
        lower, upper: interval of the A/A difference; 0.5 % lie outside each end.
        smallest: the gain that the gate would find with chance 0.8 at its first look, if it were
            spread over all tasks and only this noise hid it; ``None`` where no noise is known.
        fewest: how many tasks a change must fix for the gate to see it, where it breaks none.
        runs, invalid: runs made or known, and those among them that ended invalid.
        usd, calls: what was spent now; known scores are not bought again.
    """

    tree: str
    tasks: int
    repeats: int
    mean: float | None
    noise: float | None
    again: float | None
    lower: float | None
    upper: float | None
    smallest: float | None
    fewest: int
    runs: int
    invalid: int
    usd: float
    calls: int

    @property
    def suspicious(self) -> bool:
        """Whether the same files measured twice differ beyond chance: then something drifts (a
        model that changed, a cache, a service), and no verdict can be trusted."""
        return (
            self.lower is not None
            and self.upper is not None
            and not (self.lower <= 0 <= self.upper)
        )


def baseline(tree: Tree, opened: Opened, *, repeats: int, aa: bool) -> Baseline:
    """Measure ``tree`` in a throwaway copy, and journal the result.

    The seeds are those that a run asks for first, so what is bought here is not bought again
    there. Raises ``BenchmarkError`` when there is no holdout.
    """
    splits = choose_splits(opened.benchmark, opened.config)
    opened.progress.say(splits.note)
    if not splits.gated:
        raise BenchmarkError(
            "there is no holdout to measure", fix="give more tasks, or a holdout split of their own"
        )
    spent = opened.ledger.usd, opened.ledger.calls
    with opened.loaded(tree) as (agent, measurer), attributed(cycle=0, part="baseline"):

        def measure(seeds: Sequence[int]) -> dict[str, list[float | None]]:
            opened.progress.phase(0, "baseline", len(splits.holdout) * len(seeds))
            return _scores(measurer, agent, tree.id, splits.holdout, seeds)

        first = measure(range(repeats))
        second = measure(range(repeats, 2 * repeats)) if aa else None
    result = _summary(
        tree.id, first, second, repeats, opened.config,
        usd=round(opened.ledger.usd - spent[0], 6),
        calls=opened.ledger.calls - spent[1],
    )  # fmt: skip
    opened.journal.append("baseline", sync=True, **asdict(result))
    return result


def _scores(
    measurer: Measurer, agent: BaseAgent, tree: str, tasks: Sequence[Task], seeds: Sequence[int]
) -> dict[str, list[float | None]]:
    found: dict[str, list[float | None]] = {task.id: [] for task in tasks}
    for seed in seeds:
        for observation in measurer.measure(agent, tree, tasks, lambda: agent, seed):
            found[observation.task.id].append(observation.score)
    return found


def _summary(
    tree: str,
    first: Mapping[str, Sequence[float | None]],
    second: Mapping[str, Sequence[float | None]] | None,
    repeats: int,
    config: EvolveConfig,
    *,
    usd: float,
    calls: int,
) -> Baseline:
    gate = PairedGate(config.alpha, config.min_effect, repeats)
    level = gate.level(1)
    everything = [first] if second is None else [first, second]
    valid = [_valid(scores) for scores in everything]
    together = [list(chain.from_iterable(s.get(task, ()) for s in valid)) for task in first]
    twice = any(len(scores) > 1 for scores in together)
    noise = within(together) if twice else None
    means = [_mean_of_means(side) for side in valid]
    lower = upper = smallest = None
    n = len(valid[0])
    if second is not None:
        differences = [_mean(valid[1][t]) - _mean(valid[0][t]) for t in valid[0] if t in valid[1]]
        if len(differences) > 1:
            found = paired(differences, DRIFT)
            lower, upper = found.lower, found.upper
            smallest = smallest_gain(standard_error(differences), len(differences), level, POWER)
    elif noise is not None and n > 1:
        smallest = smallest_gain(noise * math.sqrt(2 / repeats / n), n, level, POWER)
    runs = [score for scores in everything for of_task in scores.values() for score in of_task]
    return Baseline(
        tree=tree,
        tasks=len(first),
        repeats=repeats,
        mean=means[0],
        noise=noise,
        again=means[1] if second is not None else None,
        lower=lower if lower is not None and math.isfinite(lower) else None,
        upper=upper if upper is not None and math.isfinite(upper) else None,
        smallest=None if smallest is None else max(smallest, config.min_effect),
        fewest=gate.fewest(),
        runs=len(runs),
        invalid=sum(score is None for score in runs),
        usd=usd,
        calls=calls,
    )


def _valid(scores: Mapping[str, Sequence[float | None]]) -> dict[str, list[float]]:
    kept = {task: [s for s in found if s is not None] for task, found in scores.items()}
    return {task: found for task, found in kept.items() if found}


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _mean_of_means(scores: Mapping[str, Sequence[float]]) -> float | None:
    return _mean([_mean(found) for found in scores.values()]) if scores else None
