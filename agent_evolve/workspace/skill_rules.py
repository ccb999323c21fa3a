"""What a candidate may do to skills: a new or changed SKILL.md must be one, and keep its name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from . import names
from .links import LINK, Entries, Read, content
from .skill_file import FILE, MAX_DESCRIPTION, SkillFile
from .violation import Violation

REFUSED = frozenset(
    {
        "no-frontmatter",
        "unclosed-frontmatter",
        "link-as-text",
        "not-a-mapping",
        "bad-yaml",
        "duplicate-key",
        "no-description",
        "bad-description",
        "not-utf-8",
    }
)
"""Kinds of problems that a candidate may not bring in. A person's own skill may have them."""


def skill_violations(
    before: Entries, after: Entries, read: Read, changed: Sequence[str]
) -> Iterator[Violation]:
    """What is wrong with the skills that ``after`` has and ``before`` had not, or not like this."""
    if not changed:
        return
    old, new = _directories(before), _directories(after)
    # A link may give a skill another text without any change in the skill's own directory.
    linked = {path for path, (mode, _) in after.items() if mode == LINK}
    for name in sorted(_directories(changed) | _directories(linked)):
        if name not in old and name in new:
            yield from _new_directory(name, after, read)
        path = f"skills/{name}/{FILE}"
        was, now = content(path, before, read), content(path, after, read)
        if now is not None and now != was:
            yield from _changed(name, path, was, now)
        elif was is not None and now is None and path in after:
            yield Violation(path, "skill", "is a link that leads to no file now")


def _directories(paths: Entries | Sequence[str] | set[str]) -> set[str]:
    """Names of the skills that any of the paths lies in."""
    found = set()
    for path in paths:
        parts = path.split("/", 2)
        if len(parts) > 1 and parts[0] == "skills" and parts[1][:1] not in ("_", ".", ""):
            found.add(parts[1])
    return found


def _new_directory(name: str, after: Entries, read: Read) -> Iterator[Violation]:
    where = f"skills/{name}"
    if where in after and after[where][0] != LINK:
        return  # a file beside the skills, such as a README
    broken = names.unportable(name)
    if broken:
        yield Violation(where, "name", f"can't be a skill's name: {broken}")
    if content(f"{where}/{FILE}", after, read) is None:
        yield Violation(where, "skill", f"is a new skill without a {FILE}")


def _changed(name: str, path: str, was: bytes | None, now: bytes) -> Iterator[Violation]:
    after = SkillFile.parse(now)
    before = SkillFile.parse(was) if was is not None else None
    had = {problem.code for problem in before.problems} if before else set()
    for problem in after.problems:
        if problem.code in REFUSED and problem.code not in had:
            yield Violation(path, "skill", f"line {problem.line}: {problem.message}")
    text = (after.description or "").strip()
    kept = before is not None and before.description == after.description
    if len(text) > MAX_DESCRIPTION and not kept:
        message = f"description has {len(text)} characters; at most {MAX_DESCRIPTION} are allowed"
        yield Violation(path, "skill", message)
    if before is None or before.name == after.name:
        return
    if before.name is not None or not names.same(after.name or "", name):
        message = f"name was {before.name!r} and is now {after.name!r}; a skill keeps its name"
        yield Violation(path, "skill-name", message)
