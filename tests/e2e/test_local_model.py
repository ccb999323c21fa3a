"""The main job with a real model on this machine."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.loop.support import cli, git


@pytest.mark.local_model
@pytest.mark.timeout(1500)
def test_house_rules_are_learned_by_a_small_model(
    tmp_path: Path, local_model_path: Callable[[str], Path]
) -> None:
    local_model_path("qwen2.5-coder-1.5b")
    done = cli(
        "run", "house-rules", "--model", "local:qwen2.5-coder-1.5b", "--cycles", "2", "--json",
        cwd=tmp_path, timeout=1400, env={"AGENT_EVOLVE_REPEATS": "1"},
    )  # fmt: skip
    result = json.loads(done.stdout)
    assert done.returncode == 0, done.stderr
    assert result["final_score"] >= result["start_score"] + 0.2, result["score_history"]
    place = tmp_path / "house-rules"
    assert '+{"kind": "example"' in git(place, "diff", "evo-0", "evo-2")
    calls = [
        event
        for line in (place / "evolution" / "journal.jsonl").read_text().splitlines()
        if (event := json.loads(line))["type"] == "call"
    ]
    assert {call["role"] for call in calls} == {"agent"}
    assert all(call["output_tokens"] > 0 for call in calls)
    status = cli("status", "--json", "-w", str(place))
    assert json.loads(status.stdout)["spent"]["agent"]["calls"] == len(calls)
