"""The bash seed, with a scripted model in the place of a real one."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import pytest

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


JOBS = [
    json.loads(line)
    for line in (Path(__file__).parents[2] / "seed_workspaces/bash/tasks.jsonl")
    .read_text()
    .splitlines()
]


def answer(job: dict[str, object], forget: str = "") -> float:
    """What a job's files say by the house rules, or without one of them."""
    asked, files = str(job["input"]), dict(job["files"])  # type: ignore[call-overload]
    if "sales.csv" in files:
        return _of_sales(asked, files["sales.csv"], forget)
    rows = [line.split() for line in files["access.log"].splitlines()]
    if forget != "health":
        rows = [row for row in rows if row[2] != "/health"]
    if "failed" in asked:
        least = 400 if forget == "5xx" else 500
        return sum(int(row[3]) >= least for row in rows)
    if slowest := re.search(r"slowest (/\w+)", asked):
        return max(int(row[4].removesuffix("ms")) for row in rows if row[2] == slowest[1])
    return len(rows)


def _of_sales(asked: str, text: str, forget: str) -> float:
    rows = list(csv.DictReader(io.StringIO(text)))
    if forget != "void":
        rows = [row for row in rows if not row["void"]]
    if month := re.search(r"month (\d+) of (\d+)", asked):
        return sum(row["day"].startswith(f"{month[2]}-{int(month[1]):02d}-") for row in rows)
    shop = re.search(r" in ([A-Z]\w+)", asked)
    assert shop is not None
    cents = [int(row["cents"]) for row in rows if row["shop"] == shop[1]]
    found = max(cents) if "largest" in asked else sum(cents)
    return found if forget == "cents" else found / 100


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job["id"])
def test_every_expected_answer_follows_from_the_files_by_the_house_rules(
    job: dict[str, object],
) -> None:
    assert answer(job) == pytest.approx(job["expected"], abs=0.005)


def test_nothing_held_out_can_be_answered_by_copying_and_every_rule_decides_some_of_it() -> None:
    held = [job for job in JOBS if job["split"] == "holdout"]
    assert len(held) == len(JOBS) - len(held) == 12
    train = {job["expected"] for job in JOBS if job["split"] == "train"}
    assert not train & {job["expected"] for job in held}
    for rule in ("void", "cents", "health", "5xx"):
        decided = [job for job in held if answer(job, rule) != pytest.approx(answer(job))]
        assert len(decided) >= 2, rule
