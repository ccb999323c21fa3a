"""The chat agent: a model that has the workspace's files as its prompt, and tools to read more."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar

from ..errors import InfrastructureError
from ..llm import Completion, Message, Model, Request
from ..llm.tool_loop import BoundTool, ToolLoopResult, clip, run_tools
from ..types import Task, Trajectory
from . import prompting
from .base import BaseAgent
from .settings import ChatSettings, checked
from .skill_reading import skill_reader

NOTE_CHARS = 200
"""Room for the words that say what a tool left out, so that these are not cut as well."""

_THINKING = re.compile(r"\s*(?:<think>)?(?:(?!</?think>).)*</think>", re.DOTALL)
_UNFINISHED = re.compile(r"\s*<think>.*", re.DOTALL)


class ChatAgent(BaseAgent):
    """Answers with a model.

    The system prompt is ``prompts/system.md``, the fragments by name, the catalogue of skills with
    a ``read_skill`` tool, and the newest memories; it is the same for every task of a version (see
    ``ChatSettings.examples`` for the exception). The task's input is the user's message as it is.
    The answer is the model's last text without what it thought in ``<think>``.

    An empty answer, or none after ``max_turns``, is this agent's failure. A refusal and passing
    ``runtime.task_timeout`` raise ``InfrastructureError``. An answer cut at ``max_tokens`` is
    graded as it is, with ``metrics["cut"]`` set to 1.

    A subclass adds tools by ``_tools``, words by ``_sections``, and options by a subclass of
    ``ChatSettings`` in ``settings_type``. Options under ``agent:``: see ``ChatSettings``.
    """

    needs_model = True
    kind: ClassVar[str] = "the chat agent"
    settings_type: ClassVar[type[ChatSettings]] = ChatSettings

    def reload_from_fs(self) -> None:
        super().reload_from_fs()
        self.settings = checked(self.settings_type, self.options, self.kind)
        self._memories = self._chosen_memories()
        self._prompts: dict[str | None, str] = {}

    def solve(self, task: Task) -> Trajectory:
        with self._tools(task) as tools:
            return self._converse(task, tools)

    def prompt_for(self, task: Task) -> str:
        """The system prompt for a task: one text, or one for each category."""
        by_category = self.settings.examples == "by_category"
        category = str(task.metadata.get("category") or "") if by_category else None
        if category not in self._prompts:
            self._prompts[category] = self._prompt(category)
        return self._prompts[category]

    @contextmanager
    def _tools(self, task: Task) -> Iterator[list[BoundTool]]:
        """The tools for one task, and whatever must exist while they are used."""
        if self.skills and self.settings.skills == "catalogue":
            yield [skill_reader(self.workspace, self.settings.skill_chars)]
        else:
            yield []

    def _sections(self) -> list[str]:
        """What the prompt says between the fragments and the skills."""
        return []

    def _answer(self, task: Task, text: str) -> str:
        """The output of the task, from the model's last words."""
        return text

    def _prompt(self, category: str | None) -> str:
        memory = prompting.memory_section(self._memories, self.settings.memory_chars, category)
        return prompting.readable(
            prompting.join_sections(
                [
                    self.system_prompt,
                    *self.fragments.values(),
                    *self._sections(),
                    self._skills_section(),
                    memory,
                ]
            )
        )

    def _skills_section(self) -> str:
        if self.settings.skills == "catalogue":
            return prompting.skill_catalogue(self.skills)
        if self.settings.skills == "none":
            return ""
        bodies = {s.name: self.workspace.read_skill_file(s.name).body_text for s in self.skills}
        limit = self.settings.skill_chars
        return prompting.skills_in_full({name: clip(text, limit) for name, text in bodies.items()})

    def _chosen_memories(self) -> dict[str, list[dict[str, Any]]]:
        wanted = self.settings.memory
        if wanted is False:
            return {}
        names = self.workspace.list_memory_categories()
        if wanted is not True:
            names = [name for name in names if name in wanted]
        return {name: self.workspace.read_memories(name) for name in names}

    def _converse(self, task: Task, tools: list[BoundTool]) -> Trajectory:
        model = _Counting(self.runtime.require_model(self.kind))
        request = Request(
            [Message("user", task.input)],
            system=self.prompt_for(task),
            temperature=self.settings.temperature,
            max_tokens=self.settings.max_tokens,
        )
        started = time.monotonic()
        result = run_tools(
            model,
            request,
            tools,
            max_turns=self.settings.max_turns,
            max_output=self._output_chars(),
            time_limit=self.runtime.task_timeout,
        )
        metrics = {"turns": float(result.turns), "seconds": time.monotonic() - started}
        metrics |= model.tokens | ({"cut": 1.0} if result.stop == "max_tokens" else {})
        output, error = self._outcome(task, result)
        return Trajectory(
            task.id,
            output=output,
            steps=[dict(step) for step in result.steps],
            conversation=[as_dict(message) for message in result.messages],
            error=error,
            metrics=metrics,
        )

    def _output_chars(self) -> int:
        """Characters of one tool's output that the model sees."""
        return self.settings.skill_chars + NOTE_CHARS

    def _outcome(self, task: Task, result: ToolLoopResult) -> tuple[str, str | None]:
        """The answer, and what went wrong where there is none."""
        if result.stop == "refusal":
            said = f": {clip(result.text, 300)}" if result.text else ""
            raise InfrastructureError(f"the model refused to answer{said}")
        if result.stop == "timeout":
            raise InfrastructureError(
                f"the task was not done within {self.runtime.task_timeout:g} seconds",
                fix="raise task_timeout under 'config:' in manifest.yaml",
            )
        # What is said next to a tool call that was not allowed any more is not an answer.
        said = "" if _wants_more(result) else without_thinking(result.text)
        output = self._answer(task, said)
        return output, None if output.strip() else self._why_empty(result)

    def _why_empty(self, result: ToolLoopResult) -> str:
        if _wants_more(result):
            return f"no answer after {result.turns} turns: the model still wanted to use tools"
        if result.stop == "max_tokens":
            return f"no answer within {self.settings.max_tokens} tokens (agent option max_tokens)"
        if result.text.strip():
            return "the model thought but gave no answer"
        return "the model's answer was empty"


class _Counting:
    """A model that adds up the tokens of one task."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self.tokens = {"input_tokens": 0.0, "output_tokens": 0.0}

    @property
    def name(self) -> str:
        return self._model.name

    def complete(self, request: Request) -> Completion:
        completion = self._model.complete(request)
        self.tokens["input_tokens"] += completion.usage.input_tokens
        self.tokens["output_tokens"] += completion.usage.output_tokens
        return completion


def without_thinking(text: str) -> str:
    """``text`` without a ``<think>`` block at its start, closed or not, and without the end of one
    whose start was part of the provider's prompt.

    >>> without_thinking("<think>Day first.</think> 2024-04-03")
    '2024-04-03'
    """
    while found := _THINKING.match(text) or _UNFINISHED.match(text):
        text = text[found.end() :]
    return text.strip()


def as_dict(message: Message) -> dict[str, Any]:
    """A turn of a conversation as plain data, empty parts left out."""
    calls = [
        {"id": call.id, "name": call.name, "arguments": _plain(call.arguments) or call.raw}
        for call in message.tool_calls
    ]
    results = [
        {"call_id": result.call_id, "content": result.content, "is_error": result.is_error}
        for result in message.tool_results
    ]
    turn = {"role": message.role, "content": message.content}
    return turn | {k: v for k, v in (("tool_calls", calls), ("tool_results", results)) if v}


def _plain(arguments: Mapping[str, Any] | None) -> dict[str, Any] | None:
    return None if arguments is None else dict(arguments)


def _wants_more(result: ToolLoopResult) -> bool:
    return bool(result.messages and result.messages[-1].tool_calls)
