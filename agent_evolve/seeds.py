"""The workspaces that ship with the package."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from .errors import ConfigurationError, UnknownNameError, WorkspaceError


def seeds_directory() -> Path:
    """Where the seed workspaces lie: in the package when installed, beside it in a checkout."""
    package = Path(__file__).parent
    for place in (package / "seed_workspaces", package.parent / "seed_workspaces"):
        if place.is_dir():
            return place
    raise ConfigurationError(
        "the seed workspaces are missing from this installation",
        fix="pip install --force-reinstall agent-evolver",
    )


def seed_names() -> list[str]:
    """Names of the seeds, sorted."""
    return sorted(p.parent.name for p in seeds_directory().glob("*/manifest.yaml"))


def workspace_for(agent: str | Path, work_dir: str | Path = ".") -> tuple[Path, bool]:
    """The workspace directory that a name or path means, and whether it was made just now.

    A directory with a manifest is itself. Otherwise the name of a seed means ``work_dir/NAME``:
    made as a copy of the seed when it does not exist, and gone on with when it does.
    """
    path = Path(agent)
    if (path / "manifest.yaml").is_file():
        return path, False
    name = str(agent)
    is_name = os.sep not in name and name not in (".", "..")
    if is_name and name in seed_names():
        target = Path(work_dir) / name
        if (target / "manifest.yaml").is_file():
            return target, False
        copy_seed(name, target)
        return target, True
    if path.is_dir():
        raise WorkspaceError(
            f"{path} has no manifest.yaml, so it is not a workspace",
            fix=f"agent-evolve init {path}",
        )
    if is_name:
        raise UnknownNameError(
            "workspace or seed",
            name,
            seed_names(),
            fix=f"to make a new one: agent-evolve init {name}",
        )
    raise WorkspaceError(f"there is no directory {path}", fix=f"agent-evolve init {path}")


def copy_seed(name: str, target: Path) -> None:
    """Copy a seed to a directory that does not exist or is empty."""
    if name not in seed_names():
        raise UnknownNameError("seed", name, seed_names())
    _copy(seeds_directory() / name, target)


def copy_template(target: Path) -> None:
    """Write the commented starting workspace of ``agent-evolve init``."""
    _copy(Path(__file__).parent / "template", target)


def _copy(source: Path, target: Path) -> None:
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise WorkspaceError(
            f"{target} exists and is not an empty directory; nothing was written",
            fix=f"choose another place or look into {target}",
        )
    ignored = shutil.ignore_patterns("__pycache__", "evolution", ".git")
    temporary = target.with_name(f".{target.name}.copying-{os.getpid()}")
    try:
        shutil.copytree(source, temporary, ignore=ignored, symlinks=True)
        if target.exists():
            target.rmdir()
        temporary.rename(target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
