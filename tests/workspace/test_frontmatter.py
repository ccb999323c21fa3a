"""The YAML header of a skill reads as PyYAML reads it, and key by key where PyYAML refuses it."""

from __future__ import annotations

import time

import pytest
import yaml
from hypothesis import assume, given
from hypothesis import strategies as st

from agent_evolve.workspace.frontmatter import fences
from agent_evolve.workspace.skill_file import SkillFile

TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=40)
WORDS = st.lists(
    st.sampled_from(
        ["use", "a:", "b: c", "#", "# d", "- e", "|", ">", "'", '"', "\n", "[f", "日本", "---"]
    ),
    max_size=6,
).map(" ".join)
SCALAR = TEXT | WORDS
STYLE = st.sampled_from([None, "'", '"', "|", ">"])


def parse(header: str) -> SkillFile:
    return SkillFile.parse(f"---\n{header}---\nBody\n".encode())


@given(SCALAR, SCALAR, STYLE, st.dictionaries(st.sampled_from(["license", "x"]), SCALAR))
def test_a_header_that_pyyaml_wrote_is_read_the_same(name, description, style, others):
    header = yaml.safe_dump(
        {"name": name, "description": description, **others},
        default_style=style,
        allow_unicode=True,
        sort_keys=False,
    )
    assume("\n---" not in header)
    skill = parse(header)
    assert skill.parses
    read = yaml.safe_load(header)  # which is not always what was written: U+0085 becomes a space
    assert skill.name == read["name"]
    assert skill.description == read["description"]
    assert skill.keys == ("name", "description", *others)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["name", "description", "license", "x-y", "# note", "  a", "- b", ""]),
            st.sampled_from(["", ":", ": ", ":  # c"]),
            WORDS.map(lambda text: text.replace("\n", " ")),
        ),
        max_size=5,
    )
)
def test_any_header_is_read_as_pyyaml_reads_it_or_said_to_be_broken(rows):
    header = "".join(f"{key}{colon}{value}\n" for key, colon, value in rows)
    assume("\n---" not in f"\n{header}")
    skill = parse(header)
    try:
        value = yaml.load(header, Loader=yaml.BaseLoader)  # every scalar as text
    except yaml.YAMLError:
        assert not skill.parses
        assert skill.problems
        return
    if not isinstance(value, dict):
        assert not skill.parses
        return
    assert skill.parses
    assert [key for key in skill.keys if key not in value] == []
    for key in ("name", "description"):
        if isinstance(value.get(key), str):
            assert (getattr(skill, key) or "") in (value[key], "")  # "~" and "null" mean none


@given(SCALAR.map(lambda text: " ".join(text.split())))
def test_a_broken_line_hides_only_itself(junk):
    assume("---" not in junk)
    skill = parse(f"name: x\nmetadata: {{{junk}\ndescription: Does it.\n")
    assert skill.name == "x"
    assert skill.description == "Does it."


@pytest.mark.parametrize(
    ("line", "description"),
    [
        ("description: Use it: now", "Use it: now"),
        ("description: Use it: now  # why", "Use it: now"),
        ("description: [draft] Use it", "[draft] Use it"),
        ('description: "quoted" and: more', '"quoted" and: more'),
        ("description: 'it''s: so' no", "'it''s: so' no"),
        ("description: Use\n  it: now\n  and later", "Use it: now and later"),
        ("description: @home", "@home"),
        ("description: `code` here", "`code` here"),
        ("description: %x", "%x"),
        ("description: * a", "* a"),
        ("description:\n\t- tab", "- tab"),
        ("description: >\n\ttab first\n  then: spaces", "tab first then: spaces"),
    ],
)
def test_a_description_is_recovered_from_what_people_write(line, description):
    skill = parse(f"name: x\n{line}\nlicense: MIT\n")
    assert not skill.parses
    assert skill.recoverable
    assert (skill.name, skill.description) == ("x", description)
    (problem,) = skill.problems
    assert problem.code == "bad-yaml"
    assert problem.line in (3, 4)


BOMB = "a0: &a0 [x]\n" + "".join(
    f"a{n + 1}: &a{n + 1} [{', '.join([f'*a{n}'] * 10)}]\n" for n in range(9)
)


@pytest.mark.parametrize(
    "junk",
    [
        BOMB,
        f"all:\n  {BOMB.replace(chr(10), chr(10) + '  ').rstrip(' ')}",
        "x: &x [*x]\n",
        "x: " + "[" * 99_999 + "\n",
    ],
    ids=["bomb", "bomb in one key", "circle", "depth"],
)
def test_a_header_made_to_choke_readers_is_read_at_once(junk):
    start = time.monotonic()
    skill = parse(f"name: x\n{junk}description: Does it.\n")
    assert (skill.name, skill.description) == ("x", "Does it.")
    assert not skill.parses
    assert skill.with_description("New.").description == "New."
    assert time.monotonic() - start < 5


@given(st.binary(max_size=200))
def test_fences_lie_in_order_and_on_lines_of_their_own(data):
    found = fences(b"---\n" + data)
    if found is not None:
        assert 0 < found.start <= found.end < found.body <= len(data) + 4
        whole = b"---\n" + data
        assert whole[: found.start].strip() == b"---"
        assert whole[found.end : found.body].strip() == b"---"
        assert found.end == found.start or whole[found.end - 1 : found.end] == b"\n"
