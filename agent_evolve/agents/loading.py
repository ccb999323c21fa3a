"""Finds the agent class that a manifest names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .. import registry
from ..entrypoint import load_object
from ..errors import ManifestError
from ..workspace import Manifest
from .base import BaseAgent


def agent_class(manifest: Manifest, root: Path) -> type[BaseAgent]:
    """The class of ``agent.entrypoint`` or, without one, of the built-in ``agent.type``.

    Raises ``ManifestError`` when it can't be imported or is no subclass of ``BaseAgent``, and
    ``UnknownNameError`` for an unknown type.
    """
    if manifest.entrypoint is None:
        found: Any = registry.load("agent", manifest.agent_type)
        where = f"agent type {manifest.agent_type!r}"
    else:
        where = f"{root / 'manifest.yaml'}, key agent.entrypoint"
        found = load_object(manifest.entrypoint, root, where)
    if not (isinstance(found, type) and issubclass(found, BaseAgent)):
        raise ManifestError(
            f"{where}: {manifest.entrypoint or manifest.agent_type!r} is not an agent class",
            fix="name a subclass of agent_evolve.BaseAgent",
        )
    return found
