"""The command ``agent-evolve``. Progress goes to stderr, results to stdout, ``--json`` everywhere."""

from __future__ import annotations


def main() -> None:
    """Entry point of the command."""
    from .app import run_app

    run_app()
