"""Runs one trusted program to its end: a time limit, bounded output, nothing left running.

This confines nothing. Commands of unknown intent go through a ``Sandbox``.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from .leftovers import Leftovers
from .output import HeadAndTail
from .types import CommandResult

_CHUNK = 1 << 16
_TICK_SECONDS = 0.2

Watch = Callable[[int], str | None]
"""Called with the pid a few times a second; a returned text stops the program and says why."""


@dataclass(frozen=True, slots=True)
class ProcessResult(CommandResult):
    """``stderr`` is filled only when it was asked to be kept apart. ``stopped`` says why a watch
    ended the program."""

    stderr: str = ""
    stopped: str = ""


def run_process(
    command: str | Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    stdin: bytes = b"",
    wall_seconds: float = 600.0,
    output_bytes: int = 1 << 20,
    grace_seconds: float = 2.0,
    separate_stderr: bool = False,
    follow: bool = True,
    pass_fds: Sequence[int] = (),
    started: Callable[[int], None] | None = None,
    watch: Watch | None = None,
) -> ProcessResult:
    """Run a shell command line (``str``) or an argument list and wait for it.

    The program gets its own session. When it ends, or at ``wall_seconds``, everything that it
    started is asked to stop and killed ``grace_seconds`` later, with ``follow`` also what moved to
    another session. ``env`` is the whole environment.

    Returns exit code 127 for a program that does not exist, 126 for one that can't be started
    (no permission, or arguments beyond what the system takes), as a shell does.
    """
    argv = ["/bin/sh", "-c", command] if isinstance(command, str) else list(command)
    leftovers = Leftovers() if follow else None
    begin = time.monotonic()
    with tempfile.TemporaryFile() as source:
        source.write(stdin)
        source.seek(0)
        try:
            process = subprocess.Popen(
                argv,
                cwd=cwd,
                env={**env, **(leftovers.environment if leftovers else {})},
                stdin=source,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE if separate_stderr else subprocess.STDOUT,
                start_new_session=True,
                pass_fds=tuple(pass_fds),
            )
        except (OSError, ValueError) as error:
            code = 127 if isinstance(error, FileNotFoundError) else 126
            seconds = time.monotonic() - begin
            return ProcessResult(code, f"{argv[0]}: can't be started: {error}", seconds=seconds)
    run = _Run(process, begin + wall_seconds, output_bytes, leftovers, watch)
    try:
        if started is not None:
            started(process.pid)
        run.wait()
    finally:
        run.end(grace_seconds)
    return ProcessResult(
        exit_code=process.returncode,
        output=run.out.text(),
        timed_out=run.timed_out,
        truncated=run.out.truncated + run.err.truncated,
        seconds=time.monotonic() - begin,
        stderr=run.err.text(),
        stopped=run.stopped,
    )


class _Run:
    """A program that runs: reads what it prints until it ends or its time is over."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        deadline: float,
        output_bytes: int,
        leftovers: Leftovers | None,
        watch: Watch | None,
    ) -> None:
        self.process = process
        self.deadline = deadline
        self.leftovers = leftovers
        self.watch = watch
        self.out, self.err = HeadAndTail(output_bytes), HeadAndTail(output_bytes)
        self.timed_out = False
        self.stopped = ""
        self._selector = selectors.DefaultSelector()
        for stream, kept in ((process.stdout, self.out), (process.stderr, self.err)):
            if stream is not None:
                os.set_blocking(stream.fileno(), False)
                self._selector.register(stream, selectors.EVENT_READ, kept)
        self._end: int | None = None
        if hasattr(os, "pidfd_open"):
            with contextlib.suppress(OSError):  # a kernel before 5.4: the clock is asked instead
                self._end = os.pidfd_open(process.pid)
                self._selector.register(self._end, selectors.EVENT_READ)

    def wait(self) -> None:
        tick = _TICK_SECONDS if self._end is not None else 0.01
        next_look = time.monotonic()
        while True:
            now = time.monotonic()
            if now >= self.deadline:
                self.timed_out = True
                return
            if now >= next_look:
                next_look = now + _TICK_SECONDS
                if self.leftovers is not None:
                    self.leftovers.observe(self.process.pid)
                if self.watch is not None and (why := self.watch(self.process.pid)):
                    self.stopped = why
                    return
            # The exit is only looked at, not collected: until then the pid, and with it the
            # number of the process group, can't be given to anybody else.
            if self._read(min(tick, self.deadline - now)) or self._exited():
                return

    def end(self, grace_seconds: float) -> None:
        """Stop whatever still runs, collect the exit code, read what is left in the pipes."""
        self._stop_group(grace_seconds)
        self.process.wait()
        if self.leftovers is not None:
            self.leftovers.end(min(grace_seconds, 0.5))
        self._read(0)
        self._selector.close()
        if self._end is not None:
            os.close(self._end)
        for stream in (self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()

    def _stop_group(self, grace_seconds: float) -> None:
        group = self.process.pid
        if not self._exited() and grace_seconds > 0:
            _signal_group(group, signal.SIGTERM)
            limit = time.monotonic() + grace_seconds
            while not self._exited() and time.monotonic() < limit:
                self._read(0.02)
        if self.leftovers is not None:
            self.leftovers.observe(group)
        _signal_group(group, signal.SIGKILL)

    def _exited(self) -> bool:
        if self._end is None:
            return self.process.poll() is not None
        options = os.WEXITED | os.WNOHANG | os.WNOWAIT
        return os.waitid(os.P_PIDFD, self._end, options) is not None

    def _read(self, timeout: float) -> bool:
        """Read what is there, waiting up to ``timeout``. True once the program has ended."""
        ended = False
        for key, _ in self._selector.select(timeout):
            if key.data is None:
                ended = True
            else:
                self._drain(key.fileobj, key.data)
        return ended

    def _drain(self, stream: Any, kept: HeadAndTail) -> None:
        for _ in range(64):  # then look at the clock again, however fast it prints
            chunk = _read_some(stream)
            if chunk is None:
                return
            if not chunk:
                self._selector.unregister(stream)
                return
            kept.add(chunk)


def _read_some(stream: IO[bytes]) -> bytes | None:
    """Some bytes; empty at the end; ``None`` when nothing is there now."""
    try:
        return os.read(stream.fileno(), _CHUNK)
    except BlockingIOError:
        return None


def _signal_group(group: int, number: signal.Signals) -> None:
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return  # nothing is left in it (macOS says "not permitted" for a group of zombies)
