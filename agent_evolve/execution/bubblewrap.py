"""The sandbox on Linux: bubblewrap's namespaces, resource limits, and a user without rights.

Inside there is no network, no environment but a minimal one, no file of the host but system
programs, the running Python and the paths that were given; one process tree that is dead when
``run`` returns.

An ordinary user gets a user namespace of its own. Root would be exempt from the limit on processes,
so bubblewrap then sets up the view as root, and the command runs as a user id of the range that
systemd keeps for transient users; the writable paths belong to that user meanwhile (``ownership``).
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import select
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from ..errors import ConfigurationError, InfrastructureError
from . import view
from .leftovers import resident_bytes
from .ownership import lent, readable_by_others
from .process import ProcessResult, run_process
from .rlimits import limiting_argv, process_allowance
from .types import CommandResult, Limits

_TRANSIENT_USERS = range(61184, 65520)
_LONGEST_ARGUMENT = 128 * 1024 - 1
_LONGEST_ARGUMENTS = 1024**2
_SCRIPT = "/etc/sandbox-command"


class Bubblewrap:
    """Runs commands under ``bwrap``.

    ``limits.memory_bytes`` bounds the address space of each process and also what all of them
    together hold in RAM: passing that ends the command. ``/tmp`` inside is private, in memory, and
    bounded by it as well.

    Args:
        program: path of the ``bwrap`` to use.
        limits: used by calls that bring none.
    """

    name = "bubblewrap"

    def __init__(self, program: str | Path, limits: Limits | None = None) -> None:
        self.program = str(program)
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
        """See ``Sandbox.run``. ``env`` is added to a minimal environment; none is inherited.

        As root, a readable path that other users may not read is copied for the call.
        """
        limits = limits or self.limits
        writable, readable = _checked(writable), _checked(readable)
        cwd = _named(cwd)
        if not any(cwd.is_relative_to(path) for path in (*writable, *readable)):
            raise ConfigurationError(
                f"the sandbox does not show {cwd}",
                fix="let cwd lie under one of the writable or readable paths",
            )
        if _too_long(command):
            return CommandResult(126, "the argument list is too long; pass long text as a file")
        user = _transient_user() if _is_real_root() else None
        with ExitStack() as stack:
            sources = {path: path for path in readable}
            if user is not None:
                sources = stack.enter_context(readable_by_others(readable))
                stack.enter_context(lent(writable, user))
            box = _Box(self.program, user, limits)
            return box.run(command, cwd, writable, sources, env or {}, stdin)


class _Box:
    """One call: builds the command line, runs it, waits until the last process inside is gone."""

    def __init__(self, program: str, user: int | None, limits: Limits) -> None:
        self.program = program
        self.user = user
        self.limits = limits

    def run(
        self,
        command: str | Sequence[str],
        cwd: Path,
        writable: Sequence[Path],
        readable: Mapping[Path, Path],
        env: Mapping[str, str],
        stdin: bytes,
    ) -> CommandResult:
        parts = [command] if isinstance(command, str) else command
        if any("\0" in part for part in parts):
            return CommandResult(126, "a command can't hold a NUL character; it was not run")
        with ExitStack() as stack:
            inner, files = self._inner(command, cwd)
            fds: list[int] = []
            arguments = self._arguments(cwd, writable, readable, files, fds, stack)
            options = stack.enter_context(_memory_file("\0".join(arguments).encode() + b"\0"))
            status = stack.enter_context(_Status())
            result = run_process(
                [
                    self.program,
                    *("--args", str(options), "--json-status-fd", str(status.writer)),
                    *("--", *inner),
                ],
                cwd=Path("/"),
                env=_environment(env),
                stdin=stdin,
                wall_seconds=self.limits.wall_seconds,
                output_bytes=self.limits.output_bytes,
                grace_seconds=0,
                follow=False,
                pass_fds=[*fds, options, status.writer],
                started=status.started,
                watch=self._watch_memory,
            )
            status.wait_until_empty()
        return self._ended(result, status)

    def _inner(self, command: str | Sequence[str], cwd: Path) -> tuple[list[str], dict[str, str]]:
        """The command with what limits it, and the file that holds a very long command."""
        allowance = self.limits.processes
        if self.user is None:
            allowance = process_allowance(self.limits, own_namespace=True)
        front = limiting_argv(self.limits, processes=allowance)
        if self.user is not None:
            # Entering the folder waits until the user is the one who may enter it.
            front += [
                "setpriv",
                *(f"--reuid={self.user}", f"--regid={self.user}"),
                *("--clear-groups", "--inh-caps=-all", "--"),
                *("/bin/sh", "-c", 'cd -- "$0" && exec "$@"', str(cwd)),
            ]
        if not isinstance(command, str):
            return [*front, *command], {}
        shell = "/bin/bash" if Path("/bin/bash").exists() else "/bin/sh"
        if _size(command) < _LONGEST_ARGUMENT:
            return [*front, shell, "-c", command], {}
        return [*front, shell, _SCRIPT], {_SCRIPT: command}

    def _arguments(
        self,
        cwd: Path,
        writable: Sequence[Path],
        readable: Mapping[Path, Path],
        files: Mapping[str, str],
        fds: list[int],
        stack: ExitStack,
    ) -> list[str]:
        arguments = ["--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts"]
        arguments += ["--unshare-cgroup-try", "--die-with-parent", "--new-session"]
        arguments += ["--hostname", "sandbox", "--cap-drop", "ALL"]
        if self.user is None:
            arguments += ["--unshare-user"]
            user = (os.getuid(), os.getgid())
        else:
            arguments += ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
            user = (self.user, self.user)
        system, made_up = view.system_arguments(self.limits.memory_bytes, user)
        arguments += system
        for name, text in {**made_up, **files}.items():
            data = text.encode(errors="surrogateescape")
            fds.append(stack.enter_context(_memory_file(data)))
            arguments += ["--perms", "0444", "--ro-bind-data", str(fds[-1]), name]
        arguments += view.path_arguments(writable, readable)
        arguments += ["--remount-ro", "/dev", "--remount-ro", "/"]
        return [*arguments, "--chdir", str(cwd) if self.user is None else "/"]

    def _watch_memory(self, pid: int) -> str | None:
        if resident_bytes(pid) <= self.limits.memory_bytes:
            return None
        return f"its processes together passed {self.limits.memory_bytes // 1024**2} MiB of memory"

    def _ended(self, result: ProcessResult, status: _Status) -> CommandResult:
        if result.exit_code in (126, 127) and status.pid is None:
            raise InfrastructureError(f"the sandbox could not be started: {result.output[-2000:]}")
        code = status.exit_code
        if code is None and not result.timed_out and not result.stopped:
            raise InfrastructureError(
                f"the sandbox ended before the command did: {result.output[-2000:]}"
            )
        output = result.output
        if result.stopped:
            output = f"{output}\n[killed: {result.stopped}]"
        return CommandResult(
            exit_code=-signal.SIGKILL if code is None else _as_signal(code),
            output=output,
            timed_out=result.timed_out,
            truncated=result.truncated,
            seconds=result.seconds,
        )


class _Status:
    """What ``bwrap`` tells about itself: the first process inside, and how the command ended."""

    def __init__(self) -> None:
        self.pid: int | None = None
        self.exit_code: int | None = None
        self._reader, self.writer = os.pipe()
        self._text = b""
        self._first: int | None = None
        self._open = True

    def __enter__(self) -> _Status:
        return self

    def __exit__(self, *_: object) -> None:
        self._close_writer()
        os.close(self._reader)
        if self._first is not None:
            os.close(self._first)

    def started(self, _pid: int) -> None:
        """Wait for the line that names the first process, and hold on to that process."""
        self._close_writer()
        while b"\n" not in self._text:
            if not _ready(self._reader) or not (chunk := os.read(self._reader, 4096)):
                return
            self._text += chunk
        self.pid = json.loads(self._text.split(b"\n")[0])["child-pid"]
        with contextlib.suppress(ProcessLookupError):  # it has already ended
            self._first = os.pidfd_open(self.pid)

    def wait_until_empty(self) -> None:
        """Return when no process is left inside: the kernel ends them all with the first."""
        if self._first is not None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._first, signal.SIGKILL)
            if not _ready(self._first):
                raise InfrastructureError(f"the sandbox's process {self.pid} can't be ended")
        self._close_writer()
        while _ready(self._reader) and (chunk := os.read(self._reader, 4096)):
            self._text += chunk
        for line in self._text.splitlines():
            with contextlib.suppress(ValueError):  # cut short when bwrap was killed
                self.exit_code = json.loads(line).get("exit-code", self.exit_code)

    def _close_writer(self) -> None:
        if self._open:
            os.close(self.writer)
            self._open = False


def _size(text: str) -> int:
    return len(text.encode(errors="surrogateescape"))


def _too_long(command: str | Sequence[str]) -> bool:
    """Whether Linux would refuse the arguments. A command line may be longer: it becomes a file."""
    sizes = [] if isinstance(command, str) else [_size(argument) for argument in command]
    return any(size >= _LONGEST_ARGUMENT for size in sizes) or sum(sizes) > _LONGEST_ARGUMENTS


def _ready(fd: int) -> bool:
    """Wait up to ten seconds, many times what it takes, for something to read or an end."""
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(10_000))


@contextmanager
def _memory_file(data: bytes) -> Iterator[int]:
    """A file without a name, read from its start by the process it is passed to."""
    fd = os.memfd_create("sandbox")
    try:
        view_of = memoryview(data)
        while view_of:
            view_of = view_of[os.write(fd, view_of) :]
        os.lseek(fd, 0, os.SEEK_SET)
        yield fd
    finally:
        os.close(fd)


def _environment(extra: Mapping[str, str]) -> dict[str, str]:
    minimal = {"PATH": view.search_path(), "HOME": "/tmp", "TMPDIR": "/tmp", "LANG": "C.UTF-8"}
    return {**minimal, "USER": "sandbox", "TERM": "dumb", **extra}


def _checked(paths: Sequence[Path]) -> list[Path]:
    absolute = [_named(path) for path in paths]
    for path in absolute:
        if not path.exists():
            raise ConfigurationError(f"the sandbox can't show {path}: it does not exist")
        if path in (Path("/"), Path.home(), *Path.home().parents):
            raise ConfigurationError(
                f"the sandbox does not show {path}: that is no throwaway copy but a person's files"
            )
    return absolute


def _named(path: Path) -> Path:
    """The absolute path under the name it was given: links in it keep their names inside."""
    return Path(os.path.abspath(path))  # noqa: PTH100


def _is_real_root() -> bool:
    """Root of the machine, whom the kernel exempts from the limit on processes; not the root of a
    user namespace, who is an ordinary user outside."""
    if os.geteuid() != 0:
        return False
    inside, outside, _ = Path("/proc/self/uid_map").read_text().split("\n")[0].split()
    return int(inside) == 0 and int(outside) == 0


def _transient_user() -> int:
    """A user id for one call. The kernel counts processes by user id, so two calls at once should
    not share one."""
    return random.SystemRandom().choice(_TRANSIENT_USERS)


def _as_signal(code: int) -> int:
    """``bwrap`` and shells say 128 + n for an end by signal n."""
    fatal = {signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS}
    fatal |= {signal.SIGXCPU, signal.SIGXFSZ, signal.SIGFPE, signal.SIGILL, signal.SIGSYS}
    return 128 - code if code - 128 in fatal else code
