"""llama.cpp's server in this process: one for each file and setting, shared by all who ask for it.

It answers calls in process, and HTTP on a loopback port (OpenAI's and Anthropic's protocols) for
those who have its key.
"""

from __future__ import annotations

import atexit
import os
import secrets
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from threading import Lock
from typing import Any

from ..errors import ConfigurationError
from .failures import missing_extra
from .gguf import read_facts

MAX_CONTEXT = 16_384
ERRORS_ONLY = 1


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """What makes one server different from another.

    Attributes:
        path: the GGUF file.
        context: tokens of prompt and answer together, shared by the requests under way.
        threads: of the CPU.
        template: a Jinja chat template; empty for the file's own.
    """

    path: Path
    context: int
    threads: int
    template: str = ""


class LocalServer:
    """A running server. Raises ``ConfigurationError`` when the file can't be loaded.

    Attributes:
        address: ``http://127.0.0.1:PORT``; its OpenAI protocol lies under ``/v1``.
        api_key: what HTTP requests must bring. It is random, so that no other program on this
            machine (a web page in a browser, for one) can use the server.
    """

    def __init__(self, settings: ServerSettings) -> None:
        try:
            import xllamacpp
        except ImportError as error:
            raise missing_extra("xllamacpp", "local", error) from error
        self.api_key = secrets.token_urlsafe(24)
        params = xllamacpp.CommonParams()
        params.model.path = str(settings.path)
        params.n_ctx = settings.context
        params.n_parallel = 2  # two prompts stay cached, such as the agent's and the engine's
        params.kv_unified = True  # and either may use the whole context
        params.use_jinja = True
        params.chat_template = settings.template
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = settings.threads
        params.hostnames, params.port = ["127.0.0.1"], 0
        params.api_keys = [self.api_key]
        params.verbosity = ERRORS_ONLY
        try:
            self._server: Any = xllamacpp.Server(params)
        except RuntimeError as error:
            raise ConfigurationError(
                f"llama.cpp can't load {settings.path}: {error}",
                fix="its own lines above say why: too little memory, a broken file, or a model "
                "newer than the library (pip install -U xllamacpp)",
            ) from error
        self.address = str(self._server.listening_address)

    def chat(self, body: dict[str, Any]) -> dict[str, Any]:
        """One chat completion in process; ``{"error": {...}}`` when it is refused."""
        answer: dict[str, Any] = self._server.handle_chat_completions(body)
        return answer

    def close(self) -> None:
        """Stop the server and free its memory."""
        self._server = None


_servers: dict[tuple[int, ServerSettings], LocalServer] = {}
_lock = Lock()


def shared_server(settings: ServerSettings) -> LocalServer:
    """The server of this process for these settings, started on first use, closed at exit."""
    key = (os.getpid(), settings)  # its threads don't survive a fork
    with _lock:
        if key not in _servers:
            if not _servers:
                atexit.register(_close_all)
            _servers[key] = LocalServer(settings)
        return _servers[key]


def _close_all() -> None:
    with _lock:
        for (pid, _), server in _servers.items():
            if pid == os.getpid():
                server.close()
        _servers.clear()


def settings_for(
    path: Path, *, context: int | None, threads: int | None, template: Path | None
) -> ServerSettings:
    """Settings with defaults filled in from the file's header and this machine."""
    facts = read_facts(path)
    trained = facts.get(f"{facts.get('general.architecture')}.context_length", MAX_CONTEXT)
    return ServerSettings(
        path=path.resolve(),
        context=context or min(int(trained), MAX_CONTEXT),
        threads=threads or len(_cpus()),
        template=_template(template, facts),
    )


def _template(path: Path | None, facts: dict[str, Any]) -> str:
    """The template asked for; else ours for Qwen-Coder, whose own hides its tool calls."""
    if path is not None:
        try:
            return path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigurationError(f"can't read the chat template {path}: {error}") from error
    names = f"{facts.get('general.basename', '')} {facts.get('general.name', '')}".lower()
    if facts.get("general.architecture") == "qwen2" and "coder" in names:
        return qwen_coder_template()
    return ""


@cache
def qwen_coder_template() -> str:
    return (files(__package__) / "templates" / "qwen-coder.jinja").read_text(encoding="utf-8")


def _cpus() -> set[int]:
    if hasattr(os, "sched_getaffinity"):
        return os.sched_getaffinity(0)
    return set(range(os.cpu_count() or 1))
