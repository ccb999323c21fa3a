"""What tests of all rooms share."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def local_model_path() -> Callable[[str], Path]:
    """The GGUF file of a known local model, fetched when it is not there.

    A failed fetch fails the test. Only AGENT_EVOLVE_SKIP_LOCAL_MODEL=1 skips it.
    """

    def path(name: str) -> Path:
        if os.environ.get("AGENT_EVOLVE_SKIP_LOCAL_MODEL"):
            pytest.skip("AGENT_EVOLVE_SKIP_LOCAL_MODEL is set")
        from agent_evolve.llm.pull import pull

        return pull(name, lambda line: print(line, file=sys.stderr))

    return path
