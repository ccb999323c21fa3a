"""What the manifest locks stays as it is in whole runs, whichever engine tries to change it."""

import json
import os

import pytest

from agent_evolve import Evolver, registry
from agent_evolve.engines.base import EvolutionEngine
from agent_evolve.llm.scripted import ScriptedModel
from agent_evolve.types import StepResult

from .skillforge_support import bash, files, make_workspace

TOTALS = (
    "---\nname: totals\ndescription: How to add up.\n---\n"
    "# Steps\n\nAdd.\n\n# Rules\n\n- Round up.\n\n## Never\n\n- Guess.\n\n# More\n\nx\n"
)
REPORT = "---\nname: report\ndescription: How to report.\n---\nBe brief.\n"
LOCKED = ["skills/dates", "skills/totals#Rules", "skills/report#frontmatter"]
DATES_FILE = "skills/dates/SKILL.md"
TOTALS_FILE = "skills/totals/SKILL.md"
REPORT_FILE = "skills/report/SKILL.md"


class Writes(EvolutionEngine):
    """Changes files as it likes, past every method of the workspace."""

    def __init__(self, change):
        super().__init__()
        self.change = change

    def step(self, workspace, observations, history, trial):
        self.change(workspace.root)
        return StepResult(True, "nothing to see here")


def make(root, locked=LOCKED, engine=""):
    tasks = [
        {"id": f"t{n}", "input": f"Date {n}", "expected": f"day {n}", "split": split}
        for n, split in enumerate(["train"] * 2 + ["holdout"] * 2, 1)
    ]
    manifest = (
        "benchmark: {name: local, tasks: tasks.jsonl, grader: exact}\n"
        f"locked: {json.dumps(locked)}\n{engine}"
    )
    content = {
        "tasks.jsonl": "".join(json.dumps(task) + "\n" for task in tasks),
        TOTALS_FILE: TOTALS,
        REPORT_FILE: REPORT,
        "skills/dates/scripts/run.sh": "echo\n",
    }
    make_workspace(root, content, manifest=manifest)
    return root


def run(root, engine=None, script=None):
    """One cycle with an agent that any change at all makes better."""
    start = files(root / "skills"), files(root / "prompts")

    def agent(request):
        changed = (files(root / "skills"), files(root / "prompts")) != start
        number = request.messages[-1].content.split()[-1]
        better = changed or "Day first." in request.system
        return f"day {number}" if better else f"month {number}"

    def answer(request):
        return script[min(len(model.requests) - 1, len(script) - 1)] if script else "x"

    model = ScriptedModel(answer, name="engine")
    evolver = Evolver(
        root, engine=engine, model=ScriptedModel(agent, name="agent"), evolver_model=model
    )
    return evolver.run(1)


def layers(root):
    return {
        path: data
        for path, data in files(root).items()
        if path.split("/")[0] in ("prompts", "skills", "memory")
    }


def edit(path, old, new):
    def change(root):
        text = (root / path).read_text()
        assert old in text
        (root / path).write_text(text.replace(old, new))

    return change


def replace_by_link(path, target):
    def change(root):
        (root / path).unlink()
        (root / path).symlink_to(target)

    return change


def link_to_changed_copy(root):
    copy = root / "skills/totals/copy.md"
    copy.write_text(TOTALS.replace("Round up", "Round down"))
    replace_by_link(TOTALS_FILE, "copy.md")(root)


def move_skill(root):
    (root / "skills/dates").rename(root / "skills/days")


def link_to_moved_skill(root):
    move_skill(root)
    (root / "skills/dates").symlink_to("days")


def delete_skill(root):
    for path in sorted((root / "skills/dates").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    (root / "skills/dates").rmdir()


def make_executable(root):
    (root / "skills/dates/scripts/run.sh").chmod(0o755)


def add_to_skill(root):
    (root / "skills/dates/more.md").write_text("more\n")


def hard_link(root):
    (root / DATES_FILE).unlink()
    os.link(root / REPORT_FILE, root / DATES_FILE)


def fence(root):
    text = (root / TOTALS_FILE).read_text()
    (root / TOTALS_FILE).write_text(text.replace("# Rules", "```\n# Rules") + "```\n")


RULES = "# Rules\n\n- Round up.\n\n## Never\n\n- Guess.\n"
ATTACKS = {
    "edit a locked skill": edit(DATES_FILE, "ISO", "any"),
    "delete a locked skill": delete_skill,
    "delete its SKILL.md": lambda root: (root / DATES_FILE).unlink(),
    "move a locked skill": move_skill,
    "link to a moved skill": link_to_moved_skill,
    "link to another skill": replace_by_link(DATES_FILE, "../report/SKILL.md"),
    "hard link": hard_link,
    "mode": make_executable,
    "add to a locked skill": add_to_skill,
    "edit a locked heading's text": edit(TOTALS_FILE, "Round up", "Round down"),
    "edit below a locked heading": edit(TOTALS_FILE, "Guess", "Ask"),
    "rename a locked heading": edit(TOTALS_FILE, "# Rules", "# Ideas"),
    "demote a locked heading": edit(TOTALS_FILE, "# Rules", "## Rules"),
    "delete a locked heading": edit(TOTALS_FILE, RULES, ""),
    "move the text to another heading": edit(TOTALS_FILE, "## Never", "# Never"),
    "add a second heading": edit(TOTALS_FILE, "# More", "# Rules\n\nNone.\n\n# More"),
    "hide it in a code block": fence,
    "hide it in a comment": edit(TOTALS_FILE, RULES, f"<!--\n{RULES}\n# x\n-->\n"),
    "move it below another heading": edit(TOTALS_FILE, "# Steps", "# Steps\n\n# Rules"),
    "delete its file": lambda root: (root / TOTALS_FILE).unlink(),
    "link to a changed copy": link_to_changed_copy,
    "edit locked frontmatter": edit(REPORT_FILE, "How to", "Never"),
    "add a key to locked frontmatter": edit(REPORT_FILE, "---\nBe", "allowed-tools: Bash\n---\nBe"),
    "take the frontmatter away": edit(REPORT_FILE, "---\nname", "name"),
    "put a line before the frontmatter": edit(REPORT_FILE, "---\nname", "\n---\nname"),
    "unlock in the manifest": edit("manifest.yaml", "skills/dates", "skills/other"),
}


@pytest.mark.parametrize("change", ATTACKS.values(), ids=ATTACKS)
def test_an_engine_that_writes_files_itself(tmp_path, change):
    root = make(tmp_path / "agent")
    before = files(root)
    cycle = run(root, Writes(change)).cycles[0]
    assert (cycle.verdict, cycle.accepted) == ("failed", False)
    assert any(word in cycle.reason for word in ("locked", "manifest may not")), cycle.reason
    assert {path: files(root)[path] for path in before} == before
    assert (root / "skills/dates/scripts/run.sh").stat().st_mode & 0o111 == 0


def test_what_is_beside_a_lock_may_change(tmp_path):
    root = make(tmp_path / "agent")

    def change(place):
        edit(TOTALS_FILE, "Add.", "Add all.")(place)
        edit(REPORT_FILE, "Be brief.", "Be very brief.")(place)
        edit("prompts/system.md", "You", "Day first. You")(place)

    cycle = run(root, Writes(change)).cycles[0]
    assert cycle.accepted, cycle.reason
    assert "Add all." in (root / TOTALS_FILE).read_text()


REPLIES = {
    "skill": f"CHANGES\nEDIT {DATES_FILE}\n<<<<<<< SEARCH\nISO\n=======\nany\n>>>>>>> REPLACE\n",
    "deletion": "CHANGES\nDELETE skills/dates\n",
    "heading": f"CHANGES\nFILE {TOTALS_FILE}\n```\n{TOTALS.replace('Rules', 'Ideas')}```\n",
    "frontmatter": f"CHANGES\nFILE {REPORT_FILE}\n```\n{REPORT.replace('How', 'Why')}```\n",
}


@pytest.mark.parametrize("reply", REPLIES.values(), ids=REPLIES)
def test_skillforge_that_is_told_to_by_its_model(tmp_path, reply):
    root = make(tmp_path / "agent", engine="engine: {name: skillforge, edit_mode: answer}\n")
    before = layers(root)
    cycle = run(root, script=[reply + "DONE Better."]).cycles[0]
    assert cycle.verdict == "failed"
    assert "locked" in cycle.reason
    assert layers(root) == before


def test_skillforge_in_a_shell(tmp_path):
    root = make(tmp_path / "agent", engine="engine: {name: skillforge, edit_mode: shell}\n")
    before = layers(root)
    command = f"chmod +x skills/dates/scripts/run.sh; rm {TOTALS_FILE}; echo x > {DATES_FILE}"
    cycle = run(root, script=[bash(command), "Done."]).cycles[0]
    assert not cycle.accepted
    assert layers(root) == before


@pytest.mark.parametrize("name", registry.names("engine"))
def test_every_registered_engine_leaves_a_workspace_that_is_locked_whole(tmp_path, name):
    root = make(tmp_path / "agent", ["prompts", "skills", "memory"])
    before = layers(root)
    cycle = run(root, name, script=[REPLIES["skill"] + "DONE Better."]).cycles[0]
    assert not cycle.accepted
    assert layers(root) == before


def test_guided_synthesis_writes_only_what_is_not_locked(tmp_path):
    held, free = (make(tmp_path / n, lock) for n, lock in (("a", ["memory"]), ("b", LOCKED)))
    assert "locked" in run(held, "guided-synthesis").cycles[0].reason
    assert run(free, "guided-synthesis").cycles[0].changes.keys() == {"memory"}
