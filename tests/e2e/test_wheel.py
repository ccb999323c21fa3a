"""What a person gets who installs the built distribution and has no checkout."""

from __future__ import annotations

import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_wheel_holds_the_seeds_and_runs_the_quickstart(tmp_path: Path) -> None:
    pip = [sys.executable, "-m", "pip"]
    subprocess.run([*pip, "wheel", "-q", "--no-deps", "-w", str(tmp_path), str(ROOT)], check=True)
    [wheel] = tmp_path.glob("agent_evolver-*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    for seed in ("quickstart", "house-rules", "bash", "claude-code", "codex"):
        assert f"agent_evolve/seed_workspaces/{seed}/manifest.yaml" in names
    assert "agent_evolve/py.typed" in names
    assert not [name for name in names if name.startswith(("tests/", "benchmarks/"))]
    venv.create(tmp_path / "env", with_pip=True)
    python = str(tmp_path / "env" / "bin" / "python")
    subprocess.run([python, "-m", "pip", "install", "-q", str(wheel)], check=True)
    done = subprocess.run(
        [str(tmp_path / "env" / "bin" / "agent-evolve"), "run", "quickstart"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "holdout 0." in done.stdout
