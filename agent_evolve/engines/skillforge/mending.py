"""Small things a model forgets about a file that have one right form, put in for it."""

from __future__ import annotations

import json
import re

from ...workspace import line_merge
from ...workspace.skill_file import SkillFile

_NAME_LINE = re.compile(r"^name:.*$", re.M)


def mend_skill(name: str, text: str, old: str | None) -> str:
    """A SKILL.md with the frontmatter that it must have.

    A replaced skill that came without frontmatter keeps the old one; a new one gets its directory's
    name and, where it has no description, its first line of text as one. Anything else that is
    wrong with the frontmatter is left for the rules to refuse.
    """
    skill = SkillFile.parse(text.encode("utf-8", "replace"))
    if skill.frontmatter is None:
        if text.lstrip().startswith("---"):
            return text
        kept = SkillFile.parse(old.encode("utf-8")) if old is not None else None
        if kept is not None and kept.frontmatter is not None:
            return kept.data[: kept.body[0]].decode("utf-8") + text
        return f"---\nname: {name}\ndescription: {_description(name, text)}\n---\n{text}"
    start, end = skill.frontmatter
    head = skill.data[start:end].decode("utf-8")
    line = f"name: {name}"
    head = _NAME_LINE.sub(line, head, count=1) if _NAME_LINE.search(head) else f"{line}\n{head}"
    if "description" not in head:
        head += f"description: {_description(name, skill.body_text)}\n"
    return f"---\n{head}---\n{skill.body_text}"


def keep_form(text: str, old: bytes | None) -> bytes:
    """A file's new text as bytes. Lines that did not change keep theirs; new ones get the line ends
    of the file, and a byte order mark stays."""
    return line_merge.encode(text) if old is None else line_merge.merge(old, text)


def _description(name: str, text: str) -> str:
    for line in text.split("\n"):
        plain = line.strip().lstrip("#>*-0123456789. ").strip()
        if plain:
            return json.dumps(plain[:300], ensure_ascii=False)
    return json.dumps(name.replace("-", " "))
