"""How texts are compared where no model is: phrases that occur in a text, and the nearest of many
texts.

Agents that answer from memory and engines that write it have to mean the same by "mentions", so
both use this. Pure and deterministic; every number can be recomputed by hand from the text.
"""

from __future__ import annotations

import html
import math
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

MAX_CHARS = 20_000
"""Characters of a text that are looked at; what follows is ignored."""

PIECE = 5
"""Length of the pieces of words that similarity looks at."""

_WORD = re.compile(r"[^\W_]+")
_LONG_NUMBER = re.compile(r"(?=\w*\d{4})\w+")
_APOSTROPHES = re.compile(r"['’`´]")


def normalise(text: str) -> str:
    """``text`` as words in lower case with one space between, before and after them.

    HTML entities are resolved, accents and apostrophes dropped, and words with four or more digits
    in a row (order numbers, dates, phone numbers) become ``#``, as no two messages share them.

    >>> normalise("Caf&eacute; N&ordm; 12:  DON'T panic, order A-884213!")
    ' cafe no 12 dont panic order a # '
    """
    folded = unicodedata.normalize("NFKD", html.unescape(text[:MAX_CHARS])).casefold()
    bare = "".join(char for char in folded if not unicodedata.combining(char))
    found = _WORD.findall(_APOSTROPHES.sub("", bare))
    words = ["#" if _LONG_NUMBER.fullmatch(word) else word for word in found]
    return f" {' '.join(words)} " if words else " "


def mentions(normalised: str, pattern: str) -> bool:
    """Whether a normalised text contains a word or phrase.

    A pattern that ends with ``*`` matches any word that starts with it: ``warrant*`` matches
    ``warranty`` and ``warranties``. Patterns are normalised themselves; an empty one never matches.
    """
    needle = _needle(pattern)
    return bool(needle) and needle in normalised


@lru_cache(maxsize=8192)
def _needle(pattern: str) -> str:
    """The exact characters that a normalised text with the pattern contains; "" for none."""
    normalised = normalise(pattern)
    if normalised == " ":
        return ""
    return normalised.rstrip() if pattern.rstrip().endswith("*") else normalised


def features(normalised: str) -> Counter[str]:
    """What similarity is computed from: words, and five-letter pieces of words.

    The pieces make misspelt, inflected and compound words resemble each other. A piece at the start
    of a word is marked with ``^``.
    """
    words = normalised.split()
    found = Counter(words)
    for word in words:
        marked = f"^{word}"
        found.update("~" + marked[at : at + PIECE] for at in range(max(1, len(marked) - PIECE + 1)))
    return found


@dataclass(frozen=True, slots=True)
class Near:
    """A text of an index and how similar it is, from 0 (nothing in common) to 1 (the same)."""

    place: int
    similarity: float


class Index:
    """Finds the nearest of many texts: cosine of counts dampened by logarithm and weighted by how
    rare a feature is among the texts (tf-idf; Salton & Buckley 1988).

    Args:
        texts: the texts to search, as written; a result's ``place`` counts them from 0.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        counted = [features(normalise(text)) for text in texts]
        self._size = len(counted)
        self._found_in = Counter(feature for counts in counted for feature in counts)
        self._postings: dict[str, list[tuple[int, float]]] = defaultdict(list)
        for place, counts in enumerate(counted):
            for feature, weight in self._vector(counts).items():
                self._postings[feature].append((place, weight))

    def nearest(self, text: str, limit: int) -> list[Near]:
        """The ``limit`` most similar texts, most similar first and by place where equal. Texts with
        nothing in common are left out."""
        scores: dict[int, float] = defaultdict(float)
        for feature, weight in self._vector(features(normalise(text))).items():
            for place, other in self._postings.get(feature, ()):
                scores[place] += weight * other
        ranked = sorted(scores.items(), key=lambda item: (-round(item[1], 9), item[0]))
        return [Near(place, min(1.0, score)) for place, score in ranked[:limit]]

    def _vector(self, counts: Mapping[str, int]) -> dict[str, float]:
        weights = {
            feature: (1.0 + math.log(count)) * self._rarity(feature)
            for feature, count in counts.items()
        }
        length = math.sqrt(sum(weight * weight for weight in weights.values()))
        return {feature: weight / length for feature, weight in weights.items()} if length else {}

    def _rarity(self, feature: str) -> float:
        """Smoothed inverse document frequency, at least 1 and finite for unseen features."""
        return 1.0 + math.log((1 + self._size) / (1 + self._found_in[feature]))


def quoted(text: str, limit: int = 80) -> str:
    """``text`` on one line between double quotes, cut at a word and marked with … when longer.

    ``limit`` is in characters without the quotes. Control characters become spaces.
    """
    flat = " ".join("".join(c if c.isprintable() else " " for c in text[: 8 * limit]).split())
    if len(flat) > limit or len(text) > 8 * limit:
        flat = flat[:limit].rsplit(" ", 1)[0].rstrip() + "…"
    return f'"{flat}"'


def listed(patterns: Iterable[str]) -> str:
    """Patterns as a person would list them: ``"a", "b" and "c"``."""
    shown = [f'"{pattern}"' for pattern in patterns]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"
