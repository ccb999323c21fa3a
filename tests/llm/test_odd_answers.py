"""Answers that are whole by the protocol and yet not what was hoped for."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from agent_evolve.errors import BudgetExceeded, ConfigurationError, ModelError
from agent_evolve.llm import (
    BoundTool,
    Budget,
    Completion,
    Ledger,
    Message,
    Request,
    Tool,
    run_tools,
)
from agent_evolve.llm.anthropic import STREAM_ABOVE, AnthropicModel

from .fake_server import Answer, FakeProvider
from .test_providers import ADD, Make, ask, make

__all__ = ["make"]  # a fixture

KEY = "sk-test-0123456789abcdef"
LONG = STREAM_ABOVE + 1


def claude(provider: FakeProvider, **options: Any) -> AnthropicModel:
    options = {"timeout": 5.0, "max_retries": 0} | options
    return AnthropicModel("claude-sonnet-5-5", api_key=KEY, base_url=provider.url, **options)


def test_a_slow_answer_is_given_up_after_the_timeout(make: Make) -> None:
    with FakeProvider([Answer.text("late", delay=1.5)]) as provider:
        model = make(provider, timeout=0.3, max_retries=0)
        started = time.monotonic()
        with pytest.raises(ModelError):
            ask(model)
        assert time.monotonic() - started < 1.4


def test_a_content_filter_refuses_one_call_and_does_not_stop_the_run(make: Make) -> None:
    said = "Output blocked by content filtering policy"
    answer = Answer.status(400, said, error_type="ValidationException")
    with FakeProvider([answer]) as provider:
        assert ask(make(provider)).stop_reason == "refusal"


def test_a_prompt_too_long_fails_one_call_and_says_so(make: Make) -> None:
    answer = Answer.status(400, "prompt is too long: 9 > 8", error_type="ValidationException")
    with FakeProvider([answer]) as provider, pytest.raises(ModelError, match="shorten it"):
        ask(make(provider))


def test_a_temperature_that_is_refused_is_left_out_from_then_on(make: Make) -> None:
    no = Answer.status(400, "temperature is not supported", error_type="ValidationException")
    with FakeProvider([no, Answer.text("ok")]) as provider:
        model = make(provider)
        assert ask(model, temperature=0.0).text == "ok"
        assert ask(model, temperature=0.0).text == "ok"
        sent = [received.body for received in provider.requests]
    assert ["temperature" in json.dumps(body) for body in sent] == [True, False, False]


UNCOUNTED = {
    "anthropic": {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": "f",
        "content": [{"type": "text", "text": "12345678" * 10}],
        "stop_reason": "end_turn",
    },
    "openai": {
        "choices": [
            {
                "index": 0,
                "finish_reason": "stop",
                "message": {"role": "assistant", "content": "12345678" * 10},
            }
        ]
    },
    "bedrock": {
        "output": {"message": {"role": "assistant", "content": [{"text": "12345678" * 10}]}},
        "stopReason": "end_turn",
    },
}


def test_tokens_that_nobody_counted_still_count_against_a_cap(make: Make) -> None:
    with FakeProvider([Answer.text("x")]) as probe:
        kind = make(probe).name.partition(":")[0]
    body = UNCOUNTED.get(kind, UNCOUNTED["openai"])
    with FakeProvider([Answer(body=body)]) as provider:
        ledger = Ledger(Budget(max_tokens=150))
        model = ledger.meter(make(provider), "agent")
        completion = ask(model, "word " * 8, max_tokens=20)
        assert completion.usage.output_tokens == 20
        made = 1
        while ledger.tokens + 20 < 100:
            ask(model, "word " * 8, max_tokens=20)
            made += 1
        with pytest.raises(BudgetExceeded):
            ask(model, "word " * 20, max_tokens=100)
        assert len(provider.requests) == made
        assert ledger.tokens <= 150


# -- long answers, which Anthropic's are streamed ------------------------------------------------


def test_a_streamed_answer_is_the_same_as_one_at_once() -> None:
    answer = Answer.tool("add", {"a": 1, "b": 2}, content="I add.", thinking="hm, add")
    with FakeProvider([answer]) as provider:
        at_once, streamed = (ask(claude(provider), max_tokens=n) for n in (100, LONG))
        assert provider.requests[1].body["stream"] is True
    assert streamed == at_once
    assert streamed.usage.input_tokens == 100


@pytest.mark.parametrize("sent", ['{"a": 1, "b"', '{"a": nope}', "[1]", '"text"'])
@pytest.mark.parametrize("thinking", ["", "hm"])
def test_a_streamed_call_that_is_no_object_is_shown_to_the_model(sent: str, thinking: str) -> None:
    script = [Answer.tool("add", sent, thinking=thinking), Answer.text("sorry")]
    tool = BoundTool(ADD, lambda _: pytest.fail("a broken call was run"))
    with FakeProvider(script) as provider:
        request = Request([Message("user", "x")], max_tokens=LONG)
        result = run_tools(claude(provider), request, [tool])
        turn = provider.requests[1].body["messages"][1]["content"]
    assert result.text == "sorry"
    [step] = result.steps
    assert step["is_error"]
    assert "not a JSON object" in step["output"]
    [use] = [block for block in turn if block["type"] == "tool_use"]
    assert isinstance(use["input"], dict)


def test_a_streamed_call_without_arguments_is_run() -> None:
    tool = Tool("now", "The time.", {"type": "object", "properties": {}})
    with FakeProvider([Answer.tool("now", ""), Answer.text("noon")]) as provider:
        request = Request([Message("user", "x")], max_tokens=LONG)
        result = run_tools(claude(provider), request, [BoundTool(tool, lambda _: "12:00")])
    assert [step["output"] for step in result.steps] == ["12:00"]


def test_an_error_in_the_middle_of_a_stream_fails_the_call() -> None:
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    events = f"event: error\ndata: {json.dumps(error)}\n\n".encode()
    with (
        FakeProvider([Answer(body=events)]) as provider,
        pytest.raises(ModelError, match="Overloaded"),
    ):
        ask(claude(provider), max_tokens=LONG)


def test_a_stream_whose_connection_is_cut_is_no_answer() -> None:
    answer = Answer.text("hello " * 100, cut=True)
    with FakeProvider([answer]) as provider, pytest.raises(ModelError):
        ask(claude(provider), max_tokens=LONG)


# -- the loop around them ------------------------------------------------------------------------


def test_a_call_cut_at_the_limit_is_not_run(make: Make) -> None:
    ran: list[Any] = []
    with FakeProvider([Answer.text("x")]) as probe:
        cut = "max_tokens" if make(probe).name[0] in "ab" else "length"
    script = [Answer.tool("add", {"a": 1, "b": 2}, stop=cut), Answer.text("done")]
    tool = BoundTool(ADD, lambda arguments: str(ran.append(arguments)))
    with FakeProvider(script) as provider:
        result = run_tools(make(provider), Request([Message("user", "x")]), [tool])
    assert ran == []
    assert "limit" in result.steps[0]["output"]
    assert result.text == "done"


def test_a_model_that_only_repeats_itself_is_stopped(make: Make) -> None:
    ran: list[Any] = []

    def add(arguments: Any) -> str:
        ran.append(arguments)
        return "3"

    with FakeProvider([Answer.tool("add", {"a": 1, "b": 2})]) as provider:
        result = run_tools(
            make(provider), Request([Message("user", "x")]), [BoundTool(ADD, add)], max_turns=50
        )
        assert len(provider.requests) < 8
    assert result.stop == "repetition"
    assert len(ran) == 2


def test_the_last_turn_is_for_an_answer(make: Make) -> None:
    script = [Answer.tool("add", {"a": n, "b": 2}) for n in range(3)]
    tool = BoundTool(ADD, lambda _: "3")
    with FakeProvider(script) as provider:
        result = run_tools(make(provider), Request([Message("user", "x")]), [tool], max_turns=3)
        assert len(provider.requests) == 3
        assert "last turn" in json.dumps(provider.requests[-1].body)
    assert (result.stop, result.turns, len(result.steps)) == ("max_turns", 3, 2)


def test_a_tool_that_raises_is_told_and_a_cap_gets_through(make: Make) -> None:
    def broken(_: Any) -> str:
        raise OSError("no such device")

    def capped(_: Any) -> str:
        raise BudgetExceeded("spent")

    script = [Answer.tool("add", {"a": 1, "b": 2}), Answer.text("I see")]
    with FakeProvider(script) as provider:
        result = run_tools(
            make(provider), Request([Message("user", "x")]), [BoundTool(ADD, broken)]
        )
    assert result.steps[0]["output"] == "OSError: no such device"
    with FakeProvider(script) as provider, pytest.raises(BudgetExceeded):
        run_tools(make(provider), Request([Message("user", "x")]), [BoundTool(ADD, capped)])


def test_a_tool_without_a_real_schema_is_the_authors_to_mend() -> None:
    bad = BoundTool(Tool("x", "x", {"type": "nonsense"}), lambda _: "")
    with FakeProvider([Answer.text("x")]) as provider:
        with pytest.raises(ConfigurationError, match="JSON Schema"):
            run_tools(claude(provider), Request([Message("user", "x")]), [bad])
        assert provider.requests == []


class Unpriced:
    name = "openai:house-made"

    def complete(self, request: Request) -> Completion:
        return Completion("x")


def test_an_unknown_price_is_recorded_as_unknown_and_said_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    records: list[dict[str, Any]] = []
    ledger = Ledger(sink=records.append)
    model = ledger.meter(Unpriced(), "agent")
    ask(model)
    ask(model)
    ledger.charge("agent", "some-program", input_tokens=5)
    assert [record["usd"] for record in records] == [None, None, None]
    assert ledger.totals()["agent"].unpriced == 3
    said = [record.getMessage() for record in caplog.records]
    assert len([line for line in said if "house-made" in line]) == 1
    assert len([line for line in said if "some-program" in line]) == 1
