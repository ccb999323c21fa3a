"""One Anthropic message out of its stream of events.

The SDK's own gathering reads tool arguments leniently: a call that breaks off in the middle becomes
a shorter one that looks whole, and one that is not JSON loses the answer. Here the text is kept.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

# A delta's type: its own field, and the field of the block that it lengthens.
_GROWTH = {
    "text_delta": ("text", "text"),
    "input_json_delta": ("partial_json", "partial"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("signature", "signature"),
}


def gather(events: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The message as it would have come unstreamed.

    The ``input`` of a tool call stays a text when it is not JSON. Without the events at the end
    ``stop_reason`` stays ``None``: the message is not whole.
    """
    message: dict[str, Any] = {"type": "message", "content": [], "stop_reason": None}
    blocks: dict[int, dict[str, Any]] = {}
    ended = False
    for event in events:
        match event.get("type"):
            case "message_start":
                message.update(event["message"])
            case "content_block_start":
                blocks[event["index"]] = dict(event["content_block"])
            case "content_block_delta":
                _grow(blocks[event["index"]], event["delta"])
            case "message_delta":
                message.update(_set(event["delta"]))
                message["usage"] = {
                    **(message.get("usage") or {}),
                    **_set(event.get("usage") or {}),
                }
            case "message_stop":
                ended = True
    message["content"] = [_closed(blocks[index]) for index in sorted(blocks)]
    return message if ended else {**message, "stop_reason": None}


def _grow(block: dict[str, Any], delta: Mapping[str, Any]) -> None:
    if delta["type"] in _GROWTH:
        source, target = _GROWTH[delta["type"]]
        block[target] = (block.get(target) or "") + delta[source]


def _closed(block: dict[str, Any]) -> dict[str, Any]:
    partial = block.pop("partial", "")
    if not partial.strip():
        return block
    try:
        return {**block, "input": json.loads(partial)}
    except ValueError:
        return {**block, "input": partial}


def _set(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
