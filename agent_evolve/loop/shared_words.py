"""Texts as words that disguises don't change, and the runs of words that two texts share."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

WORD = 2
"""Units of a word. A character of a script written without spaces counts as half a word: 1."""

_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
_TOKEN = re.compile(rf"[{_UNSPACED}]|(?:(?![{_UNSPACED}_])[\w\u0900-\u0dff])+")
_ASCII_TOKEN = re.compile(r"[a-z0-9]+")
_IS_UNSPACED = re.compile(rf"[{_UNSPACED}]")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|[nrt])")
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\ufe00-\ufe0f\ufeff\U000e0000-\U000e0fff]"
)
_MARKS = re.compile("[\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u064b-\u065f\u0670\u20d0-\u20f0]")
_APOSTROPHES = re.compile(r"['’‘`´](?:s\b)?")


def words_of(text: str) -> list[str]:
    """The words of a text, without letter case, punctuation, accents, ``'s``, invisible characters,
    and width or form of characters (NFKC). ``\\n``, ``\\t`` and ``\\u00e9`` as JSON writes them are
    the characters they stand for. In scripts without spaces each character is a word."""
    if "\\" in text:
        text = _ESCAPE.sub(lambda found: chr(int(found[1], 16)) if found[1] else " ", text)
    if text.isascii():
        return _ASCII_TOKEN.findall(_APOSTROPHES.sub("", text.lower()))
    bare = _MARKS.sub("", unicodedata.normalize("NFKD", _INVISIBLE.sub("", text)))
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", bare).casefold())
    return _TOKEN.findall(_APOSTROPHES.sub("", folded))


@dataclass(frozen=True)
class Words:
    """The words of a file and the line, from 1, that each stands on."""

    words: Sequence[str]
    lines: Sequence[int]
    source: Sequence[str]

    @cached_property
    def places(self) -> Mapping[str, Sequence[int]]:
        """Where each word stands."""
        found: dict[str, list[int]] = {}
        for at, word in enumerate(self.words):
            found.setdefault(word, []).append(at)
        return found

    def as_written(self, start: int, end: int, most: int) -> str:
        """Words ``start`` to ``end`` as the file has them, on one line, cut after ``most``
        characters."""
        found: list[str] = []
        for line in range(self.lines[start], self.lines[end - 1] + 1):
            at = bisect_left(self.lines, line)
            for piece in self.source[line - 1].split():
                held = len(words_of(piece))
                if at < end and at + held > start:
                    part = self.words[max(at, start) : min(at + held, end)]
                    found.append(piece if len(piece) <= most else "".join(part))
                at += held
        shown = " ".join(found)
        return shown if len(shown) <= most else shown[: most - 1].rstrip() + "…"


def read_words(content: bytes) -> Words:
    """The words of a file's bytes; what is no UTF-8 text separates words."""
    source = lines_of(content)
    words: list[str] = []
    lines: list[int] = []
    for number, line in enumerate(source, 1):
        found = words_of(line)
        words += found
        lines += [number] * len(found)
    return Words(words, lines, source)


def lines_of(content: bytes) -> list[str]:
    """The lines of a file's bytes, as an editor counts them; NUL is left out (UTF-16)."""
    text = content.replace(b"\0", b"").decode("utf-8", "replace")
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def units(words: Iterable[str]) -> int:
    """How much text words are: two for each, one for a character of a script without spaces."""
    return sum(map(_unit, words))


def runs(words: Sequence[str], size: int) -> Iterator[tuple[int, int, int]]:
    """Start, end and hash of every shortest run of words with at least ``size`` units.

    Hashes have 64 bits and hold within the process only.
    """
    end = held = 0
    weights = [_unit(word) for word in words]
    for start, weight in enumerate(weights):
        while held < size and end < len(words):
            held += weights[end]
            end += 1
        if held < size:
            return
        yield start, end, hash(tuple(words[start:end]))
        held -= weight


def strange(words: Sequence[str], known: set[int], size: int) -> Sequence[int]:
    """Units, summed up from the start (``len(words) + 1`` numbers), of the words that stand in no
    run of ``size`` units that is ``known``."""
    covered = 0
    total, sums = 0, [0]
    found = runs(words, size)
    ahead = next(found, None)
    for at, word in enumerate(words):
        while ahead is not None and ahead[0] <= at:
            if ahead[2] in known:
                covered = max(covered, ahead[1])
            ahead = next(found, None)
        total += _unit(word) if at >= covered else 0
        sums.append(total)
    return sums


@dataclass(slots=True)
class Phrases:
    """Whole phrases, each with a number, found wherever they stand in a text (a trie)."""

    _next: dict[str, Phrases] = field(default_factory=dict)
    _numbers: list[int] = field(default_factory=list)

    def add(self, words: Iterable[str], number: int) -> None:
        node = self
        for word in words:
            node = node._next.setdefault(word, Phrases())
        node._numbers.append(number)

    def find(self, words: Sequence[str]) -> Iterator[tuple[int, int, int]]:
        """Start, end and number of every phrase in ``words``."""
        for start, first in enumerate(words):
            node = self._next.get(first)
            end = start + 1
            while node is not None:
                for number in node._numbers:
                    yield start, end, number
                node = node._next.get(words[end]) if end < len(words) else None
                end += 1


def _unit(word: str) -> int:
    return 1 if len(word) == 1 and not word.isascii() and _IS_UNSPACED.match(word) else WORD
