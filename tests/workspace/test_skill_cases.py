"""Awkward skills as people have them: read as expected, and edited by their span alone."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import unicodedata
from pathlib import Path

import pytest

from agent_evolve.workspace import AgentWorkspace
from agent_evolve.workspace.skill_file import SkillFile

CASES = Path(__file__).parents[1] / "data" / "skill_cases"
INDEX = json.loads((CASES / "index.json").read_bytes())


@pytest.fixture
def workspace(tmp_path):
    (tmp_path / "manifest.yaml").write_text("agent: {type: chat}\n")
    shutil.copytree(CASES, tmp_path / "skills", symlinks=True)
    return AgentWorkspace(tmp_path)


def bytes_of(workspace: AgentWorkspace, name: str) -> bytes:
    return (workspace.root / "skills" / name / "SKILL.md").read_bytes()


@pytest.mark.parametrize("name", INDEX)
def test_a_case_is_read_as_its_index_says(name):
    expected = INDEX[name]
    data = (CASES / name / "SKILL.md").read_bytes()
    skill = SkillFile.parse(data)
    assert hashlib.sha256(data).hexdigest() == expected["sha256"]
    assert len(data) == expected["bytes"]
    assert skill.parses == expected["parses"]
    assert skill.name == expected["name"]
    assert skill.bom == expected["bom"]
    assert skill.eol == {"lf": b"\n", "crlf": b"\r\n"}[expected["eol"]]
    if "recoverable" in expected:
        assert skill.recoverable == expected["recoverable"]
    if "description_contains" in expected:
        assert expected["description_contains"] in skill.description
    if "description_over" in expected:
        assert len(skill.description) > expected["description_over"]
    if "extra_keys" in expected:
        assert set(expected["extra_keys"]) <= set(skill.keys)


@pytest.mark.parametrize("name", INDEX)
def test_writing_back_what_was_read_changes_no_byte(workspace, name):
    before = bytes_of(workspace, name)
    workspace.write_skill(name, workspace.read_skill(name))
    assert bytes_of(workspace, name) == before
    # What a model sends back: line feeds only, no byte order mark, no last line end.
    text = workspace.read_skill(name).replace("\r\n", "\n").removeprefix("\ufeff").rstrip("\n")
    workspace.write_skill(name, text)
    assert bytes_of(workspace, name) == before


@pytest.mark.parametrize("name", INDEX)
def test_changing_one_word_of_the_body_changes_one_line(workspace, name):
    before = bytes_of(workspace, name)
    skill = workspace.read_skill_file(name)
    words = [word for word in skill.body_text.split() if word.isalpha()]
    word = next(word for word in words if skill.body_text.count(word) == 1)
    text = workspace.read_skill(name).replace("\r\n", "\n")
    head, tail = text[: -len(skill.body_text)], text[-len(skill.body_text) :]
    workspace.write_skill(name, head + tail.replace(word, "CHANGED"))
    after = bytes_of(workspace, name)
    assert after == skill.replace_in_body(word, "CHANGED").data
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    changed = [number for number, pair in enumerate(zip(old, new, strict=True)) if len({*pair}) > 1]
    assert len(changed) == 1
    assert new[changed[0]] == old[changed[0]].replace(word.encode(), b"CHANGED")


@pytest.mark.parametrize("name", [name for name in INDEX if name != "chat-instead-of-skill"])
def test_changing_the_description_leaves_the_body_and_all_other_keys(workspace, name):
    skill = workspace.read_skill_file(name)
    text = "Says: what [it] does, # when, and why."
    changed = skill.with_description(text)
    assert changed.description == text
    assert changed.name == skill.name
    assert changed.keys == skill.keys
    assert changed.body_text == skill.body_text
    old, new = skill.data.splitlines(), changed.data.splitlines()
    assert set(new) - set(old) == {line for line in new if b"Says: what" in line}
    lost = b"\n".join(line for line in old if line not in new).decode()
    wording = "".join(skill.description.split())
    assert "".join(lost.split()).removeprefix("description:").strip(">-\"'") == wording


@pytest.mark.parametrize("name", [name for name in INDEX if name != "chat-instead-of-skill"])
def test_an_edited_file_is_written_as_it_is_and_listed_anew(workspace, name):
    assert {skill.name: skill for skill in workspace.list_skills()}[name].description
    edited = workspace.read_skill_file(name).with_description("Says: new.")
    workspace.write_skill(name, edited)
    assert bytes_of(workspace, name) == edited.data
    assert {s.name: s.description for s in workspace.list_skills()}[name] == "Says: new."


def test_every_case_is_listed_under_its_directory(workspace):
    listed = {skill.name: skill for skill in workspace.list_skills()}
    assert sorted(listed) == sorted(INDEX)
    assert listed["chat-instead-of-skill"].description == ""
    assert listed["incident-timeline"].description.startswith("Builds an incident timeline: coll")
    assert listed["legacy-deploy-runbook"].description.startswith("Walks through a production")
    assert listed["shared-checklist"].description.startswith("Runs the team's review checklist.")
    assert listed["meeting-minutes"].description == (
        "Turns a raw transcript into minutes with decisions, owners and dates.\n"
        'Use when the user pastes a call transcript, or says "write this up" after a meeting.'
    )


def test_a_name_matches_however_its_accents_are_composed(workspace):
    name = "überprüfung-vertrag"
    decomposed = unicodedata.normalize("NFD", name)
    assert workspace.read_skill(decomposed) == workspace.read_skill(name)
    workspace.write_skill(decomposed, workspace.read_skill(name) + "Neu.\n")
    assert (workspace.root / "skills" / name / "SKILL.md").read_text().endswith("Neu.\n")
    assert decomposed not in os.listdir(workspace.root / "skills")


def test_a_skill_behind_a_link_is_written_to_its_target(workspace):
    path = workspace.root / "skills" / "shared-checklist" / "SKILL.md"
    workspace.write_skill(
        "shared-checklist", workspace.read_skill("shared-checklist") + "- More.\n"
    )
    assert path.is_symlink()
    assert (path.parent / "_shared" / "checklist.md").read_text().endswith("- More.\n")


def test_writing_a_skill_leaves_its_other_files_and_their_modes(workspace):
    folder = workspace.root / "skills" / "invoice-reader"

    def others():
        return {
            path.relative_to(folder): (path.stat().st_mode, path.read_bytes())
            for path in folder.rglob("*")
            if path.is_file() and path != folder / "SKILL.md"
        }

    before = others()
    assert len(before) == len(INDEX["invoice-reader"]["files"])
    workspace.write_skill("invoice-reader", workspace.read_skill("invoice-reader") + "\nMore.\n")
    assert others() == before


def test_talk_about_a_skill_is_refused_as_a_skill(workspace):
    talk = (CASES / "chat-instead-of-skill" / "SKILL.md").read_text()
    before = bytes_of(workspace, "tidy-csv-export")
    for name in ("tidy-csv-export", "brand-new"):
        with pytest.raises(Exception, match="not a skill: no frontmatter"):
            workspace.write_skill(name, talk)
    assert bytes_of(workspace, "tidy-csv-export") == before
    assert not (workspace.root / "skills" / "brand-new").exists()


@pytest.mark.parametrize(
    ("name", "line", "column", "words"),
    [
        ("incident-timeline", 3, 41, "without quotes"),
        ("branch-cleaner", 4, 16, "starts with '['"),
        ("tab-indented", 5, 1, "tab used for indentation"),
        ("chat-instead-of-skill", 1, 1, "no frontmatter"),
        ("appliance-manuals", 3, 1, "1073 characters"),
        ("legacy-deploy-runbook", 2, 1, "lower case"),
        ("legacy-deploy-runbook", 2, 1, "differs from the directory"),
        ("no-name-field", 1, 1, "no name"),
        ("api-style-guide", 1, 1, "727 lines"),
        ("überprüfung-vertrag", 8, 35, "U+200B"),
    ],
)
def test_what_is_odd_is_reported_with_its_place(workspace, name, line, column, words):
    where = f"skills/{name}/SKILL.md"
    found = [problem for problem in workspace.problems() if problem.path == where]
    assert any((p.line, p.column) == (line, column) and words in p.message for p in found), [
        str(p) for p in found
    ]


def test_what_is_in_order_is_not_reported(workspace):
    noisy = {problem.path.split("/")[1] for problem in workspace.problems()}
    assert not noisy & {"tidy-csv-export", "meeting-minutes", "invoice-reader", "shared-checklist"}


def test_a_link_that_was_checked_out_as_text_is_named_as_one():
    skill = SkillFile.parse(b"../../shared/checklist.md")
    assert [problem.code for problem in skill.problems] == ["link-as-text"]
    assert "checked out as a text file" in skill.problems[0].message
