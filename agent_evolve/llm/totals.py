"""What calls cost together, by role, part, cycle or version. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, Protocol, get_args

Axis = Literal["role", "part", "cycle", "candidate"]
AXES: tuple[Axis, ...] = get_args(Axis)


class Call(Protocol):
    """A record of the ledger, or the journal's ``call`` event made of it."""

    def get(self, key: str, default: Any = None, /) -> Any: ...


@dataclass(frozen=True, slots=True)
class Totals:
    """What some calls spent. ``unpriced`` calls have no known price and count as 0 in ``usd``;
    ``seconds`` is the time spent waiting for answers, added up over calls made at once."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    usd: float = 0.0
    seconds: float = 0.0
    unpriced: int = 0

    def plus(self, call: Call) -> Totals:
        """These totals with one call more."""
        usd = call.get("usd")
        return Totals(
            self.calls + 1,
            self.input_tokens + (call.get("input_tokens") or 0),
            self.output_tokens + (call.get("output_tokens") or 0),
            self.usd + (usd or 0.0),
            self.seconds + (call.get("seconds") or 0.0),
            self.unpriced + (usd is None),
        )


def place_of(call: Call, by: Axis) -> str:
    """Where a call counts; ``""`` where its record does not say. Cycles are ``"0"``, ``"1"``..."""
    value = call.get(by)
    return "" if value is None else str(value)


def totals_of(calls: Iterable[Call], by: Axis = "role") -> dict[str, Totals]:
    """Totals of the calls of a journal: ``totals_of(journal.events("call"), "cycle")``."""
    totals: dict[str, Totals] = {}
    for call in calls:
        place = place_of(call, by)
        totals[place] = totals.get(place, Totals()).plus(call)
    return totals
