"""Ctrl-C once finishes what is in flight, twice cancels it; the same command goes on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.loop.support import cli, environment, make_workspace

PARTS = """
import os, subprocess, time
from pathlib import Path

LOG = Path(__file__).parent / "asked.log"

def note(text):
    with LOG.open("a") as file:
        file.write(text + "\\n")

class Slow(Leveller):
    def solve(self, task):
        note("begin " + task.id)
        if (LOG.parent / "hang").exists():
            if task.id.endswith(("1", "3", "5", "7", "9")):
                time.sleep(600)
            subprocess.run(["sleep", "600"], start_new_session=True, check=True)
        time.sleep(0.3)
        note("end " + task.id)
        return super().solve(task)
"""
RUN = ("--cycles", "1", "--workers")


def begun(place: Path, word: str = "begin") -> list[str]:
    log = place / "asked.log"
    lines = log.read_text().splitlines() if log.exists() else []
    return [line.split()[1] for line in lines if line.startswith(word)]


def until(true: Callable[[], Any], process: subprocess.Popen[str] | None = None) -> None:
    deadline = time.monotonic() + 60
    while not true():
        assert process is None or process.poll() is None, process and process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.01)


def start(place: Path, workers: int, *more: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "agent_evolve", "run", str(place), *RUN, str(workers), *more],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def stop_reason(place: Path) -> str:
    lines = (place / "evolution" / "journal.jsonl").read_text().splitlines()
    last: dict[str, Any] = json.loads(lines[-1])
    assert last["type"] == "run_stopped"
    return str(last["reason"])


@pytest.mark.parametrize(("workers", "number"), [(1, signal.SIGINT), (3, signal.SIGTERM)])
def test_once_finishes_what_is_in_flight(tmp_path: Path, workers: int, number: int) -> None:
    place = make_workspace(tmp_path / "agent", agent="Slow", parts=PARTS)
    process = start(place, workers, "--json")
    until(lambda: len(begun(place)) >= workers + 1, process)
    process.send_signal(number)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "Ctrl-C again" in errors
    assert "Type the same command to go on" in errors
    assert json.loads(output)["stopped"] == "drained"
    assert stop_reason(place) == "drained"
    done = begun(place)
    assert sorted(done) == sorted(begun(place, "end"))
    assert len(done) < 10
    again = cli("run", str(place), *RUN, str(workers))
    assert again.returncode == 0, again.stderr
    asked = [task for task in begun(place) if task.startswith("holdout")]
    assert len(asked) == 20  # ten for the head, ten for the candidate: none asked again
    assert stop_reason(place) == "cycles"


def test_twice_cancels_what_is_in_flight_and_kills_its_processes(tmp_path: Path) -> None:
    place = make_workspace(tmp_path / "agent", agent="Slow", parts=PARTS)
    process = start(place, 2)
    until(lambda: begun(place, "end"), process)
    (place / "hang").touch()
    done = set()

    def hangs() -> bool:
        done.update(begun(place, "end"))
        return len(begun(place)) == len(done) + 2 and bool(sleepers(process.pid))

    until(hangs, process)
    hanging = sleepers(process.pid)
    process.send_signal(signal.SIGINT)
    time.sleep(0.3)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    began = time.monotonic()
    _, errors = process.communicate(timeout=30)
    assert time.monotonic() - began < 10
    assert process.returncode == 130, errors
    assert "cancelled" in errors
    assert stop_reason(place) == "cancelled"
    assert not [pid for pid in hanging if Path(f"/proc/{pid}/exe").exists()]
    cached = (place / "evolution" / "cache" / "scores.jsonl").read_text().splitlines()
    assert {json.loads(line)["task_id"] for line in cached} == set(begun(place, "end"))
    (place / "hang").unlink()
    again = cli("run", str(place), *RUN, "8")
    assert again.returncode == 0, again.stderr
    solved = [task for task in begun(place, "end") if task.startswith("holdout")]
    assert len(solved) == 20


def sleepers(pid: int) -> list[int]:
    """Children of a process that are the command ``sleep``."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            fields = (folder / "stat").read_text().rpartition(")")
            if "(sleep" in fields[0] and int(fields[2].split()[1]) == pid:
                found.append(int(folder.name))
        except (OSError, ValueError, IndexError):
            continue
    return found


STUCK = """
import agent_evolve.loop.attempt as attempt

attempt.GRACE_SECONDS = 0.2

class Stuck(Leveller):
    def solve(self, task):
        if task.id in ("train-3", "holdout-2"):
            while True:
                pass
        return super().solve(task)
"""


def test_an_agent_that_can_not_be_stopped_is_left_behind(tmp_path: Path) -> None:
    place = make_workspace(tmp_path / "agent", agent="Stuck", parts=STUCK, task_timeout=0.3)
    done = cli("run", str(place), "--cycles", "1", "--json", timeout=60)
    assert done.returncode == 0, done.stderr
    assert "can't be stopped" in done.stderr
    assert json.loads(done.stdout)["cycles_completed"] == 1
    held = cli("eval", "head", "-w", str(place), "--json", timeout=60)
    states = {task["id"]: task["status"] for task in json.loads(held.stdout)["tasks"]}
    assert states.pop("holdout-2") == "invalid"
    assert set(states.values()) == {"scored"}


API = """
import signal, sys, threading
sys.path.insert(0, {root!r})
from agent_evolve import Evolver
before = signal.getsignal(signal.SIGINT)
evolver = Evolver({place!r}, config={{"solve_workers": 2}})
if {threaded}:
    thread = threading.Thread(target=evolver.run, args=(1,))
    thread.start()
    thread.join()
else:
    evolver.run(1)
assert signal.getsignal(signal.SIGINT) is before
print("done")
"""


@pytest.mark.parametrize("threaded", [False, True])
def test_the_api_gives_the_signals_back(tmp_path: Path, threaded: bool) -> None:
    place = make_workspace(tmp_path / "agent")
    code = API.format(
        root=os.fspath(Path(__file__).parents[2]), place=str(place), threaded=threaded
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.stdout == "done\n", done.stderr
