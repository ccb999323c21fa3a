"""This engine's part of a workspace's memory, as read and as written back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from .cases import Case, case_from_memory
from .rules import rule_from

if TYPE_CHECKING:
    from ...workspace import AgentWorkspace

Entry = dict[str, Any]


def _is_example(entry: Mapping[str, Any]) -> bool:
    return case_from_memory(entry) is not None


def _is_rule(entry: Mapping[str, Any]) -> bool:
    return rule_from(entry) is not None


def _is_lesson(entry: Mapping[str, Any]) -> bool:
    return entry.get("kind") == "lesson" and isinstance(entry.get("about"), str)


_OURS: dict[str, tuple[str, Callable[[Mapping[str, Any]], bool]]] = {
    "examples": ("examples", _is_example),
    "rules": ("rules", _is_rule),
    "lessons": ("episodic", _is_lesson),
}
"""Name here: the memory category, and which of its entries are in this engine's form."""


@dataclass(frozen=True)
class Memory:
    """Entries in the form that this engine writes; others stay in the files untouched."""

    examples: list[Entry] = field(default_factory=list)
    rules: list[Entry] = field(default_factory=list)
    lessons: list[Entry] = field(default_factory=list)

    @classmethod
    def read(cls, workspace: AgentWorkspace) -> Memory:
        return cls(
            **{
                name: [entry for entry in workspace.read_memories(category) if ours(entry)]
                for name, (category, ours) in _OURS.items()
            }
        )

    @cached_property
    def cases(self) -> list[Case]:
        """The examples as cases, in the same order."""
        return [case for entry in self.examples if (case := case_from_memory(entry))]

    @property
    def sizes(self) -> dict[str, int]:
        return {name: len(getattr(self, name)) for name in _OURS}

    def write(self, workspace: AgentWorkspace, before: Memory) -> bool:
        """Write the files that differ from ``before``; whether there were any."""
        changed = [name for name in _OURS if getattr(self, name) != getattr(before, name)]
        for name in changed:
            category, ours = _OURS[name]
            others = [entry for entry in workspace.read_memories(category) if not ours(entry)]
            workspace.write_memories(others + getattr(self, name), category)
        return bool(changed)
