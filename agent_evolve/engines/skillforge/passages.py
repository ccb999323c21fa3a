"""Replacing a passage of a text that must occur in it once."""

from __future__ import annotations

import difflib
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Replaced:
    """The new text, or why there is none."""

    text: str
    problem: str = ""


def replace_passage(text: str, old: str, new: str) -> Replaced:
    """``text`` with the whole lines ``old`` replaced by ``new``; all other bytes stay.

    ``old`` must occur once, as it stands or but for space at the ends of lines. Both may use LF
    where the text uses CRLF. An empty ``old`` adds ``new`` at the end.
    """
    crlf = text.count("\r\n") * 2 > text.count("\n")
    new = new.replace("\n", "\r\n") if crlf else new
    end = "\r\n" if crlf else "\n"
    if not old.strip():
        gap = end if text and not text.endswith("\n") else ""
        return Replaced(text + gap + new)
    lines = text.split("\n")
    wanted = old.removesuffix("\n").split("\n")
    for strip in (lambda line: line.removesuffix("\r"), str.rstrip, str.strip):
        sought = [strip(line) for line in wanted]
        have = [strip(line) for line in lines]
        starts = _starts(have, sought)
        if len(starts) == 1:
            return Replaced(_splice(lines, starts[0], len(wanted), new))
        if len(starts) > 1:
            return Replaced(
                text, f"the SEARCH lines occur {len(starts)} times; copy more lines around them"
            )
    return _inside_line(text, old, new, lines)


def _starts(have: list[str], sought: list[str]) -> list[int]:
    size = len(sought)
    return [i for i in range(len(have) - size + 1) if have[i : i + size] == sought]


def _splice(lines: list[str], start: int, size: int, new: str) -> str:
    before = "".join(f"{line}\n" for line in lines[:start])
    rest = lines[start + size :]
    if not rest:
        # The passage was the end of a text without a final line end; it stays without one.
        return before + new.removesuffix("\n").removesuffix("\r")
    return before + new + "\n".join(rest)


def _inside_line(text: str, old: str, new: str, lines: list[str]) -> Replaced:
    """A part of one line may be named too, when it occurs once."""
    part, by = old.removesuffix("\n"), new.removesuffix("\n").removesuffix("\r")
    if "\n" not in part and text.count(part) == 1:
        return Replaced(text.replace(part, by))
    if "\n" not in part and text.count(part) > 1:
        return Replaced(text, f"the SEARCH text occurs {text.count(part)} times; copy whole lines")
    near = difflib.get_close_matches(old.strip().split("\n")[0], lines, n=1, cutoff=0.5)
    hint = f"; the nearest line is {near[0].strip()[:200]!r}" if near else ""
    return Replaced(text, f"the SEARCH lines are not in the file{hint}")
