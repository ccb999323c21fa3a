"""A skill against the Agent Skills specification (https://agentskills.io/specification).

Nothing here stops a skill from being used: other readers may refuse it, so a person should know.
"""

from __future__ import annotations

import re
import unicodedata

from . import line_merge
from .names import same
from .problem import Problem, Severity
from .skill_file import MAX_DESCRIPTION, SkillFile

MAX_NAME = 64
MAX_COMPATIBILITY = 500
ADVISED_LINES = 500
KEYS = frozenset({"name", "description", "license", "compatibility", "metadata", "allowed-tools"})
_ASCII_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_ZERO_WIDTH = re.compile(
    "[\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff\U000e0000-\U000e007f]"
)


def check(skill: SkillFile, directory: str) -> list[Problem]:
    """What the specification, or a client that follows it, says about a skill in ``directory``;
    the file's own problems come first."""
    problems = list(skill.problems)
    if skill.bom:
        message = "starts with a byte order mark; several readers then see no frontmatter"
        problems.append(_problem(1, message, "save the file as UTF-8 without BOM", "bom"))
    if skill.frontmatter is None:
        return problems
    problems += _name(skill, directory)
    problems += _description(skill)
    others = [key for key in skill.keys if key not in KEYS]
    if others:
        message = f"keys outside the specification: {', '.join(others)}"
        fix = "fine for most clients; claude.ai and the Skills API refuse them"
        line = _line_of(skill, others[0])
        problems.append(_problem(line, message, fix, "other-keys", "note"))
    lines = len(line_merge.split_lines(skill.data))
    if lines > ADVISED_LINES:
        message = f"{lines} lines; at most {ADVISED_LINES} are advised"
        fix = "move details into references/"
        problems.append(_problem(1, message, fix, "long-file", "note"))
    return problems + _invisible(skill)


def _name(skill: SkillFile, directory: str) -> list[Problem]:
    if skill.name is None or not skill.name.strip():
        fix = f"optional here; other readers need a line 'name: {directory}'"
        return [_problem(1, "no name; the directory's is used", fix, "no-name")]
    name, problems = skill.name, []
    line = _line_of(skill, "name")
    rule = _name_rule(name)
    if rule:
        fix = "other files may refer to it, so rename it with care"
        problems.append(_problem(line, f"name {name!r} {rule}", fix, "bad-name"))
    elif not _ASCII_NAME.fullmatch(name):
        message = f"name {name!r} has letters outside a-z; claude.ai and the Skills API refuse it"
        problems.append(_problem(line, message, "", "non-ascii-name", "note"))
    if not same(name, directory):
        message = f"name {name!r} differs from the directory {directory!r}, which is what counts"
        problems.append(_problem(line, message, "", "name-differs"))
    return problems


def _name_rule(name: str) -> str | None:
    """The rule a name breaks; letters are those the reference validator takes."""
    if len(name) > MAX_NAME:
        return f"has {len(name)} characters; at most {MAX_NAME} are allowed"
    text = unicodedata.normalize("NFKC", name)
    if text != text.lower():
        return "must be lower case"
    if not all(char.isalnum() or char == "-" for char in text):
        return "may hold only letters, digits and hyphens"
    if text.startswith("-") or text.endswith("-") or "--" in text:
        return "has a hyphen first, last or doubled"
    return None


def _description(skill: SkillFile) -> list[Problem]:
    text = (skill.description or "").strip()
    line, problems = _line_of(skill, "description"), []
    if len(text) > MAX_DESCRIPTION:
        message = f"description has {len(text)} characters; at most {MAX_DESCRIPTION} are allowed"
        problems.append(_problem(line, message, "shorten it", "long-description"))
    if "<" in text or ">" in text:
        message = "description holds < or >, which claude.ai and the Skills API refuse"
        problems.append(_problem(line, message, "write it without them", "angle-brackets"))
    return problems


def _invisible(skill: SkillFile) -> list[Problem]:
    problems = []
    text = line_merge.decode(skill.data[3 if skill.bom else 0 :])
    for number, row in enumerate(text.split("\n"), 1):
        for found in _ZERO_WIDTH.finditer(row):
            if found[0] == "\u200d":
                continue  # joins emoji
            message = f"invisible character U+{ord(found[0]):04X}; text may not be what it seems"
            fix = "remove it unless it is meant"
            column = found.start() + 1
            problems.append(Problem(number, column, message, fix, "note", "invisible"))
    return problems


def _line_of(skill: SkillFile, key: str) -> int:
    start, end = skill.frontmatter or (0, 0)
    place = re.search(rb"(?m)^" + re.escape(key.encode()) + rb"[ \t]*:", skill.data[start:end])
    return skill.data.count(b"\n", 0, start + place.start()) + 1 if place else 1


def _problem(
    line: int, message: str, fix: str, code: str, severity: Severity = "warning"
) -> Problem:
    return Problem(line, 1, message, fix, severity, code)
