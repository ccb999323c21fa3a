"""Writes observations, one JSON line each, the moment they are known."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

from ..errors import JournalError
from ..journal import Journal, encode, set_aside_torn_tail
from ..types import Feedback, Observation, Status, Task, Trajectory
from .records import observation_record

T = TypeVar("T")

_BATCH = re.compile(r"batch_(\d{4,})\.jsonl")


class Observer:
    """Collects observations in ``evolution/observations/batch_NNNN.jsonl``.

    ``record`` appends a line at once, so a killed process loses nothing; ``flush`` closes the batch
    and writes one event with its scores to the journal, from which all statistics are read.
    A batch that a killed process left unflushed is continued.

    Args:
        workspace_path: the workspace directory.
        journal: where ``flush`` writes; by default the workspace's own.
    """

    def __init__(self, workspace_path: str | Path, *, journal: Journal | None = None) -> None:
        self.directory = Path(workspace_path) / "evolution" / "observations"
        self.journal = journal or Journal(self.directory.parent / "journal.jsonl")
        self._lock = Lock()
        self._file: int | None = None
        self._open_path = self.directory
        self._recorded: list[tuple[str, float | None, Status]] = []
        self.batch = self._unflushed_or_next()

    def begin(self, batch: int) -> list[dict[str, Any]]:
        """Start or continue a batch by number; returns what it already holds, in file order."""
        self._close()
        self.batch = batch
        held = read_batch(self.path)
        self._recorded = [(r["task_id"], r.get("score"), r.get("status", "scored")) for r in held]
        return held

    @property
    def path(self) -> Path:
        return batch_path(self.directory, self.batch)

    def record(
        self,
        task: Task,
        trajectory: Trajectory,
        feedback: Feedback,
        *,
        status: Status = "scored",
        **extra: Any,
    ) -> Observation:
        """Append one observation; ``extra`` becomes further fields of its line."""
        observation = Observation(task, trajectory, feedback, status, self.batch)
        data = encode(observation_record(observation) | extra) + b"\n"
        with self._lock:
            if self._file is None:
                self._file = self._open()
            write_line(self._file, data, self._open_path)
            self._recorded.append((task.id, observation.score, status))
        return observation

    def flush(self, order: Sequence[str] = ()) -> None:
        """Close the batch and journal its scores, in the given order of task ids (default: as
        recorded). Does nothing when nothing was recorded."""
        with self._lock:
            self._close()
            if not self._recorded:
                return
            rows = _ranked(self._recorded, order, lambda row: row[0])
            self._recorded = []
            self.journal.append(
                "batch",
                cycle=self.batch,
                tasks=[row[0] for row in rows],
                scores=[row[1] for row in rows],
                statuses=[row[2] for row in rows],
            )
            self.batch += 1

    def _open(self) -> int:
        self._open_path = self.path
        self.directory.mkdir(parents=True, exist_ok=True)
        set_aside_torn_tail(self._open_path)
        return os.open(
            self._open_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644
        )

    def _close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _unflushed_or_next(self) -> int:
        last = self.journal.last("batch")
        flushed = last["cycle"] if last else 0
        present = max(batch_numbers(self.directory), default=0)
        if present > flushed:
            self.batch = present
            self.begin(present)
            return present
        return flushed + 1


def write_line(file: int, data: bytes, path: Path) -> None:
    """Append a whole line or, on a full disk, leave the file as it was and raise."""
    try:
        written = os.write(file, data)
    except OSError as error:
        raise _full(path, error) from error
    if written != len(data):
        os.ftruncate(file, os.lseek(file, 0, os.SEEK_END) - written)
        raise _full(path, OSError("the disk took only part of the line"))


def _full(path: Path, error: OSError) -> JournalError:
    return JournalError(
        f"can't write to {path}: {error}",
        fix="free some disk space and run again; what was recorded before is kept",
    )


def batch_path(directory: Path, batch: int) -> Path:
    return directory / f"batch_{batch:04d}.jsonl"


def batch_numbers(directory: Path) -> list[int]:
    """Numbers of the batch files that exist, ascending."""
    if not directory.is_dir():
        return []
    found = (_BATCH.fullmatch(name) for name in os.listdir(directory))
    return sorted(int(match[1]) for match in found if match)


def read_batch(path: Path) -> list[dict[str, Any]]:
    """The whole lines of a batch file; a torn last line is left out."""
    import json

    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return []
    lines = data.split(b"\n")[:-1]
    try:
        records: list[dict[str, Any]] = json.loads(b"[" + b",".join(lines) + b"]")
    except ValueError:
        records = []
        for number, line in enumerate(lines, start=1):
            try:
                records.append(json.loads(line))
            except ValueError as error:
                raise JournalError(
                    f"{path}, line {number}: not an observation ({error})",
                    fix=f"if the line is damaged, delete it: sed -i {number}d '{path}'",
                ) from error
    return records


def in_order(
    records: Sequence[dict[str, Any]], order: Sequence[str] | None
) -> Sequence[dict[str, Any]]:
    """The lines of a batch file in the order of its tasks; they were written as they came in, and
    what is read of them may not depend on the number of workers."""
    return records if order is None else _ranked(records, order, lambda record: record["task_id"])


def _ranked(items: Sequence[T], order: Sequence[str], task: Callable[[T], str]) -> list[T]:
    rank = {task_id: place for place, task_id in enumerate(order)}
    return sorted(items, key=lambda item: rank.get(task(item), len(rank)))
