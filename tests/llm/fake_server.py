"""A provider on this machine: real HTTP, the real protocols, answers from a script.

    with FakeProvider([Answer.text("hello"), Answer.status(429, retry_after=0), ...]) as provider:
        model = OpenAIModel("any", base_url=provider.url + "/v1", api_key="test-key")

The protocol follows from the path that the SDK asks for; `provider.requests` keeps what it sent.
"""

from __future__ import annotations

import json
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import unquote


@dataclass(frozen=True)
class Answer:
    """One answer. ``calls`` are (id, name, arguments as JSON text or object)."""

    content: str = ""
    calls: tuple[tuple[str, str, Any], ...] = ()
    stop: str = ""
    code: int = 200
    error: str = ""
    error_type: str = "error"
    headers: dict[str, str] = field(default_factory=dict)
    cut: bool = False
    body: dict[str, Any] | bytes | None = None
    thinking: str = ""
    delay: float = 0.0

    @classmethod
    def text(cls, content: str, **more: Any) -> Self:
        return cls(content=content, **more)

    @classmethod
    def tool(cls, name: str, arguments: Any, call_id: str = "call_1", **more: Any) -> Self:
        return cls(calls=((call_id, name, arguments),), **more)

    @classmethod
    def status(cls, code: int, error: str = "refused", *, error_type: str = "error") -> Self:
        """An error; the SDKs' own waiting is cut short by Retry-After."""
        return cls(
            code=code,
            error=error,
            error_type=error_type,
            headers={"Retry-After": "0", "retry-after-ms": "1"},
        )


@dataclass(frozen=True)
class Received:
    path: str
    headers: dict[str, str]
    body: dict[str, Any]


class FakeProvider:
    """Answers in order; the last answer of the script is repeated. ``usage`` is 100 in, 20 out."""

    def __init__(self, script: list[Answer]) -> None:
        self._script = list(script)
        self._lock = threading.Lock()
        self.requests: list[Received] = []
        provider = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])) or b"{}")
                path = unquote(self.path)
                answer = provider._next(Received(path, dict(self.headers.items()), body))
                _respond(self, answer, path, body)

            def log_message(self, format: str, *args: Any) -> None:
                """Tests print nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.01,), daemon=True
        )

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _next(self, received: Received) -> Answer:
        with self._lock:
            self.requests.append(received)
            return self._script.pop(0) if len(self._script) > 1 else self._script[0]


def _respond(handler: BaseHTTPRequestHandler, answer: Answer, path: str, body: Any) -> None:
    time.sleep(answer.delay)
    protocol = _protocol(path)
    headers = dict(answer.headers)
    content_type = "application/json"
    if isinstance(answer.body, bytes):
        data = answer.body
        content_type = "text/event-stream" if body.get("stream") else "text/html"
    elif answer.code >= 400:
        data = json.dumps(_error(protocol, answer, headers)).encode()
    elif protocol == "anthropic" and body.get("stream"):
        data, content_type = _anthropic_events(answer), "text/event-stream"
    else:
        data = json.dumps(answer.body or _ANSWERS[protocol](answer)).encode()
    handler.send_response(answer.code)
    for name, value in headers.items():
        handler.send_header(name, value)
    handler.send_header("Content-Type", content_type)
    handler.send_header("Content-Length", str(len(data)))
    handler.end_headers()
    handler.wfile.write(data[: len(data) // 2] if answer.cut else data)
    if answer.cut:
        handler.close_connection = True


def _protocol(path: str) -> str:
    if path.endswith("/messages"):
        return "anthropic"
    if path.endswith("/chat/completions"):
        return "openai"
    if path.startswith("/model/") and path.endswith("/converse"):
        return "bedrock"
    raise ValueError(f"no protocol of ours has the path {path}")


def _error(protocol: str, answer: Answer, headers: dict[str, str]) -> dict[str, Any]:
    if protocol == "bedrock":
        headers["x-amzn-ErrorType"] = answer.error_type
        return {"message": answer.error}
    error = {"type": answer.error_type, "message": answer.error}
    if protocol == "anthropic":
        return {"type": "error", "error": error}
    return {"error": {**error, "code": answer.error_type}}


def _openai(answer: Answer) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": answer.content or None}
    if answer.calls:
        message["tool_calls"] = [
            {
                "id": call_id,
                "type": "function",
                "function": {"name": name, "arguments": _as_text(arguments)},
            }
            for call_id, name, arguments in answer.calls
        ]
    stop = answer.stop or ("tool_calls" if answer.calls else "stop")
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "fake",
        "choices": [{"index": 0, "finish_reason": stop, "message": message}],
        "usage": {
            "prompt_tokens": 100,
            "completion_tokens": 20,
            "total_tokens": 120,
            "prompt_tokens_details": {"cached_tokens": 40},
        },
    }


def _anthropic(answer: Answer) -> dict[str, Any]:
    content: list[dict[str, Any]] = []
    if answer.thinking:
        content.append({"type": "thinking", "thinking": answer.thinking, "signature": "sig=="})
    if answer.content:
        content.append({"type": "text", "text": answer.content})
    for call_id, name, arguments in answer.calls:
        content.append({"type": "tool_use", "id": call_id, "name": name, "input": arguments})
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "fake",
        "content": content,
        "stop_reason": answer.stop or ("tool_use" if answer.calls else "end_turn"),
        "stop_sequence": None,
        "usage": {
            "input_tokens": 50,
            "output_tokens": 20,
            "cache_read_input_tokens": 40,
            "cache_creation_input_tokens": 10,
        },
    }


def _anthropic_events(answer: Answer) -> bytes:
    whole = _anthropic(answer)
    start = {**whole, "content": [], "stop_reason": None}
    events: list[dict[str, Any]] = [{"type": "message_start", "message": start}]
    for index, block in enumerate(whole["content"]):
        events += _block_events(index, block)
    delta = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    events.append({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 20}})
    events.append({"type": "message_stop"})
    if answer.stop == "broken off":
        events = events[:-2]
    lines = (f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
    return "".join(lines).encode()


def _block_events(index: int, block: dict[str, Any]) -> list[dict[str, Any]]:
    """A block in two halves of its text, as real ones come in many."""
    kind = block["type"]
    if kind == "tool_use":
        empty, name, whole = {**block, "input": {}}, "partial_json", _as_text(block["input"])
        deltas = [{"type": "input_json_delta", name: half} for half in _halves(whole)]
    else:
        empty = {**block, kind: ""}
        deltas = [{"type": f"{kind}_delta", kind: half} for half in _halves(block[kind])]
        if "signature" in block:
            empty["signature"] = ""
            deltas.append({"type": "signature_delta", "signature": block["signature"]})
    return [
        {"type": "content_block_start", "index": index, "content_block": empty},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def _halves(text: str) -> tuple[str, str]:
    return text[: len(text) // 2], text[len(text) // 2 :]


def _bedrock(answer: Answer) -> dict[str, Any]:
    content: list[dict[str, Any]] = []
    if answer.thinking:
        text = {"text": answer.thinking, "signature": "sig=="}
        content.append({"reasoningContent": {"reasoningText": text}})
    if answer.content:
        content.append({"text": answer.content})
    for call_id, name, arguments in answer.calls:
        content.append({"toolUse": {"toolUseId": call_id, "name": name, "input": arguments}})
    return {
        "output": {"message": {"role": "assistant", "content": content}},
        "stopReason": answer.stop or ("tool_use" if answer.calls else "end_turn"),
        "usage": {
            "inputTokens": 50,
            "outputTokens": 20,
            "totalTokens": 120,
            "cacheReadInputTokens": 40,
            "cacheWriteInputTokens": 10,
        },
        "metrics": {"latencyMs": 1},
    }


def _as_text(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


_ANSWERS = {"openai": _openai, "anthropic": _anthropic, "bedrock": _bedrock}
