"""What a workspace's files say to a model: one system prompt. Pure.

The text depends on the files alone and not on the task, so that providers can keep the processed
prompt between tasks; what changes most often stands last.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..types import SkillMeta

Memories = Mapping[str, Sequence[Mapping[str, Any]]]
"""Entries by category, oldest first."""

_SURROGATE = re.compile("[\ud800-\udfff]")
_RULES = "# What we have learned"
_EXAMPLES = "# Examples with the right answers"


def join_sections(sections: Iterable[str]) -> str:
    """Sections that say something, a blank line between them."""
    stripped = (section.strip() for section in sections)
    return "\n\n".join(section for section in stripped if section)


def readable(text: str) -> str:
    """``text`` as it can be sent: what is no character (bytes that were not UTF-8 in a file, half
    an emoji) becomes U+FFFD."""
    return _SURROGATE.sub("\ufffd", text)


def skill_catalogue(skills: Sequence[SkillMeta]) -> str:
    """Names and descriptions, and how to read a skill; empty without skills."""
    if not skills:
        return ""
    lines = [
        f"- {skill.name}: {_one_line(skill.description) or '(no description)'}" for skill in skills
    ]
    return "\n".join(
        [
            "# Skills",
            "Before you do a task that one of these fits, read it with read_skill and follow it.",
            *lines,
        ]
    )


def skills_in_full(texts: Mapping[str, str]) -> str:
    """Whole skills, frontmatter taken off, each under its name; empty without skills."""
    return "\n\n".join(f"# Skill: {name}\n{text.strip()}" for name, text in texts.items())


def memory_section(memories: Memories, limit: int, category: str | None = None) -> str:
    """The newest memories that fit into ``limit`` characters, examples after rules and lessons.

    Entries with ``input`` and ``answer`` become worked examples; those with ``rule``, ``lesson`` or
    ``content`` become one bullet each. Others are shown as JSON. Age is counted in lines from
    the end of each category; within a section the order is that of the files. The same text twice
    is shown once, and one that is too long leaves its room to older ones. With a ``category``,
    examples of other categories are left out.
    """
    rules: dict[str, None] = {}
    examples: dict[str, None] = {}
    for is_example, text in _newest(memories, limit, category):
        (examples if is_example else rules)[text] = None
    return join_sections(
        [
            "\n".join([_RULES, *rules]) if rules else "",
            "\n\n".join([_EXAMPLES, *examples]) if examples else "",
        ]
    )


def _newest(memories: Memories, limit: int, category: str | None) -> list[tuple[bool, str]]:
    """The rendered entries to show, oldest first."""
    aged: list[tuple[int, str, bool, str]] = []
    for name in sorted(memories):
        entries = memories[name]
        for index, entry in enumerate(entries):
            if category is None or not _is_example(entry) or _fits(entry, category):
                aged.append((len(entries) - index, name, _is_example(entry), _rendered(entry)))
    left = limit
    kept: list[tuple[int, str, bool, str]] = []
    seen: set[str] = set()
    for item in sorted(aged, key=lambda item: item[:2]):
        text = item[3]
        if text in seen:
            continue
        seen.add(text)
        if len(text) + 2 <= left:
            left -= len(text) + 2
            kept.append(item)
    kept.sort(key=lambda item: (item[1], -item[0]))
    return [(is_example, text) for _, _, is_example, text in kept]


def _is_example(entry: Mapping[str, Any]) -> bool:
    return isinstance(entry.get("input"), str) and isinstance(entry.get("answer"), str)


def _fits(entry: Mapping[str, Any], category: str) -> bool:
    return str(entry.get("category") or category) == category


def _rendered(entry: Mapping[str, Any]) -> str:
    if _is_example(entry):
        return f"Q: {entry['input'].strip()}\nA: {entry['answer'].strip()}"
    for key in ("rule", "lesson", "content"):
        if isinstance(entry.get(key), str) and entry[key].strip():
            return f"- {_one_line(entry[key])}"
    return f"- {json.dumps(dict(entry), ensure_ascii=False, sort_keys=True, default=str)}"


def _one_line(text: str) -> str:
    return " ".join(text.split())
