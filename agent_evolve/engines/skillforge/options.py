"""What a person may set about SkillForge, and what follows from it for a given model."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self

from ...errors import ConfigurationError, UnknownNameError
from ...execution import Limits

EditMode = Literal["shell", "answer"]

LOCAL_PREFIX = "local:"
"""Models run on this machine are taken for small ones, unless the options say otherwise."""


@dataclass(frozen=True, slots=True)
class Options:
    """Options of the engine, as they stand under ``engine:`` in ``manifest.yaml``.

    Attributes:
        edit_mode: ``shell``: the model edits with a bash tool; ``answer``: it writes all changes in
            one structured reply; ``auto``: ``answer`` for ``local:`` models, else ``shell``.
        max_turns: calls of the model in one step in shell mode, 1 or more.
        max_tokens: tokens of one answer. Default: the run's ``evolver_max_tokens``; where that is
            not set either, 16,384, or 1,024 for ``local:`` models.
        temperature: sent only when set, as some models refuse the parameter; 0 for ``local:``
            models, which take it and differ from run to run otherwise.
        context_chars: characters of the prompt built from the workspace and the observations, at
            least 6,000. Default 60,000 (about 15,000 tokens); 8,000 for ``local:`` models.
        observations_shown: observations of this cycle in the prompt; in shell mode the rest can
            be read from files.
        max_skills: the library may not grow past this number.
        max_skill_chars: a SKILL.md may not grow past this many characters.
        command_seconds, command_output_chars, command_memory_mb, command_processes: limits of one
            shell command.
        max_growth_mb: all layers together may grow by this much in one step.
    """

    edit_mode: Literal["auto", "shell", "answer"] = "auto"
    max_turns: int = 30
    max_tokens: int | None = None
    temperature: float | None = None
    context_chars: int | None = None
    observations_shown: int = 20
    max_skills: int = 12
    max_skill_chars: int = 12_000
    command_seconds: float = 60.0
    command_output_chars: int = 12_000
    command_memory_mb: int = 1024
    command_processes: int = 64
    max_growth_mb: int = 32

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """Checked options.

        Raises ``UnknownNameError`` for an unknown option and ``ConfigurationError`` for a value
        that can't be.
        """
        known = {field.name: field for field in dataclasses.fields(cls)}
        for name, value in values.items():
            if name not in known:
                raise UnknownNameError("option of the engine skillforge", name, known)
            _check(name, value, optional=known[name].default is None)
        return cls(**values)

    def for_model(self, model_name: str, run_max_tokens: int | None = None) -> Settings:
        """The options with every default decided for one model and run."""
        small = model_name.startswith(LOCAL_PREFIX)
        chosen: EditMode = "answer" if small else "shell"
        return Settings(
            edit_mode=chosen if self.edit_mode == "auto" else self.edit_mode,
            max_tokens=self.max_tokens or run_max_tokens or (1_024 if small else 16_384),
            context_chars=self.context_chars or (8_000 if small else 60_000),
            temperature=0.0 if small and self.temperature is None else self.temperature,
            options=self,
        )


@dataclass(frozen=True, slots=True)
class Settings:
    """Options decided for one model."""

    edit_mode: EditMode
    max_tokens: int
    context_chars: int
    temperature: float | None
    options: Options

    @property
    def limits(self) -> Limits:
        """The limits of one shell command."""
        options = self.options
        return Limits(
            wall_seconds=options.command_seconds,
            cpu_seconds=options.command_seconds,
            memory_bytes=options.command_memory_mb * 1024**2,
            processes=options.command_processes,
            file_bytes=options.max_growth_mb * 1024**2,
            output_bytes=4 * options.command_output_chars,
        )


_LOWEST = {"context_chars": 6_000, "command_output_chars": 200, "max_skill_chars": 200}


def _check(name: str, value: Any, *, optional: bool) -> None:
    if value is None and optional:
        return
    if name == "edit_mode":
        if value not in ("auto", "shell", "answer"):
            raise ConfigurationError(
                f"engine option edit_mode is {value!r}",
                fix="write edit_mode: shell, answer or auto",
            )
        return
    if name == "temperature":
        wanted, fits = "a number of at least 0", _is_number(value) and value >= 0
    elif name == "command_seconds":
        wanted, fits = "a number above 0", _is_number(value) and value > 0
    else:
        lowest = _LOWEST.get(name, 1)
        wanted = f"a whole number of at least {lowest}"
        fits = isinstance(value, int) and not isinstance(value, bool) and value >= lowest
    if not fits:
        raise ConfigurationError(f"engine option {name} is {value!r}", fix=f"give {wanted}")


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
