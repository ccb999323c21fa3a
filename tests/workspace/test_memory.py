"""Memory as JSONL: what is appended is read back, and no line is ever lost."""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_evolve.errors import WorkspaceError
from agent_evolve.workspace import AgentWorkspace


@pytest.fixture
def workspace(tmp_path):
    return AgentWorkspace(tmp_path)


def file_of(workspace, category="episodic"):
    return workspace.root / "memory" / f"{category}.jsonl"


def test_entries_are_lines_of_a_category(workspace):
    workspace.add_memory({"lesson": "dates are day first"})
    workspace.add_memory({"lesson": "überall"}, "rules")
    workspace.add_memory({"lesson": "zwei"}, "rules")
    assert workspace.list_memory_categories() == ["episodic", "rules"]
    assert workspace.read_memories() == [{"lesson": "dates are day first"}]
    assert file_of(workspace, "rules").read_text() == '{"lesson": "überall"}\n{"lesson": "zwei"}\n'
    assert workspace.read_memories("nothing") == []


def test_the_newest_of_all_categories_come_last(workspace):
    for number in range(3):
        workspace.add_memory({"a": number}, "a")
    for number in range(5):
        workspace.add_memory({"b": number}, "b")
    assert workspace.read_all_memories(limit=3) == [{"b": 3}, {"a": 2}, {"b": 4}]
    assert len(workspace.read_all_memories(limit=None)) == 8
    assert len(workspace.read_all_memories(limit=100)) == 8
    assert workspace.read_all_memories(limit=0) == workspace.read_all_memories(limit=-1) == []


def test_a_torn_last_line_is_kept_and_told_and_the_next_entry_starts_a_new_one(workspace, caplog):
    workspace.add_memory({"n": 1})
    path = file_of(workspace)
    path.write_bytes(path.read_bytes() + b'{"n": 2, "text": "cut o')
    assert workspace.read_memories() == [{"n": 1}]
    assert f"{path}:2: memory skipped: not JSON" in caplog.text
    caplog.clear()
    assert workspace.read_memories() == [{"n": 1}]
    assert caplog.text == ""  # said once is enough
    workspace.add_memory({"n": 3})
    assert path.read_bytes() == b'{"n": 1}\n{"n": 2, "text": "cut o\n{"n": 3}\n'
    assert workspace.read_memories() == [{"n": 1}, {"n": 3}]
    workspace.write_memories([{"n": 3}, {"n": 4}])
    assert path.read_bytes() == b'{"n": 2, "text": "cut o\n{"n": 3}\n{"n": 4}\n'
    (problem,) = [p for p in workspace.problems() if p.code == "bad-memory"]
    assert (problem.path, problem.line, problem.severity) == ("memory/episodic.jsonl", 1, "warning")


@pytest.mark.parametrize(
    "line", [b"[1]", b"3", b"null", b"{'a': 1}", b'{"a": NaN}', b"\xff", b"[" * 99999]
)
def test_a_line_that_is_no_entry_is_skipped_and_its_bytes_stay(workspace, line):
    workspace.add_memory({"n": 1})
    path = file_of(workspace)
    path.write_bytes(line + b"\n\n  \n" + path.read_bytes())
    assert workspace.read_memories() == [{"n": 1}]
    workspace.write_memories([*workspace.read_memories(), {"n": 2}])
    assert path.read_bytes() == line + b'\n{"n": 1}\n{"n": 2}\n'


def test_lines_written_by_others_keep_their_bytes(workspace):
    path = file_of(workspace)
    path.parent.mkdir()
    path.write_bytes(b'\xef\xbb\xbf{"n":1}\r\n{"caf\\u00e9":  2}\r\n{"x": "\xff"}\r\n')
    entries = workspace.read_memories()
    assert entries[:2] == [{"n": 1}, {"café": 2}]
    workspace.add_memory({"n": 4})
    workspace.write_memories([*entries, {"n": 5}])
    assert path.read_bytes() == (
        b'\xef\xbb\xbf{"n":1}\r\n{"caf\\u00e9":  2}\r\n{"x": "\xff"}\r\n{"n": 5}\r\n'
    )


@pytest.mark.parametrize("entry", [{"a": float("nan")}, {"a": {1, 2}}, {"a": object()}, {(1,): 2}])
def test_what_is_no_json_is_refused_and_nothing_is_written(workspace, entry):
    workspace.add_memory({"n": 1})
    before = file_of(workspace).read_bytes()
    for write in (lambda: workspace.add_memory(entry), lambda: workspace.write_memories([entry])):
        with pytest.raises(WorkspaceError, match="can't be written as JSON"):
            write()
    assert file_of(workspace).read_bytes() == before


def test_entries_added_at_once_from_threads_are_all_there(workspace):
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: workspace.add_memory({"n": n}), range(200)))
    assert sorted(entry["n"] for entry in workspace.read_memories()) == list(range(200))


def test_entries_added_at_once_from_processes_are_all_there(workspace):
    code = (
        "import sys; from agent_evolve.workspace import AgentWorkspace\n"
        "w = AgentWorkspace(sys.argv[1])\n"
        "for n in range(100): w.add_memory({'who': sys.argv[2], 'n': n})\n"
    )
    started = [
        subprocess.Popen([sys.executable, "-c", code, str(workspace.root), who]) for who in "ab"
    ]
    assert [process.wait(60) for process in started] == [0, 0]
    entries = workspace.read_memories()
    assert [e["n"] for e in entries if e["who"] == "a"] == list(range(100))
    assert len(entries) == 200


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)
ENTRY = st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=5), JSON, max_size=3)
STEP = st.one_of(
    st.tuples(st.just("add"), ENTRY),
    st.tuples(st.just("replace"), st.lists(ENTRY, max_size=3)),
    st.tuples(
        st.just("torn"), st.sampled_from([b'{"torn', b'{"torn": "\xe4\xbd', b"\xff\xfe", b"]"])
    ),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(STEP, max_size=8), st.booleans())
def test_any_series_of_writes_and_crashes_reads_as_a_list_would(workspace, steps, windows):
    path = file_of(workspace)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b'{"first": 1}\r\n' if windows else b"")
    expected = [{"first": 1}] if windows else []
    torn = []
    for kind, value in steps:
        if kind == "add":
            workspace.add_memory(value)
            expected.append(value)
        elif kind == "replace":
            workspace.write_memories(value)
            expected = list(value)
        else:
            data = path.read_bytes()
            # A crash cuts off in the middle of a line, never two crashes in one.
            path.write_bytes(data + (b"" if data.endswith(b"\n") or not data else b"\n") + value)
            torn.append(value)
        assert workspace.read_memories() == expected
        data = path.read_bytes()
        assert all(bytes_ in data for bytes_ in torn)
    rows = [
        row for row in path.read_bytes().splitlines() if row.startswith(b"{") and row not in torn
    ]
    assert len(rows) >= len(expected)
    assert all(isinstance(json.loads(row), dict) for row in rows)
