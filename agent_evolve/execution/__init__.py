"""Where code runs: the sandbox protocol, its backends, and limits."""

from .types import CommandResult, Limits, Sandbox

__all__ = ["CommandResult", "Limits", "Sandbox"]
