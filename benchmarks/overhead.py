"""What the loop itself costs, beside what agents and engines cost.

usage: python benchmarks/overhead.py [--peer]

``--peer`` installs a-evolve from PyPI into an environment of its own and measures it on the same
work in the same run. One JSON object a line on stdout, a table on stderr.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

WORK = Path(__file__).with_name("overhead_work.py")
PEER = "a-evolve==0.1.0"
ROWS = {
    "cycle_10_files": ("loop overhead per cycle, 10 files, 10 tasks", "ms", 15.0),
    "cycle_2000_files": ("the same, 2,000 files", "ms", 60.0),
    "growth_200_cycles": ("last tenth of 200 cycles against the first tenth", "ratio", 1.1),
    "record_observation": ("one observation of 2 kB recorded", "us", 60.0),
    "statistics_10000": ("reading statistics of 10,000 observations", "ms", 50.0),
    "import": ("import agent_evolve", "s", 0.15),
}


def measure(python: str) -> dict[str, float]:
    """Run the work with an interpreter and read its measurements."""
    done = subprocess.run([python, str(WORK)], stdout=subprocess.PIPE, text=True, check=True)
    measured: dict[str, float] = json.loads(done.stdout.strip().rsplit("\n", 1)[-1])
    return measured


def peer_python(directory: Path) -> str:
    """The interpreter of a fresh environment that holds the peer."""
    venv.create(directory, with_pip=True)
    python = str(directory / "bin" / "python")
    subprocess.run([python, "-m", "pip", "install", "-qq", PEER], check=True, stdout=sys.stderr)
    return python


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--peer", action="store_true", help=f"measure {PEER} too")
    arguments = parser.parse_args()
    ours = measure(sys.executable)
    theirs: dict[str, float] = {}
    if arguments.peer:
        with tempfile.TemporaryDirectory(prefix="overhead-peer-") as directory:
            theirs = measure(peer_python(Path(directory)))
    for key, (row, unit, goal) in ROWS.items():
        peers = {PEER: round(theirs[key], 3)} if theirs else {}
        value = round(ours[key], 3)
        line = {"row": row, "value": value, "unit": unit, "goal": goal, "better": "lower"}
        print(json.dumps(line | {"peers": peers}), flush=True)
        reached = "reached" if value <= goal else "MISSED"
        against = f"   {PEER}: {peers[PEER]:.3f}" if peers else ""
        print(
            f"{row:<50} {value:>10.3f} {unit:<5} goal {goal:g} {reached}{against}", file=sys.stderr
        )


if __name__ == "__main__":
    main()
