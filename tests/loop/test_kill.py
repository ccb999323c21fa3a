"""Killed at any step, a run that is typed again ends as if it had never been killed."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from .support import cli, environment, git, make_workspace, tags

CYCLES = 3


def start(place, kill_at, temporary=None):
    return subprocess.run(
        [sys.executable, "-m", "tests.loop.killed_run", str(place), str(CYCLES), str(kill_at)],
        env=environment() | ({"TMPDIR": str(temporary)} if temporary else {}),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def outcome(place: Path) -> dict[str, object]:
    """Everything that must not depend on how often the process died."""
    lines = (place / "evolution" / "journal.jsonl").read_text().splitlines()
    events = [json.loads(line) for line in lines]
    finished = [e["record"] for e in events if e["type"] == "cycle_finished"]
    batches = [json.loads(json.dumps(e)) for e in events if e["type"] == "batch"]
    observed = []
    for file in sorted((place / "evolution" / "observations").glob("batch_*.jsonl")):
        observed += [json.loads(line)["task_id"] for line in file.read_text().splitlines()]
    return {
        "tags": tags(place),
        "records": [{k: v for k, v in r.items() if k not in ("seconds", "usd")} for r in finished],
        "batches": [(b["cycle"], b["tasks"], b["scores"]) for b in batches],
        "observed": observed,
        "prompt": (place / "prompts" / "system.md").read_text(),
        "clean": git(place, "status", "--porcelain"),
    }


def workspace(tmp_path: Path, name: str) -> Path:
    place = make_workspace(tmp_path / name)
    manifest = json.loads((place / "manifest.yaml").read_text())
    manifest["agent"]["remembers"] = True
    (place / "manifest.yaml").write_text(json.dumps(manifest))
    return place


def check_killed_at(tmp_path, steps, expected):
    here = tmp_path / "temporary"
    here.mkdir()
    for number in steps:
        place = workspace(tmp_path, f"killed{number}")
        killed = start(place, number, here)
        assert killed.returncode == -signal.SIGKILL, killed.stderr
        again = start(place, 0, here)
        assert again.returncode == 0, f"after a kill at step {number}: {again.stderr}"
        assert outcome(place) == expected, f"after a kill at step {number}"
        git(place, "fsck", "--strict")
        assert not list(here.glob("agent-evolve-run-*")), f"left over from step {number}"


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    place = workspace(tmp_path_factory.mktemp("whole"), "whole")
    done = start(place, 0)
    assert done.returncode == 0, done.stderr
    return int(done.stdout), outcome(place)


def test_a_kill_at_some_steps_changes_nothing(tmp_path, uninterrupted):
    steps, expected = uninterrupted
    check_killed_at(tmp_path, sorted(random.Random(1).sample(range(1, steps + 1), 8)), expected)


PARTS = 8  # the last step of all lets go of the lock, when the run is over


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_a_kill_at_every_step_changes_nothing(tmp_path, uninterrupted, part):
    steps, expected = uninterrupted
    check_killed_at(tmp_path, range(1 + part, steps, PARTS), expected)


SLOW_AGENT = """
import time
class Slow(Leveller):
    def solve(self, task):
        time.sleep(0.2)
        return super().solve(task)
"""


def test_ctrl_c_stops_with_everything_recorded_and_the_same_command_goes_on(tmp_path):
    place = make_workspace(tmp_path / "agent", agent="Slow", parts=SLOW_AGENT)
    process = subprocess.Popen(
        [sys.executable, "-m", "agent_evolve", "run", str(place), "--cycles", "2"],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    batch = place / "evolution" / "observations" / "batch_0001.jsonl"
    deadline = time.monotonic() + 60
    while not (batch.exists() and batch.read_text().count("\n") >= 2):
        assert time.monotonic() < deadline, process.communicate()
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "Type the same command to go on" in errors
    before = batch.read_text()
    again = cli("run", str(place), "--cycles", "2")
    assert again.returncode == 0, again.stderr
    assert batch.read_text().startswith(before)
    assert batch.read_text().count("\n") == 5
    assert "2 cycles" in again.stdout
