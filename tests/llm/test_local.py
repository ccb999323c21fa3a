"""A real model on this machine: in process, and through the real SDKs over its server."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from agent_evolve.agents.chat import ChatAgent
from agent_evolve.errors import AgentEvolveError
from agent_evolve.llm import BoundTool, Message, Request, Tool, resolve_model, run_tools
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
def server(weights: Path):  # type: ignore[no-untyped-def]
    running = LocalServer(settings_for(weights, context=4096, threads=None, template=None))
    yield running
    running.close()


def ask(model: object, text: str, **more: object):  # type: ignore[no-untyped-def]
    return model.complete(Request([Message("user", text)], **{"max_tokens": 24} | more))  # type: ignore[attr-defined]


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


@pytest.mark.parametrize("protocol", ["local", "openai", "anthropic"])
def test_it_uses_a_tool_and_then_answers(protocol: str, weights: Path, server: LocalServer) -> None:
    match protocol:
        case "local":
            model: object = LocalModel(NAME, context=4096)
        case "openai":
            model = OpenAIModel(NAME, api_key=server.api_key, base_url=f"{server.address}/v1")
        case _:
            model = AnthropicModel(NAME, api_key=server.api_key, base_url=server.address)
    asked: list[str] = []

    def capital(arguments: object) -> str:
        asked.append(str(arguments["country"]))  # type: ignore[index]
        return "Valletta"

    result = run_tools(
        model,  # type: ignore[arg-type]
        Request(
            [Message("user", "What is the capital of Malta? Use capital_of.")],
            temperature=0.0,
            max_tokens=80,
        ),
        [BoundTool(LOOKUP, capital)],
        max_turns=4,
    )
    assert asked
    assert "malta" in asked[0].lower()
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
    assert trajectory.output == "M-mango"
    assert trajectory.metrics["output_tokens"] > 0
