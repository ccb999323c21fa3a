"""The journal: whole lines or none, and every reader sees the same."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_evolve.errors import JournalError
from agent_evolve.journal import Journal, encode, read_events

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)


def write(path: Path, count: int) -> bytes:
    journal = Journal(path)
    for number in range(count):
        journal.append("step", number=number, text="ä\n\ud800 " * number)
    journal.close()
    return path.read_bytes()


def test_events_come_back_in_order_with_their_numbers(tmp_path):
    write(tmp_path / "j.jsonl", 3)
    events = read_events(tmp_path / "j.jsonl")
    assert [(e.seq, e.type, e["number"]) for e in events] == [
        (1, "step", 0),
        (2, "step", 1),
        (3, "step", 2),
    ]


def test_a_tail_torn_at_any_byte_loses_at_most_the_last_event(tmp_path):
    path = tmp_path / "j.jsonl"
    whole = write(path, 4)
    ends = [i + 1 for i, byte in enumerate(whole) if byte == 10]
    for cut in range(len(whole) + 1):
        path.write_bytes(whole[:cut])
        complete = sum(end <= cut for end in ends)
        assert len(read_events(path)) == complete
        journal = Journal(path)
        journal.append("after")
        journal.close()
        assert [e.type for e in read_events(path)] == ["step"] * complete + ["after"]
        assert read_events(path)[-1].seq == complete + 1


def test_torn_bytes_are_kept_aside(tmp_path):
    path = tmp_path / "j.jsonl"
    whole = write(path, 2)
    path.write_bytes(whole + b'{"v": 1, "half')
    Journal(path).append("after")
    assert (tmp_path / "j.jsonl.torn").read_bytes() == b'{"v": 1, "half\n'


def test_a_damaged_line_in_the_middle_is_named(tmp_path):
    path = tmp_path / "j.jsonl"
    lines = write(path, 3).splitlines(keepends=True)
    path.write_bytes(lines[0] + b"garbage\n" + lines[2])
    with pytest.raises(JournalError, match="line 2"):
        list(Journal(path).events())


@given(st.dictionaries(st.text(), values))
def test_anything_can_be_encoded_on_one_line(value):
    line = encode(value)
    assert b"\n" not in line
    json.loads(line)


def test_values_that_json_does_not_know_become_text():
    cyclic: dict[str, object] = {"nan": float("nan"), "path": Path("/x"), 3: {4}}
    cyclic["self"] = cyclic
    assert json.loads(encode(cyclic))["nan"] == "nan"


def test_a_full_disk_leaves_the_journal_whole_and_says_so(tmp_path):
    path = tmp_path / "j.jsonl"
    before = write(path, 2)
    script = (
        "import resource, signal, sys; from pathlib import Path\n"
        "from agent_evolve.journal import Journal; from agent_evolve.errors import JournalError\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({len(before) + 20}, resource.RLIM_INFINITY))\n"
        "try: Journal(Path(sys.argv[1])).append('big', text='x' * 500)\n"
        "except JournalError as error: print(error); sys.exit(7)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 7, done.stderr
    assert "nothing was half-written" in done.stdout
    assert path.read_bytes() == before
    assert resource.RLIM_INFINITY  # the limit was the child's alone
