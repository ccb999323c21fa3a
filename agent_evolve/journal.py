"""The append-only event log that every resume, report and count is derived from.

One JSON object a line: ``{"v": 1, "seq": 7, "time": 1730000000.0, "type": "cycle_started", ...}``.
A line is written by a single ``write`` and is either wholly there or, after a crash, a torn tail
that the next writer sets aside. Nothing is ever rewritten.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any

from .errors import JournalError

FORMAT = 1
_RESERVED = frozenset({"v", "seq", "time", "type"})


@dataclass(frozen=True, slots=True)
class Event:
    """One line of the journal: its number (from 1), type, time (seconds since 1970) and data."""

    seq: int
    type: str
    time: float
    data: Mapping[str, Any]

    def __getitem__(self, key: str) -> Any:
        return self.data[key]

    def get(self, key: str, default: Any = None) -> Any:
        return self.data.get(key, default)


class Journal:
    """The journal of one workspace.

    Reading needs no lock; writing is for the holder of the run lock. Events are kept in memory
    after the first read, so asking again costs nothing.

    Raises ``JournalError`` for a line that is not an event (a torn last line is no error) and when
    a line can't be written whole; in that case the file is as it was before.
    """

    def __init__(self, path: Path, *, clock: Callable[[], float] = time.time) -> None:
        self.path = path
        self._clock = clock
        self._lock = Lock()
        self._file: int | None = None
        self._events: list[Event] | None = None
        self._closed = False

    def events(self, *types: str) -> Iterator[Event]:
        """All events in order, or those of the given types."""
        for event in self._loaded():
            if not types or event.type in types:
                yield event

    def last(self, *types: str) -> Event | None:
        """The newest event of the given types."""
        for event in reversed(self._loaded()):
            if not types or event.type in types:
                return event
        return None

    def append(self, type: str, *, sync: bool = False, **data: Any) -> Event:
        """Write one event. With ``sync`` it is on the disk when this returns."""
        if _RESERVED & data.keys():
            raise ValueError(f"reserved event keys: {sorted(_RESERVED & data.keys())}")
        with self._lock:
            if self._closed:
                raise JournalError(f"{type!r} came too late: the journal {self.path} is closed")
            events = self._loaded()
            event = Event(events[-1].seq + 1 if events else 1, type, self._clock(), data)
            self._write(_line(event), sync)
            events.append(event)
        return event

    def close(self) -> None:
        """Let go of the file. Nothing is written after this: the run lock is someone else's."""
        with self._lock:
            self._closed = True
            if self._file is not None:
                os.close(self._file)
                self._file = None

    def _loaded(self) -> list[Event]:
        if self._events is None:
            self._events = read_events(self.path)
        return self._events

    def _write(self, line: bytes, sync: bool) -> None:
        if self._file is None:
            self._file = self._open()
        before = os.lseek(self._file, 0, os.SEEK_END)
        try:
            written = os.write(self._file, line)
            if written != len(line):
                raise OSError("the disk took only part of the line")
            if sync:
                os.fsync(self._file)
        except OSError as error:
            os.ftruncate(self._file, before)
            raise JournalError(
                f"can't write to the journal {self.path}: {error}",
                fix="free some disk space and run again; nothing was half-written",
            ) from error

    def _open(self) -> int:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        set_aside_torn_tail(self.path)
        return os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)


def read_events(path: Path) -> list[Event]:
    """All whole events of a journal file; a torn last line is left out."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return []
    lines = data.split(b"\n")
    lines.pop()  # empty after a whole last line, torn otherwise
    try:
        parsed = json.loads(b"[" + b",".join(lines) + b"]")
        return [_event(item) for item in parsed]
    except (ValueError, KeyError, TypeError):
        return _read_one_by_one(path, lines)


def set_aside_torn_tail(path: Path) -> bytes:
    """Cut a last line that was not written whole and keep its bytes beside the file in
    ``<name>.torn``. Returns the bytes that were cut."""
    try:
        with path.open("r+b") as file:
            data = file.read()
            end = data.rfind(b"\n") + 1
            torn = data[end:]
            if torn:
                with path.with_name(path.name + ".torn").open("ab") as aside:
                    aside.write(torn + b"\n")
                file.truncate(end)
            return torn
    except FileNotFoundError:
        return b""


def _read_one_by_one(path: Path, lines: list[bytes]) -> list[Event]:
    events = []
    for number, line in enumerate(lines, start=1):
        try:
            events.append(_event(json.loads(line)))
        except (ValueError, KeyError, TypeError) as error:
            raise JournalError(
                f"{path}, line {number}: not a journal event ({error})",
                fix=f"look at the line; if it is damaged, delete it: sed -i {number}d '{path}'",
            ) from error
    return events


def _event(item: dict[str, Any]) -> Event:
    if item.pop("v") > FORMAT:
        raise JournalError(
            "the journal was written by a newer agent-evolver",
            fix="pip install --upgrade agent-evolver",
        )
    return Event(item.pop("seq"), item.pop("type"), item.pop("time"), item)


def _line(event: Event) -> bytes:
    head = {"v": FORMAT, "seq": event.seq, "time": round(event.time, 3), "type": event.type}
    return encode(head | dict(event.data)) + b"\n"


def encode(value: Any) -> bytes:
    """JSON on one line. Objects that JSON does not know become text, and so do NaN and infinities:
    what an agent or engine puts into its metadata can't stop a run."""
    try:
        return _dumps(value)
    except (ValueError, TypeError):
        return _dumps(_plain(value))


_encode = json.JSONEncoder(allow_nan=False, default=str, separators=(",", ":")).encode


def _dumps(value: Any) -> bytes:
    return _encode(value).encode()


def _plain(value: Any, depth: int = 0) -> Any:
    if depth > 50:
        return "..."
    if isinstance(value, Mapping):
        return {str(key): _plain(item, depth + 1) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item, depth + 1) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value
