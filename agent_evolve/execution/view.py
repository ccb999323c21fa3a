"""What a sandboxed command sees of the file system, as arguments for ``bwrap``.

System programs and libraries, the running Python, and the paths it was given; all else of the host
does not exist. Everything is read-only but the writable paths and an own ``/tmp``.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_ETC = (
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "ld-musl-x86_64.path",
    "alternatives",
    "ssl",
    "pki",
    "ca-certificates",
    "localtime",
    "mime.types",
    "protocols",
    "services",
)
_PYTHON = ("bin", "lib", "lib64", "pyvenv.cfg")
_SHM_BYTES = 64 * 1024**2


def python_homes() -> list[Path]:
    """The folders of the running Python: its environment, and the installation that it is based on.

    Both the names they are known by and the real ones, as installers link one to the other.
    """
    names = [Path(sys.prefix), Path(sys.base_prefix), Path(sys.executable).resolve().parents[1]]
    homes: list[Path] = []
    for path in [*names, *(name.resolve() for name in names)]:
        if path not in homes and not path.is_relative_to("/usr"):
            homes.append(path)
    return homes


def search_path() -> str:
    """PATH inside: the running Python's folder first."""
    folders = [str(home / "bin") for home in python_homes()]
    return ":".join([*folders, "/usr/local/bin", "/usr/bin", "/bin"])


@cache
def _hidden() -> tuple[Path, ...]:
    """The ready workspaces shipped in the package hold held-out answers."""
    return tuple(p for p in [Path(__file__).parents[1] / "seed_workspaces"] if p.is_dir())


def system_arguments(tmp_bytes: int, user: tuple[int, int]) -> tuple[list[str], dict[str, str]]:
    """Arguments for the fixed part of the view, and the texts of the files made up for it."""
    arguments: list[str] = []
    for name in _SYSTEM:
        path = Path(name)
        if path.is_symlink():
            arguments += ["--symlink", str(path.readlink()), name]
        elif path.is_dir():
            arguments += ["--ro-bind", name, name]
    arguments += ["--perms", "0755", "--dir", "/etc"]
    for name in _ETC:
        arguments += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    arguments += ["--proc", "/proc", "--dev", "/dev"]
    arguments += ["--perms", "1777", "--size", str(_SHM_BYTES), "--tmpfs", "/dev/shm"]
    arguments += ["--perms", "1777", "--size", str(tmp_bytes), "--tmpfs", "/tmp"]
    uid, gid = user
    files = {
        "/etc/passwd": f"sandbox:x:{uid}:{gid}:sandbox:/tmp:/bin/sh\n",
        "/etc/group": f"sandbox:x:{gid}:\n",
        "/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
        "/etc/hosts": "127.0.0.1 localhost\n::1 localhost\n",
    }
    return arguments, files


def path_arguments(writable: Iterable[Path], readable: Mapping[Path, Path]) -> list[str]:
    """Arguments that show each path under its own name, deeper ones over those above them.

    ``readable`` maps a name to the place it is read from. A path given as both can be written.
    """
    mounts: dict[Path, tuple[str, Path]] = {}
    for home in python_homes():
        for part in _PYTHON:
            if os.access(home / part, os.R_OK):
                mounts[home / part] = ("--ro-bind", home / part)
    for hidden in _hidden():
        if any(hidden.is_relative_to(path) for path in mounts):
            mounts[hidden] = ("--tmpfs", hidden)
    mounts |= {name: ("--ro-bind", source) for name, source in readable.items()}
    mounts |= {name: ("--bind", name) for name in writable}
    arguments: list[str] = []
    made: set[Path] = set()
    for name in sorted(mounts, key=lambda path: (len(path.parts), path)):
        # Folders on the way are made here, because bwrap would copy the rights of the host's,
        # and a home that only root may enter would stay closed.
        for parent in reversed(name.parents[:-1]):
            if parent not in made and not _inside(parent, mounts):
                arguments += ["--perms", "0755", "--dir", str(parent)]
                made.add(parent)
        kind, source = mounts[name]
        if kind == "--tmpfs":
            arguments += ["--size", "4096", kind, str(name)]
        else:
            arguments += [kind, str(source), str(name)]
    return arguments


def _inside(path: Path, mounts: Mapping[Path, object]) -> bool:
    fixed = (*map(Path, _SYSTEM), Path("/tmp"), Path("/dev"), Path("/proc"))
    if path in fixed or any(path.is_relative_to(top) for top in fixed if top != Path("/tmp")):
        return True
    return any(path.is_relative_to(top) for top in mounts)
