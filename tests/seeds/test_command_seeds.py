"""The seeds for coding agents, with programs that print what the real ones print."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from tests.loop.support import cli

FAKE = """#!{python}
import json, os, re, sys
task = sys.stdin.read()
assert task.startswith("Write the changelog line") and task not in sys.argv
skill = open({skills!r} + "/changelog-line/SKILL.md").read()
told = open({instructions!r}).read()
known = dict(re.findall(r"Q: (.*)\\nA: (.*)", told))
answer = known.get(task, "changed something")
if {claude}:
    print(json.dumps({{"type": "result", "subtype": "success", "is_error": False, "num_turns": 1,
        "result": answer, "total_cost_usd": 0.01,
        "usage": {{"input_tokens": 100, "output_tokens": 10}}}}))
else:
    item = {{"type": "agent_message", "text": answer}}
    usage = {{"input_tokens": 100, "output_tokens": 10}}
    print(json.dumps({{"type": "item.completed", "item": item}}))
    print(json.dumps({{"type": "turn.completed", "usage": usage}}))
"""


@pytest.mark.parametrize(
    ("seed", "program", "skills", "instructions", "cap"),
    [
        ("claude-code", "claude", ".claude/skills", "CLAUDE.md", ("--max-usd", "0.02")),
        ("codex", "codex", ".agents/skills", "AGENTS.md", ("--max-tokens", "200")),
    ],
)
def test_it_runs_as_it_is_and_its_cost_is_counted(
    tmp_path: Path, seed: str, program: str, skills: str, instructions: str, cap: tuple[str, str]
) -> None:
    fake = tmp_path / "bin" / program
    fake.parent.mkdir()
    fake.write_text(
        FAKE.format(
            python=sys.executable,
            skills=skills,
            instructions=instructions,
            claude=program == "claude",
        )
    )
    fake.chmod(0o755)
    path = {"PATH": f"{fake.parent}{os.pathsep}{os.environ['PATH']}"}
    done = cli(
        "run", seed, "--cycles", "1", "--engine", "guided-synthesis", "--json",
        cwd=tmp_path, env=path,
    )  # fmt: skip
    result = json.loads(done.stdout)
    assert result["cycles"][0]["valid"] == 6, done.stderr
    assert result["cycles"][0]["verdict"] == "rejected"  # the same scores, with more text
    status = json.loads(cli("status", "--json", "-w", str(tmp_path / seed)).stdout)
    spent = status["spent"]["agent"]
    assert spent["calls"] == 6 + 2 * (12 + 12)  # two runs of each task show that nothing varies
    assert spent["input_tokens"] == 5400
    assert spent["usd"] == pytest.approx(0.54 if program == "claude" else 0.0)
    capped = cli(
        "run", seed, "--cycles", "3", "--engine", "guided-synthesis", *cap,
        cwd=tmp_path, env=path,
    )  # fmt: skip
    assert capped.returncode == 4, capped.stderr
    if program == "codex":  # it tells no price, so a cap in dollars is refused, not ignored
        dollars = cli(
            "run", seed, "--cycles", "3", "--engine", "guided-synthesis", "--max-usd", "1",
            cwd=tmp_path, env=path,
        )  # fmt: skip
        assert dollars.returncode == 2, dollars.stderr
        assert "no price is known" in dollars.stderr


@pytest.mark.parametrize("seed", ["claude-code", "codex"])
def test_doctor_says_that_the_program_is_missing(tmp_path: Path, seed: str) -> None:
    nothing = {"PATH": "/usr/bin:/bin", "ANTHROPIC_API_KEY": "sk-test"}
    done = cli("doctor", seed, "--evolver-model", "claude-sonnet-5-5", cwd=tmp_path, env=nothing)
    assert done.returncode == 2, done.stdout
    assert "install" in done.stdout
