"""SKILL.md by byte span: any bytes can be read, and an edit changes only what it says."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import assume, example, given
from hypothesis import strategies as st

from agent_evolve.errors import SkillError
from agent_evolve.workspace.skill_file import SkillFile

EOLS = st.sampled_from(["\n", "\r\n"])
LINE = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=30)

PIECES = st.sampled_from(
    b"---|---\n|---\r\n|\n|\r\n|\r|\t|- a|name: x|description: a: b|description: >-\n  a\n"
    b"|\xef\xbb\xbf|\xff|\x00|# c|[|{a: 1}|&a|*a".split(b"|")
)


@given(st.one_of(st.binary(max_size=300), st.lists(PIECES, max_size=12).map(b"".join)))
@example(b"---\na: &a [*a]\n---\n")
@example(b"---\n\xff: \xfe\n---\n")
def test_any_bytes_can_be_parsed_and_no_edit_means_no_change(data):
    skill = SkillFile.parse(data)
    assert skill.data == data
    assert skill.with_body(skill.body_text).data == data
    start, end = skill.body
    assert 0 <= start <= end == len(data)
    assert all(problem.line >= 1 and problem.column >= 1 for problem in skill.problems)
    if skill.description is not None and skill.description.strip():
        assert skill.with_description(skill.description).data == data


@st.composite
def skills(draw):
    """A well-formed skill with its own line ends, mark, comments and styles."""
    eol = draw(EOLS)
    style = draw(st.sampled_from(["plain", "double", "single", ">", ">-", "|", "|-", ">+", "none"]))
    words = draw(st.lists(st.sampled_from(["Reads", "a file,", "twice", "ünd", "ok."]), min_size=1))
    text = " ".join(words)
    value = {
        "plain": f" {text}   # why",
        "double": f' "{text}" # why',
        "single": f" '{text}'",
        "none": "",
    }.get(style, f" {style} # why{eol}    {text}{eol}{eol}    {text}")
    rows = ["# above", "name: x", f"description:{value}", "", "# below", "license: 'MIT'  # see"]
    body = draw(st.lists(LINE, max_size=8))
    assume(not any(line.strip() == "---" for line in body))
    tail = draw(st.sampled_from(["", eol]))
    mark = draw(st.sampled_from(["", "\ufeff"]))
    return (mark + eol.join(["---", *rows, "---", *body]) + tail).encode()


DESCRIPTIONS = st.text(max_size=300) | st.lists(
    st.sampled_from(["Use", "when:", "- a", "#", "x", "\n", "\n\n", " ", "'", '"', "\\", "日本"])
).map(" ".join)


@given(skills(), DESCRIPTIONS)
@example(b"---\nname: x\ndescription: Reads   # why\n---", "0\t0")
@example(b"---\ndescription: >\n  a\n---\n", "one\ntwo  three\n\n four\n")
@example(b"---\r\ndescription: |\r\n  a\r\n---\r\n", "one\ntwo\n")
@example(b"---\ndescription: x\n---\n", "\u2028 \x85 \ufeff \x00 \x7f \U0001f9fe")
@example(b"---\nname: d\n---", "x")
@example(b"---\n{name: d, description: e}\n---\n", "x, y: z")
@example(b"---\nname: &a x\ndescription: *a\n---\n", "y")
@example(b"---\ndescription:\n  - a\n  - b\nname: x\n---\n", "y")
@example(b"---\ndescription: !!str x\nname: x\n---\n", "y")
@example(b"---\ndescription: &d >-\n  x\nname: x\n---\n", "y")
@example(b"---\ndescription: a: b\n  more\nname: x\n---\n", "y")
def test_a_new_description_is_what_yaml_reads(data, text):
    assume(text.strip())
    before = SkillFile.parse(data)
    after = before.with_description(text)
    start, end = after.frontmatter
    header = yaml.safe_load(after.data[start:end].decode())
    assert header["description"] == text
    assert after.description == text
    assert after.name == before.name
    assert after.bom == before.bom
    assert after.body_text == before.body_text
    for kept in (b"# above", b"# below", b"license: 'MIT'  # see"):
        assert after.data.count(kept) == before.data.count(kept) or kept in text.encode()
    if before.eol == b"\r\n":
        assert after.data.count(b"\n", 0, end) == after.data.count(b"\r\n", 0, end)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("description: old words  # why", "description: new words  # why"),
        ('description:   "old words"', 'description:   "new words"'),
        ("description: 'old words' # c", "description: 'new words' # c"),
        (
            "description: >-  # c\n   old\n   words\n\n# next",
            "description: >-  # c\n   new words\n\n# next",
        ),
        ("description: |-\n  old\n# next", "description: |-\n  new words\n# next"),
        ("description:", "description: new words"),
        ("description:  # none yet", 'description: "new words"'),
        ("description: old: words", 'description: "new words"'),
        ("description: old\n  words\n  go on", "description: new words"),
    ],
)
def test_a_description_keeps_its_style(before, after):
    frame = "---\nname: x\n{}\nmetadata:\n  a: 1\n---\nBody.\n"
    changed = SkillFile.parse(frame.format(before).encode()).with_description("new words")
    if before.endswith("# none yet"):
        assert changed.description == "new words"
        assert b"# none yet" in changed.data
    else:
        assert changed.data.decode() == frame.format(after)


def test_a_missing_description_is_added_after_the_name():
    skill = SkillFile.parse(b"---\r\nname: x # why\r\nlicense: MIT\r\n---\r\nBody\r\n")
    assert [problem.code for problem in skill.problems] == ["no-description"]
    changed = skill.with_description("Does it.")
    assert changed.data == (
        b'---\r\nname: x # why\r\ndescription: "Does it."\r\nlicense: MIT\r\n---\r\nBody\r\n'
    )


def test_editing_a_broken_description_makes_it_parse():
    skill = SkillFile.parse(b"---\nname: x\ndescription: Builds: all # of it\n---\nBody\n")
    assert not skill.parses
    assert skill.description == "Builds: all"
    changed = skill.with_description("Builds: more")
    assert changed.parses
    assert changed.data == b'---\nname: x\ndescription: "Builds: more"\n---\nBody\n'


@pytest.mark.parametrize("text", ["", "  \n", "half \ud83e"])
def test_a_description_that_can_not_be_is_refused(text):
    with pytest.raises(SkillError):
        SkillFile.parse(b"---\nname: x\ndescription: y\n---\n").with_description(text)


def test_a_file_without_frontmatter_gets_no_description():
    with pytest.raises(SkillError, match="no frontmatter"):
        SkillFile.parse(b"Just talk.\n").with_description("x")


# -- body --------------------------------------------------------------------------------------


@given(skills(), st.data())
def test_a_one_word_edit_changes_only_that_span(data, draw):
    marker = "needle-7f3a"
    at = draw.draw(st.integers(SkillFile.parse(data).body[0], len(data)))
    while at < len(data) and data[at] & 0xC0 == 0x80:
        at += 1
    data = data[:at] + marker.encode() + data[at:]
    skill = SkillFile.parse(data)
    assume(skill.body_text.count(marker) == 1)
    after = skill.replace_in_body(marker, "word")
    assert after.data == data[:at] + b"word" + data[at + len(marker) :]
    # The same edit, made by someone who hands back the whole text with plain line ends.
    text = skill.body_text.replace("\r\n", "\n").replace(marker, "word")
    assert skill.with_body(text).data == after.data


MIXED = b"---\nname: mixed\r\ndescription: d\n---\r\nA\r\nB  \nC\r\nD"


def test_mixed_line_ends_stay_line_by_line():
    skill = SkillFile.parse(MIXED)
    assert skill.with_body("A\nB  \nC2\nD\n").data == MIXED.replace(b"C", b"C2")
    assert skill.with_body("A\nB  \nNEW\nC\nD").data == MIXED.replace(b"C\r", b"NEW\r\nC\r")
    assert skill.with_body("A\nB  \n").data == MIXED.replace(b"B  \nC\r\nD", b"B  ")
    assert skill.replace_in_body("A\nB", "A\nX").data == MIXED.replace(b"B", b"X")


def test_an_edit_that_is_not_clear_is_refused_and_says_why():
    skill = SkillFile.parse(b"---\nname: x\ndescription: y\n---\none two\none three\n")
    with pytest.raises(SkillError, match=r"stands 2 times in the body \(lines 5, 6\)"):
        skill.replace_in_body("one", "1")
    with pytest.raises(SkillError, match="does not stand in the body"):
        skill.replace_in_body("name: x", "name: z")  # the frontmatter is not the body
    with pytest.raises(SkillError, match="empty"):
        skill.replace_in_body("", "z")


def test_overlapping_places_count_as_several():
    skill = SkillFile.parse(b"---\nname: x\ndescription: y\n---\naaa\n")
    with pytest.raises(SkillError, match="2 times"):
        skill.replace_in_body("aa", "b")


# -- frontmatter of all kinds --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "codes"),
    [
        (b"", ["no-frontmatter"]),
        (b"# Title\n---\nname: x\n---\n", ["no-frontmatter"]),
        (b"---\nname: x\ndescription: y\n", ["unclosed-frontmatter"]),
        (b"---\n- a\n- b\n---\nBody\n", ["not-a-mapping"]),
        (b"---\njust words\n---\nBody\n", ["not-a-mapping"]),
        (b"---\n---\nBody\n", ["not-a-mapping"]),
        (b"---\nname: x\n---\nBody\n", ["no-description"]),
        (b"---\nname: x\ndescription:\n---\nBody\n", ["no-description"]),
        (b"---\nname: x\ndescription: [a]\n---\nBody\n", ["bad-description"]),
        (b"---\nname: x\nname: z\ndescription: y\n---\n", ["duplicate-key"]),
        (b"---\nname: x\ndescription: caf\xe9\n---\n", ["not-utf-8"]),
        (b"---\nname: x\ndescription: y\n---\ncaf\xe9\n", ["not-utf-8"]),
        (b"\xef\xbb\xbf---\nname: x\ndescription: y\n---\n", []),
        (b"---  \nname: x\ndescription: y\n--- \nBody\n---\nmore\n", []),
    ],
)
def test_a_frontmatter_that_is_none_is_reported_and_never_crashes(data, codes):
    assert [problem.code for problem in SkillFile.parse(data).problems] == codes


def test_values_are_text_as_written_never_retyped():
    data = b"---\nname: on\ndescription: 2026-03-01\nversion: 1.10\n---\n"
    skill = SkillFile.parse(data)
    assert (skill.name, skill.description) == ("on", "2026-03-01")


def test_rules_in_block_scalars_and_in_the_body_do_not_end_the_frontmatter():
    data = b"---\nname: x\ndescription: |-\n  first\n  ---\n  last\n---\nBody\n---\nmore\n"
    skill = SkillFile.parse(data)
    assert skill.description == "first\n---\nlast"
    assert skill.body_text == "Body\n---\nmore\n"


def test_bytes_that_are_not_utf8_survive_edits():
    data = b"---\nname: x\ndescription: caf\xe9 old\n---\ncaf\xe9 one\r\ntwo\n"
    skill = SkillFile.parse(data)
    assert skill.replace_in_body("two", "2").data == data.replace(b"two", b"2")
    assert skill.problems[0].line == 3
    assert skill.problems[0].column == 17
    assert skill.with_description("new").data == data.replace(b"caf\xe9 old", b"new")
