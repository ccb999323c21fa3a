"""The lines of a reply, and what a line of it can be: a block's header, a fence, or text."""

from __future__ import annotations

import re

_WORDS = "CHANGES|FILE|EDIT|DELETE|MEMORY|ACCEPT|REJECT|DONE"
HEADER = re.compile(
    rf"^[ ]{{0,3}}(?:(?:[#>+*-]+|\d+[.)])[ ]+)*[*_`]*(?:(?P<word>{_WORDS})(?![\w-])"
    rf"|(?P<loose>(?i:{_WORDS}))(?=[*_`]*:))[*_`]*(?P<rest>.*)$"
)
"""A block's first line: its word in capitals, or in any case before a colon, with what Markdown
puts around it."""
FENCE = re.compile(r"^[ ]{0,3}(?P<run>`{3,}|~{3,})[ \t]*(?P<info>[^`]*)$")
THOUGHT_END = re.compile(r"^\s*</(?:think|thinking|thought|reasoning)>\s*$")

_THOUGHT = re.compile(r"\A\s*<(think|thinking|thought|reasoning)>.*?</\1>", re.DOTALL)
_BULLET = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+")


class Lines:
    """A reply's lines and a place in them; ``next`` is the line there, ``None`` at the end."""

    def __init__(self, text: str) -> None:
        text = text.replace("\r\n", "\n").removeprefix("\ufeff")
        while found := _THOUGHT.match(text):
            text = text[found.end() :]
        self._lines = text.split("\n")
        self.at = 0

    @property
    def next(self) -> str | None:
        return self._lines[self.at] if self.at < len(self._lines) else None

    def take(self) -> str | None:
        """The next line, which is passed."""
        line = self.next
        self.at += line is not None
        return line

    def following(self) -> str:
        """The next line that holds anything; nothing is passed."""
        return next((line for line in self._lines[self.at :] if line.strip()), "")

    def skip_blank(self, *, fences: bool = False) -> None:
        """Pass empty lines, and fences where asked."""
        while (line := self.next) is not None:
            if line.strip() and not (fences and FENCE.match(line)):
                return
            self.at += 1

    def until_mark(self, *, blank_ends: bool = False) -> list[str]:
        """Text up to a header in capitals, a fence, or the end of a thought; stripped."""
        found = []
        while (line := self.next) is not None:
            header = HEADER.match(line)
            if (header and header["word"]) or FENCE.match(line) or THOUGHT_END.match(line):
                break
            if blank_ends and not line.strip():
                break
            found.append(line.strip())
            self.at += 1
        return found

    def fenced(self, run: str) -> list[str] | None:
        """The lines up to the fence that closes ``run``, which is passed; ``None`` without one.
        Nested fences that name a language are content."""
        content: list[str] = []
        depth = 1
        while (line := self.take()) is not None:
            fence = FENCE.match(line)
            if fence and fence["run"].startswith(run):
                depth += 1 if fence["info"].strip() else -1
                if depth == 0:
                    return content
            content.append(line)
        return None

    def fences_ahead(self, run: str) -> int:
        """How many lines before the next header could close ``run``."""
        count = 0
        for line in self._lines[self.at :]:
            if HEADER.match(line):
                break
            fence = FENCE.match(line)
            count += bool(fence and fence["run"].startswith(run))
        return count


def without_bullet(line: str) -> str:
    """A line without the mark of a list."""
    return _BULLET.sub("", line).strip()
