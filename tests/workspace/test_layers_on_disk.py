"""Layers, links and locks judged from trees, checked against a real file system."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from .samples import (
    EXECUTABLE,
    FILE,
    LINK,
    Files,
    judge,
    link,
    rules,
)

TOPS = ["prompts", "memory", "tools", "evolution"]
PATH = st.builds(
    "/".join, st.tuples(st.sampled_from(TOPS), *[st.sampled_from("ab")] * 2)
) | st.builds("/".join, st.tuples(st.sampled_from(TOPS), st.sampled_from("abc")))
TARGET = st.lists(
    st.sampled_from(["..", "a", "b", "c", "memory", "prompts", ".", "evolution"]), min_size=1
)
CONTENT = st.sampled_from(["x", "y"]) | TARGET.map("/".join).map(link) | st.just((EXECUTABLE, "x"))


@st.composite
def trees(draw):
    """A set of files and links, none of which lies below another."""
    files: Files = {"manifest.yaml": draw(st.sampled_from(["x", "x", "x", "y"]))}
    for path, told in draw(st.lists(st.tuples(PATH, CONTENT), max_size=7)):
        if not any(f"{path}/".startswith(f"{p}/") or f"{p}/".startswith(f"{path}/") for p in files):
            files[path] = told
    return files


def place(root: Path, files: Files) -> Path:
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    for path, told in files.items():
        mode, content = told if isinstance(told, tuple) else (FILE, told)
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        if mode == LINK:
            (root / path).symlink_to(content)
        else:
            (root / path).write_text(content)
            (root / path).chmod(mode & 0o777)
    return root


def fault(root: Path, path: str) -> int | None:
    try:
        (root / path).stat()
    except OSError as error:
        return error.errno
    return None


def leaves(root: Path, path: str) -> bool:
    """Whether a link leads out of the root, to it as a whole, or into the history."""
    top, real = os.path.realpath(root), os.path.realpath(root / path)
    inside = real.startswith(f"{top}/")
    return not inside or os.path.relpath(real, top).split("/")[0] == "evolution"


def reading(root: Path, path: str) -> object:
    """All that can be read at a path, links followed, with modes."""
    here = root / path
    with contextlib.suppress(OSError):
        if here.is_dir():
            names = sorted(os.listdir(here))
            deep = path.count("/") > 12
            return names if deep else {name: reading(root, f"{path}/{name}") for name in names}
        return here.stat().st_mode, here.read_bytes()
    return None


@settings(max_examples=150)
@given(trees(), trees(), st.booleans())
def test_links_and_layers_are_judged_as_a_file_system_would(tmp_path_factory, before, after, mix):
    if mix:  # a small change is likelier to leave an interesting rest
        others = {
            p: t for p, t in before.items() if not any(f"{p}/".startswith(f"{q}/") for q in after)
        }
        rest = {p: t for p, t in others.items() if not any(q.startswith(f"{p}/") for q in after)}
        after = {**rest, **dict(list(after.items())[:3])}
    layers = ("prompts", "memory")
    found = rules(before, after, layers=layers)
    changed = {p for p in {*before, *after} if before.get(p) != after.get(p)}
    outside = {p for p in changed if p.split("/")[0] not in layers}
    assert {p for rule, p in found if rule in ("layer", "manifest")} == outside
    base = tmp_path_factory.getbasetemp() / "trees"
    old, new = place(base / "old" / "root", before), place(base / "new" / "root", after)
    links = {p for p, told in after.items() if isinstance(told, tuple) and told[0] == LINK}
    told = {v.path: v.message for v in judge(before, after, layers=layers) if v.rule == "link"}
    for path in links:
        excused = path not in changed and (leaves(old, path) or fault(old, path) == errno.ELOOP)
        if fault(new, path) == errno.ELOOP:
            assert excused or path in told
        elif "circle" in told.get(path, ""):
            assert fault(new, path) is not None  # a circle that a missing directory cuts short
        elif not excused:
            assert (path in told) == leaves(new, path)


@settings(max_examples=150)
@given(trees(), st.lists(st.tuples(PATH, CONTENT), min_size=1, max_size=2), PATH)
def test_what_is_locked_reads_the_same_after_any_change_let_through(
    tmp_path_factory, before, changes, lock
):
    while bad := {path for rule, path in rules({}, before) if rule == "link"}:
        before = {path: told for path, told in before.items() if path not in bad}
    after = dict(before)
    for path, told in changes:
        for other in list(after):
            if f"{path}/".startswith(f"{other}/") or f"{other}/".startswith(f"{path}/"):
                del after[other]
        after[path] = told
    found = rules(before, after, locked=[lock], layers=tuple(TOPS))
    base = tmp_path_factory.getbasetemp() / "locks"
    old, new = place(base / "old" / "root", before), place(base / "new" / "root", after)
    if not any(rule in ("locked", "link") for rule, _ in found):
        assert reading(old, lock) == reading(new, lock)
    if all(not path.startswith(lock.rpartition("/")[0]) for path, _ in changes) and not any(
        isinstance(told, tuple) and told[0] == LINK for told in before.values()
    ):
        assert not any(rule == "locked" for rule, _ in found)
