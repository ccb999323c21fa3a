"""The bash seed, with a scripted model in the place of a real one."""

from __future__ import annotations

from pathlib import Path

from agent_evolve import Evolver
from agent_evolve.engines.guided_synthesis import GuidedSynthesis
from agent_evolve.llm import Completion, Request, ScriptedModel
from agent_evolve.llm.types import ToolCall

COUNT = "grep -cv /health access.log || total.py sales.csv cents shop=Cork"


def shopkeeper(request: Request) -> Completion:
    """Looks with the shell, then answers with the last number it saw."""
    last = request.messages[-1]
    if not last.tool_results:
        call = ToolCall("c1", "bash", {"command": COUNT})
        return Completion("", (call,), "tool_use")
    return Completion(f"I counted.\n{last.tool_results[0].content.split()[-1]}")


def test_it_runs_as_it_is_and_its_tool_is_found(tmp_path: Path) -> None:
    evolver = Evolver(
        "bash",
        model=ScriptedModel(shopkeeper),
        engine=GuidedSynthesis(),
        work_dir=tmp_path,
    )
    result = evolver.run(cycles=1)
    [record] = result.cycles
    assert record.valid == record.total == 6
    lines = (tmp_path / "bash/evolution/observations/batch_0001.jsonl").read_text()
    assert "adds up to" in lines
    assert record.score is not None
    assert result.cycles[0].verdict in ("accepted", "rejected", "unchanged")
