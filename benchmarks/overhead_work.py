"""The work that ``overhead.py`` times, for whichever ``agent_evolve`` is importable.

Prints one JSON object of measurements. Both this project and its peer (a-evolve, which has the same
import name and is therefore run by an interpreter of its own) do exactly this work.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import agent_evolve
from agent_evolve import (
    BaseAgent,
    BenchmarkAdapter,
    EvolutionEngine,
    EvolveConfig,
    Evolver,
    Feedback,
    Observation,
    StepResult,
    Task,
    Trajectory,
)

OURS = hasattr(agent_evolve, "__version__") and "registry.py" in os.listdir(
    Path(agent_evolve.__file__).parent
)
TASKS = 10


class Trivial(BaseAgent):
    def solve(self, task: Task) -> Trajectory:
        return Trajectory(task.id, "an answer", [{"tool": "think", "action": "answer"}])


class Swinging(BenchmarkAdapter):
    """Scores swing, so that no implementation sees a plateau."""

    evaluated = 0

    def get_tasks(self, split: str = "train", limit: int | None = 10) -> list[Task]:
        if split != "train":
            return []
        return [Task(f"task-{i}", f"question {i}", {}) for i in range(TASKS)]

    def evaluate(self, task: Task, trajectory: Trajectory) -> Feedback:
        self.evaluated += 1
        score = 0.2 if (self.evaluated // TASKS) % 2 else 0.8
        return Feedback(score > 0.5, score, "expected another answer", {})


class OneEdit(EvolutionEngine):
    """Changes one file a cycle and notes when."""

    def __init__(self) -> None:
        self.times: list[float] = []

    def step(self, workspace: Any, observations: Any, history: Any, trial: Any) -> StepResult:
        self.times.append(time.perf_counter())
        workspace.write_prompt(f"Answer well. Revision {len(self.times)}.\n")
        return StepResult(mutated=True, summary="one edit")


def make_workspace(place: Path, files: int) -> Path:
    """A workspace of about ``files`` files: a prompt, a manifest, a memory, and skills."""
    (place / "prompts").mkdir(parents=True)
    (place / "memory").mkdir()
    (place / "prompts" / "system.md").write_text("Answer well.\n")
    (place / "memory" / "episodic.jsonl").write_text('{"content": "a lesson"}\n')
    (place / "manifest.yaml").write_text(
        "name: overhead\nagent:\n  type: reference\n  entrypoint: overhead_work.Trivial\n"
        "evolvable_layers: [prompts, skills, memory]\nreload_strategy: hot\n"
    )
    for number in range(files - 3):
        skill = place / "skills" / f"skill-{number:04d}"
        skill.mkdir(parents=True)
        (skill / "SKILL.md").write_text(
            f"---\nname: skill-{number:04d}\ndescription: Does thing {number} when asked.\n---\n"
            f"# Thing {number}\n\n" + "Do it step by step.\n" * 20
        )
    return place


def run_cycles(place: Path, files: int, cycles: int) -> list[float]:
    """Milliseconds between one engine step and the next: whole cycles."""
    workspace = make_workspace(place / "agent", files)
    engine = OneEdit()
    settings = {"batch_size": TASKS, "max_cycles": cycles, "holdout_ratio": 0.0}
    if OURS:
        settings["egl_threshold"] = 0.0
    evolver = Evolver(
        agent=Trivial(workspace),
        benchmark=Swinging(),
        config=EvolveConfig(**settings),
        engine=engine,
    )
    evolver.run(cycles=cycles)
    if len(engine.times) != cycles:
        raise SystemExit(f"{len(engine.times)} of {cycles} cycles were run")
    return [1e3 * (b - a) for a, b in zip(engine.times, engine.times[1:], strict=False)]


def growth_of(place: Path) -> float:
    """The last tenth of 200 cycles against the first, by their medians."""
    times = run_cycles(place, 10, 200)
    tenth = len(times) // 10
    return statistics.median(times[-tenth:]) / statistics.median(times[:tenth])


def observations(count: int) -> list[Observation]:
    talk = [{"role": "user", "content": "x" * 1000}, {"role": "assistant", "content": "y" * 1000}]
    return [
        Observation(
            task=Task(f"task-{i}", "a question", {}),
            trajectory=Trajectory(f"task-{i}", "an answer", [], talk),
            feedback=Feedback(i % 2 == 0, (i % 11) / 10, "expected another answer", {}),
        )
        for i in range(count)
    ]


def record_and_read(place: Path, count: int, batch: int) -> tuple[float, float]:
    """Microseconds to record one 2 kB observation; milliseconds to read the statistics of all."""
    made = observations(count)
    workspace = make_workspace(place / "observed", 5)
    began = time.perf_counter()
    if OURS:
        from agent_evolve import Observer

        observer = Observer(workspace)
        for start in range(0, count, batch):
            for item in made[start : start + batch]:
                observer.record(item.task, item.trajectory, item.feedback)
            observer.flush()
    else:
        from agent_evolve.engine.observer import Observer

        observer = Observer(workspace / "evolution")
        for start in range(0, count, batch):
            observer.collect(made[start : start + batch])
    recorded = 1e6 * (time.perf_counter() - began) / count
    if OURS:
        from agent_evolve import EvolutionHistory

        def read() -> int:
            return EvolutionHistory(workspace).get_summary_stats().total
    else:

        def read() -> int:
            return Observer(workspace / "evolution").get_summary_stats()["total"]

    began = time.perf_counter()
    total = read()
    took = 1e3 * (time.perf_counter() - began)
    if total != count:
        raise SystemExit(f"{total} of {count} observations were counted")
    return recorded, took


def import_seconds() -> float:
    """Seconds that ``import agent_evolve`` adds to a bare interpreter, the median of 9."""

    def run(code: str) -> float:
        began = time.perf_counter()
        # Isolated: what lies in the current directory must not be taken for what is installed.
        subprocess.run([sys.executable, "-I", "-c", code], check=True)
        return time.perf_counter() - began

    run("import agent_evolve")
    differences = [run("import agent_evolve") - run("pass") for _ in range(9)]
    return statistics.median(differences)


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="overhead-") as directory:
        place = Path(directory)
        small = run_cycles(place / "small", 10, 50)
        large = run_cycles(place / "large", 2000, 12)
        growth = statistics.median(growth_of(place / f"long-{i}") for i in range(3))
        observed = [record_and_read(place / f"observed-{i}", 10_000, 10) for i in range(3)]
    print(
        json.dumps(
            {
                "cycle_10_files": statistics.median(small),
                "cycle_2000_files": statistics.median(large),
                "growth_200_cycles": growth,
                "record_observation": statistics.median(took[0] for took in observed),
                "statistics_10000": statistics.median(took[1] for took in observed),
                "import": import_seconds(),
            }
        )
    )


if __name__ == "__main__":
    main()
