"""What ``doctor`` tells of a workspace's files: where, how bad, and what to do."""

from __future__ import annotations

import os
import subprocess

import pytest

from agent_evolve.workspace import AgentWorkspace
from agent_evolve.workspace.scanner import MAX_BYTES

SKILL = "---\nname: {0}\ndescription: Does {0}.\n---\n\n# Rules\n\n- keep\n"


@pytest.fixture
def workspace(tmp_path):
    (tmp_path / "manifest.yaml").write_text("agent: {type: chat}\n")
    workspace = AgentWorkspace(tmp_path)
    workspace.write_prompt("Be brief.\n")
    workspace.write_skill("verify", SKILL.format("verify"))
    workspace.add_memory({"a": 1})
    workspace.write_tool_registry([{"name": "x"}])
    return workspace


def told(workspace):
    """The problems of a workspace, as a fresh look at it finds them."""
    return AgentWorkspace(workspace.root).problems()


def test_a_workspace_in_order_has_no_problems(workspace):
    assert told(workspace) == []


def test_an_empty_directory_lacks_only_the_manifest(tmp_path):
    (problem,) = AgentWorkspace(tmp_path).problems()
    assert (problem.path, problem.line, problem.severity) == ("manifest.yaml", 1, "error")
    assert problem.message == "no such file"
    assert problem.fix == f"agent-evolve init {tmp_path}"
    assert str(problem) == "manifest.yaml:1:1: no such file"


def write(root, path, data):
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_bytes(data)


CASES = {
    "manifest: not YAML": (
        lambda root: write(root, "manifest.yaml", b"name: x\nagent: {type: chat\n"),
        ("manifest.yaml", 3, "error", "manifest", "not valid YAML", "correct line 3"),
    ),
    "manifest: wrong key": (
        lambda root: write(root, "manifest.yaml", b"name: x\nreload_strategy: warm\n"),
        ("manifest.yaml", 2, "error", "manifest", "reload_strategy: 'warm' is neither", "hot"),
    ),
    "manifest: unknown key": (
        lambda root: write(root, "manifest.yaml", b"agent: {type: chat}\nmodle: x\n"),
        ("manifest.yaml", 2, "warning", "manifest", "did you mean 'model'?", "correct or remove"),
    ),
    "manifest: lock without heading": (
        lambda root: write(root, "manifest.yaml", b"locked: ['skills/verify#Rulez']\n"),
        ("manifest.yaml", 1, "warning", "lock", "no such heading", "correct the heading"),
    ),
    "skill: broken frontmatter": (
        lambda root: write(
            root, "skills/verify/SKILL.md", b"---\nname: verify\ndescription: a: b\n---\n"
        ),
        ("skills/verify/SKILL.md", 3, "warning", "bad-yaml", "without quotes", "double quotes"),
    ),
    "skill: none": (
        lambda root: write(root, "skills/verify/SKILL.md", b"Talk.\n"),
        ("skills/verify/SKILL.md", 1, "error", "no-frontmatter", "not a skill", "start the file"),
    ),
    "skill: list": (
        lambda root: write(root, "skills/verify/SKILL.md", b"---\n- a\n---\n"),
        ("skills/verify/SKILL.md", 2, "error", "not-a-mapping", "is a list", "'name:'"),
    ),
    "skill: byte order mark": (
        lambda root: write(
            root, "skills/verify/SKILL.md", b"\xef\xbb\xbf" + SKILL.format("verify").encode()
        ),
        ("skills/verify/SKILL.md", 1, "warning", "bom", "byte order mark", "without BOM"),
    ),
    "skill: name differs": (
        lambda root: write(root, "skills/verify/SKILL.md", SKILL.format("other").encode()),
        ("skills/verify/SKILL.md", 2, "warning", "name-differs", "differs from the directory", ""),
    ),
    "skill: not UTF-8": (
        lambda root: write(
            root, "skills/verify/SKILL.md", SKILL.format("verify").encode() + b"\xe9"
        ),
        ("skills/verify/SKILL.md", 9, "warning", "not-utf-8", "byte 0xe9", "UTF-8"),
    ),
    "skill: lower case file": (
        lambda root: write(root, "skills/new/skill.md", SKILL.format("new").encode()),
        ("skills/new", 1, "warning", "no-skill-file", "no SKILL.md", "rename skill.md to SKILL.md"),
    ),
    "skill: no file": (
        lambda root: write(root, "skills/new/notes.md", b"x"),
        ("skills/new", 1, "warning", "no-skill-file", "no SKILL.md", "add a SKILL.md"),
    ),
    "memory: torn line": (
        lambda root: write(root, "memory/episodic.jsonl", b'{"a": 1}\n\n{"b'),
        ("memory/episodic.jsonl", 3, "warning", "bad-memory", "not JSON", "skipped until then"),
    ),
    "registry: broken": (
        lambda root: write(root, "tools/registry.yaml", b"- a: 1\n- b: [\n"),
        ("tools/registry.yaml", 3, "error", "bad-registry", "not valid YAML", "correct line 3"),
    ),
    "link: out": (
        lambda root: (root / "prompts/out.md").symlink_to("/etc/passwd"),
        ("prompts/out.md", 1, "error", "link-outside", "outside of the workspace", "a copy of"),
    ),
    "link: nowhere": (
        lambda root: (root / "prompts/gone.md").symlink_to("nothing.md"),
        ("prompts/gone.md", 1, "warning", "dangling-link", "nothing.md", "correct or remove"),
    ),
    "file: leftover": (
        lambda root: write(root, "memory/.agent-evolve-0123456789abcdef.tmp", b"x"),
        (
            "memory/.agent-evolve-0123456789abcdef.tmp",
            1,
            "note",
            "leftover",
            "writer that was killed",
            "rm memory/.agent-evolve-0123456789abcdef.tmp",
        ),
    ),
    "file: secret": (
        lambda root: write(root, "tools/.env", b"KEY=1"),
        ("tools/.env", 1, "warning", "secret", "file of secrets", "outside of the layers"),
    ),
    "file: pipe": (
        lambda root: os.mkfifo(root / "tools/pipe"),
        ("tools/pipe", 1, "warning", "special-file", "neither a file", "move it elsewhere"),
    ),
    "file: huge": (
        lambda root: os.truncate(root / "memory/episodic.jsonl", MAX_BYTES + 1),
        ("memory/episodic.jsonl", 1, "error", "huge-file", "up to 64 MiB", "outside of the layers"),
    ),
    "repository inside": (
        lambda root: subprocess.run(["git", "init", "-q", root / "skills/verify"], check=True),
        ("skills/verify/.git", 1, "error", "nested-repository", "a git repository", "elsewhere"),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_each_oddity_is_told_with_its_place_and_fix(workspace, case):
    make, expected = CASES[case]
    make(workspace.root)
    found = told(workspace)
    path, line, severity, code, message, fix = expected
    matching = [problem for problem in found if problem.code == code]
    assert [(p.path, p.line, p.severity) for p in matching] == [(path, line, severity)], found
    assert message in matching[0].message
    assert fix in matching[0].fix
    assert not matching[0].message.startswith(str(workspace.root))  # the path says it already


def test_looking_changes_nothing_and_never_raises(workspace):
    for make, _ in list(CASES.values())[3:]:
        make(workspace.root)
    before = {p: p.lstat().st_mtime_ns for p in sorted(workspace.root.rglob("*"))}
    assert len(told(workspace)) >= 10
    assert {p: p.lstat().st_mtime_ns for p in sorted(workspace.root.rglob("*"))} == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_what_can_not_be_read_is_told(workspace):
    path = workspace.root / "skills" / "verify" / "SKILL.md"
    path.chmod(0)
    (problem,) = told(workspace)
    assert (problem.path, problem.code, problem.severity) == (
        "skills/verify",
        "unreadable",
        "error",
    )
    assert problem.fix == "correct its permissions"
