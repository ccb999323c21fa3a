"""Versions in git: real repositories, real ``git`` beside them."""

from __future__ import annotations

import os
import shlex
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_evolve.errors import VersionError, WorkspaceChangedError, WorkspaceError
from agent_evolve.workspace import WorkspaceRepository

LAYERS = ("prompts", "skills", "memory", "tools")


def git(place: Path, *arguments: str, **env: str) -> str:
    clean = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    done = subprocess.run(
        ["git", *arguments], cwd=place, capture_output=True, check=True, env=clean | env
    )
    return done.stdout.decode("utf-8", "surrogateescape")


def make(place: Path, files: dict[str, str | bytes] | None = None) -> Path:
    for path, content in ({"manifest.yaml": "name: x\n"} | (files or {})).items():
        target = place / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content if isinstance(content, bytes) else content.encode())
    return place


def opened(place: Path, **options: bool) -> WorkspaceRepository:
    return WorkspaceRepository.open(place, LAYERS, **options)


def start(place: Path) -> tuple[WorkspaceRepository, str]:
    """A repository whose ``evo-0`` is what lies in ``place``."""
    repository = opened(place)
    commit = repository.commit(repository.scan(place), "evo-0: the start", [])
    repository.tag("evo-0", commit, "evo-0: the start")
    repository.advance(commit, None)
    return repository, commit


def step(repository: WorkspaceRepository, number: int, copy: Path, **files: str | None) -> str:
    """Change files of a copy of the head and make that the head, as a cycle does."""
    head = repository.head
    assert head is not None
    before = repository.load(head.commit)
    repository.materialise(before, copy)
    for path, content in files.items():
        place = copy / path
        if content is None:
            place.unlink()
        else:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(content)
    after = repository.scan(copy)
    commit = repository.commit(after, f"evo-{number}: a step", [head.commit])
    repository.tag(f"evo-{number}", commit, f"evo-{number}: accepted")
    repository.advance(commit, head.commit)
    repository.apply(after, before)
    return commit


def content(place: Path) -> dict[str, tuple[str, bytes]]:
    """Everything below a directory: kind and bytes by path, directories included."""
    found: dict[str, tuple[str, bytes]] = {}
    for directory, folders, names in os.walk(place):
        for name in [*folders, *names]:
            path = Path(directory, name)
            about = path.lstat()
            key = str(path.relative_to(place))
            if stat.S_ISLNK(about.st_mode):
                found[key] = ("link", os.fsencode(path.readlink()))
            elif stat.S_ISDIR(about.st_mode):
                found[key] = ("directory", b"")
            else:
                kind = "program" if about.st_mode & 0o100 else "file"
                found[key] = (kind, path.read_bytes())
    return found


# -- a repository of its own -----------------------------------------------------------------


def test_plain_git_reads_every_version(tmp_path: Path) -> None:
    work = make(
        tmp_path / "w", {"prompts/system.md": "one\n", "tasks.jsonl": "{}", ".env": "KEY=1"}
    )
    repository, _ = start(work)
    step(repository, 1, tmp_path / "c", **{"prompts/system.md": "two\n", "skills/a/SKILL.md": "a"})
    assert repository.settle() == ""
    assert repository.kind == "own"
    assert git(work, "tag").split() == ["evo-0", "evo-1"]
    assert git(work, "cat-file", "-t", "evo-1").strip() == "tag"
    typed = git(work, *shlex.split(repository.diff_command("evo-0", "evo-1"))[1:])
    assert typed == repository.diff("evo-0", "evo-1")
    assert "-one\n+two" in typed
    assert "skills/a/SKILL.md" in typed
    assert git(work, "fsck", "--strict", "--full") == ""
    assert git(work, "ls-tree", "-r", "--name-only", "evo-1").split() == [
        "manifest.yaml",
        "prompts/system.md",
        "skills/a/SKILL.md",
    ]
    assert git(work, "status", "--porcelain").split() == ["??", ".env", "??", "tasks.jsonl"]
    assert (work / "prompts/system.md").read_text() == "two\n"


def test_neither_identity_nor_signing_nor_hooks_matter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    hooks = home / "hooks"
    hooks.mkdir(parents=True)
    for name in ("pre-commit", "commit-msg", "reference-transaction", "post-index-change"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch {home}/ran-{name}\nexit 1\n")
        (hooks / name).chmod(0o755)
    (home / ".gitconfig").write_text(
        f"[commit]\ngpgsign = true\n[tag]\ngpgsign = true\n[core]\nhooksPath = {hooks}\n"
        "[user]\nuseConfigOnly = true\n[init]\ndefaultBranch = trunk\n"
    )
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere.git"))
    work = make(tmp_path / "w", {"prompts/system.md": "one"})
    repository, _ = start(work)
    step(repository, 1, tmp_path / "c", **{"prompts/system.md": "two"})
    assert repository.settle() == ""
    assert repository.names() == ["evo-0", "evo-1"]
    assert not (tmp_path / "elsewhere.git").exists()
    assert [path.name for path in home.iterdir() if path.name.startswith("ran-")] == []


def test_a_detached_head_comes_back_to_the_chain(tmp_path: Path) -> None:
    work = make(tmp_path / "w", {"prompts/system.md": "one"})
    repository, _ = start(work)
    step(repository, 1, tmp_path / "c", **{"prompts/system.md": "two"})
    repository.settle()
    git(work, "checkout", "-q", "evo-0")
    repository.apply(repository.load("evo-1"), repository.load("evo-0"))
    repository.settle()
    assert git(work, "status", "--porcelain") == ""
    assert git(work, "symbolic-ref", "HEAD").strip() == "refs/heads/main"


def test_a_stale_index_lock_stops_nothing(tmp_path: Path) -> None:
    work = make(tmp_path / "w", {"prompts/system.md": "one"})
    repository, _ = start(work)
    (work / ".git" / "index.lock").write_text("")
    step(repository, 1, tmp_path / "c", **{"prompts/system.md": "two"})
    assert "index.lock" in repository.settle()
    assert repository.names() == ["evo-0", "evo-1"]


def test_the_lock_of_a_killed_run_is_taken_over(tmp_path: Path) -> None:
    work = make(tmp_path / "w", {"prompts/system.md": "one"})
    repository, commit = start(work)
    (work / ".git" / "refs" / "tags" / "evo-1.lock").write_text("")
    repository.tag("evo-1", commit, "x")
    assert repository.names() == ["evo-0", "evo-1"]


def test_a_run_goes_on_while_git_packs_everything(tmp_path: Path) -> None:
    work = make(tmp_path / "w", {"prompts/system.md": "one", "skills/a/SKILL.md": "a"})
    repository, _ = start(work)
    step(repository, 1, tmp_path / "c", **{"prompts/system.md": "two"})
    git(work, "gc", "-q", "--prune=now")
    assert not list((work / ".git" / "refs" / "tags").iterdir())
    step(repository, 2, tmp_path / "c", **{"prompts/system.md": "three"})
    git(work, "gc", "-q", "--prune=now")
    fresh = opened(work, create=False)
    assert fresh.names() == ["evo-0", "evo-1", "evo-2"]
    assert fresh.read_file_at("evo-1", "prompts/system.md") == b"two"
    assert fresh.name_of(fresh.version("evo-2").commit) == "evo-2"
    assert git(work, "fsck", "--strict") == ""


# -- beside what is the user's -----------------------------------------------------------------


def users_repository(place: Path) -> Path:
    """A repository with a commit, a staged change, a changed file, a stash and a secret."""
    make(place, {"prompts/system.md": "one\n", "app.py": "print(1)\n", "notes.md": "n\n"})
    git(place, "init", "-q", "-b", "trunk")
    git(place, "config", "user.name", "Someone")
    git(place, "config", "user.email", "someone@example.org")
    git(place, "add", "app.py", "manifest.yaml", "prompts")
    git(place, "commit", "-q", "-m", "first")
    (place / "app.py").write_text("print(2)\n")
    git(place, "stash", "-q")
    (place / "app.py").write_text("print(3)\n")
    git(place, "add", "app.py")
    (place / "app.py").write_text("print(4)\n")
    (place / ".env").write_text("KEY=secret\n")
    return place


def state_of(place: Path) -> dict[str, bytes | str]:
    """What must not change in a user's repository: all files of it but objects and our names."""
    files: dict[str, bytes | str] = {
        str(path.relative_to(place)): path.read_bytes()
        for path in sorted((place / ".git").rglob("*"))
        if path.is_file()
        and "objects" not in path.parts
        and "agent-evolve" not in str(path.relative_to(place))
    }
    for name in ("app.py", ".env", "notes.md"):
        files[name] = (place / name).read_bytes()
    files["status"] = git(place, "status", "--porcelain", GIT_OPTIONAL_LOCKS="0")
    files["branches"] = git(place, "branch", "-a", "-v")
    files["tags"] = git(place, "tag")
    return files


def test_a_users_dirty_repository_stays_as_it_was(tmp_path: Path) -> None:
    work = users_repository(tmp_path / "w")
    before = state_of(work)
    (work / "evolution").mkdir()
    (work / "evolution" / ".gitignore").write_text("*\n")
    repository, _ = start(work)
    assert repository.kind == "user"
    step(repository, 1, tmp_path / "c", **{"skills/a/SKILL.md": "a"})
    repository.settle()
    (work / "skills" / "a" / "SKILL.md").unlink()
    (work / "skills" / "a").rmdir()
    (work / "skills").rmdir()
    assert state_of(work) == before
    typed = git(work, *shlex.split(repository.diff_command("evo-0", "evo-1"))[1:])
    assert "+a" in typed
    assert git(work, "ls-tree", "-r", "--name-only", "refs/agent-evolve/evo-1").split() == [
        "manifest.yaml",
        "prompts/system.md",
        "skills/a/SKILL.md",
    ]
    git(work, "gc", "-q", "--prune=now")
    assert opened(work, create=False).read_file_at("evo-1", "skills/a/SKILL.md") == b"a"
    assert git(work, "fsck", "--strict") == ""


@pytest.mark.parametrize("tracked", [True, False])
def test_inside_a_larger_repository_the_versions_lie_beside(tmp_path: Path, tracked: bool) -> None:
    outer = users_repository(tmp_path / "outer")
    work = make(outer / "agents" / "mine", {"prompts/system.md": "one\n"})
    if tracked:
        git(outer, "add", "agents")
        git(outer, "commit", "-q", "-m", "second")
    before = state_of(outer)
    repository, _ = start(work)
    assert repository.kind == "beside"
    step(repository, 1, tmp_path / "c", **{"memory/episodic.jsonl": "{}\n"})
    repository.settle()
    typed = git(work, *shlex.split(repository.diff_command("evo-0", "evo-1"))[1:])
    assert "memory/episodic.jsonl" in typed
    shutil.rmtree(work / "memory")
    assert state_of(outer) == before


def test_inside_a_repository_that_ignores_it_a_workspace_has_its_own(tmp_path: Path) -> None:
    outer = users_repository(tmp_path / "outer")
    (outer / ".gitignore").write_text("/mine/\n")
    repository, _ = start(make(outer / "mine", {"prompts/system.md": "one\n"}))
    assert repository.kind == "own"


def test_a_worktree_of_a_users_repository_is_left_alone(tmp_path: Path) -> None:
    outer = users_repository(tmp_path / "outer")
    git(outer, "worktree", "add", "-q", str(tmp_path / "tree"), "-b", "side")
    repository, _ = start(tmp_path / "tree")
    assert repository.kind == "beside"
    assert git(tmp_path / "tree", "status", "--porcelain") == ""


def test_an_uncommon_object_format_is_left_alone(tmp_path: Path) -> None:
    work = make(tmp_path / "w")
    git(work, "init", "-q", "--object-format=sha256")
    repository, _ = start(work)
    assert repository.kind == "beside"


# -- names ---------------------------------------------------------------------------------------


def test_a_name_is_never_moved(tmp_path: Path) -> None:
    work = make(tmp_path / "w")
    repository, commit = start(work)
    repository.tag("evo-0", commit, "again")
    other = repository.commit(repository.scan(work), "another", [commit])
    with pytest.raises(VersionError, match="never moved"):
        repository.tag("evo-0", other, "x")
    with pytest.raises(VersionError, match="something else changed it"):
        repository.advance(other, None)
    assert repository.version("evo-0").message == "evo-0: the start"


@pytest.mark.parametrize("ref", ["evo-99", "../../HEAD", "", "zz", "0000", "refs/heads/main", "-x"])
def test_an_unknown_version_names_those_that_exist(tmp_path: Path, ref: str) -> None:
    repository, _ = start(make(tmp_path / "w"))
    with pytest.raises(VersionError, match=r"Known: evo-0, head"):
        repository.version(ref)


def test_versions_by_commit_and_abbreviation(tmp_path: Path) -> None:
    repository, commit = start(make(tmp_path / "w"))
    assert repository.version(commit).commit == commit
    assert repository.version(commit[:8]).commit == commit
    assert repository.version("head").tree == repository.version("evo-0").tree


def test_opening_what_was_never_run(tmp_path: Path) -> None:
    with pytest.raises(VersionError, match="no versions yet"):
        opened(make(tmp_path / "w"), create=False)
    assert sorted(os.listdir(tmp_path / "w")) == ["manifest.yaml"]


# -- what is kept ----------------------------------------------------------------------------------


def test_modes_links_binaries_and_odd_names_survive(tmp_path: Path) -> None:
    work = make(
        tmp_path / "w",
        {"skills/a/run.sh": "#!/bin/sh\n", "skills/a/x.png": bytes(range(256)), "skills/a/.h": ""},
    )
    (work / "skills/a/run.sh").chmod(0o755)
    (work / "skills/a/link").symlink_to("run.sh")
    (work / "skills/a/folder").symlink_to("../b")
    (Path(os.fsdecode(os.fsencode(work) + b"/skills/a/caf\xe9"))).write_text("x")
    (work / "skills" / "überprüfung").mkdir()
    (work / "skills" / "überprüfung" / "SKILL.md").write_text("ü")
    repository, commit = start(work)
    repository.materialise(commit, tmp_path / "copy")
    for layer in ("prompts", "memory", "tools"):
        (tmp_path / "copy" / layer).rmdir()
    expected = {k: v for k, v in content(work).items() if not k.startswith((".git", "evolution"))}
    assert content(tmp_path / "copy") == expected
    assert git(work, "fsck", "--strict") == ""


def test_secrets_caches_and_pipes_are_in_no_version(tmp_path: Path) -> None:
    files = ("a/.env", "a/.env.example", "a/server.key", "a/__pycache__/m.pyc", "a/.git/config")
    work = make(tmp_path / "w", {f"skills/{path}": "x" for path in files})
    os.mkfifo(work / "skills" / "a" / "pipe")
    repository, _ = start(work)
    tree = repository.scan(work)
    assert sorted(tree.entries) == ["manifest.yaml", "skills/a/.env.example"]
    assert tree.private == ("skills/a/.env", "skills/a/server.key")


def test_a_file_too_large_for_versions(tmp_path: Path) -> None:
    work = make(tmp_path / "w")
    (work / "tools").mkdir()
    with (work / "tools" / "model.gguf").open("wb") as file:
        file.truncate(70 * 1024**2)
    with pytest.raises(WorkspaceError, match=r"model\.gguf has 70 MiB"):
        opened(work).scan(work)


def test_an_edit_of_the_same_size_is_seen_at_once(tmp_path: Path) -> None:
    work = make(tmp_path / "w", {"prompts/system.md": "0000"})
    repository = opened(work)
    seen = set()
    for number in range(200):
        with (work / "prompts" / "system.md").open("r+") as file:  # the inode stays
            file.write(f"{number:04d}")
        seen.add(repository.scan(work).id)
    assert len(seen) == 200


def test_looking_writes_nothing(tmp_path: Path) -> None:
    work = make(tmp_path / "w", {"prompts/system.md": "one"})
    repository, _ = start(work)
    (work / "prompts" / "system.md").write_text("two")
    before = content(work)
    seen = repository.scan(work, store=False)
    assert content(work) == before
    assert seen.id == repository.scan(work).id


NAMES = st.sampled_from(["a", "b", "a.b", "a-b", "SKILL.md", "ü", "z z", "0"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
TREES = st.dictionaries(
    PATHS, st.tuples(st.sampled_from(["file", "program", "link"]), st.binary(max_size=40))
)


def build(place: Path, files: dict[str, tuple[str, bytes]]) -> None:
    """Write what fits: a path below a file is left out."""
    for path, (kind, data) in files.items():
        target = place / "skills" / path
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            if target.exists() or target.is_symlink():
                continue
            if kind == "link":
                target.symlink_to(data.hex() or "x")
                continue
            target.write_bytes(data)
            target.chmod(0o755 if kind == "program" else 0o644)
        except (FileExistsError, NotADirectoryError, FileNotFoundError):
            continue


@pytest.fixture(scope="module")
def places() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as directory:
        yield Path(directory)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(TREES, TREES)
def test_trees_are_those_that_git_makes_and_copies_are_exact(
    places: Path, first: dict[str, tuple[str, bytes]], second: dict[str, tuple[str, bytes]]
) -> None:
    """A copy that holds one version becomes another exactly, and both are git's own trees."""
    with tempfile.TemporaryDirectory(dir=places) as directory:
        base = Path(directory)
        work = make(base / "w")
        build(work, first)
        repository, _ = start(work)
        one = repository.scan(work)
        git(work, "add", "-f", "manifest.yaml", *(["skills"] if len(one.entries) > 1 else []))
        assert git(work, "write-tree").strip() == one.id
        other = make(base / "o")
        build(other, second)
        two = repository.scan(other)
        copy = base / "copy"
        for tree, source in ((one, work), (two, other), (one, work)):
            repository.materialise(tree, copy)
            assert repository.scan(copy) == tree
            assert files_of(copy) == files_of(source)
        repository._trees.clear()
        commit = repository.commit(two, "two", [])
        assert repository.load(commit) == two
        repository.apply(two, one)
        assert repository.scan(work).id == two.id
        repository.apply(two, one)


def files_of(place: Path) -> dict[str, tuple[str, bytes]]:
    return {
        path: about
        for path, about in content(place).items()
        if about[0] != "directory" and not path.startswith((".git", "evolution"))
    }


def test_a_copy_becomes_exact_whatever_was_done_to_it(tmp_path: Path) -> None:
    work = make(tmp_path / "w", {"prompts/system.md": "one", "skills/a/SKILL.md": "a"})
    repository, commit = start(work)
    copy = tmp_path / "copy"
    repository.materialise(commit, copy)
    exact = content(copy)
    outside = make(tmp_path / "outside", {"skills/a/SKILL.md": "precious"})

    def links_in_place_of_layers() -> None:
        shutil.rmtree(copy / "skills")
        (copy / "skills").symlink_to(outside / "skills")

    def a_directory_in_place_of_a_file() -> None:
        (copy / "manifest.yaml").unlink()
        (copy / "manifest.yaml").mkdir()
        (copy / "manifest.yaml" / "x").write_text("x")

    def locked_up() -> None:
        (copy / "skills" / "a" / "deep").mkdir()
        (copy / "skills" / "a" / "deep" / "f").write_text("x")
        (copy / "skills" / "a" / "deep").chmod(0)
        (copy / "skills" / "a").chmod(0)

    def strays_and_caches() -> None:
        make(
            copy, {"stray/x": "x", ".hidden": "x", "tools/__pycache__/m.pyc": "x", "tools/.env": ""}
        )
        (copy / "skills" / "empty").mkdir()
        os.mkfifo(copy / "prompts" / "pipe")

    for spoil in (
        links_in_place_of_layers,
        a_directory_in_place_of_a_file,
        locked_up,
        strays_and_caches,
        lambda: shutil.rmtree(copy),
    ):
        spoil()
        repository.materialise(commit, copy)
        assert content(copy) == exact, spoil.__name__
    assert (outside / "skills/a/SKILL.md").read_text() == "precious"


# -- the user's files --------------------------------------------------------------------------


def test_an_edit_in_the_meantime_stops_before_anything_is_replaced(tmp_path: Path) -> None:
    work = make(tmp_path / "w", {"prompts/system.md": "one", "prompts/a.md": "a", "notes": "n"})
    repository, commit = start(work)
    before = repository.load(commit)
    repository.materialise(before, tmp_path / "c")
    (tmp_path / "c/prompts/system.md").write_text("two")
    (tmp_path / "c/prompts/a.md").write_text("b")
    after = repository.scan(tmp_path / "c")
    (work / "prompts" / "system.md").write_text("edited by hand")
    with pytest.raises(WorkspaceChangedError, match=r"prompts/system\.md"):
        repository.apply(after, before)
    assert (work / "prompts" / "a.md").read_text() == "a"
    applied = repository.apply(after, before, keep_edits=True)
    assert applied.kept == ("prompts/system.md",)
    assert (work / "prompts" / "a.md").read_text() == "b"
    assert (work / "prompts" / "system.md").read_text() == "edited by hand"


def test_permissions_and_links_of_the_users_files(tmp_path: Path) -> None:
    work = make(tmp_path / "w", {"tools/a.sh": "1", "tools/b.sh": "1", "memory/m.jsonl": "{}"})
    (work / "tools/a.sh").chmod(0o700)
    (work / "memory/m.jsonl").chmod(0o600)
    repository, commit = start(work)
    before = repository.load(commit)
    copy = tmp_path / "c"
    repository.materialise(before, copy)
    (copy / "tools/a.sh").write_text("2")
    (copy / "tools/b.sh").chmod(0o755)
    (copy / "memory/m.jsonl").write_text("[]")
    (copy / "tools/c").symlink_to("a.sh")
    repository.apply(repository.scan(copy), before)
    assert stat.S_IMODE((work / "tools/a.sh").stat().st_mode) == 0o700
    assert (work / "tools/b.sh").stat().st_mode & 0o100
    assert stat.S_IMODE((work / "memory/m.jsonl").stat().st_mode) == 0o600
    assert (work / "tools/c").readlink() == Path("a.sh")
