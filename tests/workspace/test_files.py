"""Prompts, fragments, skills, drafts and tools as files: names, links, bytes, refusals."""

from __future__ import annotations

import os
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_evolve.errors import SkillError, UnsafePathError, WorkspaceError
from agent_evolve.workspace import AgentWorkspace

SKILL = "---\nname: {0}\ndescription: Does {0}.\n---\n\n# {0}\n"


@pytest.fixture
def workspace(tmp_path):
    root = tmp_path / "agent"
    root.mkdir()
    (root / "manifest.yaml").write_text("agent: {type: chat}\n")
    return AgentWorkspace(root)


def files_below(root: Path) -> set[str]:
    return {path.relative_to(root).as_posix() for path in root.rglob("*")}


# -- what a user types -------------------------------------------------------------------------


def test_an_empty_workspace_has_nothing_in_it(workspace):
    assert workspace.read_prompt() == ""
    assert workspace.list_fragments() == workspace.list_skills() == workspace.list_drafts() == []
    assert workspace.list_tools() == workspace.read_tool_registry() == []
    assert workspace.list_memory_categories() == workspace.read_all_memories() == []
    assert files_below(workspace.root) == {"manifest.yaml"}


def test_everything_written_is_read_back(workspace):
    workspace.write_prompt("Be brief.\n")
    workspace.write_fragment("reasoning.md", "Think first.\n")
    workspace.write_fragment("style", "Plain words.\n")
    workspace.write_skill("verify", SKILL.format("verify"))
    workspace.write_draft("proposal", "Maybe.\n")
    workspace.write_tool("count.py", "#!/usr/bin/env python3\nprint(1)\n")
    workspace.write_tool_registry([{"name": "count", "file": "count.py"}])
    assert workspace.read_prompt() == "Be brief.\n"
    assert workspace.list_fragments() == ["reasoning.md", "style.md"]
    assert workspace.read_fragment("reasoning") == workspace.read_fragment("reasoning.md")
    assert [(s.name, s.description) for s in workspace.list_skills()] == [
        ("verify", "Does verify.")
    ]
    assert workspace.read_skill("verify") == SKILL.format("verify")
    assert workspace.list_drafts() == ["proposal"]
    assert workspace.read_draft("proposal") == workspace.read_draft("proposal.md") == "Maybe.\n"
    assert workspace.list_tools() == ["count.py"]
    assert os.access(workspace.root / "tools" / "count.py", os.X_OK)
    assert workspace.read_tool_registry() == [{"name": "count", "file": "count.py"}]
    assert files_below(workspace.root) - {"manifest.yaml"} == {
        "prompts",
        "prompts/system.md",
        "prompts/fragments",
        "prompts/fragments/reasoning.md",
        "prompts/fragments/style.md",
        "skills",
        "skills/verify",
        "skills/verify/SKILL.md",
        "skills/_drafts",
        "skills/_drafts/proposal.md",
        "tools",
        "tools/count.py",
        "tools/registry.yaml",
    }


def test_everything_written_can_be_deleted(workspace):
    workspace.write_fragment("style", "x")
    workspace.write_skill("verify", SKILL.format("verify"))
    (workspace.root / "skills" / "verify" / "notes.txt").write_text("kept beside")
    for name in ("one", "two", "three"):
        workspace.write_draft(name, "x")
    workspace.write_tool("count.py", "x")
    workspace.delete_fragment("style")
    workspace.delete_skill("verify")
    workspace.delete_draft("one")
    workspace.clear_drafts()
    workspace.delete_tool("count.py")
    files = {path for path in workspace.root.rglob("*") if path.is_file()}
    assert files == {workspace.root / "manifest.yaml"}


@pytest.mark.parametrize(
    ("call", "known", "asked"),
    [
        ("read_skill", "verify-totals", "verify-total"),
        ("delete_skill", "verify-totals", "verify-total"),
        ("read_fragment", "reasoning.md", "resoning.md"),
        ("delete_fragment", "reasoning.md", "resoning.md"),
        ("read_draft", "proposal", "propsal"),
        ("delete_draft", "proposal", "propsal"),
        ("read_tool", "count.py", "cuont.py"),
        ("delete_tool", "count.py", "cuont.py"),
    ],
)
def test_an_unknown_name_names_the_nearest(workspace, call, known, asked):
    workspace.write_skill("verify-totals", SKILL.format("verify-totals"))
    workspace.write_fragment("reasoning.md", "x")
    workspace.write_draft("proposal", "x")
    workspace.write_tool("count.py", "x")
    with pytest.raises(WorkspaceError, match=f"{asked!r}. Did you mean {known!r}"):
        getattr(workspace, call)(asked)


# -- names -------------------------------------------------------------------------------------

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


# -- links -------------------------------------------------------------------------------------


@pytest.fixture
def outside(workspace):
    """A directory beside the workspace that nothing may read or change."""
    folder = workspace.root.parent / "outside"
    folder.mkdir()
    (folder / "SKILL.md").write_text(SKILL.format("secret"))
    (folder / "secret.md").write_text("secret\n")
    (folder / "secret.jsonl").write_text('{"secret": 1}\n')
    return folder


def test_links_out_of_the_workspace_are_neither_read_nor_written(workspace, outside):
    root = workspace.root
    for folder in ("prompts/fragments", "skills/linked-file", "memory", "tools", "skills/_drafts"):
        (root / folder).mkdir(parents=True)
    (root / "prompts/system.md").symlink_to(outside / "secret.md")
    (root / "prompts/fragments/linked.md").symlink_to("../../../outside/secret.md")
    (root / "skills/linked-file/SKILL.md").symlink_to(outside / "SKILL.md")
    (root / "skills/linked-directory").symlink_to(outside)
    (root / "skills/_drafts/linked.md").symlink_to(outside / "secret.md")
    (root / "memory/linked.jsonl").symlink_to(outside / "secret.jsonl")
    (root / "tools/linked.py").symlink_to(outside / "secret.md")
    (root / "tools/registry.yaml").symlink_to(outside / "secret.md")
    before = {path: path.read_bytes() for path in outside.iterdir()}
    calls = [
        workspace.read_prompt,
        lambda: workspace.write_prompt("x"),
        lambda: workspace.read_fragment("linked"),
        lambda: workspace.write_fragment("linked", "x"),
        lambda: workspace.read_skill("linked-file"),
        lambda: workspace.write_skill("linked-file", SKILL.format("x")),
        lambda: workspace.read_skill("linked-directory"),
        lambda: workspace.write_skill("linked-directory", SKILL.format("x")),
        lambda: workspace.read_draft("linked"),
        lambda: workspace.write_draft("linked", "x"),
        lambda: workspace.read_memories("linked"),
        lambda: workspace.add_memory({"x": 1}, "linked"),
        lambda: workspace.write_memories([], "linked"),
        lambda: workspace.read_tool("linked.py"),
        lambda: workspace.write_tool("linked.py", "x"),
        workspace.read_tool_registry,
        lambda: workspace.write_tool_registry([{"a": 1}]),
    ]
    for call in calls:
        with pytest.raises(UnsafePathError, match="outside of the workspace"):
            call()
    assert workspace.list_skills() == []
    told = [problem for problem in workspace.problems() if problem.code == "link-outside"]
    assert len(told) == 8
    assert all(p.severity == "error" and p.fix for p in told)
    workspace.delete_skill("linked-directory")
    workspace.delete_skill("linked-file")
    workspace.delete_fragment("linked")
    workspace.clear_drafts()
    workspace.delete_tool("linked.py")
    assert {path: path.read_bytes() for path in outside.iterdir()} == before


def test_a_layer_that_is_a_link_out_is_refused_as_a_whole(workspace, outside):
    for layer in ("prompts", "skills", "memory", "tools"):
        (workspace.root / layer).symlink_to(outside)
    for call in (
        lambda: workspace.list_skills(),
        lambda: workspace.list_fragments(),
        lambda: workspace.add_memory({"x": 1}),
        lambda: workspace.write_prompt("x"),
        lambda: workspace.delete_skill("x"),
        lambda: workspace.list_tools(),
    ):
        with pytest.raises(UnsafePathError, match="outside of the workspace"):
            call()
    assert {problem.path for problem in workspace.problems()} == {
        "prompts",
        "skills",
        "memory",
        "tools",
    }


def test_a_link_into_the_history_is_refused(workspace):
    (workspace.root / "evolution").mkdir()
    (workspace.root / "evolution" / "journal.jsonl").write_text('{"score": 1}\n')
    (workspace.root / "memory").mkdir()
    (workspace.root / "memory" / "x.jsonl").symlink_to("../evolution/journal.jsonl")
    with pytest.raises(UnsafePathError, match="holds the history"):
        workspace.add_memory({"score": 2}, "x")
    assert (workspace.root / "evolution" / "journal.jsonl").read_text() == '{"score": 1}\n'


def test_links_that_stay_inside_are_written_through(workspace):
    workspace.write_prompt("shared\n")
    (workspace.root / "prompts" / "fragments").mkdir()
    link = workspace.root / "prompts" / "fragments" / "copy.md"
    link.symlink_to("../system.md")
    workspace.write_fragment("copy", "changed\n")
    assert link.is_symlink()
    assert workspace.read_prompt() == "changed\n"


def test_a_workspace_reached_through_a_link_works(workspace):
    (workspace.root.parent / "link").symlink_to(workspace.root)
    linked = AgentWorkspace(workspace.root.parent / "link")
    linked.write_prompt("x")
    assert workspace.read_prompt() == "x"


# -- bytes -------------------------------------------------------------------------------------


def test_a_prompt_keeps_the_bytes_of_lines_that_stay(workspace):
    workspace.write_prompt("x")
    path = workspace.root / "prompts" / "system.md"
    path.write_bytes(b"\xef\xbb\xbfone\r\ntwo caf\xe9\r\nthree")
    text = workspace.read_prompt()
    workspace.write_prompt(text)
    assert path.read_bytes() == b"\xef\xbb\xbfone\r\ntwo caf\xe9\r\nthree"
    workspace.write_prompt(text.replace("\r\n", "\n").replace("one", "1") + "\nfour\n")
    assert path.read_bytes() == b"\xef\xbb\xbf1\r\ntwo caf\xe9\r\nthree\r\nfour\r\n"


def test_a_write_that_changes_nothing_does_not_touch_the_file(workspace):
    workspace.write_prompt("one\n")
    path = workspace.root / "prompts" / "system.md"
    os.utime(path, ns=(1, 1))
    workspace.write_prompt("one\n")
    assert path.stat().st_mtime_ns == 1


def test_a_file_keeps_its_mode(workspace):
    workspace.write_tool("run.sh", "echo 1\n")
    path = workspace.root / "tools" / "run.sh"
    path.chmod(0o750)
    workspace.write_tool("run.sh", "#!/bin/sh\necho 2\n")
    assert path.stat().st_mode & 0o777 == 0o750


def test_half_an_emoji_is_written_as_a_mark_not_lost_in_an_error(workspace):
    workspace.write_prompt("cut \ud83e off")
    assert workspace.read_prompt() == "cut \ufffd off"


def test_a_failed_write_leaves_the_old_file_and_nothing_else(workspace):
    (workspace.root / "prompts" / "system.md").mkdir(parents=True)
    with pytest.raises(WorkspaceError, match="is a directory"):
        workspace.write_prompt("x")
    (workspace.root / "tools").write_text("a file where a directory is needed")
    with pytest.raises(WorkspaceError, match="can't be written"):
        workspace.write_tool("x.py", "x")
    assert files_below(workspace.root) == {"manifest.yaml", "prompts", "prompts/system.md", "tools"}


def test_a_huge_prompt_with_mixed_line_ends_is_written_at_once(workspace):
    workspace.write_prompt("x")
    (workspace.root / "prompts" / "system.md").write_bytes(b"a\r\nb\n" * 20_000)
    workspace.write_prompt("b\na\na\n" * 20_000)
    assert workspace.read_prompt().replace("\r", "") == "b\na\na\n" * 20_000


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_what_can_not_be_read_is_named(workspace):
    workspace.write_prompt("x")
    workspace.write_skill("verify", SKILL.format("verify"))
    workspace.write_fragment("style", "x")
    (workspace.root / "prompts" / "system.md").chmod(0)
    (workspace.root / "prompts" / "fragments").chmod(0)
    (workspace.root / "skills" / "verify").chmod(0)
    calls = [workspace.read_prompt, workspace.list_fragments, workspace.list_skills]
    try:
        for call in [*calls, lambda: workspace.read_skill("verify")]:
            with pytest.raises(WorkspaceError, match="can't be read: Permission denied"):
                call()
    finally:
        for path in ("prompts/fragments", "skills/verify"):
            (workspace.root / path).chmod(0o755)


# -- skills that are none ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("I have updated the skill.\n", "no frontmatter"),
        ("", "no frontmatter"),
        ("---\nname: x\ndescription: y\n", "never closed"),
        ("../shared/SKILL.md", "checked out as a text file"),
    ],
)
def test_a_text_that_is_no_skill_is_not_written(workspace, text, why):
    with pytest.raises(SkillError, match=why) as caught:
        workspace.write_skill("new", text)
    assert "start it with '---'" in caught.value.fix
    assert not (workspace.root / "skills" / "new").exists()


def test_a_file_that_was_no_skill_before_may_be_edited_as_it_is(workspace):
    (workspace.root / "skills" / "notes").mkdir(parents=True)
    path = workspace.root / "skills" / "notes" / "SKILL.md"
    path.write_bytes(b"# Notes\r\n\r\nold\r\n")
    assert [(s.name, s.description) for s in workspace.list_skills()] == [("notes", "")]
    workspace.write_skill("notes", workspace.read_skill("notes").replace("old", "new"))
    assert path.read_bytes() == b"# Notes\r\n\r\nnew\r\n"


def test_skills_are_seen_again_when_they_change(workspace):
    workspace.write_skill("x", SKILL.format("one"))
    assert workspace.list_skills()[0].description == "Does one."
    workspace.write_skill("x", SKILL.format("two"))  # of the same length, in the same moment
    assert workspace.list_skills()[0].description == "Does two."
    (workspace.root / "skills" / "x" / "SKILL.md").unlink()
    assert workspace.list_skills() == []


def test_two_ways_to_one_file_are_one_skill(workspace):
    workspace.write_skill("verify", SKILL.format("verify"))
    workspace.write_skill("other", SKILL.format("other"))
    skills = workspace.root / "skills"
    (skills / "also-verify").symlink_to("verify")
    (skills / "linked").mkdir()
    (skills / "linked" / "SKILL.md").symlink_to("../verify/SKILL.md")
    (skills / "_shared").mkdir()
    (skills / "_shared" / "SKILL.md").write_text(SKILL.format("shared"))
    for name in ("one", "two"):
        (skills / name).symlink_to("_shared")
    assert [skill.name for skill in workspace.list_skills()] == ["one", "other", "verify"]


def test_other_things_among_the_skills_are_none(workspace, caplog):
    skills = workspace.root / "skills"
    (skills / "directory" / "SKILL.md").mkdir(parents=True)
    (skills / "empty").mkdir()
    (skills / "file").write_text("x")
    (skills / "nested" / "templates").mkdir(parents=True)
    (skills / "nested" / "templates" / "SKILL.md").write_text(SKILL.format("x"))
    (skills / "gone").symlink_to("nothing")
    (skills / "lost").mkdir()
    (skills / "lost" / "SKILL.md").symlink_to("nothing.md")
    assert workspace.list_skills() == []
    assert "which does not exist" in caplog.text


# -- the tool registry -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- name: [\n", "registry.yaml:2:1: not valid YAML"),
        ("- name: a\n  name: b\n", "registry.yaml:2:3: not valid YAML: key 'name' is given twice"),
        ("words\n", "must be a list of mappings"),
        ("- a\n- b\n", "must be a list of mappings"),
        ("tools: {a: b}\n", "must be a list of mappings"),
        ("{a: b}\n", "must be a list of mappings"),
    ],
)
def test_a_broken_registry_names_its_line_and_is_not_overwritten(workspace, text, message):
    (workspace.root / "tools").mkdir()
    path = workspace.root / "tools" / "registry.yaml"
    path.write_text(text)
    for call in (workspace.read_tool_registry, lambda: workspace.write_tool_registry([])):
        with pytest.raises(WorkspaceError) as caught:
            call()
        assert message in caught.value.message
        assert caught.value.fix
    assert path.read_text() == text


def test_a_registry_keeps_its_form(workspace):
    (workspace.root / "tools").mkdir()
    path = workspace.root / "tools" / "registry.yaml"
    for text, entries in (("", []), ("tools:\n", []), ("- name: a\n", [{"name": "a"}])):
        path.write_text(text)
        assert workspace.read_tool_registry() == entries
        workspace.write_tool_registry(entries)
        assert path.read_text() == text
    path.write_text("# ours\nversion: 2\ntools:\n- name: a\n")
    workspace.write_tool_registry([{"name": "b"}])
    assert "version: 2\ntools:\n- name: b\n" in path.read_text()


def test_the_registry_is_not_a_tool(workspace):
    for call in (workspace.read_tool, workspace.delete_tool):
        with pytest.raises(WorkspaceError, match="is the registry"):
            call("registry.yaml")
    with pytest.raises(WorkspaceError, match="is the registry"):
        workspace.write_tool("Registry.yaml", "x")
