"""Prompts, fragments, skills, drafts and tools as files: what is written is read back."""

from __future__ import annotations

import os

import pytest

from agent_evolve.errors import SkillError, WorkspaceError

from .samples import SKILL, files_below


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


# -- bytes ----------------------------------------------------------------------------------------


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


# -- skills that are none ------------------------------------------------------------------------


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


# -- the tool registry ---------------------------------------------------------------------------


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
