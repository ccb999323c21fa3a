"""Shell mode: a scripted model with a real bash in the real sandbox on real files."""

import pytest

from agent_evolve.errors import ModelError
from agent_evolve.llm import Completion, ToolCall

from .skillforge_support import (
    DATES,
    TOTALS,
    bash,
    files,
    make_workspace,
    outputs,
)
from .skillforge_support import run_in_shell as run


def test_the_model_edits_prompt_skills_memory_and_drafts(tmp_path):
    workspace = make_workspace(tmp_path, {"skills/old/SKILL.md": TOTALS.replace("totals", "old")})
    workspace.write_draft("rounding", "---\nname: rounding\ndescription: r\n---\nRound half up.\n")
    workspace.write_draft("noise", "Say hello.\n")
    result, _ = run(
        workspace,
        bash("sed -i 's/dates into/day-first dates into/' prompts/system.md"),
        bash(
            "mkdir -p skills/rounding && mv skills/_drafts/rounding.md skills/rounding/SKILL.md",
            "rm skills/_drafts/noise.md",
        ),
        bash("sed '1,4d' skills/old/SKILL.md >> skills/dates/SKILL.md && rm -r skills/old"),
        bash("""echo '{"content": "03/04 is 3 April"}' >> memory/episodic.jsonl"""),
        "Dates are read day first now; old was merged into dates.",
    )
    assert result.mutated
    assert result.summary == "Dates are read day first now; old was merged into dates."
    assert result.metadata["skills"] == {
        "added": ["rounding"],
        "modified": ["dates"],
        "deleted": ["old"],
    }
    assert result.metadata["drafts"] == {
        "accepted": ["rounding"],
        "rejected": ["noise"],
        "pending": [],
    }
    assert result.metadata["layers"]["memory"] == {"added": 1, "modified": 0, "deleted": 0}
    assert result.metadata["prompt_chars"] == {"before": 31, "after": 41}
    assert (result.metadata["turns"], result.metadata["commands"]) == (5, 5)
    assert workspace.read_skill("dates") == DATES + "Add the lines up.\n"
    assert workspace.read_memories() == [{"content": "03/04 is 3 April"}]


def test_a_run_that_changes_no_file_says_no_change(tmp_path):
    workspace = make_workspace(tmp_path)
    before = files(tmp_path)
    result, _ = run(
        workspace,
        bash("echo x > prompts/new.md; rm prompts/new.md; touch prompts/system.md"),
        "I improved everything greatly.",
    )
    assert result.mutated is False
    assert result.summary == "no change: I improved everything greatly."
    assert files(tmp_path) == before
    assert not (tmp_path / "memory").exists()


def test_files_that_can_not_be_used_are_mended_when_the_model_is_told(tmp_path):
    workspace = make_workspace(tmp_path, manifest="locked: [skills/dates]\n")
    result, model = run(
        workspace,
        bash(
            "mkdir skills/totals; echo 'Add up.' > skills/totals/SKILL.md",
            "echo more >> skills/dates/SKILL.md; ln -s /etc/passwd prompts/p.md",
        ),
        "done",
        bash(
            "sed -i '1i ---\\nname: totals\\ndescription: d\\n---' skills/totals/SKILL.md",
            "sed -i '$d' skills/dates/SKILL.md; rm prompts/p.md",
        ),
        "mended",
    )
    told = model.requests[2].messages[-1].content
    for text in ("no frontmatter; a SKILL.md starts with", "is locked by", "a link that leads to"):
        assert text in told
    assert result.summary == "mended"
    assert result.metadata["skills"] == {"added": ["totals"], "modified": [], "deleted": []}
    assert len(result.metadata["repaired"]) == 3


def test_files_that_stay_unusable_fail_the_step(tmp_path):
    with pytest.raises(ModelError, match=r"skills/x: is a new skill without a SKILL\.md"):
        run(
            make_workspace(tmp_path),
            bash("mkdir skills/x; echo x > skills/x/notes.md"),
            "done",
            "no",
        )


def test_the_limit_of_turns_keeps_what_was_changed_and_says_so(tmp_path):
    workspace = make_workspace(tmp_path)
    result, model = run(
        workspace,
        bash("echo One. >> prompts/system.md"),
        bash("echo Two. >> prompts/system.md"),
        "I was not done.",
        max_turns=3,
    )
    assert workspace.read_prompt().endswith("One.\nTwo.\n")
    assert result.summary == "I was not done. [it reached the limit of 3 turns]"
    assert (result.mutated, len(model.requests)) == (True, 3)


def test_a_refusal_is_no_change_and_says_so(tmp_path):
    result, _ = run(make_workspace(tmp_path), Completion("", stop_reason="refusal"))
    assert (result.mutated, result.summary) == (False, "no change: the model refused")


def test_an_empty_closing_is_replaced_by_what_the_files_say(tmp_path):
    result, _ = run(make_workspace(tmp_path), bash("echo x >> prompts/system.md"), "")
    assert result.summary == "prompts: 1 modified"


def test_a_broken_or_unknown_call_is_told_to_the_model(tmp_path):
    _, model = run(
        make_workspace(tmp_path),
        [ToolCall("1", "bash", None, raw='{"command": "ls')],
        [ToolCall("2", "python", {"code": "1"})],
        bash("ls"),
        "done",
    )
    told = outputs(model)
    assert "not a JSON object" in told[0]
    assert "no tool 'python'" in told[1]
    assert "prompts\nskills\n" in told[2]


def test_the_same_input_makes_the_same_requests(tmp_path):
    requests = []
    for name in ("a", "b"):
        commands = bash("ls $OBSERVATIONS; pwd; cat $OBSERVATIONS/001.md; cat nothing")
        _, model = run(make_workspace(tmp_path / name), commands, "done")
        requests.append(model.requests)
    assert requests[0] == requests[1]


@pytest.mark.parametrize("error", [ModelError("down")])
def test_an_outage_in_the_middle_reaches_the_loop(tmp_path, error):
    with pytest.raises(ModelError, match="down"):
        run(make_workspace(tmp_path), bash("echo x >> prompts/system.md"), error)


def test_a_layer_that_may_not_change_can_be_read(tmp_path):
    workspace = make_workspace(tmp_path, {"tools/add.py": "x = 1\n"})
    _, model = run(workspace, bash("cat tools/add.py; rm tools/add.py"), "done")
    assert "x = 1" in outputs(model)[0]
    assert (tmp_path / "tools/add.py").exists()


def test_what_is_left_after_the_last_turn_can_still_be_mended(tmp_path):
    """No provider takes back a turn whose tool calls were not answered."""
    result, model = run(
        make_workspace(tmp_path),
        bash("mkdir skills/x; echo x > skills/x/notes.md"),
        bash("ls"),
        bash("rm -r skills/x; echo More. >> prompts/system.md"),
        "mended",
        max_turns=2,
    )
    asked = model.requests[2].messages
    called = {call.id for m in asked for call in m.tool_calls}
    assert called == {r.call_id for m in asked for r in m.tool_results}
    assert [m.role for m in asked] == ["user", "assistant", "user"]
    assert "new skill without a SKILL.md" in asked[-1].content
    assert result.summary == "mended [it reached the limit of 2 turns]"
