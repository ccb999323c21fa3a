"""What a run will cost, from what its calls have cost so far. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from ..config import EvolveConfig
from ..llm.totals import Call, Totals

_SOLVING = frozenset({"baseline", "solve", "measure", "evaluate"})


@dataclass(frozen=True, slots=True)
class Estimate:
    """From ``low``, where every candidate is dropped after the first slice of the holdout, to
    ``high``, where each needs every repeat and becomes the head. US dollars and model calls.

    ``per_task`` is the mean of one solving, over ``solvings`` of them. ``engine_known`` says
    whether an engine's step has been seen; otherwise it is not in the sums. ``priced`` says whether
    every call seen had a known price.
    """

    low_usd: float
    high_usd: float
    low_calls: int
    high_calls: int
    per_task: Totals
    solvings: int
    engine_known: bool
    priced: bool


def estimate(
    calls: Iterable[Call], config: EvolveConfig, *, cycles: int, holdout: int
) -> Estimate | None:
    """What ``cycles`` cycles with a holdout of this many tasks will cost; ``None`` while no task's
    cost is known. Scores that are known already are counted as if they had to be bought."""
    solving, engine = Totals(), Totals()
    solved: set[tuple[object, ...]] = set()
    evolved: set[object] = set()
    for call in calls:
        if call.get("role") == "engine":
            engine = engine.plus(call)
            evolved.add(call.get("cycle"))
        elif call.get("part") in _SOLVING:
            solving = solving.plus(call)
            solved.add(
                tuple(call.get(key) for key in ("cycle", "part", "candidate", "task", "seed"))
            )
    if not solved:
        return None
    n = len(solved)
    repeats = config.repeats if config.gate == "paired" else 1
    slice_ = min(holdout, max(8, math.ceil(holdout / 3))) if repeats > 1 else holdout
    if config.gate == "none":
        holdout = slice_ = repeats = 0
    low = cycles * (config.batch_size + slice_) + holdout
    high = cycles * (config.batch_size + holdout * repeats) + holdout * repeats
    steps = cycles / len(evolved) if evolved else 0.0
    return Estimate(
        low_usd=solving.usd / n * low + engine.usd * steps,
        high_usd=solving.usd / n * high + engine.usd * steps,
        low_calls=round(solving.calls / n * low + engine.calls * steps),
        high_calls=round(solving.calls / n * high + engine.calls * steps),
        per_task=solving,
        solvings=n,
        engine_known=bool(evolved),
        priced=not (solving.unpriced or engine.unpriced),
    )


def words(found: Estimate, config: EvolveConfig, cycles: int) -> str:
    """The estimate as a sentence for whoever starts a run."""
    per = found.per_task.usd / found.solvings
    text = (
        f"estimate for {cycles} cycles: ${found.low_usd:.2f} to ${found.high_usd:.2f}, "
        f"{found.low_calls} to {found.high_calls} calls (${per:.4f} a task, as measured)"
    )
    if not found.engine_known:
        text += "; the engine's own calls are not known yet"
    if not found.priced:
        text += "; some calls have no known price"
    if config.max_usd is not None and found.low_usd > config.max_usd:
        text += f"; the cap of ${config.max_usd:.2f} will stop it before"
    return text
