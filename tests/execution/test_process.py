"""Running a trusted program: it ends in time with all that it started; its output is bounded."""

from __future__ import annotations

import os
import sys
import time
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_evolve.execution import Limits
from agent_evolve.execution.output import HeadAndTail
from agent_evolve.execution.process import run_process
from agent_evolve.execution.unsafe import UnsafeLocal

ENV = {"PATH": os.environ["PATH"]}


def _alive(marker: str) -> list[str]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            line = (folder / "cmdline").read_bytes().decode(errors="replace")
        except OSError:
            continue
        if marker in line:
            found.append(line)
    return found


def test_output_stdin_and_exit_code(tmp_path: Path) -> None:
    result = run_process("cat; echo err >&2; exit 3", cwd=tmp_path, env=ENV, stdin=b"in ")
    assert (result.exit_code, result.output) == (3, "in err\n")
    assert not result.ok


def test_stderr_can_be_kept_apart(tmp_path: Path) -> None:
    result = run_process("echo a; echo b >&2", cwd=tmp_path, env=ENV, separate_stderr=True)
    assert (result.output, result.stderr) == ("a\n", "b\n")


def test_the_environment_is_the_one_given(tmp_path: Path) -> None:
    os.environ["TEST_SECRET"] = "sk-secret"
    try:
        result = run_process("env", cwd=tmp_path, env={**ENV, "SHOWN": "1"})
    finally:
        del os.environ["TEST_SECRET"]
    assert "SHOWN=1" in result.output
    assert "sk-secret" not in result.output


def test_a_signal_is_a_negative_exit_code(tmp_path: Path) -> None:
    assert run_process("kill -SEGV $$", cwd=tmp_path, env=ENV).exit_code == -11


def test_a_missing_program_is_127_and_an_unusable_one_126(tmp_path: Path) -> None:
    assert run_process(["no-such-program"], cwd=tmp_path, env=ENV).exit_code == 127
    (tmp_path / "text").write_text("x")
    assert run_process([str(tmp_path / "text")], cwd=tmp_path, env=ENV).exit_code == 126
    too_long = run_process(["echo", "x" * 300_000], cwd=tmp_path, env=ENV)
    assert too_long.exit_code == 126
    assert "too long" in too_long.output


def test_a_program_that_ends_when_asked_can_say_goodbye(tmp_path: Path) -> None:
    script = "trap 'echo bye; exit 0' TERM; echo hi; while :; do sleep 0.05; done"
    result = run_process(script, cwd=tmp_path, env=ENV, wall_seconds=0.5)
    assert result.timed_out
    assert result.output.startswith("hi\n")
    assert result.output.endswith("bye\n")


def test_a_program_that_will_not_end_is_killed(tmp_path: Path) -> None:
    begin = time.monotonic()
    script = "trap '' TERM; while :; do sleep 0.05; done"
    result = run_process(script, cwd=tmp_path, env=ENV, wall_seconds=0.3, grace_seconds=0.3)
    assert result.timed_out
    assert result.exit_code == -9
    assert time.monotonic() - begin < 3


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="follows processes in /proc")
def test_descendants_in_other_sessions_are_ended(tmp_path: Path) -> None:
    seconds = "87654.321"
    script = f"(setsid sleep {seconds} >/dev/null 2>&1 &); setsid -f sleep {seconds}; echo done"
    result = run_process(script, cwd=tmp_path, env=ENV)
    assert result.output == "done\n"
    assert _alive(seconds) == []


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="follows processes in /proc")
def test_a_descendant_with_an_empty_environment_is_ended_too(tmp_path: Path) -> None:
    seconds = "87654.322"
    script = f"env -i setsid sh -c 'trap \"\" TERM; sleep {seconds}' & sleep 30"
    result = run_process(script, cwd=tmp_path, env=ENV, wall_seconds=0.8)
    assert result.timed_out
    assert _alive(seconds) == []


def test_a_background_child_that_holds_the_output_does_not_delay_the_end(tmp_path: Path) -> None:
    begin = time.monotonic()
    result = run_process("sleep 30 & echo done", cwd=tmp_path, env=ENV)
    assert result.output == "done\n"
    assert time.monotonic() - begin < 3


def test_hundred_megabytes_cost_little_memory(tmp_path: Path) -> None:
    tracemalloc.start()
    result = run_process("head -c 100000000 /dev/zero", cwd=tmp_path, env=ENV, output_bytes=10_000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert result.truncated == 100_000_000 - 10_000
    assert peak < 2_000_000


def test_a_flood_does_not_outlast_the_time_limit(tmp_path: Path) -> None:
    result = run_process("yes", cwd=tmp_path, env=ENV, wall_seconds=0.5, output_bytes=1000)
    assert result.timed_out
    assert result.seconds < 4


@given(st.lists(st.binary(max_size=40)), st.integers(2, 64))
def test_head_and_tail_are_those_of_the_whole(chunks: list[bytes], limit: int) -> None:
    kept = HeadAndTail(limit)
    for chunk in chunks:
        kept.add(chunk)
    whole = b"".join(chunks)
    if len(whole) <= limit:
        assert kept.text() == whole.decode(errors="replace")
        assert kept.truncated == 0
    else:
        head, tail = whole[: limit // 2], whole[len(whole) - (limit - limit // 2) :]
        assert kept.truncated == len(whole) - limit
        assert kept.text().startswith(head.decode(errors="replace"))
        assert kept.text().endswith(tail.decode(errors="replace"))


def test_the_unsafe_mode_still_limits_and_hides_secrets(tmp_path: Path) -> None:
    os.environ["TEST_SECRET"] = "sk-secret"
    try:
        local = UnsafeLocal()
        seen = local.run("env; echo ~; echo x > here", cwd=tmp_path)
    finally:
        del os.environ["TEST_SECRET"]
    assert seen.ok
    assert (tmp_path / "here").exists()
    assert "sk-secret" not in seen.output
    assert str(Path.home()) not in seen.output.splitlines()
    slow = local.run("setsid sleep 76543.21 & sleep 30", cwd=tmp_path, limits=Limits(0.5))
    assert slow.timed_out
    assert _alive("76543.21") == []
    big = local.run("head -c 2000000 /dev/zero > big", cwd=tmp_path, limits=Limits(file_bytes=1000))
    assert not big.ok
