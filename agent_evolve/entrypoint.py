"""Imports what a manifest names as ``module.Class``, from the workspace first."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from .errors import ManifestError


def load_object(entrypoint: str, root: Path, where: str) -> Any:
    """The object that ``module.Class`` names. Its module is looked for in the workspace ``root``
    first, then among the installed ones. Nothing is called.

    Raises ``ManifestError`` (with ``where``, the place it was named at) when it can't be had.
    """
    module_name, dot, name = entrypoint.rpartition(".")
    if not dot:
        raise ManifestError(
            f"{where}: {entrypoint!r} has no dot",
            fix="write it as module.Class, e.g. agent.MyAgent",
        )
    try:
        module = _workspace_module(module_name, root) or importlib.import_module(module_name)
    except Exception as error:
        raise ManifestError(
            f"{where}: can't import {module_name!r}: {type(error).__name__}: {error}",
            fix=f"put {module_name.replace('.', '/')}.py into the workspace, or install it",
        ) from error
    if not hasattr(module, name):
        raise ManifestError(
            f"{where}: {module_name!r} has no {name!r}", fix="check the name after the last dot"
        )
    return getattr(module, name)


def _workspace_module(name: str, root: Path) -> ModuleType | None:
    """A module that lies in the workspace, under a name of its own, so that two workspaces may
    each have an ``agent.py``."""
    file = root.joinpath(*name.split(".")).with_suffix(".py")
    if not file.is_file():
        return None
    place = hashlib.sha256(str(root.resolve()).encode()).hexdigest()[:12]
    unique = f"_agent_evolve_workspace_{place}_{name.replace('.', '_')}"
    if unique in sys.modules:
        return sys.modules[unique]
    spec = importlib.util.spec_from_file_location(unique, file)
    if spec is None or spec.loader is None:
        return None
    module = importlib.util.module_from_spec(spec)
    sys.modules[unique] = module
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))  # the module may import its neighbours
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[unique]
        raise
    return module
