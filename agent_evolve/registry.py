"""Named parts found by entry points: a third party adds an agent, a benchmark, an engine or a model
provider by declaring one in its own distribution, exactly as this package does for its own.

    [project.entry-points."agent_evolve.engines"]
    my-engine = "my_package.engine:MyEngine"
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Literal

from .errors import ConfigurationError, UnknownNameError

Kind = Literal["agent", "benchmark", "engine", "model"]


@cache
def _entries(kind: Kind) -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group=f"agent_evolve.{kind}s")}


def names(kind: Kind) -> list[str]:
    """The registered names of a kind, sorted."""
    return sorted(_entries(kind))


def load(kind: Kind, name: str) -> Any:
    """The object registered under ``name``.

    Raises ``UnknownNameError`` for a name nobody registered, and ``ConfigurationError`` when the
    registered object can't be imported (usually a missing extra).
    """
    entries = _entries(kind)
    if name not in entries:
        raise UnknownNameError(kind, name, entries)
    entry = entries[name]
    try:
        return entry.load()
    except ImportError as error:
        raise ConfigurationError(
            f"{kind} {name!r} ({entry.value}) can't be imported: {error}",
            fix="install what it needs; for this package's own parts: "
            'pip install "agent-evolver[all]"',
        ) from error
