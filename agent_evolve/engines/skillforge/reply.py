"""The format in which a model that can't drive a shell writes its changes, read leniently.

    CHANGES
    FILE skills/dates/SKILL.md
    ```
    the whole file
    ```
    EDIT prompts/system.md
    <<<<<<< SEARCH
    lines as they stand in the file, once
    =======
    lines to put there
    >>>>>>> REPLACE
    DELETE skills/old-name
    MEMORY one lesson, as one line
    ACCEPT draft-name
    REJECT draft-name
    DONE what was changed and why

Where models differ, the reader is lenient: text around the blocks, thinking in tags, CRLF, Markdown
decoration of the headers, any language and length of a fence, a fence around everything. Where
two readings are possible (a fence that may close twice, a search without its end, an answer cut
short) it refuses and says why. A later ``CHANGES`` starts over: the last complete answer counts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from .operations import (
    REPLACE,
    SEARCH,
    SEPARATOR,
    Decide,
    Delete,
    EditFile,
    Operation,
    Remember,
    WriteFile,
)

SUMMARY_CHARS = 2_000


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer as read. ``problems`` is empty when every block of it could be read in one way."""

    operations: tuple[Operation, ...] = ()
    summary: str = ""
    problems: tuple[str, ...] = ()
    done: bool = False


def parse_reply(text: str, *, cut: bool = False) -> Reply:
    """Read a model's answer. ``cut``: it ended at the token limit, so that only an answer which was
    closed by ``DONE`` counts. Never raises; what can't be read is told in ``problems``."""
    reader = _Reader(_plain(text))
    sections = reader.read()
    complete = [s for s in sections if not s.problems and (s.done or (s.operations and not cut))]
    if complete:
        return complete[-1].as_reply()
    spoken = [s for s in sections if s.problems or s.operations]
    if not spoken:
        what = "the answer was cut at the token limit" if cut else "the answer holds no block"
        return Reply(problems=(f"{what}; it must have the form CHANGES ... DONE",))
    section = spoken[-1]
    if cut and not section.done:
        section.problems.append("the answer was cut at the token limit; write a shorter one")
    return section.as_reply()


_THOUGHT = re.compile(r"\A\s*<(think|thinking|thought|reasoning)>.*?</\1>", re.DOTALL)
_THOUGHT_END = re.compile(r"^\s*</(?:think|thinking|thought|reasoning)>\s*$")
_WORDS = "CHANGES|FILE|EDIT|DELETE|MEMORY|ACCEPT|REJECT|DONE"
_HEADER = re.compile(
    rf"^[ ]{{0,3}}(?:(?:[#>+*-]+|\d+[.)])[ ]+)*[*_`]*(?:(?P<word>{_WORDS})(?![\w-])"
    rf"|(?P<loose>(?i:{_WORDS}))(?=[*_`]*:))[*_`]*(?P<rest>.*)$"
)
_FENCE = re.compile(r"^[ ]{0,3}(?P<run>`{3,}|~{3,})[ \t]*(?P<info>[^`]*)$")
_CATEGORY = re.compile(r"^\[(?P<category>[^\]]{1,200})\]\s*:?\s*")
_BULLET = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+")


def _plain(text: str) -> list[str]:
    text = text.replace("\r\n", "\n").removeprefix("\ufeff")
    while found := _THOUGHT.match(text):
        text = text[found.end() :]
    return text.split("\n")


@dataclass(slots=True)
class _Section:
    operations: list[Operation] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    summary: str = ""
    done: bool = False

    def as_reply(self) -> Reply:
        operations = tuple(_last_of_each_file(self.operations))
        return Reply(operations, self.summary, tuple(self.problems), self.done)


def _last_of_each_file(operations: Sequence[Operation]) -> list[Operation]:
    """A file written twice is meant as written last; what stood before it there is dropped."""
    last = {op.path: i for i, op in enumerate(operations) if isinstance(op, WriteFile)}
    return [
        op
        for i, op in enumerate(operations)
        if not (isinstance(op, (WriteFile, EditFile)) and i < last.get(op.path, -1))
    ]


class _Reader:
    """Walks over the lines once; ``self.at`` is the next line to read."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self.at = 0
        self.sections = [_Section()]
        self.around: str | None = None  # a fence opened outside of any block

    @property
    def section(self) -> _Section:
        return self.sections[-1]

    def read(self) -> list[_Section]:
        while self.at < len(self.lines):
            line = self.lines[self.at]
            self.at += 1
            if fence := _FENCE.match(line):
                self.around = None if self.around else fence["run"]
            elif _THOUGHT_END.match(line):
                self.sections, self.around = [_Section()], None
            elif (header := _HEADER.match(line)) and not self._is_prose(header):
                self._block((header["word"] or header["loose"]).upper(), header["rest"])
        return self.sections

    def _is_prose(self, header: re.Match[str]) -> bool:
        """A closing remark may say ``Memory: one line added``, or repeat the instructions; after
        DONE a block counts only where it has all that makes one."""
        if not self.section.done or header["word"] == "CHANGES":
            return False
        following = next((line for line in self.lines[self.at :] if line.strip()), "")
        match header["word"]:
            case "FILE":
                return not _FENCE.match(following)
            case "EDIT":
                return not SEARCH.match(following)
            case "DELETE" | "ACCEPT" | "REJECT":
                return len(header["rest"].split()) != 1
        return header["word"] != "DONE"

    def _block(self, word: str, rest: str) -> None:
        if word == "CHANGES":
            self.sections.append(_Section())
        elif word == "DONE":
            self._done(rest)
        elif word == "MEMORY":
            self._memory(rest)
        elif not (name := _name(rest)):
            self.section.problems.append(f"{word} without a path")
        elif word == "FILE":
            self._file(name)
        elif word == "EDIT":
            self._edit(name)
        elif word == "DELETE":
            self.section.operations.append(Delete(name))
        else:
            self.section.operations.append(Decide(_draft(name), accept=word == "ACCEPT"))

    def _done(self, rest: str) -> None:
        said = [rest.lstrip(" :*_").strip()]
        while self.at < len(self.lines) and not self._at_mark():
            said.append(self.lines[self.at].strip())
            self.at += 1
        self.section.summary = "\n".join(said).strip()[:SUMMARY_CHARS]
        self.section.done = True

    def _file(self, path: str) -> None:
        start = self.at
        self._skip_blank()
        opening = _FENCE.match(self.lines[self.at]) if self.at < len(self.lines) else None
        if opening:
            self.at += 1
            run = opening["run"]
        elif self.around:
            # The header stands inside the fence, as the file's first line.
            self.at, run, self.around = start, self.around, None
        else:
            self.section.problems.append(f"FILE {path}: put its whole text between ``` lines")
            return
        content = self._fenced(run)
        if content is None:
            self.section.problems.append(f"FILE {path}: the closing {run} is missing")
        elif self._closes_again(run):
            self.section.problems.append(
                f"FILE {path}: it is unclear which {run[:3]} line ends the file; when the text "
                f"holds {run[:3]} lines, put ````` before and after it"
            )
        else:
            self.section.operations.append(WriteFile(path, "".join(f"{x}\n" for x in content)))

    def _fenced(self, run: str) -> list[str] | None:
        """The lines up to the closing fence; nested fences that name a language are content."""
        content: list[str] = []
        depth = 1
        while self.at < len(self.lines):
            line = self.lines[self.at]
            self.at += 1
            fence = _FENCE.match(line)
            if fence and fence["run"].startswith(run):
                depth += 1 if fence["info"].strip() else -1
                if depth == 0:
                    return content
            content.append(line)
        return None

    def _closes_again(self, run: str) -> bool:
        """Whether another fence could be the end just as well."""
        spare = 1 if self.around else 0
        for line in self.lines[self.at :]:
            if _HEADER.match(line):
                return False
            fence = _FENCE.match(line)
            if fence and fence["run"].startswith(run):
                if not spare:
                    return True
                spare -= 1
        return False

    def _edit(self, path: str) -> None:
        passages: list[tuple[str, str]] = []
        while True:
            start = self.at
            self._skip_blank(fences=True)
            if self.at >= len(self.lines) or not SEARCH.match(self.lines[self.at]):
                self.at = start
                break
            self.at += 1
            passage = self._passage()
            if isinstance(passage, str):
                self.section.problems.append(f"EDIT {path}: {passage}")
                return
            passages.append(passage)
        if passages:
            self.section.operations.append(EditFile(path, tuple(passages)))
        else:
            self.section.problems.append(
                f"EDIT {path}: needs <<<<<<< SEARCH, =======, >>>>>>> REPLACE; "
                "to give the whole file, use FILE"
            )

    def _passage(self) -> tuple[str, str] | str:
        halves: list[list[str]] = [[]]
        while self.at < len(self.lines):
            line = self.lines[self.at]
            self.at += 1
            if REPLACE.match(line):
                if len(halves) != 2:
                    return f"there must be one ======= line before REPLACE, not {len(halves) - 1}"
                old, new = ("".join(f"{x}\n" for x in half) for half in halves)
                return old, new
            if SEARCH.match(line):
                return "a SEARCH inside a SEARCH"
            if SEPARATOR.match(line):
                halves.append([])
            else:
                halves[-1].append(line)
        return "the closing >>>>>>> REPLACE is missing"

    def _memory(self, rest: str) -> None:
        rest = rest.lstrip(" :*_")
        category = "episodic"
        if found := _CATEGORY.match(rest):
            category, rest = found["category"], rest[found.end() :]
        entries = [rest.strip()] if rest.strip() else self._following()
        if not entries:
            self.section.problems.append("MEMORY without a lesson")
        for text in entries:
            self.section.operations.append(Remember(category, _entry(text)))

    def _following(self) -> list[str]:
        """The lines after a bare MEMORY: up to a blank line, a fence's end, or the next block."""
        self._skip_blank()
        if self.at < len(self.lines) and (fence := _FENCE.match(self.lines[self.at])):
            self.at += 1
            lines = self._fenced(fence["run"])
            if lines is None:
                self.section.problems.append("MEMORY: the closing fence is missing")
            return [_BULLET.sub("", x).strip() for x in lines or [] if x.strip()]
        found = []
        while self.at < len(self.lines) and self.lines[self.at].strip() and not self._at_mark():
            found.append(_BULLET.sub("", self.lines[self.at]).strip())
            self.at += 1
        return found

    def _at_mark(self) -> bool:
        line = self.lines[self.at]
        header = _HEADER.match(line)
        return bool((header and header["word"]) or _FENCE.match(line) or _THOUGHT_END.match(line))

    def _skip_blank(self, *, fences: bool = False) -> None:
        while self.at < len(self.lines):
            line = self.lines[self.at]
            if line.strip() and not (fences and _FENCE.match(line)):
                return
            self.at += 1


def _name(rest: str) -> str:
    """The path of a header, without what Markdown puts around it."""
    return rest.strip().strip(":*`\"'<> \t").removeprefix("./")


def _draft(name: str) -> str:
    return name.rsplit("/", 1)[-1].removesuffix(".md")


def _entry(text: str) -> dict[str, Any]:
    if text.startswith("{"):
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            value = None
        if isinstance(value, dict):
            return value
    return {"content": text}
