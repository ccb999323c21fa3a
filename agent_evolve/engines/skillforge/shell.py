"""Editing with a bash tool, in the sandbox.

The model sees the workspace's layers, the observations and a copy of the layers as they were, and
nothing else of the workspace: not the manifest, which names the grader, and not the history.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import ModelError, UnsafePathError
from ...execution import CommandResult, Sandbox
from ...llm import BoundTool, Message, Model, Request, Tool, ToolLoopResult, run_tools
from . import wording
from .budget import clip
from .changes import compare
from .context import Context
from .fence import Fence
from .observed import Case, patterns, tally, whole
from .options import Settings
from .outcome import Outcome, asked_again
from .rules import Rules, problems
from .tree import Tree, measure, scan

REPAIR_TURNS = 6
"""Further calls of the model when the files it left can't be used."""

MAX_FILES = 10_000
"""Files in all layers together; a loop that makes files ends here."""

BASH = Tool(
    "bash",
    wording.BASH_DESCRIPTION,
    {
        "type": "object",
        "properties": {"command": {"type": "string", "description": "the command line"}},
        "required": ["command"],
    },
)


def edit_in_shell(
    model: Model,
    sandbox: Sandbox,
    context: Context,
    before: Tree,
    root: Path,
    all_layers: Sequence[str],
    rules: Rules,
    settings: Settings,
) -> Outcome:
    """Let the model edit the files under ``root`` until it is done or its turns are.

    Raises ``ModelError`` when the files it leaves can't be used and it does not mend them, or when
    they grow past their limit; ``UnsafePathError`` for a layer that is a link; and what the model
    or the sandbox raises.
    """
    turns = settings.options.max_turns
    with _every_layer(root, rules.layers), tempfile.TemporaryDirectory() as folder:
        shell = _Shell(sandbox, root, Path(folder), all_layers, context.fence, rules, settings)
        write_observations(shell.observations, context.cases)
        for layer in rules.layers:
            shutil.copytree(root / layer, shell.original / layer, symlinks=True)
        shell.grown_from = measure(root, rules.layers)[1]
        first = result = _run(model, context, [Message("user", context.prompt)], shell, turns)
        told = problems(compare(before, scan(root, all_layers)), rules)
        if told and first.stop != "refusal":
            messages = asked_again(first.messages, wording.repair_in_shell(told))
            result = _run(model, context, messages, shell, REPAIR_TURNS)
    after = scan(root, all_layers)
    left = problems(compare(before, after), rules)
    if left:
        raise ModelError(
            f"{model.name} left files that can't be used: " + "; ".join(left[:5]),
            fix="the next cycle starts from the files as they were; see the trace of this one",
        )
    counts = {
        "turns": result.turns + (first.turns if result is not first else 0),
        "commands": shell.commands,
        "repaired": told,
    }
    return Outcome(after, result.text or first.text, _ended(first, settings), counts)


def write_observations(folder: Path, cases: Sequence[Case]) -> None:
    """One Markdown file for each observation, and a README.md that lists them."""
    folder.mkdir(parents=True)
    index = [tally(cases), "", "Failure patterns:"]
    index += [f"- {count} x {pattern}" for pattern, count in patterns(cases)] or ["- none"]
    index += ["", "Files:"]
    for case in cases:
        (folder / case.file_name).write_text(whole(case), encoding="utf-8", errors="replace")
        index.append(f"- {case.file_name}: {case.label}")
    (folder / "README.md").write_text("\n".join(index) + "\n", encoding="utf-8")


@dataclass(slots=True)
class _Shell:
    """What the tool does: one command in the sandbox, and what the model is told about it."""

    sandbox: Sandbox
    root: Path
    folder: Path
    all_layers: Sequence[str]
    fence: Fence
    rules: Rules
    settings: Settings
    commands: int = 0
    grown_from: int = 0

    @property
    def observations(self) -> Path:
        return self.folder / "observations"

    @property
    def original(self) -> Path:
        return self.folder / "original"

    def run(self, arguments: Mapping[str, Any]) -> str:
        writable = _plain(self.root, self.rules.layers)
        shown = [self.root / layer for layer in self.all_layers]
        readable = [path for path in shown if path.is_dir() and not path.is_symlink()]
        command = str(arguments["command"]).replace("\0", "")
        self.commands += 1
        result = self.sandbox.run(
            # It starts in the workspace, of which only the layers are there.
            f"cd ..\n{command}",
            cwd=writable[0],
            writable=writable,
            readable=[*readable, self.observations, self.original],
            env={name: str(path) for name, path in self._named().items()},
            limits=self.settings.limits,
        )
        self._check_growth()
        return self._told(result)

    def _told(self, result: CommandResult) -> str:
        # The names of throwaway folders differ on every run; the prompt should not.
        output = result.output
        for name, path in self._named().items():
            output = output.replace(str(path), f"${name}")
        output = clip(output, self.settings.options.command_output_chars)
        end = f"exit code {result.exit_code}"
        if result.timed_out:
            end = f"stopped after {self.settings.limits.wall_seconds:g} seconds"
        if result.truncated:
            end += f"; {result.truncated:,} bytes of output were cut out"
        return f"{end}\n{self.fence.wrap(output, 'output')}" if output else f"{end}, no output"

    def _named(self) -> dict[str, Path]:
        return {
            "OBSERVATIONS": self.observations,
            "ORIGINAL": self.original,
            "WORKSPACE": self.root,
        }

    def _check_growth(self) -> None:
        files, size = measure(self.root, self.rules.layers)
        most = self.grown_from + self.rules.max_growth_bytes
        if size > most or files > MAX_FILES:
            raise ModelError(
                f"the engine's commands filled the workspace: {files:,} files, {size:,} bytes; "
                f"at most {MAX_FILES:,} and {most:,} are allowed",
                fix="raise the engine option max_growth_mb if that was meant",
            )


def _run(
    model: Model, context: Context, messages: Sequence[Message], shell: _Shell, turns: int
) -> ToolLoopResult:
    settings = shell.settings
    request = Request(
        messages=tuple(messages),
        system=context.system,
        temperature=settings.temperature,
        max_tokens=settings.max_tokens,
    )
    # Output is clipped by the shell already, fence and all; the loop must not cut the fence.
    most = settings.options.command_output_chars + 1_000
    return run_tools(model, request, [BoundTool(BASH, shell.run)], max_turns=turns, max_output=most)


def _ended(result: ToolLoopResult, settings: Settings) -> str:
    limit = settings.options.max_turns
    if result.stop == "end" and not (result.turns == limit and result.steps):
        return ""
    return {
        "end": f"it reached the limit of {limit} turns",
        "max_turns": f"it reached the limit of {limit} turns",
        "max_tokens": f"its answer was cut at {settings.max_tokens} tokens",
        "refusal": "the model refused",
        "repetition": "it repeated one command",
    }.get(result.stop, f"it ended early ({result.stop})")


@contextmanager
def _every_layer(root: Path, layers: Sequence[str]) -> Iterator[None]:
    """Makes the layers that are missing, so that they can be written; removes them if empty."""
    made = [root / layer for layer in layers if not (root / layer).is_symlink()]
    made = [folder for folder in made if not folder.exists()]
    for folder in made:
        folder.mkdir()
    _plain(root, layers)
    try:
        yield
    finally:
        for folder in made:
            if not any(folder.iterdir()):
                folder.rmdir()


def _plain(root: Path, layers: Sequence[str]) -> list[Path]:
    """The folders that may be written. A link would open what it points to, so none may be one."""
    folders = [root / layer for layer in layers]
    for folder in folders:
        if folder.is_symlink() or not folder.is_dir():
            raise UnsafePathError(
                f"the layer {folder.name} is not a plain directory of the workspace",
                fix=f"replace {folder.name} by a copy of what it points to",
            )
    return folders
