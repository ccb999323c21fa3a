"""Running commands without a sandbox, for a person who asked for exactly that."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from .process import run_process
from .rlimits import limiting_argv, process_allowance
from .types import CommandResult, Limits
from .view import search_path


class UnsafeLocal:
    """Runs commands on this machine as this user: they can read and write all that the user can,
    and use the network. Only accidents are contained: limits, a clean environment, an own HOME,
    and an end to everything that was started. Root has no limit on processes here.
    """

    name = "unsafe-local"

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()

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
        """See ``Sandbox.run``. ``writable`` and ``readable`` have no effect: everything is."""
        limits = limits or self.limits
        argv = ["/bin/sh", "-c", command] if isinstance(command, str) else list(command)
        front = limiting_argv(limits, processes=process_allowance(limits, own_namespace=False))
        with tempfile.TemporaryDirectory(prefix="unsafe-home-") as home:
            result = run_process(
                [*front, *argv],
                cwd=cwd,
                env={
                    "PATH": f"{search_path()}:{os.defpath}",
                    "HOME": home,
                    "TMPDIR": home,
                    "LANG": "C.UTF-8",
                    **(env or {}),
                },
                stdin=stdin,
                wall_seconds=limits.wall_seconds,
                output_bytes=limits.output_bytes,
                grace_seconds=0,
            )
        return CommandResult(
            exit_code=result.exit_code,
            output=result.output,
            timed_out=result.timed_out,
            truncated=result.truncated,
            seconds=result.seconds,
        )
