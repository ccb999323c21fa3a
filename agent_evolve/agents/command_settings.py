"""Options of the command agent, and its command line: checked once, filled in for each task."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool, field_validator

from ..errors import ConfigurationError, UnknownNameError
from ..workspace.names import unsafe
from .command_output import Format

Way = Literal["stream", "require", "opened", "none"]
"""How a run shows what it loaded; see ``CommandSettings.proof``."""

PLACEHOLDERS = ("workspace", "task", "task_file", "out", "id", "model")
_SURROGATE = re.compile("[\ud800-\udfff]")
_PLACEHOLDER = re.compile(r"\{\{([a-z_]+)\}\}|\{([a-z_]+)\}")


class CommandSettings(BaseModel):
    """Options of the command agent, under ``agent:`` in ``manifest.yaml``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    command: tuple[str, ...] | str
    """Program and arguments; a text is split as a shell would split it, but no shell runs it."""
    output: Format = "text"
    """How to read the answer: ``text`` (stdout), ``file`` (what it wrote to ``{out}``),
    ``claude-json`` (also the stream of ``stream-json``) or ``codex-jsonl``."""
    stdin: StrictBool = False
    """Give the task's text on standard input."""
    skills_to: str | None = None
    """Where skills are put in the task's directory, e.g. ``.claude/skills``."""
    instructions_to: str | None = None
    """The file that prompt, fragments and memory are written to, e.g. ``CLAUDE.md``."""
    proof: Way | None = None
    """How a run shows that it loaded the copies and nothing of the same name. ``stream``: a random
    marker in the copied skills, looked for in the output; a skill of the same name without it
    makes the run invalid. ``require``: invalid unless the marker is seen. ``opened``: invalid
    unless the file of the instructions was opened. ``none``: nothing is planted or looked for.
    The default is ``stream`` for ``claude-json`` and ``codex-jsonl``, else ``opened``."""
    memory_chars: Annotated[int, Field(ge=0)] = 6000
    """Characters of memory in the instructions; the newest entries that fit are taken."""
    model: str = ""
    """What ``{model}`` stands for, and the name in the ledger."""
    env: dict[str, str] = Field(default_factory=dict)
    """Variables added to the environment."""
    login_check: tuple[str, ...] = ()
    """A command that ends with exit code 0 when the program is logged in; ``doctor`` runs it."""
    sandbox: StrictBool = False
    """Run in the sandbox: no network, no login, nothing of the user's."""
    output_bytes: Annotated[int, Field(ge=1024)] = 8 * 1024**2
    """Bytes of output that are kept."""

    @field_validator("skills_to", "instructions_to")
    @classmethod
    def _stays_in_the_task_directory(cls, value: str | None) -> str | None:
        for part in value.rstrip("/").split("/") if value is not None else ():
            broken = "'~' is not expanded" if part == "~" else unsafe(part)
            if broken:
                raise ValueError(f"must be a path inside the task's directory; {broken}")
        return value


def parse_command(command: Sequence[str] | str) -> tuple[str, ...]:
    """The command as arguments. Raises ``ConfigurationError`` for an empty one, one that can't be
    split, or an unknown placeholder. JSON and the like may stand in braces, and ``{{name}}`` is
    the text ``{name}``."""
    try:
        parts = tuple(shlex.split(command) if isinstance(command, str) else command)
    except ValueError as error:
        raise ConfigurationError(f"agent option command: {error}: {command!r}") from error
    if not parts or not parts[0]:
        raise ConfigurationError(
            "agent option command is empty", fix='for example: [my-program, "{task}"]'
        )
    for part in parts:
        for _, name in _PLACEHOLDER.findall(part):
            if name and name not in PLACEHOLDERS:
                raise UnknownNameError(
                    "placeholder in agent option command",
                    name,
                    PLACEHOLDERS,
                    fix=f"write {{{{{name}}}}} where the text {{{name}}} itself is meant",
                )
    return parts


def sendable(text: str) -> str:
    """``text`` as UTF-8 can hold it: half of a surrogate pair becomes U+FFFD."""
    return _SURROGATE.sub("\ufffd", text)


def fill(argv: Sequence[str], values: Mapping[str, str]) -> list[str]:
    """Put values in the place of placeholders. What is put in is never looked at again, and each
    argument stays one. NUL, which no argument can hold, is left out; see ``sendable`` too."""

    def told(found: re.Match[str]) -> str:
        return f"{{{found[1]}}}" if found[1] else sendable(values[found[2]]).replace("\0", "")

    return [_PLACEHOLDER.sub(told, part) for part in argv]
