"""Sections of a Markdown file by heading, as byte spans; what a lock on a heading refers to."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from . import frontmatter, line_merge

_ATX = re.compile(rb" {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*\Z")
_CODE = re.compile(rb" {0,3}(`{3,}|~{3,})(.*)")
FRONTMATTER = "frontmatter"


def lock_file(locked: str) -> tuple[str, str]:
    """The file and heading that a lock such as ``skills/x#Heading`` means; ``""`` for a lock on a
    path as a whole. A skill's directory stands for its SKILL.md when a heading is given."""
    path, _, heading = locked.partition("#")
    path, heading = path.rstrip("/"), heading.strip().lstrip("#").strip()
    parts = path.split("/")
    if heading and len(parts) == 2 and parts[0] == "skills" and not path.endswith(".md"):
        path += "/SKILL.md"
    return path, heading


def section(data: bytes, heading: str) -> bytes | None:
    """The bytes from a heading to the next one of its level or above, blank lines at the end left
    out; of several headings that read the same, all of them. ``None`` when there is none.

    ``"frontmatter"`` means what stands between the fences of a SKILL.md.
    """
    if heading.casefold() == FRONTMATTER:
        between = frontmatter.fences(data)
        return data[between.start : between.end] if between else None
    wanted = folded(heading)
    found = list(marks(data))
    parts = []
    for index, (start, level, text) in enumerate(found):
        if folded(text) == wanted:
            later = (mark[0] for mark in found[index + 1 :] if mark[1] <= level)
            parts.append(data[start : next(later, len(data))].rstrip())
    return b"\n".join(parts) if parts else None


def headings(data: bytes) -> list[str]:
    """The texts of all headings, in order."""
    return [text for _, _, text in marks(data)]


def marks(data: bytes) -> Iterator[tuple[int, int, str]]:
    """Offset, level and text of each heading outside of frontmatter and code blocks."""
    found = frontmatter.fences(data)
    offset = found.body if found else 0
    fence = b""
    for line in line_merge.split_lines(data[offset:]):
        text = line_merge.content(line)
        code = _CODE.match(text)
        if fence:
            closes = code and code[1].startswith(fence) and not code[2].strip()
            fence = b"" if closes else fence
        elif code and not (code[1].startswith(b"`") and b"`" in code[2]):
            fence = code[1]
        elif mark := _ATX.match(text):
            yield offset, len(mark[1]), line_merge.decode(mark[2] or b"")
        offset += len(line)


def folded(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).casefold().split())
