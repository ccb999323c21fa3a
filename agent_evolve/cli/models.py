"""``agent-evolve models``: weights that run on this machine."""

from __future__ import annotations

import json
import sys

import typer

app = typer.Typer(no_args_is_help=True, help="Weights of local models: fetch them, list them.")


@app.command()
def pull(
    name: str = typer.Argument(help="A name that 'agent-evolve models list' shows."),
    as_json: bool = typer.Option(False, "--json", help="Print the result as JSON."),
) -> None:
    """Fetch the weights of a local model and check their hash."""
    from ..llm.pull import pull as fetch

    path = fetch(name, lambda line: print(line, file=sys.stderr))
    if as_json:
        print(json.dumps({"name": name, "path": str(path), "bytes": path.stat().st_size}))
    else:
        print(f"{path}\nuse it: --model local:{name}")


@app.command("list")
def list_models(
    as_json: bool = typer.Option(False, "--json", help="Print one JSON object a line."),
) -> None:
    """List the local models that can be fetched by name, and which are here."""
    from ..llm.weights import WEIGHTS, path_of

    for weights in WEIGHTS.values():
        path = path_of(weights)
        here = path.is_file() and path.stat().st_size == weights.size
        if as_json:
            row = {"name": weights.name, "bytes": weights.size, "sha256": weights.sha256}
            print(json.dumps({**row, "path": str(path) if here else None, "about": weights.about}))
        else:
            state = "here" if here else f"{weights.size / 1e9:.1f} GB"
            print(f"{weights.name:<20} {state:>7}  {weights.about}")
