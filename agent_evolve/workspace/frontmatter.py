"""The YAML header of a SKILL.md: where it lies, what it says, and what it says when it is broken.

Readers of skills are asked to be lenient: a header that YAML refuses (a colon in a description
without quotes, tabs as indentation) is read again key by key, so that one bad line does not hide
the skill.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from . import strict_yaml
from .line_merge import BOM
from .problem import Problem

_OPEN = re.compile(rb"---[ \t]*\r?\n")
_CLOSE = re.compile(rb"(?m)^---[ \t]*\r?(?:\n|\Z)")
_KEY = re.compile(r"(?m)^([A-Za-z0-9_][^\s:]*)[ \t]*:(?=[ \t\r]|$)")
_SURROGATE = re.compile("[\ud800-\udfff]")
_BLOCK = re.compile(r"[|>][-+0-9]*(?:[ \t]+#.*)?$")


@dataclass(frozen=True, slots=True)
class Fences:
    """Byte offsets in a SKILL.md: the header between its two fences, and the body after them."""

    start: int
    end: int
    body: int


@dataclass(frozen=True, slots=True)
class Header:
    """What a header says. ``values`` maps each top-level key to a comparable form of its value.

    ``name`` and ``description`` are the text as written, never retyped (``name: on`` is "on").
    ``parses`` is whether strict YAML readers accept it as a mapping.
    """

    name: str | None = None
    description: str | None = None
    keys: tuple[str, ...] = ()
    parses: bool = False
    problems: tuple[Problem, ...] = ()
    values: dict[str, Any] = field(default_factory=dict)


def fences(data: bytes) -> Fences | None:
    """Where the header of ``data`` lies, or ``None`` when there is none or it is never closed."""
    start = len(BOM) if data.startswith(BOM) else 0
    opening = _OPEN.match(data, start)
    closing = opening and _CLOSE.search(data, opening.end())
    if not opening or not closing:
        return None
    return Fences(opening.end(), closing.start(), closing.end())


def readable(text: str) -> str:
    """``text`` with bytes that were not UTF-8 shown as U+FFFD; every index stays what it was."""
    return _SURROGATE.sub("\ufffd", text)


def read(text: str, first_line: int = 2, *, values: bool = False) -> Header:
    """Read the text between the fences. ``first_line`` is its line number in the file; ``values``
    asks for all values in a comparable form, which costs more."""
    text = readable(text)
    try:
        node = strict_yaml.compose(text)
    except strict_yaml.YamlFault as fault:
        return _recover(text, first_line, fault)
    if not isinstance(node, yaml.MappingNode):
        what = "empty" if node is None else f"{strict_yaml.kind(node)}, not a mapping"
        problem = Problem(
            first_line,
            1,
            f"the frontmatter is {what}",
            "write 'name:' and 'description:' lines between the two '---'",
            "error",
            "not-a-mapping",
        )
        return Header(problems=(problem,))
    entries = strict_yaml.pairs(node)
    problems = [
        Problem(
            key.start_mark.line + first_line,
            key.start_mark.column + 1,
            f"key {key.value!r} is given twice; the last one counts",
            "remove one of them",
            code="duplicate-key",
        )
        for key in strict_yaml.duplicates(node)
    ]
    last = {key.value: value for key, value in entries}
    for key in ("name", "description"):
        value = last.get(key)
        if value is not None and not isinstance(value, yaml.ScalarNode):
            problems.append(
                Problem(
                    value.start_mark.line + first_line,
                    value.start_mark.column + 1,
                    f"{key} is {strict_yaml.kind(value)}, not text",
                    f'write it as text: {key}: "..."',
                    "error" if key == "description" else "warning",
                    f"bad-{key}",
                )
            )
    return Header(
        name=_scalar(last.get("name")),
        description=_scalar(last.get("description")),
        keys=tuple(key.value for key, _ in entries),
        parses=True,
        problems=tuple(problems),
        values={key: _plain(value) for key, value in last.items()} if values else {},
    )


@dataclass(frozen=True, slots=True)
class Chunk:
    """A top-level key with all lines that belong to it, found without YAML.

    ``start``, ``colon`` and ``end`` are indices in the header's text; trailing blank lines and
    comments at the margin are outside.
    """

    key: str
    start: int
    colon: int
    end: int


def chunks(text: str) -> Iterator[Chunk]:
    """The top-level keys of a header, line by line."""
    found = list(_KEY.finditer(text))
    ends = [*(match.start() for match in found[1:]), len(text)]
    for match, after in zip(found, ends, strict=False):
        lines = text[match.start() : after].splitlines(keepends=True)
        end = after
        while len(lines) > 1 and (not lines[-1].strip() or lines[-1].startswith("#")):
            end -= len(lines.pop())
        yield Chunk(match[1], match.start(), match.end() - 1, end)


def _recover(text: str, first_line: int, fault: strict_yaml.YamlFault) -> Header:
    last: dict[str, str | None] = {}
    values: dict[str, Any] = {}
    problems = []
    for chunk in chunks(text):
        part = text[chunk.start : chunk.end]
        line = text.count("\n", 0, chunk.start) + first_line
        try:
            value = strict_yaml.pairs(strict_yaml.compose(part))[0][1]
            last[chunk.key], values[chunk.key] = _scalar(value), _plain(value)
        except (strict_yaml.YamlFault, IndexError) as error:
            last[chunk.key] = _rest(part[chunk.colon - chunk.start + 1 :])
            values[chunk.key] = part
            if isinstance(error, strict_yaml.YamlFault):
                problems.append(_explain(part, line, error))
    if not problems:
        problems.append(_explain(text, first_line, fault))
    return Header(
        name=last.get("name"),
        description=last.get("description"),
        keys=tuple(last),
        problems=tuple(problems),
        values=values,
    )


def _explain(part: str, first_line: int, fault: strict_yaml.YamlFault) -> Problem:
    """Why a key can't be read, in the words of the person who wrote it."""
    line, column = fault.line + first_line - 1, fault.column
    quoted = "put the value in double quotes"
    for offset, row in enumerate(part.splitlines()):
        if re.match(r" *\t", row):
            return _bad(offset + first_line, 1, "tab used for indentation", "indent with spaces")
    match = _KEY.match(part)
    first = part[match.end() :].lstrip()[:1] if match else ""
    if match and fault.message.startswith("mapping values"):
        return _bad(line, column, "': ' in a value without quotes", f'{quoted}: {match[1]}: "..."')
    if match and first in ("[", "{"):
        kind = "list" if first == "[" else "mapping"
        message = f"the value starts with {first!r}, so YAML expects a {kind} and finds none"
        return _bad(first_line, match.end() + 2, message, f'{quoted}: {match[1]}: "..."')
    return _bad(line, column, f"not valid YAML: {fault.message}", quoted if match else "")


def _bad(line: int, column: int, message: str, fix: str) -> Problem:
    return Problem(line, column, message, fix, "warning", "bad-yaml")


def _rest(raw: str) -> str | None:
    """The value of a key that YAML can't read: the rest of the line and what is indented below."""
    rows = [row.strip() for row in raw.splitlines()]
    if rows and _BLOCK.match(rows[0]):
        rows = rows[1:]
    text = " ".join(row for row in rows if row)
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":
        return text[1:-1]
    return re.split(r"\s#", text, maxsplit=1)[0].rstrip() or None


def _scalar(node: yaml.Node | None) -> str | None:
    if not isinstance(node, yaml.ScalarNode) or strict_yaml.is_null(node):
        return None
    return str(node.value)


def _plain(node: yaml.Node, depth: int = 0) -> Any:
    """A value that can be compared; deep or circular ones end in their tag."""
    if isinstance(node, yaml.ScalarNode):
        return (node.tag, node.value)
    if depth > 20:
        return node.tag
    if isinstance(node, yaml.SequenceNode):
        return [node.tag, *(_plain(item, depth + 1) for item in node.value)]
    return [node.tag, *((_plain(k, depth + 1), _plain(v, depth + 1)) for k, v in node.value)]
