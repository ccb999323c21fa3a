"""A small workspace on disk, observations of it, and a history, for tests of SkillForge."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from agent_evolve.engines.skillforge import SkillForge
from agent_evolve.errors import SandboxUnavailable
from agent_evolve.execution import find_sandbox
from agent_evolve.llm import ToolCall
from agent_evolve.llm.scripted import ScriptedModel
from agent_evolve.runtime import Runtime
from agent_evolve.types import CycleRecord, Feedback, Observation, Task, Trajectory
from agent_evolve.workspace import AgentWorkspace

DATES = "---\nname: dates\ndescription: How to write dates.\n---\n# Dates\n\nUse ISO format.\n"
TOTALS = "---\nname: totals\ndescription: How to add up.\n---\nAdd the lines up.\n"


def make_workspace(
    root: Path, files: dict[str, str] | None = None, *, manifest: str = ""
) -> AgentWorkspace:
    """A workspace with a prompt, the skill ``dates`` and further files."""
    content = {
        "manifest.yaml": f"name: demo\nagent: {{type: chat}}\n{manifest}",
        "prompts/system.md": "You turn dates into ISO dates.\n",
        "skills/dates/SKILL.md": DATES,
        **(files or {}),
    }
    for name, text in content.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="")
    return AgentWorkspace(root)


def observed(
    number: int, score: float = 0.0, *, question: str = "", answer: str = "", detail: str = ""
) -> Observation:
    return Observation(
        Task(f"t-{number}", question or f"Write 0{number}/04/2021 as an ISO date."),
        Trajectory(f"t-{number}", answer or f"2021-0{number}-04"),
        Feedback(score >= 1.0, score, detail or f"expected '2021-04-0{number}', got another date"),
        cycle=3,
    )


@dataclass
class Past:
    """A history with what the test puts in."""

    curve: list[tuple[int, float]] = field(default_factory=list)
    cycles: list[CycleRecord] = field(default_factory=list)
    failures: list[Observation] = field(default_factory=list)

    def get_observations(
        self, last_n_cycles: int | None = 3, only_failures: bool = False
    ) -> list[Observation]:
        return self.failures

    def get_score_curve(self) -> list[tuple[int, float]]:
        return self.curve

    def get_workspace_diff(self, a: str, b: str) -> str:
        return ""

    def read_file_at(self, ref: str, path: str) -> str:
        return ""


def bash(*commands: str) -> list[ToolCall]:
    """One turn of a model that runs commands."""
    return [ToolCall(f"c{i}", "bash", {"command": c}) for i, c in enumerate(commands)]


def forge(script: Any, *, sandbox: Any = None, **options: Any) -> tuple[SkillForge, ScriptedModel]:
    """An engine whose model follows a script."""
    model = ScriptedModel(script)
    engine = SkillForge(**options)
    engine.runtime = Runtime(model=model, sandbox=sandbox)
    return engine, model


def step(engine: SkillForge, workspace: AgentWorkspace, observations: Any = None, past: Any = None):
    observations = [observed(1), observed(2)] if observations is None else observations
    return engine.step(workspace, observations, past or Past(), None)


def files(root: Path) -> dict[str, bytes]:
    """Every file of the workspace with its bytes."""
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }


@functools.cache
def _sandbox():
    try:
        return find_sandbox()
    except SandboxUnavailable as error:
        pytest.skip(str(error))


def run_in_shell(workspace, *script, observations=None, **options):
    """One step in shell mode, with a real bash in the real sandbox; its result and the model."""
    engine, model = forge(list(script), sandbox=_sandbox(), edit_mode="shell", **options)
    return step(engine, workspace, observations), model


def outputs(model):
    """What the model was told about its commands, in order, each once."""
    return [r.content for m in model.requests[-1].messages for r in m.tool_results]
