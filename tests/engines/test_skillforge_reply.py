"""The reply format: what real small models send is read, what is ambiguous is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_evolve.engines.skillforge.operations import (
    Decide,
    Delete,
    EditFile,
    Remember,
    WriteFile,
    render,
)
from agent_evolve.engines.skillforge.reply import parse_reply

SKILL = "---\nname: dates\ndescription: d\n---\nDay first.\n"


def only(text, **options):
    reply = parse_reply(text, **options)
    assert reply.problems == ()
    return reply.operations


@given(st.text(max_size=400), st.booleans())
def test_any_text_is_read_without_an_error(text, cut):
    parse_reply(text, cut=cut)


BLOCKS = ["CHANGES", "FILE a/b", "EDIT a/b", "DELETE a/b", "MEMORY", "DONE", "text", ""]
FENCES = ["```", "````md", "~~~", "<<<<<<< SEARCH", "=======", ">>>>>>> REPLACE", "</think>"]
WORD = st.sampled_from([*BLOCKS, *FENCES, "<think>"])


@given(st.lists(WORD, max_size=25), st.booleans())
def test_any_order_of_the_formats_own_lines_is_read_without_an_error(lines, cut):
    reply = parse_reply("\n".join(lines), cut=cut)
    assert reply.operations or reply.problems or reply.done


TEXT = st.text(st.characters(exclude_characters="\r", exclude_categories=("Cs",)), max_size=120)
LINE = st.text(st.characters(exclude_categories=("Cs", "Cc", "Zl", "Zp")), min_size=1, max_size=40)
PATH = st.from_regex(r"(skills|prompts)/[a-z0-9]{1,8}/[A-Za-z]{1,8}\.md", fullmatch=True)
NAME = st.from_regex(r"[a-z0-9]{1,8}(-[a-z0-9]{1,8})?", fullmatch=True)


def ended(text):
    return text if text.endswith("\n") or not text else text + "\n"


def writable(passage):
    try:
        render([EditFile("a/b", (passage,))], "")
    except ValueError:
        return False
    return True


OPERATION = st.one_of(
    st.builds(WriteFile, PATH, TEXT.map(lambda t: t if t.endswith("\n") else t + "\n")),
    st.builds(
        EditFile,
        PATH,
        st.lists(
            st.tuples(TEXT.map(ended), TEXT.map(ended)).filter(writable), min_size=1, max_size=3
        ).map(tuple),
    ),
    st.builds(Delete, PATH),
    st.builds(Remember, NAME, st.fixed_dictionaries({"content": LINE})),
    st.builds(Decide, NAME, st.booleans()),
)


@given(st.lists(OPERATION, max_size=5, unique_by=lambda op: getattr(op, "path", id(op))))
def test_what_is_rendered_reads_back_as_it_was(operations):
    reply = parse_reply(render(operations, "why"))
    assert reply.problems == ()
    assert reply.operations == tuple(operations)
    assert (reply.summary, reply.done) == ("why", True)


@pytest.mark.parametrize(
    "text",
    [
        f"CHANGES\nFILE skills/dates/SKILL.md\n```\n{SKILL}```\nDONE x",
        f"Sure! Here are the changes:\n\nCHANGES\n\nFILE: skills/dates/SKILL.md\n\n```markdown\n"
        f"{SKILL}```\n\nThis adds a skill.\nDONE x\n",
        f"### FILE `skills/dates/SKILL.md`\n~~~yaml\n{SKILL}~~~\n",
        f"**FILE skills/dates/SKILL.md**\n`````md\n{SKILL}`````\nDONE",
        f"1. FILE skills/dates/SKILL.md:\n```\n{SKILL}```",
        f"File: skills/dates/SKILL.md\n```\n{SKILL}```",
        f"```\nCHANGES\nFILE skills/dates/SKILL.md\n```\n{SKILL}```\nDONE x\n```",
        f"```markdown\nFILE skills/dates/SKILL.md\n{SKILL}```\nDONE x",
        f"<think>\nFILE skills/other/SKILL.md\n```\nno\n```\n</think>\nCHANGES\n"
        f"FILE ./skills/dates/SKILL.md\n```\n{SKILL}```\nDONE x",
        f"I could write FILE x\n</think>\nCHANGES\nFILE skills/dates/SKILL.md\n```\n{SKILL}```",
        f"CHANGES\nFILE skills/dates/SKILL.md\n```\n{SKILL}```\nDONE x".replace("\n", "\r\n"),
    ],
)
def test_one_file_as_models_write_it(text):
    assert only(text) == (WriteFile("skills/dates/SKILL.md", SKILL),)


def test_a_fence_with_a_language_inside_a_file_belongs_to_the_file():
    text = "Run:\n```python\nprint(1)\n```\nThen stop.\n"
    assert only(f"FILE a/b.md\n```\n{text}```\nDONE") == (WriteFile("a/b.md", text),)


def test_a_file_that_may_end_at_two_places_is_refused():
    reply = parse_reply("FILE a/b.md\n```\nRun:\n```\nprint(1)\n```\nThen stop.\n```\nDONE x")
    assert "unclear which ``` line ends the file" in reply.problems[0]


def test_headers_inside_a_file_are_content():
    text = "FILE is a word\nDONE is too\nDELETE skills/x\n"
    assert only(f"FILE a/b.md\n```\n{text}```\nDONE") == (WriteFile("a/b.md", text),)


def test_the_last_complete_answer_counts():
    first = "CHANGES\nDELETE skills/a\nDONE one\n"
    second = "CHANGES\nDELETE skills/b\nDONE two\n"
    assert only(first + "Wait, better:\n" + second) == (Delete("skills/b"),)
    assert only(first + "CHANGES\nFILE skills/c/SKILL.md\n```\nhalf", cut=True) == (
        Delete("skills/a"),
    )


def test_a_file_written_twice_counts_as_written_last():
    text = "FILE a/b.md\n```\none\n```\nFILE a/b.md\n```\ntwo\n```\nDONE"
    assert only(text) == (WriteFile("a/b.md", "two\n"),)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("FILE a/b.md\n```\nhalf a", "closing ``` is missing"),
        ("EDIT a/b.md\n<<<<<<< SEARCH\nx\n=======\ny", "closing >>>>>>> REPLACE is missing"),
        ("EDIT a/b.md\n<<<<<<< SEARCH\nx\n>>>>>>> REPLACE", "one ======= line"),
        ("EDIT a/b.md\n<<<<<<< SEARCH\n=======\n=======\n>>>>>>> REPLACE", "one ======= line"),
        ("EDIT a/b.md\n```\nthe whole file\n```", "use FILE"),
        ("FILE a/b.md\nno fence here", "between ``` lines"),
        ("FILE\n```\nx\n```", "FILE without a path"),
        ("MEMORY\n\nDONE x", "MEMORY without a lesson"),
        ("I think the agent should try harder.", "no block"),
        ("", "no block"),
    ],
)
def test_what_can_be_read_in_no_single_way_is_refused_with_the_reason(text, problem):
    reply = parse_reply(text)
    assert any(problem in told for told in reply.problems)


def test_an_answer_cut_at_the_token_limit_counts_only_when_it_was_closed():
    whole = "CHANGES\nDELETE skills/a\nDONE why"
    assert parse_reply("CHANGES\nDELETE skills/a\n", cut=True).problems
    assert only(whole, cut=True) == (Delete("skills/a"),)


def test_edits_may_stand_in_a_fence_and_follow_each_other():
    text = (
        "EDIT prompts/system.md\n```diff\n<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n\n"
        "<<<<<<< SEARCH\nc\n=======\n>>>>>>> REPLACE\n```\nDONE x"
    )
    assert only(text) == (EditFile("prompts/system.md", (("a\n", "b\n"), ("c\n", ""))),)


@pytest.mark.parametrize(
    ("text", "entries"),
    [
        ("MEMORY Dates are day first.", [("episodic", {"content": "Dates are day first."})]),
        ("MEMORY: one\nMEMORY: two", [("episodic", {"content": t}) for t in ("one", "two")]),
        ("MEMORY[rules] one", [("rules", {"content": "one"})]),
        ('MEMORY {"lesson": "x", "n": 1}', [("episodic", {"lesson": "x", "n": 1})]),
        ("MEMORY\n- one\n- two\n\nother", [("episodic", {"content": t}) for t in ("one", "two")]),
        ("MEMORY\n```\none\n```", [("episodic", {"content": "one"})]),
    ],
)
def test_memory_in_the_shapes_models_use(text, entries):
    assert only(text + "\nDONE x") == tuple(Remember(c, e) for c, e in entries)


def test_a_closing_remark_that_names_a_block_is_not_one():
    reply = parse_reply("DELETE skills/a\nDONE removed a.\nMemory: nothing added.")
    assert reply.operations == (Delete("skills/a"),)
    assert reply.summary == "removed a.\nMemory: nothing added."


def test_an_answer_may_say_that_nothing_should_change():
    reply = parse_reply("CHANGES\nDONE all is well")
    assert (reply.operations, reply.problems, reply.summary) == ((), (), "all is well")


def test_instructions_repeated_after_done_are_no_blocks():
    text = """CHANGES
MEMORY Days first.
DONE said it

FILE gives a whole file, new or replaced. EDIT changes lines
EDIT needs a path
MEMORY adds one lesson. You can change
DELETE removes it
"""
    assert only(text) == (Remember("episodic", {"content": "Days first."}),)


def test_a_whole_block_after_done_still_counts():
    block = f"FILE skills/dates/SKILL.md\n```\n{SKILL}```\nDELETE skills/old\n"
    assert only(f"CHANGES\nDONE first words\n{block}") == (
        WriteFile("skills/dates/SKILL.md", SKILL),
        Delete("skills/old"),
    )
