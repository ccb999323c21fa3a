"""Imports what a manifest names as ``module.Class``, from the workspace first."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from .errors import ManifestError, nearest


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
    file = _workspace_file(module_name, root)
    try:
        module = _from_file(file, root) if file else importlib.import_module(module_name)
    except (Exception, SystemExit) as error:  # whatever a user's module does when imported
        lost = isinstance(error, ModuleNotFoundError) and error.name
        if file is None and lost and f"{module_name}.".startswith(f"{lost}."):
            fix = f"put {module_name.replace('.', '/')}.py into {root}, or install it"
        elif lost:
            fix = f"install {lost}, which it imports"
        else:
            fix = f"correct {file or module_name}"
        raise ManifestError(
            f"{where}: can't import {module_name!r}: {type(error).__name__}: {error}", fix=fix
        ) from error
    if not hasattr(module, name):
        near = nearest(name, vars(module))
        guess = f" Did you mean {near!r}?" if near else ""
        raise ManifestError(
            f"{where}: {module_name!r} has no {name!r}.{guess}",
            fix="check the name after the last dot",
        )
    return getattr(module, name)


def _workspace_file(name: str, root: Path) -> Path | None:
    base = root.joinpath(*name.split("."))
    files = (base.with_name(f"{base.name}.py"), base / "__init__.py")
    return next((file for file in files if file.is_file()), None)


def _from_file(file: Path, root: Path) -> ModuleType:
    """A module that lies in the workspace, under a name of its own, so that two workspaces may
    each have an ``agent.py``. What it imports from beside it is shared by its plain name."""
    place = hashlib.sha256(str(file.resolve()).encode(errors="surrogateescape")).hexdigest()[:12]
    unique = f"_agent_evolve_workspace_{place}_{file.stem}"
    if unique in sys.modules:
        return sys.modules[unique]
    spec = importlib.util.spec_from_file_location(unique, file)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file} is not a Python module")
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
