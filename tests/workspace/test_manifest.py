"""``manifest.yaml``: what it may say, and the error that names file, line, key and fix."""

from __future__ import annotations

import contextlib
import textwrap

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from agent_evolve.errors import ManifestError
from agent_evolve.workspace import AgentWorkspace, Manifest
from agent_evolve.workspace.strict_yaml import YamlFault, load


@pytest.fixture
def write(tmp_path):
    """Writes a manifest and returns the workspace."""

    def write(text: str | bytes) -> AgentWorkspace:
        data = text if isinstance(text, bytes) else textwrap.dedent(text).encode()
        (tmp_path / "manifest.yaml").write_bytes(data)
        return AgentWorkspace(tmp_path)

    return write


def test_a_whole_manifest(write, tmp_path):
    for folder in ("rules", "skills/house-style"):
        (tmp_path / folder).mkdir(parents=True)
    manifest = write(
        """
        name: my-agent
        version: 1.10
        agent: {type: chat, memory_limit: 20}
        evolvable_layers: [prompts, rules]
        layers: [data]
        reload_strategy: cold
        benchmark: {name: local, tasks: tasks.jsonl, grader: normalised}
        engine: guided-synthesis
        model: local:qwen2.5-coder-1.5b
        locked: [skills/house-style/]
        config: {batch_size: 5, holdout_ratio: 0.3}
        """
    ).manifest
    assert manifest.name == "my-agent"
    assert manifest.version == "1.10"
    assert (manifest.agent_type, manifest.entrypoint) == ("chat", None)
    assert manifest.agent_options == {"memory_limit": 20}
    assert manifest.evolvable_layers == ("prompts", "rules")
    assert manifest.layers == ("prompts", "skills", "memory", "tools", "data", "rules")
    assert manifest.reload_strategy == "cold"
    assert manifest.benchmark == {"name": "local", "tasks": "tasks.jsonl", "grader": "normalised"}
    assert manifest.engine == {"name": "guided-synthesis"}
    assert manifest.model == "local:qwen2.5-coder-1.5b"
    assert manifest.locked == ("skills/house-style",)
    assert manifest.config == {"batch_size": 5, "holdout_ratio": 0.3}
    assert manifest.warnings == ()
    assert manifest.path == tmp_path / "manifest.yaml"


def test_the_least_manifest_has_the_documented_defaults(write, tmp_path):
    manifest = write("agent: {entrypoint: my_agent.MyAgent}\n").manifest
    assert manifest.name == tmp_path.name
    assert (manifest.agent_type, manifest.entrypoint) == ("reference", "my_agent.MyAgent")
    assert manifest.evolvable_layers == ("prompts", "skills", "memory")
    assert manifest.layers == ("prompts", "skills", "memory", "tools")
    assert manifest.reload_strategy == "hot"
    assert (manifest.benchmark, manifest.engine, manifest.model) == (None, None, None)
    assert (manifest.locked, manifest.config) == ((), {})


def test_a_byte_order_mark_and_windows_line_ends_are_read(write):
    manifest = write(b"\xef\xbb\xbfname: x\r\nagent:\r\n  type: chat\r\n").manifest
    assert (manifest.name, manifest.agent_type) == ("x", "chat")


BOMB = "a0: &a0 [x]\n" + "".join(
    f"a{n + 1}: &a{n + 1} [{', '.join([f'*a{n}'] * 10)}]\n" for n in range(9)
)
MERGES = "a0: &a0 {x: 1}\n" + "".join(
    f"a{n + 1}: &a{n + 1} {{<<: [{', '.join([f'*a{n}'] * 10)}]}}\n" for n in range(9)
)


@pytest.mark.parametrize(
    ("text", "line", "message", "fix"),
    [
        ("agent: {type: chat\n", 2, "not valid YAML", "correct line 2"),
        ("name: a\nversion: b: c\n", 2, "mapping values are not allowed", "needs quotes"),
        ("name: a\n\tagent: b\n", 2, "found a tab character", "correct line 2"),
        ("- agent\n- layers\n", 1, "is a list, not a mapping", "agent: {type: chat}"),
        ("just words\n", 1, "is text, not a mapping", "agent: {type: chat}"),
        ("", 1, "is empty", "agent-evolve init"),
        ("# nothing\n", 1, "is empty", "agent-evolve init"),
        ("a: 1\n---\nb: 2\n", 2, "another document", "correct line 2"),
        ("name: x\nagent: chat\n", 2, "agent: must be a mapping, not text", "agent: {type: chat}"),
        ("agent: my.Agent\n", 1, "must be a mapping", "agent: {entrypoint: my.Agent}"),
        ("agent: [chat]\n", 1, "must be a mapping, not a list", "agent: {type: chat}"),
        ("agent: {}\n", 1, "gives neither type nor entrypoint", "agent: {type: chat}"),
        ("agent: {type: 3}\n", 1, "type must be text", "agent: {type: chat}"),
        ("agent: {type: reference}\n", 1, "needs an entrypoint", "entrypoint: my_agent.MyAgent"),
        ("\nagent:\n  entrypoint: MyAgent\n", 2, "'MyAgent' has no dot", "my_agent.MyAgent"),
        ("agent: {entrypoint: 'a:B'}\n", 1, "not a dotted path", "agent: {entrypoint: a.B}"),
        ("agent: {entrypoint: ../a.B}\n", 1, "not a dotted path", "my_agent.MyAgent"),
        ("agent: {entrypoint: 3.5}\n", 1, "entrypoint 3.5", "my_agent.MyAgent"),
        ("agent: {1: x, type: chat}\n", 1, "the key 1 is not text", '"1"'),
        ("evolvable_layers: []\n", 1, "is empty, so nothing could", "[prompts, skills, memory]"),
        ("evolvable_layers:\n", 1, "is empty, so nothing could", "[prompts, skills, memory]"),
        ("name: x\nevolvable_layers: [promts]\n", 2, "Did you mean 'prompts'?", "mkdir"),
        ("evolvable_layers: [knowledge]\n", 1, "unknown layer 'knowledge'", "mkdir"),
        ("evolvable_layers: {a: b}\n", 1, "must be a list, not a mapping", "[skills]"),
        ("evolvable_layers: [1]\n", 1, "1 is not text", ""),
        ("layers: [../other]\n", 1, "'../other' can't be a layer", "such as 'skills'"),
        ("layers: [/etc]\n", 1, "'/etc' can't be a layer", "such as 'skills'"),
        ("layers: [evolution]\n", 1, "holds the history", "such as 'skills'"),
        ("evolvable_layers: [.git]\n", 1, "'.git' can't be a layer", "such as 'skills'"),
        ("layers: [manifest.yaml]\n", 1, "it is this manifest", "such as 'skills'"),
        ("reload_strategy: warm\n", 1, "neither 'hot' nor 'cold'", "reload_strategy: hot"),
        ("reload_strategy: [hot]\n", 1, "must be text, not a list", ""),
        ("benchmark: [local]\n", 1, "must be a name or a mapping", "benchmark: {name:"),
        ("benchmark: {tasks: t.jsonl}\n", 1, "has no name", "name: local"),
        ("engine: {edit_mode: answer}\n", 1, "has no name", "name: skillforge"),
        ("model: {name: x}\n", 1, "must be text, not a mapping", "anthropic:claude"),
        ("config: [batch_size]\n", 1, "must be a mapping, not a list", ""),
        ("contract_version: 2.0\n", 1, "'2.0' is not a layout", 'contract_version: "1.0"'),
        ("locked: [../secret]\n", 1, "not a path in the workspace", "skills/house-style"),
        ("locked: ['skills/x#']\n", 1, "not a path in the workspace", "skills/house-style"),
        ("name: a\nagent: {type: chat}\nname: b\n", 3, "key 'name' is given twice", "line 3"),
        ("config:\n  a: 1\n  a: 2\n", 3, "key 'a' is given twice", "correct line 3"),
        ("version: 1\nconfig: {since: 2026-13-45}\n", 2, "is not a timestamp", "correct line 2"),
        ("config: &c {again: *c}\n", 1, "alias leads back to what it is part of", "line 1"),
        (BOMB, 6, "aliases make this more than 100,000 values", "correct line 6"),
        (MERGES, 6, "aliases make this more than 100,000 values", "correct line 6"),
        ("config: " + "[" * 50_000, 1, "nesting depth", ""),
        ("agent: !!python/object/apply:os.system ['true']\n", 1, "constructor for the tag", ""),
    ],
)
def test_what_can_not_be_names_file_line_and_fix(write, text, line, message, fix):
    workspace = write(text)
    with pytest.raises(ManifestError) as caught:
        _ = workspace.manifest
    assert caught.value.message.startswith(f"{workspace.root / 'manifest.yaml'}:{line}")
    assert message in caught.value.message
    assert fix in caught.value.fix


@pytest.mark.parametrize(
    ("data", "where", "message"),
    [
        (b"name: x\nversion: caf\xe9\n", ":2: ", "not UTF-8 (byte 0xe9)"),
        ("name: x\n".encode("utf-16"), ":1: ", "not UTF-8 (byte 0xff)"),
        (b"name: x\nversion: \x00\n", ":2:10: ", "U+0000 is not allowed"),
    ],
)
def test_bytes_that_are_no_text_are_named(write, data, where, message):
    with pytest.raises(ManifestError) as caught:
        _ = write(data).manifest
    assert f"manifest.yaml{where}" in caught.value.message
    assert message in caught.value.message


def test_a_missing_manifest_says_how_to_make_one(tmp_path):
    for root in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(ManifestError, match="agent-evolve init"):
            Manifest.load(root)
    (tmp_path / "file").write_text("")
    with pytest.raises(ManifestError, match="a workspace is a directory"):
        Manifest.load(tmp_path / "file")
    (tmp_path / "manifest.yaml").mkdir()
    with pytest.raises(ManifestError, match="no such file"):
        Manifest.load(tmp_path)


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        ("agnet: {type: chat}\n", ":1: unknown key 'agnet' is ignored; did you mean 'agent'?"),
        ("name: x\n\nmodle: y\n", ":3: unknown key 'modle' is ignored; did you mean 'model'?"),
        ("xyz: 1\n", ":1: unknown key 'xyz' is ignored; known: name, version,"),
        ("1: 1\n", ":1: unknown key 1 is ignored"),
        ("locked: [skils/x]\n", ":1: locked: 'skils/x' is in no layer, so it protects nothing"),
        ("locked: [skills/x]\n", ":1: locked: 'skills/x' does not exist"),
    ],
)
def test_what_is_odd_but_harmless_is_a_warning_and_not_logged(write, caplog, text, warning):
    manifest = write(text).manifest
    assert len(manifest.warnings) == 1
    assert warning in manifest.warnings[0]
    assert not caplog.records


def test_unknown_keys_are_kept(write):
    assert write("owner: {team: billing}\n").manifest.extra == {"owner": {"team": "billing"}}


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=8),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner),
        max_leaves=8,
    )
)
def test_values_are_read_as_pyyaml_reads_them(value):
    text = yaml.safe_dump(value, allow_unicode=True)
    assert load(text)[0] == yaml.safe_load(text)


@given(st.text(st.sampled_from("ab:-*&[]{}#|>'\"!?% \n\t1.0<"), max_size=30))
def test_any_text_is_read_or_refused_as_yaml(text):
    with contextlib.suppress(YamlFault):
        load(text)
