"""Sharing a limited number of characters among texts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from .fence import Fence

Key = TypeVar("Key")

LEAST_PIECE = 160
"""Characters below which a text is left out rather than cut to a stump."""

_NO_FENCE = Fence("data-0123456789")


def allocate(
    needs: Mapping[Key, int], total: int, weights: Mapping[Key, float] | None = None
) -> dict[Key, int]:
    """Shares of ``total`` in proportion to the weights; what one does not need goes to the others.

    Equal weights keep the short ones whole and cut the longest. No share exceeds its need, and the
    sum never exceeds ``total``.
    """
    weights = weights or dict.fromkeys(needs, 1.0)
    shares = dict.fromkeys(needs, 0)
    left = max(0, total)
    open_keys = [key for key, need in needs.items() if need > 0]
    while open_keys:
        weight = sum(weights[key] for key in open_keys)
        full = [key for key in open_keys if needs[key] * weight <= left * weights[key]]
        if not full:
            for key in open_keys:
                shares[key] = int(left * weights[key] / weight)
            break
        for key in full:
            shares[key] = needs[key]
            left -= needs[key]
            open_keys.remove(key)
    return shares


def clip(text: str, limit: int, where: str = "") -> str:
    """At most ``limit`` characters: the beginning, a mark that says how much is left out and where
    to read it, and the end."""
    if len(text) <= limit:
        return text
    place = f"; read {where}" if where else ""
    mark = f"\n[... {len(text)} characters in all, the middle left out{place} ...]\n"
    room = limit - len(mark)
    if room < 40:
        mark, room = " [... cut]", limit - len(" [... cut]")
        return text[:room] + mark if room > 0 else ""
    tail = room // 3
    return text[: room - tail] + mark + text[len(text) - tail :]


@dataclass(frozen=True, slots=True)
class Piece:
    """A text to show, what it is, and where the whole of it can be read.

    ``fit`` makes a shorter form of at most a given length, where cutting out the middle won't do.
    """

    label: str
    text: str
    where: str = ""
    fit: Callable[[int], str] | None = None

    def within(self, limit: int) -> str:
        if len(self.text) <= limit:
            return self.text
        return clip(self.text if self.fit is None else self.fit(limit), limit, self.where)


@dataclass(frozen=True, slots=True)
class Section:
    """Texts under one title. ``weight`` is its share when not everything fits."""

    title: str
    pieces: Sequence[Piece]
    weight: float = 1.0
    empty: str = ""

    def without_places(self) -> Section:
        """The section for a reader who can't open files."""
        return replace(self, pieces=[replace(piece, where="") for piece in self.pieces])

    def need(self) -> int:
        """Characters of the section with nothing cut."""
        return len(self._head()) + sum(_overhead(p) + len(p.text) for p in self.pieces)

    def render(self, limit: int, fence: Fence) -> tuple[str, frozenset[str]]:
        """The section in at most ``limit`` characters, and the labels of what it shows whole."""
        head = self._head()
        if len(head) > limit:
            return "", frozenset()
        room = limit - len(head)
        if sum(_overhead(p) + len(p.text) for p in self.pieces) > room:
            room -= _OMITTED_CHARS
        taken = self._fitting(room)
        omitted = self.pieces[len(taken) :]
        room -= sum(_overhead(p) for p in taken)
        shares = allocate({i: len(p.text) for i, p in enumerate(taken)}, room)
        shown = [p.within(shares[i]) for i, p in enumerate(taken)]
        parts = [head, *(fence.wrap(t, p.label) + "\n" for t, p in zip(shown, taken, strict=True))]
        if omitted and room >= 0:
            parts.append(f"({len(omitted)} more are not shown: no room)\n")
        whole = {p.label for t, p in zip(shown, taken, strict=True) if t == p.text}
        return "".join(parts), frozenset(whole)

    def _fitting(self, room: int) -> Sequence[Piece]:
        used = 0
        for index, piece in enumerate(self.pieces):
            used += _overhead(piece) + min(len(piece.text), LEAST_PIECE)
            if used > room:
                return self.pieces[:index]
        return self.pieces

    def _head(self) -> str:
        body = "" if self.pieces else self.empty
        return f"\n## {self.title}\n" + (f"{body}\n" if body else "")


_OMITTED_CHARS = 50


def _overhead(piece: Piece) -> int:
    # One more for the line end that the fence adds, and one for the line end after it.
    return len(_NO_FENCE.wrap("", piece.label)) + 2
