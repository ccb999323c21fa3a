"""A GGUF model in this process: no key, no network, no cost."""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from .calls_in_text import call_in_text
from .chat_format import from_chat, to_chat
from .failures import Service, missing_extra
from .local_server import settings_for, shared_server
from .types import Completion, Request
from .weights import find


class LocalModel:
    """A model from a GGUF file, run by llama.cpp. Needs ``pip install "agent-evolver[local]"``.

    Args:
        model: a name that ``agent-evolve models list`` shows, or the path of a ``.gguf`` file.
        context: tokens of prompt and answer together; default the model's own, at most 16,384.
        threads: default the CPUs this process may use.
        template: a Jinja chat template to use instead of the file's own. Qwen2.5-Coder gets one
            of ours by itself, with which its tool calls are understood.
        seed: makes answers repeat, at any temperature, when requests come one at a time on one
            machine. Each prompt is then read anew: what is kept of earlier ones saves time but
            changes the rounding, and with it now and then a word, even at temperature 0.
            Default: a new seed each call, and earlier prompts are used.

    The file is loaded by the first call and shared by all models of this process over it. Requests
    wait for each other inside the server. Thread-safe.
    """

    def __init__(
        self,
        model: str,
        *,
        context: int | None = None,
        threads: int | None = None,
        template: str | Path | None = None,
        seed: int | None = None,
    ) -> None:
        if find_spec("xllamacpp") is None:
            raise missing_extra("xllamacpp", "local", ImportError("it is not installed"))
        self._model = model
        self._seed = seed
        self._settings = settings_for(
            find(model),
            context=context,
            threads=threads,
            template=None if template is None else Path(template),
        )
        self._service = Service(label="llama.cpp", model=model, key_fix="")

    @property
    def name(self) -> str:
        return f"local:{self._model}"

    def complete(self, request: Request) -> Completion:
        body: dict[str, Any] = {**to_chat(request), "max_tokens": request.max_tokens}
        if request.temperature is not None:
            body["temperature"] = request.temperature
        if self._seed is not None:
            body |= {"seed": self._seed, "cache_prompt": False}
        answer = shared_server(self._settings).chat(body)
        if "error" in answer:
            error = answer["error"]
            raise self._service.refusal(int(error.get("code") or 500), str(error.get("message")))
        completion = from_chat(answer, request)
        if completion.tool_calls or request.tool_choice == "none":
            return completion
        call = call_in_text(completion.text, [tool.name for tool in request.tools])
        if call is None:
            return completion
        call = replace(call, id=f"{answer.get('id', 'chat')}-0")
        return replace(completion, text="", tool_calls=(call,), stop_reason="tool_use")
