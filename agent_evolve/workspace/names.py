"""Names that become files, and paths that stay where they belong.

An engine, a model or a manifest gives names; each becomes one path component below a layer. A name
is *safe* when it can't mean any other place. A *new* name must also be one that every file system
can hold; what lies on disk already is read under whatever name it has.
"""

from __future__ import annotations

import os
import unicodedata
from pathlib import Path

from ..errors import UnsafePathError

MAX_NAME = 64
"""Characters of a new name; the limit of the Agent Skills specification."""

_MAX_BYTES = 240
"""File systems take 255; an ending such as ``.jsonl`` must fit as well."""
_WINDOWS = {"con", "prn", "aux", "nul", "conin$", "conout$"}
_WINDOWS |= {f"{port}{n}" for port in ("com", "lpt") for n in "123456789¹²³"}
_WINDOWS_CHARS = '<>:"|?*'
PRIVATE = frozenset({".git", "evolution"})
"""Top-level directories that hold the history itself; nothing an engine does may reach them."""


def unsafe(name: str) -> str | None:
    """The rule that ``name`` breaks as a single path component, or ``None`` when it is safe."""
    if not name:
        return "it is empty"
    if name in (".", ".."):
        return "it means another directory"
    if "/" in name or "\\" in name:
        return "it holds a path separator"
    if any(unicodedata.category(char) == "Cc" for char in name):
        return "it holds a NUL or control character"
    if name.casefold() == ".git":
        return "it is git's own directory"
    try:
        size = len(os.fsencode(name))
    except UnicodeEncodeError:
        return "it holds half a character (a lone surrogate)"
    if size > _MAX_BYTES:
        return f"it has {len(name)} characters, too many for a file name"
    return None


def unportable(name: str, limit: int = MAX_NAME) -> str | None:
    """The rule that ``name`` breaks as a new file or directory, or ``None`` when it may be made."""
    broken = unsafe(name)
    if broken:
        return broken
    if len(name) > limit:
        return f"it has {len(name)} characters; at most {limit} are allowed"
    if name[-1] in ". ":
        return "it ends in a dot or a space, which Windows drops"
    if name[0] in "- ":
        return "it starts with a dash or a space, which commands read as an option"
    if name.split(".")[0].rstrip().casefold() in _WINDOWS:
        return "it is a device name on Windows"
    if any(char in _WINDOWS_CHARS for char in name):
        return f"it holds one of {_WINDOWS_CHARS}, which Windows refuses"
    if any(unicodedata.category(char) in ("Cs", "Cf", "Co", "Zl", "Zp") for char in name):
        return "it holds an invisible or undefined character"
    return None


def check(kind: str, name: str, *, new: bool = False) -> str:
    """``name`` itself, or ``UnsafePathError`` saying what it was for and which rule it breaks.

    ``new`` asks the stricter question: may a file of this name be made?
    """
    if not isinstance(name, str):
        raise UnsafePathError(f"{kind} name must be text, not {type(name).__name__}")
    broken = unportable(name) if new else unsafe(name)
    if broken is None and new and name[0] == ".":
        broken = "names starting with a dot are hidden"
    if broken:
        raise UnsafePathError(
            f"{kind} name {_shown(name)} can't be used: {broken}",
            fix="use lower-case letters, digits and hyphens, such as 'verify-totals'",
        )
    return name


def same(a: str, b: str) -> bool:
    """Whether two names are one, however their accents are composed (macOS decomposes them)."""
    return a == b or unicodedata.normalize("NFC", a) == unicodedata.normalize("NFC", b)


def inside(root: Path, path: Path) -> Path:
    """``path`` with every link followed, or ``UnsafePathError`` when that leaves ``root`` or
    enters the history kept beside the layers.

    Parts that do not exist yet are fine: they can't be links.
    """
    top = os.path.realpath(root)
    real = os.path.realpath(path)
    if real != top and not real.startswith(top.rstrip(os.sep) + os.sep):
        raise UnsafePathError(
            f"{path} leads to {real}, outside of the workspace {root}",
            fix="replace the link by a copy of what it points to",
        )
    first = Path(os.path.relpath(real, top)).parts[0] if real != top else ""
    if first.casefold() in PRIVATE:
        raise UnsafePathError(
            f"{path} leads into {first}/, which holds the history of the workspace",
            fix="remove the link",
        )
    return Path(real)


def _shown(name: str) -> str:
    return repr(name) if len(name) <= 80 else f"{name[:60]!r}... ({len(name)} characters)"
