"""Verbs before a run: ``init`` and ``doctor``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .output import emit_json, say, table
from .places import JsonOption

NOT_READY = 2


def register(app: typer.Typer) -> None:
    """Add the verbs of this module."""
    app.command("init")(init)
    app.command("doctor")(doctor)


def init(
    place: Annotated[Path, typer.Argument(help="The directory to make; must be new or empty.")],
    seed: Annotated[
        str | None, typer.Option("--seed", help="Start from a seed instead of the template.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Make a commented workspace with tasks and a grader of your own to fill in."""
    from ..seeds import copy_seed, copy_template

    if seed is not None:
        copy_seed(seed, place)
    else:
        copy_template(place)
    if json:
        emit_json({"workspace": str(place)})
        return
    print(f"made {place}:")
    for path in sorted(place.rglob("*")):
        if path.is_file():
            print(f"  {path.relative_to(place)}")
    print(f"next:  edit {place}/manifest.yaml and {place}/tasks.jsonl, then")
    print(f"       agent-evolve doctor {place}")
    print(f"       agent-evolve run {place} --cycles 5")


def doctor(
    agent: Annotated[str, typer.Argument(help="A workspace directory or a seed's name.")] = ".",
    model: Annotated[str | None, typer.Option(help="Check with this agent model.")] = None,
    evolver_model: Annotated[str | None, typer.Option(help="And this engine model.")] = None,
    engine: Annotated[str | None, typer.Option(help="And this engine.")] = None,
    json: JsonOption = False,
) -> None:
    """A table of what is ready, with one fix per failing row. Spends nothing, changes nothing."""
    from ..checkup import check

    rows = check(agent, model=model, evolver_model=evolver_model, engine=engine)
    ready = all(row.ok for row in rows)
    if json:
        emit_json(
            {
                "ready": ready,
                "rows": [
                    {"what": r.what, "ok": r.ok, "found": r.found, "fix": r.fix} for r in rows
                ],
            }
        )
    else:
        table(
            ("", "what", "found", "fix"),
            [("ok" if r.ok else "NO", r.what, r.found, "" if r.ok else r.fix) for r in rows],
        )
        say("ready" if ready else "not ready: do what the last column says")
    raise typer.Exit(0 if ready else NOT_READY)
