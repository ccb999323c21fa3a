"""What a run may spend, what it has spent, and a model that asks before each call.

ledger = Ledger(Budget(max_usd=5.0), sink=journal.append, traces=Path("evolution/traces"))
model = ledger.meter(resolve_model("claude-sonnet-5-5"), role="agent")
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, replace
from decimal import Decimal
from pathlib import Path
from threading import Condition
from typing import Any, Literal

from ..errors import ConfigurationError
from .attribution import scope
from .budget import Budget, Spend, amount, no_price
from .prices import Prices
from .replay import Replay
from .sizes import prompt_bytes
from .totals import AXES, Axis, Totals, place_of
from .traces import digest, new_call_id, scrub, write_trace
from .types import Completion, Model, Request, Resumable, Usage

Role = Literal["agent", "engine", "judge"]

NO_CAPS = Budget()

logger = logging.getLogger(__name__)


class Ledger:
    """Calls, tokens, US dollars and seconds by role, part, cycle and version; caps stop before the
    call that would pass one.

    Args:
        budget: the caps. Minutes count from here on, after those of the replayed work.
        sink: receives one flat, JSON-able dict for each call, after it: ``call_id, role, model,
            input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, usd, seconds,
            stop_reason, error, digest``, and the scope (see ``attribution``) ``cycle, part,
            candidate, task, seed``. ``usd`` is ``None`` where no price is known, ``seconds`` is the
            wall time of the call, ``digest`` a hash of what was asked. Called from the thread that
            made the call, without a lock held, after the trace is on the disk.
        traces: a folder; the whole prompt and raw answer go to ``<traces>/<call_id>.json``.
        prices: US dollars per million (input, output) tokens by model name, before the library's.
        replay: the earlier calls of work that goes on. They count, and against the caps; those
            whose event was never written go to the sink at once; an answer that is there is given
            without a call.

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
        replay: Replay | None = None,
    ) -> None:
        self.budget = budget
        self._sink = sink
        self._traces = traces
        self._prices = Prices(prices or {})
        self._changed = Condition()
        self._spent = Spend()
        self._held = Spend()
        self._totals: dict[Axis, dict[str, Totals]] = {axis: {} for axis in AXES}
        self._unpriced: set[str] = set()
        self._replay = replay
        self._metered: list[MeteredModel] = []
        self._began = time.monotonic() - (replay.seconds if replay else 0.0)
        if replay is not None:
            self.restore(replay.calls, against_caps=True)
            for record in replay.unrecorded:
                self._tell(dict(record))

    def meter(self, model: Model, role: Role) -> Model:
        """``model``, with each call counted for ``role``.

        A model that answers from a script goes on where the replayed work left it.

        Raises ``ConfigurationError`` when there is a cap in dollars and no price for the model.
        """
        if isinstance(model, MeteredModel):
            model = model.inner
        self._upper(model.name, 0, 0)
        if self._prices.cost(model.name, Usage(1, 1)) is None:
            self._warn_once(model.name)
        metered = MeteredModel(self, model, role)
        self._metered.append(metered)
        if self._replay is not None and isinstance(model, Resumable):
            roles = {m.role for m in self._metered if m.inner is model}
            model.resume(self._replay.requests(model.name, roles))
        return metered

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
            self._refuse_late(role)
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

    def check_time(self, role: Role) -> None:
        """Raise ``BudgetExceeded`` when the minutes are used up."""
        self._refuse_late(role)

    def seconds_left(self) -> float | None:
        """Seconds until the cap on time, at least 0; ``None`` without one."""
        return self.budget.seconds_left(time.monotonic() - self._began)

    def totals(self, by: Axis = "role") -> dict[str, Totals]:
        """What was spent, by role, part, cycle (``"0"``, ``"1"``...) or version; calls of which
        that is not known are under ``""``."""
        with self._changed:
            return dict(self._totals[by])

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
        usd: Decimal | None = Decimal(0)  # without a cap in dollars nothing hangs on it
        if self.budget.max_usd is not None:
            usd = self._prices.at_most(model, input_tokens, max_tokens)
            if usd is None:
                raise no_price(model)
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
                self._refuse_late(role)
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
                self._changed.wait(self.seconds_left())

    def _refuse_late(self, role: str) -> None:
        if self.seconds_left() == 0:
            raise self.budget.out_of_time(f"the {role} can't go on: the run has reached")

    def _refuse_unpriced(self) -> None:
        if self.budget.max_usd is not None and self._unpriced:
            raise no_price(", ".join(sorted(self._unpriced)))

    def _settle(self, record: dict[str, Any], held: Spend, cost: Decimal | None) -> None:
        with self._changed:
            self._held = self._held - held
            self._count(record, cost, against_caps=True)
            self._changed.notify_all()
        self._tell(record)

    def _tell(self, record: dict[str, Any]) -> None:
        if self._sink is not None:
            self._sink(record)

    def _count(self, call: dict[str, Any], cost: Decimal | None, against_caps: bool) -> None:
        with self._changed:
            for axis, totals in self._totals.items():
                place = place_of(call, axis)
                totals[place] = totals.get(place, Totals()).plus(call)
            if against_caps:
                tokens = (call.get("input_tokens") or 0) + (call.get("output_tokens") or 0)
                self._spent = self._spent + Spend(cost or Decimal(0), tokens, 1)
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
        ledger, asked = self.ledger, digest(self.name, request)
        answer = self._earlier(asked)
        if answer is not None:
            return answer
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
            record = _record(call_id, self.role, self.name, usage, cost, seconds)
            record |= _outcome(completion, error) | {"digest": asked}
            try:
                if ledger._traces is not None:
                    write_trace(ledger._traces, record, request, completion)
            finally:
                ledger._settle(record, upper, cost)

    def _earlier(self, asked: str) -> Completion | None:
        """The answer that this call has had already, in a process that was killed."""
        replay = self.ledger._replay
        if replay is None or replay.empty:
            return None
        call = scope().record() | {"role": self.role, "digest": asked}
        return replay.take(call, failures=isinstance(self.inner, Resumable))


def _record(
    call_id: str,
    role: str,
    model: str,
    usage: Usage,
    cost: Decimal | None,
    seconds: float,
) -> dict[str, Any]:
    """The account of a call, without what came of it; what it was for is the scope of now."""
    return {
        "call_id": call_id,
        "role": role,
        "model": model,
        **asdict(usage),
        "usd": None if cost is None else float(cost),
        "seconds": round(seconds, 6),
        **_outcome(None, None),
        **scope().record(),
    }


def _outcome(completion: Completion | None, error: BaseException | None) -> dict[str, Any]:
    return {
        "stop_reason": completion.stop_reason if completion else None,
        "error": None if error is None else scrub(f"{type(error).__name__}: {error}"),
    }
