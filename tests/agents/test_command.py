"""The command agent with real programs that print what Claude Code and Codex print."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from agent_evolve.agents.command import CommandAgent
from agent_evolve.errors import (
    ConfigurationError,
    InfrastructureError,
    UnknownNameError,
    UnsafePathError,
)
from agent_evolve.execution import find_sandbox
from agent_evolve.runtime import Runtime
from agent_evolve.types import Task

PYTHON = sys.executable
ASKED = '-v "it\'s" $(touch /tmp/x) {id}\n; rm -rf / ü'


def agent(place: Path, code: str = "", *arguments: str, **options: Any) -> CommandAgent:
    (place / "prompts").mkdir(parents=True, exist_ok=True)
    (place / "prompts" / "system.md").write_text("Be brief.\n")
    command = options.pop("command", [PYTHON, "-c", code, *arguments])
    benchmark = options.pop("benchmark", None)
    manifest = {
        "name": "x",
        "benchmark": benchmark,
        "agent": {"type": "command", "command": command, **options},
    }
    (place / "manifest.yaml").write_text(json.dumps(manifest))
    made = CommandAgent(place)
    made.runtime = Runtime(task_timeout=20)
    return made


def printing(text: str, exit_code: int = 0, err: str = "") -> str:
    return f"import sys; print({text!r}); print({err!r}, file=sys.stderr); sys.exit({exit_code})"


def lines(*events: dict[str, Any]) -> str:
    return "\n".join(json.dumps(event) for event in events)


def test_a_task_stays_one_argument_whatever_it_contains(tmp_path: Path) -> None:
    code = "import sys, json; print(json.dumps(sys.argv[1:]))"
    made = agent(tmp_path, code, "{task}", "--id={id}", "{model}", model="m-1")
    found = json.loads(made.solve(Task("t/1", ASKED)).output)
    assert found == [ASKED, "--id=t/1", "m-1"]


def test_half_a_character_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / "episodic.jsonl").write_text('{"lesson": "half \\ud800"}\n')
    code = """
import sys
places = [sys.argv[1], sys.argv[2], sys.stdin.read(), open(sys.argv[3]).read()]
print("half \ufffd" in open("A.md").read(), [ascii(text) for text in places])
"""
    made = agent(
        tmp_path, code, "{task}", "{id}", "{task_file}", stdin=True, instructions_to="A.md"
    )
    seen = made.solve(Task("t\ud800", "a\ud800b")).output
    whole = [ascii(text) for text in ("a\ufffdb", "t\ufffd", "a\ufffdb", "a\ufffdb")]
    assert seen == f"True {whole}"


def test_the_task_by_standard_input_and_by_file(tmp_path: Path) -> None:
    code = "import sys; print(sys.stdin.read() == open(sys.argv[1]).read()); print(sys.argv[1])"
    trajectory = agent(tmp_path, code, "{task_file}", stdin=True).solve(Task("t", ASKED))
    right, path = trajectory.output.split("\n")
    assert right == "True"
    assert not Path(path).exists()
    assert trajectory.metrics["seconds"] > 0


def test_skills_instructions_and_files_lie_where_the_program_looks(tmp_path: Path) -> None:
    place = tmp_path / "w"
    skill = place / "skills" / "dates"
    (skill / "scripts").mkdir(parents=True)
    (skill / "SKILL.md").write_bytes(b"---\r\nname: dates\r\n---\r\n")
    (skill / "scripts" / "run.sh").write_text("#!/bin/sh\n")
    (skill / "scripts" / "run.sh").chmod(0o755)
    (skill / "link").symlink_to("SKILL.md")
    (place / "skills" / "_drafts").mkdir()
    (place / "memory").mkdir()
    (place / "memory" / "episodic.jsonl").write_text('{"lesson": "days first"}\n')
    code = """
import os, json, sys
skill = ".claude/skills/dates"
print(json.dumps([sorted(os.listdir(".")), sorted(os.listdir(".claude/skills")),
    open(skill + "/SKILL.md", newline="").read(), os.access(skill + "/scripts/run.sh", os.X_OK),
    os.readlink(skill + "/link"), open("CLAUDE.md").read(), open("in/a.csv").read(),
    sorted(os.listdir(sys.argv[1]))]))
"""
    made = agent(
        place, code, "{workspace}", skills_to=".claude/skills", instructions_to="CLAUDE.md"
    )
    found = json.loads(made.solve(Task("t", "x", {"files": {"in/a.csv": "1,2"}})).output)
    assert found[:5] == [
        [".claude", "CLAUDE.md", "in"],
        ["dates"],
        "---\r\nname: dates\r\n---\r\n",
        True,
        "SKILL.md",
    ]
    assert "Be brief." in found[5]
    assert "days first" in found[5]
    assert found[6] == "1,2"
    assert found[7] == ["manifest.yaml", "memory", "prompts", "skills"]


def test_a_linked_skill_file_becomes_a_real_one(tmp_path: Path) -> None:
    skill = tmp_path / "skills" / "dates"
    skill.mkdir(parents=True)
    (skill / "body.md").write_text("days first")
    (skill / "SKILL.md").symlink_to("body.md")
    code = "import os; p = 's/dates/SKILL.md'; print(os.path.islink(p), open(p).read())"
    assert agent(tmp_path, code, skills_to="s").solve(Task("t", "x")).output == "False days first"


def test_what_the_workspace_does_not_list_is_no_skill_for_the_program(tmp_path: Path) -> None:
    place, secrets = tmp_path / "w", tmp_path / "secrets"
    for folder in (place / "skills" / "_shared", place / "skills" / "own", secrets):
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text("---\nname: x\ndescription: d\n---\n")
        (folder / "key").write_text("1")
    (place / "skills" / "linked").symlink_to(secrets)
    (place / "skills" / "file").mkdir()
    (place / "skills" / "file" / "SKILL.md").symlink_to(secrets / "key")
    code = "import os; print([(p, sorted(f)) for p, _, f in sorted(os.walk('s')) if f])"
    made = agent(place, code, skills_to="s")
    assert [skill.name for skill in made.skills] == ["own"]
    seen = made.solve(Task("t", "x")).output
    assert seen == "[('s/_shared', ['key']), ('s/own', ['SKILL.md', 'key'])]"


@pytest.mark.parametrize("key", ["skills_to", "instructions_to"])
@pytest.mark.parametrize("path", ["/etc/x", "../x", "a/../../x", "~/.claude/skills", ""])
def test_nothing_is_put_outside_of_the_task_s_directory(
    tmp_path: Path, key: str, path: str
) -> None:
    with pytest.raises(ConfigurationError, match="inside the task's directory"):
        agent(tmp_path, "print(1)", **{key: path})


def test_nor_through_a_link_that_a_task_brings(tmp_path: Path) -> None:
    files = tmp_path / "files"
    files.mkdir()
    (files / "CLAUDE.md").symlink_to(tmp_path / "mine.md")
    made = agent(tmp_path / "w", "print(1)", instructions_to="CLAUDE.md")
    with pytest.raises(UnsafePathError):
        made.solve(Task("t", "x", {"directory": str(files)}))
    assert not (tmp_path / "mine.md").exists()


def test_the_copy_of_the_workspace_tells_no_answers(tmp_path: Path) -> None:
    for name in ("evolution/journal", "data/tasks.csv", "grade.py", "solve.py", ".env", "data/ok"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("42")
    made = agent(tmp_path, "import os, sys; os.chdir(sys.argv[1]); os.system('find . -type f')",
                 "{workspace}", benchmark={"name": "local", "tasks": ["data/tasks.csv"],
                 "grader": {"name": "python", "function": "grade.py:grade"}})  # fmt: skip
    found = made.solve(Task("t", "x")).output.split()
    assert sorted(found) == ["./data/ok", "./manifest.yaml", "./prompts/system.md", "./solve.py"]


def test_what_it_changes_in_the_workspace_stays_in_its_copy(tmp_path: Path) -> None:
    code = "import sys; open(sys.argv[1] + '/prompts/system.md', 'w').write('mine'); print(1)"
    agent(tmp_path, code, "{workspace}").solve(Task("t", "x"))
    assert (tmp_path / "prompts" / "system.md").read_text() == "Be brief.\n"


CLAUDE = {
    "type": "result",
    "subtype": "success",
    "is_error": False,
    "num_turns": 3,
    "duration_ms": 10,
    "result": "2024-03-01",
    "session_id": "s",
    "total_cost_usd": 0.0125,
    "usage": {"input_tokens": 5, "cache_read_input_tokens": 100, "output_tokens": 7},
}
USE = {"type": "tool_use", "id": "1", "name": "Skill", "input": {"skill": "dates"}}


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(CLAUDE),
        json.dumps([{"type": "system"}, CLAUDE]),
        lines({"type": "assistant", "message": {"content": [USE]}}, CLAUDE),
        "npm warn something\n" + json.dumps(CLAUDE),
    ],
)
def test_claude_s_answer_and_cost(tmp_path: Path, text: str) -> None:
    trajectory = agent(tmp_path, printing(text), output="claude-json").solve(Task("t", "x"))
    assert (trajectory.output, trajectory.error) == ("2024-03-01", None)
    metrics = {k: v for k, v in trajectory.metrics.items() if k != "seconds"}
    assert metrics == {"usd": 0.0125, "turns": 3, "input_tokens": 105, "output_tokens": 7}
    if "Skill" in text:
        assert trajectory.steps == [{"tool": "Skill", "action": '{"skill": "dates"}'}]


@pytest.mark.parametrize("told", ["days first", [{"type": "text", "text": "days first"}]])
def test_a_step_of_claude_s_stream_has_what_the_tool_said(tmp_path: Path, told: Any) -> None:
    result = {"type": "tool_result", "tool_use_id": "1", "content": told}
    text = lines(
        {"type": "assistant", "message": {"content": [USE]}},
        {"type": "user", "message": {"content": [result]}},
        CLAUDE,
    )
    trajectory = agent(tmp_path, printing(text), output="claude-json").solve(Task("t", "x"))
    assert trajectory.steps == [
        {"tool": "Skill", "action": '{"skill": "dates"}', "output": "days first"}
    ]


@pytest.mark.parametrize("usd", ["NaN", "-3", "1e999", "9" * 400, '"much"', "null", "true"])
def test_a_cost_that_can_t_be_is_not_reported(tmp_path: Path, usd: str) -> None:
    text = json.dumps(CLAUDE).replace("0.0125", usd)
    trajectory = agent(tmp_path, printing(text), output="claude-json").solve(Task("t", "x"))
    assert trajectory.output == "2024-03-01"
    assert "usd" not in trajectory.metrics
    assert trajectory.metrics["turns"] == 3


CODEX = [
    {"type": "thread.started", "thread_id": "t"},
    {"type": "turn.started"},
    {"type": "item.completed", "item": {"type": "reasoning", "text": "hm"}},
    {
        "type": "item.completed",
        "item": {"type": "command_execution", "command": "ls", "aggregated_output": "a\n"},
    },
    {"type": "item.completed", "item": {"type": "agent_message", "text": "2024-03-01"}},
    {"type": "turn.completed", "usage": {"input_tokens": 50, "output_tokens": 9}},
]


def test_codex_s_answer_steps_and_tokens(tmp_path: Path) -> None:
    made = agent(tmp_path, printing(lines(*CODEX)), output="codex-jsonl")
    trajectory = made.solve(Task("t", "x"))
    assert trajectory.output == "2024-03-01"
    assert trajectory.steps == [{"tool": "command_execution", "action": "ls", "output": "a\n"}]
    assert trajectory.metrics["input_tokens"] == 50


def failure(**changes: Any) -> str:
    return json.dumps({**CLAUDE, **changes})


@pytest.mark.parametrize(
    ("output", "text", "exit_code", "kind", "says"),
    [
        ("claude-json", failure(subtype="error_max_turns", result=None), 0, "agent", "max_turns"),
        ("claude-json", failure(is_error=True, result="I could not"), 1, "agent", "I could not"),
        (
            "claude-json",
            failure(is_error=True, result="Invalid API key · Please run /login"),
            1,
            ConfigurationError,
            "log in",
        ),
        (
            "claude-json",
            failure(is_error=True, result='API Error: 529 {"type":"overloaded_error"}'),
            1,
            InfrastructureError,
            "overloaded",
        ),
        (
            "claude-json",
            failure(is_error=True, result="Claude AI usage limit reached"),
            1,
            InfrastructureError,
            "usage limit",
        ),
        (
            "claude-json",
            failure(is_error=True, api_error_status=500, result="something new"),
            1,
            InfrastructureError,
            "something new",
        ),
        (
            "claude-json",
            failure(is_error=True, api_error_status=400, result="Prompt is too long"),
            1,
            "agent",
            "Prompt is too long",
        ),
        (
            "claude-json",
            failure(is_error=True, api_error_status=404, result="the selected model"),
            1,
            ConfigurationError,
            "correct its model",
        ),
        (
            "claude-json",
            failure(is_error=True, api_error_status=400, result="Credit balance is too low"),
            1,
            ConfigurationError,
            "Credit balance",
        ),
        (
            "claude-json",
            failure(subtype="error_max_turns", result="after status 429 I gave up"),
            1,
            "agent",
            "gave up",
        ),
        ("claude-json", json.dumps(CLAUDE)[:80], 0, "agent", "no result"),
        ("claude-json", "", 3, "agent", "exit code 3"),
        ("claude-json", failure(result=""), 0, "agent", "no answer"),
        ("codex-jsonl", lines(*CODEX[:3]), 1, "agent", "no result"),
        (
            "codex-jsonl",
            lines({"type": "turn.failed", "error": {"message": "stream disconnected"}}),
            1,
            InfrastructureError,
            "stream disconnected",
        ),
        (
            "codex-jsonl",
            lines({"type": "error", "message": "401 Unauthorized"}),
            1,
            ConfigurationError,
            "Unauthorized",
        ),
        (
            "codex-jsonl",
            lines({"type": "turn.failed", "error": {"message": "context too long"}}),
            1,
            "agent",
            "context too long",
        ),
        (
            "codex-jsonl",
            lines(
                {
                    "type": "error",
                    "message": "Reconnecting... 1/1 (We’re currently experiencing high demand)",
                }
            ),
            1,
            InfrastructureError,
            "high demand",
        ),
        (
            "codex-jsonl",
            lines(*CODEX[:4], {"type": "item.started", "text": "status 401: not logged in"}),
            1,
            "agent",
            "no result",
        ),
        ("text", "the site says: 401 Unauthorized", 2, "agent", "Unauthorized"),
        ("text", "half", 2, "agent", "exit code 2"),
        ("text", "", 0, "agent", "no answer"),
        ("file", "printed only", 0, "agent", "nothing was written"),
    ],
)
def test_whose_failure_it_is(
    tmp_path: Path, output: str, text: str, exit_code: int, kind: Any, says: str
) -> None:
    made = agent(tmp_path, printing(text, exit_code), "{out}", output=output)
    if kind == "agent":
        trajectory = made.solve(Task("t", "x"))
        assert says in (trajectory.error or "")
        assert trajectory.output == ""
    else:
        with pytest.raises(kind, match=says):
            made.solve(Task("t", "x"))


def test_a_stream_that_was_mended_is_no_failure(tmp_path: Path) -> None:
    events = [CODEX[0], {"type": "error", "message": "Reconnecting... 1/5"}, *CODEX[1:]]
    made = agent(tmp_path, printing(lines(*events)), output="codex-jsonl")
    trajectory = made.solve(Task("t", "x"))
    assert (trajectory.output, trajectory.error) == ("2024-03-01", None)
    assert trajectory.conversation == [{"session": "t"}]


def test_an_answer_may_hold_what_ends_a_line_elsewhere(tmp_path: Path) -> None:
    message = {"type": "agent_message", "text": "a\u2028b\x85c"}
    events = [*CODEX[:4], {"type": "item.completed", "item": message}, CODEX[5]]
    printed = "\n".join(json.dumps(event, ensure_ascii=False) for event in events)
    code = f"import sys; sys.stdout.buffer.write({printed.encode()!r})"
    made = agent(tmp_path, code, output="codex-jsonl")
    assert made.solve(Task("t", "x")).output == "a\u2028b\x85c"


def test_a_missing_login_is_seen_above_a_stack_trace(tmp_path: Path) -> None:
    err = "Error: Not logged in\n" + "    at run (node:internal/modules:1:2)\n" * 40
    made = agent(tmp_path, printing("", 1, err), output="claude-json")
    with pytest.raises(ConfigurationError, match="Not logged in"):
        made.solve(Task("t", "x"))


def test_a_time_out_tells_the_outage_before_it(tmp_path: Path) -> None:
    said = json.dumps({"type": "error", "message": "Reconnecting... waiting for network"})
    made = agent(tmp_path, f"import time; print({said!r}, flush=True); time.sleep(60)",
                 output="codex-jsonl")  # fmt: skip
    made.runtime = Runtime(task_timeout=1)
    with pytest.raises(InfrastructureError, match="waiting for network"):
        made.solve(Task("t", "x"))


def test_a_failure_of_the_outside_tells_what_it_cost_all_the_same(tmp_path: Path) -> None:
    text = failure(is_error=True, api_error_status=529, result="Overloaded")
    with pytest.raises(InfrastructureError) as raised:
        agent(tmp_path, printing(text, 1), output="claude-json").solve(Task("t", "x"))
    assert raised.value.metrics["usd"] == 0.0125


def test_a_tool_that_was_not_allowed_is_a_step(tmp_path: Path) -> None:
    denied = [{"tool_name": "Bash", "tool_input": {"command": "ls"}}]
    text = failure(permission_denials=denied)
    trajectory = agent(tmp_path, printing(text), output="claude-json").solve(Task("t", "x"))
    assert trajectory.steps == [
        {"tool": "Bash", "action": '{"command": "ls"}', "output": "permission denied"}
    ]


def test_a_task_too_long_for_an_argument_says_how_to_give_it(tmp_path: Path) -> None:
    long = Task("t", "x" * 200_000)
    with pytest.raises(ConfigurationError, match="stdin: true"):
        agent(tmp_path, "print(1)", "{task}").solve(long)
    code = "import sys; print(len(sys.stdin.read()))"
    assert agent(tmp_path, code, stdin=True).solve(long).output == "200000"


def test_the_answer_as_a_file_and_never_through_a_link(tmp_path: Path) -> None:
    code = "import sys; open(sys.argv[1], 'w').write('42'); print('noise')"
    assert agent(tmp_path, code, "{out}", output="file").solve(Task("t", "x")).output == "42"
    linked = "import sys, os; os.symlink('/etc/passwd', sys.argv[1])"
    made = agent(tmp_path, linked, "{out}", output="file")
    assert "nothing was written" in (made.solve(Task("t", "x")).error or "")


def test_a_program_that_never_ends_is_stopped_with_all_that_it_started(tmp_path: Path) -> None:
    mark = tmp_path / "alive"
    child = tmp_path / "child.py"
    child.write_text(
        f"import time\nwhile True: open({str(mark)!r}, 'a').write('x'); time.sleep(0.05)\n"
    )
    code = (
        "import subprocess, sys, time\n"
        f"subprocess.Popen([sys.executable, {str(child)!r}], start_new_session=True)\n"
        "time.sleep(60)\n"
    )
    made = agent(tmp_path, code)
    made.runtime = Runtime(task_timeout=1.5)
    with pytest.raises(InfrastructureError, match=r"did not end within 1\.5 seconds"):
        made.solve(Task("t", "x"))
    size = mark.stat().st_size
    time.sleep(0.4)
    assert mark.stat().st_size == size


def test_output_without_end_is_bounded(tmp_path: Path) -> None:
    code = "import sys\nfor _ in range(100): sys.stdout.write('x' * 1_000_000)"
    trajectory = agent(tmp_path, code, output_bytes=100_000).solve(Task("t", "x"))
    assert len(trajectory.output) < 101_000
    lost = agent(tmp_path, code, output_bytes=100_000, output="claude-json").solve(Task("t", "x"))
    assert "printed too much" in (lost.error or "")


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"command": ["x", "{taks}"]}, UnknownNameError, "Did you mean 'task'"),
        ({"command": []}, ConfigurationError, "empty"),
        ({"command": ["x", "--model", "{model}"]}, ConfigurationError, "no model is named"),
        ({"command": "x 'open"}, ConfigurationError, "quotation"),
        ({"command": ["x"], "outptu": "text"}, UnknownNameError, "Did you mean 'output'"),
        ({"command": ["x"], "output": "xml"}, ConfigurationError, "xml"),
    ],
)
def test_wrong_options_are_refused_at_once(
    tmp_path: Path, options: dict[str, Any], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        agent(tmp_path, **options)


def test_a_program_that_is_not_there_stops_the_run_with_advice(tmp_path: Path) -> None:
    made = agent(tmp_path, command=["no-such-agent", "-p", "{task}"])
    with pytest.raises(ConfigurationError, match="install no-such-agent"):
        made.solve(Task("t", "x"))
    assert made.needs() == [
        ("program no-such-agent", False, "install no-such-agent, or correct 'command:'")
    ]


def test_a_path_beside_the_manifest_is_told_how_to_be_written(tmp_path: Path) -> None:
    made = agent(tmp_path, command=["./solve.sh"])
    says = "write {workspace}/solve.sh for a program of the workspace"
    assert says in made.needs()[0][2]
    with pytest.raises(ConfigurationError) as raised:
        made.solve(Task("t", "x"))
    assert says in raised.value.fix


def test_doctor_finds_a_skill_that_would_be_mistaken_for_the_user_s(tmp_path: Path) -> None:
    own = tmp_path / "home" / ".claude" / "skills" / "dates"
    own.mkdir(parents=True)
    skill = tmp_path / "w" / "skills" / "dates"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: dates\ndescription: d\n---\n")
    before = os.environ["HOME"]
    os.environ["HOME"] = str(tmp_path / "home")
    try:
        for arguments, alone in (
            ([], False),
            (["--setting-sources", "user,project"], False),
            (["--setting-sources", "project"], True),
            (["--setting-sources=project"], True),
        ):
            made = agent(tmp_path / "w", "", *arguments, skills_to=".claude/skills")
            assert (len(made.needs()) == 1) is alone, arguments
    finally:
        os.environ["HOME"] = before


def test_doctor_asks_whether_the_program_is_logged_in(tmp_path: Path) -> None:
    for code, right in ((0, True), (1, False)):
        check = [PYTHON, "-c", f"raise SystemExit({code})"]
        row = agent(tmp_path, "print(1)", login_check=check).needs()[1]
        assert row[:2] == (f"login of {PYTHON}", right)
        assert f"asked with: {PYTHON} -c" in row[2]


def test_doctor_finds_a_program_of_the_workspace(tmp_path: Path) -> None:
    made = agent(tmp_path, command=["{workspace}/solve", "{task}"])
    assert not made.needs()[0][1]
    (tmp_path / "solve").write_text('#!/bin/sh\necho "$1"\n')
    (tmp_path / "solve").chmod(0o755)
    assert made.needs()[0][1]
    assert made.solve(Task("t", "-x")).output == "-x"


def test_braces_can_be_written(tmp_path: Path) -> None:
    code = "import sys; print(sys.argv[1:])"
    made = agent(tmp_path, code, "{{task}}", '{"a": {"b": 1}}')
    assert made.solve(Task("t", "x")).output == """['{task}', '{"a": {"b": 1}}']"""


def test_in_the_sandbox_nothing_of_the_users_is_there(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("key")
    os.environ["A_SECRET"] = "key"
    try:
        code = f'cat {secret}; echo $A_SECRET; echo $B; cat in.txt > "$1"'
        made = agent(
            tmp_path / "w",
            command=["sh", "-c", code, "sh", "{out}"],
            output="file",
            sandbox=True,
            env={"B": "b"},
        )
        assert made.needs_sandbox
        made.runtime = Runtime(sandbox=find_sandbox(), task_timeout=20)
        assert made.solve(Task("t", "x", {"files": {"in.txt": "text"}})).output == "text"
    finally:
        del os.environ["A_SECRET"]
