"""From what a user types to a model.

| typed | provider |
|---|---|
| ``anthropic:claude-sonnet-5-5``, ``claude-sonnet-5-5`` | Anthropic |
| ``bedrock:us.anthropic.claude-opus-4-6-v1``, the same bare, an ARN | Amazon Bedrock |
| ``openai:gpt-5``, ``gpt-5``, ``o3`` | OpenAI |
| ``openai:NAME@http://127.0.0.1:8080/v1`` | any server with OpenAI's chat protocol |
| ``litellm:groq/llama-3.3-70b-versatile`` | LiteLLM |
| ``local:qwen2.5-coder-1.5b``, ``weights/mine.gguf`` | a GGUF file in this process |
| ``scripted:answers.yaml`` | answers from a file |

Third parties add providers through the entry point group ``agent_evolve.models``.
"""

from __future__ import annotations

import re
from typing import Any, cast

from .. import registry
from ..errors import ConfigurationError, nearest
from .types import Model

_BARE = (
    (re.compile(r"claude-"), "anthropic"),
    (re.compile(r"arn:aws[\w-]*:bedrock:"), "bedrock"),
    (re.compile(r"(us|us-gov|eu|ap|apac|au|ca|jp|sa|global)\.[a-z0-9]+\.\S"), "bedrock"),
    (
        re.compile(r"(ai21|amazon|anthropic|cohere|deepseek|meta|mistral|openai|qwen)\.\S"),
        "bedrock",
    ),
    (re.compile(r"(gpt-|chatgpt-|o[1-9](-|$))"), "openai"),
    (re.compile(r".*\.gguf$", re.IGNORECASE | re.DOTALL), "local"),
)

EXAMPLES = (
    "anthropic:claude-sonnet-5-5",
    "bedrock:us.anthropic.claude-opus-4-6-v1",
    "openai:gpt-5",
    "openai:NAME@http://127.0.0.1:8080/v1",
    "litellm:groq/llama-3.3-70b-versatile",
    "local:qwen2.5-coder-1.5b",
)


def resolve_model(spec: str | Model, **options: Any) -> Model:
    """The model that ``spec`` names, built by its provider as ``cls(name, **options)``.

    Args:
        spec: ``provider:model``, or a bare name whose provider is plain (see the table above).
            A model object is returned as it is.
        options: passed on to the provider; each provider's class lists its own
            (``api_key``, ``base_url``, ``timeout``, ``max_retries``, ...).

    Raises:
        ConfigurationError: for a name no provider is known for, an option the provider doesn't
            have, a missing key, or a missing extra. Nothing is sent anywhere yet.
    """
    if not isinstance(spec, str):
        return spec
    provider, name = split_spec(spec)
    cls = registry.load("model", provider)
    try:
        return cast(Model, cls(name, **options))
    except TypeError as error:
        if "keyword argument" not in str(error):
            raise
        raise ConfigurationError(
            f"model {spec!r} can't take these options: {error}",
            fix=f"options given: {', '.join(sorted(options))}; see the docstring of {cls.__name__}",
        ) from error


def split_spec(spec: str) -> tuple[str, str]:
    """Provider and model name of a spec, or a ``ConfigurationError`` with examples."""
    spec = spec.strip()
    known = registry.names("model")
    head, colon, rest = spec.partition(":")
    if colon and head in known:
        if not rest.strip():
            raise ConfigurationError(
                f"{spec!r} names a provider but no model",
                fix="write it as " + _example(head),
            )
        return head, rest.strip()
    for pattern, provider in _BARE:
        if pattern.match(spec):
            return provider, spec
    from .weights import WEIGHTS

    if spec in WEIGHTS:
        return "local", spec
    raise _unknown(spec, head if colon else "", known)


def _example(provider: str) -> str:
    return next((text for text in EXAMPLES if text.startswith(provider)), f"{provider}:NAME")


def _unknown(spec: str, provider: str, known: list[str]) -> ConfigurationError:
    if provider:
        near = nearest(provider, known)
        guess = f" Did you mean {near + ':' + spec.partition(':')[2]!r}?" if near else ""
        what = f"unknown model provider {provider!r} in {spec!r}.{guess} Known: {', '.join(known)}"
    else:
        from .weights import WEIGHTS

        near = nearest(spec, [*known, *WEIGHTS, *(text.partition(":")[2] for text in EXAMPLES)])
        guess = f" Did you mean {near!r}?" if near else ""
        what = f"can't tell which provider the model {spec!r} belongs to.{guess}"
    return ConfigurationError(what, fix="name it as PROVIDER:MODEL, such as " + ", ".join(EXAMPLES))
