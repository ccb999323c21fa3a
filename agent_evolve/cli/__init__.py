"""The command ``agent-evolve``: progress on stderr, results on stdout, ``--json`` everywhere."""

from __future__ import annotations


def main() -> None:
    """Entry point of the command."""
    from .app import run_app

    run_app()
