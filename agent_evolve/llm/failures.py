"""What a provider's refusal means: something for a person to mend, or one call that failed."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import AgentEvolveError, ConfigurationError, ModelError, nearest

_TOO_LONG = re.compile(
    r"too long|context.length|context size|context window|maximum context|too many tokens"
    r"|exceed_context_size|request_too_large|input length",
    re.IGNORECASE,
)
_UNKNOWN_MODEL = re.compile(r"model", re.IGNORECASE)
_TOO_LONG_STATUS = 413
_PAYMENT = re.compile(r"insufficient_quota|credit balance|billing|payment", re.IGNORECASE)
_BLOCKED = re.compile(
    r"content[_ ]filter|content management policy|content[_ ]policy", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Service:
    """Who was asked, and what a person can do when it refuses.

    Attributes:
        label: the provider in words, such as ``Anthropic``.
        model: the model's name as given.
        key_fix: how to give a key that works.
        model_fix: where its model names are listed.
        known_models: names to find the nearest among.
        secrets: values that must not appear in a message.
    """

    label: str
    model: str
    key_fix: str
    model_fix: str = ""
    known_models: Sequence[str] = ()
    secrets: Sequence[str] = ()

    def refusal(self, status: int, message: str) -> AgentEvolveError:
        """The error for an HTTP status of 400 or more that outlasted the retries."""
        said = (
            f"{self.label} answered HTTP {status} for model {self.model!r}: {self.clean(message)}"
        )
        if status in (401, 403):
            return ConfigurationError(said, fix=self.key_fix)
        if status == 402 or (status in (400, 429) and _PAYMENT.search(message)):
            return ConfigurationError(
                said, fix=f"check the account's plan and credit at {self.label}"
            )
        if status == _TOO_LONG_STATUS or (status == 400 and _TOO_LONG.search(message)):
            return ModelError(said, fix="the prompt is longer than this model can read: shorten it")
        if status == 404 and _UNKNOWN_MODEL.search(message + self.model):
            return self.unknown_model(said)
        if 400 <= status < 500 and status not in (408, 409, 425, 429):
            return ConfigurationError(said, fix="the request is one this model can't take")
        fix = "it is busy: use fewer workers, or run again later" if status == 429 else ""
        return ModelError(said, fix=fix)

    def unknown_model(self, said: str) -> ConfigurationError:
        near = nearest(self.model, self.known_models)
        guess = f"did you mean {near!r}? " if near and near != self.model else ""
        return ConfigurationError(said, fix=f"{guess}{self.model_fix}".strip())

    def broken(self, error: BaseException) -> ModelError:
        """The error for a connection that failed, timed out, or broke off."""
        cause = f" ({error.__cause__})" if error.__cause__ else ""
        return ModelError(
            f"no whole answer from {self.label} for model {self.model!r}: "
            f"{type(error).__name__}: {self.clean(str(error) + cause)}",
            fix="check the network and the address; what was paid for is kept, so run again",
        )

    def clean(self, message: str) -> str:
        for secret in self.secrets:
            if len(secret) >= 8:
                message = message.replace(secret, "<key>")
        return message.strip()[:2000]


def is_blocked(message: str) -> bool:
    """Whether a 400 is a content filter's refusal rather than a wrong request."""
    return bool(_BLOCKED.search(message))


def missing_extra(package: str, extra: str, error: ImportError) -> ConfigurationError:
    """The error for a provider whose library is not installed."""
    return ConfigurationError(
        f"this provider needs the package {package!r}, which can't be imported: {error}",
        fix=f'pip install "agent-evolver[{extra}]"' if extra else f"pip install {package}",
    )


def transport_errors() -> tuple[type[Exception], ...]:
    """What HTTP libraries raise under an SDK when a connection breaks off in the middle."""
    modules = (sys.modules.get(name) for name in ("httpx", "httpx2"))
    return tuple(module.HTTPError for module in modules if module is not None)


def known_models(provider_id: str) -> list[str]:
    """Model names that the price library knows for a provider; asked on the way to an error."""
    from genai_prices.data import providers

    return [model.id for p in providers if p.id == provider_id for model in p.models]
