"""A random word at the end of a copied SKILL.md, by which a program's output shows what it loaded.

It stands in copies only: the workspace never holds one, and nothing that is kept does.
"""

from __future__ import annotations

import re
import secrets

from ..workspace.line_merge import dominant_eol

_UTF_16 = (b"\xff\xfe", b"\xfe\xff")


def new_marker() -> str:
    """``ae-`` and 16 random hexadecimal digits."""
    return f"ae-{secrets.token_hex(8)}"


def plant(data: bytes, marker: str) -> bytes:
    """The file with the marker as a Markdown comment on a last line of its own.

    All bytes before it stay as they are, the frontmatter among them. UTF-16, which no program
    reads as a skill, is given back unchanged.
    """
    if data.startswith(_UTF_16):
        return data
    eol = dominant_eol(data)
    start = eol if data and not data.endswith((b"\n", b"\r")) else b""
    return data + start + f"<!-- agent-evolve marker: {marker} -->".encode() + eol


def without(marker: str, text: str) -> str:
    """The text as it would be had nothing been planted: the comment is taken out, also where it
    is escaped as in JSON, and the marker wherever else it stands. ``""`` is no marker."""
    if not marker:
        return text
    comment = rf"(?:<|\\u003c)!-- agent-evolve marker: {marker} --(?:>|\\u003e)"
    return re.sub(f"{comment}|{marker}", "", text, flags=re.IGNORECASE)
