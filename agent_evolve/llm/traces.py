"""Every prompt and raw answer, kept whole in a file named by its call id."""

from __future__ import annotations

import base64
import binascii
import errno
import hashlib
import json
import os
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from .types import Completion, Message, Request, ToolCall, ToolResult, Usage

_SECRET_NAME = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|CREDENTIALS?)$", re.IGNORECASE)


def new_call_id() -> str:
    """A name that is unique, sorts by time, and is safe in a file name on any platform."""
    return f"{_stamp(datetime.now(tz=UTC))}-{secrets.token_hex(3)}"


def first_id_at(seconds: float) -> str:
    """What sorts before every call id made at this time (seconds since 1970) or later."""
    return _stamp(datetime.fromtimestamp(seconds, tz=UTC))


def _stamp(when: datetime) -> str:
    return f"{when:%Y%m%d-%H%M%S-%f}"


def scrub(text: str, environ: Mapping[str, str] | None = None) -> str:
    """``text`` with the values of secret environment variables replaced by their names.

    Keys never enter a request; this catches the one that a server echoes in an error or that a
    tool printed. Values under 12 characters are left, since they would match by chance.
    """
    told = os.environ if environ is None else environ
    for name in filter(_SECRET_NAME.search, told):
        value = told[name]
        if len(value) >= 12 and value in text:
            text = text.replace(value, f"<{name}>")
    return text


def write_trace(
    folder: Path, record: Mapping[str, Any], request: Request, completion: Completion | None
) -> Path:
    """Write ``<folder>/<call_id>.json`` by a single ``write``; returns its path.

    A killed process loses none. After a power cut the newest may be damaged, which costs its call
    once more and nothing else; waiting for the disk at every call would cost every run more.

    ``record`` is the ledger's account of the call; the request and the answer are added to it.
    """
    whole = {**record, "request": _without_raw(request), "completion": completion}
    text = scrub(json.dumps(whole, ensure_ascii=False, default=_plain_value))
    path = folder / f"{record['call_id']}.json"
    try:
        _write(path, f"{text}\n".encode(errors="backslashreplace"))
    except FileNotFoundError:
        folder.mkdir(parents=True, exist_ok=True)
        _write(path, f"{text}\n".encode(errors="backslashreplace"))
    return path


def _write(path: Path, data: bytes) -> None:
    """All of it or, on a full disk, no file."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
    try:
        if os.write(file, data) != len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
    except OSError:
        path.unlink(missing_ok=True)
        raise
    finally:
        os.close(file)


@dataclass(frozen=True, slots=True)
class Trace:
    """What a trace file holds: the ledger's record, the request, and the answer unless the call
    failed. The request has no tools and no raw turns: enough to ask a script."""

    record: Mapping[str, Any]
    request: Request
    completion: Completion | None


def read_trace(folder: Path, call_id: str) -> Trace | None:
    """A call's trace, or ``None`` where there is none or it is damaged."""
    try:
        whole = json.loads((folder / f"{call_id}.json").read_bytes())
        request, answer = whole.pop("request"), whole.pop("completion")
        if whole["call_id"] != call_id:
            return None
        completion = None if answer is None else _completion(answer)
        return Trace(whole, _request(request), completion)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def traced_ids(folder: Path) -> list[str]:
    """The ids of all calls that have a trace, oldest first."""
    try:
        names = os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []
    return sorted(name.removesuffix(".json") for name in names if name.endswith(".json"))


def digest(model: str, request: Request) -> str:
    """A short hash of all that decides an answer: the model's name and the whole request."""
    asked = json.dumps([model, _without_raw(request)], sort_keys=True, default=_plain_value)
    return hashlib.sha256(asked.encode()).hexdigest()[:32]


def _completion(data: Mapping[str, Any]) -> Completion:
    return Completion(
        text=data["text"],
        tool_calls=tuple(_call(call) for call in data["tool_calls"]),
        stop_reason=data["stop_reason"],
        usage=Usage(**data["usage"]),
        raw=_with_bytes(data["raw"]),
        call_id=data["call_id"],
    )


def _request(data: Mapping[str, Any]) -> Request:
    return Request([_message(turn) for turn in data["messages"]], system=data["system"])


def _message(data: Mapping[str, Any]) -> Message:
    return Message(
        data["role"],
        data["content"],
        tuple(_call(call) for call in data["tool_calls"]),
        tuple(
            ToolResult(result["call_id"], result["content"], result["is_error"])
            for result in data["tool_results"]
        ),
    )


def _call(data: Mapping[str, Any]) -> ToolCall:
    return ToolCall(data["id"], data["name"], data["arguments"], data["raw"])


def _without_raw(request: Request) -> Request:
    """The request without earlier raw answers: each is whole in its own call's trace already."""
    return replace(request, messages=[replace(turn, raw=None) for turn in request.messages])


_BYTES = "$bytes"


def _plain_value(value: Any) -> Any:
    """For what JSON has no word for: our values, mappings, bytes of a redacted thinking block."""
    if is_dataclass(value):
        return {part.name: getattr(value, part.name) for part in fields(value)}
    if isinstance(value, bytes):
        return {_BYTES: base64.b64encode(value).decode()}
    return dict(value) if isinstance(value, Mapping) else str(value)


def _with_bytes(value: Any) -> Any:
    """JSON with the bytes that ``_plain_value`` put into words."""
    if isinstance(value, list):
        return [_with_bytes(item) for item in value]
    if not isinstance(value, dict):
        return value
    if value.keys() == {_BYTES}:
        try:
            return base64.b64decode(value[_BYTES], validate=True)
        except (binascii.Error, TypeError):
            return value
    return {key: _with_bytes(item) for key, item in value.items()}
