"""Scores that were paid for once: kept by content, never bought again."""

from __future__ import annotations

import hashlib
import inspect
import json
import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any

from ..agents.base import BaseAgent
from ..benchmarks.base import BenchmarkAdapter
from ..journal import encode, set_aside_torn_tail
from ..types import Feedback, Status, Task, Trajectory
from .observer import write_line
from .records import finite


def fingerprint(*parts: Any) -> str:
    """A short hash of anything JSON can write."""
    return hashlib.sha256(encode(parts)).hexdigest()[:32]


def agent_fingerprint(agent: BaseAgent) -> str:
    """What besides its files decides how an agent answers: its code, options and model."""
    model = agent.runtime.model
    return fingerprint(_source(type(agent)), agent.options, model.name if model else None)


def task_fingerprint(benchmark: BenchmarkAdapter, task: Task) -> str:
    """A task and how it is graded. A benchmark may tell through ``fingerprint(task)``; otherwise
    the source of its class stands for it."""
    own = getattr(benchmark, "fingerprint", None)
    grading = own(task) if callable(own) else _source(type(benchmark))
    return fingerprint(task.id, task.input, dict(task.metadata), grading)


@cache
def _source(cls: type) -> str:
    try:
        return inspect.getsource(inspect.getmodule(cls) or cls)
    except (OSError, TypeError):
        return f"{cls.__module__}.{cls.__qualname__}"


class ScoreCache:
    """Results by key (version, agent, task, seed) in ``evolution/cache/scores.jsonl``.

    Only valid results are kept. A damaged line costs one measurement, no more.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = Lock()
        self._file: int | None = None
        self._records: dict[str, Mapping[str, Any]] = {}
        self._load()

    def get(self, key: str) -> tuple[Trajectory, Feedback, Status] | None:
        record = self._records.get(key)
        if record is None:
            return None
        trajectory = Trajectory(
            record["task_id"],
            record["output"],
            error=record.get("error"),
            metrics=record.get("metrics", {}),
        )
        feedback = Feedback(
            record["success"], record["score"], record["detail"], record.get("raw", {})
        )
        return trajectory, feedback, record["status"]

    def put(
        self, key: str, trajectory: Trajectory, feedback: Feedback, status: Status, *, tree: str
    ) -> None:
        """Keep a result; ``tree`` is the hash of the files that the agent had loaded."""
        if status == "invalid":
            return
        record = {
            "key": key,
            "tree": tree,
            "task_id": trajectory.task_id,
            "status": status,
            "score": feedback.score,
            "success": feedback.success,
            "detail": feedback.detail,
            "output": trajectory.output,
            "error": trajectory.error,
            "metrics": finite(trajectory.metrics),
        }
        with self._lock:
            if self._file is None:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                set_aside_torn_tail(self.path)
                flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
                self._file = os.open(self.path, flags, 0o644)
            write_line(self._file, encode(record) + b"\n", self.path)
            self._records[key] = record

    def close(self) -> None:
        with self._lock:
            if self._file is not None:
                os.close(self._file)
                self._file = None

    def _load(self) -> None:
        try:
            lines = self.path.read_bytes().split(b"\n")
        except FileNotFoundError:
            return
        for line in lines:
            try:
                record = json.loads(line)
                self._records[record["key"]] = record
            except (ValueError, KeyError, TypeError):
                continue
