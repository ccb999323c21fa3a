"""A killed run that goes on pays for no answer twice, and ends as if it had never been killed."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import astuple
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_evolve.errors import BudgetExceeded, ModelError
from agent_evolve.journal import Journal
from agent_evolve.llm import (
    Budget,
    Completion,
    Ledger,
    Message,
    Replay,
    Request,
    ScriptedModel,
    ToolCall,
    ToolResult,
    Usage,
    attributed,
    totals_of,
)
from agent_evolve.llm.totals import AXES
from agent_evolve.loop.pool import run_all

FINISHED = ("cycles",)

Plan = list[list[tuple[str, str]]]
"""Cycles of (task, text to ask)."""


class Killed(BaseException):
    pass


class Run:
    """A small run over real files: cycles of calls, journaled as the loop does it."""

    def __init__(self, place: Path, steps: Callable[[], None] = lambda: None) -> None:
        self.journal = Journal(place / "journal.jsonl")
        self.steps = steps
        self.place = place

    def ledger(self, budget: Budget | None = None) -> Ledger:
        traces = self.place / "traces"
        replay = Replay.of_run(self.journal.events(), traces, finished=FINISHED)
        return Ledger(budget or Budget(), sink=self._record, traces=traces, replay=replay)

    def _record(self, call: dict[str, Any]) -> None:
        self.steps()
        self.journal.append("call", **call)
        self.steps()

    def go(self, plan: Plan, model: ScriptedModel) -> Iterator[tuple[tuple[int, int], str]]:
        metered = self.ledger().meter(model, "agent")
        self.journal.append("run_started", first_cycle=1)
        with attributed(cycle=0, part="baseline"):  # taken by each process
            yield (0, -1), ask(metered, "baseline")
        done = sum(1 for _ in self.journal.events("cycle_finished"))
        for cycle, calls in list(enumerate(plan))[done:]:
            self.journal.append("cycle_started", cycle=cycle)
            for turn, (task, text) in enumerate(calls):
                self.steps()
                with attributed(cycle=cycle, part="solve", task=task):
                    yield (cycle, turn), ask(metered, text)
            self.journal.append("cycle_finished", cycle=cycle)
            self.steps()
        self.journal.append("run_stopped", reason="cycles")


def ask(model: Any, text: str) -> str:
    try:
        return str(model.complete(Request([Message("user", text)])).text)
    except ModelError as error:
        return f"failed: {error.message}, {error.fix}"


def outcome(place: Path) -> dict[str, Any]:
    """Totals by every axis, without the time that calls took."""
    calls = list(Journal(place / "journal.jsonl").events("call"))
    assert len({call["call_id"] for call in calls}) == len(calls)
    return {
        axis: {
            name: (total.calls, total.input_tokens, total.output_tokens, total.usd)
            for name, total in totals_of(calls, axis).items()
        }
        for axis in AXES
    }


def killer(at: int) -> Callable[[], None]:
    left = iter(range(at))

    def step() -> None:
        if next(left, None) is None:
            raise Killed

    return step


def script_file(place: Path, calls: int, failing: set[int]) -> Path:
    answers: list[Any] = [
        {"error": "down"} if n in failing else f"answer {n}" for n in range(calls)
    ]
    path = place / "script.yaml"
    path.write_text(json.dumps([*answers, {"text": "by content", "when": "c"}]))
    return path


PLANS = st.lists(
    st.lists(st.tuples(st.sampled_from(["t1", "t2"]), st.sampled_from("abc")), max_size=4),
    min_size=1,
    max_size=3,
)


@settings(max_examples=60, deadline=None)
@given(
    PLANS, st.integers(0, 1), st.sets(st.integers(0, 12)), st.lists(st.integers(0, 25), max_size=3)
)
def test_killed_anywhere_it_gives_the_same_answers_and_makes_no_call_twice(
    plan: Plan, short: int, failing: set[int], kills: list[int]
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        whole, killed = Path(directory, "whole"), Path(directory, "killed")
        whole.mkdir()
        killed.mkdir()
        script = script_file(whole, sum(map(len, plan), 1) - short, failing)
        once = ScriptedModel(script)
        expected = dict(Run(whole).go(plan, once))

        answers: dict[tuple[int, int], str] = {}
        asked = 0
        for at in [*kills, 10_000]:
            model = ScriptedModel(script)
            run = Run(killed, killer(at))
            with suppress(Killed):
                for turn, text in run.go(plan, model):
                    assert answers.setdefault(turn, text) == text
            run.journal.close()
            asked += len(model.requests)
            if sum(1 for _ in run.journal.events("run_stopped")):
                break
        assert answers == expected
        assert asked == len(once.requests)
        assert outcome(killed) == outcome(whole)


def test_totals_are_the_sum_of_the_events(tmp_path: Path) -> None:
    run = Run(tmp_path)
    ledger = run.ledger()
    agent = ledger.meter(ScriptedModel(lambda request: request.messages[0].content), "agent")
    judge = ledger.meter(ScriptedModel(["good"]), "judge")
    ask(agent, "outside of everything")
    with attributed(cycle=1, part="solve", candidate="tree"):
        ask(agent, "one")
        with attributed(part="measure", candidate="other", task="t"):
            ask(judge, "two")
        ledger.charge("agent", "program", usd=0.5, input_tokens=7, seconds=2.0)
    calls = list(run.journal.events("call"))
    for axis in AXES:
        assert ledger.totals(axis) == totals_of(calls, axis)
        assert sum(total.calls for total in ledger.totals(axis).values()) == 4
    assert set(ledger.totals("cycle")) == {"", "1"}
    assert ledger.totals("candidate")["tree"].usd == 0.5
    assert ledger.totals("part")["measure"].calls == 1
    assert ledger.totals("role")["agent"].seconds >= 2.0


def test_a_scope_reaches_calls_on_other_threads(tmp_path: Path) -> None:
    run = Run(tmp_path)
    model = run.ledger().meter(ScriptedModel(lambda request: "x"), "agent")

    def job(task: str) -> str:
        with attributed(task=task):
            return ask(model, "hi")

    with attributed(cycle=2, part="solve", seed=5):
        run_all([partial(job, task) for task in "abcd"], 3)
    calls = [event.data for event in run.journal.events("call")]
    assert {(c["cycle"], c["part"], c["seed"]) for c in calls} == {(2, "solve", 5)}
    assert sorted(c["task"] for c in calls) == list("abcd")


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 20), st.integers(2, 4))
def test_with_several_workers_no_answered_call_is_made_again(kill_at: int, workers: int) -> None:
    """Whatever the threads do, an answer is bought once and its event is written once."""
    tasks = [f"t{number}" for number in range(6)]
    with tempfile.TemporaryDirectory() as directory:
        bought: list[str] = []

        def answer(request: Request) -> str:
            bought.append(request.messages[0].content)
            return request.messages[0].content.upper()

        def go(steps: Callable[[], None]) -> list[str]:
            run = Run(Path(directory), steps)
            model = run.ledger().meter(ScriptedModel(answer), "agent")
            run.journal.append("run_started", first_cycle=1)

            def job(task: str) -> str:
                with attributed(task=task):
                    return ask(model, f"{task} one") + ask(model, f"{task} two")

            try:
                with attributed(cycle=1, part="solve"):
                    return run_all([partial(job, task) for task in tasks], workers)
            finally:
                run.journal.close()

        with suppress(Killed):
            go(killer(kill_at))
        assert go(lambda: None) == [f"{t} one{t} two".upper() for t in tasks]
        assert len(bought) == len(set(bought)) == 12
        assert outcome(Path(directory))["role"]["agent"][0] == 12


def begin(place: Path, model: ScriptedModel, *texts: str) -> Run:
    """A run that has asked these in its first cycle, and was then interrupted."""
    run = Run(place)
    metered = run.ledger().meter(model, "agent")
    run.journal.append("run_started", first_cycle=1)
    with attributed(cycle=1, part="solve"):
        for text in texts:
            ask(metered, text)
    return run


def go_on(place: Path, model: Any, text: str, **scope: Any) -> str:
    metered = Run(place).ledger().meter(model, "agent")
    inside: dict[str, Any] = {"cycle": 1, "part": "solve"} | scope
    with attributed(**inside):
        return ask(metered, text)


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"request": {}}', "\x00"])
def test_a_damaged_trace_costs_one_call(tmp_path: Path, damage: str) -> None:
    begin(tmp_path, ScriptedModel(["first"]), "hi")
    [trace] = (tmp_path / "traces").iterdir()
    trace.write_text(damage)
    assert go_on(tmp_path, ScriptedModel(lambda _: "again"), "hi") == "again"


@pytest.mark.parametrize("scope", [{"cycle": 2}, {"part": "evolve"}, {"task": "t"}, {"seed": 1}])
def test_an_answer_is_for_its_own_scope(tmp_path: Path, scope: dict[str, Any]) -> None:
    begin(tmp_path, ScriptedModel(["first"]), "hi")
    other = ScriptedModel(lambda _: "new", name="script")
    assert go_on(tmp_path, other, "hi", **scope) == "new"
    assert go_on(tmp_path, other, "ho") == "new"
    assert go_on(tmp_path, ScriptedModel(lambda _: "new", name="other"), "hi") == "new"
    assert go_on(tmp_path, other, "hi") == "first"


def test_a_run_that_is_over_is_not_replayed(tmp_path: Path) -> None:
    run = begin(tmp_path, ScriptedModel(["first"]), "hi")
    run.journal.append("run_stopped", reason="cycles")
    assert Run(tmp_path).ledger().calls == 0
    assert go_on(tmp_path, ScriptedModel(lambda _: "new"), "hi") == "new"


class Provider:
    """A model of a provider: what failed may work now."""

    name = "scripted:script"

    def complete(self, request: Request) -> Completion:
        return Completion("works now")


def test_a_failed_call_of_a_provider_is_made_again(tmp_path: Path) -> None:
    begin(tmp_path, ScriptedModel([ModelError("down"), "up"]), "hi", "ho")
    assert go_on(tmp_path, Provider(), "hi") == "works now"
    assert go_on(tmp_path, Provider(), "ho") == "up"


def test_an_answer_comes_back_whole(tmp_path: Path) -> None:
    answer = Completion(
        "née \udc80 \u2028",
        (ToolCall("1", "run", {"a": [1, None]}, "{}"), ToolCall("2", "run", None, "{broken")),
        "tool_use",
        Usage(5, 6, 1, 2),
        raw={"output": [{"redacted": b"\x00\xff"}, {"text": "x", "$bytes": 1}]},
    )
    request = Request(
        [
            Message("user", "hi"),
            answer.as_message(),
            Message("user", "", (), [ToolResult("1", "y")]),
        ]
    )
    run = Run(tmp_path)
    first = run.ledger().meter(ScriptedModel([answer]), "agent").complete(request)
    run.journal.append("run_started", first_cycle=1)
    with attributed(cycle=1):
        first = run.ledger().meter(ScriptedModel([answer]), "agent").complete(request)
        again = Run(tmp_path).ledger().meter(ScriptedModel([]), "agent").complete(request)
    assert again == first
    assert astuple(again)[:-1] == astuple(answer)[:-1]


def test_earlier_calls_count_against_the_caps_and_answers_cost_nothing(tmp_path: Path) -> None:
    begin(tmp_path, ScriptedModel(["one", "two"]), "1", "2")
    ledger = Run(tmp_path).ledger(Budget(max_calls=2))
    model = ledger.meter(ScriptedModel(["one", "two", "three"]), "agent")
    with attributed(cycle=1, part="solve"):
        assert [ask(model, "1"), ask(model, "2")] == ["one", "two"]
        with pytest.raises(BudgetExceeded):
            ask(model, "3")
    assert ledger.calls == 2
    more = Run(tmp_path).ledger(Budget(max_calls=3))
    with attributed(cycle=1, part="solve"):
        assert ask(more.meter(ScriptedModel(["one", "two", "three"]), "agent"), "3") == "three"


def test_one_script_of_two_roles_goes_on_after_the_answers_of_both(tmp_path: Path) -> None:
    def both(run: Run, model: ScriptedModel) -> list[Any]:
        ledger = run.ledger()
        return [ledger.meter(model, "agent"), ledger.meter(model, "engine")]

    run = Run(tmp_path)
    agent, engine = both(run, ScriptedModel(list("abcd")))
    run.journal.append("run_started", first_cycle=1)
    assert ask(agent, "1") + ask(engine, "2") == "ab"
    run.journal.append("cycle_finished", cycle=1)
    same = ScriptedModel(list("abcd"))
    agent, engine = both(Run(tmp_path), same)
    assert ask(engine, "3") == "c"
    assert ask(both(Run(tmp_path), same)[0], "4") == "d"  # the object itself is further on already


def test_minutes_of_earlier_processes_count_and_idle_time_does_not(tmp_path: Path) -> None:
    times = iter([1000.0, 1060.0, 5000.0, 5030.0, 9000.0])
    journal = Journal(tmp_path / "journal.jsonl", clock=lambda: next(times))
    journal.append("run_started")
    journal.append("cycle_started", cycle=1)  # killed after it
    journal.append("run_started")
    journal.append("run_stopped", reason="interrupted")
    journal.append("evaluated")
    assert Replay.of_run(journal.events(), tmp_path, finished=FINISHED).seconds == 90
    ledger = Ledger(
        Budget(max_minutes=1.5),
        replay=Replay.of_run(journal.events(), tmp_path, finished=FINISHED),
    )
    with pytest.raises(BudgetExceeded, match=r"1\.5 minutes"):
        ledger.check_time("agent")


def test_a_killed_evaluation_goes_on_and_a_run_does_not_count_it(tmp_path: Path) -> None:
    run = Run(tmp_path)
    with attributed(part="evaluate", candidate="tree", task="t"):
        ask(run.ledger().meter(ScriptedModel(["first"]), "agent"), "hi")
    events, traces = list(run.journal.events()), tmp_path / "traces"

    def evaluating(candidate: str) -> tuple[int, str]:
        ledger = Ledger(traces=traces, replay=Replay.of_evaluation(events, traces, candidate))
        before = ledger.calls
        with attributed(part="evaluate", candidate=candidate, task="t"):
            return before, ask(ledger.meter(ScriptedModel(lambda _: "new"), "agent"), "hi")

    assert evaluating("tree") == (1, "first")
    assert evaluating("other") == (0, "new")
    run.journal.append("run_started", first_cycle=1)
    assert Run(tmp_path).ledger().calls == 0


PROGRAM = """
import os, signal, sys
from pathlib import Path
from agent_evolve.llm import ScriptedModel
from tests.llm.test_replay import Run

place, kill_at = Path(sys.argv[1]), int(sys.argv[2])
seen = 0
def count(event, arguments):
    global seen
    if event in ("open", "os.rename") and str(place) in str(arguments):
        seen += 1
        if seen == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(count)
plan = [[("t1", "a"), ("t1", "a")], [("t2", "b"), ("t1", "a")]]
for turn, text in Run(place).go(plan, ScriptedModel(["zero", "one", "two", "three", "four"])):
    print(turn, text)
"""


def test_a_process_killed_on_the_way_to_the_disk_goes_on(tmp_path: Path) -> None:
    def start(place: Path, kill_at: int) -> subprocess.CompletedProcess[str]:
        place.mkdir(exist_ok=True)
        command = [sys.executable, "-c", PROGRAM, str(place), str(kill_at)]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)

    whole = start(tmp_path / "whole", 0)
    assert whole.returncode == 0, whole.stderr
    killed = 0
    for at in random.Random(3).sample(range(1, 10), 4):  # a run takes nine steps
        place = tmp_path / f"killed{at}"
        first = start(place, at)
        killed += first.returncode == -signal.SIGKILL
        again = start(place, 0)
        assert again.returncode == 0, again.stderr
        lines = dict.fromkeys((first.stdout + again.stdout).splitlines())
        assert set(lines) == set(whole.stdout.splitlines())
        assert outcome(place) == outcome(tmp_path / "whole")
    assert killed == 4
