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
from ..loop.stopping import Stopped
from ..loop.time_limit import abandoned
from . import models, past, review, run, setup

INTERRUPTED = 130


class _Group(TyperGroup):
    """Says on Ctrl-C what that means here, before typer says only that it aborts."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as stopped:
            said = str(stopped) or "interrupted; what was done is recorded"
            fix = "Type the same command to go on."
            if "--json" in sys.argv:
                reason = stopped.reason if isinstance(stopped, Stopped) else "interrupted"
                print(json.dumps({"stopped": reason, "message": said, "fix": fix}))
            print(f"\n{said}. {fix}", file=sys.stderr)
            _exit_now(INTERRUPTED)  # threads of a cancelled batch may still wait for an answer


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
review.register(app)
setup.register(app)
app.add_typer(models.app, name="models", help="Local models: fetch and list.")


def run_app() -> None:
    """Run the command line and exit with the documented codes."""
    try:
        app()
    except AgentEvolveError as error:
        _tell(error)
        _leave(error.exit_code)
    except SystemExit as done:
        _leave(done.code)


def _leave(code: str | int | None) -> None:
    """Exit. Threads that were left behind don't hold it up, nor do those that they started."""
    if abandoned() and (code is None or isinstance(code, int)):
        _exit_now(code or 0)
    sys.exit(code)


def _exit_now(code: int) -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _tell(error: AgentEvolveError) -> None:
    if "--json" in sys.argv:
        data = {"error": type(error).__name__, "message": error.message, "fix": error.fix}
        print(json.dumps(data, ensure_ascii=False))
    print(f"error: {error}", file=sys.stderr)
