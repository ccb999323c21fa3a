"""What a run leaves behind: versions, records, observations, the user's files."""

from __future__ import annotations

import json
import math

import pytest

from agent_evolve import (
    EvolutionEngine,
    EvolutionHistory,
    Evolver,
    Feedback,
    StepResult,
    Trajectory,
)
from agent_evolve.errors import ConfigurationError, InfrastructureError, WorkspaceBusyError
from agent_evolve.loop.lock import run_lock

from .support import Coach, Leveller, Questions, git, make_workspace, tags


def prompt(place):
    return (place / "prompts" / "system.md").read_text()


def test_a_run_improves_the_files_and_tags_every_cycle(tmp_path):
    place = make_workspace(tmp_path / "agent")
    result = Evolver(place).run(cycles=3)
    assert (result.start_score, result.final_score) == (0.0, 0.6)
    assert [r.verdict for r in result.cycles] == ["accepted"] * 3
    assert prompt(place) == "level:6"
    assert set(tags(place)) == {"evo-0"} | {
        f"{p}-{n}" for p in ("pre-evo", "evo") for n in (1, 2, 3)
    }
    assert git(place, "cat-file", "-t", "evo-2").strip() == "tag"
    assert "+level:6" in git(place, "diff", "evo-0", "evo-3")
    assert git(place, "status", "--porcelain").splitlines() == ["?? parts.py"]


def test_a_second_run_goes_on_with_the_numbers_and_moves_no_tag(tmp_path):
    place = make_workspace(tmp_path / "agent")
    Evolver(place).run(cycles=2)
    before = {name: git(place, "rev-parse", name) for name in tags(place)}
    result = Evolver(place).run(cycles=2)
    assert [r.cycle for r in result.cycles] == [3, 4]
    assert {name: git(place, "rev-parse", name) for name in before} == before
    assert prompt(place) == "level:8"


def test_a_worse_candidate_is_refused_and_kept_for_reading(tmp_path):
    place = make_workspace(tmp_path / "agent")
    Evolver(place).run(cycles=2)
    result = Evolver(place, engine=Coach(up=-3)).run(cycles=1)
    (record,) = result.cycles
    assert (record.verdict, record.head_score, record.candidate_score) == ("rejected", 0.4, 0.1)
    assert prompt(place) == "level:4"
    assert "-level:4" in git(place, "diff", "evo-3", "candidate-3")
    assert result.final_score == 0.4


def test_without_a_holdout_changes_are_kept_and_the_result_says_ungated(tmp_path):
    place = make_workspace(tmp_path / "agent", holdout_ratio=0.0)
    result = Evolver(place, Questions(holdout=0)).run(cycles=1)
    assert (result.gated, result.cycles[0].verdict) == (False, "ungated")


def test_a_benchmark_without_a_holdout_gets_one_by_seed(tmp_path):
    place = make_workspace(tmp_path / "agent", holdout_ratio=0.4)
    result = Evolver(place, Questions(train=40, holdout=0)).run(cycles=1)
    assert result.gated
    started = next(e for e in events(place) if e["type"] == "run_started")
    assert not set(started["train"]) & set(started["holdout"])
    assert len(started["train"]) + len(started["holdout"]) == 40


def test_batches_rotate_and_are_written_as_jsonl(tmp_path):
    place = make_workspace(tmp_path / "agent")
    Evolver(place).run(cycles=4)
    lines = [
        json.loads(line)
        for file in sorted((place / "evolution" / "observations").glob("batch_*.jsonl"))
        for line in file.read_text().splitlines()
    ]
    assert len({line["task_id"] for line in lines}) == 20
    assert {"task_id", "task_input", "agent_output", "steps", "success", "score"} <= set(lines[0])
    assert lines[0]["feedback_detail"] == "expected 'yes', got 'no'"


def test_history_answers_about_the_past(tmp_path):
    place = make_workspace(tmp_path / "agent")
    Evolver(place).run(cycles=3)
    history = EvolutionHistory(place)
    assert history.get_score_curve() == [(1, 0.2), (2, 0.4), (3, 0.6)]
    assert len(history.get_observations(last_n_cycles=2)) == 10
    assert all(
        not o.success for o in history.get_observations(last_n_cycles=None, only_failures=True)
    )
    assert "-level:2\n" in history.get_workspace_diff("evo-1", "evo-3").replace("\\ No", "\n\\ No")
    assert history.read_file_at("evo-2", "prompts/system.md") == "level:4"
    stats = history.get_summary_stats()
    assert (stats.total, stats.scored, stats.batches) == (15, 15, 3)


class Silent(EvolutionEngine):
    def step(self, workspace, observations, history, trial):
        return StepResult(True, "I changed a lot")


def test_an_engine_that_changes_nothing_is_recorded_as_no_change(tmp_path):
    place = make_workspace(tmp_path / "agent", egl_threshold=0.05)
    result = Evolver(place, engine=Silent()).run(cycles=9)
    assert {r.verdict for r in result.cycles} == {"unchanged"}
    assert not any(r.mutated for r in result.cycles)
    assert (result.converged, result.cycles_completed) == (True, 3)


class Breaking(EvolutionEngine):
    """Leaves a half-written prompt behind, then fails; later cycles work."""

    calls = 0

    def step(self, workspace, observations, history, trial):
        self.calls += 1
        if self.calls == 1:
            workspace.write_prompt("level:half-writ")
            raise RuntimeError("connection lost")
        return Coach().step(workspace, observations, history, trial)


def test_an_engine_that_raises_fails_its_cycle_and_the_run_goes_on(tmp_path):
    place = make_workspace(tmp_path / "agent")
    result = Evolver(place, engine=Breaking()).run(cycles=2)
    first, second = result.cycles
    assert (first.verdict, first.mutated) == ("failed", False)
    assert "RuntimeError: connection lost" in first.reason
    assert second.verdict == "accepted"
    assert tags(place)["evo-1"] == tags(place)["evo-0"]
    assert prompt(place) == "level:2"


class Crashing(Leveller):
    def solve(self, task):
        if task.id.startswith("train") and not task.id.endswith("-9"):
            raise ValueError("boom")
        return Trajectory(task.id, "yes")


def test_a_crash_is_a_zero_and_the_mean_is_over_the_whole_batch(tmp_path):
    place = make_workspace(tmp_path / "agent", batch_size=10)
    agent = Crashing(place)
    result = Evolver(agent, Questions(train=10), engine=Silent()).run(cycles=1)
    assert result.cycles[0].score == 0.1
    failed = EvolutionHistory(place).get_observations(only_failures=True)
    assert len(failed) == 9
    assert "ValueError: boom" in failed[0].trajectory.error


class AlwaysCrashing(Leveller):
    def solve(self, task):
        raise ValueError("boom")


def test_an_agent_that_always_crashes_scores_zero(tmp_path):
    place = make_workspace(tmp_path / "agent")
    result = Evolver(AlwaysCrashing(place), Questions(), engine=Coach()).run(cycles=1)
    assert (result.cycles[0].score, result.cycles[0].valid) == (0.0, 5)


class Outage(Leveller):
    def solve(self, task):
        raise InfrastructureError("the provider is down")


def test_an_outage_is_no_score_and_stops_after_three_cycles(tmp_path):
    place = make_workspace(tmp_path / "agent")
    result = Evolver(Outage(place), Questions(), engine=Coach()).run(cycles=9)
    assert [r.verdict for r in result.cycles] == ["unmeasured"] * 3
    assert [r.score for r in result.cycles] == [None] * 3
    assert "the provider is down" in result.cycles[0].reason
    assert (result.stopped, result.converged) == ("failing", False)
    assert prompt(place) == "level:0"


@pytest.mark.parametrize(
    ("score", "named"), [(math.nan, "nan"), (7.5, "7.5"), (-1, "-1"), (math.inf, "inf"), ("1", "1")]
)
def test_an_impossible_score_is_the_benchmarks_error(tmp_path, score, named):
    class Bad(Questions):
        def evaluate(self, task, trajectory):
            return Feedback(True, score)

    place = make_workspace(tmp_path / "agent")
    result = Evolver(Leveller(place), Bad(), engine=Coach()).run(cycles=1)
    (record,) = result.cycles
    assert (record.verdict, record.score) == ("unmeasured", None)
    assert named in record.reason
    assert "Bad" in record.reason


class RaisingGrader(Questions):
    def evaluate(self, task, trajectory):
        raise KeyError("answer")


def test_a_grader_that_raises_makes_tasks_invalid_not_zero(tmp_path):
    place = make_workspace(tmp_path / "agent")
    result = Evolver(Leveller(place), RaisingGrader(), engine=Coach()).run(cycles=1)
    assert (result.cycles[0].verdict, result.cycles[0].score) == ("unmeasured", None)
    assert "the grader raised KeyError" in result.cycles[0].reason


class Trespasser(EvolutionEngine):
    def __init__(self, do):
        super().__init__()
        self.do = do

    def step(self, workspace, observations, history, trial):
        workspace.write_prompt("level:10")
        self.do(workspace.root)
        return StepResult(True, "done")


@pytest.mark.parametrize(
    "trespass",
    [
        lambda root: (root / "manifest.yaml").write_text("name: mine"),
        lambda root: (root / "tools").mkdir() or (root / "tools" / "x.py").write_text("1"),
        lambda root: (root / "evolution").mkdir() or (root / "evolution" / "j").write_text("1"),
        lambda root: (root / "skills").mkdir() or (root / "skills" / "x").symlink_to("/etc"),
        lambda root: (root / "skills").mkdir() or (root / "skills" / "x").symlink_to("../../.."),
    ],
    ids=["manifest", "other layer", "evolution", "absolute link", "link out"],
)
def test_a_change_where_none_may_be_is_refused_whoever_made_it(tmp_path, trespass):
    place = make_workspace(tmp_path / "agent")
    before = (place / "manifest.yaml").read_bytes()
    result = Evolver(place, engine=Trespasser(trespass)).run(cycles=1)
    assert result.cycles[0].verdict == "failed", result.cycles[0]
    assert prompt(place) == "level:0"
    assert (place / "manifest.yaml").read_bytes() == before


@pytest.mark.parametrize("cycles", [0, -3, 1.5, True])
def test_a_number_of_cycles_that_makes_no_sense_is_refused(tmp_path, cycles):
    place = make_workspace(tmp_path / "agent")
    with pytest.raises(ConfigurationError, match="cycles must be"):
        Evolver(place).run(cycles=cycles)
    assert not (place / "evolution").exists()


def test_two_runs_at_once_name_the_holder(tmp_path):
    place = make_workspace(tmp_path / "agent")
    with run_lock(place, "run agent"), pytest.raises(WorkspaceBusyError, match="process"):
        Evolver(place).run(cycles=1)


def test_edits_by_hand_between_runs_are_kept_and_started_from(tmp_path):
    place = make_workspace(tmp_path / "agent")
    Evolver(place).run(cycles=1)
    (place / "prompts" / "system.md").write_text("level:5")
    result = Evolver(place).run(cycles=1)
    assert result.start_score == 0.5
    assert prompt(place) == "level:7"
    assert "edited by hand" in git(place, "log", "--format=%s")


def test_memories_are_written_in_task_order_for_any_number_of_workers(tmp_path):
    trees = []
    for workers in (1, 4):
        place = make_workspace(tmp_path / f"agent{workers}", solve_workers=workers)
        manifest = json.loads((place / "manifest.yaml").read_text())
        manifest["agent"]["remembers"] = True
        manifest["name"] = "levels"
        manifest["config"].pop("solve_workers")
        (place / "manifest.yaml").write_text(json.dumps(manifest))
        Evolver(place, config={"solve_workers": workers}).run(cycles=3)
        trees.append(tags(place))
        assert "could not do" in git(place, "show", "pre-evo-1:memory/episodic.jsonl")
    assert trees[0] == trees[1]


def test_a_known_score_is_not_measured_again(tmp_path):
    place = make_workspace(tmp_path / "agent")
    solved = []

    class Counting(Leveller):
        def solve(self, task):
            solved.append(task.id)
            return super().solve(task)

    agent = Counting(place)
    Evolver(agent, Questions(), engine=Silent()).run(cycles=3)
    assert sum(task.startswith("holdout") for task in solved) == 10
    Evolver(agent, Questions(), engine=Silent()).run(cycles=1)
    assert sum(task.startswith("holdout") for task in solved) == 10


class Peeking(EvolutionEngine):
    seen = ""

    def step(self, workspace, observations, history, trial):
        everything = [*observations, *history.get_observations(last_n_cycles=None)]
        everything += trial.run_tasks(trial.get_tasks(limit=None), workspace)
        type(self).seen += " ".join(o.task.input for o in everything)
        return StepResult(False)


def test_an_engine_never_sees_a_holdout_task(tmp_path):
    place = make_workspace(tmp_path / "agent")
    Evolver(place, engine=Peeking()).run(cycles=2)
    assert "the train question" in Peeking.seen
    assert "the holdout question" not in Peeking.seen


def events(place):
    return [
        json.loads(line)
        for line in (place / "evolution" / "journal.jsonl").read_text().splitlines()
    ]


class Counted(Leveller):
    made = 0

    def __init__(self, workspace_path):
        type(self).made += 1
        super().__init__(workspace_path)


@pytest.mark.parametrize(("strategy", "anew"), [("hot", 0), ("cold", 3)])
def test_a_cold_reload_builds_the_agent_anew_after_each_cycle(tmp_path, strategy, anew):
    place = make_workspace(tmp_path / "agent")
    manifest = json.loads((place / "manifest.yaml").read_text())
    manifest["reload_strategy"] = strategy
    manifest["agent"] = {"entrypoint": "tests.loop.test_cycle.Counted"}
    (place / "manifest.yaml").write_text(json.dumps(manifest))
    evolver = Evolver(place)
    Counted.made = 0
    result = evolver.run(cycles=3)
    assert result.final_score == 0.6
    assert Counted.made == 1 + anew
