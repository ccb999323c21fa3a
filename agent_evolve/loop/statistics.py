"""The paired statistics of the gate. Pure: numbers in, numbers out, the same ones every time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

EXACT_UP_TO = 14
"""With at most this many pairs all 2^n subsets are looked at; with more, a seeded sample."""
_FEWEST, _MOST = 1 << 15, 1 << 20
"""Subsets sampled: twenty times as many as one that lies outside needs, within these bounds."""
_CELLS = 8_000_000
"""A sample of at most this many cells is kept for the next question."""
_ROUNDING = 1e-6


@dataclass(frozen=True, slots=True)
class Paired:
    """Whether paired differences lie above zero.

    Attributes:
        mean: their mean.
        lower, upper: an interval for it, each end with ``alpha`` outside.
        p: one-sided: how often random signs give a mean at least as high. ``lower > 0`` whenever
            ``p <= alpha``, as both are read from the same flips.
        n: the number of differences.
    """

    mean: float
    lower: float
    upper: float
    p: float
    n: int


def paired(differences: Sequence[float], alpha: float) -> Paired:
    """The sign-flip permutation test and the interval that belongs to it.

    If a difference is as likely to be ``+d`` as ``-d``, every choice of signs is equally likely
    (Fisher 1935). Flipping a set of pairs makes a mean as high as the one seen exactly when the
    flipped differences sum to at most zero; so ``p`` is the share of subsets, the empty one
    included, whose sum is at most zero, and the quantiles of the subset means bound the true mean
    (Hartigan 1969, "Using subsample values as typical values"). Exact up to ``EXACT_UP_TO`` pairs;
    beyond, at least 32,768 random subsets from a fixed seed are used, and counting the empty one
    keeps the test valid at any number of them (Phipson and Smyth 2010).

    Where most differences are exactly zero, as with pass or fail, the subset means are too few to
    bound anything but the sign. An end that the test has not placed on its side of zero is
    therefore no nearer to the mean than Student's t puts it.

    Args:
        differences: candidate less head, one per task.
        alpha: chance, in (0, 0.5), that the truth lies below ``lower``; the same for ``upper``.

    Raises ``ValueError`` for no differences.
    """
    import numpy as np

    n = len(differences)
    if n == 0:
        raise ValueError("no differences to compare")
    values = np.asarray(differences, dtype=np.float64)
    sums, sizes = _subset_sums(values, alpha)
    total = len(sums) + 1  # the empty subset
    p = (1 + int(np.count_nonzero(sums <= _ROUNDING))) / total
    below = math.floor(alpha * total)  # subsets that may lie outside, the empty one among them
    lower, upper = -math.inf, math.inf
    if below >= 1:
        ends = (below - 1, len(sums) - below)
        lower, upper = map(float, np.partition(sums / sizes, ends)[list(ends)])
    mean = math.fsum(differences) / n
    width = _student(values, alpha)
    if lower <= 0:
        lower = min(lower, mean - width)
    if upper >= 0:
        upper = max(upper, mean + width)
    return Paired(mean, min(lower, mean), max(upper, mean), p, n)


def _student(values: Any, alpha: float) -> float:
    """Half the width of Student's interval."""
    from scipy.special import stdtrit

    n = len(values)
    if n < 2:
        return math.inf
    return float(stdtrit(n - 1, 1 - alpha) * values.std(ddof=1) / math.sqrt(n))


def _subset_sums(values: Any, alpha: float) -> tuple[Any, Any]:
    """Sums and sizes of non-empty subsets."""
    import numpy as np

    n = len(values)
    if n <= EXACT_UP_TO:
        chosen, sizes = _all_subsets(n)
        return chosen @ values, sizes
    rows = min(_MOST, max(_FEWEST, 1 << math.ceil(math.log2(20 / alpha))))
    if rows * n <= _CELLS:
        chosen, sizes = _some_subsets(n, rows)
        return chosen @ values.astype(np.float32), sizes
    generator = np.random.default_rng(n)
    sums, counts = [], []
    step = max(1, _CELLS // n)
    for start in range(0, rows, step):
        part = _draw(generator, min(step, rows - start), n)
        sums.append(part @ values)
        counts.append(part.sum(axis=1))
    return np.concatenate(sums), np.concatenate(counts)


@lru_cache(maxsize=EXACT_UP_TO)
def _all_subsets(n: int) -> tuple[Any, Any]:
    import numpy as np

    numbers = np.arange(1, 2**n, dtype=np.int64)[:, None]
    chosen = ((numbers >> np.arange(n)) & 1).astype(np.float64)
    return chosen, chosen.sum(axis=1)


@lru_cache(maxsize=6)
def _some_subsets(n: int, rows: int) -> tuple[Any, Any]:
    import numpy as np

    chosen = _draw(np.random.default_rng(n), rows, n)
    return chosen, chosen.sum(axis=1)


def _draw(generator: Any, rows: int, n: int) -> Any:
    """Random subsets, none of them empty."""
    import numpy as np

    chosen = generator.integers(0, 2, size=(rows, n), dtype=np.int8)
    empty = chosen.sum(axis=1) == 0
    chosen[empty, generator.integers(0, n, size=int(empty.sum()))] = 1
    return chosen.astype(np.float32)


def within(repeats: Sequence[Sequence[float]]) -> float:
    """Standard deviation of one score about its own task's mean, pooled over tasks; 0.0 where no
    task has two."""
    squares, freedom = 0.0, 0
    for scores in repeats:
        if len(scores) > 1:
            middle = math.fsum(scores) / len(scores)
            squares += math.fsum((score - middle) ** 2 for score in scores)
            freedom += len(scores) - 1
    return math.sqrt(squares / freedom) if freedom else 0.0


def standard_error(differences: Sequence[float]) -> float:
    """Of the mean of these differences; ``nan`` where there are fewer than two."""
    n = len(differences)
    if n < 2:
        return math.nan
    middle = math.fsum(differences) / n
    return math.sqrt(math.fsum((d - middle) ** 2 for d in differences) / (n - 1) / n)


def smallest_gain(error: float, n: int, alpha: float, power: float = 0.8) -> float:
    """The smallest true mean gain over ``n`` tasks that a paired test at level ``alpha``
    (one-sided) finds with chance ``power``, when its mean has this standard error.

    Noncentral t (Cohen 1988), as the sign-flip test is as powerful as the t-test but for a few
    percent. 0.0 without noise; ``n`` is at least 2.
    """
    from scipy import optimize, stats

    if error < 1e-12:
        return 0.0
    critical = float(stats.t.isf(alpha, n - 1))

    def lacking(shift: float) -> float:
        return float(stats.nct.sf(critical, n - 1, shift)) - power

    return float(optimize.brentq(lacking, 0.0, critical + 40.0)) * error
