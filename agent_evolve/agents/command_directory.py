"""The throwaway directory in which a command agent's program does one task."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import UnsafePathError
from ..types import Task
from ..workspace import AgentWorkspace
from ..workspace.left_out import is_rebuilt, is_secret
from ..workspace.names import PRIVATE, inside
from .command_settings import sendable
from .task_files import lay_out


@dataclass(frozen=True, slots=True)
class TaskDirectory:
    """Where things lie for one task, below ``base``."""

    base: Path

    @property
    def task(self) -> Path:
        """The program's current directory."""
        return self.base / "task"

    @property
    def workspace(self) -> Path:
        return self.base / "workspace"

    @property
    def task_file(self) -> Path:
        return self.base / "task.txt"

    @property
    def out(self) -> Path:
        return self.base / "out" / "answer.txt"

    def prepare(self, task: Task) -> None:
        """Make the directories, and lay out the task's text and files."""
        self.task.mkdir()
        self.out.parent.mkdir()
        lay_out(task, self.task)
        self.task_file.write_text(sendable(task.input), encoding="utf-8")

    def write(self, name: str, text: str) -> Path:
        """Write a file of the program's directory, in the place of one that the task brought."""
        path = inside(self.task, self.task / name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(sendable(text), encoding="utf-8")
        return path

    def copy_skills(self, source: Path, to: str) -> list[Path]:
        """Copy skills whole: bytes, modes and links as they are.

        Only a ``SKILL.md`` that is a link becomes a file, as programs don't look for links. What
        the workspace does not list as a skill is none here either: drafts, a directory that
        begins with ``_`` (its other files are there for the skills that use them), and one that is
        a link out of the workspace. Returns the copies of SKILL.md.
        """
        files = []
        target = inside(self.task, self.task / to)
        for skill in sorted(source.iterdir()) if source.is_dir() else ():
            hidden = skill.name == "_drafts" or skill.name.startswith(".")
            if hidden or not skill.is_dir() or not _stays_inside(source.parent, skill):
                continue
            copy = target / skill.name
            shutil.copytree(skill, copy, symlinks=True, dirs_exist_ok=True)
            file = copy / "SKILL.md"
            if skill.name.startswith("_"):
                file.unlink(missing_ok=True)
            elif file.is_symlink():
                file.unlink()
                file.write_bytes((skill / "SKILL.md").read_bytes())
            if file.is_file():
                files.append(file)
        return files

    def copy_workspace(self, workspace: AgentWorkspace) -> None:
        """Copy the workspace without what tells the answers (history, tasks, grader), without
        secrets and without caches."""
        root = workspace.root.resolve()
        hidden = {root / name for name in PRIVATE}
        named = [root / name for name in _names(workspace.manifest.benchmark)]
        hidden |= {*named, *(path.resolve() for path in named)}

        def left_out(directory: str, names: list[str]) -> set[str]:
            place = Path(directory).resolve()
            return {
                name
                for name in names
                if is_rebuilt(name) or is_secret(name) or place / name in hidden
            }

        shutil.copytree(root, self.workspace, symlinks=True, ignore=left_out)


def _stays_inside(root: Path, skill: Path) -> bool:
    """Whether a skill's directory and SKILL.md are the workspace's own; listing them says so in
    the log where they are not."""
    try:
        inside(root, skill)
        inside(root, skill / "SKILL.md")
    except UnsafePathError:
        return False
    return True


def _names(options: Any) -> Iterator[str]:
    """Every text in a benchmark's options that may be a path, ``grader.py:grade`` among them.
    The default task files are named even where the manifest leaves them out."""
    if options is None:
        return
    yield from ("tasks.jsonl", "evals")
    waiting = [options]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            yield from (value, value.partition(":")[0])
        elif isinstance(value, dict):
            waiting += value.values()
        elif isinstance(value, list | tuple):
            waiting += value
