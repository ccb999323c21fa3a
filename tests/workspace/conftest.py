"""What tests of the workspace share."""

from __future__ import annotations

import pytest
from hypothesis import settings

from agent_evolve.workspace import AgentWorkspace

# How long one example takes says more about the machine than about the code.
settings.register_profile("no deadline", deadline=None)
settings.load_profile("no deadline")


@pytest.fixture
def workspace(tmp_path):
    """A workspace with a manifest and nothing else, in a directory of its own."""
    root = tmp_path / "agent"
    root.mkdir()
    (root / "manifest.yaml").write_text("agent: {type: chat}\n")
    return AgentWorkspace(root)
