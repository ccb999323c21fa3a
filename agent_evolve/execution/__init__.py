"""Where code runs: the sandbox protocol, its backends, and limits."""

from __future__ import annotations

from .types import CommandResult, Limits, Sandbox

__all__ = ["CommandResult", "Limits", "Sandbox", "find_sandbox"]


def find_sandbox(unsafe: bool = False) -> Sandbox:
    """A sandbox that was seen to work on this machine; with ``unsafe``, one that confines nothing.

    Raises ``SandboxUnavailable``, with what to do, where none works.
    """
    from .find import find_sandbox as find

    return find(unsafe)
