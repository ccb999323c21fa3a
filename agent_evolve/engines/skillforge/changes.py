"""What changed, counted from the files before and after."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

TEXT_BYTES = 1024**2
"""Files up to this size keep their bytes in a tree, so that they can be checked and compared."""

PROMPT = "prompts/system.md"
DRAFTS = "skills/_drafts/"


@dataclass(frozen=True, slots=True)
class Entry:
    """A file as found. ``data`` is ``None`` for files above ``TEXT_BYTES``, and for what is neither
    a file nor a link; a link's ``data`` is its target."""

    kind: Literal["file", "link", "special"]
    digest: str
    size: int
    executable: bool = False
    data: bytes | None = None

    @classmethod
    def of(cls, data: bytes, *, executable: bool = False) -> Entry:
        digest = hashlib.sha256(data).hexdigest()
        return cls("file", digest, len(data), executable, data if len(data) <= TEXT_BYTES else None)

    def text(self) -> str | None:
        """The file's text, or ``None`` when it is large, a link, or not UTF-8."""
        if self.kind != "file" or self.data is None:
            return None
        try:
            return self.data.decode("utf-8")
        except UnicodeDecodeError:
            return None


Tree = Mapping[str, Entry]
"""Relative path with forward slashes to what lies there; empty directories don't count."""


def scan(root: Path, layers: Iterable[str]) -> dict[str, Entry]:
    """The files under the layers of a workspace, in path order. Links are never followed, pipes
    and devices never opened; a directory that was made unreadable is made readable again."""
    found: dict[str, Entry] = {}
    for layer in layers:
        _scan(root / layer, layer, found)
    return dict(sorted(found.items()))


def _scan(path: Path, name: str, found: dict[str, Entry]) -> None:
    try:
        info = path.lstat()
    except FileNotFoundError:
        return
    mode = info.st_mode
    if stat.S_ISDIR(mode):
        if mode & stat.S_IRWXU != stat.S_IRWXU and _owned(info):
            path.chmod(stat.S_IMODE(mode) | stat.S_IRWXU)
        for child in path.iterdir():
            _scan(child, f"{name}/{child.name}", found)
    elif stat.S_ISLNK(mode):
        target = os.fsencode(path.readlink())
        found[name] = Entry("link", hashlib.sha256(target).hexdigest(), len(target), data=target)
    elif stat.S_ISREG(mode):
        if not mode & stat.S_IRUSR and _owned(info):
            path.chmod(stat.S_IMODE(mode) | stat.S_IRUSR | stat.S_IWUSR)
        found[name] = Entry.of(path.read_bytes(), executable=bool(mode & stat.S_IXUSR))
    else:
        found[name] = Entry("special", "", 0)


def measure(root: Path, layers: Iterable[str]) -> tuple[int, int]:
    """Number and bytes of all files under the layers, from the directory alone."""
    files = size = 0
    for layer in layers:
        for folder, _, names in os.walk(root / layer):
            for name in names:
                files += 1
                size += os.lstat(os.path.join(folder, name)).st_size  # noqa: PTH118
    return files, size


def _owned(info: os.stat_result) -> bool:
    return info.st_uid == os.getuid() or os.getuid() == 0


@dataclass(frozen=True, slots=True)
class Changes:
    """The difference of two trees."""

    before: Tree
    after: Tree
    added: tuple[str, ...]
    modified: tuple[str, ...]
    deleted: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.added or self.modified or self.deleted)

    @property
    def layers(self) -> dict[str, dict[str, int]]:
        """Counts of files per layer that changed."""
        counts: dict[str, dict[str, int]] = {}
        for kind, paths in self._kinds():
            for path in paths:
                layer = counts.setdefault(
                    path.split("/", 1)[0], {"added": 0, "modified": 0, "deleted": 0}
                )
                layer[kind] += 1
        return dict(sorted(counts.items()))

    @property
    def skills(self) -> dict[str, list[str]]:
        """Names of skills added, modified (any of their files) and deleted."""
        old, new = skill_names(self.before), skill_names(self.after)
        touched = {name for _, paths in self._kinds() for path in paths if (name := skill_of(path))}
        return {
            "added": sorted(new - old),
            "modified": sorted(touched & old & new),
            "deleted": sorted(old - new),
        }

    @property
    def prompt_chars(self) -> dict[str, int]:
        """Length of the system prompt before and after, in characters."""
        return {"before": _prompt_chars(self.before), "after": _prompt_chars(self.after)}

    @property
    def drafts(self) -> dict[str, list[str]]:
        """What became of the drafts: ``accepted`` (gone, and a skill that changed has its name or
        at least half of its lines), ``rejected`` (gone otherwise), ``pending`` (still there)."""
        result: dict[str, list[str]] = {"accepted": [], "rejected": [], "pending": []}
        skills = self.skills
        changed = {*skills["added"], *skills["modified"]}
        lines = {
            line
            for path in (*self.added, *self.modified)
            if skill_of(path) in changed
            for line in _lines(self.after[path])
        }
        for path, entry in self.before.items():
            if (draft := draft_of(path)) is None:
                continue
            if path in self.after:
                result["pending"].append(draft)
                continue
            own = _lines(entry)
            merged = bool(own) and 2 * len(own & lines) >= len(own)
            result["accepted" if draft in changed or merged else "rejected"].append(draft)
        return result

    def as_metadata(self) -> dict[str, Any]:
        """All of it as JSON, for ``StepResult.metadata``."""
        return {
            "layers": self.layers,
            "skills": self.skills,
            "prompt_chars": self.prompt_chars,
            "drafts": self.drafts,
        }

    def in_words(self) -> str:
        """One line such as ``prompts: 1 modified; skills: 2 added (dates, totals)``."""
        if not self:
            return "no change"
        parts = []
        for layer, counts in self.layers.items():
            told = ", ".join(f"{number} {kind}" for kind, number in counts.items() if number)
            parts.append(f"{layer}: {told}")
        return "; ".join(parts)

    def _kinds(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        return (("added", self.added), ("modified", self.modified), ("deleted", self.deleted))


def compare(before: Tree, after: Tree) -> Changes:
    """What has to happen to ``before`` to become ``after``; content, kind and executable bit
    count, times don't."""
    both = before.keys() & after.keys()
    return Changes(
        before,
        after,
        added=tuple(sorted(after.keys() - before.keys())),
        modified=tuple(sorted(path for path in both if _differ(before[path], after[path]))),
        deleted=tuple(sorted(before.keys() - after.keys())),
    )


def skill_of(path: str) -> str | None:
    """The skill a path belongs to, ``None`` for drafts and other layers."""
    parts = path.split("/")
    if len(parts) < 3 or parts[0] != "skills" or parts[1].startswith("_"):
        return None
    return parts[1]


def draft_of(path: str) -> str | None:
    """The name of the draft that lies at a path."""
    if path.startswith(DRAFTS) and path.endswith(".md") and path.count("/") == 2:
        return path[len(DRAFTS) : -len(".md")]
    return None


def skill_names(tree: Tree) -> set[str]:
    """Directories under ``skills/`` that hold a SKILL.md."""
    return {
        name
        for path in tree
        if path.endswith("/SKILL.md") and path.count("/") == 2 and (name := skill_of(path))
    }


def _differ(a: Entry, b: Entry) -> bool:
    return (a.kind, a.digest, a.executable) != (b.kind, b.digest, b.executable)


def _prompt_chars(tree: Tree) -> int:
    entry = tree.get(PROMPT)
    if entry is None or entry.kind != "file":
        return 0
    return len(entry.data.decode("utf-8", "replace")) if entry.data is not None else entry.size


def _lines(entry: Entry) -> set[str]:
    text = entry.text() or ""
    return {line.strip() for line in text.splitlines() if len(line.strip()) > 3}
