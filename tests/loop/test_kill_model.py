"""Killed at any event of five cycles with a scripted model, a run ends with the same tags, scores
and ledger, and buys no answer twice."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from agent_evolve.journal import Journal
from agent_evolve.llm import totals_of

from .support import environment, tags

CYCLES = 5
TRAIN, HOLDOUT = 4, 12


def script(place: Path) -> Path:
    """Answers in order, some of them failures, whoever asks: one call too many or too few would
    shift all that follow."""
    dice = random.Random(8)
    answers = [
        {"error": "the provider is down"} if n % 37 == 5 else dice.choice(["yes", "no"])
        for n in range(2000)
    ]
    path = place / "script.yaml"
    path.write_text(json.dumps(answers))
    return path


MODULE = '''
from agent_evolve import EvolutionEngine, StepResult
from agent_evolve.llm import Message, Request


class Asks(EvolutionEngine):
    """Asks its model for a word and writes it down."""

    needs_model = True

    def step(self, workspace, observations, history, trial):
        model = self.runtime.require_model("Asks")
        words = [model.complete(Request([Message("user", f"word {n}?")])).text for n in range(2)]
        seen = trial.run_single(trial.get_tasks(1)[0], workspace).score
        workspace.write_prompt(f"{workspace.read_prompt()} {words} {seen}")
        return StepResult(True, f"{words} {seen}")
'''


def workspace(place: Path) -> Path:
    (place / "prompts").mkdir(parents=True)
    (place / "prompts" / "system.md").write_text("Answer.")
    (place / "asks.py").write_text(MODULE)
    manifest = {
        "name": "killed",
        "agent": {"type": "chat"},
        "engine": "asks.Asks",
        "benchmark": {"name": "local", "tasks": "tasks.jsonl", "grader": "normalised"},
        "evolvable_layers": ["prompts"],
        "config": {"batch_size": 3, "egl_threshold": 0.0, "repeats": 2, "max_failed_cycles": 9},
    }
    (place / "manifest.yaml").write_text(json.dumps(manifest))
    tasks = [("train", n) for n in range(TRAIN)] + [("holdout", n) for n in range(HOLDOUT)]
    lines = [
        json.dumps({"id": f"{s}{n}", "input": f"is {s} {n} so", "expected": "yes", "split": s})
        for s, n in tasks
    ]
    (place / "tasks.jsonl").write_text("\n".join(lines) + "\n")
    return place


def start(place: Path, answers: Path, kill_at: int, when: str = "after"):
    arguments = (place, CYCLES, answers, kill_at, when)
    return subprocess.run(
        [sys.executable, "-m", "tests.loop.killed_at_event", *map(str, arguments)],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def outcome(place: Path) -> dict[str, object]:
    events = list(Journal(place / "evolution" / "journal.jsonl").events())
    calls = [event for event in events if event.type == "call"]
    records = [e["record"] for e in events if e.type == "cycle_finished"]
    return {
        "tags": tags(place),
        "records": [{k: v for k, v in r.items() if k != "seconds"} for r in records],
        "judged": [
            (e["cycle"], e["verdict"], e["reason"], e["tasks"])
            for e in events
            if e.type == "judged"
        ],
        "batches": [(e["cycle"], e["scores"]) for e in events if e.type == "batch"],
        "ledger": {
            by: {
                key: (t.calls, t.input_tokens, t.output_tokens, t.usd)
                for key, t in totals_of(calls, by).items()
            }
            for by in ("role", "part", "cycle", "candidate")
        },
        "prompt": (place / "prompts" / "system.md").read_text(),
        "bought": len(Path(f"{place}.calls").read_text().splitlines()),
    }


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    here = tmp_path_factory.mktemp("whole")
    answers = script(here)
    place = workspace(here / "whole")
    done = start(place, answers, 0)
    assert done.returncode == 0, done.stderr
    return answers, int(done.stdout), outcome(place)


def check(tmp_path, whole, kills):
    answers, _, expected = whole
    for number, when in kills:
        place = workspace(tmp_path / f"{when}{number}")
        killed = start(place, answers, number, when)
        assert killed.returncode == -signal.SIGKILL, killed.stderr
        again = start(place, answers, 0)
        assert again.returncode == 0, f"after a kill {when} event {number}: {again.stderr}"
        got = outcome(place)
        for key, value in expected.items():
            assert got[key] == value, f"{key}, after a kill {when} event {number}"


def test_the_run_is_worth_killing(whole):
    _, events, expected = whole
    assert events > 80
    verdicts = {record["verdict"] for record in expected["records"]}
    assert len(expected["records"]) == CYCLES
    assert len(verdicts & {"accepted", "rejected", "cannot_tell"}) >= 1
    assert set(expected["ledger"]["part"]) == {"baseline", "solve", "evolve", "measure"}


def test_killed_at_some_events_the_outcome_is_the_same(tmp_path, whole):
    _, events, _ = whole
    dice = random.Random(2)
    numbers = sorted(dice.sample(range(1, events + 1), 6))
    check(tmp_path, whole, [(n, dice.choice(["before", "after"])) for n in numbers])


PARTS = 8


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_killed_at_every_event_the_outcome_is_the_same(tmp_path, whole, part):
    _, events, _ = whole
    check(tmp_path, whole, [(n, "after") for n in range(1 + part, events, PARTS)])
