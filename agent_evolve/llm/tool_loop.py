"""A model that uses tools until it has an answer.

echo = BoundTool(Tool("echo", "Say it back.", {"type": "object", "properties": {...}}), say)
result = run_tools(model, Request([Message("user", "Use echo.")]), [echo])
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from ..errors import (
    BudgetExceeded,
    ConfigurationError,
    InfrastructureError,
    nearest,
)
from .types import Completion, Message, Model, Request, Tool, ToolCall, ToolResult

ToolHandler = Callable[[Mapping[str, Any]], str]
"""Runs a tool on arguments that fit its schema; returns what the model is told."""

Stop = Literal["end", "max_turns", "max_tokens", "refusal", "repetition", "timeout", "other"]

CLOSING = "This is the last turn: no more tools. Give your final answer now, in plain text."
SAME_CALL_LIMIT = 3


@dataclass(frozen=True, slots=True)
class BoundTool:
    """A tool and what runs it.

    An ordinary exception of ``run`` is shown to the model as a failed call; budget, configuration
    and infrastructure errors end the loop and reach the caller.
    """

    tool: Tool
    run: ToolHandler


@dataclass(frozen=True, slots=True)
class ToolLoopResult:
    """How a loop ended.

    Attributes:
        text: the last turn's text; empty when the model said nothing.
        messages: the whole conversation, the request's messages first.
        steps: one dict per tool call: ``tool``, ``action`` (the only argument where it is one text,
            else JSON), ``output``, ``is_error``, ``call_id`` (of the model call that asked).
        turns: model calls made.
        stop: ``end`` (an answer), ``max_turns``, ``max_tokens`` (cut answer), ``refusal``,
            ``repetition`` (kept making one call), ``timeout``, or ``other``.
    """

    text: str
    messages: Sequence[Message]
    steps: Sequence[dict[str, Any]]
    turns: int
    stop: Stop


def run_tools(
    model: Model,
    request: Request,
    tools: Iterable[BoundTool],
    *,
    max_turns: int = 20,
    max_output: int = 16_000,
    time_limit: float | None = None,
    on_step: Callable[[dict[str, Any]], None] | None = None,
) -> ToolLoopResult:
    """Ask, run the tools the model wants, tell it the results, and ask again.

    Args:
        request: the start; its ``tools`` are replaced by those bound here.
        tools: what the model may use. A mapping of them works too; names come from the tools.
        max_turns: model calls at most, at least 1. On the last one tools are withheld and the
            model is asked to close.
        max_output: characters of one tool's output that the model sees; the middle of a longer one
            is left out, and that is said.
        time_limit: seconds after which no further call is made.
        on_step: called after each tool call with its step.

    A call that can't be run (unknown name, broken JSON, arguments outside the schema, cut off at
    ``max_tokens``) and a tool that raises are told to the model as errors. The third identical call
    in a row is refused with a word; the fourth ends the loop after one closing turn.

    Raises ``ConfigurationError`` for ``max_turns`` under 1 or a tool with a broken schema, and lets
    through what the model or a tool raises of budget, configuration and infrastructure errors.
    """
    if max_turns < 1:
        raise ConfigurationError(f"max_turns is {max_turns}", fix="give it a number of 1 or more")
    bound = list(tools.values()) if isinstance(tools, Mapping) else list(tools)
    loop = _Loop(model, request, bound, max_output, on_step)
    deadline = None if time_limit is None else time.monotonic() + time_limit
    stop: Stop | None = None
    completion = Completion("")
    while stop is None:
        if deadline is not None and time.monotonic() > deadline:
            return loop.result("", "timeout")
        closing = loop.turns + 1 == max_turns or loop.repeated
        completion = loop.ask(closing and bool(bound))
        stop = loop.react(completion, closing)
    return loop.result(completion.text, stop)


class _Loop:
    def __init__(
        self,
        model: Model,
        request: Request,
        tools: list[BoundTool],
        max_output: int,
        on_step: Callable[[dict[str, Any]], None] | None,
    ) -> None:
        self.model = model
        self.request = replace(request, tools=tuple(bound.tool for bound in tools))
        self.messages = list(request.messages)
        self.steps: list[dict[str, Any]] = []
        self.turns = 0
        self.repeated = False
        self._tools = {bound.tool.name: (bound, _validator(bound.tool)) for bound in tools}
        self._max_output = max_output
        self._on_step = on_step
        self._last_call = ""
        self._same_calls = 0

    def ask(self, closing: bool) -> Completion:
        self.turns += 1
        if closing:
            if self.turns > 1:
                self.messages[-1] = _with_word(self.messages[-1], CLOSING)
            request = replace(self.request, messages=tuple(self.messages), tool_choice="none")
        else:
            request = replace(self.request, messages=tuple(self.messages))
        completion = self.model.complete(request)
        self.messages.append(completion.as_message())
        return completion

    def react(self, completion: Completion, closing: bool) -> Stop | None:
        """Run what was asked for; ``None`` to go on, else why the loop ends."""
        if completion.stop_reason == "refusal":
            return "refusal"
        if closing and completion.tool_calls:
            return "repetition" if self.repeated else "max_turns"
        if completion.tool_calls:
            self.messages.append(Message("user", tool_results=self._run_all(completion)))
            return None
        if self.repeated:
            return "repetition"
        if completion.stop_reason in ("max_tokens", "other"):
            return "max_tokens" if completion.stop_reason == "max_tokens" else "other"
        return "end"

    def result(self, text: str, stop: Stop) -> ToolLoopResult:
        return ToolLoopResult(text, tuple(self.messages), tuple(self.steps), self.turns, stop)

    def _run_all(self, completion: Completion) -> list[ToolResult]:
        calls = completion.tool_calls
        results = []
        for call in calls:
            # Only the last call of an answer that hit its limit can be incomplete.
            cut = completion.stop_reason == "max_tokens" and call is calls[-1]
            output, is_error = self._run(call, cut)
            output = clip(output, self._max_output) or "(no output)"
            results.append(ToolResult(call.id, output, is_error))
            step = {
                "tool": call.name,
                "action": _action(call),
                "output": output,
                "is_error": is_error,
                "call_id": completion.call_id,
            }
            self.steps.append(step)
            if self._on_step is not None:
                self._on_step(step)
        return results

    def _run(self, call: ToolCall, cut: bool) -> tuple[str, bool]:
        if cut:
            return (
                f"Your answer reached its limit of {self.request.max_tokens} tokens, so this call "
                "may be incomplete and was not run. Make it shorter, or do it in several calls.",
                True,
            )
        if self._is_stuck(call):
            return (
                f"You made this same call to {call.name} {self._same_calls} times in a row; it was "
                "not run again. Do something else, or give your final answer in plain text.",
                True,
            )
        problem = self._problem(call)
        if problem or call.arguments is None:
            return problem, True
        bound, _ = self._tools[call.name]
        try:
            return str(bound.run(call.arguments)), False
        except (BudgetExceeded, ConfigurationError, InfrastructureError):
            raise
        except Exception as error:  # noqa: BLE001 - whatever a tool raises is told to the model
            return f"{type(error).__name__}: {error}", True

    def _is_stuck(self, call: ToolCall) -> bool:
        this = f"{call.name} {_action(call)}"
        self._same_calls = self._same_calls + 1 if this == self._last_call else 1
        self._last_call = this
        self.repeated = self._same_calls > SAME_CALL_LIMIT
        return self._same_calls >= SAME_CALL_LIMIT

    def _problem(self, call: ToolCall) -> str:
        """What is wrong with a call, in words for the model; empty when nothing is."""
        if call.name not in self._tools:
            near = nearest(call.name, self._tools)
            guess = f" Did you mean {near!r}?" if near else ""
            known = ", ".join(sorted(self._tools)) or "none"
            return f"There is no tool {call.name!r}.{guess} Tools: {known}."
        bound, validator = self._tools[call.name]
        if call.arguments is None:
            return (
                f"The arguments of {call.name} are not a JSON object: {clip(call.raw, 500)}\n"
                f"They must fit this schema: {json.dumps(bound.tool.parameters)}"
            )
        errors = [
            f"{error.json_path}: {clip(error.message, 300)}"
            for error in list(validator.iter_errors(dict(call.arguments)))[:3]
        ]
        if errors:
            return f"The arguments of {call.name} don't fit its schema: " + "; ".join(errors)
        return ""


def _validator(tool: Tool) -> Any:
    from jsonschema import Draft202012Validator, SchemaError

    try:
        Draft202012Validator.check_schema(tool.parameters)
    except SchemaError as error:
        raise ConfigurationError(
            f"the parameters of tool {tool.name!r} are not a JSON Schema: {error.message}"
        ) from error
    return Draft202012Validator(tool.parameters)


def _action(call: ToolCall) -> str:
    if call.arguments is None:
        return call.raw
    values = list(call.arguments.values())
    if len(values) == 1 and isinstance(values[0], str):
        return values[0]
    return json.dumps(dict(call.arguments), ensure_ascii=False, sort_keys=True, default=str)


def _with_word(message: Message, word: str) -> Message:
    return replace(message, content=f"{message.content}\n\n{word}".strip())


def clip(text: str, limit: int) -> str:
    """At most about ``limit`` characters: head and tail, and a note of what is left out."""
    if len(text) <= limit:
        return text
    head, tail = limit * 2 // 3, limit - limit * 2 // 3
    left_out = len(text) - limit
    return f"{text[:head]}\n[... {left_out} characters left out ...]\n{text[len(text) - tail :]}"
