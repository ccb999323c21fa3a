"""The one protocol that every provider speaks: a request in, a completion out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

StopReason = Literal["end", "tool_use", "max_tokens", "stop", "refusal", "other"]


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool as a model sees it. ``parameters`` is a JSON Schema object."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A model's wish to use a tool.

    ``arguments`` is ``None`` when what the model sent is not a JSON object; ``raw`` keeps it, so
    that the tool loop can show the model its own mistake.
    """

    id: str
    name: str
    arguments: Mapping[str, Any] | None
    raw: str = ""


@dataclass(frozen=True, slots=True)
class ToolResult:
    call_id: str
    content: str
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class Message:
    """One turn. An assistant turn may hold ``tool_calls``; the user turn after it, the results.

    ``raw`` keeps the provider's own form of an assistant turn where it must be sent back whole
    (thinking blocks); providers other than the one that made it ignore it.
    """

    role: Literal["user", "assistant"]
    content: str = ""
    tool_calls: Sequence[ToolCall] = ()
    tool_results: Sequence[ToolResult] = ()
    raw: Any = None


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked of a model.

    ``tool_choice`` ``"none"`` keeps the tools described (providers insist on it once a conversation
    holds tool calls) but asks for an answer in words. Bedrock has no such switch and ignores it.
    """

    messages: Sequence[Message]
    system: str = ""
    tools: Sequence[Tool] = ()
    stop: Sequence[str] = ()
    temperature: float | None = None
    max_tokens: int = 4096
    tool_choice: Literal["auto", "none"] = "auto"


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one call. ``input_tokens`` counts all prompt tokens, cached ones included."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Completion:
    """What a model answered.

    ``raw`` is the provider's own answer as JSON-able values. ``call_id`` is set by a metered model:
    it names the trace file of the call.
    """

    text: str
    tool_calls: Sequence[ToolCall] = ()
    stop_reason: StopReason = "end"
    usage: Usage = field(default_factory=Usage)
    raw: Any = None
    call_id: str = ""

    def as_message(self) -> Message:
        """This answer as the assistant turn to send back."""
        return Message("assistant", self.text, tool_calls=self.tool_calls, raw=self.raw)


@runtime_checkable
class Model(Protocol):
    """A model behind a provider. Any object with these two is one.

    ``complete`` raises ``ConfigurationError`` for what a person must mend (key, model name),
    ``ModelError`` for an outage, a rate limit that outlasted the retries, or an unusable answer,
    and ``BudgetExceeded`` when metered and a cap would be passed.
    """

    @property
    def name(self) -> str:
        """``provider:model``, as a user would type it."""
        ...

    def complete(self, request: Request) -> Completion: ...


@runtime_checkable
class Resumable(Protocol):
    """A model whose next answer depends on how often it was asked, such as a script."""

    def resume(self, asked: Iterable[Request]) -> None:
        """Go on as if these requests had been asked, in a process that was killed; what this
        object itself has answered already is among them."""
        ...
