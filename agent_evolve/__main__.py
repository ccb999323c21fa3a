"""``python -m agent_evolve`` is ``agent-evolve``."""

from .cli import main

main()
