"""What ``doctor`` looks at: each part of a workspace, and what to do when it is not ready."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .agents.loading import agent_class
from .config import EvolveConfig
from .errors import AgentEvolveError
from .evolver import make_benchmark, make_engine
from .execution import find_sandbox
from .llm import resolve_model
from .loop.splits import choose_splits
from .seeds import seed_names, seeds_directory
from .workspace import AgentWorkspace, Manifest

LEAST_FREE_BYTES = 200 * 1024**2


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table. ``fix`` is what to type or change when it is not ``ok``."""

    what: str
    ok: bool
    found: str
    fix: str = ""


def check(
    agent: str,
    *,
    model: str | None = None,
    evolver_model: str | None = None,
    engine: str | None = None,
) -> list[Row]:
    """Check a workspace, or a seed by name, as ``run`` would use it. Changes nothing."""
    root = Path(agent)
    if not (root / "manifest.yaml").is_file() and agent in seed_names():
        root = seeds_directory() / agent
    rows = [_git(), _disk(root)]
    manifest = _collect(rows, "manifest", lambda: _manifest(root))
    if manifest is None:
        return rows
    config = _collect(rows, "settings", lambda: EvolveConfig.combine(manifest=manifest.config))
    _files(rows, root)
    cls = _collect(rows, "agent", lambda: agent_class(manifest, root))
    made_engine = _collect(rows, "engine", lambda: make_engine(engine, manifest, root))
    benchmark = _collect(rows, "benchmark", lambda: make_benchmark(None, manifest, root))
    if benchmark is not None and config is not None:
        _collect(rows, "tasks", lambda: choose_splits(benchmark, config), lambda s: s.note)
    named = model or manifest.model
    if cls is not None and cls.needs_model:
        _model(rows, "agent's model", named)
    if made_engine is not None and made_engine.needs_model:
        default = config.evolver_model if config else None
        set_here = config is not None and "evolver_model" in config.model_fields_set
        _model(rows, "engine's model", evolver_model or (default if set_here else named or default))
    made_agent = _collect(rows, "agent's files", lambda: cls(root)) if cls is not None else None
    parts = (made_agent or cls, made_engine, benchmark)
    if any(getattr(part, "needs_sandbox", False) for part in parts):
        _collect(rows, "sandbox", find_sandbox, lambda sandbox: sandbox.name)
    for what, ok, fix in made_agent.needs() if made_agent is not None else ():
        rows.append(Row(what, ok, "found" if ok else "missing", fix))
    return rows


def _collect(
    rows: list[Row],
    what: str,
    make: Callable[[], Any],
    found: Callable[[Any], str] | None = None,
) -> Any:
    """Add a row that says what ``make`` gave, or what stood in its way."""
    try:
        made = make()
    except AgentEvolveError as error:
        rows.append(Row(what, False, error.message, error.fix))
        return None
    rows.append(Row(what, True, found(made) if found else _name(made)))
    return made


def _name(made: Any) -> str:
    if isinstance(made, Manifest):
        return f"{made.name}: {', '.join(made.evolvable_layers)} may change"
    if isinstance(made, EvolveConfig):
        return "all known"
    return made.__name__ if isinstance(made, type) else type(made).__name__


def _manifest(root: Path) -> Manifest:
    return Manifest.load(root)


def _model(rows: list[Row], what: str, named: str | None) -> None:
    if named is None:
        fix = "add 'model: PROVIDER:NAME' to manifest.yaml, or pass --model"
        rows.append(Row(what, False, "none named", fix))
    else:
        _collect(rows, what, lambda: resolve_model(named), lambda model: model.name)


def _files(rows: list[Row], root: Path) -> None:
    problems = AgentWorkspace(root).problems()
    if not problems:
        rows.append(Row("files", True, "every skill and memory file can be read"))
    for problem in problems:
        serious = getattr(problem, "severity", "error") == "error"
        rows.append(Row("files", not serious, str(problem), getattr(problem, "fix", "")))


def _git() -> Row:
    if shutil.which("git") is None:
        return Row("git", False, "not found", "install git, e.g. apt-get install git")
    version = subprocess.run(["git", "--version"], capture_output=True, text=True, check=False)
    return Row("git", version.returncode == 0, version.stdout.strip() or version.stderr.strip())


def _disk(root: Path) -> Row:
    place = root if root.is_dir() else Path.cwd()
    free = shutil.disk_usage(place).free
    enough = free >= LEAST_FREE_BYTES
    return Row("disk", enough, f"{free // 1024**2} MB free", "free some disk space")
