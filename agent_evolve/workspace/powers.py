"""What a candidate newly gives an agent the power to do, which needs a person's yes however good
its score: run, fetch, hook, use more tools, carry a script, a link or a binary, name a new URL.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import PurePosixPath

from . import power_header, power_text
from .links import Entries, Read
from .power_text import Found

__all__ = ["KINDS", "Power", "contents", "needing_approval", "new_powers"]

KINDS: Mapping[str, str] = {
    "executes": "newly executes",
    "fetches": "newly fetches",
    "hooks": "newly hooks",
    "allowed-tools": "widens allowed-tools by",
    "restraint": "no longer has",
    "runs-as": "newly runs with",
    "tool": "newly offers the tool",
    "script": "is a new or changed script:",
    "link": "is a new link to",
    "binary": "is a new binary file:",
    "url": "newly names the URL",
}
"""Every kind of power, and the middle of a sentence about it."""

_SHOWN = 120
_EXECUTABLE, _LINK = "100755", "120000"
_RUNNABLE = "executable"
_SCRIPT_NAMES = re.compile(
    r".*\.(py[wc]?|sh|bash|zsh|fish|ksh|[mc]?[jt]s|[jt]sx|rb|pl|pm|php|lua|r|jl|ps[md]?1|bat|cmd|vbs"
    r"|wsf|exe|dll|so|dylib|com|msi|jar|class|wasm|go|rs|c|swift|kts|groovy|scpt|applescript|awk"
    r"|tcl|ipynb|whl|desktop)|(gnu)?makefile|justfile|dockerfile|rakefile"
)
_HOOK_FOLDERS = frozenset({"hooks", ".githooks", ".git", ".husky", ".claude", ".codex", ".github"})
_HOOK_NAMES = re.compile(
    r"(settings[\w.-]*\.json|\.?mcp\.json|hooks\.(json|ya?ml|toml)|plugin\.json|package\.json"
    r"|\.gitattributes|\.gitmodules|\.gitconfig|\.pre-commit-config\.yaml|\.envrc|\.bashrc"
    r"|\.profile|.*\.pth|sitecustomize\.py)"
)
_SCOPED = frozenset({"allowed-tools", "hooks", "runs-as", "tool", "link"})
"""Kinds that mean something only where they stand: a tool of one skill is none of another's."""

Files = Mapping[str, tuple[str, bytes]]
"""POSIX path relative to the workspace, to git's mode as text (``"100644"``) and the content."""


@dataclass(frozen=True, slots=True)
class Power:
    """Attributes:
    path: POSIX path relative to the workspace.
    line: counted from 1; 0 for the file as a whole.
    kind: one of ``KINDS``.
    text: what it newly does, at most 120 characters.
    """

    path: str
    line: int
    kind: str
    text: str

    def describe(self) -> str:
        """A sentence: ``skills/x/SKILL.md:7 newly fetches curl https://...``."""
        place = f"{self.path}:{self.line}" if self.line else self.path
        return f"{place} {KINDS[self.kind]} {self.text}"

    __str__ = describe


def new_powers(before: Files, after: Files) -> tuple[Power, ...]:
    """What ``after`` can do and ``before`` can't, by path, line, kind and text.

    Texts are compared as sets over the whole tree, so that a moved line or a renamed file is not
    new. What a header grants is compared with the same file, or with files that were removed where
    the file is new. A script whose bytes changed is a new one, whatever stands in it.
    """
    changed = {path: file for path, file in after.items() if before.get(path) != file}
    found = {path: list(_found(path, file)) for path, file in changed.items()}
    lost = list(_lost(before, changed))
    if not lost and not any(found.values()):
        return ()
    known: dict[str, set[tuple[str, str]]] = {
        path: {(one.kind, one.key) for one in _found(path, file)} for path, file in before.items()
    }
    everywhere = set().union(*known.values())
    removed = set().union(*(keys for path, keys in known.items() if path not in after))
    powers = set(lost)
    for path, ones in found.items():
        here = known.get(path, removed)
        for one in ones:
            replaced = one.kind == "script" and path in before
            scoped = one.kind in _SCOPED or one.key == _RUNNABLE or replaced
            if not _has(here if scoped else everywhere, one):
                powers.add(_power(path, one))
    return tuple(sorted(powers, key=lambda p: (p.path, p.line, p.kind, p.text)))


def needing_approval(powers: Iterable[Power], allowed: Collection[str]) -> tuple[Power, ...]:
    """The powers whose kind is not among those that the manifest's ``allowed_powers`` lists."""
    return tuple(power for power in powers if power.kind not in allowed)


def contents(entries: Entries, read: Read) -> dict[str, tuple[str, bytes]]:
    """A tree as :func:`new_powers` takes it."""
    return {path: (f"{mode:06o}", read(blob)) for path, (mode, blob) in entries.items()}


def _found(path: str, file: tuple[str, bytes]) -> Iterator[Found]:
    """All that a file can do."""
    mode, data = file
    if mode == _LINK:
        target = power_text.decode(data)
        yield Found(0, "link", f"{path} {target}", " ".join(power_text.lines(target)))
        return
    digest = sha256(data).hexdigest()
    script = _is_script(path, file)
    if script:
        suffix = PurePosixPath(path).suffix.casefold()
        yield Found(0, "script", f"{suffix} {digest}", _first_line(data))
    if mode == _EXECUTABLE:
        yield Found(0, "script", _RUNNABLE, "may now be run as a program")
    if _is_hook(path):
        yield Found(0, "hooks", digest, _first_line(data))
    if path.casefold().startswith("tools/registry.y"):
        yield from power_header.offered(data)
    text = _is_text(data)
    if not text:
        yield Found(0, "binary", digest, f"{len(data):,} bytes that are not UTF-8")
    if text or b"\0" not in data:
        yield from power_header.granted(data)
        yield from power_text.powers(data, script=script)


def _lost(before: Files, changed: Files) -> Iterator[Power]:
    """Restraints of a header that its next version does not have."""
    for path, (_, data) in changed.items():
        if path in before:
            kept = {one.key for one in power_header.restraints(data)}
            for one in power_header.restraints(before[path][1]):
                if one.key not in kept:
                    yield _power(path, one._replace(line=0))


def _has(known: set[tuple[str, str]], one: Found) -> bool:
    if one.kind == "allowed-tools":
        return any(power_header.covers(key, one.key) for kind, key in known if kind == one.kind)
    return (one.kind, one.key) in known


def _power(path: str, one: Found) -> Power:
    text = " ".join(one.text.split())
    short = text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."
    return Power(path, one.line, one.kind, short)


def _is_script(path: str, file: tuple[str, bytes]) -> bool:
    named = _SCRIPT_NAMES.fullmatch(path.casefold().rpartition("/")[2]) is not None
    return named or file[0] == _EXECUTABLE or file[1].removeprefix(b"\xef\xbb\xbf")[:2] == b"#!"


def _is_hook(path: str) -> bool:
    *folders, name = path.casefold().split("/")
    return not _HOOK_FOLDERS.isdisjoint(folders) or bool(_HOOK_NAMES.fullmatch(name))


def _is_text(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _first_line(data: bytes) -> str:
    shown = (line.strip() for line in power_text.lines(power_text.decode(data[:4000])))
    return next((line for line in shown if line), "empty")
