"""Looking a whole workspace over, for ``agent-evolve doctor``."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import ConfigurationError, UnsafePathError, WorkspaceError
from . import atomic, line_merge, manifest, markdown, memory, names, skill_file, spec
from .problem import Problem

if TYPE_CHECKING:
    from .workspace import AgentWorkspace

MAX_FILES = 100_000
"""Entries looked at; a link to a huge tree must not keep a person waiting."""


def inspect(workspace: AgentWorkspace) -> list[Problem]:
    """Everything odd: manifest, links, skills, memory, registry, locks; in that order."""
    problems = list(_manifest(workspace))
    layers: tuple[str, ...] = manifest.STANDARD_LAYERS
    locked: tuple[str, ...] = ()
    if not problems or problems[0].severity != "error":
        layers, locked = workspace.manifest.layers, workspace.manifest.locked
    for layer in layers:
        problems += _walk(workspace.root, workspace.root / layer)
    problems += _skills(workspace.root)
    problems += _memory(workspace)
    problems += _registry(workspace)
    problems += _locks(workspace.root, locked)
    return problems


def _manifest(workspace: AgentWorkspace) -> Iterator[Problem]:
    try:
        warnings = workspace.manifest.warnings
    except ConfigurationError as error:
        yield Problem(1, 1, error.message, error.fix, "error", "manifest", manifest.FILE)
        return
    for warning in warnings:
        yield Problem(1, 1, warning, "", "warning", "manifest", manifest.FILE)


def _walk(root: Path, layer: Path) -> Iterator[Problem]:
    """Links that leave the workspace, nested repositories and files of killed writers."""
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
            path = Path(entry.path)
            where = path.relative_to(root).as_posix()
            if entry.name == ".git":
                message, fix = "a git repository inside a layer; versions leave it out", "move it"
                yield Problem(1, 1, message, fix, "error", "nested-repository", where)
            elif entry.is_symlink():
                yield from _link(root, path)
            elif entry.is_dir():
                todo.append(path)
            elif atomic.is_leftover(entry.name):
                message = "left by a writer that was killed"
                yield Problem(1, 1, message, f"rm {where}", "note", "leftover", where)
            elif not entry.is_file():
                message = "neither a file nor a directory; versions leave it out"
                yield Problem(1, 1, message, "", "warning", "special-file", where)


def _link(root: Path, path: Path) -> Iterator[Problem]:
    where = path.relative_to(root).as_posix()
    try:
        real = names.inside(root, path)
    except UnsafePathError as error:
        yield Problem(1, 1, error.message, error.fix, "error", "link-outside", where)
        return
    if not real.exists():
        message = f"a link to {path.readlink()}, which does not exist"
        yield Problem(1, 1, message, "correct or remove it", "warning", "dangling-link", where)


def _skills(root: Path) -> Iterator[Problem]:
    folder = root / "skills"
    if not folder.is_dir() or folder.is_symlink():
        return
    for entry in sorted(folder.iterdir()):
        if entry.name[0] in "_." or not entry.is_dir():
            continue
        where = f"skills/{entry.name}/{skill_file.FILE}"
        path = root / where
        try:
            names.inside(root, path)
        except UnsafePathError:
            continue  # said by _walk
        if path.is_file():
            skill = skill_file.SkillFile.parse(path.read_bytes())
            yield from (problem.at(where) for problem in spec.check(skill, entry.name))
        else:
            lower = next((p.name for p in entry.iterdir() if p.name.lower() == "skill.md"), None)
            fix = f"rename {lower} to {skill_file.FILE}" if lower else f"add a {skill_file.FILE}"
            message = f"not a skill: no {skill_file.FILE}"
            yield Problem(1, 1, message, fix, "warning", "no-skill-file", f"skills/{entry.name}")


def _memory(workspace: AgentWorkspace) -> Iterator[Problem]:
    try:
        categories = workspace.list_memory_categories()
    except WorkspaceError:
        return  # a link that leaves, said by _walk
    for category in categories:
        where = f"memory/{category}.jsonl"
        try:
            names.inside(workspace.root, workspace.root / where)
        except UnsafePathError:
            continue
        lines = line_merge.split_lines((workspace.root / where).read_bytes())
        for number, raw in enumerate(lines, 1):
            line = line_merge.content(raw)
            fault = memory.parse_line(line)[1] if line.strip() else ""
            if fault:
                fix = "correct or remove the line; it is skipped until then"
                yield Problem(number, 1, fault, fix, "warning", "bad-memory", where)


def _registry(workspace: AgentWorkspace) -> Iterator[Problem]:
    try:
        workspace.read_tool_registry()
    except UnsafePathError:
        return
    except WorkspaceError as error:
        where = "tools/registry.yaml"
        yield Problem(1, 1, error.message, error.fix, "error", "bad-registry", where)


def _locks(root: Path, locked: tuple[str, ...]) -> Iterator[Problem]:
    """Locked headings that are not there: such a lock protects nothing."""
    for item in locked:
        path, heading = markdown.lock_file(item)
        if not heading or not (root / path).is_file():
            continue
        data = (root / path).read_bytes()
        if markdown.section(data, heading) is None:
            known = ", ".join(markdown.headings(data)[:10]) or "none"
            message = f"locked: {item!r}: no such heading, so it protects nothing. Known: {known}"
            yield Problem(1, 1, message, "correct the heading", "warning", "lock", manifest.FILE)
