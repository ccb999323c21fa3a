"""The files that come with a task, laid out where an agent works on it."""

from __future__ import annotations

import shutil
from pathlib import Path

from ..errors import InfrastructureError, UnsafePathError
from ..types import Task
from ..workspace.names import inside


def lay_out(task: Task, place: Path) -> None:
    """Copy a task's files into ``place``: those of the directory ``metadata["directory"]``, and the
    texts of the mapping ``metadata["files"]`` (path inside the directory to text).

    Raises ``InfrastructureError`` when they can't be had: that says nothing about the agent.
    """
    try:
        if task.metadata.get("directory"):
            source = Path(str(task.metadata["directory"]))
            shutil.copytree(source, place, dirs_exist_ok=True, symlinks=True)
        for name, text in dict(task.metadata.get("files") or {}).items():
            path = place / name
            inside(place, path)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(str(text), encoding="utf-8")
    except (OSError, ValueError, TypeError, UnsafePathError) as error:
        raise InfrastructureError(
            f"the files of task {task.id!r} can't be laid out: {error}"
        ) from error
