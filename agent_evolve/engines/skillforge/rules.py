"""What every changed tree must keep to, whichever way it was edited.

The loop refuses a candidate that breaks the workspace's rules. The same rules are asked here while
the model can still mend what it did, and with them the engine's own: files that would be there
and be of no use, and limits of growth.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

from ...workspace.layers import violations
from ...workspace.left_out import is_secret
from ...workspace.skill_file import SkillFile
from .changes import Changes
from .tree import PROMPT, Entry, Tree, as_blobs, draft_of, skill_names, skill_of

SKILL_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")

_HINTS = {
    "skill": "; a SKILL.md starts with the lines ---, name: NAME, description: WHAT AND WHEN, ---",
    "locked": "; put back what was there",
}
"""What a model is told beside some of the workspace's rules, by the rule's word."""


@dataclass(frozen=True, slots=True)
class Rules:
    """Which layers may change, what in them may not, and how large things may grow."""

    layers: tuple[str, ...]
    locked: tuple[str, ...] = ()
    max_skills: int = 12
    max_skill_chars: int = 12_000
    max_growth_bytes: int = 32 * 1024**2


def problems(changes: Changes, rules: Rules) -> tuple[str, ...]:
    """Why the changed tree can't be used, in sentences that name the file; empty when it can.

    What was wrong before and was not made worse is nobody's fault now and is not told.
    """
    before, after, read = as_blobs(changes.before, changes.after)
    broken = violations(
        before, after, read=read, evolvable_layers=rules.layers, locked=rules.locked
    )
    found = [f"{violation}{_HINTS.get(violation.rule, '')}" for violation in broken]
    found += _files(changes, rules)
    found += _library(changes, rules)
    found += _growth(changes, rules)
    return tuple(dict.fromkeys(found))


def _files(changes: Changes, rules: Rules) -> Iterator[str]:
    for path in (*changes.added, *changes.modified):
        problem = _problem(path, changes.after[path])
        if problem and problem != _problem(path, changes.before.get(path)):
            yield f"{path}: {problem}"
        if path.endswith("/SKILL.md"):
            yield from _length(path, changes, rules.max_skill_chars)
    for path in changes.added:
        if any(is_secret(part) for part in path.split("/")):
            yield f"{path}: names like this are kept for keys and passwords; use another"
    was, now = changes.before.get(PROMPT), changes.after.get(PROMPT)
    if was and was.data.strip() and not (now and now.data.strip()):
        yield f"{PROMPT}: the system prompt is gone; write one"


def _problem(path: str, entry: Entry | None) -> str | None:
    """What makes one file useless, or ``None``."""
    if entry is None or not entry.is_file:
        return None
    text = entry.text()
    if text is None:
        return "it is not UTF-8 text" if path.endswith((".md", ".yaml", ".jsonl")) else None
    if path.endswith("/SKILL.md") and (name := skill_of(path)):
        return _skill_problem(name, SkillFile.parse(entry.data))
    if path.startswith("memory/") and path.endswith(".jsonl"):
        return _memory_problem(text)
    if path.startswith("tools/") and path.endswith(".py"):
        return _python_problem(path, entry.data)
    return None


def _skill_problem(name: str, skill: SkillFile) -> str | None:
    if skill.frontmatter is not None and skill.name != name:
        return f"its frontmatter must say 'name: {name}', like its directory"
    if not skill.body_text.strip():
        return "it has no text after the frontmatter"
    return None


def _memory_problem(text: str) -> str | None:
    for number, line in enumerate(text.split("\n"), 1):
        try:
            fits = not line.strip() or isinstance(json.loads(line), dict)
        except (ValueError, RecursionError):
            fits = False
        if not fits:
            return f"line {number} is not a JSON object"
    return None


def _python_problem(path: str, data: bytes) -> str | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(data, path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return f"it is not Python: {error}"
    return None


def _length(path: str, changes: Changes, limit: int) -> Iterator[str]:
    old = changes.before.get(path)
    allowed = max(limit, len((old and old.text()) or ""))
    size = len(changes.after[path].text() or "")
    if size > allowed:
        yield f"{path}: it has {size:,} characters; at most {allowed:,} are allowed"


def _library(changes: Changes, rules: Rules) -> Iterator[str]:
    """The skills as a whole: their names, their number, and nothing left of one that is gone."""
    old, new = skill_names(changes.before), skill_names(changes.after)
    for name in sorted(new - old):
        if not SKILL_NAME.fullmatch(name):
            yield f"skills/{name[:80]}: a name holds lower-case letters, digits, single hyphens"
    for name in sorted((old - new) & _directories(changes.after)):
        yield f"skills/{name}: its SKILL.md is gone but other files are left; delete them too"
    allowed = max(rules.max_skills, len(old))
    if len(new) > allowed:
        yield f"there are {len(new)} skills; at most {allowed} are allowed: merge or delete some"
    for path in changes.added:
        if path.startswith("skills/") and path.count("/") == 1:
            yield f"{path}: a skill is a directory: skills/NAME/SKILL.md"
        elif path.startswith("skills/_") and draft_of(path) is None:
            yield f"{path}: names that start with _ are kept for drafts"


def _growth(changes: Changes, rules: Rules) -> Iterator[str]:
    grown = _size(changes.after) - _size(changes.before)
    if grown > rules.max_growth_bytes:
        yield f"the files grew by {grown:,} bytes; at most {rules.max_growth_bytes:,} are allowed"


def _size(tree: Tree) -> int:
    return sum(len(entry.data) for entry in tree.values())


def _directories(tree: Tree) -> set[str]:
    return {name for path in tree if (name := skill_of(path))}
