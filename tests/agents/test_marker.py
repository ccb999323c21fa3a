"""The marker in copied skills: planted without harm, looked for in what real programs print."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_evolve.agents.command import CommandAgent
from agent_evolve.agents.marker import new_marker, plant, without
from agent_evolve.errors import ConfigurationError, InfrastructureError
from agent_evolve.execution import find_sandbox
from agent_evolve.runtime import Runtime
from agent_evolve.types import Task, Trajectory
from agent_evolve.workspace.skill_file import SkillFile

CASES = sorted((Path(__file__).parents[1] / "data" / "skill_cases").glob("*/SKILL.md"))
SKILL = "---\nname: dates\ndescription: Writes dates.\n---\nDays first.\n"
OTHER = "---\nname: dates\ndescription: Mine.\n---\nMonths first.\n"
MARKED = "agent-evolve marker"

PRELUDE = """
import json, os, subprocess, sys
def claude(*events):
    result = {"type": "result", "subtype": "success", "result": "42", "total_cost_usd": 0.01}
    for event in (*events, result): print(json.dumps(event))
def used(name, given, key="1"):
    use = {"type": "tool_use", "id": key, "name": name, "input": given}
    return {"type": "assistant", "message": {"content": [use]}}
def told(text, key="1", error=False):
    result = {"type": "tool_result", "tool_use_id": key, "content": text, "is_error": error}
    return {"type": "user", "message": {"content": [result]}}
def injected(path):
    where, text = os.path.dirname(os.path.abspath(path)), open(path).read().split("---\\n", 2)[2]
    block = {"type": "text", "text": f"Base directory for this skill: {where}\\n\\n{text}"}
    return {"type": "user", "isSynthetic": True, "message": {"content": [block]}}
def codex(*commands):
    print(json.dumps({"type": "thread.started", "thread_id": "t"}))
    for command in commands:
        ran = subprocess.run(command, shell=True, capture_output=True, text=True)
        item = {"type": "command_execution", "command": f"bash -lc {command!r}",
                "exit_code": ran.returncode, "aggregated_output": ran.stdout}
        print(json.dumps({"type": "item.completed", "item": item}))
    message = {"type": "agent_message", "text": "42"}
    print(json.dumps({"type": "item.completed", "item": message}))
    print(json.dumps({"type": "turn.completed", "usage": {}}))
own = ".claude/skills/dates/SKILL.md"
launched = used("Skill", {"skill": "dates"}), told("Launching skill: dates")
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home directory of the user without skills."""
    place = tmp_path / "home"
    place.mkdir()
    monkeypatch.setenv("HOME", str(place))
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME"):
        monkeypatch.delenv(name, raising=False)
    return place


def skill_at(folder: Path, text: str = SKILL) -> Path:
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(text)
    return folder / "SKILL.md"


def agent(place: Path, code: str, *arguments: str, **options: Any) -> CommandAgent:
    (place / "prompts").mkdir(parents=True, exist_ok=True)
    (place / "prompts" / "system.md").write_text("Be brief.\n")
    if not (place / "skills").exists():
        skill_at(place / "skills" / "dates")
    program = place.parent / "program.py"
    program.write_text(PRELUDE + code)
    command = [sys.executable, str(program), *arguments]
    options = {"skills_to": ".claude/skills", "output": "claude-json"} | options
    manifest = {"name": "x", "agent": {"type": "command", "command": command, **options}}
    (place / "manifest.yaml").write_text(json.dumps(manifest))
    made = CommandAgent(place)
    made.runtime = Runtime(task_timeout=20)
    return made


def solved(place: Path, code: str, *arguments: str, **options: Any) -> Trajectory:
    """The trajectory, after a look for the marker in all of it and for changes of the workspace."""
    made = agent(place, code, *arguments, **options)
    before = {path: path.read_bytes() for path in place.rglob("*") if path.is_file()}
    trajectory = made.solve(Task("t", "x"))
    assert {path: path.read_bytes() for path in place.rglob("*") if path.is_file()} == before
    kept = repr([getattr(trajectory, name) for name in trajectory.__dataclass_fields__])
    assert MARKED not in kept
    assert "ae-" not in kept
    return trajectory


def proof(trajectory: Trajectory) -> dict[str, Any]:
    return {k: v for item in trajectory.conversation for k, v in item.items() if k != "session"}


SEEN = {"proof": "seen", "skills_loaded": ["dates"]}


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.parent.name)
def test_planting_changes_nothing_that_is_read_of_a_skill(path: Path) -> None:
    data, marker = path.read_bytes(), new_marker()
    planted = plant(data, marker)
    before, after = SkillFile.parse(data), SkillFile.parse(planted)
    assert planted.startswith(data)
    assert planted.count(marker.encode()) == 1
    for name in ("bom", "eol", "frontmatter", "name", "description", "keys", "parses", "problems"):
        assert getattr(after, name) == getattr(before, name), name


@given(
    bom=st.sampled_from([b"", b"\xef\xbb\xbf"]),
    eol=st.sampled_from([b"\n", b"\r\n"]),
    body=st.lists(st.sampled_from([b"", b"---", b"```", b"<!--", b"a: b", "ü".encode(), b"\xff"])),
    ended=st.booleans(),
)
def test_odd_bodies_keep_their_bytes_and_their_header(
    bom: bytes, eol: bytes, body: list[bytes], ended: bool
) -> None:
    data = bom + eol.join([b"---", b"name: x", b"description: d", b"---", *body])
    data += eol if ended else b""
    planted = plant(data, new_marker())
    before, after = SkillFile.parse(data), SkillFile.parse(planted)
    assert planted.startswith(data)
    assert planted.endswith(b"-->" + eol)
    assert (after.frontmatter, after.name, after.parses) == (before.frontmatter, "x", True)
    added = planted[len(data) :]
    assert added.startswith(b"<!--") if data.endswith(b"\n") else added.startswith(eol + b"<!--")


@given(st.text(), st.text())
def test_what_was_planted_is_taken_out_again(before: str, after: str) -> None:
    marker = new_marker()
    comment = plant(b"", marker).decode().strip()
    escaped = comment.replace("<", "\\u003c").replace(">", "\\u003E")
    for planted in (comment, escaped, marker, marker.upper()):
        assert without(marker, before + planted + after) == before + after
    assert without("", before) == before


def test_a_file_in_utf_16_is_left_alone_and_markers_differ() -> None:
    data = SKILL.encode("utf-16")
    assert plant(data, new_marker()) == data
    assert new_marker() != new_marker()


@pytest.mark.parametrize(
    "events",
    [
        "*launched, injected(own)",
        "used('Skill', {'command': '/dates'}), told(open(own).read())",
        "used('Read', {'file_path': os.path.abspath(own)}), told(open(own).read())",
        "used('Read', {'file_path': own, 'limit': 3}), told(open(own).read()[:30])",
        "used('Bash', {'command': f'cat {own}'}), told(open(own).read())",
    ],
)
def test_claude_loads_the_measured_skill(tmp_path: Path, home: Path, events: str) -> None:
    trajectory = solved(tmp_path / "w", f"claude({events})")
    assert proof(trajectory) == SEEN
    assert (trajectory.output, trajectory.error) == ("42", None)


@pytest.mark.parametrize(
    "events",
    [
        "*launched, injected(other)",
        "used('Skill', {'skill': 'dates'}), told(open(other).read())",
        "used('Read', {'file_path': other}), told(open(other).read())",
        "used('Read', {'file_path': other}), told('     1→---\\n     2→name: dates\\n')",
        "*launched, injected(own), used('Bash', {'command': 'cat ' + other}, '2'), "
        "told(open(other).read(), '2')",
    ],
)
@pytest.mark.parametrize("way", ["stream", "require"])
def test_claude_loads_another_skill_of_that_name(
    tmp_path: Path, home: Path, events: str, way: str
) -> None:
    other = skill_at(tmp_path / "elsewhere" / "dates", OTHER)
    made = agent(tmp_path / "w", f"other = sys.argv[1]; claude({events})", str(other), proof=way)
    with pytest.raises(
        InfrastructureError, match=r"'dates' that it loaded.* isn't the one"
    ) as told:
        made.solve(Task("t", "x"))
    assert told.value.metrics["usd"] == 0.01
    assert "proof: none" in told.value.fix
    assert "ae-" not in str(told.value)


@pytest.mark.parametrize(
    "events",
    [
        "told('hello')",
        "used('Skill', {'skill': 'plugin:dates'}), told(open(other).read())",
        "used('Skill', {'skill': 'dates'}), told('Unknown skill: dates', error=True)",
        "used('Read', {'file_path': other}), told('name: no such file', error=True)",
        "used('Bash', {'command': 'ls ' + other}), told(other)",
        "used('Skill', {'skill': 'weather'}), injected(sys.argv[2])",
        "used('Read', {'file_path': 'in/dates/SKILL.md'}), told(open(other).read())",
    ],
)
def test_no_loading_is_no_fault_unless_it_is_required(
    tmp_path: Path, home: Path, events: str
) -> None:
    other = skill_at(tmp_path / "elsewhere" / "dates", OTHER)
    weather = skill_at(tmp_path / "elsewhere" / "weather", OTHER)
    code = f"other = sys.argv[1]; claude({events})"
    options = (tmp_path / "w", code, str(other), str(weather))
    trajectory = solved(*options)
    assert (trajectory.output, proof(trajectory)) == ("42", {"proof": "not seen"})
    with pytest.raises(InfrastructureError, match="'proof: require' asks"):
        agent(*options, proof="require").solve(Task("t", "x"))


def test_a_result_without_its_stream_shows_nothing(tmp_path: Path, home: Path) -> None:
    assert proof(solved(tmp_path / "w", "claude()")) == {"proof": "cannot be seen"}


@pytest.mark.parametrize(
    ("command", "found"),
    [
        ("cat .agents/skills/dates/SKILL.md", SEEN),
        ("cat $PWD/.agents/skills/dates/SKILL.md", SEEN),
        ("sed -n 1,2p ./.agents/skills/dates/SKILL.md", SEEN),
        ("cd .agents/skills/dates && cat SKILL.md", {"proof": "seen"}),
        ("ls .agents/skills/dates/SKILL.md", {"proof": "not seen"}),
        ("cat ~/mine/dates/SKILL.md; exit 1", {"proof": "not seen"}),
        ("cat ~/mine/dates/SKILL.md", None),
        ("cat ${HOME}/mine/dates/SKILL.md", None),
    ],
)
def test_codex_reads_a_skill(
    tmp_path: Path, home: Path, command: str, found: dict[str, Any] | None
) -> None:
    skill_at(home / "mine" / "dates", OTHER)
    options = {"output": "codex-jsonl", "skills_to": ".agents/skills"}
    code = f"codex({command!r})".replace("$PWD", "' + os.getcwd() + '")
    if found is None:
        with pytest.raises(InfrastructureError, match="isn't the one measured"):
            agent(tmp_path / "w", code, **options).solve(Task("t", "x"))
    else:
        assert proof(solved(tmp_path / "w", code, **options)) == found


@pytest.mark.parametrize("output", ["text", "file"])
def test_an_answer_that_repeats_the_marker_is_kept_without_it(
    tmp_path: Path, home: Path, output: str
) -> None:
    code = "text = open(own).read(); print(text); open(sys.argv[1], 'w').write(text)"
    trajectory = solved(tmp_path / "w", code, "{out}", output=output, proof="require")
    assert trajectory.output.strip() == SKILL.strip()
    assert proof(trajectory) == {"proof": "seen"}


def test_an_error_is_kept_without_the_marker(tmp_path: Path, home: Path) -> None:
    code = "print(open(own).read(), file=sys.stderr); sys.exit(2)"
    trajectory = solved(tmp_path / "w", code, output="text", proof="stream")
    assert "Days first." in (trajectory.error or "")


def test_with_proof_none_the_copy_is_the_same_byte_for_byte(tmp_path: Path, home: Path) -> None:
    skill_at(home / ".claude" / "skills" / "dates", OTHER)
    code = "print(json.dumps(open(own).read()))"
    trajectory = solved(tmp_path / "w", code, output="text", proof="none")
    assert json.loads(trajectory.output) == SKILL
    assert trajectory.conversation == []


def test_a_skill_that_nobody_may_write_is_marked_all_the_same(tmp_path: Path, home: Path) -> None:
    skill_at(tmp_path / "w" / "skills" / "dates").chmod(0o444)
    code = "print(open(own).read(), oct(os.stat(own).st_mode))"
    trajectory = solved(tmp_path / "w", code, output="text", proof="require")
    assert proof(trajectory) == {"proof": "seen"}
    assert trajectory.output.endswith("0o100444")


OPENED = {"output": "text", "instructions_to": "A.md"}


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("open('A.md').read(); print(1)", {"proof": "opened"}),
        ("open('A.md').read(); open(own).read(); print(1)",
         {"proof": "opened", "skills_loaded": ["dates"]}),
        ("os.remove('A.md'); print(1)", {"proof": "opened"}),
        ("sys.exit(3)", {"proof": "not seen"}),
        ("", {"proof": "not seen"}),
    ],
)  # fmt: skip
def test_a_program_that_prints_no_stream_is_told_by_what_it_opened(
    tmp_path: Path, home: Path, code: str, found: dict[str, Any]
) -> None:
    assert proof(solved(tmp_path / "w", code, **OPENED)) == found


def test_instructions_that_were_never_opened_were_not_measured(tmp_path: Path, home: Path) -> None:
    code = "os.listdir('.'); os.stat('A.md'); print(1)"
    with pytest.raises(InfrastructureError, match=r"never opened A\.md"):
        agent(tmp_path / "w", code, **OPENED).solve(Task("t", "x"))
    assert solved(tmp_path / "w", code, proof="none", **OPENED).output == "1"


def test_skills_that_a_program_leaves_alone_are_no_fault(tmp_path: Path, home: Path) -> None:
    trajectory = solved(tmp_path / "w", "print(1)", output="text")
    assert proof(trajectory) == {"proof": "not seen"}


def test_opening_is_seen_from_outside_of_the_sandbox(tmp_path: Path, home: Path) -> None:
    place = tmp_path / "w"
    agent(place, "")
    manifest = json.loads((place / "manifest.yaml").read_text())
    manifest["agent"] |= OPENED | {"sandbox": True, "command": ["sh", "-c", "cat A.md"]}
    (place / "manifest.yaml").write_text(json.dumps(manifest))
    made = CommandAgent(place)
    made.runtime = Runtime(sandbox=find_sandbox(), task_timeout=20)
    assert proof(made.solve(Task("t", "x"))) == {"proof": "opened"}


@pytest.mark.parametrize(
    ("to", "variable", "personal"),
    [
        (".claude/skills", "", "home/.claude/skills/dates"),
        (".claude/skills", "", "home/.claude/skills/other-directory"),
        (".claude/skills", "CLAUDE_CONFIG_DIR", "config/skills/dates"),
        (".agents/skills", "", "home/.agents/skills/dates"),
        (".agents/skills", "", "home/.codex/skills/dates"),
        (".codex/skills", "CODEX_HOME", "config/skills/dates"),
        ("tool/skills", "", "home/tool/skills/dates"),
    ],
)
def test_a_personal_skill_of_that_name_stops_the_task_before_it_costs(
    tmp_path: Path, home: Path, to: str, variable: str, personal: str
) -> None:
    skill_at(tmp_path / personal, OTHER)
    ran = tmp_path / "ran"
    env = {variable: str(tmp_path / "config")} if variable else {}
    made = agent(tmp_path / "w", f"open({str(ran)!r}, 'w'); claude()", skills_to=to, env=env)
    with pytest.raises(InfrastructureError, match=personal) as told:
        made.solve(Task("t", "x"))
    assert "proof: none" in told.value.fix
    assert not ran.exists()
    assert [row[1] for row in made.needs()] == [True, False]


def test_a_personal_skill_that_is_left_out_or_of_another_name_is_none(
    tmp_path: Path, home: Path
) -> None:
    skill_at(home / ".claude" / "skills" / "weather", OTHER.replace("dates", "weather"))
    assert solved(tmp_path / "w", "claude()").output == "42"
    skill_at(home / ".claude" / "skills" / "dates", OTHER)
    assert solved(tmp_path / "w", "claude()", "--setting-sources", "project").output == "42"
    elsewhere = {"CLAUDE_CONFIG_DIR": os.devnull}
    assert solved(tmp_path / "w", "claude()", env=elsewhere).output == "42"


def test_a_way_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="agent option proof is 'sometimes'"):
        agent(tmp_path / "w", "", proof="sometimes")
