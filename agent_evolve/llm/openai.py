"""OpenAI, and every server that speaks its chat protocol (vLLM, Ollama, llama.cpp, Groq, ...)."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from ..errors import ConfigurationError, ModelError
from .chat_format import from_chat, to_chat
from .failures import Service, is_blocked, known_models, missing_extra, transport_errors
from .types import Completion, Request

OFFICIAL = "https://api.openai.com/v1"
NO_KEY = "none"
LIMIT_NAMES = ("max_completion_tokens", "max_tokens")

_NOT_TAKEN = re.compile(
    r"unsupported|not supported|unknown|unrecognized|not permitted", re.IGNORECASE
)


class OpenAIModel:
    """A model behind chat completions.

    Args:
        model: the model's name. ``NAME@URL`` names the server as well:
            ``openai:qwen@http://127.0.0.1:8080/v1``.
        base_url: the server; else the ``@URL``, else ``OPENAI_BASE_URL``, else OpenAI itself.
        api_key: else ``OPENAI_API_KEY`` for OpenAI and ``OPENAI_BASE_URL``. A server named by
            ``@URL`` or ``base_url`` gets ``OPENAI_COMPATIBLE_API_KEY`` instead, or no key: the key
            for one service is never sent to another.
        timeout: seconds for one answer. max_retries: of the SDK, which honours ``Retry-After``.

    A temperature that the model refuses is left out from then on; so is ``max_completion_tokens``
    in favour of ``max_tokens``, and the other way round.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout: float = 600.0,
        max_retries: int = 4,
    ) -> None:
        try:
            import openai
        except ImportError as error:
            raise missing_extra("openai", "openai", error) from error
        self._sdk = openai
        self._model, _, url = model.rpartition("@") if "@http" in model else (model, "", "")
        named_url = base_url or url
        self._base_url = _checked(named_url or os.environ.get("OPENAI_BASE_URL") or OFFICIAL)
        key_name = "OPENAI_COMPATIBLE_API_KEY" if named_url else "OPENAI_API_KEY"
        official = self._base_url.rstrip("/") == OFFICIAL
        if official:
            key_name = "OPENAI_API_KEY"
        key = api_key or os.environ.get(key_name)
        if official and not key:
            raise ConfigurationError(
                f"model 'openai:{self._model}' needs a key and OPENAI_API_KEY is not set",
                fix="export OPENAI_API_KEY=sk-...  (from https://platform.openai.com/api-keys)",
            )
        self._client = openai.OpenAI(
            api_key=key or NO_KEY, base_url=self._base_url, timeout=timeout, max_retries=max_retries
        )
        self._official = official
        self._limit_name = LIMIT_NAMES[0 if official else 1]
        self._refused: set[str] = set()
        self._send_temperature = True
        self._service = Service(
            label="OpenAI" if official else self._base_url,
            model=self._model,
            key_fix=f"set a key that works: export {key_name}=...",
            model_fix="its models are listed by GET " + self._base_url.rstrip("/") + "/models",
            secrets=(key,) if key else (),
        )

    @property
    def name(self) -> str:
        return f"openai:{self._model}" + ("" if self._official else f"@{self._base_url}")

    def complete(self, request: Request) -> Completion:
        sdk = self._sdk
        try:
            body = self._create(request)
        except sdk.APIStatusError as error:
            if error.status_code == 400 and is_blocked(error.message):
                return Completion("", stop_reason="refusal", raw={"error": error.message})
            raise self._refusal(error) from error
        except (sdk.OpenAIError, ValueError, AttributeError, *transport_errors()) as error:
            raise self._service.broken(error) from error
        if not isinstance(body, dict):  # a page that is not JSON comes back as text
            raise ModelError(
                f"{self._service.label} answered with something that is not JSON: {body[:200]!r}",
                fix=f"is {self._base_url} the address of its API? It often ends in /v1",
            )
        return from_chat(body, request)

    def _create(self, request: Request) -> Any:
        """One answer, with the parameters this model takes; each is learned at most once."""
        while True:
            options: dict[str, Any] = {**to_chat(request), self._limit_name: request.max_tokens}
            if request.temperature is not None and self._send_temperature:
                options["temperature"] = request.temperature
            try:
                # Typing what is sent and received takes the SDK longer than the rest of the call.
                return self._client.post(
                    "/chat/completions", body={"model": self._model, **options}, cast_to=object
                )
            except self._sdk.BadRequestError as error:
                if not self._adapt(error.message, options):
                    raise

    def _adapt(self, message: str, sent: dict[str, Any]) -> bool:
        """Whether a refused request is worth sending again in another form."""
        if "temperature" in message and "temperature" in sent:
            self._send_temperature = False
            return True
        used, other = LIMIT_NAMES if LIMIT_NAMES[0] in sent else LIMIT_NAMES[::-1]
        if _NOT_TAKEN.search(message) and used in message and other not in self._refused:
            self._refused.add(used)
            self._limit_name = other
            return True
        return False

    def _refusal(self, error: Any) -> Exception:
        service = self._service
        if error.status_code == 404 and self._official:
            service = replace(service, known_models=known_models("openai"))
        return service.refusal(error.status_code, f"{error.message} {error.code or ''}")


def _checked(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigurationError(
            f"{url!r} is not the address of a server",
            fix="write it as http://HOST:PORT/v1",
        )
    if parts.username or parts.password:
        raise ConfigurationError(
            f"the address of {parts.hostname} holds a user name or password",
            fix="take it out and export OPENAI_COMPATIBLE_API_KEY=... instead",
        )
    return url
