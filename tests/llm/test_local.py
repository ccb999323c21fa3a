"""A real model on this machine: in process, and through the real SDKs over its server."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from agent_evolve.agents.chat import ChatAgent
from agent_evolve.errors import ConfigurationError, ModelError
from agent_evolve.llm import (
    BoundTool,
    Completion,
    Message,
    Model,
    Request,
    Tool,
    resolve_model,
    run_tools,
)
from agent_evolve.llm.anthropic import AnthropicModel
from agent_evolve.llm.local import LocalModel
from agent_evolve.llm.local_server import LocalServer, settings_for
from agent_evolve.llm.openai import OpenAIModel
from agent_evolve.runtime import Runtime
from agent_evolve.types import Task

pytestmark = [pytest.mark.local_model, pytest.mark.timeout(600)]

NAME = "qwen2.5-coder-0.5b"
PROTOCOLS = pytest.mark.parametrize("protocol", ["local", "openai", "anthropic"])
LOOKUP = Tool(
    "capital_of",
    "The capital of a country.",
    {
        "type": "object",
        "properties": {"country": {"type": "string"}},
        "required": ["country"],
    },
)


@pytest.fixture(scope="module")
def weights(local_model_path: Callable[[str], Path]) -> Path:
    return local_model_path(NAME)


@pytest.fixture(scope="module")
def server(weights: Path) -> Iterator[LocalServer]:
    running = LocalServer(settings_for(weights, context=4096, threads=None, template=None))
    yield running
    running.close()


def ask(model: Model, text: str, **more: Any) -> Completion:
    return model.complete(Request([Message("user", text)], **{"max_tokens": 24} | more))


def test_it_answers_counts_tokens_and_is_the_same_at_temperature_0(weights: Path) -> None:
    model = resolve_model(f"local:{NAME}", seed=1)
    first, second = (ask(model, "Say hello.", temperature=0.0) for _ in range(2))
    assert first.text == second.text
    assert first.text.strip()
    assert first.usage.input_tokens > 5
    assert 0 < first.usage.output_tokens <= 24
    cut = ask(model, "Count from 1 to 100.", max_tokens=5)
    assert cut.stop_reason == "max_tokens"


def through(protocol: str, server: LocalServer) -> Model:
    """The same weights and context, in process or through a provider's SDK."""
    match protocol:
        case "local":
            return LocalModel(NAME, context=4096)
        case "openai":
            return OpenAIModel(NAME, api_key=server.api_key, base_url=f"{server.address}/v1")
        case _:
            return AnthropicModel(NAME, api_key=server.api_key, base_url=server.address)


@PROTOCOLS
def test_a_stop_string_ends_the_answer_before_it(
    protocol: str, weights: Path, server: LocalServer
) -> None:
    model = through(protocol, server)
    count = "Write the numbers 1 to 5, in order, separated by spaces, nothing else."
    assert "3" in ask(model, count, temperature=0.0).text
    assert ask(model, count, temperature=0.0, stop=["3"]).text.strip() == "1 2"


@PROTOCOLS
def test_a_prompt_beyond_its_context_fails_one_call_and_says_so(
    protocol: str, weights: Path, server: LocalServer
) -> None:
    with pytest.raises(ModelError, match=r"context size(?s:.*)shorten it"):
        ask(through(protocol, server), "word " * 5000)


@pytest.mark.parametrize("temperature", [0.0, 1.5])
def test_with_a_seed_an_answer_repeats_whatever_was_asked_before(
    temperature: float, weights: Path
) -> None:
    system = "You are a careful helper. " * 20

    def answer(seed: int, before: str) -> str:
        ask(LocalModel(NAME, context=4096), "Hello", system=before, max_tokens=2)
        model = LocalModel(NAME, context=4096, seed=seed)
        question = "Invent a name for a boat and say why, with a story."
        return ask(model, question, system=system, temperature=temperature, max_tokens=40).text

    befores = [system, "Other words entirely. " * 20, system[:260] + "zzz", ""]
    assert len({answer(7, before) for before in befores}) == 1
    if temperature:
        assert len({answer(seed, "") for seed in (1, 2, 3)}) > 1


@PROTOCOLS
def test_its_tool_calls_arrive_as_calls_and_get_their_results(
    protocol: str, weights: Path, server: LocalServer
) -> None:
    asked: list[str] = []

    def capital(arguments: Mapping[str, Any]) -> str:
        asked.append(str(arguments["country"]).lower())
        return "Valletta"

    words = "Look up the capital of Malta with capital_of, then tell me its name."
    request = Request([Message("user", words)], temperature=0.0, max_tokens=80)
    tool = BoundTool(LOOKUP, capital)
    result = run_tools(through(protocol, server), request, [tool], max_turns=2)
    assert asked == ["malta"]
    [step] = result.steps
    assert (step["tool"], step["output"], step["is_error"]) == ("capital_of", "Valletta", False)
    assert [bool(m.tool_calls) for m in result.messages[:2]] == [False, True]
    assert result.messages[2].tool_results[0].content == "Valletta"
    assert result.turns == 2  # this model may repeat its call there instead of an answer


def test_a_chat_agent_solves_with_what_its_memory_says(tmp_path: Path, weights: Path) -> None:
    (tmp_path / "memory").mkdir()
    (tmp_path / "manifest.yaml").write_text("agent: {type: chat, max_tokens: 12}\n")
    examples = [("apple", "A-apple"), ("pear", "P-pear"), ("plum", "P-plum"), ("fig", "F-fig")]
    (tmp_path / "memory" / "examples.jsonl").write_text(
        "".join(f'{{"input": "{q}", "answer": "{a}"}}\n' for q, a in examples)
    )
    agent = ChatAgent(tmp_path)
    agent.runtime = Runtime(model=LocalModel(NAME, context=4096))
    trajectory = agent.solve(Task("t", "mango"))
    assert trajectory.output.endswith("-mango")
    assert trajectory.metrics["output_tokens"] > 0


def test_its_server_answers_only_who_has_the_key_and_ends_when_closed(weights: Path) -> None:
    running = LocalServer(settings_for(weights, context=512, threads=1, template=None))
    url = f"{running.address}/v1"
    try:
        with pytest.raises(ConfigurationError, match="401"):
            ask(OpenAIModel(NAME, api_key="not the key", base_url=url, max_retries=0), "hi")
    finally:
        running.close()
    with pytest.raises(ModelError, match="no whole answer"):
        ask(OpenAIModel(NAME, api_key=running.api_key, base_url=url, max_retries=0), "hi")


def test_a_file_that_is_not_whole_is_a_persons_to_mend(tmp_path: Path, weights: Path) -> None:
    part = tmp_path / "part.gguf"
    with weights.open("rb") as whole:
        part.write_bytes(whole.read(20_000_000))
    with pytest.raises(ConfigurationError, match=r"can't load .*part\.gguf"):
        ask(LocalModel(str(part), context=512), "hi")
