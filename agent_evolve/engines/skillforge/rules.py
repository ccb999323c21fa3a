"""What every changed tree must keep to, whichever way it was edited."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

from ...workspace.skill_file import MAX_DESCRIPTION, SkillFile
from .changes import PROMPT, Changes, Entry, Tree, draft_of, skill_names, skill_of

SKILL_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


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
    return tuple(dict.fromkeys(_problems(changes, rules)))


def _problems(changes: Changes, rules: Rules) -> Iterator[str]:
    for path in (*changes.added, *changes.modified, *changes.deleted):
        if path.split("/", 1)[0] not in rules.layers:
            yield f"{path}: only files below {', '.join(rules.layers)} may change"
        elif lock := locked_by(path, rules.locked):
            yield f"{path}: it is locked ({lock}); put back what was there"
    for path in (*changes.added, *changes.modified):
        found = file_problem(path, changes.after[path], changes.before.get(path), rules)
        if found and found != _before(path, changes, rules):
            yield f"{path}: {found}"
    yield from _prompt(changes)
    yield from _library(changes, rules)
    grown = sum(e.size for e in changes.after.values()) - sum(
        e.size for e in changes.before.values()
    )
    if grown > rules.max_growth_bytes:
        yield f"the files grew by {grown:,} bytes; at most {rules.max_growth_bytes:,} are allowed"


def _before(path: str, changes: Changes, rules: Rules) -> str | None:
    entry = changes.before.get(path)
    return file_problem(path, entry, entry, rules) if entry else None


def locked_by(path: str, locked: tuple[str, ...]) -> str | None:
    """The lock that covers a whole path. Locks on a heading are left to the comparison that the
    loop makes of every candidate."""
    for lock in locked:
        bare = lock.rstrip("/")
        if "#" not in bare and (path == bare or path.startswith(f"{bare}/")):
            return lock
    return None


def file_problem(path: str, entry: Entry, before: Entry | None, rules: Rules) -> str | None:
    """What is wrong with one file, or ``None``."""
    if entry.kind != "file":
        return f"it is a {'link' if entry.kind == 'link' else 'special file'}; write a plain file"
    if any(ord(char) < 32 for char in path) or "\\" in path:
        return "its name holds a control character or a backslash"
    if path.endswith("/SKILL.md") and skill_of(path):
        return _skill_problem(path, entry, before, rules)
    if path.startswith("memory/") and path.endswith(".jsonl"):
        return _memory_problem(entry)
    if path.startswith("tools/") and path.endswith(".py"):
        return _python_problem(path, entry)
    if path.endswith((".md", ".yaml")) and entry.data is not None and entry.text() is None:
        return "it is not UTF-8 text"
    return None


def _skill_problem(path: str, entry: Entry, before: Entry | None, rules: Rules) -> str | None:
    text = entry.text()
    if text is None:
        return "it is not UTF-8 text of a reasonable size"
    old = before.text() if before else None
    allowed = max(rules.max_skill_chars, len(old or ""))
    if len(text) > allowed:
        return f"it has {len(text):,} characters; at most {allowed:,} are allowed"
    skill = SkillFile.parse(text.encode("utf-8"))
    if skill.frontmatter is None:
        return "it must start with frontmatter: --- / name: ... / description: ... / ---"
    for found in skill.problems:
        if found.severity != "note":
            return f"line {found.line}: {found.message}" + (f"; {found.fix}" if found.fix else "")
    if not skill.body_text.strip():
        return "it has no text after the frontmatter"
    directory = path.split("/")[1]
    if skill.name != directory:
        return f"its frontmatter must say 'name: {directory}', like its directory"
    if len(skill.description or "") > MAX_DESCRIPTION:
        return f"its description is too long; at most {MAX_DESCRIPTION:,} characters are allowed"
    return None


def _memory_problem(entry: Entry) -> str | None:
    text = entry.text()
    if text is None:
        return None if entry.data is None else "it is not UTF-8 text"
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip() and not _is_object(line):
            return f"line {number} is not a JSON object"
    return None


def _is_object(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _python_problem(path: str, entry: Entry) -> str | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(entry.data or b"", path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return f"it is not Python: {error}"
    return None


def _prompt(changes: Changes) -> Iterator[str]:
    was = (changes.before.get(PROMPT) or Entry.of(b"")).data or b""
    now = changes.after.get(PROMPT)
    if was.strip() and (now is None or (now.kind == "file" and now.size == 0)):
        yield f"{PROMPT}: the system prompt is gone; write one"


def _library(changes: Changes, rules: Rules) -> Iterator[str]:
    old, new = skill_names(changes.before), skill_names(changes.after)
    for name in sorted(new - old):
        if not SKILL_NAME.fullmatch(name) or len(name) > 64:
            yield (
                f"skills/{name[:80]}: a name has at most 64 characters: lower-case letters, "
                "digits, single hyphens between them"
            )
    for name in sorted(_directories(changes.after) - new - _directories(changes.before)):
        yield f"skills/{name}: a skill needs a SKILL.md"
    for name in sorted((old - new) & _directories(changes.after)):
        yield f"skills/{name}: its SKILL.md is gone but other files are left; delete them too"
    if len(new) > max(rules.max_skills, len(old)):
        yield (
            f"there are {len(new)} skills; at most {max(rules.max_skills, len(old))} are allowed, "
            "so merge or delete some"
        )
    for path in changes.added:
        if path.startswith("skills/") and path.count("/") == 1:
            yield f"{path}: a skill is a directory: skills/NAME/SKILL.md"
        elif path.startswith("skills/_") and draft_of(path) is None:
            yield f"{path}: names that start with _ are kept for drafts"


def _directories(tree: Tree) -> set[str]:
    return {name for path in tree if (name := skill_of(path))}
