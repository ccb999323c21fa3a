"""Lets an engine try a changed workspace on train tasks."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ..agents.base import BaseAgent
from ..types import Observation, Task
from ..workspace import AgentWorkspace
from .measure import Measurer


class TrialRunner:
    """Runs the agent on train tasks with the files of a given workspace, or with the head's.

    The agent works in a plain copy, so a trial never changes the workspace it tries. Calls count
    against the run's caps. Holdout and test tasks can't be reached from here.
    """

    def __init__(self, agent: BaseAgent, measurer: Measurer, tasks: Sequence[Task]) -> None:
        self._agent = agent
        self._measurer = measurer
        self._tasks = list(tasks)
        self._ids = {task.id for task in tasks}

    def get_tasks(self, limit: int | None = 5) -> list[Task]:
        """The first ``limit`` train tasks; ``None`` for all."""
        return self._tasks[:limit]

    def run_tasks(
        self, tasks: Sequence[Task], workspace: AgentWorkspace | None = None
    ) -> list[Observation]:
        """Solve and score tasks; results in task order. Raises ``ValueError`` for a task that is
        not one of the train tasks."""
        foreign = [task.id for task in tasks if task.id not in self._ids]
        if foreign:
            raise ValueError(f"not train tasks: {foreign[:5]}")
        root = self._agent.workspace.root if workspace is None else workspace.root
        with tempfile.TemporaryDirectory(prefix="agent-evolve-trial-") as directory:
            copy = Path(directory) / "workspace"
            shutil.copytree(root, copy, symlinks=True)
            return self._run(self._agent.at(copy), tasks)

    def run_single(self, task: Task, workspace: AgentWorkspace | None = None) -> Observation:
        """Solve and score one task."""
        return self.run_tasks([task], workspace)[0]

    def _run(self, agent: BaseAgent, tasks: Sequence[Task]) -> list[Observation]:
        return self._measurer.each(
            tasks, lambda task, turn: Observation(task, *self._measurer.solve(agent, task, turn))
        )
