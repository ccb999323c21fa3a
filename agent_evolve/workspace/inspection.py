"""Looking a whole workspace over, for ``agent-evolve doctor``."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import ConfigurationError, UnsafePathError, WorkspaceError
from . import atomic, left_out, line_merge, manifest, markdown, memory, names, spec
from .problem import Problem, Severity
from .scanner import MAX_BYTES
from .skill_file import FILE, SkillFile
from .tools import REGISTRY

if TYPE_CHECKING:
    from .workspace import AgentWorkspace

MAX_FILES = 100_000
"""Entries looked at; a huge tree must not keep a person waiting."""


def inspect(workspace: AgentWorkspace) -> list[Problem]:
    """Everything odd: manifest, files of any kind, skills, memory, registry, locks; in that order.
    Changes nothing, and never raises for what lies in the workspace."""
    problems = list(_manifest(workspace))
    layers: tuple[str, ...] = manifest.STANDARD_LAYERS
    locked: tuple[str, ...] = ()
    if not any(problem.severity == "error" for problem in problems):
        layers, locked = workspace.manifest.layers, workspace.manifest.locked
    root = workspace.root
    for layer in layers:
        problems += _guarded(_walk(root, root / layer), layer)
    problems += _guarded(_skills(root), "skills")
    problems += _guarded(_memory(workspace), "memory")
    problems += _guarded(_registry(workspace), f"tools/{REGISTRY}")
    for lock in locked:
        problems += _guarded(_lock(root, lock), manifest.FILE)
    return problems


def _guarded(findings: Iterator[Problem], where: str) -> Iterator[Problem]:
    """The findings up to a file that can't be read. Links that leave are for ``_walk`` to tell."""
    try:
        yield from findings
    except UnsafePathError:
        return
    except WorkspaceError as error:
        yield _problem(where, "unreadable", error.message, error.fix, "error")
    except OSError as error:
        message = f"can't be read: {error.strerror}"
        yield _problem(where, "unreadable", message, "correct its permissions", "error")


def _manifest(workspace: AgentWorkspace) -> Iterator[Problem]:
    root = workspace.root
    try:
        warnings = workspace.manifest.warnings
    except ConfigurationError as error:
        yield _told(root, manifest.FILE, "manifest", error.message, error.fix, "error")
        return
    for warning in warnings:
        yield _told(root, manifest.FILE, "manifest", warning, "correct or remove it", "warning")


def _walk(root: Path, layer: Path) -> Iterator[Problem]:
    """Whatever no version can hold."""
    todo, seen = [layer], 0
    while todo and seen < MAX_FILES:
        folder = todo.pop()
        if folder.is_symlink():
            yield from _link(root, folder)
            continue
        if not folder.is_dir():
            continue
        for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
            seen += 1
            yield from _entry(root, entry)
            if entry.is_dir(follow_symlinks=False) and not left_out.is_rebuilt(entry.name):
                todo.append(Path(entry.path))


def _entry(root: Path, entry: os.DirEntry[str]) -> Iterator[Problem]:
    path = Path(entry.path)
    where = path.relative_to(root).as_posix()
    if entry.name == ".git":
        message = "a git repository inside a layer; versions leave it out"
        yield _problem(where, "nested-repository", message, "move it elsewhere", "error")
    elif atomic.is_leftover(entry.name):
        message = "left by a writer that was killed"
        yield _problem(where, "leftover", message, f"rm {where}", "note")
    elif left_out.is_secret(entry.name):
        message = "named like a file of secrets; versions leave it out"
        yield _problem(where, "secret", message, "keep secrets outside of the layers")
    elif broken := names.unsafe(entry.name):
        yield _problem(where, "bad-name", f"left out for its name: {broken}", "rename it")
    elif entry.is_symlink():
        yield from _link(root, path)
    elif not entry.is_dir() and not entry.is_file():
        message = "neither a file nor a directory; versions leave it out"
        yield _problem(where, "special-file", message, "move it elsewhere")
    elif entry.is_file() and (size := entry.stat().st_size) > MAX_BYTES:
        limit = f"{MAX_BYTES // 1024**2} MiB"
        message = f"has {size / 1024**2:.0f} MiB; a layer holds files up to {limit}"
        fix = "keep it outside of the layers and refer to it"
        yield _problem(where, "huge-file", message, fix, "error")


def _link(root: Path, path: Path) -> Iterator[Problem]:
    where = path.relative_to(root).as_posix()
    try:
        real = names.inside(root, path)
    except UnsafePathError as error:
        message = error.message.removeprefix(f"{path} ")
        yield _problem(where, "link-outside", message, error.fix, "error")
        return
    if not real.exists():
        message = f"a link to {path.readlink()}, which does not exist"
        yield _problem(where, "dangling-link", message, "correct or remove it")


def _skills(root: Path) -> Iterator[Problem]:
    folder = names.inside(root, root / "skills")
    if not folder.is_dir():
        return
    for entry in sorted(folder.iterdir()):
        if entry.name[0] not in "_." and entry.is_dir():
            yield from _guarded(_skill(root, entry.name), f"skills/{entry.name}")


def _skill(root: Path, name: str) -> Iterator[Problem]:
    where = f"skills/{name}/{FILE}"
    data = _read(root, where)
    if data is not None:
        found = spec.check(SkillFile.parse(data), name)
        yield from (problem.at(where) for problem in found)
        return
    files = os.listdir(root / "skills" / name)
    if FILE in files:
        return  # huge, or a link to nothing: told by _walk
    near = next((file for file in files if file.lower() == FILE.lower()), None)
    fix = f"rename {near} to {FILE}" if near else f"add a {FILE}"
    message = f"not a skill: no {FILE}"
    yield _problem(f"skills/{name}", "no-skill-file", message, fix)


def _memory(workspace: AgentWorkspace) -> Iterator[Problem]:
    for category in workspace.list_memory_categories():
        where = f"memory/{category}.jsonl"
        yield from _guarded(_memory_lines(workspace.root, where), where)


def _memory_lines(root: Path, where: str) -> Iterator[Problem]:
    for number, raw in enumerate(line_merge.split_lines(_read(root, where) or b""), 1):
        line = line_merge.content(raw)
        fault = memory.parse_line(line)[1] if line.strip() else ""
        if fault:
            fix = "correct or remove the line; it is skipped until then"
            yield Problem(number, 1, fault, fix, "warning", "bad-memory", where)


def _registry(workspace: AgentWorkspace) -> Iterator[Problem]:
    try:
        workspace.read_tool_registry()
    except UnsafePathError:
        raise
    except WorkspaceError as error:
        where = f"tools/{REGISTRY}"
        yield _told(workspace.root, where, "bad-registry", error.message, error.fix, "error")


def _lock(root: Path, locked: str) -> Iterator[Problem]:
    """A locked heading that is not there: such a lock protects nothing."""
    path, heading = markdown.lock_file(locked)
    data = _read(root, path) if heading else None
    if data is not None and markdown.section(data, heading) is None:
        known = ", ".join(markdown.headings(data)[:10]) or "none"
        message = f"locked: {locked!r}: no such heading, so it protects nothing. Known: {known}"
        yield _problem(manifest.FILE, "lock", message, "correct the heading")


def _read(root: Path, where: str) -> bytes | None:
    """A file's bytes; ``None`` where there is none, or a huge one, which ``_walk`` tells."""
    path = names.inside(root, root / where)
    readable = path.is_file() and path.stat().st_size <= MAX_BYTES
    return path.read_bytes() if readable else None


def _told(root: Path, where: str, code: str, message: str, fix: str, severity: Severity) -> Problem:
    """A message that starts with its own place, as those of errors do."""
    place = re.match(rf"{re.escape(str(root / where))}(?::(\d+))?(?::(\d+))?: ", message)
    if place is None:
        return _problem(where, code, message, fix, severity)
    line, column = (int(number or 1) for number in place.groups())
    return Problem(line, column, message[place.end() :], fix, severity, code, where)


def _problem(
    where: str, code: str, message: str, fix: str, severity: Severity = "warning"
) -> Problem:
    return Problem(1, 1, message, fix, severity, code, where)
