"""A workspace that is open for measuring: its parts, and a version of it loaded in a copy."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ..agents.base import BaseAgent
from ..benchmarks.base import BenchmarkAdapter
from ..config import EvolveConfig
from ..journal import Journal
from ..llm import Ledger
from ..workspace.repository import Tree, WorkspaceRepository
from .measure import Measurer, check_loaded
from .progress import Progress
from .scores import ScoreCache


@dataclass(frozen=True, slots=True)
class Opened:
    """The parts of an open workspace. Whoever made it holds the run lock.

    ``make_agent`` gives the agent loaded from a directory; ``root`` is the user's workspace.
    """

    make_agent: Callable[[Path], BaseAgent]
    benchmark: BenchmarkAdapter
    config: EvolveConfig
    root: Path
    repository: WorkspaceRepository
    journal: Journal
    ledger: Ledger
    progress: Progress

    @contextmanager
    def loaded(self, tree: Tree) -> Iterator[tuple[BaseAgent, Measurer]]:
        """The agent with the files of a version, in a throwaway copy, and what measures it.

        Raises ``VersionError`` when the agent changes the copy while it loads.
        """
        cache = ScoreCache(self.root / "evolution" / "cache" / "scores.jsonl")
        workers = self.config.solve_workers
        measurer = Measurer(self.benchmark, self.ledger, cache, workers, self.progress)
        try:
            with tempfile.TemporaryDirectory(prefix="agent-evolve-measured-") as directory:
                copy = Path(directory) / "workspace"
                self.repository.materialise(tree, copy)
                agent = self.make_agent(copy)
                check_loaded(agent, tree.id, self.repository)
                yield agent, measurer
        finally:
            cache.close()
