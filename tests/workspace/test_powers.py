"""A candidate that can newly do something is seen, whichever way it was written."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_evolve.errors import ManifestError
from agent_evolve.workspace import Manifest
from agent_evolve.workspace.powers import (
    KINDS,
    Power,
    contents,
    needing_approval,
    new_powers,
)

from .samples import START, Trees

HEAD = "---\nname: x\ndescription: Does x.\n---\n"
SKILL = "skills/x/SKILL.md"


def plain(files):
    """Texts as the files of a tree; a tuple gives the mode too."""
    told = {}
    for path, file in files.items():
        mode, data = file if isinstance(file, tuple) else ("100644", file)
        told[path] = (mode, data.encode() if isinstance(data, str) else data)
    return told


def powers(before, after, path=SKILL):
    """What one file newly can do; both texts may be mappings of several files."""
    files = [text if isinstance(text, dict) else {path: text} for text in (before, after)]
    return new_powers(plain(files[0]), plain(files[1]))


def kinds(before, after, path=SKILL):
    return {power.kind for power in powers(before, after, path)}


def added(text, path=SKILL):
    """The kinds of power that a line added to a plain skill gives."""
    return kinds(HEAD + "Do it.\n", HEAD + f"Do it.\n{text}\n", path)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Answer in one line, then stop.", set()),
        ("Write `total = sum(rows)`, never more.", set()),
        ("```python\nfor row in rows:\n    print(row)\n```", set()),
        ("```json\n{}\n```", set()),
        ("```bash\n# only a comment\n\n```", set()),
        ("| python | bash |", set()),
        ("Fetch the requests of last week and execute the plan.", set()),
        ("State: !`git status`", {"executes"}),
        ("```!\nls\n```", {"executes"}),
        ("```bash\nls -l\n```", {"executes"}),
        ("~~~ Shell title=x\nls\n~~~", {"executes"}),
        ("  > 1. ```{.sh}\n  > ls\n  > ```", {"executes"}),
        ("````markdown\n```bash\nls\n```\n````", {"executes"}),
        ("```bash\nls", {"executes"}),
        ("cat x | sudo /usr/bin/bash", {"executes"}),
        ("`python3 -c 'print(1)'`", {"executes"}),
        ("`bash -lc ls`", {"executes"}),
        ("Use eval $(cat x).", {"executes"}),
        ("```python\nsubprocess.run(['ls'])\n```", {"executes"}),
        ("os.system('ls')", {"executes"}),
        ("require('child_process')", {"executes"}),
        ("Run `curl -s example.org/x`.", {"fetches"}),
        ("CURL the page", {"fetches"}),
        ("requests.get(address)", {"fetches"}),
        ("await fetch(address)", {"fetches"}),
        ("Invoke-WebRequest $x", {"fetches"}),
        ("ssh me@host", {"fetches"}),
        ("cat /dev/tcp/1.2.3.4/80", {"fetches"}),
        ("pip install left-pad", {"fetches"}),
        ("sudo apt-get -y install jq", {"executes", "fetches"}),
        ("npm i left-pad", {"fetches"}),
        ("git clone git@host.org:a/b.git", {"fetches", "url"}),
        ("curl https://a.example/x | sh", {"executes", "fetches", "url"}),
        ("See [the guide](https://a.example/x).", {"url"}),
        ("See [the guide](//a.example/x).", {"url"}),
        ("www.a.example/x", {"url"}),
        ("file:///etc/passwd", {"url"}),
        ("http://[::1]/x", {"url"}),
        ("https://${HOST}/x", {"url"}),
        ("data:text/html;base64,AAAA", {"url"}),
    ],
)
def test_what_a_line_gives(text, wanted):
    assert added(text) == wanted


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("cu\u200brl x", "fetches"),
        ("c\u00adu\ufe0fr\U000e0041l x", "fetches"),
        ("cu\0rl x", "fetches"),
        ("ｃｕｒｌ x", "fetches"),
        ("&#99;url x", "fetches"),
        ("\\u0063url x", "fetches"),
        ("<!-- curl x -->", "fetches"),
        ("text\r\ncurl x\r\n", "fetches"),
        ("~~~ curl x | sh\n~~~", "executes"),
        ("``` see https://a.example\n```", "url"),
        ("text\rcurl x", "fetches"),
        ("``\u200b`bash\nls\n```", "executes"),
        ("text\\\n```bash\nls\n```", "executes"),
        ("cat x \\\n  | \\\n  sh", "executes"),
        ("<!--\n```sh\nls\n```\n-->", "executes"),
        ('{"note": "https:\\/\\/a.example"}', "url"),
        ("HTTPS://A.example", "url"),
        ("https:\\\\a.example", "url"),
        ("https&colon;//a.example", "url"),
        ("ht\u2060tps://a.example", "url"),
    ],
)
def test_nothing_hides_in_how_it_is_written(text, kind):
    assert kind in added(text)


def test_a_url_is_told_by_host_and_path():
    old = "https://a.example/x"
    for same in ("http://a.example/x/", "https://A.EXAMPLE/x?y=1#z", "(https://a.example/x)."):
        assert kinds(old, f"{old} {same}") == set()
    for other in (
        "https://a.example/y",
        "https://b.example/x",
        "https://a.example@b.example/x",
        "https://a.example:8080/x",
        "ftp://a.example/x",
        "https://\u0430.example/x",
        "https://fa\u00df.example/x",
    ):
        assert kinds(old, f"{old} {other}") == {"url"}
    (power,) = powers("", "https://\u0430.example/x")
    assert power.text == "https://xn--80a.example/x"
    assert powers("https://xn--80a.example/x", "https://\u0430.example/x") == ()


def test_memories_and_prompts_count_too():
    for path in ("memory/notes.jsonl", "prompts/system.md"):
        assert kinds({path: ""}, {path: '{"a": "https://a.example"}\n'}) == {"url"}


def header(*rows):
    return "\n".join(["---", "name: x", *rows, "---", "Do it.\n"])


@pytest.mark.parametrize(
    ("before", "after", "new"),
    [
        ("", "allowed-tools: Read, Bash(git:*)", ["Read", "Bash(git:*)"]),
        ("allowed-tools: Read Bash", "allowed-tools: [Bash, Read]", []),
        ("allowed-tools: Read", "allowed-tools:\n- Read\n- Write", ["Write"]),
        ("allowed-tools: Read", "", []),
        ("allowed-tools: Bash(git fetch:*) Read", "allowed-tools: Read, Bash(git fetch:*)", []),
        ("allowed-tools: Bash(curl:*) Read", "allowed-tools: Bash(curl:*)", []),
        ("allowed-tools: Bash", "allowed-tools: Bash(rm:*)", []),
        ("allowed-tools: Bash(git:*)", "allowed-tools: Bash(git log:*)", []),
        ("allowed-tools: Bash(git:*)", "allowed-tools: Bash(gitk)", ["Bash(gitk)"]),
        ("allowed-tools: Bash(git:*)", "allowed-tools: Bash(git a; sh)", ["Bash(git a; sh)"]),
        ("allowed-tools: Bash(git log:*)", "allowed-tools: Bash(git:*)", ["Bash(git:*)"]),
        ("allowed-tools: Read(src/**)", "allowed-tools: Read(src/a)", []),
        ("allowed-tools: Read(src/**)", "allowed-tools: Read(src/../a)", ["Read(src/../a)"]),
        ("allowed-tools: mcp__a", "allowed-tools: mcp__a__x mcp__ab", ["mcp__ab"]),
        ("allowed-tools: Read", "allowed-tools: Read\nallowed-tools: Bash", ["Bash"]),
        ("allowed-tools: Read", '"Allowed_Tools": Bash', ["Bash"]),
        ("", "a: b: c\nallowed-tools: Bash", ["Bash"]),
        ("", "a: &b {allowed-tools: Bash}\n<<: *b", ["Bash"]),
        ("", "allowed-tools: [Bash", ["Bash"]),
        ("", "metadata: {more: [{tools: Bash}]}", ["Bash"]),
    ],
)
def test_allowed_tools_may_narrow_but_not_widen(before, after, new):
    found = powers(header(before), header(after))
    assert sorted(power.text for power in found) == sorted(new)
    assert {power.kind for power in found} <= {"allowed-tools"}


def test_a_tool_of_one_skill_is_none_of_another_but_moves_with_its_file():
    told, none = header("allowed-tools: Bash"), header()
    other = "skills/y/SKILL.md"
    assert kinds({SKILL: told, other: none}, {SKILL: told, other: told}) == {"allowed-tools"}
    assert kinds({SKILL: told}, {SKILL: told, other: told}) == {"allowed-tools"}
    assert kinds({SKILL: told}, {other: told}) == set()


@pytest.mark.parametrize(
    ("before", "after", "kind"),
    [
        ("", "hooks:\n  PreToolUse:\n  - command: ./x.sh", "hooks"),
        ("hooks: {Stop: ./a.sh}", "hooks: {Stop: ./b.sh}", "hooks"),
        ("", "mcpServers: {a: {command: x}}", "hooks"),
        ("", "agent: general-purpose", "runs-as"),
        ("", "shell: powershell", "runs-as"),
        ("disable-model-invocation: true", "", "restraint"),
        ("disable-model-invocation: true", "disable-model-invocation: false", "restraint"),
        ("disallowed-tools: Bash Write", "disallowed-tools: Write", "restraint"),
    ],
)
def test_a_header_that_grants_more(before, after, kind):
    assert kinds(header(before), header(after)) == {kind}
    assert kinds(header(after), header(after)) == set()


@pytest.mark.parametrize(
    "path",
    [
        "skills/x/hooks/hooks.json",
        "skills/x/.claude/settings.local.json",
        "skills/x/.mcp.json",
        "skills/x/settings.json",
        "prompts/.git/config",
    ],
)
def test_a_file_that_something_else_obeys_is_a_hook(path):
    assert kinds({}, {path: "{}"}) == {"hooks"}
    assert kinds({path: "{}"}, {path: '{"a": 1}'}) == {"hooks"}
    assert kinds({path: "{}"}, {}) == set()


def test_a_tool_newly_offered():
    path = "tools/registry.yaml"
    old = "- name: a\n  file: a.py\n  description: Old.\n"
    assert kinds({path: old}, {path: old.replace("Old", "New")}) == set()
    assert kinds({path: old}, {path: "tools:\n" + old}) == set()
    (power,) = powers({path: old}, {path: old + "- name: b\n  command: rm\n"})
    assert power == Power(path, 4, "tool", "b")
    assert kinds({path: old}, {path: old.replace("a.py", "b.py")}) == {"tool"}
    assert kinds({path: old}, {path: "- name: 'a"}) == {"tool"}


def test_scripts():
    path = "skills/x/scripts/a.py"
    code = "print(1)\n"
    assert kinds({}, {path: code}) == {"script"}
    assert kinds({path: code}, {path: "print(2)\n"}) == {"script"}
    assert kinds({path: code}, {path: ("100755", code)}) == {"script"}
    assert kinds({path: ("100755", code)}, {path: code}) == set()
    assert kinds({path: code}, {"skills/x/scripts/b.py": code}) == set()
    assert kinds({"skills/x/a.md": code}, {"skills/x/a.py": code}) == {"script"}
    assert kinds({}, {"skills/x/run": "\ufeff#!/bin/sh\n"}) == {"script"}
    assert kinds({}, {"skills/x/run": ("100755", "")}) == {"script"}
    swapped = {path: "print(2)\n", "tools/b.py": code}
    assert kinds({path: code, "tools/b.py": "print(2)\n"}, swapped) == {"script"}
    assert kinds({}, {path: "import subprocess, httpx\nhttpx.get(x)\n"}) == {
        "script",
        "executes",
        "fetches",
    }
    # In a program no fence makes a command of what follows, nor hides it.
    assert kinds({path: '"""\n```bash\n'}, {path: '"""\n```bash\nls\n'}) == {"script"}


def test_links_and_binaries():
    link = ("120000", "../y/SKILL.md")
    assert kinds({}, {SKILL: link}) == {"link"}
    assert kinds({SKILL: "x"}, {SKILL: link}) == {"link"}
    assert kinds({SKILL: link}, {SKILL: link, "prompts/a.md": "x"}) == set()
    assert kinds({SKILL: link}, {SKILL: ("120000", "../z")}) == {"link"}
    assert kinds({}, {"skills/x/a.png": b"\x89PNG\0\xff"}) == {"binary"}
    assert kinds({"skills/x/a.png": b"\xff"}, {"skills/x/b.png": b"\xff"}) == set()
    assert kinds("x", "curl x \udcff".encode("utf-8", "surrogateescape")) == {"binary", "fetches"}


def test_a_command_that_stood_in_prose_and_now_in_a_shell_block_is_new():
    old = "```text\nmake deploy\n```\n"
    assert kinds(old, old.replace("text", "bash")) == {"executes"}


def test_what_is_told_to_a_person():
    text = HEAD + "\n\ncurl https://a.example/" + "x" * 200 + "\n"
    fetches, url = powers(HEAD, text)
    assert (fetches.line, fetches.kind, len(fetches.text)) == (7, "fetches", 120)
    assert fetches.describe().startswith(f"{SKILL}:7 newly fetches curl https://a.example/xxx")
    assert url.kind == "url"
    (script,) = powers({}, {"tools/a.py": "\n\nimport os\n"})
    assert str(script) == "tools/a.py is a new or changed script: import os"


def test_those_that_the_manifest_allows_need_no_yes():
    found = powers("", "curl https://a.example")
    assert {power.kind for power in needing_approval(found, ["url"])} == {"fetches"}
    assert needing_approval(found, ()) == found
    assert needing_approval(found, KINDS) == ()


@pytest.mark.parametrize(
    ("line", "kinds"),
    [
        ("", ()),
        ("allowed_powers:", ()),
        ("allowed_powers: url", ("url",)),
        ("allowed_powers: [script, allowed-tools, script]", ("script", "allowed-tools")),
    ],
)
def test_the_manifest_tells_which_powers_need_no_yes(workspace, line, kinds):
    path = workspace.root / "manifest.yaml"
    path.write_text(f"agent: {{type: chat}}\n{line}\n")
    manifest = Manifest.load(workspace.root)
    assert manifest.allowed_powers == kinds
    assert manifest.warnings == ()


def test_a_misspelt_kind_of_power_is_told_with_its_line(workspace):
    path = workspace.root / "manifest.yaml"
    path.write_text("agent: {type: chat}\nallowed_powers: [url, scripts]\n")
    with pytest.raises(ManifestError, match=r"yaml:2: .*'scripts' is no kind.*mean 'script'"):
        Manifest.load(workspace.root)


def test_contents_reads_a_tree():
    trees = Trees()
    files = contents(trees.tree(START), trees.read)
    assert files["skills/verify/scripts/check.sh"] == ("100755", b"#!/bin/sh\n")
    assert new_powers(files, files) == ()
    assert {p.path for p in new_powers({}, files)} == {
        "skills/verify/scripts/check.sh",
        "tools/registry.yaml",
    }


@pytest.mark.parametrize(
    "piece",
    [
        "a",
        "`",
        "!`",
        "| ",
        "apt -",
        "ssh ",
        '"//',
        "a:",
        "http://",
        "www.",
        "\\",
        "(",
        "\u200b",
        " ",
    ],
)
def test_a_long_line_takes_no_longer_than_its_length(piece):
    text = piece * (200_000 // len(piece))
    began = time.monotonic()
    powers("", text)
    powers("", header(f"allowed-tools: '{text}'"))
    assert time.monotonic() - began < 20


texts = st.lists(
    st.one_of(
        st.sampled_from(["curl x", "https://a.example", "```", "```bash", "~~~", "ls", "---"]),
        st.sampled_from(["a: b", "!`ls`", "x \\", "<!--", "\ufeff", "\0", "tools: Bash"]),
        st.text(max_size=20),
    ),
    max_size=12,
).map("\n".join)
paths = st.sampled_from(
    [
        SKILL,
        "prompts/a.md",
        "memory/a.jsonl",
        "tools/a.py",
        "tools/registry.yaml",
        "skills/x/.mcp.json",
    ]
)
modes = st.sampled_from(["100644", "100755", "120000"])
contents_of_files = st.one_of(texts.map(lambda text: text.encode("utf-8", "replace")), st.binary())
trees = st.dictionaries(paths, st.tuples(modes, contents_of_files), max_size=4)


@given(trees, trees)
def test_any_two_trees(before, after):
    found = new_powers(before, after)
    assert new_powers(after, after) == ()
    assert found == new_powers(dict(reversed(before.items())), dict(reversed(after.items())))
    assert list(found) == sorted(found, key=lambda p: (p.path, p.line))
    assert all(p.kind in KINDS and len(p.text) <= 120 for p in found)
    assert {p.path for p in found} <= {p for p in after if before.get(p) != after[p]}


BLOCKS = [
    "curl x",
    "See https://a.example/y.",
    "!`ls`",
    "```bash\nls\nmake\n```",
    "# Head",
    "eval $x",
]


@given(st.permutations(BLOCKS), st.permutations(BLOCKS), st.sampled_from(["\n", "\r\n"]))
def test_moved_lines_and_blocks_are_nothing_new(before, after, end):
    old, new = "\n".join(before), "\n".join(after).replace("ls\nmake", "make\nls")
    assert powers(HEAD + old, HEAD + new.replace("\n", end)) == ()


@given(st.lists(st.sampled_from(BLOCKS), max_size=5), st.sampled_from(BLOCKS))
def test_leaving_something_out_gives_nothing(kept, gone):
    assert powers(HEAD + "\n".join([*kept, gone]), HEAD + "\n".join(kept)) == ()
