"""Answer mode: a reply becomes files, or nothing of it does."""

import json

import pytest

from agent_evolve.errors import BudgetExceeded, ConfigurationError, ModelError
from agent_evolve.llm import Completion

from .skillforge_support import DATES, TOTALS, Past, files, forge, make_workspace, observed, step

GOOD = f"CHANGES\nFILE skills/totals/SKILL.md\n```\n{TOTALS}```\nDONE added totals"


def run(workspace, *script, **options):
    engine, model = forge(list(script), edit_mode="answer", **options)
    return step(engine, workspace), model


def test_a_reply_edits_prompt_skills_memory_and_drafts_and_is_counted(tmp_path):
    workspace = make_workspace(tmp_path, {"skills/old/SKILL.md": TOTALS.replace("totals", "old")})
    workspace.write_draft("rounding", "# Rounding\nRound half up.\n")
    workspace.write_draft("noise", "Say hello.\n")
    result, _ = run(
        workspace,
        "CHANGES\n"
        "EDIT prompts/system.md\n<<<<<<< SEARCH\nYou turn dates into ISO dates.\n=======\n"
        "You turn dates into ISO dates; the day comes first.\n>>>>>>> REPLACE\n"
        f"FILE skills/totals/SKILL.md\n```\n{TOTALS}```\n"
        "EDIT skills/dates\n<<<<<<< SEARCH\nUse ISO format.\n=======\nDay first.\n>>>>>>> REPLACE\n"
        "DELETE skills/old\nMEMORY 03/04 is 3 April.\nACCEPT rounding\nREJECT noise\n"
        "DONE The day comes first.",
    )
    assert result.mutated
    assert result.summary == "The day comes first."
    assert result.metadata["skills"] == {
        "added": ["rounding", "totals"],
        "modified": ["dates"],
        "deleted": ["old"],
    }
    assert result.metadata["drafts"] == {
        "accepted": ["rounding"],
        "rejected": ["noise"],
        "pending": [],
    }
    assert result.metadata["prompt_chars"] == {"before": 31, "after": 52}
    assert result.metadata["edit_mode"] == "answer"
    assert workspace.read_prompt().endswith("the day comes first.\n")
    assert workspace.read_skill("dates") == DATES.replace("Use ISO format.", "Day first.")
    assert workspace.read_skill("rounding").startswith(
        '---\nname: rounding\ndescription: "Rounding"\n---\n'
    )
    assert workspace.read_memories() == [{"content": "03/04 is 3 April."}]
    assert (workspace.list_drafts(), (tmp_path / "skills/old").exists()) == ([], False)


def test_a_reply_that_changes_nothing_is_called_no_change(tmp_path):
    workspace = make_workspace(tmp_path)
    before = files(tmp_path)
    result, _ = run(workspace, f"CHANGES\nFILE skills/dates\n```\n{DATES}```\nDONE the same")
    assert (result.mutated, result.summary) == (False, "no change: the same")
    assert files(tmp_path) == before


def test_bytes_that_did_not_change_stay_as_they_were(tmp_path):
    crlf = DATES.replace("\n", "\r\n").removesuffix("\r\n")
    workspace = make_workspace(tmp_path, {"skills/dates/SKILL.md": "\ufeff" + crlf})
    run(
        workspace,
        "EDIT skills/dates\n<<<<<<< SEARCH\n# Dates\n=======\n# D\n>>>>>>> REPLACE\nDONE",
    )
    expected = ("\ufeff" + crlf).replace("# Dates", "# D").encode()
    assert (tmp_path / "skills/dates/SKILL.md").read_bytes() == expected
    run(workspace, f"FILE skills/dates/SKILL.md\n```\n{DATES}More.\n```\nDONE")
    data = (tmp_path / "skills/dates/SKILL.md").read_bytes()
    assert data.startswith(b"\xef\xbb\xbf---\r\nname: dates\r\n")
    assert b"\r\nMore." in data


def test_small_things_a_model_forgets_about_a_skill_are_put_in(tmp_path):
    workspace = make_workspace(tmp_path)
    run(
        workspace,
        "FILE skills/sums\n```\n# How to add\nAdd up.\n```\n"
        "FILE skills/rounding.md\n```\n---\nname: Rounding Numbers\ndescription: d\n---\nUp.\n```\n"
        "FILE skills/dates\n```\n# Dates\nDay first.\n```\nDONE",
    )
    assert workspace.read_skill("sums") == (
        '---\nname: sums\ndescription: "How to add"\n---\n# How to add\nAdd up.\n'
    )
    assert workspace.read_skill("rounding").startswith("---\nname: rounding\ndescription: d\n---\n")
    assert workspace.read_skill("dates").startswith(
        "---\nname: dates\ndescription: How to write dates.\n---\n# Dates\nDay first."
    )


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        ("The agent should read dates day first.", "no block"),
        ("", "no block"),
        ("FILE skills/x/SKILL.md\n```\nhalf", "the closing ``` is missing"),
        ("FILE manifest.yaml\n```\nname: x\n```\nDONE", "must start with one of prompts/"),
        ("FILE evolution/journal.jsonl\n```\n{}\n```\nDONE", "must start with one of"),
        ("FILE tools/x.py\n```\nx = 1\n```\nDONE", "must start with one of"),
        ("FILE ../outside.md\n```\nx\n```\nDONE", "can't be used"),
        ("FILE /etc/passwd\n```\nx\n```\nDONE", "can't be used"),
        ("FILE skills/../../x.md\n```\nx\n```\nDONE", "can't be used"),
        ("FILE skills/con/SKILL.md\n```\nx\n```\nDONE", "device name"),
        (f"FILE skills/{'x' * 300}/SKILL.md\n```\nx\n```\nDONE", "300 characters"),
        ("FILE skills/link/SKILL.md\n```\nx\n```\nDONE", "a link is in the way"),
        ("FILE skills/house/SKILL.md\n```\nx\n```\nDONE", "locked"),
        ("DELETE skills/house\nDONE", "locked"),
        ("DELETE skills/date\nDONE", "did you mean skills/dates/SKILL.md"),
        ("DELETE prompts/system.md\nDONE", "can't be deleted"),
        ("DELETE skills\nDONE", "must start with one of"),
        (
            "EDIT system.md\n<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\nDONE",
            "prompts/system.md",
        ),
        ("EDIT skills/dates\n<<<<<<< SEARCH\nzz\n=======\nb\n>>>>>>> REPLACE\nDONE", "not in the"),
        ("MEMORY[../x] lesson\nDONE x", "can't be used"),
        ("ACCEPT nothing\nDONE", "there is no such draft"),
        ("FILE memory/m.jsonl\n```\nnot json\n```\nDONE", "line 1 is not a JSON object"),
    ],
)
def test_a_reply_that_can_not_be_used_is_told_why_once_and_nothing_of_it_is_kept(
    tmp_path, reply, told
):
    root = tmp_path / "agent"
    outside = tmp_path / "outside"
    outside.mkdir()
    workspace = make_workspace(
        root,
        {"skills/house/SKILL.md": TOTALS.replace("totals", "house")},
        manifest="locked: [skills/house]\n",
    )
    (root / "skills/link").symlink_to(outside)
    before = files(tmp_path)
    fine = "" if told == "no block" else "MEMORY this block is fine\n"
    result, model = run(workspace, fine + reply, GOOD)
    correction = model.requests[1].messages[-1].content
    assert told in correction
    assert "nothing of it was applied" in correction
    after = files(tmp_path)
    assert after.pop("agent/skills/totals/SKILL.md").decode() == TOTALS
    assert after == before
    assert result.metadata["repaired"]


def test_two_replies_that_can_not_be_used_fail_the_step_and_change_nothing(tmp_path):
    workspace = make_workspace(tmp_path)
    before = files(tmp_path)
    with pytest.raises(ModelError, match="no usable changes in 2 replies"):
        run(workspace, "I don't know.", "Still not.")
    assert files(tmp_path) == before


def test_an_answer_cut_at_the_token_limit_never_becomes_half_a_file(tmp_path):
    workspace = make_workspace(tmp_path)
    cut = Completion(
        f"CHANGES\nMEMORY x\nFILE skills/totals/SKILL.md\n```\n{TOTALS[:40]}",
        stop_reason="max_tokens",
    )
    result, model = run(workspace, cut, GOOD)
    assert result.mutated
    assert "cut at the token limit" in model.requests[1].messages[-1].content
    assert workspace.read_memories() == []
    assert workspace.read_skill("totals") == TOTALS


def test_a_refusal_is_no_change_and_says_so(tmp_path):
    result, _ = run(make_workspace(tmp_path), Completion("", stop_reason="refusal"))
    assert (result.mutated, result.summary) == (False, "no change: the model refused")


def test_a_file_that_was_shown_in_part_can_be_edited_but_not_replaced(tmp_path):
    long = TOTALS + "".join(f"Line {n}.\n" for n in range(1_500))
    workspace = make_workspace(tmp_path, {"skills/totals/SKILL.md": long})
    edit = "EDIT skills/totals\n<<<<<<< SEARCH\nAdd the lines up.\n=======\nAdd.\n>>>>>>> REPLACE\n"
    _, model = run(workspace, GOOD, f"{edit}DONE", context_chars=9_000, max_skill_chars=90_000)
    assert "shown only a part" in model.requests[1].messages[-1].content
    assert workspace.read_skill("totals") == long.replace("Add the lines up.", "Add.")


def test_the_same_lesson_is_kept_once(tmp_path):
    workspace = make_workspace(tmp_path)
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory/episodic.jsonl").write_text('{"content": "one"}')
    run(workspace, "MEMORY one\nMEMORY two\nDONE")
    assert [json.loads(x) for x in (tmp_path / "memory/episodic.jsonl").open()] == [
        {"content": "one"},
        {"content": "two"},
    ]


@pytest.mark.parametrize(
    "error", [ModelError("down"), BudgetExceeded("b"), ConfigurationError("c")]
)
def test_what_the_model_raises_reaches_the_loop(tmp_path, error):
    before = files(tmp_path)
    with pytest.raises(type(error)):
        run(make_workspace(tmp_path / "a"), error)
    assert {n: b for n, b in files(tmp_path).items() if not n.startswith("a/")} == before


def test_no_call_is_made_when_there_is_nothing_to_learn(tmp_path):
    workspace = make_workspace(tmp_path)
    engine, model = forge([], edit_mode="answer")
    assert step(engine, workspace, []).summary.startswith("no change: there is no valid obs")
    solved = step(engine, workspace, [observed(1, 1.0)])
    assert solved.summary == "no change: all 1 tasks of the batch were solved"
    assert model.requests == []


def test_a_waiting_draft_is_decided_even_after_a_perfect_batch(tmp_path):
    workspace = make_workspace(tmp_path)
    workspace.write_draft("rounding", "Round half up.\n")
    engine, _ = forge(["CHANGES\nREJECT rounding\nDONE no need"], edit_mode="answer")
    result = step(engine, workspace, [observed(1, 1.0)], Past())
    assert result.metadata["drafts"]["rejected"] == ["rounding"]


def test_the_same_input_makes_the_same_requests(tmp_path):
    requests = []
    for name in ("a", "b"):
        _, model = run(make_workspace(tmp_path / name), "nonsense", GOOD)
        requests.append(model.requests)
    assert requests[0] == requests[1]


def test_local_models_answer_and_others_use_the_shell_by_default():
    engine, _ = forge([])
    assert engine.options.for_model("local:qwen").edit_mode == "answer"
    assert engine.options.for_model("anthropic:claude-x").edit_mode == "shell"
    assert engine.options.for_model("anthropic:claude-x").max_tokens == 16_384
    assert engine.options.for_model("anthropic:claude-x", 900).max_tokens == 900


def test_the_example_given_back_is_no_change(tmp_path):
    """What a small model does: it repeats the instructions' example word for word."""
    example = (
        "CHANGES\nMEMORY Refunds are paid within 14 days.\n"
        "DONE Letters failed as they lacked the order number.\n"
    )
    workspace = make_workspace(tmp_path)
    result, model = run(workspace, example, "CHANGES\nMEMORY The day stands first.\nDONE ok\n")
    assert result.mutated
    assert workspace.read_memories() == [{"content": "The day stands first."}]
    assert "those of the example" in model.requests[1].messages[-1].content
