"""What stands in files, as a hash: a score holds only as long as they are the same."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path


def digest(path: Path) -> str:
    """A hash of a file's bytes, or of all names, bytes and links below a directory.

    Links are not followed. ``__pycache__`` is left out, as it changes for nothing.
    """
    if path.is_file():
        return sha256(path.read_bytes()).hexdigest()
    whole = sha256()
    for entry in sorted(path.rglob("*")):
        name = entry.relative_to(path)
        if "__pycache__" in name.parts:
            continue
        if entry.is_symlink():
            content = f"-> {entry.readlink()}".encode(errors="surrogateescape")
        elif entry.is_file():
            content = sha256(entry.read_bytes()).digest()
        else:
            continue
        whole.update(str(name).encode(errors="surrogateescape") + b"\0" + content + b"\0")
    return whole.hexdigest()
