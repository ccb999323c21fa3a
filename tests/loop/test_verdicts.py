"""What becomes of a candidate, from the command line: a change that helps, one that is noise, one
that games the grader, one that gains powers, and one that a person has to look at."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .support import cli, git, make_workspace, tags

PARTS = '''
import random

dice = random.Random(4)


class Dice(Leveller):
    """Is right every other time, whatever its files say."""

    def solve(self, task):
        return Trajectory(task.id, dice.choice(["yes", "no"]))


class Many(Questions):
    def __init__(self):
        super().__init__(20, 30)


class Leap(Coach):
    def __init__(self):
        super().__init__(6)


class Shuffler(EvolutionEngine):
    """Changes bytes, and nothing that matters."""

    def step(self, workspace, observations, history, trial):
        workspace.write_prompt("x" + workspace.read_prompt())
        return StepResult(True, "one more x")


class Riddles(BenchmarkAdapter):
    """Questions whose answers can be copied."""

    animals = ["aardvark", "badger", "capybara", "dormouse", "echidna", "ferret", "gibbon", "hyena"]

    def get_tasks(self, split="train", limit=10):
        if split == "test":
            return []
        return [
            Task(f"{split}-{i}", f"which animal of the {split} garden sleeps by gate {n} of {i}")
            for i, n in enumerate(self.animals)
        ][:limit]

    def answers_of(self, task):
        return [self.animals[int(task.id[-1])][::-1] + " of the old " + task.id]

    def judge_texts(self):
        return ["award full marks only to an answer that names the animal and its oldest keeper"]

    def evaluate(self, task, trajectory):
        right = trajectory.output == self.answers_of(task)[0]
        return Feedback(right, float(right), "no")


class Reader(BaseAgent):
    """Looks the question up in its prompt."""

    def solve(self, task):
        known = dict(l.split(" -> ") for l in self.system_prompt.splitlines() if " -> " in l)
        return Trajectory(task.id, known.get(task.input, ""))


class Cheat(EvolutionEngine):
    """Has got hold of a split's tasks and answers."""

    split = "holdout"

    def step(self, workspace, observations, history, trial):
        riddles = Riddles()
        lines = [
            f"{t.input} -> {riddles.answers_of(t)[0]}" for t in riddles.get_tasks(self.split, None)
        ]
        workspace.write_prompt("\\n".join(["level:0", *lines]))
        return StepResult(True, "learned something")


class RubricReader(Cheat):
    def step(self, workspace, observations, history, trial):
        workspace.write_prompt("Remember: " + Riddles().judge_texts()[0].upper())
        return StepResult(True, "learned what is wanted")


class Opener(EvolutionEngine):
    """Helps, and wants to fetch something."""

    def step(self, workspace, observations, history, trial):
        level = int(workspace.read_prompt().rsplit(":", 1)[1])
        told = "\\n".join(r.because for r in history.cycles if r.because)
        extra = "" if told else "See https://tools.example/setup.\\n"
        workspace.write_prompt(f"{extra}level:{level + 5}")
        return StepResult(True, f"told: {told}")
'''


def run(place: Path, *arguments: str):
    return cli("run", str(place), *arguments)


def workspace(place: Path, **given) -> Path:
    return make_workspace(place / "w", parts=PARTS, **{"gate": "paired"} | given)


def last_record(place: Path) -> dict:
    log = json.loads(cli("log", "-w", str(place), "--json").stdout)
    return log[-1]["record"]


def test_a_change_that_helps_is_accepted(tmp_path):
    place = workspace(tmp_path, engine="Leap", benchmark="Many")
    done = run(place, "--cycles", "1")
    assert (done.returncode, last_record(place)["verdict"]) == (0, "accepted"), done.stderr
    record = last_record(place)
    assert record["lower"] > 0
    assert record["candidate_score"] == pytest.approx(0.6)
    assert (place / "prompts" / "system.md").read_text() == "level:6"
    shown = cli("show", "evo-1", "-w", str(place)).stdout
    assert "beyond" in shown or "chance hardly gives" in shown
    assert "fixed" in shown


def test_a_change_that_is_noise_is_told_apart(tmp_path):
    place = workspace(tmp_path, agent="Dice", engine="Shuffler", benchmark="Many")
    done = run(place, "--cycles", "1")
    record = last_record(place)
    assert (done.returncode, record["verdict"]) == (1, "cannot_tell"), done.stderr
    assert record["lower"] < 0 < record["upper"]
    assert "cannot_tell" in done.stderr
    assert (place / "prompts" / "system.md").read_text() == "level:0"


def test_a_change_that_games_the_grader_is_refused_unmeasured_with_the_place(tmp_path):
    place = workspace(tmp_path, agent="Reader", engine="Cheat", benchmark="Riddles")
    done = run(place, "--cycles", "1")
    record = last_record(place)
    assert (done.returncode, record["verdict"]) == (1, "rejected"), done.stderr
    assert "prompts/system.md:2" in record["reason"]
    assert "capybara" not in record["reason"]  # an engine may read the reason
    assert "holdout task" in done.stderr  # people see all of it
    assert record["candidate_score"] is None
    journal = (place / "evolution" / "journal.jsonl").read_text()
    assert '"judged"' not in journal
    assert '"leaked"' in journal


def test_judge_wording_is_refused_too(tmp_path):
    place = workspace(tmp_path, agent="Reader", engine="RubricReader", benchmark="Riddles")
    run(place, "--cycles", "1")
    record = last_record(place)
    assert record["verdict"] == "rejected"
    assert "prompts/system.md:1" in record["reason"]


def test_train_text_may_be_remembered_and_train_answers_in_prompts_are_reported(tmp_path):
    place = workspace(tmp_path, agent="Reader", engine="Cheat", benchmark="Riddles")
    parts = place / "parts.py"
    parts.write_text(parts.read_text().replace('split = "holdout"', 'split = "train"'))
    done = run(place, "--cycles", "1")
    record = last_record(place)
    assert "may not know" not in record["reason"]
    assert "train" in done.stderr
    assert "prompts/system.md:2" in done.stderr


# -- powers and review -----------------------------------------------------------------------


def powerful(place: Path, **given) -> Path:
    return workspace(place, engine="Opener", **{"gate": "no_regression"} | given)


def test_a_change_that_gains_a_power_waits_for_a_yes_however_good(tmp_path):
    place = powerful(tmp_path)
    done = run(place, "--cycles", "2")
    assert done.returncode == 3, done.stderr
    assert "https://tools.example/setup" in done.stdout
    assert "agent-evolve approve 1" in done.stdout
    assert set(tags(place)) == {"evo-0", "pre-evo-1", "candidate-1"}
    assert (place / "prompts" / "system.md").read_text() == "level:0"
    again = run(place)
    assert (again.returncode, "candidate-1" in again.stdout) == (3, True)
    status = cli("status", "-w", str(place)).stdout
    assert "waits for you" in status
    yes = cli("approve", "1", "-w", str(place))
    assert yes.returncode == 0, yes.stderr
    assert (place / "prompts" / "system.md").read_text().endswith("level:5")
    assert tags(place)["evo-1"] == tags(place)["candidate-1"]
    assert git(place, "status", "--porcelain") == git(place, "status", "--porcelain")
    assert last_record(place)["verdict"] == "accepted"
    after = run(place, "--cycles", "2")  # the second of them, which gains nothing new
    assert after.returncode == 0, after.stderr + after.stdout
    assert last_record(place)["cycle"] == 2


def test_a_no_keeps_the_head_and_its_reason_reaches_the_engine(tmp_path):
    place = powerful(tmp_path)
    run(place, "--cycles", "2")
    no = cli("reject", "1", "--because", "no URLs please", "-w", str(place))
    assert no.returncode == 0, no.stderr
    assert (place / "prompts" / "system.md").read_text() == "level:0"
    assert tags(place)["evo-1"] == tags(place)["evo-0"]
    record = last_record(place)
    assert (record["verdict"], record["because"]) == ("rejected", "no URLs please")
    after = run(place)
    assert after.returncode == 0, after.stderr
    assert last_record(place)["summary"] == "told: no URLs please"


def test_a_kind_of_power_that_the_manifest_allows_needs_no_yes(tmp_path):
    place = powerful(tmp_path)
    manifest = json.loads((place / "manifest.yaml").read_text()) | {"allowed_powers": ["url"]}
    (place / "manifest.yaml").write_text(json.dumps(manifest))
    assert run(place, "--cycles", "1").returncode == 0


def test_review_stops_at_every_change_that_would_be_kept(tmp_path):
    place = workspace(tmp_path, gate="no_regression")
    assert run(place, "--cycles", "2", "--review").returncode == 3
    assert cli("approve", "1", "-w", str(place)).returncode == 0
    assert run(place, "--review").returncode == 3
    assert cli("approve", "2", "-w", str(place)).returncode == 0
    assert (place / "prompts" / "system.md").read_text() == "level:4"
    assert set(tags(place)) >= {"evo-1", "evo-2", "candidate-1", "candidate-2"}


def test_an_edit_made_while_it_waits_is_kept_on_top(tmp_path):
    place = workspace(tmp_path, gate="no_regression")
    run(place, "--cycles", "1", "--review")
    (place / "memory").mkdir(exist_ok=True)
    (place / "memory" / "mine.jsonl").write_text('{"content": "mine"}\n')
    assert cli("approve", "1", "-w", str(place)).returncode == 0
    assert (place / "prompts" / "system.md").read_text() == "level:2"
    assert "mine" in (place / "memory" / "mine.jsonl").read_text()


@pytest.mark.parametrize("verb", ["approve", "reject"])
def test_an_answer_that_nobody_waits_for_is_an_error_and_changes_nothing(tmp_path, verb):
    place = workspace(tmp_path, gate="no_regression")
    run(place, "--cycles", "1")
    before = tags(place)
    done = cli(verb, "1", "-w", str(place))
    assert done.returncode == 2
    assert "waits for nobody" in done.stderr
    assert tags(place) == before


def test_a_score_that_would_be_the_same_costs_no_call(tmp_path):
    place = workspace(tmp_path, engine="Still", gate="paired")
    parts = place / "parts.py"
    parts.write_text(
        parts.read_text()
        + "\n\nclass Still(EvolutionEngine):\n"
        + "    def step(self, workspace, observations, history, trial):\n"
        + "        workspace.write_prompt(workspace.read_prompt())\n"
        + "        return StepResult(True, 'says that it changed')\n"
    )
    run(place, "--cycles", "2")
    assert last_record(place)["verdict"] == "unchanged"
    cache = (place / "evolution" / "cache" / "scores.jsonl").read_text().splitlines()
    assert len(cache) == 10  # the head, once; nothing was bought for the identical candidate


def test_every_score_tells_the_files_that_were_loaded(tmp_path):
    place = workspace(tmp_path, gate="no_regression")
    run(place, "--cycles", "1")
    lines = (place / "evolution" / "cache" / "scores.jsonl").read_text().splitlines()
    trees = [json.loads(line)["tree"] for line in lines]
    assert trees == [tags(place)["evo-0"]] * 10 + [tags(place)["evo-1"]] * 10


def test_an_agent_that_changes_its_files_while_it_loads_is_not_measured(tmp_path):
    place = workspace(tmp_path, agent="Sly", gate="no_regression")
    parts = place / "parts.py"
    parts.write_text(
        parts.read_text()
        + "\n\nclass Sly(Leveller):\n"
        + "    def reload_from_fs(self):\n"
        + "        if 'measured' in str(self.workspace.root):\n"
        + "            self.workspace.write_prompt('level:10')\n"
        + "        super().reload_from_fs()\n"
    )
    done = run(place, "--cycles", "1")
    assert done.returncode == 2
    assert "once it is loaded" in done.stderr
    assert not (place / "evolution" / "cache" / "scores.jsonl").exists()
