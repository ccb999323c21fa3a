"""What a call costs, from the price data that ``genai-prices`` brings along; nothing is fetched."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from .types import Usage

FREE_PROVIDERS = frozenset({"local", "scripted"})

_REGION = re.compile(r"^(us|us-gov|eu|ap|apac|au|ca|jp|sa|global)\.(?=[a-z0-9]+\.)")


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices of models by the name a ledger knows them under.

    Attributes:
        known: prices of one's own, ``{"openai:mine@http://...": (usd_in, usd_out)}``, in US dollars
            per million input and output tokens. They come before the library's.
    """

    known: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def cost(self, model: str, usage: Usage) -> Decimal | None:
        """US dollars of a call, or ``None`` when nobody knows the price of the model.

        Models that run in this process (``local:``, ``scripted:``) cost nothing.
        """
        if model in self.known:
            usd_in, usd_out = (Decimal(str(price)) for price in self.known[model])
            return (usage.input_tokens * usd_in + usage.output_tokens * usd_out) / 1_000_000
        provider, _, name = model.partition(":")
        if provider in FREE_PROVIDERS:
            return Decimal(0)
        return _library_cost(provider, name, usage)

    def at_most(self, model: str, input_tokens: int, output_tokens: int) -> Decimal | None:
        """The dearest a call of so many tokens can be: prompt written to the cache, or not."""
        plain = self.cost(model, Usage(input_tokens, output_tokens))
        cached = self.cost(model, Usage(input_tokens, output_tokens, 0, input_tokens))
        return None if plain is None or cached is None else max(plain, cached)


def _library_cost(provider: str, name: str, usage: Usage) -> Decimal | None:
    from genai_prices import Usage as Tokens  # 0.2 s, so only for a model that may cost something
    from genai_prices import calc_price

    # Cached tokens are a part of all input tokens. An account that doesn't add up (compatible
    # servers send such) is charged as plain input, where the library would refuse it.
    read, write = usage.cache_read_tokens, usage.cache_write_tokens
    if read + write > usage.input_tokens:
        read = write = 0
    tokens = Tokens(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=read,
        cache_write_tokens=write,
    )
    for model, place in _places(provider, name):
        try:
            return Decimal(calc_price(tokens, model, **place).total_price)
        except LookupError:
            continue
    return None


def _places(provider: str, name: str) -> list[tuple[str, dict[str, str]]]:
    """Where the library may know the model: its name, and its provider by id or by address."""
    if provider == "openai" and "@" in name:
        model, _, url = name.rpartition("@")
        return [(model, {"provider_api_url": url})]
    if provider == "bedrock":
        return [(name, {"provider_id": "aws"}), (_REGION.sub("", name), {"provider_id": "aws"})]
    return [(name, {"provider_id": provider})]
