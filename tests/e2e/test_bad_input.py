"""Odd surroundings, broken files and hostile changes, all through the command line."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.loop.support import cli, git, make_workspace

CASES = Path(__file__).parents[1] / "data" / "skill_cases"


def run(place: Path, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    return cli("run", str(place), "--cycles", "2", *arguments, env=env)


def prompt(place: Path) -> str:
    return (place / "prompts" / "system.md").read_text()


# -- git around the workspace ------------------------------------------------------------------


def dirty(place: Path) -> None:
    """A user's repository with work in every state, and a hook that refuses everything."""
    git(place, "init", "-q", "-b", "trunk")
    git(place, "config", "user.name", "Someone")
    git(place, "config", "user.email", "someone@example.org")
    (place / "app.py").write_text("1\n")
    git(place, "add", "app.py", "manifest.yaml")
    git(place, "commit", "-q", "-m", "first")
    hook = place / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    git(place, "config", "commit.gpgsign", "true")
    (place / "app.py").write_text("2\n")
    git(place, "stash", "-q")
    (place / "app.py").write_text("3\n")
    git(place, "add", "app.py")
    (place / "app.py").write_text("4\n")
    (place / ".env").write_text("KEY=secret-value\n")
    (place / "skills").mkdir()
    (place / "skills" / ".env").write_text("KEY=secret-value\n")


def seen_by_git(place: Path) -> dict[str, object]:
    """All that git shows of a repository, our own names aside."""
    shown: dict[str, object] = {
        " ".join(command): git(place, *command)
        for command in (
            ("branch", "-a", "-v"),
            ("tag",),
            ("stash", "list"),
            ("diff",),
            ("diff", "--cached"),
            ("log", "--format=%H %s", "HEAD"),
            ("config", "--list", "--local"),
        )
    }
    shown["index"] = (place / ".git" / "index").read_bytes()
    shown["files"] = [(place / name).read_text() for name in ("app.py", ".env", "skills/.env")]
    return shown


def test_a_users_dirty_repository_is_exactly_as_before(tmp_path: Path) -> None:
    place = make_workspace(tmp_path / "agent")
    dirty(place)
    before = seen_by_git(place)
    (place / ".git" / "index.lock").write_text("")
    done = run(place)
    assert done.returncode == 0, done.stderr
    (place / ".git" / "index.lock").unlink()
    assert "skills/.env" in done.stderr
    assert prompt(place) == "level:4"
    assert seen_by_git(place) == before
    everything = git(place, "log", "--all", "-p", "--format=%H")
    assert "secret-value" not in everything.replace("\n+KEY", "")
    kept = git(place, "ls-tree", "-r", "--name-only", "refs/agent-evolve/evo-2").split()
    assert kept == ["manifest.yaml", "prompts/system.md"]
    shown = cli("diff", "evo-0", "evo-2", "-w", str(place))
    assert "+level:4" in shown.stdout
    assert "git diff refs/agent-evolve/evo-0 refs/agent-evolve/evo-2" in shown.stderr


@pytest.mark.parametrize("tracked", [True, False])
def test_inside_another_repository_only_plain_files_are_seen(tmp_path: Path, tracked: bool) -> None:
    outer = tmp_path / "outer"
    place = make_workspace(outer / "agent")
    git(outer, "init", "-q")
    if tracked:
        git(outer, "add", "agent")
        git(outer, "-c", "user.name=x", "-c", "user.email=x@y", "commit", "-q", "-m", "x")
    assert run(place).returncode == 0
    status = git(outer, "status", "--porcelain", "-uall").splitlines()
    if tracked:
        assert status == [" M agent/prompts/system.md"]
    else:
        assert [line[3:] for line in status] == [
            "agent/manifest.yaml",
            "agent/parts.py",
            "agent/prompts/system.md",
        ]
    shown = cli("diff", "evo-0", "evo-2", cwd=place)
    assert "--git-dir=evolution/versions.git diff evo-0 evo-2" in shown.stderr
    assert "+level:4" in shown.stdout


def test_without_identity_and_with_signing_and_hooks_in_the_users_config(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "hooks").mkdir(parents=True)
    for name in ("pre-commit", "reference-transaction"):
        (home / "hooks" / name).write_text("#!/bin/sh\nexit 1\n")
        (home / "hooks" / name).chmod(0o755)
    (home / ".gitconfig").write_text(
        f"[commit]\ngpgsign=true\n[tag]\ngpgsign=true\n[core]\nhooksPath={home}/hooks\n"
        "[user]\nuseConfigOnly=true\n"
    )
    place = make_workspace(tmp_path / "agent")
    done = run(place, HOME=str(home), GIT_CONFIG_NOSYSTEM="1")
    assert done.returncode == 0, done.stderr
    assert git(place, "tag").split() == ["evo-0", "evo-1", "evo-2", "pre-evo-1", "pre-evo-2"]


# -- manifests -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("name: [x\n", "manifest.yaml:"),
        ("- a\n- b\n", "list"),
        ("name: x\nagent: chat bot\n", "agent"),
        ("name: x\nagent: {entrypoint: nodot}\n", "no dot"),
        ("name: x\nagent: {type: chta}\n", "Did you mean 'chat'"),
        ("name: x\nagent: {type: chat}\nevolvable_layers: [promts]\n", "promts"),
        ("name: x\nagent: {type: chat}\nevolvable_layers: []\n", "evolvable_layers"),
        ("name: x\nagent: {entrypoint: parts.Nobody}\n", "has no 'Nobody'"),
        ("name: x\nagent: {entrypoint: nowhere.Agent}\n", "nowhere"),
        ("name: x\nagent: {type: recall}\nconfig: {batch_sze: 3}\n", "batch_size"),
        ("name: x\nagent: {type: recall}\nconfig: {batch_size: many}\n", "batch_size"),
        ("name: x\nagent: {type: recall}\n", "benchmark"),
        ("name: x\nagent: {type: recall}\nbenchmark: {name: local, tasks: no.jsonl}\n", "no.jsonl"),
        ("\xff", "manifest.yaml"),
        ("", "manifest.yaml"),
    ],
)
def test_a_wrong_manifest_costs_nothing_and_says_what_to_write(
    tmp_path: Path, text: str, says: str
) -> None:
    place = make_workspace(tmp_path / "agent")
    (place / "manifest.yaml").write_bytes(text.encode("latin-1"))
    before = sorted(os.listdir(place))
    done = run(place)
    assert done.returncode == 2, done.stdout + done.stderr
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert sorted(os.listdir(place)) == before


def test_an_unknown_key_warns_with_the_nearest_and_the_run_goes_on(tmp_path: Path) -> None:
    place = make_workspace(tmp_path / "agent")
    manifest = json.loads((place / "manifest.yaml").read_text())
    manifest["evolvable_layer"] = ["prompts"]
    (place / "manifest.yaml").write_text(json.dumps(manifest))
    done = run(place)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("evolvable_layers") == 1


# -- what an engine may leave behind -------------------------------------------------------------

WRITER = """
class Writer(EvolutionEngine):
    def step(self, workspace, observations, history, trial):
        import os
        from pathlib import Path
        workspace.write_prompt("level:10")
        root = workspace.root
        {}
        return StepResult(True, "wrote")
"""


@pytest.mark.parametrize(
    "does",
    [
        '(root / "manifest.yaml").unlink()',
        '(root / "manifest.yaml").write_text("name: mine")',
        '(root / ".git").mkdir(); (root / ".git" / "config").write_text("x")',
        '(root / "evolution").mkdir(); (root / "evolution" / "journal.jsonl").write_text("x")',
        '(root / "stray.txt").write_text("x")',
        '(root / "tools").mkdir(exist_ok=True); (root / "tools" / "x.py").write_text("x")',
        '(root / "memory").mkdir(exist_ok=True); (root / "memory" / "x").symlink_to("/etc/passwd")',
        '(root / "memory").rmdir(); (root / "memory").symlink_to("/tmp")',
        '(root / "memory" / "big.jsonl").write_bytes(b"x" * 2_000_000)',
        '(root / "memory" / "huge").open("wb").truncate(70 * 1024**2)',
        '(root / "memory" / "keys.pem").write_text("x")',
        '(root / "skills/CON").mkdir(parents=True); (root / "skills/CON/SKILL.md").write_text("x")',
        '(root / "skills" / ("x" * 250)).mkdir(parents=True); '
        '(root / "skills" / ("x" * 250) / "SKILL.md").write_text("x")',
        '(root / "skills" / "a").mkdir(parents=True); (root / "skills/a/SKILL.md").write_text("x")',
        'workspace.write_skill("../../x", "x")',
        'workspace.write_skill("/abs", "x")',
        'workspace.write_skill("..", "x")',
        'workspace.write_skill("a" * 300, "x")',
        r'workspace.write_skill("a\0b", "x")',
        'raise SystemExit(0)',
        'raise RuntimeError("lost \\x1b[31m connection")',
    ],
)  # fmt: skip
def test_what_an_engine_may_not_do_is_refused_and_nothing_of_it_is_kept(
    tmp_path: Path, does: str
) -> None:
    place = make_workspace(tmp_path / "agent", engine="Writer", parts=WRITER.format(does))
    manifest = (place / "manifest.yaml").read_bytes()
    done = cli("run", str(place), "--cycles", "1", "--json")
    record = json.loads(done.stdout)["cycles"][0]
    assert record["verdict"] == "failed", record
    assert record["reason"]
    assert prompt(place) == "level:0"
    assert (place / "manifest.yaml").read_bytes() == manifest
    assert not (place / "stray.txt").exists()
    assert git(place, "tag").split()[:2] == (
        ["candidate-1", "evo-0"] if "candidate-1" in git(place, "tag") else ["evo-0", "evo-1"]
    )


def test_skills_of_every_kind_come_through_a_run_byte_for_byte(tmp_path: Path) -> None:
    """Every awkward skill there is, and files that are no text; the run edits the prompt only."""
    place = make_workspace(tmp_path / "agent")
    shutil.copytree(CASES, place / "skills", symlinks=True)
    (place / "memory").mkdir()
    (place / "memory" / "binary.dat").write_bytes(bytes(range(256)))
    (place / "prompts" / "latin1.md").write_bytes(b"caf\xe9")
    before = files_of(place / "skills"), (place / "memory" / "binary.dat").read_bytes()
    done = run(place)
    assert done.returncode == 0, done.stderr
    assert prompt(place) == "level:4"
    assert (files_of(place / "skills"), (place / "memory" / "binary.dat").read_bytes()) == before
    assert cli("rollback", "evo-0", "-w", str(place)).returncode == 0
    assert prompt(place) == "level:0"
    assert files_of(place / "skills") == before[0]


def files_of(place: Path) -> dict[str, object]:
    return {
        str(path.relative_to(place)): (
            str(path.readlink()) if path.is_symlink() else (path.stat().st_mode, path.read_bytes())
        )
        for path in place.rglob("*")
        if path.is_symlink() or path.is_file()
    }


# -- tasks, journals, disks ----------------------------------------------------------------------


def test_odd_task_ids_are_only_names(tmp_path: Path) -> None:
    parts = """
class Odd(Questions):
    def get_tasks(self, split="train", limit=10):
        if split != "train": return []
        ids = ["../../etc/passwd-1", "a" * 300 + "-2", "C:\\\\x-3", "ü\\n-4", "-5", ".-6"]
        return [Task(name, f"q{name}") for name in ids][:limit]
"""
    place = make_workspace(tmp_path / "agent", benchmark="Odd", parts=parts, holdout_ratio=0.0)
    done = run(place)
    assert done.returncode == 0, done.stderr
    assert sorted(os.listdir(place)) == [
        ".git", "evolution", "manifest.yaml", "parts.py", "prompts",
    ]  # fmt: skip


def test_duplicate_task_ids_are_refused_before_anything_runs(tmp_path: Path) -> None:
    parts = """
class Twice(Questions):
    def get_tasks(self, split="train", limit=10):
        return [Task("same-1", "a"), Task("same-1", "b")]
"""
    place = make_workspace(tmp_path / "agent", benchmark="Twice", parts=parts)
    done = run(place)
    assert done.returncode == 2
    assert "'same-1'" in done.stderr


def test_torn_last_lines_are_set_aside_and_the_run_goes_on(tmp_path: Path) -> None:
    place = make_workspace(tmp_path / "agent")
    assert run(place).returncode == 0
    for name in ("journal.jsonl", "cache/scores.jsonl", "observations/batch_0002.jsonl"):
        with (place / "evolution" / name).open("ab") as file:
            file.write(b'{"v": 1, "seq": 99, "ty')
    done = run(place)
    assert done.returncode == 0, done.stderr
    assert prompt(place) == "level:8"
    assert cli("log", "-w", str(place)).returncode == 0


def test_a_full_disk_is_told_and_nothing_is_lost(tmp_path: Path) -> None:
    """A limit on the size of files stands for a full disk: writing fails midway."""
    parts = """
import resource
class Filling(Coach):
    def step(self, workspace, observations, history, trial):
        made = super().step(workspace, observations, history, trial)
        if os.environ.get("FILL"):
            resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
        return made
import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
"""
    place = make_workspace(tmp_path / "agent", engine="Filling", parts=parts)
    done = run(place, FILL="1")
    assert done.returncode not in (0, 1), done.stdout + done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    assert prompt(place) == "level:0"
    again = run(place)
    assert again.returncode == 0, again.stderr
    assert prompt(place) == "level:4"
    git(place, "fsck", "--strict")


def test_a_workspace_that_can_not_be_written(tmp_path: Path) -> None:
    place = make_workspace(tmp_path / "agent")
    (place / "evolution").write_text("a file in the way")
    done = run(place)
    assert done.returncode == 2
    assert "evolution" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_edit_while_the_run_goes_on_is_not_overwritten(tmp_path: Path) -> None:
    parts = """
class Editing(Coach):
    def step(self, workspace, observations, history, trial):
        mine = Path(__file__).parent / "prompts" / "system.md"
        if mine.read_text() == "level:0":
            mine.write_text("level:9")
        return super().step(workspace, observations, history, trial)
"""
    place = make_workspace(tmp_path / "agent", engine="Editing", parts=parts)
    done = run(place)
    assert done.returncode == 2
    assert "prompts/system.md" in done.stderr
    assert prompt(place) == "level:9"
    again = run(place)
    assert again.returncode == 0, again.stderr
    assert prompt(place) == "level:11"
    history = git(place, "log", "--format=%s", "main")
    assert "edited by hand" in history
    assert git(place, "show", "evo-1:prompts/system.md") == "level:2"
