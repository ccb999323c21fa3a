"""Texts and trees that several tests start from."""

from __future__ import annotations

import hashlib
from pathlib import Path

from agent_evolve.workspace.layers import Violation, violations

SKILL = "---\nname: {0}\ndescription: Does {0}.\n---\n\n# Steps\n\n- one\n\n# Rules\n\n- keep\n"

FILE, EXECUTABLE, LINK, REPOSITORY = 0o100644, 0o100755, 0o120000, 0o160000

Files = dict[str, str | bytes | tuple[int, str | bytes]]
"""Paths to contents, with the git mode where that is not a plain file's."""


def files_below(root: Path) -> set[str]:
    return {path.relative_to(root).as_posix() for path in root.rglob("*")}


def link(target: str) -> tuple[int, str]:
    return LINK, target


START: Files = {
    "manifest.yaml": "agent: {type: chat}\n",
    "prompts/system.md": "# Role\n\nBe brief.\n\n## Tone\n\nKind.\n\n# Format\n\nJSON.\n",
    "prompts/fragments/style.md": "Plain.\n",
    "skills/verify/SKILL.md": SKILL.format("verify"),
    "skills/verify/scripts/check.sh": (EXECUTABLE, "#!/bin/sh\n"),
    "memory/episodic.jsonl": '{"a": 1}\n',
    "tools/registry.yaml": "- name: x\n",
}


class Trees:
    """Trees as git would give them, with the contents of all their blobs."""

    def __init__(self) -> None:
        self.blobs: dict[str, bytes] = {}

    def tree(self, files: Files) -> dict[str, tuple[int, str]]:
        entries = {}
        for path, told in files.items():
            mode, content = told if isinstance(told, tuple) else (FILE, told)
            data = content.encode() if isinstance(content, str) else content
            blob = hashlib.sha1(data).hexdigest()
            self.blobs[blob] = data
            entries[path] = (mode, blob)
        return entries

    def read(self, blob: str) -> bytes:
        return self.blobs[blob]


def judge(
    before: Files, after: Files, locked=(), layers=("prompts", "skills", "memory")
) -> list[Violation]:
    """What the change from one set of files to another may not do."""
    trees = Trees()
    return violations(
        trees.tree(before),
        trees.tree(after),
        read=trees.read,
        evolvable_layers=layers,
        locked=locked,
    )


def rules(before: Files, after: Files, locked=(), **limits) -> set[tuple[str, str]]:
    """The same as pairs of rule and path."""
    return {(found.rule, found.path) for found in judge(before, after, locked, **limits)}
