"""What changed is counted from files, and every changed tree keeps to the rules."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_evolve.engines.skillforge.changes import compare
from agent_evolve.engines.skillforge.passages import replace_passage
from agent_evolve.engines.skillforge.rules import Rules, problems
from agent_evolve.engines.skillforge.tree import SPECIAL, Entry, scan
from agent_evolve.workspace.links import FILE, LINK

from .skillforge_support import DATES, TOTALS

LAYERS = ("prompts", "skills", "memory", "tools")


def tree(**files):
    return {name: Entry.of(text.encode()) for name, text in files.items()}


def of(**more):
    base = {"prompts/system.md": "Prompt.\n", "skills/dates/SKILL.md": DATES}
    return tree(**{name: text for name, text in {**base, **more}.items() if text is not None})


def found(after, **rules):
    return problems(compare(of(), after), Rules(LAYERS, **rules))


def test_changes_are_counted_per_layer_and_by_skill():
    before = of(**{"skills/old/SKILL.md": TOTALS, "memory/a.jsonl": "{}\n"})
    after = of(
        **{
            "prompts/system.md": "Longer prompt.\n",
            "skills/dates/references/x.md": "x\n",
            "skills/totals/SKILL.md": TOTALS,
        }
    )
    changes = compare(before, after)
    assert changes.layers == {
        "memory": {"added": 0, "modified": 0, "deleted": 1},
        "prompts": {"added": 0, "modified": 1, "deleted": 0},
        "skills": {"added": 2, "modified": 0, "deleted": 1},
    }
    assert changes.skills == {"added": ["totals"], "modified": ["dates"], "deleted": ["old"]}
    assert changes.prompt_chars == {"before": 8, "after": 15}


def test_a_changed_body_counts_although_every_name_stays():
    changes = compare(of(), of(**{"skills/dates/SKILL.md": DATES + "More.\n"}))
    assert changes
    assert changes.skills["modified"] == ["dates"]


def test_a_draft_is_accepted_when_its_text_or_name_lives_on_in_a_skill():
    drafts = {f"skills/_drafts/{n}.md": f"Rule {n} one.\nRule {n} two.\n" for n in "abcd"}
    after = of(
        **{
            "skills/_drafts/d.md": drafts["skills/_drafts/d.md"],
            "skills/a/SKILL.md": TOTALS.replace("totals", "a"),
            "skills/dates/SKILL.md": DATES + "Rule b one.\nRule b two.\n",
        }
    )
    changes = compare(of(**drafts), after)
    assert changes.drafts == {"accepted": ["a", "b"], "rejected": ["c"], "pending": ["d"]}


def test_scanning_follows_no_link_and_opens_no_pipe(tmp_path):
    (tmp_path / "skills").mkdir()
    (tmp_path / "skills/real.md").write_text("x")
    (tmp_path / "skills/link").symlink_to("/etc")
    os.mkfifo(tmp_path / "skills/pipe")
    (tmp_path / "skills/locked").mkdir()
    (tmp_path / "skills/locked/file.md").write_text("y")
    (tmp_path / "skills/locked").chmod(0)
    entries = scan(tmp_path, ["skills", "absent"])
    assert {name: entry.mode for name, entry in entries.items()} == {
        "skills/link": LINK,
        "skills/locked/file.md": FILE,
        "skills/pipe": SPECIAL,
        "skills/real.md": FILE,
    }


@pytest.mark.parametrize(
    ("path", "text", "problem"),
    [
        ("skills/totals/SKILL.md", "Just text.\n", "no frontmatter; a SKILL.md starts with"),
        ("skills/totals/SKILL.md", TOTALS.replace("name: totals", "name: sums"), "name: totals"),
        ("skills/totals/SKILL.md", "---\nname: totals\n---\nx\n", "no description"),
        ("skills/totals/SKILL.md", "---\nname: totals\ndescription: a: b\n---\nx\n", "quotes"),
        ("skills/totals/SKILL.md", "---\nname: totals\ndescription: d\n---\n", "no text"),
        ("skills/totals/SKILL.md", TOTALS + "x" * 9_000, "at most 5,000"),
        ("skills/Totals Up/SKILL.md", TOTALS, "lower-case letters"),
        ("skills/totals/notes.md", "x\n", "a new skill without a SKILL.md"),
        ("skills/totals.md", "x\n", "a skill is a directory"),
        ("memory/rules.jsonl", '{"a": 1}\n{"b": \n', "line 2 is not a JSON object"),
        ("memory/rules.jsonl", "[1]\n", "line 1 is not a JSON object"),
        ("tools/add.py", "def f(:\n", "it is not Python"),
        ("prompts/system.md", "", "the system prompt is gone"),
        ("prompts/system.md", None, "the system prompt is gone"),
        ("skills/locked/SKILL.md", TOTALS.replace("totals", "locked"), "is locked by"),
        ("memory/.env", "KEY=1\n", "kept for keys and passwords"),
        ("memory/a\\b", "x\n", "path separator"),
        ("memory/big.txt", "x" * (1024**2 + 1), "at most 1,048,576 are allowed"),
        ("other/x.md", "x\n", "outside of the layers"),
    ],
)
def test_a_tree_that_can_not_be_used_is_told_with_its_file(path, text, problem):
    told = found(of(**{path: text}), max_skill_chars=5_000, locked=("skills/locked",))
    assert any(problem in line for line in told), told
    assert path.split("/")[-2] in " ".join(told) or path in " ".join(told)


def test_what_was_wrong_before_is_not_told_again():
    odd = {"skills/odd/SKILL.md": "no frontmatter\n", "memory/a.jsonl": "torn\n"}
    before = of(**odd)
    after = {**before, **tree(**{"memory/a.jsonl": 'torn\n{"b": 1}\n'})}
    assert problems(compare(before, after), Rules(LAYERS)) == ()


def test_the_library_may_not_grow_past_its_limit_but_may_stay_above_it():
    many = {f"skills/s{n}/SKILL.md": TOTALS.replace("totals", f"s{n}") for n in range(5)}
    more = {"skills/s9/SKILL.md": TOTALS.replace("totals", "s9")}
    assert any("at most 3 are allowed" in line for line in found(of(**many), max_skills=3))
    shrunk = dict(list(many.items())[:4])
    small = Rules(LAYERS, max_skills=3)
    assert problems(compare(of(**many), of(**shrunk)), small) == ()
    assert problems(compare(of(**many), of(**many, **more)), small) != ()


def test_links_and_growth_are_refused():
    link = {**of(), "skills/dates/x": Entry(LINK, b"/etc")}
    assert any("a link that leads to" in line for line in found(link))
    big = of(**{"memory/big.txt": "x" * 2_000})
    assert any("at most 1,000" in line for line in found(big, max_growth_bytes=1_000))


LINES = st.lists(st.sampled_from(["a", "b ", "  c", "", "d"]), min_size=1, max_size=8)


@given(LINES, st.data(), st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_an_edit_changes_the_named_lines_and_no_other_byte(lines, data, eol, ended):
    at = data.draw(st.integers(0, len(lines)))
    unique = [*lines[:at], "UNIQUE line", *lines[at:]]
    text = eol.join(unique) + (eol if ended else "")
    result = replace_passage(text, "UNIQUE line\n", "one\ntwo\n")
    assert result.problem == ""
    assert result.text == text.replace("UNIQUE line", f"one{eol}two")


@pytest.mark.parametrize(
    ("old", "problem"),
    [("a\n", "occur 2 times"), ("zebra\n", "not in the file"), ("a\nb\nc\n", "not in the file")],
)
def test_an_edit_that_does_not_name_one_place_is_refused(old, problem):
    result = replace_passage("a\nb\na\n", old, "x\n")
    assert problem in result.problem
    assert result.text == "a\nb\na\n"


def test_an_edit_may_name_a_part_of_a_line_and_forget_space_at_line_ends():
    assert replace_passage("Be friendly. Always.\n", "friendly\n", "brief\n").text == (
        "Be brief. Always.\n"
    )
    assert replace_passage("a  \nb\n", "a\nb\n", "c\n").text == "c\n"
    assert replace_passage("a", "", "b\n").text == "a\nb\n"
