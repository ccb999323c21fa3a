"""The user's own skills that a program would take for the workspace's, of the same name.

Claude Code prefers a personal skill to a project's; Codex lists both, and the model picks one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from ..workspace.skill_file import SkillFile


def shadowing(
    names: Collection[str], skills_to: str, argv: Sequence[str], environment: Mapping[str, str]
) -> list[Path]:
    """Personal skills whose directory or ``name`` is one of ``names``, sorted.

    Claude Code leaves them alone with ``--setting-sources project``; Codex has no such option.
    """
    if _leaves_out_the_users(argv):
        return []
    return sorted(
        skill
        for place in _personal_places(skills_to, environment)
        for skill in _directories(place)
        if skill.name in names or _said_name(skill) in names
    )


def _personal_places(skills_to: str, environment: Mapping[str, str]) -> list[Path]:
    """Where the program that looks into ``skills_to`` of a project looks for the user's."""
    home = Path(environment.get("HOME") or Path.home())
    first = skills_to.split("/")[0]
    if first == ".claude":
        return [Path(environment.get("CLAUDE_CONFIG_DIR") or home / ".claude") / "skills"]
    if first in (".agents", ".codex"):
        codex = Path(environment.get("CODEX_HOME") or home / ".codex")
        return [home / ".agents" / "skills", codex / "skills"]
    return [home / skills_to]


def _directories(place: Path) -> list[Path]:
    try:
        return [path for path in place.iterdir() if path.is_dir()]
    except OSError:
        return []


def _said_name(skill: Path) -> str | None:
    try:
        return SkillFile.parse((skill / "SKILL.md").read_bytes()).name
    except OSError:
        return None


def _leaves_out_the_users(argv: Sequence[str]) -> bool:
    """Whether Claude Code is told not to load the user's own skills."""
    for part, following in zip(argv, (*argv[1:], ""), strict=True):
        option, joined, value = part.partition("=")
        if option == "--setting-sources":
            return "user" not in (value if joined else following).split(",")
    return False
