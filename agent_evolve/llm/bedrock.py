"""Models on Amazon Bedrock, through its converse operation."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

from ..errors import AgentEvolveError, ConfigurationError, ModelError
from .chat_format import arguments_object, parse_arguments
from .failures import Service, is_blocked, known_models, missing_extra
from .sizes import rough_usage
from .types import Completion, Message, Request, StopReason, ToolCall, Usage

_STOPS: dict[str, StopReason] = {
    "end_turn": "end",
    "tool_use": "tool_use",
    "max_tokens": "max_tokens",
    "model_context_window_exceeded": "max_tokens",
    "stop_sequence": "stop",
    "guardrail_intervened": "refusal",
    "content_filtered": "refusal",
    "refusal": "refusal",
}

# botocore's codes for what a person has to mend; HTTP says 400 or 403 for most of them.
_ACCESS = {
    "AccessDeniedException",
    "ExpiredTokenException",
    "InvalidSignatureException",
    "MissingAuthenticationTokenException",
    "UnrecognizedClientException",
}
_UNKNOWN_MODEL = ("model identifier is invalid", "on-demand throughput", "model not found")


class BedrockModel:
    """A model on Amazon Bedrock.

    Args:
        model: a model id, a cross-region profile (``us.anthropic.claude-opus-4-6-v1``), or an ARN.
        region: else ``AWS_REGION``, ``AWS_DEFAULT_REGION``, or the AWS profile's.
        profile: a name in ``~/.aws``; else the usual chain of AWS credentials.
        endpoint_url: else Amazon's own for the region.
        timeout: seconds for one answer. max_retries: of the SDK.

    A temperature that the model refuses is left out from then on.
    """

    def __init__(
        self,
        model: str,
        *,
        region: str | None = None,
        profile: str | None = None,
        endpoint_url: str | None = None,
        timeout: float = 600.0,
        max_retries: int = 4,
    ) -> None:
        try:
            import boto3
            import botocore.config
            import botocore.exceptions
        except ImportError as error:
            raise missing_extra("boto3", "", error) from error
        self._errors = botocore.exceptions
        self._model = model
        self._send_temperature = True
        try:
            session = boto3.Session(
                profile_name=profile, region_name=region or os.environ.get("AWS_REGION")
            )
        except botocore.exceptions.ProfileNotFound as error:
            raise ConfigurationError(str(error), fix="aws configure --profile NAME") from error
        _require_access(session, self.name)
        self._client = session.client(
            "bedrock-runtime",
            endpoint_url=endpoint_url,
            config=botocore.config.Config(
                read_timeout=timeout,
                max_pool_connections=64,  # one for each worker that asks at once
                retries={"total_max_attempts": max_retries + 1, "mode": "standard"},
            ),
        )
        self._service = Service(
            label="Amazon Bedrock",
            model=model,
            key_fix="check the credentials (aws sts get-caller-identity) and that the account may "
            f"use this model in {session.region_name}: Bedrock console, Model access",
            model_fix="list them: aws bedrock list-inference-profiles; most need a region's "
            "prefix, such as us. or eu.",
            secrets=_secrets(session),
        )

    @property
    def name(self) -> str:
        return f"bedrock:{self._model}"

    def complete(self, request: Request) -> Completion:
        try:
            response = self._converse(request)
        except self._errors.ClientError as error:
            message = error.response.get("Error", {}).get("Message", "")
            if is_blocked(message):
                return Completion("", stop_reason="refusal", raw={"error": message})
            raise self._refusal(error) from error
        except self._errors.ParamValidationError as error:
            raise ConfigurationError(f"{self.name} can't be asked this: {error}") from error
        except (self._errors.NoCredentialsError, self._errors.PartialCredentialsError) as error:
            raise _no_access(self.name, str(error)) from error
        except (self._errors.BotoCoreError, self._errors.HTTPClientError, ValueError) as error:
            raise self._service.broken(error) from error
        return self._completion(response, request)

    def _converse(self, request: Request) -> dict[str, Any]:
        while True:
            options = self._options(request)
            try:
                return dict(self._client.converse(**options))
            except self._errors.ClientError as error:
                message = error.response.get("Error", {}).get("Message", "")
                if "temperature" not in options["inferenceConfig"] or "temperature" not in message:
                    raise
                self._send_temperature = False

    def _options(self, request: Request) -> dict[str, Any]:
        limits: dict[str, Any] = {"maxTokens": request.max_tokens}
        if request.temperature is not None and self._send_temperature:
            limits["temperature"] = request.temperature
        if request.stop:
            limits["stopSequences"] = list(request.stop)
        options: dict[str, Any] = {
            "modelId": self._model,
            "messages": [{"role": m.role, "content": _blocks(m)} for m in request.messages],
            "inferenceConfig": limits,
        }
        if request.system:
            options["system"] = [{"text": request.system}]
        if request.tools:
            options["toolConfig"] = {
                "tools": [
                    {
                        "toolSpec": {
                            "name": tool.name,
                            "description": tool.description or tool.name,
                            "inputSchema": {"json": dict(tool.parameters)},
                        }
                    }
                    for tool in request.tools
                ]
            }
        return options

    def _completion(self, response: dict[str, Any], request: Request) -> Completion:
        message = response.get("output", {}).get("message")
        if message is None:
            raise ModelError(f"{self.name} answered without a message: {str(response)[:500]}")
        blocks = message.get("content") or []
        completion = Completion(
            text="".join(block["text"] for block in blocks if "text" in block),
            tool_calls=tuple(_call(block["toolUse"]) for block in blocks if "toolUse" in block),
            stop_reason=_STOPS.get(response.get("stopReason", ""), "other"),
            raw={
                key: response[key] for key in ("output", "stopReason", "usage") if key in response
            },
        )
        return replace(completion, usage=_usage(response, request, completion))

    def _refusal(self, error: Any) -> AgentEvolveError:
        details = error.response.get("Error", {})
        code = details.get("Code", "")
        message = self._service.clean(details.get("Message", "") or str(error))
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 500)
        service = replace(self._service, known_models=known_models("aws"))
        said = f"Amazon Bedrock refused model {self._model!r}: {code}: {message}"
        if code in _ACCESS:
            return ConfigurationError(said, fix=service.key_fix)
        if code == "ResourceNotFoundException" or any(w in message for w in _UNKNOWN_MODEL):
            return service.unknown_model(said)
        if code in ("ModelTimeoutException", "ModelErrorException", "ModelNotReadyException"):
            return ModelError(said)
        return service.refusal(status, f"{code}: {message}")


def _usage(response: dict[str, Any], request: Request, completion: Completion) -> Usage:
    """Amazon's count; a rough one where there is none, so that caps still hold."""
    usage = response.get("usage")
    if not usage or usage.get("inputTokens") is None:
        return rough_usage(request, completion)
    read = usage.get("cacheReadInputTokens") or 0
    write = usage.get("cacheWriteInputTokens") or 0
    return Usage(
        input_tokens=usage["inputTokens"] + read + write,
        output_tokens=usage.get("outputTokens") or 0,
        cache_read_tokens=read,
        cache_write_tokens=write,
    )


def _secrets(session: Any) -> tuple[str, ...]:
    """Values that must not appear in a message."""
    values = [os.environ.get("AWS_BEARER_TOKEN_BEDROCK")]
    credentials = session.get_credentials()
    if credentials:
        frozen = credentials.get_frozen_credentials()
        values += [frozen.secret_key, frozen.token]
    return tuple(value for value in values if value)


def _require_access(session: Any, name: str) -> None:
    """Refuse before any request is built, naming what to set."""
    if session.region_name is None:
        raise ConfigurationError(
            f"model {name!r} needs an AWS region and none is set",
            fix="export AWS_REGION=us-east-1",
        )
    if os.environ.get("AWS_BEARER_TOKEN_BEDROCK"):
        return
    if session.get_credentials() is None:
        raise _no_access(name, "no AWS credentials were found")


def _no_access(name: str, why: str) -> ConfigurationError:
    return ConfigurationError(
        f"model {name!r} can't be reached: {why}",
        fix="aws configure, or export AWS_ACCESS_KEY_ID=... AWS_SECRET_ACCESS_KEY=..., "
        "or export AWS_BEARER_TOKEN_BEDROCK=...",
    )


def _blocks(message: Message) -> list[dict[str, Any]]:
    kept = _kept_blocks(message)
    if kept is not None:
        return kept
    blocks: list[dict[str, Any]] = [
        {
            "toolResult": {
                "toolUseId": result.call_id,
                "content": [{"text": result.content or "(no output)"}],
                "status": "error" if result.is_error else "success",
            }
        }
        for result in message.tool_results
    ]
    if message.content.strip():
        blocks.append({"text": message.content})
    for call in message.tool_calls:
        arguments = arguments_object(call.arguments, call.raw)
        use = {"toolUseId": call.id, "name": call.name, "input": arguments}
        blocks.append({"toolUse": use})
    return blocks or [{"text": "(empty)"}]  # converse takes no empty turn


def _kept_blocks(message: Message) -> list[dict[str, Any]] | None:
    """The blocks as Bedrock sent them, where reasoning must go back whole with its signature."""
    raw = message.raw
    if message.role != "assistant" or not isinstance(raw, dict) or "output" not in raw:
        return None
    blocks = raw["output"].get("message", {}).get("content") or []
    if not any("reasoningContent" in block for block in blocks):
        return None
    return [_sendable(block) for block in blocks]


def _sendable(block: dict[str, Any]) -> dict[str, Any]:
    """A block as converse takes it back: a call's input is an object, whatever the model sent."""
    if "toolUse" not in block:
        return block
    arguments, raw = parse_arguments(block["toolUse"].get("input"))
    return {"toolUse": {**block["toolUse"], "input": arguments_object(arguments, raw)}}


def _call(use: dict[str, Any]) -> ToolCall:
    arguments, raw = parse_arguments(use.get("input"))
    return ToolCall(use["toolUseId"], use["name"], arguments, raw)
