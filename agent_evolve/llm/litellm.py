"""Every provider that LiteLLM knows, by its own names: ``litellm:groq/llama-3.3-70b-versatile``."""

from __future__ import annotations

import os
from typing import Any

from ..errors import ConfigurationError
from .chat_format import from_chat, to_chat
from .failures import Service, is_blocked, missing_extra
from .types import Completion, Request


class LiteLLMModel:
    """A model behind LiteLLM. Needs the extra: ``pip install "agent-evolver[litellm]"``.

    A temperature that the model refuses is left out from then on.

    Args:
        model: LiteLLM's name, ``PROVIDER/MODEL``.
        api_key, base_url: else what LiteLLM reads from the provider's own environment variables.
        timeout: seconds for one answer. max_retries: made by LiteLLM.
    """

    def __init__(
        self,
        model: str,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        timeout: float = 600.0,
        max_retries: int = 4,
    ) -> None:
        # Without this it fetches a price list on import, and waits for it when offline.
        os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
        try:
            import litellm
            from openai import OpenAIError
        except ImportError as error:
            raise missing_extra("litellm", "litellm", error) from error
        litellm.suppress_debug_info = True
        litellm.drop_params = True  # what LiteLLM knows that a model doesn't take is left out
        self._sdk = litellm
        self._base_error = OpenAIError  # what each of LiteLLM's errors is
        self._model = model
        self._send_temperature = True
        self._options: dict[str, Any] = {"timeout": timeout, "max_retries": max_retries}
        if api_key:
            self._options["api_key"] = api_key
        if base_url:
            self._options["api_base"] = base_url
        self._require_provider()
        if not api_key and not base_url:
            self._require_key()
        self._service = Service(
            label="LiteLLM",
            model=model,
            key_fix="set the key that LiteLLM reads for this provider: "
            "https://docs.litellm.ai/docs/providers",
            model_fix="names are PROVIDER/MODEL: https://docs.litellm.ai/docs/providers",
            secrets=(api_key,) if api_key else (),
        )

    def _require_provider(self) -> None:
        try:
            self._sdk.get_llm_provider(self._model, api_base=self._options.get("api_base"))
        except self._sdk.exceptions.BadRequestError as error:
            raise ConfigurationError(
                f"LiteLLM knows no provider for the model {self._model!r}",
                fix="name it as litellm:PROVIDER/MODEL, such as "
                "litellm:groq/llama-3.3-70b-versatile",
            ) from error

    def _require_key(self) -> None:
        found = self._sdk.validate_environment(self._model)
        # It also lists settings that have defaults, such as the address of a local server.
        missing = [name for name in found.get("missing_keys") or () if name.endswith("_KEY")]
        if missing and not found.get("keys_in_environment"):
            raise ConfigurationError(
                f"model {self.name!r} needs a key and {missing[0]} is not set",
                fix=f"export {missing[0]}=...",
            )

    @property
    def name(self) -> str:
        return f"litellm:{self._model}"

    def complete(self, request: Request) -> Completion:
        errors = self._sdk.exceptions
        try:
            response = self._create(request).model_dump()
        except errors.ContentPolicyViolationError as error:
            return Completion("", stop_reason="refusal", raw={"error": str(error)})
        except errors.APIConnectionError as error:
            raise self._service.broken(error) from error
        except self._base_error as error:
            status = getattr(error, "status_code", None)
            if status is None:
                raise self._service.broken(error) from error
            if status == 400 and is_blocked(str(error)):
                return Completion("", stop_reason="refusal", raw={"error": str(error)})
            raise self._service.refusal(int(status), str(error)) from error
        return from_chat(response, request)

    def _create(self, request: Request) -> Any:
        while True:
            options = {**to_chat(request), "max_tokens": request.max_tokens, **self._options}
            if request.temperature is not None and self._send_temperature:
                options["temperature"] = request.temperature
            try:
                return self._sdk.completion(model=self._model, **options)
            except self._sdk.exceptions.BadRequestError as error:
                if "temperature" not in options or "temperature" not in str(error):
                    raise
                self._send_temperature = False
