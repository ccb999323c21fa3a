"""How large a request is, where nobody has counted its tokens."""

from __future__ import annotations

import json
from collections.abc import Iterable

from .types import Completion, Request, ToolCall, Usage


def prompt_bytes(request: Request) -> int:
    """Bytes of all that a request sends, with some for the frame of each turn and tool.

    A third of it is a safe upper bound for the tokens of prose, code and most scripts.
    """
    sizes = [_bytes(request.system)]
    sizes += [_bytes(f"{tool.name}{tool.description}{tool.parameters}") for tool in request.tools]
    for message in request.messages:
        calls = "".join(f"{call.name}{call.raw or call.arguments}" for call in message.tool_calls)
        kept = _bytes(str(message.raw)) if message.raw is not None else 0
        sizes.append(max(kept, _bytes(message.content + calls)))
        sizes += [_bytes(result.content) for result in message.tool_results]
    return sum(sizes) + 24 * len(sizes)


def rough_usage(request: Request, completion: Completion) -> Usage:
    """One token for each four characters, and at least one each way."""
    written = len(completion.text) + _calls_chars(completion.tool_calls)
    return Usage(max(1, _prompt_chars(request) // 4), max(1, written // 4))


def _prompt_chars(request: Request) -> int:
    tools = (
        len(tool.name) + len(tool.description) + len(json.dumps(tool.parameters, default=str))
        for tool in request.tools
    )
    turns = (
        len(turn.content)
        + _calls_chars(turn.tool_calls)
        + sum(len(result.content) for result in turn.tool_results)
        for turn in request.messages
    )
    return len(request.system) + sum(tools) + sum(turns)


def _calls_chars(calls: Iterable[ToolCall]) -> int:
    return sum(len(c.name) + len(c.raw or json.dumps(c.arguments, default=str)) for c in calls)


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "replace"))
