"""Editing with a bash tool, in the sandbox."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import ModelError, UnsafePathError
from ...execution import CommandResult, Sandbox
from ...llm import BoundTool, Message, Model, Request, Tool, ToolLoopResult, run_tools
from . import wording
from .budget import clip
from .changes import compare, measure, scan
from .context import Context
from .fence import Fence
from .observed import Case, patterns, tally, whole
from .options import Settings
from .outcome import Outcome
from .rules import Rules, problems

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
    root: Path,
    all_layers: tuple[str, ...],
    rules: Rules,
    settings: Settings,
) -> Outcome:
    """Let the model edit the files under ``root`` until it is done or its turns are.

    Raises ``ModelError`` when the files it leaves can't be used and it does not mend them, or when
    they grow past their limit; ``UnsafePathError`` for a layer that is a link; and what the model
    or the sandbox raises.
    """
    before = scan(root, all_layers)
    made = _make_layers(root, rules.layers)
    _layer_folders(root, rules.layers)
    try:
        with tempfile.TemporaryDirectory(prefix="skillforge-") as folder:
            places = {name: Path(folder) / name.lower() for name in ("OBSERVATIONS", "ORIGINAL")}
            write_observations(places["OBSERVATIONS"], context.cases)
            _copy(root, rules.layers, places["ORIGINAL"])
            shell = _Shell(sandbox, root, places, context.fence, rules, settings)
            shell.grown_from = sum(entry.size for entry in before.values())
            result = _run(model, context, [Message("user", context.prompt)], shell, settings)
            found = problems(compare(before, scan(root, all_layers)), rules)
            first = result
            if found and result.stop != "refusal":
                word = Message("user", wording.repair_in_shell(found))
                result = _run(
                    model, context, [*result.messages, word], shell, settings, REPAIR_TURNS
                )
    finally:
        _remove_layers(made)
    after = scan(root, all_layers)
    left = problems(compare(before, after), rules)
    if left:
        raise ModelError(
            f"{model.name} left files that can't be used: " + "; ".join(left[:5]),
            fix="the next cycle starts from the files as they were; see the trace of this one",
        )
    counts = {
        "turns": result.turns if result is first else first.turns + result.turns,
        "commands": shell.commands,
        "repaired": found,
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
    places: Mapping[str, Path]
    fence: Fence
    rules: Rules
    settings: Settings
    commands: int = 0
    grown_from: int = 0

    def run(self, arguments: Mapping[str, Any]) -> str:
        writable = _layer_folders(self.root, self.rules.layers)
        self.commands += 1
        result = self.sandbox.run(
            str(arguments["command"]).replace("\0", ""),
            cwd=self.root,
            writable=writable,
            readable=[self.root, *self.places.values()],
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
        return {**self.places, "WORKSPACE": self.root}

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
    model: Model,
    context: Context,
    messages: Sequence[Message],
    shell: _Shell,
    settings: Settings,
    max_turns: int | None = None,
) -> ToolLoopResult:
    request = Request(
        messages=tuple(messages),
        system=context.system,
        temperature=settings.temperature,
        max_tokens=settings.max_tokens,
    )
    return run_tools(
        model,
        request,
        [BoundTool(BASH, shell.run)],
        max_turns=max_turns or settings.options.max_turns,
        max_output=settings.options.command_output_chars + 1_000,
    )


def _ended(result: ToolLoopResult, settings: Settings) -> str:
    if result.stop == "end":
        limit = settings.options.max_turns
        reached = result.turns == limit and bool(result.steps)
        return f"it reached the limit of {limit} turns" if reached else ""
    return {
        "max_turns": f"it reached the limit of {settings.options.max_turns} turns",
        "max_tokens": f"its answer was cut at {settings.max_tokens} tokens",
        "refusal": "the model refused",
        "repetition": "it repeated one command",
    }.get(result.stop, f"it ended early ({result.stop})")


def _layer_folders(root: Path, layers: tuple[str, ...]) -> list[Path]:
    """The folders that may be written. A link would open what it points to, so none may be one."""
    folders = [root / layer for layer in layers]
    for folder in folders:
        if folder.is_symlink() or not folder.is_dir():
            raise UnsafePathError(
                f"the layer {folder.name} is not a plain directory of the workspace",
                fix=f"replace {folder.name} by a copy of what it points to",
            )
    return folders


def _copy(root: Path, layers: tuple[str, ...], to: Path) -> None:
    """The layers as they were, for comparing and for putting back what was spoilt."""
    for layer in layers:
        shutil.copytree(root / layer, to / layer, symlinks=True)


def _make_layers(root: Path, layers: tuple[str, ...]) -> list[Path]:
    made = []
    for layer in layers:
        folder = root / layer
        if not folder.exists() and not folder.is_symlink():
            folder.mkdir()
            made.append(folder)
    return made


def _remove_layers(made: list[Path]) -> None:
    for folder in made:
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()
