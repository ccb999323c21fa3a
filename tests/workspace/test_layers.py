"""What a candidate may change, judged by its files alone."""

from __future__ import annotations

import pytest

from agent_evolve.workspace.layers import MAX_ADDED_FILES, MAX_FILE_BYTES, count_changes

from .samples import (
    EXECUTABLE,
    REPOSITORY,
    SKILL,
    START,
    Trees,
    judge,
    link,
    rules,
)


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
