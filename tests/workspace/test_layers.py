"""What a candidate may change, judged by its files alone and checked against a real file system."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_evolve.workspace.layers import MAX_ADDED_FILES, MAX_FILE_BYTES, count_changes, violations

FILE, EXECUTABLE, LINK, REPOSITORY = 0o100644, 0o100755, 0o120000, 0o160000
LAYERS = ("prompts", "skills", "memory")
SKILL = "---\nname: {0}\ndescription: Does {0}.\n---\n\n# Steps\n\n- one\n\n# Rules\n\n- keep\n"

Files = dict[str, str | bytes | tuple[int, str | bytes]]


class Trees:
    """Trees as git would give them, with the contents of all their blobs."""

    def __init__(self) -> None:
        self.blobs: dict[str, bytes] = {}

    def tree(self, files: Files) -> dict[str, tuple[int, str]]:
        entries = {}
        for path, told in files.items():
            mode, content = told if isinstance(told, tuple) else (FILE, told)
            data = content.encode() if isinstance(content, str) else content
            blob = hashlib.sha1(data).hexdigest()
            self.blobs[blob] = data
            entries[path] = (mode, blob)
        return entries

    def read(self, blob: str) -> bytes:
        return self.blobs[blob]


def judge(before: Files, after: Files, locked=(), layers=LAYERS):
    trees = Trees()
    return violations(
        trees.tree(before),
        trees.tree(after),
        read=trees.read,
        evolvable_layers=layers,
        locked=locked,
    )


def rules(before: Files, after: Files, locked=(), layers=LAYERS) -> set[tuple[str, str]]:
    return {(found.rule, found.path) for found in judge(before, after, locked, layers)}


def link(target: str) -> tuple[int, str]:
    return LINK, target


START: Files = {
    "manifest.yaml": "agent: {type: chat}\n",
    "prompts/system.md": "# Role\n\nBe brief.\n\n## Tone\n\nKind.\n\n# Format\n\nJSON.\n",
    "prompts/fragments/style.md": "Plain.\n",
    "skills/verify/SKILL.md": SKILL.format("verify"),
    "skills/verify/scripts/check.sh": (EXECUTABLE, "#!/bin/sh\n"),
    "memory/episodic.jsonl": '{"a": 1}\n',
    "tools/registry.yaml": "- name: x\n",
}


def test_an_unchanged_tree_and_changes_within_the_layers_are_fine():
    assert judge(START, START) == []
    after = {
        **START,
        "prompts/system.md": "Be very brief.\n",
        "skills/new-one/SKILL.md": SKILL.format("new-one"),
        "skills/new-one/scripts/go.py": (EXECUTABLE, "print(1)\n"),
        "skills/_drafts/idea.md": "no skill yet",
        "skills/README.md": "a file beside the skills",
        "memory/rules.jsonl": "{}\n",
    }
    del after["skills/verify/SKILL.md"], after["skills/verify/scripts/check.sh"]
    assert judge(START, after) == []


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"manifest.yaml": "locked: []\n"}, "manifest"),
        ({"manifest.yaml": None}, "manifest"),
        ({"tools/registry.yaml": "- name: y\n"}, "layer"),
        ({"tools/registry.yaml": None}, "layer"),
        ({"tools/registry.yaml": (EXECUTABLE, "- name: x\n")}, "layer"),
        ({"tools/new.py": "x"}, "layer"),
        ({"evolution/journal.jsonl": "{}"}, "layer"),
        ({"agent.py": "x"}, "layer"),
        ({"prompts": link("tools"), "prompts/system.md": None}, "layer"),
        ({"memory/con": "x"}, "name"),
        ({"memory/a:b": "x"}, "name"),
        ({"memory/.git/config": "x"}, "name"),
        ({"skills/a\\b/SKILL.md": SKILL.format("x")}, "name"),
        ({f"skills/{'x' * 65}/SKILL.md": SKILL.format("x" * 65)}, "name"),
        ({"memory/sub": (REPOSITORY, "x")}, "mode"),
        ({"memory/out": link("../../etc/passwd")}, "link"),
        ({"memory/out": link("/etc/passwd")}, "link"),
        ({"memory/out": link("C:\\x")}, "link"),
        ({"memory/root": link("..")}, "link"),
        ({"memory/history": link("../evolution")}, "link"),
        ({"memory/git": link("../.git/config")}, "link"),
        ({"memory/circle": link("circle")}, "link"),
        ({"memory/huge.jsonl": b"x" * (MAX_FILE_BYTES + 1)}, "size"),
        ({f"memory/{n}": str(n) for n in range(MAX_ADDED_FILES + 1)}, "count"),
        ({"skills/talk/SKILL.md": "I have updated the skill.\n"}, "skill"),
        ({"skills/list/SKILL.md": "---\n- a\n---\n"}, "skill"),
        ({"skills/scalar/SKILL.md": "---\nwords\n---\n"}, "skill"),
        ({"skills/open/SKILL.md": "---\nname: open\ndescription: x\n"}, "skill"),
        ({"skills/colon/SKILL.md": "---\nname: colon\ndescription: a: b\n---\n"}, "skill"),
        ({"skills/mute/SKILL.md": "---\nname: mute\n---\n"}, "skill"),
        ({"skills/bytes/SKILL.md": b"---\nname: bytes\ndescription: \xe9\n---\n"}, "skill"),
        ({"skills/empty/notes.md": "x"}, "skill"),
        ({"skills/verify/SKILL.md": None}, "skill"),
        ({"skills/verify/SKILL.md": link("nowhere.md")}, "skill"),
        (
            {"skills/verify/SKILL.md": f"---\nname: verify\ndescription: {'x' * 1025}\n---\n"},
            "skill",
        ),
        ({"skills/verify/SKILL.md": SKILL.format("renamed")}, "skill-name"),
    ],
    ids=lambda value: ascii(value)[:50],
)
def test_what_may_not_be_done_is_named(change, rule):
    after = {path: told for path, told in {**START, **change}.items() if told is not None}
    found = judge(START, after)
    if change == {"skills/verify/SKILL.md": None}:
        assert found == []  # its scripts stay behind: odd, and no harm
        return
    assert rule in {violation.rule for violation in found}
    assert all(str(violation).startswith(violation.path) for violation in found)


def test_faults_that_were_there_are_not_held_against_a_candidate():
    before = {
        **START,
        "skills/talk/SKILL.md": "Just talk.\n",
        "skills/old/SKILL.md": f"---\nname: Old Name\ndescription: {'x' * 2000}\n---\nold\n",
        "memory/huge.jsonl": b"x" * (MAX_FILE_BYTES * 2),
        "memory/out": link("/etc/passwd"),
        "memory/bad:name": "x",
    }
    after = {
        **before,
        "skills/talk/SKILL.md": "Other talk.\n",
        "skills/old/SKILL.md": f"---\nname: Old Name\ndescription: {'x' * 2000}\n---\nnew\n",
        "memory/huge.jsonl": b"y" * (MAX_FILE_BYTES * 2),
        "memory/bad:name": "y",
        "memory/new": link("episodic.jsonl"),
    }
    assert judge(before, after) == []


def test_a_link_that_comes_to_lead_out_is_found_though_it_did_not_change():
    before = {**START, "memory/a": link("deep/way/../x"), "memory/deep/way": link("down/down")}
    after = {**before, "memory/deep/way": link("../../..")}
    assert ("link", "memory/a") in rules(before, after)


def test_a_link_that_leads_out_once_another_is_gone_is_found():
    before = {**START, "memory/deep": link("a/b/c"), "memory/out": link("deep/../../../x")}
    after = {path: told for path, told in before.items() if path != "memory/deep"}
    after["memory/deep/file"] = "x"
    assert judge(before, before) == []
    assert ("link", "memory/out") in rules(before, after)


def test_moves_count_as_one_deleted_and_one_added():
    trees = Trees()
    after = {**START, "skills/verify/scripts/run.sh": (EXECUTABLE, "#!/bin/sh\n")}
    del after["skills/verify/scripts/check.sh"]
    after["prompts/system.md"] = "x"
    assert count_changes(trees.tree(START), trees.tree(after)) == {
        "prompts": {"added": 0, "modified": 1, "deleted": 0},
        "skills": {"added": 1, "modified": 0, "deleted": 1},
    }
    assert count_changes(trees.tree(START), trees.tree(START)) == {}


# -- locks -------------------------------------------------------------------------------------

PROMPT = "prompts/system.md"
VERIFY = "skills/verify/SKILL.md"


@pytest.mark.parametrize(
    ("lock", "path", "old", "new", "held"),
    [
        ("skills/verify", VERIFY, "one", "two", True),
        ("skills/verify/", "skills/verify/notes.md", "", "x", True),
        ("skills/verify", "skills/verify-more/SKILL.md", "", SKILL.format("verify-more"), False),
        ("skills", VERIFY, "one", "two", True),
        (PROMPT, PROMPT, "brief", "long", True),
        (PROMPT, "prompts/fragments/style.md", "Plain", "Fancy", False),
        ("skills/verify#Rules", VERIFY, "keep", "drop", True),
        ("skills/verify#rules", VERIFY, "keep", "drop", True),
        ("skills/verify#Rules", VERIFY, "# Rules", "# Ideas", True),
        ("skills/verify#Rules", VERIFY, "one", "two", False),
        ("skills/verify/SKILL.md#Rules", VERIFY, "keep", "drop", True),
        ("skills/verify#frontmatter", VERIFY, "Does", "Did", True),
        ("skills/verify#frontmatter", VERIFY, "one", "two", False),
        ("skills/verify#Nothing", VERIFY, "keep", "drop", False),
        (f"{PROMPT}#Role", PROMPT, "Kind.", "Rude.", True),
        (f"{PROMPT}#Role", PROMPT, "JSON.", "XML.", False),
        (f"{PROMPT}#Tone", PROMPT, "Be brief.", "Be long.", False),
        (f"{PROMPT}#Tone", PROMPT, "Kind.", "Rude.", True),
        (f"{PROMPT}#Tone", PROMPT, "Kind.\n", "Kind.\n\n\n", False),
        (f"{PROMPT}#Format", PROMPT, "JSON.\n", "JSON.\n\n# Role\n\nMore.\n", False),
        (f"{PROMPT}#Role", PROMPT, "JSON.\n", "JSON.\n\n# Role\n\nMore.\n", True),
    ],
)
def test_a_lock_holds_what_it_names_and_nothing_else(lock, path, old, new, held):
    was = START.get(path, "")
    text = was.replace(old, new, 1) if old else new
    assert text != was
    found = rules(START, {**START, path: text}, locked=[lock])
    assert (("locked", path) in found) == held
    assert found <= {("locked", path)}


def test_a_locked_section_may_be_neither_removed_nor_hidden_in_a_code_block():
    for text in ("Be brief.\n", f"```\n{START[PROMPT]}```\n"):
        assert ("locked", PROMPT) in rules(START, {**START, PROMPT: text}, [f"{PROMPT}#Tone"])
    without = {path: told for path, told in START.items() if path != PROMPT}
    assert ("locked", PROMPT) in rules(START, without, [f"{PROMPT}#Tone"])
    assert ("locked", PROMPT) in rules(START, without, [PROMPT])


def test_a_heading_in_a_code_block_is_none():
    before = {**START, PROMPT: "```sh\n# Rules\n```\n\nold\n"}
    assert (
        judge(before, {**before, PROMPT: "```sh\n# Rules\n```\n\nnew\n"}, [f"{PROMPT}#Rules"]) == []
    )


def test_what_does_not_exist_may_be_locked_from_being_made():
    after = {**START, "skills/house-style/SKILL.md": SKILL.format("house-style")}
    assert ("locked", "skills/house-style/SKILL.md") in rules(START, after, ["skills/house-style"])


def test_a_lock_finds_its_file_however_accents_are_composed():
    before = {**START, "skills/pru\u0308fung/SKILL.md": SKILL.format("pru\u0308fung")}
    after = {**before, "skills/pru\u0308fung/SKILL.md": SKILL.format("pru\u0308fung") + "x\n"}
    for lock in ("skills/pr\u00fcfung", "skills/pr\u00fcfung#Rules"):
        assert "locked" in {rule for rule, _ in rules(before, after, [lock])}


def test_a_lock_reaches_through_every_link():
    before = {
        **START,
        "skills/verify/shared": link("../../memory/first"),
        "memory/first": link("second"),
        "memory/second/inner": link("../third.md"),
        "memory/third.md": "x",
        "memory/free.md": "x",
    }
    for path, told in (
        ("memory/first", link("third.md")),
        ("memory/second/inner", link("../free.md")),
        ("memory/third.md", "y"),
        ("memory/second/more.md", "y"),
    ):
        assert ("locked", path) in rules(before, {**before, path: told}, ["skills/verify"])
    assert judge(before, {**before, "memory/free.md": "y"}, ["skills/verify"]) == []


# -- against a real file system ------------------------------------------------------------------

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
