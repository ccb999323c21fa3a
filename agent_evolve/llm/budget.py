"""Caps on money, tokens, calls and time, and amounts to hold against them. Pure values."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import Literal

from ..errors import BudgetExceeded, ConfigurationError

CapName = Literal["max_usd", "max_tokens", "max_calls"]
"""Caps on what calls use up, for which room can be held."""


@dataclass(frozen=True, slots=True)
class Spend:
    """An amount against the caps. Money is decimal, so that many small sums stay exact."""

    usd: Decimal = Decimal(0)
    tokens: int = 0
    calls: int = 0

    def __add__(self, other: Spend) -> Spend:
        return Spend(self.usd + other.usd, self.tokens + other.tokens, self.calls + other.calls)

    def __sub__(self, other: Spend) -> Spend:
        return Spend(self.usd - other.usd, self.tokens - other.tokens, self.calls - other.calls)

    def of(self, cap: CapName) -> Decimal | int:
        if cap == "max_usd":
            return self.usd
        return self.tokens if cap == "max_tokens" else self.calls


@dataclass(frozen=True, slots=True)
class Budget:
    """Hard caps; ``None`` is no cap.

    Attributes:
        max_usd: US dollars, at least 0.
        max_tokens: input and output tokens together.
        max_calls: model calls, failed ones included.
        max_minutes: minutes of wall time. No call begins after them; one under way is not cut off.
    """

    max_usd: float | None = None
    max_tokens: int | None = None
    max_calls: int | None = None
    max_minutes: float | None = None

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if value is not None and not (math.isfinite(value) and value >= 0):
                raise ConfigurationError(
                    f"{name} is {value!r}",
                    fix=f"give --{name.replace('_', '-')} a number of 0 or more, or leave it out",
                )

    def caps(self) -> dict[CapName, Decimal | int]:
        """The caps that are set."""
        caps: dict[CapName, Decimal | int] = {}
        if self.max_usd is not None:
            caps["max_usd"] = Decimal(str(self.max_usd))
        if self.max_tokens is not None:
            caps["max_tokens"] = self.max_tokens
        if self.max_calls is not None:
            caps["max_calls"] = self.max_calls
        return caps

    def passed_by(self, spend: Spend) -> CapName | None:
        """The first cap that ``spend`` is above."""
        return next((name for name, cap in self.caps().items() if spend.of(name) > cap), None)

    def reached_by(self, spend: Spend) -> CapName | None:
        """The first cap that ``spend`` is at or above."""
        return next((name for name, cap in self.caps().items() if spend.of(name) >= cap), None)

    def seconds_left(self, used: float) -> float | None:
        """Seconds until the cap on time, at least 0; ``None`` without one.

        Args:
            used: seconds used already.
        """
        return None if self.max_minutes is None else max(0.0, self.max_minutes * 60 - used)

    def out_of_time(self, start: str) -> BudgetExceeded:
        """The error for the cap on time, beginning with ``start``."""
        return _exceeded(f"{start} the cap of {self.max_minutes:g} minutes", "max_minutes")

    def exceeded(self, start: str, cap: CapName) -> BudgetExceeded:
        """The error for a cap, beginning with ``start``."""
        return _exceeded(f"{start} the cap of {amount(self.caps()[cap], cap)}", cap)


def _exceeded(message: str, cap: str) -> BudgetExceeded:
    fix = f"raise --{cap.replace('_', '-')} and run again: what was paid for is kept"
    return BudgetExceeded(message, fix=fix)


def amount(value: Decimal | int, cap: CapName) -> str:
    """``$0.0315``, ``1200 tokens``, ``7 calls``."""
    if cap == "max_usd":
        return f"${value:.4f}"
    return f"{value} {cap.removeprefix('max_')}"


def no_price(model: str) -> ConfigurationError:
    """The error for a cap in dollars over a model whose price nobody knows."""
    return ConfigurationError(
        f"no price is known for {model}, so a cap in US dollars can't hold",
        fix="cap tokens or calls instead (--max-tokens N, --max-calls N), or give the ledger the "
        "model's price: prices={NAME: (usd per million input tokens, per million output tokens)}",
    )
