"""Git's object store, read and written in this process.

Starting ``git`` costs more than a whole cycle may, so blobs, trees, commits and tags are written as
loose objects through GitPython's own database. They reach the disk before any name leads to them.
"""

from __future__ import annotations

import os
from binascii import hexlify, unhexlify
from collections.abc import Iterable
from hashlib import sha1
from io import BytesIO
from pathlib import Path
from threading import RLock

from git.db import GitDB
from gitdb import IStream
from gitdb.exc import AmbiguousObjectName, BadObject, ODBError

from ..errors import VersionError

EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"

_MANY = 64
"""Above this many new objects the whole disk is synced once, instead of each file."""


class ObjectStore:
    """The objects of one git directory. Safe to read from several threads."""

    def __init__(self, git_dir: Path) -> None:
        self._objects = git_dir / "objects"
        self._db = GitDB(str(self._objects))
        self._lock = RLock()
        self._known: set[str] = set()
        self._unsynced: list[str] = []

    def put(self, kind: str, data: bytes) -> str:
        """Store an object (``blob``, ``tree``, ``commit`` or ``tag``) and return its id."""
        oid = object_id(kind, data)
        with self._lock:
            if oid in self._known:
                return oid
            if not self._db.has_object(unhexlify(oid)):
                self._store(kind, data)
                self._unsynced.append(oid)
            self._known.add(oid)
        return oid

    def _store(self, kind: str, data: bytes) -> None:
        try:
            self._db.store(IStream(kind.encode(), len(data), BytesIO(data)))
        except OSError as error:
            raise VersionError(
                f"{self._objects} can't be written: {error.strerror}; no version was made",
                fix="free some space, or correct the permissions, and run again",
            ) from error

    def get(self, oid: str) -> tuple[str, bytes]:
        """Kind and content of an object. Raises ``VersionError`` when it is missing or broken."""
        with self._lock:
            try:
                stream = self._stream(unhexlify(oid))
                return stream.type.decode(), stream.read()
            except (BadObject, ODBError, OSError, ValueError) as error:
                raise VersionError(
                    f"object {oid[:12]} can't be read from {self._objects}: {error}",
                    fix=f"git --git-dir={self._objects.parent} fsck",
                ) from error

    def _stream(self, binary: bytes):  # type: ignore[no-untyped-def]  # gitdb has no types
        try:
            return self._db.stream(binary)
        except (BadObject, OSError):
            self._db.update_cache(force=True)  # git may have packed it in the meantime
            return self._db.stream(binary)

    def complete(self, prefix: str) -> str | None:
        """The full id that an abbreviated one (4 hexadecimal digits or more) stands for.

        ``None`` when there is none; raises ``VersionError`` when there are several.
        """
        with self._lock:
            try:
                return hexlify(self._db.partial_to_complete_sha_hex(prefix)).decode()
            except AmbiguousObjectName as error:
                raise VersionError(
                    f"{prefix!r} stands for more than one object", fix="give more of its digits"
                ) from error
            except (BadObject, ValueError):
                return None

    def sync(self) -> None:
        """Force what was stored to the disk; called before a name is made to lead there."""
        with self._lock:
            written, self._unsynced = self._unsynced, []
        if len(written) > _MANY:
            os.sync()
            return
        for oid in written:
            descriptor = os.open(self._objects / oid[:2] / oid[2:], os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def close(self) -> None:
        """Let go of open packs."""
        with self._lock:
            self._db = GitDB(str(self._objects))


def object_id(kind: str, data: bytes) -> str:
    """What git calls an object."""
    return sha1(b"%s %d\0" % (kind.encode(), len(data)) + data).hexdigest()


def tree_bytes(entries: Iterable[tuple[str, int, str]]) -> bytes:
    """A tree object of ``(name, mode, id)``, ordered as git orders it: a directory counts as its
    name with a slash."""

    def key(entry: tuple[str, int, str]) -> bytes:
        name = os.fsencode(entry[0])
        return name + b"/" if entry[1] == 0o40000 else name

    return b"".join(
        b"%o %s\0%s" % (mode, os.fsencode(name), unhexlify(oid))
        for name, mode, oid in sorted(entries, key=key)
    )


def read_tree(data: bytes) -> list[tuple[str, int, str]]:
    """``(name, mode, id)`` of each entry of a tree object."""
    found, at = [], 0
    while at < len(data):
        space = data.index(b" ", at)
        end = data.index(b"\0", space)
        name = os.fsdecode(data[space + 1 : end])
        found.append((name, int(data[at:space], 8), data[end + 1 : end + 21].hex()))
        at = end + 21
    return found
