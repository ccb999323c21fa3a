"""What evolves: manifest, layers, skills, memory, tools, and the git repository of versions."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .manifest import Manifest
from .workspace import AgentWorkspace

if TYPE_CHECKING:
    from .repository import WorkspaceRepository as WorkspaceRepository

__all__ = ["AgentWorkspace", "Manifest", "WorkspaceRepository"]


def __getattr__(name: str) -> Any:
    # Git is loaded by those who ask for versions, not by every agent that reads a prompt.
    if name != "WorkspaceRepository":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = import_module(".repository", __name__).WorkspaceRepository
    globals()[name] = value
    return value
