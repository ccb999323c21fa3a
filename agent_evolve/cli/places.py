"""Finds the workspace that a verb is about."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from ..errors import ConfigurationError, WorkspaceError
from ..journal import Journal
from ..workspace import Manifest
from ..workspace.repository import WorkspaceRepository

WorkspaceOption = Annotated[
    Path | None,
    typer.Option("--workspace", "-w", help="The workspace; by default the one you are in."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def find_workspace(given: Path | None) -> Path:
    """The given workspace, the one that the current directory lies in, or the only evolved one
    directly below it."""
    here = Path.cwd()
    if given is not None:
        if not (given / "manifest.yaml").is_file():
            raise WorkspaceError(
                f"{given} is not a workspace: it has no manifest.yaml",
                fix=f"agent-evolve init {given}, or name another with -w",
            )
        return given
    for place in (here, *here.parents):
        if (place / "manifest.yaml").is_file():
            return place
    below = sorted(path.parent.parent for path in here.glob("*/evolution/journal.jsonl"))
    if len(below) == 1:
        print(f"workspace: {below[0].name}", file=sys.stderr)
        return below[0]
    if below:
        names = ", ".join(path.name for path in below)
        raise ConfigurationError(
            f"there are several workspaces here: {names}", fix=f"name one: -w {below[0].name}"
        )
    raise WorkspaceError(
        "there is no workspace here", fix="cd into one, or name it: -w PATH (see agent-evolve init)"
    )


@dataclass(frozen=True, slots=True)
class Past:
    """What can be read of a workspace without running anything."""

    root: Path
    manifest: Manifest
    journal: Journal
    repository: WorkspaceRepository


@contextmanager
def opened(given: Path | None) -> Iterator[Past]:
    """Open a workspace for reading; raises ``WorkspaceError`` when it has never been run."""
    root = find_workspace(given)
    journal = Journal(root / "evolution" / "journal.jsonl")
    if next(journal.events(), None) is None:
        raise WorkspaceError(f"{root} has not been run yet", fix=f"agent-evolve run {root}")
    manifest = Manifest.load(root)
    repository = WorkspaceRepository.open(root, manifest.layers, create=False)
    try:
        yield Past(root, manifest, journal, repository)
    finally:
        journal.close()
        repository.close()
