"""A SKILL.md as bytes with known places in it, and edits that touch nothing else.

    skill = SkillFile.parse(path.read_bytes())
    path.write_bytes(skill.replace_in_body("twenty rows", "fifty rows").data)

A parsed file never goes back to text by way of a YAML writer: comments, quotes, line ends, a byte
order mark and bytes that are not UTF-8 stay exactly where they were. Rules of the format:
https://agentskills.io/specification.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..errors import SkillError
from . import frontmatter, line_merge
from .description import rewritings
from .problem import Problem

FILE = "SKILL.md"
MAX_DESCRIPTION = 1024
"""Characters of a description; longer ones are refused by the specification and several clients."""

_PATH = re.compile(r"[^\s<>\"|?*\x00]{1,1000}")
_BAD_BYTES = re.compile("[\udc80-\udcff]")


@dataclass(frozen=True, slots=True)
class SkillFile:
    """One SKILL.md. Made by :meth:`parse`, which accepts any bytes at all.

    Attributes:
        data: the whole file.
        bom: whether it starts with a byte order mark.
        eol: the line end most lines have, ``b"\\n"`` or ``b"\\r\\n"``.
        frontmatter: byte span between the two fences, or ``None``.
        body: byte span of what follows the frontmatter; the whole file when there is none.
        name, description: as the frontmatter gives them (recovered line by line where it is not
            valid YAML), or ``None``. A skill is known by its directory, whatever ``name`` says.
        keys: top-level keys of the frontmatter, in their order.
        parses: whether strict readers can read the frontmatter.
        problems: what is wrong, in the order of the lines.
    """

    data: bytes
    bom: bool
    eol: bytes
    frontmatter: tuple[int, int] | None
    body: tuple[int, int]
    name: str | None
    description: str | None
    keys: tuple[str, ...]
    parses: bool
    problems: tuple[Problem, ...]

    @classmethod
    def parse(cls, data: bytes) -> SkillFile:
        """Read any bytes. Never raises; what is wrong is listed in ``problems``."""
        bom = data.startswith(line_merge.BOM)
        found = frontmatter.fences(data)
        if found is None:
            header = frontmatter.Header(problems=(_no_frontmatter(data),))
            span, body = None, (3 if bom else 0, len(data))
        else:
            header = frontmatter.read(line_merge.decode(data[found.start : found.end]))
            span, body = (found.start, found.end), (found.body, len(data))
        problems = [*header.problems, *_bad_bytes(data)]
        if span is not None:
            problems += _description_problems(header)
        return cls(
            data=data,
            bom=bom,
            eol=line_merge.dominant_eol(data),
            frontmatter=span,
            body=body,
            name=header.name,
            description=header.description,
            keys=header.keys,
            parses=header.parses,
            problems=tuple(sorted(problems, key=lambda problem: (problem.line, problem.column))),
        )

    @property
    def recoverable(self) -> bool:
        """Broken for strict readers, but a description could be read all the same."""
        return not self.parses and self.description is not None

    @property
    def body_text(self) -> str:
        """The body; bytes that are not UTF-8 are surrogate escapes."""
        return line_merge.decode(self.data[self.body[0] : self.body[1]])

    def with_body(self, text: str) -> SkillFile:
        """The file with ``text`` as its body; lines that did not change keep their bytes."""
        old = self.data[self.body[0] : self.body[1]]
        if not old:
            new = _with_eol(line_merge.encode(text), self.eol)
            fence = b"" if line_merge.ending(self.data) or not new or not self.data else self.eol
            return SkillFile.parse(self.data + fence + new)
        new = line_merge.merge(old, text, default_eol=self.eol)
        return SkillFile.parse(self.data[: self.body[0]] + new)

    def replace_in_body(self, old: str, new: str) -> SkillFile:
        """The file with the one place in the body that reads ``old`` changed to ``new``.

        Line ends in ``old`` match those of the file, whichever they are. Raises ``SkillError`` when
        ``old`` is empty, absent, or stands in more than one place.
        """
        if not old:
            raise SkillError("nothing to replace: the old text is empty")
        start, end = self._find_once(old)
        matched = self.data[start:end]
        changed = line_merge.merge(matched, new, keep_last_end=False, default_eol=self.eol)
        return SkillFile.parse(self.data[:start] + changed + self.data[end:])

    def with_description(self, text: str) -> SkillFile:
        """The file with another description, written so that any YAML reader reads ``text``.

        Only the bytes of that value change, and it keeps its style (plain, quoted, block) where
        ``text`` can be written that way. A file whose description is ``text`` already is returned
        as it is, even where its frontmatter is broken. Raises ``SkillError`` for a file without
        frontmatter, an empty text, or one that has no bytes in UTF-8.
        """
        if self.frontmatter is None:
            raise SkillError("this file has no frontmatter, so no description can be set in it")
        if not text.strip():
            raise SkillError("a description can't be empty")
        if frontmatter.readable(text) != text:
            raise SkillError("the description holds half a character (a lone surrogate)")
        if self.description == text:
            return self
        start, end = self.frontmatter
        header = line_merge.decode(self.data[start:end])
        before = frontmatter.read(header, values=True)
        for candidate in rewritings(header, text, self.eol.decode(), before.parses):
            after = frontmatter.read(candidate, values=True)
            same = {**after.values, "description": None} == {**before.values, "description": None}
            # "0" or "2026-03-01" without quotes would be a number or a date for other readers.
            read = after.values.get("description") == ("tag:yaml.org,2002:str", text)
            if read and same and (after.parses or not before.parses):
                data = self.data[:start] + line_merge.encode(candidate) + self.data[end:]
                return SkillFile.parse(data)
        raise SkillError(
            "the description can't be replaced without changing other keys of the frontmatter",
            fix="write it by hand, without anchors or aliases",
        )

    def _find_once(self, old: str) -> tuple[int, int]:
        parts = [re.escape(line_merge.encode(part)) for part in re.split("\r?\n", old)]
        pattern = re.compile(rb"(?=(" + rb"\r?\n".join(parts) + rb"))")
        found = [match.span(1) for match in pattern.finditer(self.data, self.body[0])]
        if len(found) == 1:
            return found[0]
        shown = repr(old if len(old) <= 60 else old[:57] + "...")
        if not found:
            raise SkillError(
                f"{shown} does not stand in the body",
                fix="copy the text exactly, with its spaces and punctuation",
            )
        lines = ", ".join(str(self.data.count(b"\n", 0, start) + 1) for start, _ in found[:5])
        raise SkillError(
            f"{shown} stands {len(found)} times in the body (lines {lines})",
            fix="give more of the text around the place that is meant",
        )


def _with_eol(data: bytes, eol: bytes) -> bytes:
    return data.replace(b"\r\n", b"\n").replace(b"\n", eol)


def _no_frontmatter(data: bytes) -> Problem:
    text = line_merge.decode(data).removeprefix("\ufeff").strip()
    if _PATH.fullmatch(text) and ("/" in text or text.endswith(".md")):
        return Problem(
            1,
            1,
            f"holds only the path {text!r}: a link that was checked out as a text file",
            "git config core.symlinks true, then check the file out again; or put the text of "
            "the target here",
            "error",
            "link-as-text",
        )
    if re.match("---[ \t]*\r?(?:\n|$)", text):
        return Problem(
            1,
            1,
            "the frontmatter is never closed",
            "end it with a line that is only '---'",
            "error",
            "unclosed-frontmatter",
        )
    return Problem(
        1,
        1,
        "not a skill: no frontmatter",
        "start the file with '---', 'name: ...', 'description: ...', '---'",
        "error",
        "no-frontmatter",
    )


def _description_problems(header: frontmatter.Header) -> list[Problem]:
    if header.description is None or not header.description.strip():
        if any(problem.severity == "error" for problem in header.problems):
            return []  # said already, with the reason
        fix = "add a line 'description: what it does, and when to use it'"
        message = "description is empty" if "description" in header.keys else "no description"
        return [Problem(1, 1, message, fix, "error", "no-description")]
    return []


def _bad_bytes(data: bytes) -> list[Problem]:
    if data.isascii():
        return []
    text = line_merge.decode(data)
    found = _BAD_BYTES.search(text)
    if found is None:
        return []
    index = found.start()
    column = index - text.rfind("\n", 0, index)
    count = len(_BAD_BYTES.findall(text))
    byte = ord(text[index]) - 0xDC00
    message = f"not UTF-8: byte 0x{byte:02x}" + (f" and {count - 1} more" if count > 1 else "")
    line = text.count("\n", 0, index) + 1
    return [Problem(line, column, message, "save the file as UTF-8", code="not-utf-8")]
