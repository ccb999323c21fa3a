"""The ``read_skill`` tool: a model reads a skill, or a file that the skill points to."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import SkillError, nearest
from ..llm import Tool
from ..llm.tool_loop import BoundTool, clip
from ..types import SkillMeta
from ..workspace import AgentWorkspace
from ..workspace.names import inside
from .prompting import readable

_SHOWN_FILES = 50

READ_SKILL = Tool(
    "read_skill",
    "Read a skill's instructions or, with file, another file of that skill.",
    {
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "name of the skill, as listed"},
            "file": {
                "type": "string",
                "description": "path inside the skill, such as references/units.md",
            },
        },
        "required": ["name"],
    },
)


def skill_reader(workspace: AgentWorkspace, limit: int) -> BoundTool:
    """``read_skill`` over a workspace. A file longer than ``limit`` characters is cut in the
    middle."""

    def read(arguments: Mapping[str, Any]) -> str:
        name = str(arguments["name"]).strip()
        file = str(arguments.get("file") or "").strip()
        text = workspace.read_skill(name)
        if file in ("", "SKILL.md"):
            return clip(readable(text), limit)
        skill = next((s for s in workspace.list_skills() if s.name == name), None)
        if skill is None:
            raise SkillError(f"skill {name!r} has no other files")
        return clip(_read_file(workspace, skill, file), limit)

    return BoundTool(READ_SKILL, read)


def _read_file(workspace: AgentWorkspace, skill: SkillMeta, file: str) -> str:
    folder = skill.path.parent
    known = _files(folder)
    if file not in known:
        near = nearest(file, known)
        guess = f" Did you mean {near!r}?" if near else ""
        listing = ", ".join(known[:_SHOWN_FILES]) or "none"
        raise SkillError(f"skill {skill.name!r} has no file {file!r}.{guess} Files: {listing}")
    path = folder / file
    inside(workspace.root, path)
    data = path.read_bytes()
    if b"\0" in data:
        return f"({file} is a binary file of {len(data)} bytes)"
    return data.decode("utf-8", "replace")


def _files(folder: Path) -> list[str]:
    """Paths of a skill's files inside it, sorted; hidden ones and links to directories left out."""
    found = []
    for path in sorted(folder.rglob("*")):
        relative = path.relative_to(folder)
        if path.is_file() and not any(part.startswith(".") for part in relative.parts):
            found.append(relative.as_posix())
    return found
