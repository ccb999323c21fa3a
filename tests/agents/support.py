"""A workspace of plain files, and agents over it."""

from __future__ import annotations

import json
from pathlib import Path

from agent_evolve.agents.bash import BashAgent
from agent_evolve.agents.chat import ChatAgent
from agent_evolve.llm import Completion, ScriptedModel
from agent_evolve.llm.types import ToolCall
from agent_evolve.runtime import Runtime
from agent_evolve.types import Task


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


def workspace(root: Path, files: dict[str, str] | None = None, *, agent: str = "chat") -> Path:
    """``agent``: what stands after ``agent: {type:`` in the manifest."""
    manifest = f"name: w\nagent: {{type: {agent}}}\n"
    return write(
        root, {"manifest.yaml": manifest, "prompts/system.md": "Be brief.", **(files or {})}
    )


def lines(*entries: dict[str, object]) -> str:
    return "".join(json.dumps(entry) + "\n" for entry in entries)


def chat(root: Path, model: ScriptedModel, timeout: float = 60.0) -> ChatAgent:
    agent = ChatAgent(root)
    agent.runtime = Runtime(model=model, task_timeout=timeout)
    return agent


def bash(root: Path, model: ScriptedModel, timeout: float = 60.0) -> BashAgent:
    from agent_evolve.execution.find import find_sandbox

    agent = BashAgent(root)
    agent.runtime = Runtime(model=model, sandbox=find_sandbox(), task_timeout=timeout)
    return agent


def call(name: str, /, **arguments: object) -> list[ToolCall]:
    return [ToolCall(f"c-{name}", name, arguments)]


def shell(command: str) -> list[ToolCall]:
    return call("bash", command=command)


def broken(raw: str, name: str = "bash") -> Completion:
    """A tool call whose arguments are not a JSON object."""
    return Completion("", (ToolCall("c-broken", name, None, raw),), "tool_use")


def task(text: str = "What is it?", **metadata: object) -> Task:
    return Task("t", text, metadata)
