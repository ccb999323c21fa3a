"""A script of answers in a YAML or JSON file, for ``scripted:PATH``.

    - The first answer, as text.
    - tool_calls: [{name: read_skill, arguments: {name: dates}}]
    - {text: "2024-05-07", when: "7 May 2024"}
    - {error: the provider is down}

Answers are handed out in order. An answer with ``when`` is given whenever that text occurs in the
last user turn, as often as it does, and before the ones in order; so a script with ``when`` in
every answer is deterministic for any number of threads. ``stop_reason`` may be set as well.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from ..errors import ConfigurationError, ModelError
from .types import Completion, Request, StopReason, ToolCall

if TYPE_CHECKING:
    from .scripted import Answer


class _Call(BaseModel):
    name: str
    arguments: dict[str, Any] = Field(default_factory=dict)
    id: str = ""


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid")

    text: str = ""
    tool_calls: list[_Call] = Field(default_factory=list)
    stop_reason: StopReason | None = None
    error: str | None = None
    when: str | None = None

    def answer(self, number: int) -> Answer:
        if self.error is not None:
            return ModelError(self.error)
        calls = tuple(
            ToolCall(call.id or f"call_{number}_{i}", call.name, call.arguments)
            for i, call in enumerate(self.tool_calls)
        )
        return Completion(self.text, calls, self.stop_reason or ("tool_use" if calls else "end"))


class ScriptFile:
    """The answers of a script file, as a function from request to answer."""

    def __init__(self, entries: list[_Entry]) -> None:
        from .scripted import Queue

        numbered = list(enumerate(entries))
        self._matching = [(e.when, e.answer(i)) for i, e in numbered if e.when is not None]
        self._in_order = Queue([e.answer(i) for i, e in numbered if e.when is None])

    def __call__(self, request: Request) -> Answer:
        answer = self._match(request)
        return self._in_order(request) if answer is None else answer

    def resume(self, asked: Iterable[Request]) -> None:
        """Leave out the answers in order that these requests took."""
        self._in_order.resume(request for request in asked if self._match(request) is None)

    def _match(self, request: Request) -> Answer | None:
        last = request.messages[-1] if request.messages else None
        seen = "\n".join([last.content, *(r.content for r in last.tool_results)]) if last else ""
        return next((answer for text, answer in self._matching if text in seen), None)


def read_script(path: Path) -> ScriptFile:
    """Read a script file. Raises ``ConfigurationError`` naming the file and the wrong entry."""
    import yaml

    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))  # JSON is YAML
    except OSError as error:
        raise ConfigurationError(
            f"can't read the script {path}: {error.strerror}",
            fix="name a YAML or JSON file of answers: scripted:PATH",
        ) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"the script {path} is not YAML or JSON: {error}") from error
    if not isinstance(data, list):
        raise ConfigurationError(
            f"the script {path} holds {type(data).__name__}, not a list of answers",
            fix="write one answer per line, each starting with '- '",
        )
    wanted = [{"text": entry} if isinstance(entry, str) else entry for entry in data]
    try:
        return ScriptFile(TypeAdapter(list[_Entry]).validate_python(wanted))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ConfigurationError(
            f"the script {path}: answer {where} is wrong: {first['msg']}",
            fix="an answer is a text, or has the keys text, tool_calls, stop_reason, error, when",
        ) from error
