"""What is counted, what is let in, and what is kept of each call."""

from __future__ import annotations

import json
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_evolve.errors import BudgetExceeded, ConfigurationError, ModelError
from agent_evolve.llm import (
    Budget,
    Completion,
    Ledger,
    Message,
    Request,
    ScriptedModel,
    Usage,
    resolve_model,
)
from agent_evolve.llm.budget import Spend

PRICES = {"scripted:script": (1.0, 10.0)}


def ask(model: Any, text: str = "hi", max_tokens: int = 100) -> Completion:
    return model.complete(Request([Message("user", text)], max_tokens=max_tokens))


def spent_of(ledger: Ledger) -> Spend:
    return Spend(Decimal(str(round(ledger.usd, 9))), ledger.tokens, ledger.calls)


def test_calls_tokens_and_dollars_are_counted_for_each_role() -> None:
    ledger = Ledger(prices=PRICES)
    answer = Completion("x", usage=Usage(1000, 200))
    agent = ledger.meter(ScriptedModel([answer, answer]), "agent")
    engine = ledger.meter(ScriptedModel([answer]), "engine")
    for model in (agent, engine, agent):
        ask(model)
    totals = ledger.totals()
    assert (totals["agent"].calls, totals["agent"].input_tokens) == (2, 2000)
    assert totals["agent"].usd == pytest.approx(2 * (1000 * 1 + 200 * 10) / 1e6)
    assert ledger.usd == pytest.approx(0.009)
    assert (ledger.calls, ledger.tokens) == (3, 3600)


def test_a_failed_call_is_counted_and_told() -> None:
    told: list[dict[str, Any]] = []
    ledger = Ledger(sink=told.append, prices=PRICES)
    model = ledger.meter(ScriptedModel([ModelError("down"), "x"]), "agent")
    with pytest.raises(ModelError):
        ask(model)
    assert ledger.calls == 1
    assert "down" in told[0]["error"]


@pytest.mark.parametrize(
    "budget", [Budget(max_calls=2), Budget(max_tokens=250), Budget(max_usd=0.0025)]
)
def test_a_cap_stops_before_the_call_that_would_pass_it(budget: Budget) -> None:
    inner = ScriptedModel(lambda _: Completion("x", usage=Usage(10, 100)))
    model = Ledger(budget, prices=PRICES).meter(inner, "agent")
    ask(model)
    ask(model)
    with pytest.raises(BudgetExceeded, match="cap"):
        ask(model)
    assert len(inner.requests) == 2


class Doors:
    """A model whose calls end one by one, in the order in which a test lets them out."""

    name = "scripted:script"

    def __init__(self, used: dict[int, int]) -> None:
        self.used = used
        self.inside: dict[int, threading.Event] = {}
        self.changed = threading.Condition()

    def complete(self, request: Request) -> Completion:
        number, door = int(request.messages[0].content), threading.Event()
        with self.changed:
            self.inside[number] = door
            self.changed.notify_all()
        assert door.wait(20)
        return Completion("x", usage=Usage(3, min(self.used[number], request.max_tokens)))

    def let_out(self, choice: float) -> None:
        with self.changed:
            if self.changed.wait_for(lambda: bool(self.inside), 0.002):
                number = sorted(self.inside)[int(choice * len(self.inside))]
                self.inside.pop(number).set()


CAPS = st.one_of(
    st.integers(0, 800).map(lambda cap: Budget(max_tokens=cap)),
    st.integers(0, 8).map(lambda cap: Budget(max_calls=cap)),
    st.integers(0, 5000).map(lambda cap: Budget(max_usd=cap / 1e6)),
)
CALLS = st.lists(st.tuples(st.integers(1, 100), st.integers(0, 100)), max_size=12)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 6), CAPS, CALLS, st.integers(0, 1000))
def test_calls_made_at_once_never_pass_a_cap_together(
    workers: int, budget: Budget, calls: list[tuple[int, int]], seed: int
) -> None:
    """Whichever calls are under way together and in whatever order they end."""
    doors = Doors({number: used for number, (_, used) in enumerate(calls)})
    ledger, order = Ledger(budget, prices=PRICES), random.Random(seed)
    model = ledger.meter(doors, "agent")

    def one(number: int) -> int:
        try:
            ask(model, str(number), max_tokens=calls[number][0])
        except BudgetExceeded:
            return 0
        return 1

    with ThreadPoolExecutor(workers) as pool:
        futures = [pool.submit(one, number) for number in range(len(calls))]
        while not all(future.done() for future in futures):
            doors.let_out(order.random())
    assert ledger.calls == sum(future.result() for future in futures)
    assert budget.passed_by(spent_of(ledger)) is None


def test_after_the_minutes_no_call_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    inner = ScriptedModel(["x", "y"])
    ledger = Ledger(Budget(max_minutes=0.5))
    model = ledger.meter(inner, "agent")
    assert ledger.seconds_left() == 30
    assert ask(model).text == "x"
    ledger.check_time("agent")
    now[0] += 31
    for refused in (
        lambda: ask(model),
        lambda: ledger.check("agent"),
        lambda: ledger.check_time("agent"),
    ):
        with pytest.raises(BudgetExceeded, match=r"0\.5 minutes") as caught:
            refused()
        assert "--max-minutes" in caught.value.fix
    assert len(inner.requests) == 1
    assert Ledger().seconds_left() is None


def test_a_call_that_waits_for_room_stops_when_the_time_is_up() -> None:
    asked, go_on = threading.Event(), threading.Event()

    def answer(request: Request) -> str:
        asked.set()
        assert go_on.wait(10)
        return "x"

    model = Ledger(Budget(max_tokens=100, max_minutes=0.005)).meter(ScriptedModel(answer), "agent")
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(ask, model, max_tokens=60)
        assert asked.wait(10)
        second = pool.submit(ask, model, max_tokens=60)
        with pytest.raises(BudgetExceeded, match="minutes"):
            second.result(10)
        go_on.set()
        assert first.result(10).text == "x"


def test_a_call_waits_for_room_that_a_call_under_way_may_leave() -> None:
    """The first call holds 90 of 100 tokens and uses 5, so there is room for the second."""
    asked, go_on = threading.Event(), threading.Event()

    def answer(request: Request) -> Completion:
        asked.set()
        assert go_on.wait(10)
        return Completion("x", usage=Usage(3, 2))

    inner = ScriptedModel(answer)
    model = Ledger(Budget(max_tokens=100)).meter(inner, "agent")
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(ask, model, max_tokens=60)
        assert asked.wait(10)
        second = pool.submit(ask, model, max_tokens=60)
        time.sleep(0.1)
        assert len(inner.requests) == 1
        assert not second.done()
        go_on.set()
        assert first.result(10).text == second.result(10).text == "x"
    assert len(inner.requests) == 2


class HouseMade:
    name = "openai:house-made"

    def complete(self, request: Request) -> Completion:
        return Completion("x", usage=Usage(10, 10))


def test_a_cap_in_dollars_needs_a_price() -> None:
    with pytest.raises(ConfigurationError, match="no price is known for openai:house-made"):
        Ledger(Budget(max_usd=1)).meter(HouseMade(), "agent")
    assert ask(Ledger(Budget(max_calls=1)).meter(HouseMade(), "agent")).text == "x"
    own = Ledger(Budget(max_usd=1), prices={"openai:house-made": (1.0, 1.0)})
    assert ask(own.meter(HouseMade(), "agent")).text == "x"
    assert own.usd > 0


def test_after_a_charge_without_a_price_a_cap_in_dollars_lets_nothing_in() -> None:
    inner = ScriptedModel(["x"])
    ledger = Ledger(Budget(max_usd=1), prices=PRICES)
    model = ledger.meter(inner, "agent")
    ledger.charge("agent", "some-program", input_tokens=5)
    for refused in (lambda: ask(model), lambda: ledger.check("agent")):
        with pytest.raises(ConfigurationError, match="some-program") as caught:
            refused()
        assert "--max-tokens" in caught.value.fix
    assert inner.requests == []


@pytest.mark.parametrize("value", [-1, float("nan"), float("inf")])
def test_a_cap_that_is_no_amount_is_refused(value: float) -> None:
    with pytest.raises(ConfigurationError, match="max_usd"):
        Budget(max_usd=value)


def test_known_models_have_prices_and_local_ones_cost_nothing() -> None:
    ledger = Ledger(Budget(max_usd=1))

    assert ledger.charge("agent", "local:qwen2.5-coder-1.5b", input_tokens=1_000_000)
    assert ledger.usd == 0
    assert ledger.charge("agent", "anthropic:claude-sonnet-5-5", input_tokens=1_000_000)
    assert ledger.usd > 1
    with pytest.raises(BudgetExceeded):
        ledger.check("agent")


def test_a_reported_cost_that_is_no_amount_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="cost"):
        Ledger().charge("agent", "x", usd=float("nan"))


def test_each_call_is_traced_by_its_id_without_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "sk-0123456789-very-secret")
    ledger = Ledger(traces=tmp_path / "traces", prices=PRICES)
    model = ledger.meter(ScriptedModel(["the answer"]), "agent")
    completion = ask(model, "my key is sk-0123456789-very-secret")
    trace = json.loads((tmp_path / "traces" / f"{completion.call_id}.json").read_text())
    assert trace["completion"]["text"] == "the answer"
    assert "my key is" in json.dumps(trace)
    assert "very-secret" not in json.dumps(trace)


def test_a_secret_in_an_error_is_kept_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "sk-0123456789-very-secret")
    told: list[dict[str, Any]] = []
    ledger = Ledger(sink=told.append, traces=tmp_path, prices=PRICES)
    with pytest.raises(ModelError):
        ask(ledger.meter(ScriptedModel([ModelError("no: sk-0123456789-very-secret")]), "agent"))
    assert told[0]["error"] == "ModelError: no: <SOME_API_KEY>"
    [trace] = tmp_path.iterdir()
    assert trace.stem == told[0]["call_id"]
    assert "very-secret" not in trace.read_text()


@pytest.mark.parametrize(
    ("spec", "kind"),
    [
        ("claude-sonnet-5-5", "AnthropicModel"),
        ("anthropic:claude-sonnet-5-5", "AnthropicModel"),
        ("us.anthropic.claude-opus-4-6-v1", "BedrockModel"),
        ("gpt-5-mini", "OpenAIModel"),
        ("openai:llama@http://127.0.0.1:1/v1", "OpenAIModel"),
    ],
)
def test_names_resolve_to_providers(monkeypatch: pytest.MonkeyPatch, spec: str, kind: str) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-test-0123456789")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIATEST")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret-0123456789")
    assert type(resolve_model(spec)).__name__ == kind


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("antropic:claude-x", "Did you mean 'anthropic:claude-x'"),
        ("anthropic:", "no model"),
        ("something", "can't tell which provider"),
        ("local:no-such-model", "no-such-model"),
        ("local:/nowhere/x.gguf", "x.gguf"),
    ],
)
def test_a_name_that_resolves_to_nothing_says_what_to_write(spec: str, says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        resolve_model(spec)
