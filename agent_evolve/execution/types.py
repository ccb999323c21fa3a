"""The protocol of a place where commands run, and the limits they run under."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable


@dataclass(frozen=True, slots=True)
class Limits:
    """What one command may use. Bytes are bytes, times are seconds.

    Attributes:
        wall_seconds: time on the clock; at its end every process of the command is killed.
        cpu_seconds: processor time per process.
        memory_bytes: address space per process.
        processes: processes and threads alive at once.
        file_bytes: size of one written file.
        output_bytes: output kept; the middle of a longer one is cut out and said so.
    """

    wall_seconds: float = 60.0
    cpu_seconds: float = 60.0
    memory_bytes: int = 2 * 1024**3
    processes: int = 64
    file_bytes: int = 64 * 1024**2
    output_bytes: int = 64 * 1024


@dataclass(frozen=True, slots=True)
class CommandResult:
    """How a command ended. ``output`` is stdout and stderr as they came, decoded with replacement.

    ``exit_code`` is negative for a signal, as in ``subprocess``. ``truncated`` counts bytes cut.
    """

    exit_code: int
    output: str
    timed_out: bool = False
    truncated: int = 0
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        return self.exit_code == 0 and not self.timed_out


@runtime_checkable
class Sandbox(Protocol):
    """Where commands of unknown intent run: no network, no host secrets, only ``writable`` paths
    can be written, everything dead at the end."""

    @property
    def name(self) -> str: ...

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
        """Run a shell command line (``str``) or an argument list.

        Paths keep their own names inside. ``cwd`` must lie under a writable or readable path.
        Never raises for what the command does; raises ``InfrastructureError`` when the sandbox
        itself could not be started.
        """
        ...
