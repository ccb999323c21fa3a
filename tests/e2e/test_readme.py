"""Everything that the README shows is run, and prints what it says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.loop.support import environment, make_workspace

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
VARIES = re.compile(r"\b\d+\.\d+s\b|\bin /\S+|\(in [^)]*\)")


def blocks(kind: str) -> list[str]:
    return [text for language, text in BLOCK.findall(README) if language == kind]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("readme")


def typed(command: str, place: Path) -> subprocess.CompletedProcess[str]:
    """A command line as a person types it, both streams in the order of a terminal."""
    bin_directory = Path(sys.executable).parent
    env = environment() | {"PATH": f"{bin_directory}{os.pathsep}{os.environ['PATH']}"}
    return subprocess.run(
        command,
        shell=True,
        cwd=place,
        env=env | {"COLUMNS": "200"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=200,
        check=False,
    )


def plain(text: str) -> list[str]:
    return [VARIES.sub("~", line.rstrip()) for line in text.splitlines() if line.strip()]


def test_the_recorded_sessions_print_what_they_show(place: Path) -> None:
    recorded = blocks("console")
    assert recorded
    for session in recorded:
        first, _, shown = session.partition("\n")
        assert first.startswith("$ ")
        done = typed(first[2:], place)
        assert done.returncode == 0, done.stdout
        printed = set(plain(done.stdout))
        for line in plain(shown):
            assert line == "..." or line in printed, f"{line!r} is not in:\n{done.stdout}"


def test_the_commands_run(place: Path) -> None:
    """After the recorded run; what needs an installation or ends in another's key is left out."""
    commands = [line for block in blocks("sh") for line in block.splitlines() if line.strip()]
    commands = [line for line in commands if not line.startswith("pip install")]
    assert len(commands) >= 4
    if not (place / "quickstart").exists():
        assert typed("agent-evolve run quickstart", place).returncode == 0
    for command in commands:
        done = typed(command, place)
        missing_key = "doctor" in command and done.returncode == 2
        assert done.returncode == 0 or missing_key, f"{command}\n{done.stdout}"


def test_the_python_examples_work_together(tmp_path: Path) -> None:
    agent, rest = blocks("python")
    work = make_workspace(tmp_path / "my-agent")
    (work / "agent.py").write_text(agent)
    (work / "manifest.yaml").write_text("name: my-agent\nagent: {entrypoint: agent.Shouting}\n")
    (work / "prompts" / "system.md").write_text("Malta: Valletta\n")
    (tmp_path / "script.py").write_text(rest)
    done = typed(f"{sys.executable} script.py", tmp_path)
    assert done.returncode == 0, done.stdout
    assert "1.0" in done.stdout
    assert "France: PARIS" in (work / "prompts" / "system.md").read_text()


def test_the_manifests_of_the_readme_are_read_without_a_warning(tmp_path: Path) -> None:
    from agent_evolve import Manifest

    for number, text in enumerate(blocks("yaml")):
        place = tmp_path / str(number)
        place.mkdir()
        (place / "manifest.yaml").write_text(text)
        assert Manifest.load(place).warnings == ()
