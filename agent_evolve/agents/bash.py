"""The bash agent: a chat agent with a shell in a sandbox, in a throwaway directory of the task."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, ClassVar, cast

from ..execution import CommandResult, Limits
from ..execution.written import read_written
from ..llm import Tool
from ..llm.tool_loop import BoundTool
from ..types import Task
from ..workspace.names import inside
from .chat import NOTE_CHARS, ChatAgent
from .settings import BashSettings, ChatSettings
from .task_files import lay_out

ANSWER = "answer.txt"

BASH = Tool(
    "bash",
    "Run a bash command in the task's directory. Files stay between calls; the current directory "
    "and variables do not. No network.",
    {
        "type": "object",
        "properties": {"command": {"type": "string", "description": "what to run"}},
        "required": ["command"],
    },
)

_HOW_TO = f"""\
# Shell
The tool bash runs a command in the task's directory, which holds the files of the task. Give the \
answer as your last message, or write it to {ANSWER} in that directory."""

_place: ContextVar[Path] = ContextVar("agent_evolve_task_directory")


class BashAgent(ChatAgent):
    """A chat agent with a ``bash`` tool.

    Each task has a directory of its own, which holds copies of the task's files and is removed at
    the end. Commands run in the sandbox of the run: they can write that directory only, and read
    the workspace's ``tools/`` (at ``$TOOLS``, and on ``PATH``) and ``skills/`` (at ``$SKILLS``).
    Nothing they start outlives the command.

    A task's files are those of the directory ``metadata["directory"]``, and the texts of the
    mapping ``metadata["files"]`` (path inside the directory to text).

    The answer is the file ``answer.txt`` where the agent wrote one, else its last text.
    Options under ``agent:``: see ``BashSettings``.
    """

    needs_sandbox = True
    kind: ClassVar[str] = "the bash agent"
    settings_type: ClassVar[type[ChatSettings]] = BashSettings

    @contextmanager
    def _tools(self, task: Task) -> Iterator[list[BoundTool]]:
        self.runtime.require_sandbox(self.kind)
        with (
            super()._tools(task) as tools,
            tempfile.TemporaryDirectory(prefix="task-", ignore_cleanup_errors=True) as folder,
        ):
            place = Path(folder).resolve()
            lay_out(task, place)
            token = _place.set(place)
            try:
                yield [self._bash(place), *tools]
            finally:
                _place.reset(token)

    def _bash(self, place: Path) -> BoundTool:
        sandbox = self.runtime.require_sandbox(self.kind)
        shown = {name: self.workspace.root / name.lower() for name in ("TOOLS", "SKILLS")}
        shown = {name: path.resolve() for name, path in shown.items() if path.is_dir()}
        for path in shown.values():
            inside(self.workspace.root, path)
        prefix = 'export PATH="$TOOLS:$PATH"\n' if "TOOLS" in shown else ""

        def run(arguments: Mapping[str, Any]) -> str:
            command = str(arguments["command"])
            if "\0" in command:
                raise ValueError("a command can't hold a NUL character; it was not run")
            result = sandbox.run(
                prefix + command,
                cwd=place,
                writable=[place],
                readable=list(shown.values()),
                env={name: str(path) for name, path in shown.items()},
                limits=self._limits(),
            )
            return in_words(result)

        return BoundTool(BASH, run)

    def _limits(self) -> Limits:
        settings = cast(BashSettings, self.settings)
        return Limits(
            wall_seconds=settings.command_seconds,
            cpu_seconds=settings.command_seconds,
            memory_bytes=settings.memory_mb * 1024**2,
            processes=settings.processes,
            file_bytes=settings.file_mb * 1024**2,
            output_bytes=settings.output_chars,
        )

    def _sections(self) -> list[str]:
        entries = self.workspace.read_tool_registry()
        return [_HOW_TO, *([_described(entries)] if entries else [])]

    def _answer(self, task: Task, text: str) -> str:
        return read_written(_place.get() / ANSWER) or text

    def _output_chars(self) -> int:
        output_chars = cast(BashSettings, self.settings).output_chars
        return max(output_chars + NOTE_CHARS, super()._output_chars())


def in_words(result: CommandResult) -> str:
    """A command's output as a model reads it, with how it ended where that was not well."""
    output = result.output.rstrip("\n")
    if result.timed_out:
        return f"{output}\n[stopped after {result.seconds:.0f} seconds]".lstrip("\n")
    if result.exit_code:
        return f"{output}\n[exit code {result.exit_code}]".lstrip("\n")
    return output


def _described(entries: list[dict[str, Any]]) -> str:
    lines = ["# Tools", "Programs on PATH for bash, also in $TOOLS:"]
    for entry in entries:
        name = entry.get("file") or entry.get("name") or "(no name)"
        usage = f" Usage: {entry['usage']}" if entry.get("usage") else ""
        lines.append(f"- {name}: {' '.join(str(entry.get('description') or '').split())}{usage}")
    return "\n".join(lines)
