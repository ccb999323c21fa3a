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

from .lines import FENCE, HEADER, THOUGHT_END, Lines, without_bullet
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

_CATEGORY = re.compile(r"^\[(?P<category>[^\]]{1,200})\]\s*:?\s*")


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
    reader = _Reader(Lines(text))
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
    """Walks over the lines once."""

    def __init__(self, lines: Lines) -> None:
        self.lines = lines
        self.sections = [_Section()]
        self.around: str | None = None  # a fence opened outside of any block

    @property
    def section(self) -> _Section:
        return self.sections[-1]

    def read(self) -> list[_Section]:
        while (line := self.lines.take()) is not None:
            if fence := FENCE.match(line):
                self.around = None if self.around else fence["run"]
            elif THOUGHT_END.match(line):
                self.sections, self.around = [_Section()], None
            elif (header := HEADER.match(line)) and not self._is_prose(header):
                self._block((header["word"] or header["loose"]).upper(), header["rest"])
        return self.sections

    def _is_prose(self, header: re.Match[str]) -> bool:
        """A closing remark may say ``Memory: one line added``, or repeat the instructions; after
        DONE a block counts only where it has all that makes one."""
        if not self.section.done:
            return False
        match header["word"]:
            case "FILE":
                return not FENCE.match(self.lines.following())
            case "EDIT":
                return not SEARCH.match(self.lines.following())
            case "DELETE" | "ACCEPT" | "REJECT":
                return len(header["rest"].split()) != 1
        return header["word"] not in ("CHANGES", "DONE")

    def _block(self, word: str, rest: str) -> None:
        if word == "CHANGES":
            self.sections.append(_Section())
        elif word == "DONE":
            said = [rest.lstrip(" :*_").strip(), *self.lines.until_mark()]
            self.section.summary = "\n".join(said).strip()[:SUMMARY_CHARS]
            self.section.done = True
        elif word == "MEMORY":
            self._memory(rest.lstrip(" :*_"))
        elif not (name := _name(rest)):
            self.section.problems.append(f"{word} without a path")
        elif word == "FILE":
            self._file(name)
        elif word == "EDIT":
            self._edit(name)
        elif word == "DELETE":
            self.section.operations.append(Delete(name))
        else:
            draft = name.rsplit("/", 1)[-1].removesuffix(".md")
            self.section.operations.append(Decide(draft, accept=word == "ACCEPT"))

    def _file(self, path: str) -> None:
        spare = 1 if self.around else 0
        if opening := FENCE.match(self.lines.following()):
            self.lines.skip_blank()
            self.lines.take()
            run = opening["run"]
        elif self.around:
            # The header stands inside the fence, as the file's first line.
            run, self.around, spare = self.around, None, 0
        else:
            self.section.problems.append(f"FILE {path}: put its whole text between ``` lines")
            return
        content = self.lines.fenced(run)
        if content is None:
            self.section.problems.append(f"FILE {path}: the closing {run} is missing")
        elif self.lines.fences_ahead(run) > spare:
            self.section.problems.append(
                f"FILE {path}: it is unclear which {run[:3]} line ends the file; when the text "
                f"holds {run[:3]} lines, put ````` before and after it"
            )
        else:
            self.section.operations.append(WriteFile(path, _text(content)))

    def _edit(self, path: str) -> None:
        passages: list[tuple[str, str]] = []
        while True:
            start = self.lines.at
            self.lines.skip_blank(fences=True)
            if not SEARCH.match(self.lines.next or ""):
                self.lines.at = start
                break
            self.lines.take()
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
        """What to search and what to put there, or what is wrong with the block."""
        halves: list[list[str]] = [[]]
        while (line := self.lines.take()) is not None:
            if REPLACE.match(line):
                if len(halves) != 2:
                    return f"there must be one ======= line before REPLACE, not {len(halves) - 1}"
                return _text(halves[0]), _text(halves[1])
            if SEARCH.match(line):
                return "a SEARCH inside a SEARCH"
            if SEPARATOR.match(line):
                halves.append([])
            else:
                halves[-1].append(line)
        return "the closing >>>>>>> REPLACE is missing"

    def _memory(self, rest: str) -> None:
        category = "episodic"
        if found := _CATEGORY.match(rest):
            category, rest = found["category"], rest[found.end() :]
        entries = [rest.strip()] if rest.strip() else self._lessons()
        if not entries:
            self.section.problems.append("MEMORY without a lesson")
        for text in entries:
            self.section.operations.append(Remember(category, _entry(text)))

    def _lessons(self) -> list[str]:
        """The lines after a bare MEMORY: in a fence, or up to a blank line or the next block."""
        self.lines.skip_blank()
        found: Sequence[str] | None
        if fence := FENCE.match(self.lines.next or ""):
            self.lines.take()
            found = self.lines.fenced(fence["run"])
            if found is None:
                self.section.problems.append("MEMORY: the closing fence is missing")
        else:
            found = self.lines.until_mark(blank_ends=True)
        return [without_bullet(line) for line in found or () if line.strip()]


def _text(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _name(rest: str) -> str:
    """The path of a header, without what Markdown puts around it."""
    return rest.strip().strip(":*`\"'<> \t").removeprefix("./")


def _entry(text: str) -> dict[str, Any]:
    if text.startswith("{"):
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            value = None
        if isinstance(value, dict):
            return value
    return {"content": text}
