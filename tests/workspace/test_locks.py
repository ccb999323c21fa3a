"""What is locked stays as it is, whichever way a change is made."""

from __future__ import annotations

import pytest

from .samples import (
    SKILL,
    START,
    judge,
    link,
    rules,
)

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


@pytest.mark.parametrize(
    ("was", "now", "held"),
    [
        ("# A\n\n## X\n\nx\n\n# B\n", "# A\n\n# B\n\n## X\n\nx\n", True),
        ("# A\n\n## X\n\nx\n", "# Not any more\n\n## X\n\nx\n", True),
        ("## X\n\nx\n", "# Old\n\n## X\n\nx\n", True),
        ("# A\n\n# X\n\nx\n", "# X\n\nx\n\n# A\n", False),
        ("# A\n\n# X\n\nx\n", "# B\n\n# X\n\nx\n", False),
        ("# X\n\nx\n", "<!-- \n# X\n\nx\n\n# Y -->\n", True),
        ("# X\n\nx\n", "a\n<!--\n# X\n\nx\n", True),
        ("# X\n\nx\n", "<Script>\n# X\n\nx\n\n# Y\n</script>\n", True),
        ("# X\n\nx\n", "<!-- note -->\n\n# X\n\nx\n", False),
        ("<!--\n# X\n\nx\n", "y\n<!--\n# X\n\nx\n", False),
    ],
)
def test_a_locked_section_stays_under_its_headings_and_in_sight(was, now, held):
    found = rules({**START, PROMPT: was}, {**START, PROMPT: now}, [f"{PROMPT}#X"])
    assert found == ({("locked", PROMPT)} if held else set())


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
