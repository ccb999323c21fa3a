"""The command agent: any program that can be typed, such as ``claude -p`` or ``codex exec``."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StrictBool

from ..errors import ConfigurationError, InfrastructureError, UnknownNameError
from ..execution import CommandResult, Limits
from ..execution.process import run_process
from ..execution.written import read_written
from ..types import Task, Trajectory
from . import prompting
from .base import BaseAgent
from .command_output import Format, Reading, read_output
from .settings import checked
from .task_files import lay_out

PLACEHOLDERS = ("workspace", "task", "task_file", "out", "id", "model")
_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")
_NESTED = ("CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT")
"""Variables by which a program would take itself to be running inside another of its kind."""


class CommandSettings(BaseModel):
    """Options of the command agent, under ``agent:`` in ``manifest.yaml``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    command: tuple[str, ...] | str
    """Program and arguments; a text is split as a shell would split it, but no shell runs it."""
    output: Format = "text"
    """How to read the answer: ``text`` (stdout), ``file`` (what it wrote to ``{out}``),
    ``claude-json`` or ``codex-jsonl``."""
    stdin: StrictBool = False
    """Give the task's text on standard input."""
    skills_to: str | None = None
    """Where skills are put in the task's directory, e.g. ``.claude/skills``."""
    instructions_to: str | None = None
    """The file that prompt, fragments and memory are written to, e.g. ``CLAUDE.md``."""
    memory_chars: Annotated[int, Field(ge=0)] = 6000
    """Characters of memory in the instructions; the newest entries that fit are taken."""
    model: str = ""
    """What ``{model}`` stands for, and the name in the ledger."""
    env: dict[str, str] = Field(default_factory=dict)
    """Variables added to the environment."""
    sandbox: StrictBool = False
    """Run in the sandbox: no network, no login, nothing of the user's."""
    output_bytes: Annotated[int, Field(ge=1024)] = 8 * 1024**2
    """Bytes of output that are kept."""


class CommandAgent(BaseAgent):
    """Runs a program for each task, in a throwaway directory of the task.

        agent:
          type: command
          command: [claude, -p, "{task}", --output-format, json]
          output: claude-json
          skills_to: .claude/skills
          instructions_to: CLAUDE.md

    The directory holds the task's files, the workspace's skills as real files where the program
    looks for them, and prompt, fragments and memory as its instructions. In the command
    ``{task}`` stands for the task's text, ``{task_file}`` for a file that holds it, ``{workspace}``
    for a copy of the workspace, ``{out}`` for the file of the answer, ``{id}`` and ``{model}`` for
    what they say. Each stays one argument, whatever it contains.

    The program runs as the user, with the user's login, PATH and network, unless ``sandbox`` is
    set. All that it starts ends with it, at the latest after ``runtime.task_timeout`` seconds.

    Its own failure (exit code, no answer) scores 0.0; an outage or a rate limit raises
    ``InfrastructureError``; a missing program or login raises ``ConfigurationError``. Cost and
    tokens that it reports enter the run's ledger. Options: see ``CommandSettings``.
    """

    reports_cost = True

    def reload_from_fs(self) -> None:
        super().reload_from_fs()
        if "command" not in self.options:
            raise ConfigurationError(
                "agent type 'command' names no command",
                fix='add to agent: in manifest.yaml, e.g. command: [my-program, "{task}"]',
            )
        self.settings = checked(CommandSettings, self.options, "the command agent")
        self._argv = _argv(self.settings.command)
        self.needs_sandbox = self.settings.sandbox

    def needs(self) -> list[tuple[str, bool, str]]:
        program = self._argv[0]
        found = "{" in program or shutil.which(program) is not None
        return [(f"program {program}", found, f"install {program}, or correct 'command:'")]

    def solve(self, task: Task) -> Trajectory:
        with tempfile.TemporaryDirectory(
            prefix="agent-evolve-task-", ignore_cleanup_errors=True
        ) as directory:
            places = _Places(Path(directory).resolve())
            self._lay_out(task, places)
            argv = self._filled(task, places)
            done = self._run(argv, task, places)
            reading = self._read(done, places)
        metrics = dict(reading.metrics) | {"seconds": done.seconds}
        if reading.kind == "login":
            raise ConfigurationError(
                f"{self._argv[0]}: {reading.error}",
                fix=f"log in to {self._argv[0]}, or set its key, and run again",
            )
        if reading.kind == "outside":
            raise InfrastructureError(f"{self._argv[0]}: {reading.error}")
        error = reading.error or (None if reading.answer else "the program gave no answer")
        return Trajectory(task.id, reading.answer, reading.steps, error=error, metrics=metrics)

    def _lay_out(self, task: Task, places: _Places) -> None:
        for place in (places.task, places.out.parent):
            place.mkdir()
        lay_out(task, places.task)
        places.task_file.write_text(task.input, encoding="utf-8", errors="replace")
        if self.settings.skills_to:
            self._copy_skills(places.task / self.settings.skills_to)
        if self.settings.instructions_to:
            path = places.task / self.settings.instructions_to
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self._instructions(), encoding="utf-8")
        if any("{workspace}" in part for part in self._argv):
            shutil.copytree(self.workspace.root, places.workspace, symlinks=True)

    def _copy_skills(self, target: Path) -> None:
        """Skills with all that belongs to them, except drafts; links stay links inside of them."""
        source = self.workspace.root / "skills"
        if not source.is_dir():
            return
        target.mkdir(parents=True, exist_ok=True)
        for skill in sorted(source.iterdir()):
            if skill.name == "_drafts" or skill.name.startswith("."):
                continue
            if skill.is_dir():
                shutil.copytree(skill, target / skill.name, symlinks=True, dirs_exist_ok=True)

    def _instructions(self) -> str:
        names = self.workspace.list_memory_categories()
        memories = {name: self.workspace.read_memories(name) for name in names}
        memory = prompting.memory_section(memories, self.settings.memory_chars)
        sections = [self.system_prompt, *self.fragments.values(), memory]
        return prompting.readable(prompting.join_sections(sections)) + "\n"

    def _filled(self, task: Task, places: _Places) -> list[str]:
        values = {
            "workspace": str(places.workspace),
            "task": task.input.replace("\0", ""),
            "task_file": str(places.task_file),
            "out": str(places.out),
            "id": task.id.replace("\0", ""),
            "model": self.settings.model,
        }
        return [_PLACEHOLDER.sub(lambda m: values[m[1]], part) for part in self._argv]

    def _run(self, argv: list[str], task: Task, places: _Places) -> _Done:
        stdin = task.input.encode("utf-8", "replace") if self.settings.stdin else b""
        seconds = self.runtime.task_timeout
        if self.settings.sandbox:
            result = self.runtime.require_sandbox("the command agent").run(
                argv,
                cwd=places.task,
                writable=[places.task, places.out.parent],
                readable=[path for path in (places.workspace, places.task_file) if path.exists()],
                env=self.settings.env,
                stdin=stdin,
                limits=Limits(
                    wall_seconds=seconds,
                    cpu_seconds=seconds,
                    output_bytes=self.settings.output_bytes,
                ),
            )
            done = _Done(result, result.output, "", result.seconds)
        else:
            ran = run_process(
                argv,
                cwd=places.task,
                env={k: v for k, v in os.environ.items() if k not in _NESTED} | self.settings.env,
                stdin=stdin,
                wall_seconds=seconds,
                output_bytes=self.settings.output_bytes,
                separate_stderr=True,
            )
            done = _Done(ran, ran.output, ran.stderr, ran.seconds)
        if done.result.timed_out:
            raise InfrastructureError(
                f"{argv[0]} did not end within {seconds:g} seconds",
                fix="raise task_timeout under 'config:' in manifest.yaml",
            )
        if done.result.exit_code in (126, 127):
            raise ConfigurationError(
                f"{argv[0]} could not be run: {(done.err or done.out).strip()[-300:]}",
                fix=f"install {argv[0]}, or correct 'command:' under agent: in manifest.yaml",
            )
        return done

    def _read(self, done: _Done, places: _Places) -> Reading:
        code, truncated = done.result.exit_code, done.result.truncated
        reading = read_output(self.settings.output, done.out, done.err, code, truncated)
        if self.settings.output == "file" and not reading.error:
            written = read_written(places.out)
            if written is None:
                return Reading(error=f"nothing was written to {{out}} ({places.out.name})")
            return Reading(answer=written)
        return reading


@dataclass(frozen=True, slots=True)
class _Places:
    """Where things lie for one task."""

    base: Path

    @property
    def task(self) -> Path:
        """The program's current directory."""
        return self.base / "task"

    @property
    def workspace(self) -> Path:
        return self.base / "workspace"

    @property
    def task_file(self) -> Path:
        return self.base / "task.txt"

    @property
    def out(self) -> Path:
        return self.base / "out" / "answer.txt"


@dataclass(frozen=True, slots=True)
class _Done:
    """How the program ended and what it printed."""

    result: CommandResult
    out: str
    err: str
    seconds: float


def _argv(command: tuple[str, ...] | str) -> tuple[str, ...]:
    """The command as arguments. Raises ``ConfigurationError`` for an empty one, one that can't be
    split, or an unknown placeholder. JSON and the like may stand in braces."""
    try:
        parts = tuple(shlex.split(command)) if isinstance(command, str) else command
    except ValueError as error:
        raise ConfigurationError(f"agent option command: {error}: {command!r}") from error
    if not parts or not parts[0]:
        raise ConfigurationError(
            "agent option command is empty", fix='for example: [my-program, "{task}"]'
        )
    for part in parts:
        for name in _PLACEHOLDER.findall(part):
            if name not in PLACEHOLDERS:
                raise UnknownNameError("placeholder in agent option command", name, PLACEHOLDERS)
    return parts
