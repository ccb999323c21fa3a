"""SkillForge in whole runs: a chat agent that gets better exactly when its files do."""

import json

import pytest

from agent_evolve import Evolver
from agent_evolve.llm.scripted import ScriptedModel

from .skillforge_support import bash, make_workspace

DAY_FIRST = (
    "CHANGES\nEDIT prompts/system.md\n<<<<<<< SEARCH\n=======\nDay first.\n>>>>>>> REPLACE\n"
)


@pytest.fixture
def root(tmp_path):
    """Date tasks, half of them held back. The agent has to learn that the day is first."""
    tasks = [
        {"id": f"t{n}", "input": f"Date {n}", "expected": f"day {n}", "split": split}
        for n, split in enumerate(["train"] * 3 + ["holdout"] * 3, 1)
    ]
    lines = "".join(json.dumps(task) + "\n" for task in tasks)
    manifest = "benchmark: {name: local, tasks: tasks.jsonl, grader: exact}\n"
    make_workspace(tmp_path / "agent", {"tasks.jsonl": lines}, manifest=manifest)
    return tmp_path / "agent"


def agent_model():
    def answer(request):
        number = request.messages[-1].content.split()[-1]
        return f"day {number}" if "Day first." in request.system else f"month {number}"

    return ScriptedModel(answer, name="agent")


def run(root, script, cycles=1, *, edit_mode="answer", **config):
    engine_model = ScriptedModel(list(script), name="engine")
    config = {"gate": "no_regression"} | config
    evolver = Evolver(root, config=config, model=agent_model(), evolver_model=engine_model)
    evolver.engine.options = evolver.engine.options.of({"edit_mode": edit_mode})
    return evolver.run(cycles), engine_model


@pytest.mark.parametrize(
    ("edit_mode", "script"),
    [
        ("answer", [DAY_FIRST + "DONE The day comes first."]),
        ("shell", [bash("echo 'Day first.' >> prompts/system.md"), "The day comes first."]),
    ],
)
def test_the_holdout_score_rises_with_what_the_model_wrote(root, edit_mode, script):
    result, model = run(root, script, edit_mode=edit_mode)
    assert (result.start_score, result.final_score) == (0.0, 1.0)
    cycle = result.cycles[0]
    assert (cycle.verdict, cycle.summary) == ("accepted", "The day comes first.")
    assert cycle.metadata["layers"] == {"prompts": {"added": 0, "modified": 1, "deleted": 0}}
    assert (root / "prompts/system.md").read_text().endswith("Day first.\n")
    assert "day 1" in repr(model.requests)
    assert "day 4" not in repr(model.requests)
    traces = [path.read_text() for path in (root / "evolution/traces").iterdir()]
    assert any("The day comes first." in trace for trace in traces)


def test_a_model_without_a_usable_reply_fails_its_cycle_and_the_run_goes_on(root):
    script = ["I can't.", "Really not.", DAY_FIRST + "DONE The day comes first."]
    result, _ = run(root, script, cycles=2)
    assert [cycle.verdict for cycle in result.cycles] == ["failed", "accepted"]
    assert "no usable changes in 2 replies" in result.cycles[0].reason


def test_an_engine_that_is_out_of_budget_ends_the_run(root):
    result, _ = run(root, [DAY_FIRST + "DONE x"], max_calls=4)
    assert result.stopped == "budget"
    assert (root / "prompts/system.md").read_text() == "You turn dates into ISO dates.\n"
