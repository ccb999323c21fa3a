"""What a run may spend, what it has spent, and a model that asks before each call.

ledger = Ledger(Budget(max_usd=5.0), sink=journal.append, traces=Path("evolution/traces"))
model = ledger.meter(resolve_model("claude-sonnet-5-5"), role="agent")
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from decimal import Decimal
from pathlib import Path
from threading import Condition
from typing import Any, Literal

from ..errors import ConfigurationError
from .budget import Budget, Spend, amount, no_price
from .prices import Prices
from .sizes import prompt_bytes
from .traces import new_call_id, scrub, write_trace
from .types import Completion, Model, Request, Usage

Role = Literal["agent", "engine", "judge"]

NO_CAPS = Budget()

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Totals:
    """What one role spent. ``unpriced`` calls have no known price and count as 0 in ``usd``."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    usd: float = 0.0
    seconds: float = 0.0
    unpriced: int = 0


class Ledger:
    """Calls, tokens and US dollars per role; caps stop before the call that would pass one.

    Args:
        budget: the caps.
        sink: receives one flat, JSON-able dict for each call, after it: ``call_id, role, model,
            input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, usd, seconds,
            stop_reason, error``. ``usd`` is ``None`` where no price is known. Called from the
            thread that made the call, without a lock held.
        traces: a folder; the whole prompt and raw answer go to ``<traces>/<call_id>.json``.
        prices: US dollars per million (input, output) tokens by model name, before the library's.

    A call is let in only when everything spent, the most that the calls under way can cost, and the
    most that it can cost itself stay within each cap. When only the calls under way are in the way
    it waits for them, since they mostly cost less than they may. The most a call can cost is taken
    as one input token for each 3 bytes of prompt plus ``max_tokens`` of output. Thread-safe.
    """

    def __init__(
        self,
        budget: Budget = NO_CAPS,
        sink: Callable[[dict[str, Any]], None] | None = None,
        traces: Path | None = None,
        prices: Mapping[str, tuple[float, float]] | None = None,
    ) -> None:
        self.budget = budget
        self._sink = sink
        self._traces = traces
        self._prices = Prices(prices or {})
        self._changed = Condition()
        self._spent = Spend()
        self._held = Spend()
        self._totals: dict[str, Totals] = {}
        self._unpriced: set[str] = set()

    def meter(self, model: Model, role: Role) -> Model:
        """``model``, with each call counted for ``role``.

        Raises ``ConfigurationError`` when there is a cap in dollars and no price for the model.
        """
        if isinstance(model, MeteredModel):
            model = model.inner
        self._upper(model.name, 0, 0)
        return MeteredModel(self, model, role)

    def charge(
        self,
        role: Role,
        model: str,
        *,
        usd: float | None = None,
        input_tokens: int = 0,
        output_tokens: int = 0,
        seconds: float = 0.0,
    ) -> str:
        """Count what something else spent, such as a command agent; returns the call id.

        ``usd=None`` takes the price of ``model``. The money is gone, so this never refuses; the
        next ``check`` or call does.
        """
        if usd is not None and not (math.isfinite(usd) and usd >= 0):
            raise ConfigurationError(f"{model!r} reported a cost of {usd!r} US dollars")
        usage = Usage(input_tokens, output_tokens)
        cost = self._prices.cost(model, usage) if usd is None else Decimal(str(usd))
        if cost is None:
            self._warn_once(model)
        record = _record(new_call_id(), role, model, usage, cost, seconds)
        self._settle(record, Spend(), cost)
        return str(record["call_id"])

    def check(self, role: Role) -> None:
        """Raise ``BudgetExceeded`` when a cap is reached, ``ConfigurationError`` when a cap in
        dollars can't hold because something was charged without a known price."""
        with self._changed:
            self._refuse_unpriced()
            cap = self.budget.reached_by(self._spent)
            if cap is not None:
                spent = amount(self._spent.of(cap), cap)
                raise self.budget.exceeded(f"the {role} can't go on: {spent} spent, at", cap)

    def restore(self, calls: Iterable[Mapping[str, Any]], *, against_caps: bool = False) -> None:
        """Add the calls of earlier runs, as the sink received them, to the totals.

        ``against_caps`` lets them use up this ledger's budget too, as in a run that goes on after
        a crash. Nothing goes to the sink.
        """
        for call in calls:
            usd = call.get("usd")
            self._count(dict(call), None if usd is None else Decimal(str(usd)), against_caps)

    def totals(self) -> dict[str, Totals]:
        """What each role spent, by role."""
        with self._changed:
            return dict(self._totals)

    @property
    def usd(self) -> float:
        """US dollars of all roles, restored calls included; calls of unknown price count as 0."""
        return sum(total.usd for total in self.totals().values())

    @property
    def tokens(self) -> int:
        """Input and output tokens of all roles."""
        return sum(total.input_tokens + total.output_tokens for total in self.totals().values())

    @property
    def calls(self) -> int:
        return sum(total.calls for total in self.totals().values())

    # -- what a metered model uses ---------------------------------------------------------------

    def _upper(self, model: str, prompt_bytes: int, max_tokens: int) -> Spend:
        """The most a call can cost."""
        input_tokens = -(-prompt_bytes // 3)
        usd = self._prices.at_most(model, input_tokens, max_tokens)
        if usd is None:
            if self.budget.max_usd is not None:
                raise no_price(model)
            self._warn_once(model)
        return Spend(usd or Decimal(0), input_tokens + max_tokens, 1)

    def _warn_once(self, model: str) -> None:
        with self._changed:
            first = model not in self._unpriced
            self._unpriced.add(model)
        if first:
            logger.warning(
                "no price is known for %s: its tokens are counted, its cost is not", model
            )

    def _reserve(self, role: str, upper: Spend) -> None:
        with self._changed:
            self._refuse_unpriced()
            while True:
                # Calls under way count as calls whatever becomes of them: no use in waiting.
                certain = self._spent + upper + Spend(calls=self._held.calls)
                cap = self.budget.passed_by(certain)
                if cap is not None:
                    most = amount(upper.of(cap), cap)
                    raise self.budget.exceeded(
                        f"the {role}'s next call may take {most}, which would pass", cap
                    )
                if self.budget.passed_by(self._spent + upper + self._held) is None:
                    self._held = self._held + upper
                    return
                self._changed.wait()

    def _refuse_unpriced(self) -> None:
        if self.budget.max_usd is not None and self._unpriced:
            raise no_price(", ".join(sorted(self._unpriced)))

    def _settle(self, record: dict[str, Any], held: Spend, cost: Decimal | None) -> None:
        with self._changed:
            self._held = self._held - held
            self._count(record, cost, against_caps=True)
            self._changed.notify_all()
        if self._sink is not None:
            self._sink(record)

    def _count(self, call: dict[str, Any], cost: Decimal | None, against_caps: bool) -> None:
        with self._changed:
            role = str(call.get("role", "agent"))
            tokens_in, tokens_out = call.get("input_tokens") or 0, call.get("output_tokens") or 0
            had = self._totals.get(role, Totals())
            self._totals[role] = Totals(
                calls=had.calls + 1,
                input_tokens=had.input_tokens + tokens_in,
                output_tokens=had.output_tokens + tokens_out,
                usd=had.usd + float(cost or 0),
                seconds=had.seconds + (call.get("seconds") or 0.0),
                unpriced=had.unpriced + (cost is None),
            )
            if against_caps:
                self._spent = self._spent + Spend(cost or Decimal(0), tokens_in + tokens_out, 1)
                if cost is None:
                    self._unpriced.add(str(call.get("model")))


class MeteredModel:
    """A model whose calls a ledger lets in, counts and traces."""

    def __init__(self, ledger: Ledger, inner: Model, role: Role) -> None:
        self.ledger = ledger
        self.inner = inner
        self.role = role

    @property
    def name(self) -> str:
        return self.inner.name

    def complete(self, request: Request) -> Completion:
        ledger = self.ledger
        upper = ledger._upper(self.name, prompt_bytes(request), request.max_tokens)
        ledger._reserve(self.role, upper)
        call_id, started = new_call_id(), time.monotonic()
        completion: Completion | None = None
        error: BaseException | None = None
        try:
            completion = replace(self.inner.complete(request), call_id=call_id)
            return completion
        except BaseException as caught:
            error = caught
            raise
        finally:
            usage = completion.usage if completion else Usage()
            cost = ledger._prices.cost(self.name, usage)
            seconds = time.monotonic() - started
            record = _record(call_id, self.role, self.name, usage, cost, seconds, completion, error)
            try:
                if ledger._traces is not None:
                    write_trace(ledger._traces, record, request, completion)
            finally:
                ledger._settle(record, upper, cost)


def _record(
    call_id: str,
    role: str,
    model: str,
    usage: Usage,
    cost: Decimal | None,
    seconds: float,
    completion: Completion | None = None,
    error: BaseException | None = None,
) -> dict[str, Any]:
    return {
        "call_id": call_id,
        "role": role,
        "model": model,
        **asdict(usage),
        "usd": None if cost is None else float(cost),
        "seconds": round(seconds, 6),
        "stop_reason": completion.stop_reason if completion else None,
        "error": None if error is None else scrub(f"{type(error).__name__}: {error}"),
    }
