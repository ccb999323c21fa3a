"""The command agent: any program that can be typed, such as ``claude -p`` or ``codex exec``."""

from __future__ import annotations

import os
import shlex
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

from ..errors import ConfigurationError, InfrastructureError
from ..execution import Limits
from ..execution.process import ProcessResult, run_process
from ..execution.written import read_written
from ..types import Task, Trajectory
from . import prompting
from .base import BaseAgent
from .command_directory import TaskDirectory
from .command_output import Reading, read_output
from .command_proof import Finding, Proof, default_way
from .command_settings import CommandSettings, fill, parse_command, sendable
from .command_shadows import shadowing
from .settings import checked

_NESTED = ("CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT")
"""Variables by which a program would take itself to be running inside another of its kind."""
_LOGIN_CHECK_SECONDS = 30.0
_HOW_TO_UNSHADOW = (
    "move it away; for claude add '--setting-sources', 'project' to 'command:'; or name another "
    "HOME (CLAUDE_CONFIG_DIR, CODEX_HOME) under 'env:'; 'proof: none' under 'agent:' measures it "
    "all the same"
)
_HOW_TO_PROVE = (
    "see that the program reads what lies at skills_to and instructions_to, and no skill of the "
    "same name elsewhere; claude shows it with '--output-format stream-json --verbose'; "
    "'proof: none' under 'agent:' in manifest.yaml asks for no proof"
)


class CommandAgent(BaseAgent):
    """Runs a program for each task, in a throwaway directory of the task.

        agent:
          type: command
          command: [claude, -p, --output-format, json]
          stdin: true
          output: claude-json
          skills_to: .claude/skills
          instructions_to: CLAUDE.md

    The directory holds the task's files, the workspace's skills as real files where the program
    looks for them, and prompt, fragments and memory as its instructions. In the command
    ``{task}`` stands for the task's text, ``{task_file}`` for a file that holds it, ``{workspace}``
    for a copy of the workspace (without tasks, grader and history), ``{out}`` for the file of the
    answer, ``{id}`` and ``{model}`` for what they say. Each stays one argument, whatever it
    contains. Most programs take an argument that begins with a dash for an option: give such tasks
    with ``stdin: true`` or after ``--``.

    The program runs as the user, with the user's login, PATH and network, unless ``sandbox`` is
    set. All that it starts ends with it, at the latest after ``runtime.task_timeout`` seconds.

    Each run carries a random marker in its copies of the skills, taken out of all that is kept: it
    tells whether the program loaded these or others of the same name, which makes the run invalid
    (``InfrastructureError``). A personal skill of such a name does so before the program starts.
    ``Trajectory.conversation`` records ``proof`` (``seen``, ``opened``, ``not seen`` or ``cannot be
    seen``) and ``skills_loaded``; the option ``proof`` says what is asked for.

    Its own failure (exit code, no answer) scores 0.0; an outage, a rate limit or a time-out raises
    ``InfrastructureError``; a missing program or login raises ``ConfigurationError``. Cost and
    tokens that it reports enter the run's ledger, those of failed tasks too.
    Options: see ``CommandSettings``.
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
        self._argv = parse_command(self.settings.command)
        self.needs_sandbox = self.settings.sandbox
        if not self.settings.model and any("{model}" in part for part in self._argv):
            raise ConfigurationError(
                "agent option command has {model}, and no model is named for it",
                fix="add 'model: NAME' under 'agent:' in manifest.yaml",
            )

    def needs(self) -> list[tuple[str, bool, str]]:
        program = self._argv[0]
        if "{" in program:
            path = program.replace("{workspace}", str(self.workspace.root))
            found = "{" in path or os.access(path, os.X_OK)
        else:
            found = shutil.which(program, path=self._environment().get("PATH")) is not None
        rows = [(f"program {program}", found, f"{_how_to_have(program)}, or correct 'command:'")]
        if found and self.settings.login_check:
            fix = f"log in to {program}; asked with: {shlex.join(self.settings.login_check)}"
            rows.append((f"login of {program}", self._logged_in(), fix))
        return rows + self._shadows()

    def solve(self, task: Task) -> Trajectory:
        self._raise_if_shadowed()
        with tempfile.TemporaryDirectory(
            prefix="agent-evolve-task-", ignore_cleanup_errors=True
        ) as directory:
            place = TaskDirectory(Path(directory).resolve())
            proof = self._lay_out(task, place)
            ran = self._run(task, place)
            found = proof.judge(self.settings.output, ran.output, ran.stderr, self._environment())
            ran = replace(ran, output=proof.clean(ran.output), stderr=proof.clean(ran.stderr))
            reading = self._read(ran, place, proof)
        metrics = dict(reading.metrics) | {"seconds": ran.seconds}
        self._raise_if_not_its_own(ran, reading, metrics)
        error = reading.error or (None if reading.answer else "the program gave no answer")
        self._raise_if_not_the_measured(found, error, metrics)
        about = {"session": reading.session} if reading.session else {}
        about |= found.record() if found else {}
        return Trajectory(
            task.id,
            reading.answer,
            reading.steps,
            conversation=[about] if about else [],
            error=error,
            metrics=metrics,
        )

    def _lay_out(self, task: Task, place: TaskDirectory) -> Proof:
        settings, skills, instructions = self.settings, list[Path](), None
        place.prepare(task)
        if settings.skills_to:
            skills = place.copy_skills(self.workspace.root / "skills", settings.skills_to)
        if settings.instructions_to:
            instructions = place.write(settings.instructions_to, self._instructions())
        if any("{workspace}" in part for part in self._argv):
            place.copy_workspace(self.workspace)
        way = settings.proof or default_way(settings.output)
        return Proof.lay(way, place, skills, instructions)

    def _instructions(self) -> str:
        names = self.workspace.list_memory_categories()
        memories = {name: self.workspace.read_memories(name) for name in names}
        memory = prompting.memory_section(memories, self.settings.memory_chars)
        sections = [self.system_prompt, *self.fragments.values(), memory]
        return prompting.join_sections(sections) + "\n"

    def _environment(self) -> dict[str, str]:
        return {k: v for k, v in os.environ.items() if k not in _NESTED} | self.settings.env

    def _run(self, task: Task, place: TaskDirectory) -> ProcessResult:
        settings, seconds = self.settings, self.runtime.task_timeout
        argv = fill(
            self._argv,
            {
                "workspace": str(place.workspace),
                "task": task.input,
                "task_file": str(place.task_file),
                "out": str(place.out),
                "id": task.id,
                "model": settings.model,
            },
        )
        stdin = sendable(task.input).encode() if settings.stdin else b""
        if not settings.sandbox:
            return run_process(
                argv,
                cwd=place.task,
                env=self._environment(),
                stdin=stdin,
                wall_seconds=seconds,
                output_bytes=settings.output_bytes,
                separate_stderr=True,
            )
        ran = self.runtime.require_sandbox("the command agent").run(
            argv,
            cwd=place.task,
            writable=[place.task, place.out.parent],
            readable=[path for path in (place.workspace, place.task_file) if path.exists()],
            env=settings.env,
            stdin=stdin,
            limits=Limits(
                wall_seconds=seconds, cpu_seconds=seconds, output_bytes=settings.output_bytes
            ),
        )
        return ProcessResult(
            ran.exit_code, ran.output, ran.timed_out, ran.truncated, seconds=ran.seconds
        )

    def _read(self, ran: ProcessResult, place: TaskDirectory, proof: Proof) -> Reading:
        form = self.settings.output
        reading = read_output(form, ran.output, ran.stderr, ran.exit_code, ran.truncated)
        if form == "file" and not reading.error:
            written = read_written(place.out)
            if written is None:
                return Reading(error=f"nothing was written to {{out}} ({place.out.name})")
            return Reading(answer=proof.clean(written))
        return reading

    def _raise_if_not_its_own(
        self, ran: ProcessResult, reading: Reading, metrics: dict[str, float]
    ) -> None:
        """Raise when it was not the agent that failed."""
        program = self._argv[0]
        if ran.timed_out:
            last = f"; its last error: {reading.error}" if reading.kind == "outside" else ""
            raise InfrastructureError(
                f"{program} did not end within {self.runtime.task_timeout:g} seconds{last}",
                fix="raise task_timeout under 'config:' in manifest.yaml",
                metrics=metrics,
            )
        if ran.exit_code in (126, 127):
            said = (ran.stderr or ran.output).strip()[-300:]
            fix = f"{_how_to_have(program)}, or correct 'command:' under agent: in manifest.yaml"
            if self.settings.sandbox:
                fix += "; the sandbox shows the system's programs, not those of your home directory"
            if "Argument list too long" in said:
                fix = "give long tasks with 'stdin: true', or as {task_file} in place of {task}"
            raise ConfigurationError(f"{program} could not be run: {said}", fix=fix)
        if reading.kind == "person":
            raise ConfigurationError(
                f"{program}: {reading.error}",
                fix=f"log in to {program}, set its key or correct its model, and run again",
            )
        if reading.kind == "outside":
            raise InfrastructureError(f"{program}: {reading.error}", metrics=metrics)

    def _logged_in(self) -> bool:
        ran = run_process(
            self.settings.login_check,
            cwd=Path.home(),
            env=self._environment(),
            wall_seconds=_LOGIN_CHECK_SECONDS,
        )
        return ran.exit_code == 0 and not ran.timed_out

    def _shadows(self) -> list[tuple[str, bool, str]]:
        return [
            (f"skill {path.name} alone", False, f"move away {path}: it has the same name")
            for path in self._shadowing()
        ]

    def _shadowing(self) -> list[Path]:
        """Skills that the user's own of the same name would be mistaken for; see ``shadowing``."""
        to = self.settings.skills_to
        if to is None or self.settings.sandbox:
            return []
        names = {skill.name for skill in self.skills}
        return shadowing(names, to, self._argv, self._environment())

    def _raise_if_shadowed(self) -> None:
        """Before anything is spent, as the run would measure the user's skill."""
        found = [] if self.settings.proof == "none" else self._shadowing()
        if found:
            raise InfrastructureError(
                f"{self._argv[0]} would find the personal skill {found[0]} in the place of the "
                "workspace's skill of that name",
                fix=_HOW_TO_UNSHADOW,
            )

    def _raise_if_not_the_measured(
        self, found: Finding | None, error: str | None, metrics: dict[str, float]
    ) -> None:
        if found and found.wrong and (found.wrong_even_failed or not error):
            raise InfrastructureError(
                f"{self._argv[0]}: {found.wrong}", fix=_HOW_TO_PROVE, metrics=metrics
            )


def _how_to_have(program: str) -> str:
    if "/" in program and not program.startswith(("/", "{")):
        return (
            f"write {{workspace}}/{program.removeprefix('./')} for a program of the workspace, as "
            f"{program} is looked for among the task's files"
        )
    return f"install {program}"
