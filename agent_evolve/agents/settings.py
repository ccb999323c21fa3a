"""Options of the built-in agents, as written under ``agent:`` in ``manifest.yaml``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StrictBool, ValidationError

from ..errors import ConfigurationError, UnknownNameError

S = TypeVar("S", bound=BaseModel)


class ChatSettings(BaseModel):
    """How a chat agent asks its model and what it puts into the prompt."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    max_turns: Annotated[int, Field(ge=1)] = 12
    """Model calls for one task."""
    max_tokens: Annotated[int, Field(ge=1)] = 4096
    """Tokens of one answer of the model."""
    temperature: Annotated[float, Field(ge=0.0, le=2.0)] | None = 0.0
    """``null`` leaves it to the provider."""
    memory: StrictBool | tuple[str, ...] = True
    """Whether memory is in the prompt, or which categories of it: ``[examples, rules]``."""
    memory_chars: Annotated[int, Field(ge=0)] = 6000
    """Characters of memory in the prompt; the newest entries that fit are taken."""
    examples: Literal["all", "by_category"] = "all"
    """``by_category``: only examples whose ``category`` is the task's, or that have none. The
    prompt is then one for each category."""
    skills: Literal["catalogue", "inline", "none"] = "catalogue"
    """``catalogue``: names and descriptions, read through a tool. ``inline``: the whole text in the
    prompt, for models too small for tools. ``none``: skills are not mentioned."""
    skill_chars: Annotated[int, Field(ge=200)] = 20_000
    """Characters of one skill file that the model sees."""


class BashSettings(ChatSettings):
    """The same with a shell. Limits hold for each command."""

    max_turns: Annotated[int, Field(ge=1)] = 30
    command_seconds: Annotated[float, Field(gt=0)] = 60.0
    """Time on the clock."""
    memory_mb: Annotated[int, Field(ge=16)] = 2048
    processes: Annotated[int, Field(ge=1)] = 64
    file_mb: Annotated[int, Field(ge=1)] = 64
    """Size of one written file."""
    output_chars: Annotated[int, Field(ge=200)] = 16_000
    """Bytes of a command's output that the model sees, which are characters where it is ASCII."""


def checked(cls: type[S], options: Mapping[str, Any], who: str) -> S:
    """Options as settings.

    Raises ``UnknownNameError`` for a name that is none of them, and ``ConfigurationError`` for a
    value that can't be.
    """
    for name in options:
        if name not in cls.model_fields:
            raise UnknownNameError(f"option of {who}", str(name), cls.model_fields)
    try:
        return cls.model_validate(dict(options))
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0])
        raise ConfigurationError(
            f"agent option {name} is {options[name]!r}: {first['msg']}",
            fix=f"change or remove '{name}:' under 'agent:' in manifest.yaml",
        ) from error
