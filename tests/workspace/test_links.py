"""Links in a workspace: those that stay inside are followed, no other is."""

from __future__ import annotations

import pytest

from agent_evolve.errors import UnsafePathError
from agent_evolve.workspace import AgentWorkspace

from .samples import SKILL


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
