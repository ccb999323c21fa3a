"""A small workspace whose agent gets better exactly when its prompt says a higher level."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from agent_evolve import BaseAgent, BenchmarkAdapter, EvolutionEngine, Feedback, StepResult, Task
from agent_evolve.types import Trajectory

MODULE = "parts"

PARTS = """
from tests.loop.support import *
"""


def difficulty(task_id: str) -> int:
    """1 to 10; an agent of that level or above can do the task."""
    return int(task_id.rsplit("-", 1)[1]) % 10 + 1


class Leveller(BaseAgent):
    """Solves tasks up to the level in its prompt, and remembers what it could not do."""

    def level(self) -> int:
        return int(self.system_prompt.rsplit(":", 1)[1])

    def solve(self, task: Task) -> Trajectory:
        able = self.level() >= difficulty(task.id)
        if not able and self.options.get("remembers"):
            self.remember(f"could not do {task.id}")
        return Trajectory(task.id, "yes" if able else "no", steps=[{"tool": "think"}])


class Questions(BenchmarkAdapter):
    def __init__(self, train: int = 20, holdout: int = 10) -> None:
        self.counts = {"train": train, "holdout": holdout}

    def get_tasks(self, split: str = "train", limit: int | None = 10) -> list[Task]:
        count = self.counts.get(split, 0)
        return [Task(f"{split}-{i}", f"the {split} question {i}") for i in range(count)][:limit]

    def evaluate(self, task: Task, trajectory: Trajectory) -> Feedback:
        right = trajectory.output == "yes"
        return Feedback(right, float(right), f"expected 'yes', got {trajectory.output!r}")


class Coach(EvolutionEngine):
    """Raises the level by ``up`` each cycle."""

    def __init__(self, up: int = 2) -> None:
        super().__init__()
        self.up = up

    def step(self, workspace: Any, observations: Any, history: Any, trial: Any) -> StepResult:
        level = int(workspace.read_prompt().rsplit(":", 1)[1])
        workspace.write_prompt(f"level:{max(0, level + self.up)}")
        return StepResult(True, f"level {level} to {level + self.up}")


def make_workspace(
    place: Path,
    *,
    agent: str = "Leveller",
    engine: str = "Coach",
    benchmark: str = "Questions",
    layers: tuple[str, ...] = ("prompts", "skills", "memory"),
    parts: str = "",
    **config: Any,
) -> Path:
    """Write a workspace; ``parts`` is Python that may define the named classes itself."""
    (place / "prompts").mkdir(parents=True)
    (place / "prompts" / "system.md").write_text("level:0")
    (place / f"{MODULE}.py").write_text(PARTS + parts)
    settings = {"batch_size": 5, "egl_threshold": 0.0, "gate": "no_regression"} | config
    manifest = {
        "name": "levels",
        "agent": {"type": "own", "entrypoint": f"{MODULE}.{agent}"},
        "engine": f"{MODULE}.{engine}",
        "benchmark": f"{MODULE}.{benchmark}",
        "evolvable_layers": list(layers),
        "config": settings,
    }
    (place / "manifest.yaml").write_text(json.dumps(manifest))
    return place


def cli(
    *arguments: str,
    cwd: Path | None = None,
    env: dict[str, str] | None = None,
    timeout: float = 120,
) -> Any:
    """Run ``agent-evolve`` in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "agent_evolve", *arguments],
        cwd=cwd,
        env=environment() | (env or {}),
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout,
    )


def environment() -> dict[str, str]:
    root = str(Path(__file__).parents[2])
    return os.environ | {"PYTHONPATH": root, "PYTHONDONTWRITEBYTECODE": "1"}


def git(place: Path, *arguments: str) -> str:
    return subprocess.run(
        ["git", *arguments], cwd=place, capture_output=True, text=True, check=True
    ).stdout


def tags(place: Path) -> dict[str, str]:
    """Every tag of a workspace of its own, with the tree it leads to."""
    lines = git(place, "for-each-ref", "--format=%(refname:short)", "refs/tags").split()
    return {name: git(place, "rev-parse", f"{name}^{{tree}}").strip() for name in lines}
