"""The agent's side of the contract: solve one task with what the workspace holds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any, Self

from ..runtime import Runtime
from ..types import SkillMeta, Task, Trajectory
from ..workspace import AgentWorkspace

_turn: ContextVar[int] = ContextVar("agent_evolve_turn", default=0)


@contextmanager
def solving(turn: int) -> Iterator[None]:
    """Marks what is remembered inside as belonging to the ``turn``-th task of the batch, so that
    memory is written in task order however many tasks are solved at once."""
    token = _turn.set(turn)
    try:
        yield
    finally:
        _turn.reset(token)


@dataclass(frozen=True, slots=True)
class _Buffered:
    turn: int
    kind: str
    name: str
    content: Any


class BaseAgent(ABC):
    """Parent of all evolvable agents. Subclass it and write ``solve``.

    ``solve`` may be called from several threads at once (``solve_workers``), so it should read
    ``self.system_prompt``, ``self.skills`` and ``self.memories`` and keep what it learns through
    ``remember`` and ``propose_skill``.

    Attributes:
        workspace: typed access to the files this agent was loaded from.
        system_prompt: ``prompts/system.md`` as loaded.
        fragments: name to text of ``prompts/fragments/*``.
        skills: the skills as listed, drafts left out.
        memories: entries of all categories, oldest first.
        runtime: model, sandbox and time limit, set by the run.
        options: the other keys of the manifest's ``agent:`` mapping.
    """

    runtime: Runtime = Runtime()
    needs_model: bool = False
    needs_sandbox: bool = False
    """What a run must provide in ``runtime``; asked before anything is spent."""
    reports_cost: bool = False
    """True for an agent whose program pays for its own model calls and reports them in
    ``Trajectory.metrics`` (``usd``, ``input_tokens``, ``output_tokens``): the run enters them in
    its ledger, and asks the caps before each task."""

    def __init__(self, workspace_path: str | Path) -> None:
        self._start(AgentWorkspace(workspace_path))

    def _start(self, workspace: AgentWorkspace) -> None:
        self.workspace = workspace
        self.options: dict[str, Any] = dict(workspace.manifest.agent_options)
        self.system_prompt = ""
        self.fragments: dict[str, str] = {}
        self.skills: list[SkillMeta] = []
        self.memories: list[dict[str, Any]] = []
        self._buffer: list[_Buffered] = []
        self._lock = Lock()
        self.reload_from_fs()

    @abstractmethod
    def solve(self, task: Task) -> Trajectory:
        """Do one task. An exception is this agent's failure and scores 0.0; raise
        ``InfrastructureError`` when the outside failed, which makes the task count for nothing."""

    def needs(self) -> list[tuple[str, bool, str]]:
        """What this agent needs besides model and sandbox, for ``doctor``: the thing, whether it is
        there, and what to do when it is not."""
        return []

    def reload_from_fs(self) -> None:
        """Read the workspace's files again, after evolution changed them."""
        self.system_prompt = self.workspace.read_prompt()
        self.fragments = {
            name: self.workspace.read_fragment(name) for name in self.workspace.list_fragments()
        }
        self.skills = self.workspace.list_skills()
        self.memories = self.workspace.read_all_memories(limit=None)

    def export_to_fs(self) -> None:
        """Write what was remembered and proposed since the last export, in task order."""
        with self._lock:
            buffered, self._buffer = sorted(self._buffer, key=lambda item: item.turn), []
        for item in buffered:
            if item.kind == "memory":
                self.workspace.add_memory(item.content, item.name)
            else:
                self.workspace.write_draft(item.name, item.content)

    def remember(
        self, content: str | dict[str, Any], category: str = "episodic", **extra: Any
    ) -> None:
        """Keep a memory until the end of the batch; it is then written to
        ``memory/<category>.jsonl``. A string becomes ``{"content": ...}``."""
        entry = dict(content) if isinstance(content, dict) else {"content": content}
        self._keep("memory", category, entry | extra)

    def propose_skill(self, name: str, content: str) -> None:
        """Leave a draft in ``skills/_drafts/`` for the engine to accept, merge or reject."""
        self._keep("draft", name, content)

    def get_skill_content(self, name: str) -> str:
        """The whole SKILL.md of a skill, frontmatter included."""
        return self.workspace.read_skill(name)

    def at(self, workspace_path: str | Path) -> Self:
        """This agent, loaded from another copy of the workspace.

        The default makes a shallow copy, so clients and settings are shared; override it for an
        agent that can't be copied that way.
        """
        import copy

        twin = copy.copy(self)
        twin._start(AgentWorkspace(workspace_path))
        return twin

    def buffered(self, turn: int) -> list[tuple[str, str, Any]]:
        """What was kept during one task of the batch and is not exported yet, as plain data."""
        with self._lock:
            kept = [item for item in self._buffer if item.turn == turn]
        return [(item.kind, item.name, item.content) for item in kept]

    def restore(self, turn: int, kept: Iterable[tuple[str, str, Any]]) -> None:
        """Put back what ``buffered`` gave, when a batch is continued by another process."""
        with self._lock:
            self._buffer.extend(_Buffered(turn, *item) for item in kept)

    def _keep(self, kind: str, name: str, content: Any) -> None:
        with self._lock:
            self._buffer.append(_Buffered(_turn.get(), kind, name, content))
