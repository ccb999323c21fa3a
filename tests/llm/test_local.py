"""A real model on this machine: in process, and through the real SDKs over its server."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from agent_evolve.agents.chat import ChatAgent
from agent_evolve.errors import AgentEvolveError, ConfigurationError, ModelError
from agent_evolve.llm import (
    BoundTool,
    Completion,
    Message,
    Model,
    Request,
    Tool,
    ToolLoopResult,
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
    model = resolve_model(f"local:{NAME}")
    first, second = (ask(model, "Say hello.", temperature=0.0) for _ in range(2))
    assert first.text == second.text
    assert first.text.strip()
    assert first.usage.input_tokens > 5
    assert 0 < first.usage.output_tokens <= 24
    cut = ask(model, "Count from 1 to 100.", max_tokens=5)
    assert cut.stop_reason == "max_tokens"
    stopped = ask(model, "Say: one two three", stop=["two"], temperature=0.0)
    assert "two" not in stopped.text


def test_a_prompt_beyond_its_context_is_told(weights: Path) -> None:
    model = LocalModel(str(weights), context=512)
    with pytest.raises(AgentEvolveError, match="context"):
        ask(model, "word " * 2000)


def use_a_tool(model: Model) -> tuple[list[str], ToolLoopResult]:
    asked: list[str] = []

    def capital(arguments: Mapping[str, Any]) -> str:
        asked.append(str(arguments["country"]).lower())
        return "Valletta"

    question = Message("user", "What is the capital of Malta? Use capital_of.")
    request = Request([question], temperature=0.0, max_tokens=80)
    return asked, run_tools(model, request, [BoundTool(LOOKUP, capital)], max_turns=4)


@pytest.mark.parametrize("protocol", ["local", "openai", "anthropic"])
def test_its_tool_calls_arrive_as_calls(protocol: str, weights: Path, server: LocalServer) -> None:
    match protocol:
        case "local":
            model: Model = LocalModel(NAME, context=4096)
        case "openai":
            model = OpenAIModel(NAME, api_key=server.api_key, base_url=f"{server.address}/v1")
        case _:
            model = AnthropicModel(NAME, api_key=server.api_key, base_url=server.address)
    asked, result = use_a_tool(model)
    assert asked[0] == "malta"
    assert (result.steps[0]["tool"], result.steps[0]["output"]) == ("capital_of", "Valletta")


def test_a_model_of_some_size_ends_with_an_answer(
    local_model_path: Callable[[str], Path],
) -> None:
    local_model_path("qwen2.5-coder-1.5b")
    _, result = use_a_tool(LocalModel("qwen2.5-coder-1.5b", context=4096))
    assert result.stop == "end"
    assert "Valletta" in result.text


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
