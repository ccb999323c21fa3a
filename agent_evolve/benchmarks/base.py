"""The benchmark's side of the contract: tasks in splits, and a score with words."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from ..types import Feedback, Task, Trajectory


class BenchmarkAdapter(ABC):
    """Gives tasks and scores what an agent did with them. Subclass it, or pass any object with
    the same two methods.

    The expected answers stay inside: a ``Task`` reaches the agent and, for the train split, the
    engine.
    """

    @abstractmethod
    def get_tasks(self, split: str = "train", limit: int | None = 10) -> list[Task]:
        """The first ``limit`` tasks of a split (``None``: all), always in the same order.

        Return an empty list for a split that does not exist. Splits share no task; the loop makes
        a seeded holdout out of the train tasks when a benchmark has none.
        """

    @abstractmethod
    def evaluate(self, task: Task, trajectory: Trajectory) -> Feedback:
        """Score one trajectory in [0, 1] and say in words what was expected and what was seen.

        An exception here is the grader's failure: the task becomes ``invalid``, never 0.0.
        """

    def answers_of(self, task: Task) -> Sequence[str]:
        """What is right for a task, as texts, so that no candidate with one of them is measured.
        Optional: by default none are known."""
        return ()

    def judge_texts(self) -> Sequence[str]:
        """The wording by which answers are judged (rubrics), for the same use. Optional."""
        return ()
