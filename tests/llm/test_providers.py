"""Each provider through its real SDK, over real HTTP, against a server that speaks its protocol."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

import pytest

from agent_evolve.errors import AgentEvolveError, ConfigurationError, ModelError
from agent_evolve.llm import BoundTool, Message, Model, Request, Tool, run_tools
from agent_evolve.llm.anthropic import AnthropicModel
from agent_evolve.llm.bedrock import BedrockModel
from agent_evolve.llm.litellm import LiteLLMModel
from agent_evolve.llm.openai import OpenAIModel

from .fake_server import Answer, FakeProvider

KEY = "sk-test-0123456789abcdef"
Make = Callable[..., Model]

ADD = Tool(
    "add",
    "Add two numbers.",
    {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
    },
)


@pytest.fixture(params=["anthropic", "openai", "bedrock", "litellm"])
def make(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Make:
    """Builds the provider's model over a fake server."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIATEST")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", KEY)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    if request.param == "litellm":
        pytest.importorskip("litellm", reason="the extra litellm is not installed")

    def build(provider: FakeProvider | str, **options: Any) -> Model:
        url = provider if isinstance(provider, str) else provider.url
        options = {"timeout": 5.0, "max_retries": 2} | options
        match request.param:
            case "anthropic":
                return AnthropicModel("claude-sonnet-5-5", api_key=KEY, base_url=url, **options)
            case "openai":
                return OpenAIModel("gpt-5-mini", api_key=KEY, base_url=f"{url}/v1", **options)
            case "litellm":
                name = "openai/house-model"
                return LiteLLMModel(name, api_key=KEY, base_url=f"{url}/v1", **options)
        return BedrockModel("us.anthropic.claude-x", endpoint_url=url, **options)

    return build


def ask(model: Model, text: str = "hi", **more: Any) -> Any:
    return model.complete(Request([Message("user", text)], **more))


def test_an_answer_with_its_usage(make: Make) -> None:
    with FakeProvider([Answer.text("hello")]) as provider:
        completion = ask(make(provider), system="be brief", stop=["END"], max_tokens=77)
        [received] = provider.requests
    assert (completion.text, completion.stop_reason) == ("hello", "end")
    usage = completion.usage
    assert (usage.input_tokens, usage.output_tokens) == (100, 20)
    assert usage.cache_read_tokens == 40
    sent = str(received.body)
    assert "be brief" in sent
    assert "77" in sent
    assert "END" in sent


@pytest.mark.parametrize("temperature", [None, 0.0, 0.5])
def test_a_temperature_is_sent_only_when_set(make: Make, temperature: float | None) -> None:
    with FakeProvider([Answer.text("x")]) as provider:
        ask(make(provider), temperature=temperature)
        sent = str(provider.requests[0].body)
    assert ("temperature" in sent) == (temperature is not None)


def test_a_tool_is_used_and_its_result_sent_back(make: Make) -> None:
    script = [Answer.tool("add", {"a": 1, "b": 2}), Answer.text("It is 3.")]
    with FakeProvider(script) as provider:
        result = run_tools(
            make(provider),
            Request([Message("user", "add 1 and 2")]),
            [BoundTool(ADD, lambda arguments: str(arguments["a"] + arguments["b"]))],
        )
        second = str(provider.requests[1].body)
    assert (result.text, result.stop, result.turns) == ("It is 3.", "end", 2)
    [step] = result.steps
    assert (step["tool"], step["output"], step["is_error"]) == ("add", "3", False)
    assert "call_1" in second


def test_the_model_is_shown_its_own_broken_call(make: Make) -> None:
    script = [Answer.tool("add", {"a": "one"}), Answer.tool("sum", {}), Answer.text("I give up")]
    with FakeProvider(script) as provider:
        result = run_tools(
            make(provider), Request([Message("user", "x")]), [BoundTool(ADD, lambda _: "never")]
        )
    assert [step["is_error"] for step in result.steps] == [True, True]
    assert "add" in result.steps[1]["output"]
    assert result.text == "I give up"


def test_thinking_is_kept_for_the_provider_and_out_of_the_text(make: Make) -> None:
    script = [
        Answer.tool("add", {"a": 1, "b": 2}, thinking="hmm"),
        Answer.text("3"),
    ]
    with FakeProvider(script) as provider:
        model = make(provider)
        result = run_tools(model, Request([Message("user", "x")]), [BoundTool(ADD, lambda _: "3")])
        second = str(provider.requests[1].body)
    assert result.text == "3"
    if not isinstance(model, OpenAIModel | LiteLLMModel):
        assert "hmm" in second
        assert "sig==" in second


@pytest.mark.parametrize("code", [401, 403])
def test_a_wrong_key_is_a_persons_to_mend_and_is_not_repeated(make: Make, code: int) -> None:
    error_type = "AccessDeniedException"
    with FakeProvider([Answer.status(code, f"bad key {KEY}", error_type=error_type)]) as provider:
        with pytest.raises(ConfigurationError) as caught:
            ask(make(provider))
        assert len(provider.requests) == 1
    assert KEY not in str(caught.value)
    assert caught.value.fix


def test_an_unknown_model_is_a_persons_to_mend(make: Make) -> None:
    answer = Answer.status(404, "model not found", error_type="ResourceNotFoundException")
    with FakeProvider([answer]) as provider, pytest.raises(ConfigurationError):
        ask(make(provider))


def test_a_rate_limit_that_passes_is_waited_for(make: Make) -> None:
    busy = Answer.status(429, "slow down", error_type="ThrottlingException")
    with FakeProvider([busy, Answer.text("hello")]) as provider:
        assert ask(make(provider)).text == "hello"
        assert len(provider.requests) == 2


@pytest.mark.parametrize(
    ("code", "error_type"),
    [(429, "ThrottlingException"), (500, "InternalServerException"), (529, "overloaded_error")],
)
def test_an_outage_that_lasts_fails_the_call(make: Make, code: int, error_type: str) -> None:
    with FakeProvider([Answer.status(code, "down", error_type=error_type)]) as provider:
        model = make(provider, max_retries=1)
        with pytest.raises(ModelError, match="down"):
            ask(model)
        assert len(provider.requests) >= (1 if isinstance(model, BedrockModel) else 2)


def test_half_an_answer_is_no_answer(make: Make) -> None:
    with (
        FakeProvider([Answer.text("hello" * 100, cut=True)]) as provider,
        pytest.raises(ModelError),
    ):
        ask(make(provider, max_retries=0))


def test_a_page_in_the_place_of_an_answer_is_no_answer(make: Make) -> None:
    page = Answer(body=b"<html>proxy</html>")
    with FakeProvider([page]) as provider, pytest.raises(AgentEvolveError):
        ask(make(provider, max_retries=0))


def test_an_empty_message_is_an_empty_text(make: Make) -> None:
    with FakeProvider([Answer.text("")]) as provider:
        assert ask(make(provider)).text == ""


def test_an_answer_that_was_cut_says_so(make: Make) -> None:
    with FakeProvider([Answer.text("half", stop="max_tokens")]) as provider:
        model = make(provider)
        if isinstance(model, OpenAIModel | LiteLLMModel):
            return  # it calls this 'length'; see below
        assert ask(model).stop_reason == "max_tokens"


@pytest.mark.parametrize(
    ("stop", "reason"),
    [("stop", "end"), ("length", "max_tokens"), ("content_filter", "refusal")],
)
def test_how_openai_says_why_it_stopped(stop: str, reason: str) -> None:
    with FakeProvider([Answer.text("x", stop=stop)]) as provider:
        model = OpenAIModel("gpt-5-mini", api_key=KEY, base_url=f"{provider.url}/v1")
        assert ask(model).stop_reason == reason


def test_a_refusal_of_claude() -> None:
    with FakeProvider([Answer.text("", stop="refusal")]) as provider:
        model = AnthropicModel("claude-sonnet-5-5", api_key=KEY, base_url=provider.url)
        assert ask(model).stop_reason == "refusal"


def test_broken_json_in_a_call_is_kept_as_it_was() -> None:
    with FakeProvider([Answer.tool("add", '{"a": 1, "b"')]) as provider:
        model = OpenAIModel("gpt-5-mini", api_key=KEY, base_url=f"{provider.url}/v1")
        [call] = ask(model, tools=[ADD]).tool_calls
    assert (call.arguments, call.raw) == (None, '{"a": 1, "b"')


def test_a_stream_that_breaks_off_is_no_answer() -> None:
    """Anthropic's SDK streams long answers; one without its end is not taken for whole."""
    with FakeProvider([Answer.text("hello", stop="broken off")]) as provider:
        model = AnthropicModel("claude-sonnet-5-5", api_key=KEY, base_url=provider.url)
        with pytest.raises(ModelError):
            ask(model, max_tokens=64_000)


def test_nobody_is_there(make: Make) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
        with pytest.raises(ModelError):
            ask(make(url, max_retries=0))


def test_without_a_key_nothing_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    for build in (AnthropicModel, OpenAIModel):
        with pytest.raises(ConfigurationError, match="_API_KEY"):
            build("any-model")
