"""What coding agents print, read into an answer, its cost, and how it failed. Pure.

Formats: one JSON object or a stream of them from ``claude -p --output-format json`` or
``stream-json``; the event stream of ``codex exec --json``.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from ..llm.tool_loop import clip

Format = Literal["text", "claude-json", "codex-jsonl", "file"]
Kind = Literal["", "agent", "outside", "person"]

_PERSON = re.compile(
    r"not logged in|please run /login|login required|codex login|failed to authenticate|"
    r"authentication_error|invalid (?:x-)?api.key|incorrect api key|missing api key|"
    r"api key not (?:found|valid)|401 unauthorized|\bstatus(?: code)?\W{0,3}40[13]\b|"
    r"api error\W{0,3}40[13]\b|oauth token (?:has )?(?:expired|revoked)|"
    r"credit balance is too low|insufficient_quota|check your plan and billing|"
    r"issue with the selected model|model_not_found|model is not supported",
    re.IGNORECASE,
)
_OUTSIDE = re.compile(
    r"rate.?limit|too many requests|overloaded|usage limit|quota exceeded|high demand|"
    r"service unavailable|bad gateway|gateway time-?out|internal server error|"
    r"(?:\bstatus(?: code)?|api error|\bhttp(?:/[\d.]+)?)\W{0,3}(?:408|429|5\d\d)\b|"
    r"\((?:429|5\d\d)\)|connection (?:refused|reset|error|failed|closed|timed out)|"
    r"stream disconnected|request timed out|waiting for network|network is unreachable|"
    r"\be(?:connreset|connrefused|notfound|timedout|ai_again)\b|"
    r"failed to lookup address|name or service not known|temporary failure in name resolution",
    re.IGNORECASE,
)
"""Words of the programs themselves; never looked for in what a task or an answer says."""
_OWN_LIMITS = "error_max"
"""Claude ends with these when the agent used up its turns, its money or its attempts."""
_STACK_LINE = re.compile(r"\s+at \S")
"""A line of a stack trace, which programs print below the words that say what is wrong."""
_STEP_CHARS = 2_000
_MOST_STEPS = 200


@dataclass(frozen=True, slots=True)
class Reading:
    """What a program's output says.

    ``error`` is ``""`` when it ended well; ``kind`` says whose failure it is: the agent's own, the
    ``outside``'s (it says nothing about the agent), or one that a ``person`` has to mend, such as a
    missing login.
    """

    answer: str = ""
    error: str = ""
    kind: Kind = ""
    metrics: Mapping[str, float] = field(default_factory=dict)
    steps: list[dict[str, Any]] = field(default_factory=list)
    session: str = ""


def read_output(form: Format, out: str, err: str, exit_code: int, truncated: int = 0) -> Reading:
    """Read what a program printed. ``text`` and ``file`` take the output as it is."""
    if form == "claude-json":
        return _claude(out, err, exit_code, truncated)
    if form == "codex-jsonl":
        return _codex(out, err, exit_code, truncated)
    if exit_code:
        return _failed(f"exit code {exit_code}: {_tail(err) or _tail(out)}", _tail(err))
    return Reading(answer=out.strip())


def _claude(out: str, err: str, exit_code: int, truncated: int) -> Reading:
    result: Mapping[str, Any] | None = None
    events = list(objects(out))
    for event in events:
        if event.get("type") == "result" or (result is None and "result" in event):
            result = event
    if result is None:
        return _no_result("claude", out, err, exit_code, truncated)
    usage = mapping(result.get("usage"))
    cached = ("cache_creation_input_tokens", "cache_read_input_tokens")
    metrics = _numbers(
        usd=result.get("total_cost_usd"),
        turns=result.get("num_turns"),
        input_tokens=sum(_number(usage.get(key)) or 0.0 for key in ("input_tokens", *cached)),
        output_tokens=usage.get("output_tokens"),
    )
    answer = result.get("result")
    if result.get("structured_output") is not None:
        answer = json.dumps(result["structured_output"], ensure_ascii=False)
    text = answer if isinstance(answer, str) else "" if answer is None else json.dumps(answer)
    session = str(result.get("session_id") or "")
    steps = (_claude_steps(events) + _denied(result))[:_MOST_STEPS]
    subtype = str(result.get("subtype") or "")
    if result.get("is_error") or subtype.startswith("error") or exit_code:
        errors = result.get("errors")
        said = text or (json.dumps(errors) if errors else "") or _tail(err)
        named = "" if subtype == "success" else subtype
        words = ": ".join(part for part in (named, said) if part) or f"exit code {exit_code}"
        failed = _failed(words, "" if subtype.startswith(_OWN_LIMITS) else said)
        kind = _kind_of_status(result.get("api_error_status")) or failed.kind
        return Reading("", words, kind, metrics, steps, session)
    return Reading(text.strip(), metrics=metrics, steps=steps, session=session)


def _kind_of_status(status: Any) -> Kind:
    """Whose failure an HTTP status tells of; ``""`` when only the words can tell: 400 is a prompt
    that is too long, and an account without money."""
    if not isinstance(status, int) or isinstance(status, bool):
        return ""
    if status in (401, 402, 403, 404):
        return "person"
    return "outside" if status in (408, 409, 429) or status >= 500 else ""


def _denied(result: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Tools that Claude wanted and was not allowed to use."""
    denials = result.get("permission_denials")
    return [
        {
            "tool": str(denial.get("tool_name")),
            "action": clip(json.dumps(denial.get("tool_input"), ensure_ascii=False), _STEP_CHARS),
            "output": "permission denied",
        }
        for denial in (denials if isinstance(denials, list) else [])
        if isinstance(denial, dict)
    ]


def _claude_steps(events: list[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Tool uses of a stream, each with what the tool answered where the stream tells it."""
    steps: list[dict[str, Any]] = []
    asked: dict[str, dict[str, Any]] = {}
    for event in events:
        content = mapping(event.get("message")).get("content")
        for block in content if isinstance(content, list) else []:
            kind = mapping(block).get("type")
            if kind == "tool_use":
                action = json.dumps(block.get("input"), ensure_ascii=False)
                step = {"tool": str(block.get("name")), "action": clip(action, _STEP_CHARS)}
                steps.append(step)
                asked[str(block.get("id"))] = step
            elif kind == "tool_result" and str(block.get("tool_use_id")) in asked:
                told = clip(block_text(block.get("content")), _STEP_CHARS)
                asked[str(block.get("tool_use_id"))]["output"] = told
    return steps


def block_text(content: Any) -> str:
    """The text of a tool's result, which is a text or a list of blocks."""
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else []
    return "\n".join(str(mapping(block).get("text") or "") for block in blocks)


def _codex(out: str, err: str, exit_code: int, truncated: int) -> Reading:
    answer, error, session, finished = "", "", "", False
    totals = {"input_tokens": 0.0, "output_tokens": 0.0, "turns": 0.0}
    steps: list[dict[str, Any]] = []
    for event in objects(out):
        kind = event.get("type")
        if kind == "thread.started":
            session = str(event.get("thread_id") or "")
        elif kind == "item.completed":
            item = mapping(event.get("item"))
            if item.get("type") == "agent_message":
                answer = str(item.get("text") or "")
            else:
                steps += _codex_step(item)
        elif kind == "turn.completed":
            finished, error = True, ""
            usage = mapping(event.get("usage"))
            totals["turns"] += 1
            for key in ("input_tokens", "output_tokens"):
                totals[key] += _number(usage.get(key)) or 0.0
        elif kind in ("turn.failed", "error"):
            told = event.get("error")
            inner = mapping(told).get("message") if isinstance(told, dict) else told
            error = str(inner or event.get("message") or kind)
    if not finished and not error:
        return _no_result("codex", out, err, exit_code, truncated)
    if error or exit_code:
        words = error or f"exit code {exit_code}: {_tail(err)}"
        failed = _failed(words, words)
        return Reading("", failed.error, failed.kind, totals, steps[:_MOST_STEPS], session)
    return Reading(answer.strip(), metrics=totals, steps=steps[:_MOST_STEPS], session=session)


def _codex_step(item: Mapping[str, Any]) -> list[dict[str, Any]]:
    kind = str(item.get("type") or "")
    action = item.get("command") or item.get("query") or item.get("tool") or item.get("changes")
    if not kind or kind == "reasoning" or action is None:
        return []
    text = action if isinstance(action, str) else json.dumps(action, ensure_ascii=False)
    step: dict[str, Any] = {"tool": kind, "action": clip(text, _STEP_CHARS)}
    if item.get("aggregated_output"):
        step["output"] = clip(str(item["aggregated_output"]), _STEP_CHARS)
    return [step]


def _no_result(who: str, out: str, err: str, exit_code: int, truncated: int) -> Reading:
    """The program ended without saying how: its words decide whose failure that is."""
    if truncated:
        return _failed(f"{who} printed too much: {truncated:,} bytes of its output are lost", "")
    plain = "\n".join(line for line in out.splitlines() if not line.lstrip().startswith(("{", "[")))
    said = _tail(_without_stack(f"{plain.strip()}\n{err.strip()}"))
    words = said or _tail(out) or "no words"
    return _failed(f"{who} ended with exit code {exit_code} and no result: {words}", said)


def _failed(words: str, said: str) -> Reading:
    if _PERSON.search(said):
        return Reading(error=words, kind="person")
    return Reading(error=words, kind="outside" if _OUTSIDE.search(said) else "agent")


def objects(text: str) -> Iterator[Mapping[str, Any]]:
    """JSON objects of a text: the whole of it, a list, or one a line; other lines are skipped."""
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError):
        whole = None
    if isinstance(whole, dict):
        yield whole
        return
    if isinstance(whole, list):
        yield from (item for item in whole if isinstance(item, dict))
        return
    # Only "\n" ends a line of JSON: its texts may hold U+2028 and what else splitlines() splits at.
    for line in text.split("\n"):
        if line.lstrip().startswith("{"):
            try:
                value = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(value, dict):
                yield value


def mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _number(value: Any) -> float | None:
    """A count or an amount; ``None`` for what can be neither (NaN, below 0, beyond a float)."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) and number >= 0 else None


def _numbers(**values: Any) -> dict[str, float]:
    read = {name: _number(value) for name, value in values.items()}
    return {name: number for name, number in read.items() if number is not None}


def _without_stack(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if not _STACK_LINE.match(line))


def _tail(text: str) -> str:
    return text.strip()[-500:]
