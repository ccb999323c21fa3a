"""The bash agent with a real sandbox: what it can do, and what a hostile model can't."""

from __future__ import annotations

import os
import re
import tempfile
import time
from pathlib import Path

import pytest

from agent_evolve.agents.bash import BashAgent
from agent_evolve.errors import ConfigurationError, InfrastructureError, SandboxUnavailable
from agent_evolve.execution.find import find_sandbox
from agent_evolve.llm import Completion, ScriptedModel
from agent_evolve.runtime import Runtime
from agent_evolve.types import Trajectory

from .support import bash, broken, shell, task, workspace, write


def _no_sandbox() -> bool:
    try:
        find_sandbox()
    except SandboxUnavailable:
        return True
    return False


pytestmark = pytest.mark.skipif(_no_sandbox(), reason="no sandbox works here")

QUICK = "bash, command_seconds: 5"
REGISTRY = "- name: shout.sh\n  description: Says it\n    louder.\n  usage: shout.sh WORD\n"


def solve(root: Path, *commands: str, **metadata: object) -> Trajectory:
    """A model that runs the commands and then answers."""
    model = ScriptedModel([*[shell(command) for command in commands], "done"])
    return bash(root, model).solve(task(**metadata))


def output(trajectory: Trajectory, at: int = 0) -> str:
    return str(trajectory.steps[at]["output"])


# -- the task's directory ------------------------------------------------------------------------


def test_files_of_the_task_are_there_and_stay_between_commands(tmp_path: Path) -> None:
    done = solve(
        workspace(tmp_path, agent="bash"),
        "cat data/a.txt; echo new > b.txt",
        "cat b.txt; pwd",
        files={"data/a.txt": "first"},
    )
    assert output(done, 0) == "first"
    assert output(done, 1).startswith("new\n")
    assert done.output == "done"
    assert not Path(output(done, 1).split()[-1]).exists(), "nothing of the task is left behind"


def test_a_directory_is_copied_and_stays_as_it_is(tmp_path: Path) -> None:
    source = write(tmp_path / "source", {"sub/x.txt": "old", "run.sh": "echo ran"})
    (source / "run.sh").chmod(0o755)
    done = solve(
        workspace(tmp_path / "w", agent="bash"),
        "./run.sh && cat sub/x.txt && echo changed > sub/x.txt",
        directory=str(source),
    )
    assert output(done) == "ran\nold"
    assert (source / "sub/x.txt").read_text() == "old"


def test_each_task_has_a_directory_of_its_own(tmp_path: Path) -> None:
    agent = bash(
        workspace(tmp_path, agent="bash"),
        ScriptedModel([shell("touch mark; ls"), "done", shell("ls"), "done"]),
    )
    assert output(agent.solve(task())) == "mark"
    assert output(agent.solve(task())) == "(no output)"


@pytest.mark.parametrize(
    "metadata",
    [
        {"files": {"../out.txt": "x"}},
        {"files": {"/tmp/out.txt": "x"}},
        {"files": {"a\0b": "x"}},
        {"files": {"": "x"}},
        {"files": "not a mapping"},
        {"directory": "/no/such/place"},
    ],
    ids=str,
)
def test_files_that_can_t_be_laid_out_say_nothing_about_the_agent(
    tmp_path: Path, metadata: dict[str, object]
) -> None:
    with pytest.raises(InfrastructureError, match="task 't' can't be laid out"):
        solve(workspace(tmp_path, agent="bash"), "true", **metadata)
    assert not Path("/tmp/out.txt").exists()


def test_a_file_of_the_task_is_not_written_through_a_link_out(tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    (tmp_path / "source/link").symlink_to(tmp_path)
    with pytest.raises(InfrastructureError, match="outside"):
        solve(
            workspace(tmp_path / "w", agent="bash"),
            "true",
            directory=str(tmp_path / "source"),
            files={"link/out.txt": "x"},
        )
    assert not (tmp_path / "out.txt").exists()


# -- the answer ----------------------------------------------------------------------------------


def test_the_answer_is_the_file_if_one_was_written(tmp_path: Path) -> None:
    done = solve(workspace(tmp_path, agent="bash"), "echo 42 > answer.txt")
    assert done.output == "42"


def test_an_answer_in_the_file_counts_though_the_model_said_nothing(tmp_path: Path) -> None:
    model = ScriptedModel([shell("echo 42 > answer.txt"), Completion("")])
    done = bash(workspace(tmp_path, agent="bash"), model).solve(task())
    assert done.output == "42"
    assert done.error is None


@pytest.mark.parametrize(
    "command",
    ["ln -s /etc/hostname answer.txt", "ln -s answer.txt answer.txt", "mkfifo answer.txt",
     "mkdir answer.txt", ": > answer.txt"],
)  # fmt: skip
def test_an_answer_file_that_is_none_is_not_read(tmp_path: Path, command: str) -> None:
    done = solve(workspace(tmp_path, agent="bash"), command)
    assert done.output == "done"


# -- tools and skills of the workspace -----------------------------------------------------------


def test_tools_of_the_workspace_are_described_and_on_path(tmp_path: Path) -> None:
    root = workspace(
        tmp_path,
        {
            "tools/registry.yaml": REGISTRY,
            "tools/shout.sh": "#!/bin/sh\necho $1!\n",
            "skills/a/SKILL.md": "---\nname: a\ndescription: b\n---\nbody",
        },
        agent="bash",
    )
    (root / "tools/shout.sh").chmod(0o755)
    model = ScriptedModel([shell("shout.sh hey; cat $SKILLS/a/SKILL.md | tail -1"), "done"])
    done = bash(root, model).solve(task())
    assert output(done) == "hey!\nbody"
    assert "- shout.sh: Says it louder. Usage: shout.sh WORD" in model.requests[0].system


def test_tools_and_skills_can_t_be_changed_by_a_command(tmp_path: Path) -> None:
    files = {"tools/a.sh": "echo a\n", "skills/a/SKILL.md": "---\nname: a\n---\nx"}
    root = workspace(tmp_path, files, agent="bash")
    solve(root, 'echo evil > "$TOOLS/a.sh"; rm -rf "$SKILLS" "$TOOLS"; echo evil > "$TOOLS/new"')
    assert (root / "tools/a.sh").read_text() == "echo a\n"
    assert (root / "skills/a/SKILL.md").is_file()
    assert sorted(path.name for path in (root / "tools").iterdir()) == ["a.sh"]


def test_the_rest_of_the_workspace_is_not_seen(tmp_path: Path) -> None:
    files = {"tasks.jsonl": '{"expected": "the right answer"}', "tools/a.sh": ""}
    root = workspace(tmp_path, files, agent="bash")
    done = solve(root, f"cat {root}/tasks.jsonl $TOOLS/../tasks.jsonl; ls {root}")
    assert "the right answer" not in output(done)
    assert "manifest.yaml" not in output(done)


# -- a hostile model -----------------------------------------------------------------------------


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with a key, secrets in the environment, and a workspace."""
    home = write(tmp_path / "home", {".ssh/id_rsa": "PRIVATE-KEY", "work.txt": "mine"})
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-very-secret")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "aws-very-secret")
    return tmp_path


def everything(root: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in sorted(root.rglob("*")) if p.is_file()}


def task_directories() -> set[str]:
    return {p.name for p in Path(tempfile.gettempdir()).glob("task-*")}


@pytest.mark.parametrize(
    "command",
    [
        "curl -sS -m 3 http://1.1.1.1/ || wget -qT 3 -O- http://1.1.1.1/ || "
        "(exec 3<>/dev/tcp/1.1.1.1/80 && echo CONNECTED)",
        "env; export -p; cat /proc/self/environ /proc/*/environ | tr '\\0' '\\n'",
        "cat ~/.ssh/id_rsa {home}/.ssh/id_rsa; ls -a ~ {home}; grep -r KEY {home} /root /home",
        "rm -rf --no-preserve-root / ~ {home} 2>/dev/null; rm -rf {home} .. ../..; echo gone",
        ":(){{ :|:& }};:",
        "nohup setsid sleep 3141 >/dev/null 2>&1 & disown; echo started",
        "kill -9 -1; kill -9 {pid}; echo tried",
        "echo x > {home}/work.txt; echo x > /etc/passwd; echo x > /tmp/../{home}/new",
    ],
    ids=["curl", "env", "ssh key", "rm -rf", "fork bomb", "background", "kill", "write"],
)
def test_what_a_hostile_model_runs_is_recorded_and_harms_nothing(host: Path, command: str) -> None:
    before, left = everything(host), task_directories()
    root = workspace(host / "w", agent=QUICK)
    before |= everything(root)
    command = command.format(home=host / "home", pid=os.getpid())
    started = time.monotonic()
    done = solve(root, command, "echo still here")

    assert [step["action"] for step in done.steps] == [command, "echo still here"]
    assert output(done, 1) == "still here"
    assert done.output == "done"
    assert done.error is None
    said = output(done, 0)
    assert not any(word in said for word in ("very-secret", "PRIVATE-KEY", "CONNECTED"))
    assert everything(host) == before
    assert task_directories() == left
    assert not _running("sleep\x003141")
    assert time.monotonic() - started < 30


def _running(needle: str) -> bool:
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if needle in place.read_text():
                return True
        except OSError:
            continue  # ended meanwhile
    return False


@pytest.mark.slow
def test_a_hundred_megabytes_of_output_are_cut_and_said_so(tmp_path: Path) -> None:
    root = workspace(tmp_path, agent="bash, command_seconds: 20, output_chars: 1000")
    done = solve(root, "echo begin; head -c 100000000 /dev/zero | tr '\\0' x; echo end")
    assert output(done).startswith("begin\n")
    assert output(done).rstrip().endswith("end")
    assert re.search(r"99,99\d,\d{3} bytes cut", output(done)), "it says how much is missing"
    assert len(output(done)) < 1200


def test_a_command_over_its_time_is_stopped_and_the_model_told(tmp_path: Path) -> None:
    root = workspace(tmp_path, agent="bash, command_seconds: 1")
    done = solve(root, "echo before; sleep 60", "echo after")
    assert output(done) == "before\n[stopped after 1 seconds]"
    assert output(done, 1) == "after"


def test_a_failing_command_tells_its_exit_code(tmp_path: Path) -> None:
    done = solve(workspace(tmp_path, agent="bash"), "echo no >&2; exit 7", "false")
    assert output(done) == "no\n[exit code 7]"
    assert output(done, 1) == "[exit code 1]"


@pytest.mark.parametrize("command", ["echo a\0b", "echo \ud800", "", "'", "\n\n", "exit"])
def test_odd_commands_are_results_and_the_task_goes_on(tmp_path: Path, command: str) -> None:
    done = solve(workspace(tmp_path, agent=QUICK), command, "echo on")
    assert output(done, 1) == "on"
    assert done.output == "done"


def test_output_that_is_not_text_is_replaced(tmp_path: Path) -> None:
    done = solve(workspace(tmp_path, agent="bash"), r"printf '\xff\x00\xfeok'")
    assert output(done).endswith("ok")
    output(done).encode()


# -- a model that fumbles ------------------------------------------------------------------------


@pytest.mark.parametrize("raw", ['{"command": "ls', "ls -la", '"ls"', ""])
def test_a_broken_tool_call_runs_nothing_and_is_told(tmp_path: Path, raw: str) -> None:
    model = ScriptedModel([broken(raw), shell("echo ok"), "done"])
    done = bash(workspace(tmp_path, agent="bash"), model).solve(task())
    assert "not a JSON object" in output(done, 0)
    assert output(done, 1) == "ok"
    assert done.output == "done"


def test_a_call_cut_at_max_tokens_is_not_run(tmp_path: Path) -> None:
    cut = Completion("", tuple(shell("touch made")), "max_tokens")
    model = ScriptedModel([cut, shell("ls"), "done"])
    done = bash(workspace(tmp_path, agent="bash"), model).solve(task())
    assert "may be incomplete" in output(done, 0)
    assert output(done, 1) == "(no output)"


def test_an_empty_message_is_the_agent_s_failure_with_its_steps_kept(tmp_path: Path) -> None:
    model = ScriptedModel([shell("echo seen"), Completion("")])
    done = bash(workspace(tmp_path, agent="bash"), model).solve(task())
    assert done.error == "the model's answer was empty"
    assert output(done) == "seen"


def test_a_refusal_after_work_says_nothing_about_the_agent(tmp_path: Path) -> None:
    left = task_directories()
    model = ScriptedModel([shell("echo x"), Completion("", stop_reason="refusal")])
    with pytest.raises(InfrastructureError, match="refused"):
        bash(workspace(tmp_path, agent="bash"), model).solve(task())
    assert task_directories() == left


def test_the_turn_limit_ends_a_model_that_only_runs_commands(tmp_path: Path) -> None:
    numbers = iter(range(100))
    model = ScriptedModel(lambda request: shell(f"echo {next(numbers)}"))
    done = bash(workspace(tmp_path, agent="bash, max_turns: 4"), model).solve(task())
    assert done.error == "no answer after 4 turns: the model still wanted to use tools"
    assert [step["output"] for step in done.steps] == ["0", "1", "2"]


def test_without_a_sandbox_nothing_is_asked_of_the_model(tmp_path: Path) -> None:
    agent = BashAgent(workspace(tmp_path, agent="bash"))
    model = ScriptedModel(["never"])
    agent.runtime = Runtime(model=model)
    with pytest.raises(ConfigurationError, match="no sandbox"):
        agent.solve(task())
    assert not model.requests
