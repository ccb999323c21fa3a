"""Whether a measured candidate becomes the head. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..types import Verdict


@dataclass(frozen=True, slots=True)
class Decision:
    """A verdict with its numbers. Means are over the tasks that are valid on both sides."""

    verdict: Verdict
    reason: str
    head_mean: float | None = None
    candidate_mean: float | None = None
    valid: int = 0
    total: int = 0


def no_regression(
    head: Mapping[str, float | None], candidate: Mapping[str, float | None], min_valid: float
) -> Decision:
    """Accept a candidate whose holdout mean is not lower than the head's.

    Args:
        head, candidate: score in [0, 1] by task id; ``None`` where the task ended invalid.
        min_valid: share of the tasks that must be valid on both sides for a verdict.
    """
    pairs = [
        (before, after)
        for task, before in head.items()
        if before is not None and (after := candidate.get(task)) is not None
    ]
    total = len(head)
    if not pairs or len(pairs) < min_valid * total:
        return Decision(
            "unmeasured",
            f"only {len(pairs)} of {total} holdout tasks gave a valid score on both sides; "
            f"at least {min_valid:.0%} must",
            valid=len(pairs),
            total=total,
        )
    before_mean = sum(before for before, _ in pairs) / len(pairs)
    after_mean = sum(after for _, after in pairs) / len(pairs)
    fixed = sum(after > before for before, after in pairs)
    broke = sum(after < before for before, after in pairs)
    accepted = after_mean >= before_mean
    return Decision(
        "accepted" if accepted else "rejected",
        f"holdout {before_mean:.3f} -> {after_mean:.3f} on {len(pairs)} tasks: "
        f"{fixed} better, {broke} worse",
        before_mean,
        after_mean,
        len(pairs),
        total,
    )
