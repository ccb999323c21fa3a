"""The typer application and what happens to errors."""

from __future__ import annotations

import json
import logging
import os
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from .. import __version__
from ..errors import AgentEvolveError
from . import models, past, run, setup

INTERRUPTED = 130


class _Group(TyperGroup):
    """Says on Ctrl-C what that means here, before typer says only that it aborts."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            print(
                "\ninterrupted; what was done is recorded. Type the same command to go on.",
                file=sys.stderr,
            )
            sys.stderr.flush()
            os._exit(INTERRUPTED)  # threads of a cancelled batch may still wait for an answer


app = typer.Typer(
    name="agent-evolve",
    cls=_Group,
    help="Evolve an agent's files: every change measured on held-out tasks, every step in git.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"agent-evolver {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    logging.basicConfig(level=logging.WARNING, format="%(message)s", stream=sys.stderr)


run.register(app)
past.register(app)
setup.register(app)
app.add_typer(models.app, name="models", help="Local models: fetch and list.")


def run_app() -> None:
    """Run the command line and exit with the documented codes."""
    try:
        app()
    except AgentEvolveError as error:
        _tell(error)
        sys.exit(error.exit_code)


def _tell(error: AgentEvolveError) -> None:
    if "--json" in sys.argv:
        data = {"error": type(error).__name__, "message": error.message, "fix": error.fix}
        print(json.dumps(data, ensure_ascii=False))
    print(f"error: {error}", file=sys.stderr)
