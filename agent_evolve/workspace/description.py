"""The ways in which a new description can be written into a frontmatter, best first.

Each way is a whole new header text. Whether YAML reads it as meant, and all other keys as before,
is for the caller to check: a style that can't hold the text is simply passed over.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import yaml

from . import strict_yaml
from .frontmatter import chunks, readable

_BLOCK = re.compile(r"([|>])([-+0-9]*)([^\r\n]*)")
_ESCAPE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufdd0-\ufdef\ufffe\uffff]")
_KEY = "description"


def rewritings(header: str, text: str, eol: str, parses: bool) -> Iterator[str]:
    """Header texts in which the description is ``text``: in the style it has now, then in styles
    that can hold anything."""
    value = _value_of(header) if parses else None
    if value is not None:
        start, end, style = value
        if style in ("|", ">"):
            yield from _blocks(header, start, end, text, eol)
        else:
            for scalar in _scalars(style, text):
                yield header[:start] + _spaced(header, start) + scalar + header[end:]
    found = [chunk for chunk in chunks(readable(header)) if chunk.key == _KEY]
    if found:
        place = found[-1]
        old = header[place.colon + 1 : place.end]
        kept = old[len(old.rstrip("\r\n")) :]
        yield header[: place.colon + 1] + " " + quoted(text) + kept + header[place.end :]
    elif value is None:
        yield from _inserted(header, text, eol)


def quoted(text: str) -> str:
    """``text`` in double quotes, on one line, for any YAML reader."""
    return _ESCAPE.sub(
        lambda match: f"\\u{ord(match[0]):04x}", json.dumps(text, ensure_ascii=False)
    )


def _value_of(header: str) -> tuple[int, int, str | None] | None:
    """Start, end and style of the value, or ``None`` when it is not a scalar of its own."""
    text = readable(header)
    entries = [
        pair for pair in strict_yaml.pairs(strict_yaml.compose(text)) if pair[0].value == _KEY
    ]
    if not entries:
        return None
    key, node = entries[-1]
    colon = text.find(":", key.end_mark.index)
    start, end = node.start_mark.index, node.end_mark.index
    if not isinstance(node, yaml.ScalarNode) or start <= colon:
        return None  # a list, a mapping, or an alias to something further up
    if start == end:
        return colon + 1, colon + 1, None
    if node.style in ("|", ">"):
        end = _block_end(text, start, key.start_mark.column)
    return start, end, node.style or None  # the C loader says "" for a plain one


def _block_end(text: str, start: int, margin: int) -> int:
    """Where a block scalar's last line of content ends, its line end left out."""
    end = index = text.find("\n", start) + 1 or len(text)
    for row in text[index:].splitlines(keepends=True):
        index += len(row)
        if row.strip():
            if len(row) - len(row.lstrip(" ")) <= margin:
                break
            end = index
    return start + len(text[start:end].rstrip("\r\n"))


def _spaced(header: str, start: int) -> str:
    return "" if header[start - 1] in " \t\n" else " "


def _scalars(style: str | None, text: str) -> Iterator[str]:
    plain = "\n" not in text and "\r" not in text and text == text.strip()
    if style is None and plain and "\t" not in text:  # which not every reader takes there
        yield text
    if style == "'" and plain:
        yield "'" + text.replace("'", "''") + "'"
    yield quoted(text)


def _blocks(header: str, start: int, end: int, text: str, eol: str) -> Iterator[str]:
    match = _BLOCK.match(header, start)
    if match is None:  # a tag or an anchor stands before it
        return
    style, indicators, comment = match.groups()
    rows = header[match.end() : end].splitlines()[1:]
    filled = [row for row in rows if row.strip()]
    indent = min((row[: len(row) - len(row.lstrip(" "))] for row in filled), default="  ")
    width = max(60, *(len(row) for row in filled), 0) if filled else 80
    digits = re.sub(r"[-+]", "", indicators)
    trailing = len(text) - len(text.rstrip("\n"))
    chomp = digits + ("-" if not trailing else "" if trailing == 1 else "+")
    for kind in dict.fromkeys((style, "|")):
        content = text.rstrip("\n")
        lines = _folded(content, width - len(indent)) if kind == ">" else content.split("\n")
        block = eol.join(indent + line if line else "" for line in lines)
        for choice in dict.fromkeys((indicators, chomp)):
            yield header[:start] + kind + choice + comment + eol + block + header[end:]
    yield header[:start] + quoted(text) + comment + header[end:]


def _folded(text: str, width: int) -> list[str]:
    """Lines that a folded block scalar reads as ``text``: a line end in it is a blank line."""
    lines: list[str] = []
    for number, paragraph in enumerate(text.split("\n")):
        if number:
            lines.append("")
        if not paragraph:
            continue
        row = ""
        for word in re.split(r"(?<=\S) (?=\S)", paragraph):
            if row and len(row) + 1 + len(word) > width:
                lines.append(row)
                row = word
            else:
                row = f"{row} {word}" if row else word
        lines.append(row)
    return lines


def _inserted(header: str, text: str, eol: str) -> Iterator[str]:
    """A new line after the name's, or else at the top."""
    line = f"{_KEY}: {quoted(text)}{eol}"
    for chunk in chunks(readable(header)):
        if chunk.key == "name":
            gap = "" if header[: chunk.end].endswith("\n") else eol
            yield header[: chunk.end] + gap + line + header[chunk.end :]
    yield line + header
    gap = "" if not header or header.endswith("\n") else eol
    yield header + gap + line
