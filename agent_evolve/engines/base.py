"""The engine's side of the contract: read what happened, change the candidate's files.

An engine gets a throwaway copy to change, train observations, the history of past cycles and a
runner for trials on train tasks; nothing through which it could see a holdout task or touch the
user's files.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from ..runtime import Runtime
from ..types import Observation, StepResult, Task

if TYPE_CHECKING:
    from ..workspace import AgentWorkspace


class History(Protocol):
    """What an engine may ask about the past; ``loop.EvolutionHistory`` answers. Train only."""

    def get_observations(
        self, last_n_cycles: int | None = 3, only_failures: bool = False
    ) -> list[Observation]: ...

    def get_score_curve(self) -> list[tuple[int, float]]: ...

    def get_workspace_diff(self, a: str, b: str) -> str: ...

    def read_file_at(self, ref: str, path: str) -> str: ...


class Trial(Protocol):
    """Runs a changed workspace on train tasks, for engines that try before they propose."""

    def get_tasks(self, limit: int | None = 5) -> list[Task]: ...

    def run_tasks(
        self, tasks: Sequence[Task], workspace: AgentWorkspace | None = None
    ) -> list[Observation]: ...

    def run_single(self, task: Task, workspace: AgentWorkspace | None = None) -> Observation: ...


class EvolutionEngine(ABC):
    """Decides how to change a workspace. Subclass it and write ``step``."""

    runtime: Runtime = Runtime()
    """Set by the run before the first step: the evolver's model, the sandbox."""
    needs_model: bool = False
    needs_sandbox: bool = False
    """What a run must provide in ``runtime``; asked before anything is spent."""

    def __init__(self, **options: Any) -> None:
        if options:
            from ..errors import UnknownNameError

            raise UnknownNameError(f"option of {type(self).__name__}", next(iter(options)), [])

    @abstractmethod
    def step(
        self,
        workspace: AgentWorkspace,
        observations: Sequence[Observation],
        history: History,
        trial: Trial,
    ) -> StepResult:
        """Change the files of ``workspace`` (a copy) so that the agent does better next time.

        ``observations`` are this cycle's valid train observations. What changed is counted from the
        files, whatever the result says. An exception fails this cycle; the run goes on.
        """

    def on_cycle_end(self, accepted: bool, score: float | None = None) -> None:  # noqa: B027
        """Called after each cycle with what became of the candidate. Optional."""
