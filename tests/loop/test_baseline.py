"""The baseline, the estimate, the splits that stay, and the test split that tells when it is
opened: from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent_evolve.config import EvolveConfig
from agent_evolve.loop.estimate import estimate, words

from .support import cli, make_workspace

PARTS = '''
import random

dice = random.Random(11)


class Dice(Leveller):
    def solve(self, task):
        return Trajectory(task.id, dice.choice(["yes", "no"]))


class Drifting(Leveller):
    """Gets better with every answer, whatever its files say."""

    answers = 0

    def solve(self, task):
        Drifting.answers += 1
        return Trajectory(task.id, "yes" if Drifting.answers > 60 else "no")


class Many(Questions):
    def __init__(self):
        super().__init__(20, 30)


class Three(Questions):
    def __init__(self):
        super().__init__(20, 30)
        self.counts["test"] = 4
'''


def workspace(place: Path, **given) -> Path:
    return make_workspace(place / "w", parts=PARTS, **{"benchmark": "Many"} | given)


def measured(place: Path, *arguments: str, code: int = 0) -> dict:
    done = cli("baseline", "-w", str(place), *arguments, "--json")
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout)


def test_without_noise_the_same_files_score_the_same(tmp_path):
    place = workspace(tmp_path)
    result = measured(place, "--aa", "--repeats", "2")
    assert (result["mean"], result["again"], result["noise"]) == (0.0, 0.0, 0.0)
    assert result["runs"] == 120
    assert result["smallest"] == pytest.approx(0.02)
    assert result["fewest"] == 6


def test_noise_is_told_with_the_smallest_gain_that_shows(tmp_path):
    places = [workspace(tmp_path / str(n), agent="Dice") for n in range(4)]
    one = measured(places[0], "--repeats", "1")
    assert (one["noise"], one["smallest"]) == (None, None)
    few = measured(places[1], "--repeats", "2")
    many = measured(places[2], "--repeats", "6")
    assert few["noise"] == pytest.approx(0.5, abs=0.12)
    assert 0.02 < many["smallest"] < few["smallest"] < 0.6
    twice = measured(places[3], "--aa", "--repeats", "6")
    assert twice["lower"] < 0 < twice["upper"]
    assert abs(twice["again"] - twice["mean"]) < 0.25
    said = cli("baseline", "-w", str(places[3]), "--aa").stdout
    assert "by itself" in said
    assert "the same files again" in said
    assert "smallest gain" in said


def test_files_that_measure_better_the_second_time_are_not_to_be_trusted(tmp_path):
    place = workspace(tmp_path, agent="Drifting")
    result = measured(place, "--aa", "--repeats", "2", code=5)
    assert result["lower"] > 0


def test_a_run_buys_nothing_that_the_baseline_bought(tmp_path):
    place = workspace(tmp_path)
    measured(place, "--repeats", "3")
    scores = place / "evolution" / "cache" / "scores.jsonl"
    before = len(scores.read_text().splitlines())
    assert before == 90
    cli("run", str(place), "--cycles", "1")
    head_again = len(scores.read_text().splitlines()) - before
    assert head_again == 30  # the candidate only


@pytest.mark.parametrize("bad", ["0", "-1"])
def test_no_repeats_are_wrong_use(tmp_path, bad):
    done = cli("baseline", "-w", str(workspace(tmp_path)), "--repeats", bad)
    assert done.returncode == 2
    assert "at least 1" in done.stderr


# -- estimate --------------------------------------------------------------------------------


def call(part: str, task: str, **given) -> dict:
    known = {"role": "agent", "part": part, "task": task, "cycle": 0, "seed": 0, "candidate": "h"}
    return known | {"usd": 0.01, "input_tokens": 10, "output_tokens": 5} | given


def test_the_estimate_is_that_of_the_tasks_seen_so_far():
    config = EvolveConfig(batch_size=10, repeats=3)
    calls = [call("baseline", f"t{i}") for i in range(30) for _ in range(2)]
    found = estimate(calls, config, cycles=5, holdout=30)
    assert found is not None
    assert found.solvings == 30
    assert found.low_usd == pytest.approx(0.02 * (5 * 20 + 30))
    assert found.high_usd == pytest.approx(0.02 * (5 * 100 + 90))
    assert found.low_calls == 260
    assert "engine" in words(found, config, 5)
    capped = EvolveConfig(batch_size=10, repeats=3, max_usd=1.0)
    assert "will stop it before" in words(found, capped, 5)
    engine = call("evolve", "", role="engine", cycle=1, usd=0.5)
    known = estimate([*calls, engine], config, cycles=5, holdout=30)
    assert known is not None
    assert known.low_usd == pytest.approx(found.low_usd + 2.5)
    assert known.engine_known


def test_nothing_is_estimated_before_anything_is_known():
    assert estimate([], EvolveConfig(), cycles=5, holdout=30) is None


# -- splits ----------------------------------------------------------------------------------


def test_the_splits_of_the_first_run_stay_until_a_new_series(tmp_path):
    place = workspace(tmp_path, benchmark="Three")
    assert cli("run", str(place), "--cycles", "1").returncode == 0
    journal = (place / "evolution" / "journal.jsonl").read_text()
    started = next(json.loads(s) for s in journal.splitlines() if '"run_started"' in s)
    assert (len(started["train"]), len(started["holdout"]), len(started["test"])) == (20, 30, 4)
    parts = place / "parts.py"
    parts.write_text(
        parts.read_text().replace("super().__init__(20, 30)", "super().__init__(20, 31)")
    )
    refused = cli("run", str(place), "--cycles", "1")
    assert refused.returncode == 2
    assert "'holdout-30'" in refused.stderr
    assert "--new" in refused.stderr
    assert (place / "evolution" / "journal.jsonl").read_text().startswith(journal)
    assert '"cycle":2' not in (place / "evolution" / "journal.jsonl").read_text()
    fresh = cli("run", str(place), "--cycles", "1", "--new")
    assert fresh.returncode == 0, fresh.stderr
    assert cli("run", str(place), "--cycles", "1").returncode == 0


def test_every_opening_of_the_test_split_is_recorded_and_shown(tmp_path):
    place = workspace(tmp_path, benchmark="Three")
    cli("run", str(place), "--cycles", "1")
    assert "test split" not in cli("status", "-w", str(place)).stdout
    for n, nth in ((1, "1st"), (2, "2nd")):
        done = cli("eval", "evo-1", "--split", "test", "-w", str(place))
        assert done.returncode == 0, done.stderr
        assert f"for the {nth} time" in done.stderr
        assert f"opened {n} times" in cli("status", "-w", str(place)).stdout
    cli("eval", "evo-1", "--split", "holdout", "-w", str(place))
    assert json.loads(cli("status", "-w", str(place), "--json").stdout)["test_openings"] == 2
