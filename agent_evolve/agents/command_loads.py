"""Which skills a coding agent's output shows to be loaded, and what it shows of them. Pure.

Claude Code's stream has what it puts before the model (a message that begins with ``Base directory
for this skill:``) and what its tools Read and Bash answer; Codex's has what its commands print.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from .command_output import Format, block_text, mapping, objects

_INJECTED = re.compile(r"\s*Base directory for this skill: *([^\r\n]+)")
_PATH = re.compile(r"[^\s\"'`;|&<>()=]*SKILL\.md\b")
_HEADER = re.compile(r"^\s*(?:\d+\s*[→:|\t]\s*)?(?:name|description):", re.MULTILINE)
"""A line of a skill's frontmatter, with the line number that tools put before it."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A skill in the output. ``path`` is its SKILL.md as the output names it, ``""`` when it does
    not; ``text`` is what the model was shown."""

    name: str
    path: str
    text: str


def can_show(form: Format, out: str) -> bool:
    """Whether the output is one that tells of loaded skills: a stream, not only its result."""
    if form == "codex-jsonl":
        return any(True for _ in objects(out))
    return form == "claude-json" and any("message" in event for event in objects(out))


def shown_skills(form: Format, out: str) -> list[Shown]:
    """The loaded skills in the order of the output; none for a form that does not tell.

    What failed, and what only names a SKILL.md (``ls``), is no loading.
    """
    if form == "claude-json":
        return list(_claude(objects(out)))
    if form == "codex-jsonl":
        return list(_codex(objects(out)))
    return []


def _claude(events: Iterable[Mapping[str, Any]]) -> Iterator[Shown]:
    asked: dict[str, tuple[str, Mapping[str, Any]]] = {}
    for event in events:
        content = mapping(event.get("message")).get("content")
        if event.get("type") == "user" and isinstance(content, str):
            yield from _injected(content)
        for block in content if isinstance(content, list) else []:
            kind = mapping(block).get("type")
            if kind == "tool_use":
                asked[str(block.get("id"))] = str(block.get("name")), mapping(block.get("input"))
            elif kind == "text" and event.get("type") == "user":
                yield from _injected(str(block.get("text")))
            elif kind == "tool_result" and not block.get("is_error"):
                tool, given = asked.get(str(block.get("tool_use_id")), ("", {}))
                yield from _answered(tool, given, block_text(block.get("content")))


def _answered(tool: str, given: Mapping[str, Any], text: str) -> Iterator[Shown]:
    if tool == "Skill":
        injected = list(_injected(text))
        name = str(given.get("skill") or given.get("command") or "").removeprefix("/")
        if injected or not _HEADER.search(text):
            yield from injected
        else:
            yield Shown(name, "", text)
    elif tool == "Read":
        yield from _read([str(given.get("file_path"))], text)
    elif tool == "Bash":
        yield from _read(_PATH.findall(str(given.get("command"))), text)


def _codex(events: Iterable[Mapping[str, Any]]) -> Iterator[Shown]:
    for event in events:
        item = mapping(event.get("item"))
        ran = event.get("type") == "item.completed" and item.get("type") == "command_execution"
        if ran and not item.get("exit_code"):
            text = str(item.get("aggregated_output") or "")
            yield from _read(_PATH.findall(str(item.get("command"))), text)


def _injected(text: str) -> Iterator[Shown]:
    found = _INJECTED.match(text)
    if found:
        directory = PurePath(found[1].strip())
        yield Shown(directory.name, str(directory / "SKILL.md"), text)


def _read(paths: Iterable[str], text: str) -> Iterator[Shown]:
    if _HEADER.search(text):
        for path in map(PurePath, paths):
            if path.name == "SKILL.md":
                yield Shown(path.parent.name, str(path), text)
