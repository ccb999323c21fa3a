"""Dividing tasks by a seeded hash of their ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256

from ..errors import ConfigurationError
from ..types import Task


def split_by_hash(
    tasks: Sequence[Task], ratios: Mapping[str, float], seed: int
) -> dict[str, list[Task]]:
    """Take a share of the tasks for each named split; the rest is ``"train"``.

    Tasks are ranked by a hash of seed and id, so the division depends on nothing else, least of all
    on their order. A split holds ``round(ratio * len(tasks))`` of them, in the order given. Raises
    ``ConfigurationError`` for ratios outside [0, 1) or that leave nothing to train on.
    """
    if any(not 0 <= ratio < 1 for ratio in ratios.values()) or sum(ratios.values()) >= 1:
        raise ConfigurationError(
            f"the shares {dict(ratios)} can't be taken: each lies in [0, 1), and together "
            "they leave something to train on",
            fix="for example: split: {holdout: 0.3, test: 0.2}",
        )
    ranked = sorted(tasks, key=lambda task: sha256(f"{seed}\0{task.id}".encode()).digest())
    home: dict[str, str] = {}
    at = 0
    for name, ratio in ratios.items():
        size = round(ratio * len(ranked))
        home |= {task.id: name for task in ranked[at : at + size]}
        at += size
    parts: dict[str, list[Task]] = {"train": [], **{name: [] for name in ratios}}
    for task in tasks:
        parts[home.get(task.id, "train")].append(task)
    return parts
