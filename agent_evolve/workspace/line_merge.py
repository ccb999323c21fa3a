"""Taking a new text for a file while every line that did not change keeps its bytes.

Models and editors hand back text with plain line feeds, without a byte order mark, and with or
without a last line end. Written as it is, such a text changes every line of a CRLF file.
"""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from typing import NamedTuple

BOM = b"\xef\xbb\xbf"
_LINES = re.compile(rb"[^\n]*\n|[^\n]+")
_THOROUGH = 300_000
"""Pairs of changed lines up to which mixed line ends are kept for every line that stays."""


def encode(text: str) -> bytes:
    """UTF-8; bytes that were not UTF-8 when read (surrogate escapes) come out as they went in."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        # A lone surrogate, as half an emoji cut by a model's token limit: it has no bytes at all.
        return re.sub("[\ud800-\udc7f\udd00-\udfff]", "\ufffd", text).encode(
            "utf-8", "surrogateescape"
        )


def decode(data: bytes) -> str:
    """The text of a file; bytes that are not UTF-8 become surrogate escapes."""
    return data.decode("utf-8", "surrogateescape")


def split_lines(data: bytes) -> list[bytes]:
    """Lines with their ends; only LF and CRLF end a line."""
    return _LINES.findall(data)


def content(line: bytes) -> bytes:
    """A line without its end."""
    return line[: len(line) - len(ending(line))]


def ending(line: bytes) -> bytes:
    if line.endswith(b"\r\n"):
        return b"\r\n"
    return b"\n" if line.endswith(b"\n") else b""


def dominant_eol(data: bytes, default: bytes = b"\n") -> bytes:
    """The line end that most lines have; ``default`` when there is none."""
    crlf = data.count(b"\r\n")
    lf = data.count(b"\n") - crlf
    if crlf == lf == 0:
        return default
    return b"\r\n" if crlf > lf else b"\n"


def merge(
    old: bytes, text: str, *, keep_last_end: bool = True, default_eol: bytes = b"\n"
) -> bytes:
    """The bytes of ``text`` as the next version of ``old``.

    Lines equal but for their end keep their old bytes; changed ones take the end of the line they
    replace, new ones the file's. A byte order mark stays. ``keep_last_end`` keeps whether the
    file ended with a line end, and blank lines there; otherwise ``text`` decides.
    """
    new = encode(text)
    if new == old or not old:
        return new
    if old.startswith(BOM):
        return BOM + merge(
            old[len(BOM) :],
            text.removeprefix("\ufeff"),
            keep_last_end=keep_last_end,
            default_eol=default_eol,
        )
    eol = dominant_eol(old, default_eol)
    before = [_Line(content(line), ending(line)) for line in split_lines(old)]
    after = [content(line) for line in split_lines(new)]
    if keep_last_end:
        blank = _blank_at_end([text for text, _ in before])
        after = after[: len(after) - _blank_at_end(after)] + [b""] * blank
    if not after:
        return b""
    merged = _merge_lines(before, after, eol)
    ends = bool(before[-1].end) if keep_last_end else new.endswith(b"\n")
    last = (merged[-1].end or eol) if ends else b""
    inner = b"".join(text + (end or eol) for text, end in merged[:-1])
    return inner + merged[-1].text + last


class _Line(NamedTuple):
    text: bytes
    end: bytes


def _blank_at_end(lines: list[bytes]) -> int:
    """How many lines at the end are empty; 0 where all are."""
    return next((n for n, line in enumerate(reversed(lines)) if line), 0)


def _merge_lines(before: list[_Line], after: list[bytes], eol: bytes) -> list[_Line]:
    """``after`` with the line ends of the lines of ``before`` that stay or are replaced."""
    if len({line.end for line in before if line.end}) < 2:
        return [_Line(text, eol) for text in after]
    keys = [line.text for line in before]
    start = 0
    while start < min(len(keys), len(after)) and keys[start] == after[start]:
        start += 1
    stop = 0
    while stop < min(len(keys), len(after)) - start and keys[-1 - stop] == after[-1 - stop]:
        stop += 1
    merged = before[:start]
    middle, wanted = before[start : len(before) - stop], after[start : len(after) - stop]
    # Finding every equal line takes minutes in long files of few different lines.
    thorough = len(middle) * len(wanted) < _THOROUGH
    matcher = SequenceMatcher(None, [line.text for line in middle], wanted, not thorough)
    for kind, i1, i2, j1, j2 in matcher.get_opcodes():
        if kind == "equal":
            merged += middle[i1:i2]
            continue
        for offset, text in enumerate(wanted[j1:j2]):
            replaced = middle[i1 + offset].end if i1 + offset < i2 else b""
            merged.append(_Line(text, replaced or eol))
    return merged + before[len(before) - stop :]
