"""Whether a program loaded what is measured, told from its output or from the files it opened."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from .command_directory import TaskDirectory
from .command_loads import Shown, can_show, shown_skills
from .command_output import Format
from .command_settings import Way
from .marker import new_marker, plant, without

State = Literal["seen", "opened", "not seen", "cannot be seen"]

_NOT_SHOWN = (
    "its output does not show that it loaded a skill of the workspace, as 'proof: require' asks"
)
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")


def default_way(form: Format) -> Way:
    """``stream`` for programs whose output tells of skills, ``opened`` for the others."""
    return "stream" if form in ("claude-json", "codex-jsonl") else "opened"


@dataclass(frozen=True, slots=True)
class Finding:
    """What is known after a run.

    ``skills`` are the loaded ones of the workspace, by name. ``wrong`` says in a sentence why the
    run measures something else; ``wrong_even_failed`` whether that holds for a program that failed
    by itself too.
    """

    state: State
    skills: tuple[str, ...] = ()
    wrong: str = ""
    wrong_even_failed: bool = True

    def record(self) -> dict[str, Any]:
        """``proof`` and, where any was seen, ``skills_loaded``."""
        loaded = {"skills_loaded": list(self.skills)} if self.skills else {}
        return {"proof": self.state} | loaded


@dataclass(frozen=True, slots=True)
class Proof:
    """What was laid out for one run, so that its loading can be told.

    Attributes:
        marker: what was planted in the copied skills; ``""`` when nothing was.
        skills: the copies of SKILL.md.
        instructions: the file of the instructions, where there is one.
        opening_shows: whether this file system tells that a file was opened.
    """

    way: Way
    place: TaskDirectory
    marker: str
    skills: tuple[Path, ...]
    instructions: Path | None
    opening_shows: bool

    @classmethod
    def lay(
        cls, way: Way, place: TaskDirectory, skills: Iterable[Path], instructions: Path | None
    ) -> Proof:
        """Plant the marker in the copies, or make their opening visible."""
        skills = tuple(skills)
        marker = new_marker() if way in ("stream", "require") and skills else ""
        if marker:
            for path in skills:
                _rewrite(path, plant(path.read_bytes(), marker))
        shows = way == "opened" and _opening_shows(place.base)
        if shows:
            for path in (*skills, *([instructions] if instructions else [])):
                _unopened(path)
        return cls(way, place, marker, skills, instructions, shows)

    def clean(self, text: str) -> str:
        """The text without the marker."""
        return without(self.marker, text)

    def judge(
        self, form: Format, out: str, err: str, environment: Mapping[str, str]
    ) -> Finding | None:
        """What the run's output and files say; ``None`` when there was nothing to look for."""
        if self.way == "none" or not (self.skills or self.instructions):
            return None
        if self.way == "opened":
            return self._judge_opened()
        found = self._judge_shown(form, out, err, environment)
        if self.way == "require" and self.skills and found.state != "seen" and not found.wrong:
            return Finding(found.state, wrong=_NOT_SHOWN)
        return found

    def _judge_shown(
        self, form: Format, out: str, err: str, environment: Mapping[str, str]
    ) -> Finding:
        own = {path.parent.name: path for path in self.skills}
        loaded: set[str] = set()
        for shown in shown_skills(form, out):
            if shown.name not in own:
                continue
            path = self._resolved(shown, environment)
            if self.marker in shown.text or path == own[shown.name].resolve():
                loaded.add(shown.name)
            elif path is None or not path.is_relative_to(self.place.base):
                return Finding("not seen", wrong=_other(shown))
        if loaded or (self.marker and self.marker in out + err):
            return Finding("seen", tuple(sorted(loaded)))
        return Finding("not seen" if self.skills and can_show(form, out) else "cannot be seen")

    def _resolved(self, shown: Shown, environment: Mapping[str, str]) -> Path | None:
        """The file that the output names, as the program's shell would take it."""
        if not shown.path:
            return None
        text = _VARIABLE.sub(lambda m: environment.get(m[1] or m[2], m[0]), shown.path)
        if text.startswith("~/"):
            text = environment.get("HOME", "~") + text[1:]
        return (self.place.task / text).resolve()

    def _judge_opened(self) -> Finding:
        if not self.opening_shows:
            return Finding("cannot be seen")
        loaded = tuple(sorted(path.parent.name for path in self.skills if _was_opened(path)))
        if self.instructions and not _was_opened(self.instructions):
            why = f"it never opened {self.instructions.name}, which holds the workspace's prompt"
            return Finding("not seen", loaded, why, wrong_even_failed=False)
        return Finding("opened" if loaded or self.instructions else "not seen", loaded)


def _other(shown: Shown) -> str:
    where = f" ({shown.path})" if shown.path else ""
    return (
        f"the skill {shown.name!r} that it loaded{where} isn't the one measured: it does not hold "
        "the marker planted in the copy. A personal skill of that name may shadow it"
    )


def _rewrite(path: Path, data: bytes) -> None:
    mode = stat.S_IMODE(path.stat().st_mode)
    path.chmod(mode | stat.S_IWUSR)
    path.write_bytes(data)
    path.chmod(mode)


def _unopened(path: Path) -> None:
    """Set the time of the last reading to 1970: ``relatime`` renews one that is older than the
    last writing."""
    os.utime(path, ns=(0, path.stat().st_mtime_ns))


def _was_opened(path: Path) -> bool:
    """A file that the program removed or replaced counts as opened."""
    try:
        return path.stat().st_atime_ns != 0
    except OSError:
        return True


def _opening_shows(directory: Path) -> bool:
    """Tried with a file: ``noatime`` and some network file systems don't tell."""
    probe = directory / "probe"
    probe.write_bytes(b"x")
    _unopened(probe)
    untouched = not _was_opened(probe)
    probe.read_bytes()
    shows = untouched and _was_opened(probe)
    probe.unlink()
    return shows
