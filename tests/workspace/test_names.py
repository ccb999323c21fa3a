"""Names that become files: none can mean another place, on any system."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_evolve.errors import UnsafePathError
from agent_evolve.workspace import AgentWorkspace

from .samples import SKILL, files_below

NEVER = [
    "../../x",
    "/etc/passwd",
    "..",
    ".",
    "",
    "a/b",
    "a\\b",
    "nul\x00",
    "tab\t",
    ".git",
    "\ud83e",
]
NEVER += ["x" * 300, "日" * 100]
NOT_NEW = ["x" * 65, "con", "LPT1.txt", "trailing.", "trailing ", " leading", "-rf", ".hidden"]
NOT_NEW += ["what?", "a:b", "zero\u200bwidth", "right\u202eleft"]


def writers(workspace):
    return {
        "skill": lambda name: workspace.write_skill(name, SKILL.format("x")),
        "draft": lambda name: workspace.write_draft(name, "x"),
        "fragment": lambda name: workspace.write_fragment(name, "x"),
        "tool": lambda name: workspace.write_tool(name, "x"),
        "memory category": lambda name: workspace.add_memory({"a": 1}, name),
        "memory category again": lambda name: workspace.write_memories([{"a": 1}], name),
    }


@pytest.mark.parametrize("kind", writers(None))
@pytest.mark.parametrize("name", [*NEVER, *NOT_NEW], ids=lambda name: ascii(name[:20]))
def test_a_name_that_could_mean_another_place_is_never_written(workspace, kind, name):
    before = files_below(workspace.root.parent)
    with pytest.raises(UnsafePathError) as caught:
        writers(workspace)[kind](name)
    assert kind.removesuffix(" again") in caught.value.message
    assert files_below(workspace.root.parent) - before <= {"agent/skills", "agent/memory"}


@pytest.mark.parametrize("name", NEVER, ids=lambda name: ascii(name[:20]))
def test_a_name_that_could_mean_another_place_is_never_read_or_deleted(workspace, name):
    (workspace.root.parent / "x").mkdir()
    calls = [workspace.read_skill, workspace.delete_skill, workspace.read_draft]
    calls += [workspace.delete_draft, workspace.read_fragment, workspace.delete_fragment]
    calls += [workspace.read_tool, workspace.delete_tool, workspace.read_memories]
    for call in calls:
        with pytest.raises(UnsafePathError):
            call(name)
    assert (workspace.root.parent / "x").is_dir()


@given(st.text(max_size=80) | st.text(st.sampled_from("./\\ ab~$\x00"), max_size=8))
def test_no_name_ever_leaves_its_place(tmp_path_factory, name):
    root = tmp_path_factory.getbasetemp() / "names" / "inner"
    root.mkdir(parents=True, exist_ok=True)
    workspace = AgentWorkspace(root)
    try:
        workspace.write_skill(name, SKILL.format("x"))
    except UnsafePathError:
        pass
    else:
        assert workspace.read_skill(name) == SKILL.format("x")
        assert name in [skill.name for skill in workspace.list_skills()]
        workspace.delete_skill(name)
    assert files_below(root.parent) <= {"inner", "inner/skills"}


@pytest.mark.parametrize("name", ["_drafts", "_x", ".x"])
def test_private_directories_are_not_skills(workspace, name):
    (workspace.root / "skills" / name).mkdir(parents=True)
    (workspace.root / "skills" / name / "SKILL.md").write_text(SKILL.format("x"))
    assert workspace.list_skills() == []
    for call in (workspace.read_skill, workspace.delete_skill):
        with pytest.raises(UnsafePathError):
            call(name)


def test_names_are_the_same_however_their_accents_are_composed(workspace):
    composed, decomposed = (unicodedata.normalize(form, "prüfung") for form in ("NFC", "NFD"))
    for there, asked in ((composed, decomposed), (decomposed, composed)):
        workspace.write_skill(there, SKILL.format("x"))
        workspace.write_draft(there, "draft")
        workspace.write_fragment(f"{there}.md", "fragment")
        workspace.write_tool(there, "tool")
        workspace.add_memory({"a": 1}, there)
        assert workspace.read_skill(asked) == SKILL.format("x")
        assert workspace.read_draft(asked) == "draft"
        assert workspace.read_fragment(asked) == "fragment"
        assert workspace.read_tool(asked) == "tool"
        assert workspace.read_memories(asked) == [{"a": 1}]
        workspace.write_skill(asked, SKILL.format("y"))
        assert [skill.name for skill in workspace.list_skills()] == [there]
        workspace.delete_skill(asked)
        workspace.delete_draft(asked)
        workspace.delete_fragment(asked)
        workspace.delete_tool(asked)
        workspace.write_memories([], asked)
        (workspace.root / "memory" / f"{there}.jsonl").unlink()
        assert workspace.list_skills() == []


def test_two_skills_may_not_differ_in_case_alone(workspace):
    workspace.write_skill("verify", SKILL.format("verify"))
    with pytest.raises(UnsafePathError, match="only in case"):
        workspace.write_skill("Verify", SKILL.format("Verify"))


def test_files_with_names_that_no_reader_takes_are_left_out_and_told(workspace, caplog):
    for folder in ("skills/a\\b", "prompts/fragments", "tools", "memory"):
        (workspace.root / folder).mkdir(parents=True)
    (workspace.root / "skills" / "a\\b" / "SKILL.md").write_text(SKILL.format("x"))
    (workspace.root / "prompts" / "fragments" / "a\nb.md").write_text("x")
    (workspace.root / "tools" / "a\\b.py").write_text("x")
    (workspace.root / "memory" / "a\\b.jsonl").write_text("{}\n")
    assert workspace.list_skills() == workspace.list_fragments() == workspace.list_tools() == []
    assert workspace.list_memory_categories() == []
    assert "path separator" in caplog.text
    told = {p.path for p in workspace.problems() if p.code == "bad-name" and p.severity != "note"}
    assert len(told) == 4
