"""``AgentWorkspace``: typed access to everything that evolves."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

from .manifest import Manifest
from .memory import Memories
from .problem import Problem
from .prompts import Prompts
from .skills import Skills
from .tools import Tools


class AgentWorkspace(Prompts, Skills, Memories, Tools):
    """An agent as a directory of plain files.

        workspace = AgentWorkspace("my-agent")
        workspace.write_prompt(workspace.read_prompt() + "Answer in one line.\\n")
        workspace.add_memory({"lesson": "dates are day first"}, "rules")

    Every writer replaces its file in one step, refuses names that could mean another place
    (``UnsafePathError``) and never follows a link out of the root. Texts are UTF-8; bytes that are
    not become surrogate escapes when read and come back as they were when written.

    Attributes:
        root: the absolute path of the directory.
        manifest: what ``manifest.yaml`` says, read on first use. Raises ``ManifestError``.
    """

    def __init__(self, root: str | Path, manifest: Manifest | None = None) -> None:
        super().__init__(root)
        if manifest is not None:
            self.manifest = manifest

    @cached_property
    def manifest(self) -> Manifest:
        return Manifest.load(self.root)

    def problems(self) -> list[Problem]:
        """Everything odd about the files of this workspace, worst first within each file."""
        from .inspection import inspect

        return inspect(self)

    def __repr__(self) -> str:
        return f"AgentWorkspace({str(self.root)!r})"
