"""OpenAI's chat format, which LiteLLM, llama.cpp and most servers speak too. Pure conversions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..errors import ModelError
from .sizes import rough_usage
from .types import Completion, Message, Request, StopReason, ToolCall, Usage

_STOPS: dict[str, StopReason] = {
    "stop": "end",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "content_filter": "refusal",
}


def to_chat(request: Request) -> dict[str, Any]:
    """``messages``, ``tools``, ``tool_choice`` and ``stop`` of a chat completion request."""
    messages: list[dict[str, Any]] = []
    if request.system:
        messages.append({"role": "system", "content": request.system})
    for message in request.messages:
        messages.extend(_turn(message))
    body: dict[str, Any] = {"messages": messages}
    if request.tools:
        body["tools"] = [
            {
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": dict(tool.parameters),
                },
            }
            for tool in request.tools
        ]
        if request.tool_choice == "none":
            body["tool_choice"] = "none"
    if request.stop:
        body["stop"] = list(request.stop)
    return body


def _turn(message: Message) -> list[dict[str, Any]]:
    turns: list[dict[str, Any]] = [
        {
            "role": "tool",
            "tool_call_id": result.call_id,
            "content": f"Error: {result.content}" if result.is_error else result.content,
        }
        for result in message.tool_results
    ]
    if message.tool_calls:
        calls = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": arguments_text(call)},
            }
            for call in message.tool_calls
        ]
        turns.append(
            {"role": message.role, "content": message.content or None, "tool_calls": calls}
        )
    elif message.content or not message.tool_results:
        turns.append({"role": message.role, "content": message.content})
    return turns


def from_chat(response: Mapping[str, Any], request: Request) -> Completion:
    """The completion in a chat response (a plain dict); ``ModelError`` if there is none."""
    choices = response.get("choices")
    if not isinstance(choices, list) or not choices:
        raise ModelError(f"the answer holds no choices: {json.dumps(response, default=str)[:500]}")
    choice = choices[0]
    message = choice.get("message") or {}
    calls = tuple(_call(call, i) for i, call in enumerate(message.get("tool_calls") or ()))
    refusal = message.get("refusal")
    stop = _STOPS.get(choice.get("finish_reason") or "", "other")
    if refusal:
        stop = "refusal"
    elif calls and stop == "end":
        stop = "tool_use"
    completion = Completion(
        text=message.get("content") or refusal or "",
        tool_calls=calls,
        stop_reason=stop,
        raw=response,
    )
    return replace(completion, usage=_usage(response, request, completion))


def _call(call: Mapping[str, Any], number: int) -> ToolCall:
    function = call.get("function") or {}
    arguments, raw = parse_arguments(function.get("arguments"))
    return ToolCall(call.get("id") or f"call_{number}", function.get("name") or "", arguments, raw)


def _usage(response: Mapping[str, Any], request: Request, completion: Completion) -> Usage:
    """The server's count; a rough one where it sends none, so that caps still hold.

    No prompt has 0 tokens: LiteLLM says so where the server said nothing.
    """
    usage = response.get("usage")
    if not usage or not usage.get("prompt_tokens"):
        return rough_usage(request, completion)
    details = usage.get("prompt_tokens_details") or {}
    return Usage(
        input_tokens=usage["prompt_tokens"],
        output_tokens=usage.get("completion_tokens") or 0,
        cache_read_tokens=details.get("cached_tokens") or 0,
    )


def parse_arguments(sent: Any) -> tuple[Mapping[str, Any] | None, str]:
    """Arguments and what was sent, from a JSON text or an object; ``None`` if not a JSON object.

    No text at all is what some models send for a tool without parameters.
    """
    if isinstance(sent, Mapping):
        return dict(sent), json.dumps(sent, ensure_ascii=False)
    if sent is None or (isinstance(sent, str) and not sent.strip()):
        return {}, ""
    try:
        value = json.loads(sent) if isinstance(sent, str) else sent
    except ValueError:
        return None, str(sent)
    return (value if isinstance(value, dict) else None), str(sent)


def arguments_object(arguments: Mapping[str, Any] | None, raw: str) -> dict[str, Any]:
    """Arguments as an object, which is all that providers take back, also where the model sent
    something else."""
    return {"not_json": raw} if arguments is None else dict(arguments)


def arguments_text(call: ToolCall) -> str:
    """A call's arguments as JSON, also where the model sent something else."""
    return json.dumps(arguments_object(call.arguments, call.raw), ensure_ascii=False)
