"""What a run hands to the parts that act: a model, a sandbox, a time limit.

An agent or engine never builds these for itself, so that every call is metered by the run's
ledger, every trace is kept, and every command runs where the run says.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .errors import ConfigurationError

if TYPE_CHECKING:
    from .execution import Sandbox
    from .llm import Model


@dataclass(frozen=True, slots=True)
class Runtime:
    """The means a run gives to an agent, an engine or a judge.

    Attributes:
        model: the metered model of this role, or ``None`` when none is configured.
        sandbox: where commands run, or ``None`` when nothing in this run needs one.
        task_timeout: seconds one task may take; a command agent is killed after it.
        max_tokens: tokens of one answer of the model, where the run's settings say so.
    """

    model: Model | None = None
    sandbox: Sandbox | None = None
    task_timeout: float = 600.0
    max_tokens: int | None = None

    def require_model(self, who: str) -> Model:
        """The model, or a ``ConfigurationError`` that says how to name one."""
        if self.model is None:
            raise ConfigurationError(
                f"{who} needs a model and none is configured",
                fix="add 'model: anthropic:claude-sonnet-5-5' to manifest.yaml, "
                "or pass --model PROVIDER:NAME",
            )
        return self.model

    def require_sandbox(self, who: str) -> Sandbox:
        """The sandbox, or a ``ConfigurationError``."""
        if self.sandbox is None:
            raise ConfigurationError(
                f"{who} runs commands and this run has no sandbox",
                fix="start it through Evolver or 'agent-evolve run', which provide one",
            )
        return self.sandbox
