"""Which train tasks a cycle solves: all of them in turn, in a seeded order. Pure."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from ..types import Task


@dataclass(frozen=True, slots=True)
class Batch:
    """The tasks of one cycle. ``epoch`` counts from 0 how often all tasks have been seen before."""

    tasks: Sequence[Task]
    epoch: int


def batch_for(tasks: Sequence[Task], cycle: int, size: int, seed: int) -> Batch:
    """The batch of the ``cycle``-th cycle (from 1).

    The tasks are laid out in one permutation per epoch, end to end, and each cycle takes the next
    ``size`` of them; a batch that spans two epochs takes no task twice. It depends on nothing
    but its arguments, so a resumed run takes the same batches.
    """
    size = min(size, len(tasks))
    if size == 0:
        return Batch((), 0)
    start = (cycle - 1) * size
    epoch, offset = divmod(start, len(tasks))
    chosen = _permutation(tasks, seed, epoch)[offset : offset + size]
    if len(chosen) < size:
        taken = {task.id for task in chosen}
        following = _permutation(tasks, seed, epoch + 1)
        fill = [task for task in following if task.id not in taken]
        chosen = [*chosen, *fill[: size - len(chosen)]]
    return Batch(tuple(chosen), epoch)


def _permutation(tasks: Sequence[Task], seed: int, epoch: int) -> list[Task]:
    shuffled = list(tasks)
    random.Random(f"{seed}:{epoch}").shuffle(shuffled)
    return shuffled
