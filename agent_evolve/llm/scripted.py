"""A model that answers from a script: for tests, demos, and runs without a key."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Lock

from ..errors import ModelError
from .sizes import rough_usage
from .types import Completion, Request, Resumable, ToolCall, Usage

Answer = str | Completion | BaseException | Sequence[ToolCall]
"""A text, a whole completion, an exception to raise, or tool calls to make."""

Script = Iterable[Answer] | Callable[[Request], Answer]


class ScriptedModel:
    """Answers each request with the next answer of a script, or with what a function returns.

    Args:
        script: a list of answers, handed out in the order in which requests arrive; or a function
            from request to answer, which is the form to use when several threads ask; or the path
            of a YAML or JSON file (see ``script_file``).
        name: shown in ledgers and traces as ``scripted:NAME``.

    Attributes:
        requests: every request received, in order.

    Usage is one token for each four characters, and at least one, unless a ``Completion`` brings
    its own, so that a ledger over a scripted model counts. Thread-safe.

        model = ScriptedModel([[ToolCall("1", "add", {"a": 1, "b": 2})], "The sum is 3."])
    """

    def __init__(self, script: Script | str | Path, *, name: str = "script") -> None:
        if isinstance(script, (str, Path)):
            from .script_file import read_script

            name = str(script)
            script = read_script(Path(script))
        self._name = name
        self._answer: Callable[[Request], Answer]
        self._answer = script if callable(script) else Queue(script)
        self._lock = Lock()
        self.requests: list[Request] = []

    @property
    def name(self) -> str:
        return f"scripted:{self._name}"

    def complete(self, request: Request) -> Completion:
        """The next answer.

        Raises ``ModelError`` when the script has run out, and whatever exception the script holds.
        """
        with self._lock:
            self.requests.append(request)
        answer = self._answer(request)
        if isinstance(answer, BaseException):
            raise answer
        completion = _as_completion(answer)
        if completion.usage == Usage():
            completion = replace(completion, usage=rough_usage(request, completion))
        return completion

    def resume(self, asked: Iterable[Request]) -> None:
        """Go on after the answers that these requests took, unless this object is further on.

        A function is left as it is: it must answer by what is asked.
        """
        if isinstance(self._answer, Resumable):
            self._answer.resume(asked)


class Queue:
    """Answers in order."""

    def __init__(self, answers: Iterable[Answer]) -> None:
        self._answers = list(answers)
        self._next = 0
        self._lock = Lock()

    def __call__(self, request: Request) -> Answer:
        with self._lock:
            if self._next >= len(self._answers):
                last = request.messages[-1].content if request.messages else ""
                raise ModelError(
                    f"the script of {len(self._answers)} answers has run out; "
                    f"the request ended with {last[-200:]!r}",
                    fix="add answers, or give ScriptedModel a function instead of a list",
                )
            self._next += 1
            return self._answers[self._next - 1]

    def resume(self, asked: Iterable[Request]) -> None:
        taken = sum(1 for _ in asked)
        with self._lock:
            self._next = max(self._next, min(taken, len(self._answers)))


def _as_completion(answer: Answer) -> Completion:
    if isinstance(answer, Completion):
        return answer
    if isinstance(answer, str):
        return Completion(answer)
    if isinstance(answer, Sequence) and answer:
        calls = tuple(call for call in answer if isinstance(call, ToolCall))
        if len(calls) == len(answer):
            return Completion("", tool_calls=calls, stop_reason="tool_use")
    raise TypeError(
        f"a script answers with str, Completion, exceptions or lists of ToolCall, not {answer!r}"
    )
