"""When a run has stopped getting anywhere. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from ..types import CycleRecord


def converged(records: Sequence[CycleRecord], window: int, threshold: float) -> bool:
    """True when, over the last ``window`` measured cycles, max - min < ``threshold``.

    Unmeasured and failed cycles say nothing about the agent and are not part of the window.
    """
    scores = [score for record in records if (score := record.plateau_score) is not None]
    recent = scores[-window:]
    return len(recent) == window and max(recent) - min(recent) < threshold


def failing(records: Sequence[CycleRecord], limit: int) -> bool:
    """True when the last ``limit`` cycles all failed or could not be measured."""
    recent = records[-limit:]
    return len(recent) == limit and all(r.verdict in ("failed", "unmeasured") for r in recent)
