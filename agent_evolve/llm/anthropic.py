"""Claude through Anthropic's own API, or any server that speaks its messages protocol."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

from ..errors import AgentEvolveError, ConfigurationError
from .anthropic_stream import gather
from .chat_format import arguments_object, parse_arguments
from .failures import Service, is_blocked, known_models, missing_extra, transport_errors
from .sizes import rough_usage
from .types import Completion, Message, Request, StopReason, ToolCall, Usage

STREAM_ABOVE = 8_192
"""Output tokens above which the answer is streamed, so that no idle connection is cut."""

_STOPS: dict[str, StopReason] = {
    "end_turn": "end",
    "tool_use": "tool_use",
    "max_tokens": "max_tokens",
    "model_context_window_exceeded": "max_tokens",
    "stop_sequence": "stop",
    "refusal": "refusal",
}


class AnthropicModel:
    """A Claude model.

    Args:
        model: such as ``claude-sonnet-5-5``.
        api_key: else ``ANTHROPIC_API_KEY``, else ``ANTHROPIC_AUTH_TOKEN``.
        base_url: else ``ANTHROPIC_BASE_URL``, else Anthropic itself.
        timeout: seconds for one answer. max_retries: of the SDK, which honours ``Retry-After``.
        cache: mark the system prompt, and in a tool loop the conversation so far, for Anthropic's
            prompt cache.

    A temperature that the model refuses (newer ones take none) is left out from then on.
    """

    def __init__(
        self,
        model: str,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        timeout: float = 600.0,
        max_retries: int = 4,
        cache: bool = True,
    ) -> None:
        try:
            import anthropic
        except ImportError as error:
            raise missing_extra("anthropic", "", error) from error
        self._sdk = anthropic
        self._model = model
        self._cache = cache
        self._send_temperature = True
        key = api_key or os.environ.get("ANTHROPIC_API_KEY")
        token = None if key else os.environ.get("ANTHROPIC_AUTH_TOKEN")
        if not key and not token:
            raise ConfigurationError(
                f"model {self.name!r} needs a key and ANTHROPIC_API_KEY is not set",
                fix="export ANTHROPIC_API_KEY=sk-ant-...  (from https://platform.claude.com)",
            )
        self._client = anthropic.Anthropic(
            api_key=key,
            auth_token=token,
            base_url=base_url,
            timeout=timeout,
            max_retries=max_retries,
        )
        self._service = Service(
            label="Anthropic",
            model=model,
            key_fix="set a key that works: export ANTHROPIC_API_KEY=sk-ant-...",
            model_fix="see https://platform.claude.com/docs/en/about-claude/models",
            secrets=tuple(secret for secret in (key, token) if secret),
        )

    @property
    def name(self) -> str:
        return f"anthropic:{self._model}"

    def complete(self, request: Request) -> Completion:
        sdk = self._sdk
        try:
            answer = self._create(request)
        except sdk.APIStatusError as error:
            if error.status_code == 400 and is_blocked(error.message):
                return Completion("", stop_reason="refusal", raw={"error": error.message})
            raise self._refusal(error) from error
        except (sdk.AnthropicError, ValueError, AttributeError, *transport_errors()) as error:
            raise self._service.broken(error) from error
        if answer.get("stop_reason") is None:
            raise self._service.broken(EOFError("the answer broke off before its end"))
        return _completion(answer, request)

    def _create(self, request: Request) -> dict[str, Any]:
        while True:
            options = self._options(request)
            try:
                if request.max_tokens <= STREAM_ABOVE:
                    answer: dict[str, Any] = self._client.messages.create(**options).to_dict()
                    return answer
                with self._client.messages.create(**options, stream=True) as events:
                    return gather(event.to_dict() for event in events)
            except self._sdk.BadRequestError as error:
                if "extra_body" not in options or "temperature" not in error.message:
                    raise
                self._send_temperature = False

    def _options(self, request: Request) -> dict[str, Any]:
        options: dict[str, Any] = {
            "model": self._model,
            "max_tokens": request.max_tokens,
            "messages": _turns(request, self._cache),
        }
        if request.system:
            block: dict[str, Any] = {"type": "text", "text": request.system}
            options["system"] = [_cached(block) if self._cache else block]
        if request.tools:
            options["tools"] = [
                {
                    "name": tool.name,
                    "description": tool.description,
                    "input_schema": dict(tool.parameters),
                }
                for tool in request.tools
            ]
            if request.tool_choice == "none":
                options["tool_choice"] = {"type": "none"}
        if request.stop:
            options["stop_sequences"] = list(request.stop)
        if request.temperature is not None and self._send_temperature:
            # The SDK's 2.x has no keyword for it; servers and older models still take it.
            options["extra_body"] = {"temperature": request.temperature}
        return options

    def _refusal(self, error: Any) -> AgentEvolveError:
        service = self._service
        if error.status_code == 404:
            service = replace(service, known_models=known_models("anthropic"))
        return service.refusal(error.status_code, error.message)


def _turns(request: Request, cache: bool) -> list[dict[str, Any]]:
    turns = [(turn.role, _blocks(turn)) for turn in request.messages]
    if cache and request.tools and turns and turns[-1][0] == "user":
        turns[-1][1][-1] = _cached(turns[-1][1][-1])
    return [{"role": role, "content": blocks} for role, blocks in turns]


def _cached(block: dict[str, Any]) -> dict[str, Any]:
    return {**block, "cache_control": {"type": "ephemeral"}}


def _blocks(message: Message) -> list[dict[str, Any]]:
    kept = _kept_blocks(message)
    if kept is not None:
        return kept
    blocks: list[dict[str, Any]] = [
        {
            "type": "tool_result",
            "tool_use_id": result.call_id,
            "content": result.content or "(no output)",
            "is_error": result.is_error,
        }
        for result in message.tool_results
    ]
    if message.content.strip():
        blocks.append({"type": "text", "text": message.content})
    for call in message.tool_calls:
        arguments = arguments_object(call.arguments, call.raw)
        blocks.append({"type": "tool_use", "id": call.id, "name": call.name, "input": arguments})
    return blocks or [{"type": "text", "text": "(empty)"}]  # the API takes no empty turn


def _kept_blocks(message: Message) -> list[dict[str, Any]] | None:
    """The blocks as Anthropic sent them, where thinking must go back whole with its signature."""
    raw = message.raw
    if message.role != "assistant" or not isinstance(raw, dict) or raw.get("type") != "message":
        return None
    blocks = raw.get("content") or []
    if not any(block.get("type") in ("thinking", "redacted_thinking") for block in blocks):
        return None
    return [_sendable(block) for block in blocks]


def _sendable(block: dict[str, Any]) -> dict[str, Any]:
    """A block as the API takes it back: a call's input is an object, whatever the model sent."""
    if block.get("type") != "tool_use":
        return block
    arguments, raw = parse_arguments(block.get("input"))
    return {**block, "input": arguments_object(arguments, raw)}


def _completion(answer: dict[str, Any], request: Request) -> Completion:
    blocks = answer.get("content") or []
    completion = Completion(
        text="".join(block["text"] for block in blocks if block.get("type") == "text"),
        tool_calls=tuple(_call(block) for block in blocks if block.get("type") == "tool_use"),
        stop_reason=_STOPS.get(answer["stop_reason"], "other"),
        raw=answer,
    )
    return replace(completion, usage=_usage(answer, request, completion))


def _usage(answer: dict[str, Any], request: Request, completion: Completion) -> Usage:
    """The server's count; a rough one where it sends none, so that caps still hold."""
    usage = answer.get("usage")
    if not usage or usage.get("input_tokens") is None:
        return rough_usage(request, completion)
    read = usage.get("cache_read_input_tokens") or 0
    write = usage.get("cache_creation_input_tokens") or 0
    return Usage(
        input_tokens=usage["input_tokens"] + read + write,
        output_tokens=usage.get("output_tokens") or 0,
        cache_read_tokens=read,
        cache_write_tokens=write,
    )


def _call(block: dict[str, Any]) -> ToolCall:
    arguments, raw = parse_arguments(block.get("input"))
    return ToolCall(block["id"], block["name"], arguments, raw)
