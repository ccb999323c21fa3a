"""What changed, counted from the files before and after."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...workspace.layers import count_changes
from .tree import PROMPT, Entry, Tree, as_blobs, draft_of, skill_names, skill_of


@dataclass(frozen=True, slots=True)
class Changes:
    """The difference of two trees, with the paths of each kind sorted."""

    before: Tree
    after: Tree
    added: tuple[str, ...]
    modified: tuple[str, ...]
    deleted: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.added or self.modified or self.deleted)

    @property
    def layers(self) -> dict[str, dict[str, int]]:
        """Counts of files added, modified and deleted per layer that changed."""
        before, after, _ = as_blobs(self.before, self.after)
        return count_changes(before, after)

    @property
    def skills(self) -> dict[str, list[str]]:
        """Names of skills added, modified (any of their files) and deleted."""
        old, new = skill_names(self.before), skill_names(self.after)
        touched = {skill_of(path) or "" for path in (*self.added, *self.modified, *self.deleted)}
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
        changed = {*self.skills["added"], *self.skills["modified"]}
        written = [path for path in (*self.added, *self.modified) if skill_of(path) in changed]
        lines = {line for path in written for line in _lines(self.after[path])}
        for path, entry in self.before.items():
            draft = draft_of(path)
            if draft is None:
                continue
            own = _lines(entry)
            merged = bool(own) and 2 * len(own & lines) >= len(own)
            if path in self.after:
                result["pending"].append(draft)
            elif draft in changed or merged:
                result["accepted"].append(draft)
            else:
                result["rejected"].append(draft)
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
        """One line such as ``prompts: 1 modified; skills: 2 added, 1 deleted``."""
        parts = []
        for layer, counts in self.layers.items():
            told = ", ".join(f"{number} {kind}" for kind, number in counts.items() if number)
            parts.append(f"{layer}: {told}")
        return "; ".join(parts) or "no change"


def compare(before: Tree, after: Tree) -> Changes:
    """What has to happen to ``before`` to become ``after``; content, kind and executable bit
    count, times don't."""
    both = before.keys() & after.keys()
    return Changes(
        before,
        after,
        added=tuple(sorted(after.keys() - before.keys())),
        modified=tuple(sorted(path for path in both if before[path] != after[path])),
        deleted=tuple(sorted(before.keys() - after.keys())),
    )


def _prompt_chars(tree: Tree) -> int:
    entry = tree.get(PROMPT)
    return len(entry.data.decode("utf-8", "replace")) if entry and entry.is_file else 0


def _lines(entry: Entry) -> set[str]:
    text = entry.text() or ""
    return {line.strip() for line in text.splitlines() if len(line.strip()) > 3}
