"""What a person types, and what they read."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

import pytest

from tests.loop.support import cli, environment, git, make_workspace


@pytest.fixture
def place(tmp_path):
    return make_workspace(tmp_path / "my-agent")


@pytest.fixture(scope="module")
def evolved(tmp_path_factory):
    place = make_workspace(tmp_path_factory.mktemp("cli") / "my-agent")
    done = cli("run", str(place), "--cycles", "3")
    assert done.returncode == 0, done.stderr
    return place


def test_run_prints_a_line_per_cycle_and_the_result(place):
    done = cli("run", "my-agent", "--cycles", "2", cwd=place.parent)
    assert done.returncode == 0
    lines = [line for line in done.stderr.splitlines() if line.startswith("cycle")]
    assert "holdout 0.000 -> 0.200  accepted" in lines[0]
    assert "2 cycles, 2 kept, holdout 0.000 -> 0.400" in done.stdout
    assert "agent-evolve diff evo-0 evo-2 -w my-agent" in done.stdout


def test_run_json_is_one_object_on_stdout(place):
    done = cli("run", str(place), "--cycles", "1", "--json")
    result = json.loads(done.stdout)
    assert (result["final_score"], result["cycles"][0]["verdict"]) == (0.2, "accepted")


def test_nothing_accepted_is_exit_code_1(place):
    (place / "prompts" / "system.md").write_text("level:10")
    done = cli("run", str(place), "--cycles", "1", "--engine", "guided-synthesis")
    assert done.returncode == 1, done.stdout + done.stderr


def test_status_log_show_in_the_workspace(evolved):
    status = cli("status", cwd=evolved)
    assert "0.000 at the start, 0.600 now" in status.stdout, status.stderr
    assert "3 finished, 3 kept" in status.stdout
    log = cli("log", "my-agent", cwd=evolved.parent)
    assert [line.split()[0] for line in log.stdout.splitlines()[1:]] == ["evo-1", "evo-2", "evo-3"]
    show = cli("show", "evo-2", cwd=evolved)
    assert "accepted: holdout 0.200 -> 0.400 on 10 tasks" in show.stdout
    assert "prompts/system.md" in show.stdout


@pytest.mark.parametrize(
    "verb", [["status"], ["log"], ["show", "evo-1"], ["diff", "evo-0", "evo-2"]]
)
def test_every_verb_speaks_json(evolved, verb):
    done = cli(*verb, "--json", "-w", str(evolved))
    assert done.returncode == 0, done.stderr
    json.loads(done.stdout)


def test_diff_prints_what_git_prints_and_the_command(evolved):
    done = cli("diff", "evo-1", "evo-3", cwd=evolved)
    assert done.stdout == git(evolved, "diff", "evo-1", "evo-3")
    assert "git diff evo-1 evo-3" in done.stderr


def test_the_workspace_is_found_from_above_and_below(evolved):
    for here in (evolved, evolved / "prompts", evolved.parent):
        assert cli("status", cwd=here).returncode == 0


def test_rollback_brings_files_back_and_forgets_nothing(place):
    cli("run", str(place), "--cycles", "3")
    done = cli("rollback", "evo-1", "-w", str(place))
    assert done.returncode == 0, done.stderr
    assert (place / "prompts" / "system.md").read_text() == "level:2"
    assert len(json.loads(cli("log", "-w", str(place), "--json").stdout)) == 4
    again = cli("run", str(place), "--cycles", "1", "--json")
    assert json.loads(again.stdout)["cycles"][0]["cycle"] == 4
    assert "level:6" in git(place, "show", "evo-3:prompts/system.md")


def test_eval_measures_any_version(evolved):
    done = cli("eval", "evo-2", "--split", "holdout", "--json", "-w", str(evolved))
    assert json.loads(done.stdout)["mean"] == 0.4
    train = cli("eval", "evo-3", "--split", "train", "-w", str(evolved))
    assert "evo-3 on train: mean 0.600 over 20 of 20 tasks" in train.stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["run", "no-such-agent"], "unknown workspace or seed"),
        (["run", "quickstrat"], "Did you mean 'quickstart'?"),
        (["run", "./nowhere"], "agent-evolve init"),
        (["run", "my-agent", "--cycles", "0"], "at least 1"),
        (["run", "my-agent", "--engine", "skilforge"], "Did you mean 'skillforge'?"),
        (["run", "my-agent", "--model", "antropic:x"], "anthropic"),
        (["status", "-w", "my-agent"], "has not been run yet"),
        (["diff", "evo-1", "evo-2", "-w", "my-agent"], "has not been run yet"),
        (["eval", "evo-1", "--split", "hold", "-w", "my-agent"], "train, holdout, test"),
        (["rollback", "evo-7", "-w", "my-agent"], "has not been run yet"),
    ],
)
def test_wrong_use_is_exit_code_2_and_says_what_to_type(place, arguments, says):
    before = sorted(os.listdir(place))
    done = cli(*arguments, cwd=place.parent)
    assert done.returncode == 2, done.stdout + done.stderr
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    if arguments[0] == "run":
        assert sorted(os.listdir(place)) == before


def test_an_unknown_version_names_the_known_ones(evolved):
    done = cli("show", "evo-33", "-w", str(evolved))
    assert done.returncode == 2
    assert "evo-3" in done.stderr


def test_init_makes_a_commented_workspace_that_doctor_reads(tmp_path):
    done = cli("init", "my-agent", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "tasks.jsonl" in done.stdout
    no_key = {"ANTHROPIC_API_KEY": ""}
    doctor = cli("doctor", "my-agent", cwd=tmp_path, env=no_key)
    assert doctor.returncode == 2
    assert "ANTHROPIC_API_KEY" in doctor.stdout
    with_key = cli("doctor", "my-agent", cwd=tmp_path, env={"ANTHROPIC_API_KEY": "sk-test"})
    assert with_key.returncode == 0, with_key.stdout + with_key.stderr
    again = cli("init", "my-agent", cwd=tmp_path)
    assert again.returncode == 2
    assert "nothing was written" in again.stderr


def test_importing_the_package_loads_no_heavy_library():
    code = "import sys, agent_evolve; print(sorted(set(sys.modules) & set(sys.argv[1:])))"
    heavy = ["pydantic", "git", "yaml", "anthropic", "boto3", "openai", "typer", "rich"]
    done = subprocess.run(
        [sys.executable, "-c", code, *heavy], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


SLOW_AGENT = """
import time
class Slow(Leveller):
    def solve(self, task):
        time.sleep(1)
        return super().solve(task)
"""


def test_a_second_run_at_the_same_time_is_told_who_holds_the_workspace(tmp_path):
    place = make_workspace(tmp_path / "agent", agent="Slow", parts=SLOW_AGENT)
    first = subprocess.Popen(
        [sys.executable, "-m", "agent_evolve", "run", str(place), "--cycles", "1"],
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + 60
        while not (place / "evolution" / "run.holder.json").exists():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        second = cli("run", str(place), "--cycles", "1")
        assert second.returncode == 2
        assert f"process {first.pid}" in second.stderr
    finally:
        first.kill()
        first.wait()
