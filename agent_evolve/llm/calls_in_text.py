"""A tool call that a small model wrote as text instead of in its native form."""

from __future__ import annotations

import json
import re
from collections.abc import Collection

from .types import ToolCall

_WRAPPINGS = (
    re.compile(r"^```(?:json)?\s*\n(.*?)\n?\s*```$", re.DOTALL),
    re.compile(r"^<tool_call>\s*(.*?)\s*</tool_call>$", re.DOTALL),
)


def call_in_text(text: str, tools: Collection[str]) -> ToolCall | None:
    """The call that ``text`` consists of, or ``None``.

    Only an answer that is one JSON object with the ``name`` of a tool and ``arguments``, fenced, in
    ``<tool_call>`` tags or bare, counts; JSON inside prose is an answer about JSON.
    """
    body = text.strip()
    for wrapping in _WRAPPINGS:
        found = wrapping.match(body)
        if found:
            body = found.group(1).strip()
    if not body.startswith("{"):
        return None
    try:
        value = json.loads(body)
    except ValueError:
        return None
    if not isinstance(value, dict) or set(value) != {"name", "arguments"}:
        return None
    if value["name"] not in tools or not isinstance(value["arguments"], dict):
        return None
    return ToolCall("call_in_text", value["name"], value["arguments"], body)
