"""Runs one sandboxed command as the user that started this program.

Reads ``{"program", "command", "call": {...}, "limits": {...}}`` from stdin and writes the result as
JSON.
It only needs the standard library, so that any Python will do.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path


def main() -> None:
    wanted = json.load(sys.stdin)
    sys.path.insert(0, wanted["package"])
    from agent_evolve.execution.bubblewrap import Bubblewrap
    from agent_evolve.execution.types import Limits

    call = wanted["call"]
    result = Bubblewrap(wanted["program"]).run(
        wanted["command"],
        cwd=Path(call["cwd"]),
        writable=[Path(path) for path in call["writable"]],
        readable=[Path(path) for path in call["readable"]],
        env=call["env"],
        stdin=call["stdin"].encode(),
        limits=Limits(**wanted["limits"]),
    )
    json.dump(dataclasses.asdict(result), sys.stdout)


main()
