"""Where a workspace's versions are kept, so that nothing of the user's is touched."""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ..errors import WorkspaceError
from .git_command import git

Kind = Literal["own", "user", "beside"]

_MARK = "agent-evolve"
_EVOLUTION = "evolution"
_BESIDE = Path(_EVOLUTION) / "versions.git"


@dataclass(frozen=True, slots=True)
class Location:
    """A git directory and the names used in it.

    ``own``: a repository that was made for this workspace; plain branches and tags.
    ``user``: the repository whose top is the workspace; a chain of its own below
    ``refs/agent-evolve/``, so that branch, index, stash and hooks stay the user's.
    ``beside``: a bare repository under ``evolution/``, for a workspace inside a larger repository,
    a worktree, a submodule, or a repository of an uncommon format.
    """

    kind: Kind
    git_dir: Path

    @property
    def head_ref(self) -> str:
        return "refs/agent-evolve/head" if self.kind == "user" else "refs/heads/main"

    @property
    def namespace(self) -> str:
        """What comes before the names of versions."""
        return "refs/agent-evolve/" if self.kind == "user" else "refs/tags/"


def evolution_directory(root: Path) -> Path:
    """``evolution/`` of a workspace, made when it is missing, with a ``.gitignore`` that keeps all
    of it out of every repository. Raises ``WorkspaceError`` when it can't be made."""
    directory = root / _EVOLUTION
    try:
        directory.mkdir(exist_ok=True)
        ignore = directory / ".gitignore"
        if not ignore.exists():
            ignore.write_text("*\n", encoding="utf-8")
    except OSError as error:
        raise WorkspaceError(
            f"{directory} can't be made: {error.strerror}",
            fix="correct the permissions of the workspace, or remove what lies there",
        ) from error
    return directory


def locate(root: Path) -> Location | None:
    """Where the versions of this workspace are, ``None`` before the first run."""
    beside = root / _BESIDE
    if beside.is_dir():
        return Location("beside", beside)
    inside = root / ".git"
    if (inside / _MARK).is_file():
        return Location("own", inside)
    if inside.is_dir() and (inside / "objects").is_dir() and _common(inside):
        return Location("user", inside)
    return None


def prepare(root: Path) -> Location:
    """Where the versions are, after making a repository where there is none."""
    found = locate(root)
    if found is not None:
        return found
    if os.path.lexists(root / ".git") or not _alone(root):
        _make(root, root / _BESIDE, bare=True)
        return Location("beside", root / _BESIDE)
    _make(root, root / ".git", bare=False)
    return Location("own", root / ".git")


def _make(root: Path, target: Path, *, bare: bool) -> None:
    """Make a repository under another name and move it, so that there is never half of one."""
    new = evolution_directory(root) / "new.git"
    shutil.rmtree(new, ignore_errors=True)
    git("init", "-q", "--bare", "--template=", "--initial-branch=main", "--object-format=sha1",
        str(new))  # fmt: skip
    git("config", "core.bare", "true" if bare else "false", git_dir=new)
    (new / _MARK).write_text("Versions of an agent, kept by agent-evolve.\n", encoding="utf-8")
    new.rename(target)


def _common(git_dir: Path) -> bool:
    """Whether a repository has the usual format: SHA-1 objects, references as files, whole."""
    try:
        text = (git_dir / "config").read_text("utf-8", "replace").casefold()
    except OSError:
        return False
    section = re.search(r"^\s*\[extensions\]([^\[]*)", text, re.MULTILINE)
    if section is None:
        return True
    settings: dict[str, str] = dict(re.findall(r"^\s*(\w+)\s*=\s*(\S+)", section[1], re.MULTILINE))
    return settings.get("objectformat", "sha1") == "sha1" and (
        settings.get("refstorage", "files") == "files"
    )


def _alone(root: Path) -> bool:
    """Whether no repository around keeps this directory: there is none, or it ignores it."""
    outer = next((place for place in root.parents if os.path.lexists(place / ".git")), None)
    if outer is None:
        return True
    path = str(root.relative_to(outer))
    ignored = git("check-ignore", "-q", "--", path, at=outer, check=False).returncode == 0
    tracked = git("ls-files", "-z", "--", path, at=outer, check=False).stdout
    return ignored and not tracked
