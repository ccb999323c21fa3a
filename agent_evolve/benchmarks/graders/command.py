"""Graders that are programs."""

from __future__ import annotations

import json
import math
import re
import shlex
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...errors import BenchmarkError, ConfigurationError, InfrastructureError
from ...execution import Limits
from ...execution.written import read_written
from ...runtime import Runtime
from ...types import Feedback
from ..contents import digest
from .base import Case, Grader, feedback

_PLACEHOLDERS = ("output", "expected", "input", "task", "workspace")
_IN_WORKSPACE = re.compile(r"(?<![\"'])\{workspace\}/([^\s\"'`;&|<>(){}$*?\[\]\\]+)")
_DETAIL = 1500


class CommandGrader(Grader):
    """Runs a program on each answer, in the sandbox.

        grader:
          name: command
          command: [python3, "{workspace}/check.py", "{output}", "{expected}"]

    It runs in an empty directory that holds ``output.txt``, ``input.txt``, ``expected.txt`` (or
    ``expected.json`` for what is not text) and ``task.json``; the placeholders stand for their
    paths. What the command names as ``{workspace}/...`` must be there. Exit code 0 is right, any
    other wrong, unless the program leaves ``reward.txt`` with a number, or ``reward.json`` with a
    number or ``{"score": 0.5, "detail": "..."}``. What it prints becomes the detail.

    Args:
        command: program and arguments, or one line for a shell.
        seconds: time-out; reaching it says nothing about the answer, so the task counts for
            nothing.
    """

    needs_expected = False
    needs_sandbox = True

    def __init__(
        self, command: str | Sequence[str], seconds: float = 60.0, root: Path = Path()
    ) -> None:
        parts = [command] if isinstance(command, str) else list(command)
        if not parts or not all(isinstance(part, str) and part for part in parts):
            raise ConfigurationError(
                f"grader command: {command!r} is no command",
                fix='for example: command: [python3, "{workspace}/check.py", "{output}"]',
            )
        number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
        if not number or not 0 < seconds < math.inf:
            raise ConfigurationError(f"grader command: seconds: {seconds!r} is no time")
        self._command, self._seconds = command, float(seconds)
        self._root = root.absolute()
        self._programs = _programs(command, self._root)

    def grade(self, case: Case, runtime: Runtime) -> Feedback:
        sandbox = runtime.require_sandbox("the command grader")
        with tempfile.TemporaryDirectory(prefix="agent-evolve-grade-") as directory:
            place = Path(directory)
            paths = _lay_out(place, case) | {"workspace": self._root}
            done = sandbox.run(
                self._filled(paths),
                cwd=place,
                writable=[place],
                readable=[self._root],
                limits=Limits(wall_seconds=self._seconds, cpu_seconds=self._seconds),
            )
            said = done.output.strip()[-_DETAIL:]
            if done.timed_out:
                raise InfrastructureError(
                    f"the grader did not end within {self._seconds:g} s: {said[-200:]}"
                )
            reward = _reward(place)
        if reward is not None:
            score, words = reward
            return feedback(score, words or said or f"reward {score:g}", case.expected)
        if done.exit_code in (126, 127):
            raise BenchmarkError(f"the grader could not be run: {said[-300:]}")
        detail = said or f"the grader's exit code is {done.exit_code}"
        return feedback(float(done.exit_code == 0), detail, case.expected, exit_code=done.exit_code)

    def _filled(self, paths: dict[str, Path]) -> str | list[str]:
        """The command with paths in the place of their names; quoted in a line for a shell."""
        if isinstance(self._command, str):
            return _fill(self._command, {k: shlex.quote(str(v)) for k, v in paths.items()})
        return [_fill(part, {k: str(v) for k, v in paths.items()}) for part in self._command]

    def fingerprint(self) -> Any:
        return ["command", self._command, {n: digest(p) for n, p in self._programs.items()}]


def _fill(text: str, values: dict[str, str]) -> str:
    for name, value in values.items():
        text = text.replace("{" + name + "}", value)
    return text


def _lay_out(place: Path, case: Case) -> dict[str, Path]:
    expected = place / "expected.txt"
    if case.expected is None or isinstance(case.expected, str):
        text = case.expected or ""
    else:
        expected, text = place / "expected.json", json.dumps(case.expected, ensure_ascii=False)
    about = {"id": case.task.id, "metadata": dict(case.task.metadata), "hidden": dict(case.hidden)}
    written = {
        "output": (place / "output.txt", case.output),
        "input": (place / "input.txt", case.task.input),
        "expected": (expected, text),
        "task": (place / "task.json", json.dumps(about, ensure_ascii=False, default=str)),
    }
    for path, content in written.values():
        path.write_text(content, encoding="utf-8", errors="replace", newline="")
    return {name: path for name, (path, _) in written.items()}


def _reward(place: Path) -> tuple[float, str] | None:
    told = read_written(place / "reward.json")
    if told is not None:
        try:
            value = json.loads(told)
        except ValueError as error:
            raise BenchmarkError(f"the grader's reward.json is not JSON: {error}") from error
        words = ""
        if isinstance(value, dict):
            words = str(value.get("detail", ""))
            value = value.get("score", value.get("reward"))
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise BenchmarkError(f"the grader's reward.json holds no number: {told[:200]}")
        return float(value), words
    told = read_written(place / "reward.txt")
    if told is None:
        return None
    try:
        return float(told.strip()), ""
    except ValueError as error:
        raise BenchmarkError(f"the grader's reward.txt is no number: {told[:100]!r}") from error


def _programs(command: str | Sequence[str], root: Path) -> dict[str, Path]:
    """The workspace's own files and directories that a command names.

    Raises ``ConfigurationError`` for one that is not there: a shell or interpreter would only exit
    with an error, and every answer would seem wrong.
    """
    found: dict[str, Path] = {}
    for part in [command] if isinstance(command, str) else command:
        whole = part.removeprefix("{workspace}/")
        if not isinstance(command, str) and whole != part and (root / whole).exists():
            names = [whole]  # an argument of its own may hold spaces
        else:
            names = [match[1] for match in _IN_WORKSPACE.finditer(part)]
        for name in names:
            path = root / name
            if not path.exists():
                raise ConfigurationError(
                    f"grader command: there is no {path}", fix=f"correct {part!r}, or write it"
                )
            if path != root:
                found["{workspace}/" + name] = path
    return found
