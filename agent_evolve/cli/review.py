"""Verbs by which a person answers a candidate that waits: ``approve`` and ``reject``."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from ..loop.lock import run_lock
from ..loop.records import cycle_record
from .output import emit_json
from .places import JsonOption, WorkspaceOption, find_workspace, opened

CycleArgument = Annotated[int, typer.Argument(help="The cycle that waits, e.g. 3.", min=1)]


def register(app: typer.Typer) -> None:
    """Add the verbs of this module."""
    app.command("approve")(approve)
    app.command("reject")(reject)


def approve(
    cycle: CycleArgument, workspace: WorkspaceOption = None, json: JsonOption = False
) -> None:
    """Make the candidate of a cycle that waits the head."""
    _answer(cycle, workspace, json, approved=True, because="")


def reject(
    cycle: CycleArgument,
    because: Annotated[str, typer.Option(help="Why; the engine is told in its next step.")] = "",
    workspace: WorkspaceOption = None,
    json: JsonOption = False,
) -> None:
    """Keep the head as it is; the candidate stays as candidate-N."""
    _answer(cycle, workspace, json, approved=False, because=because)


def _answer(
    cycle: int, workspace: WorkspaceOption, json: bool, *, approved: bool, because: str
) -> None:
    from ..loop.review import answer

    root = find_workspace(workspace)
    with run_lock(root, f"review of cycle {cycle}"), opened(root) as past:
        record = answer(
            past.root, past.repository, past.journal, cycle, approved=approved, because=because
        )
    if json:
        emit_json(cycle_record(record))
        return
    name = os.path.relpath(root)
    if approved:
        print(f"evo-{cycle} is the head now")
        print(f"  undo it:  agent-evolve rollback evo-{cycle - 1} -w {name}")
    else:
        print(f"candidate-{cycle} is not taken; the head stays as it was")
    print(f"  go on:    agent-evolve run {name}")
