"""Tasks from files of one's own, with answers that never leave this module."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from ..errors import BenchmarkError, ConfigurationError, UnknownNameError
from ..runtime import Runtime
from ..types import Feedback, Task, Trajectory
from .base import BenchmarkAdapter
from .contents import digest
from .graders import Case, make_grader
from .graders.base import alternatives
from .graders.judge import Judge
from .graders.text import Regex
from .records import MISSING, Fields, Record, read_records, texts_in
from .splits import split_by_hash

_FIELDS = ("id", "input", "expected", "split", "hidden")
_OWN_SPLITS = ("holdout", "test")
_LITERAL = 4
_REGEX_PIECE = re.compile(
    r"\\([^A-Za-z0-9])|([^][\\.^$*+?|(){}])"  # characters that stand for themselves
    r"|\\.|\[\^?\]?(?:\\.|[^]\\])*\]"  # classes, anchors, references back, sets
    r"|\(\?(?:P?<\w+>|[a-zA-Z-]*[:)]|<?[=!])|\{[\d,]*\}|.",  # groups, repetitions
    re.DOTALL,
)


class LocalTasks(BenchmarkAdapter):
    """A benchmark from a file, or a directory, of tasks.

        benchmark:
          name: local
          tasks: tasks.jsonl         # .jsonl .csv .tsv .json (evals.json), a directory, or a list
          grader: {name: numeric, tolerance: 0.01}
          fields: {input: question, expected: gold, hidden: [notes]}
          split: {holdout: 0.3, test: 0.1, seed: 0}    # where the tasks themselves say none

    Args:
        root: what relative paths start from; the workspace.
        tasks: the file or directory, or several of them.
        grader: a name, ``file.py:function``, or a mapping with ``name`` and its options; see
            :func:`agent_evolve.benchmarks.graders.make_grader`.
        fields: which field of a record is its ``id``, ``input``, ``expected`` and ``split``;
            guessed from common names by default. ``hidden`` lists fields that no agent may see;
            those that usually tell the answer are never shown.
        split: shares of the tasks for ``holdout`` and ``test``, taken by a seeded hash of the ids.

    Everything is read and checked here: ``BenchmarkError`` names file and line.
    """

    def __init__(
        self,
        root: str | Path = ".",
        *,
        tasks: str | Sequence[str] = "tasks.jsonl",
        grader: str | Mapping[str, Any] = "normalised",
        fields: Mapping[str, Any] | None = None,
        split: Mapping[str, Any] | None = None,
        **unknown: Any,
    ) -> None:
        if unknown:
            raise UnknownNameError(
                "option of the benchmark 'local'",
                next(iter(unknown)),
                ("tasks", "grader", "fields", "split"),
            )
        self.root = Path(root)
        self.runtime = Runtime()
        self.grader = make_grader(grader, self.root)
        records = read_records(_paths(tasks, self.root), _fields(fields))
        self._records = {record.task.id: record for record in records}
        self._check_expected()
        self._by_split = _divide(records, split)
        self._digests: dict[str, str] = {}

    @property
    def needs_sandbox(self) -> bool:
        return self.grader.needs_sandbox

    @property
    def needs_model(self) -> bool:
        return self.grader.needs_model

    @property
    def judge_model(self) -> str | None:
        """The model a judge names for itself; ``None`` for the run's own."""
        return self.grader.model

    def get_tasks(self, split: str = "train", limit: int | None = 10) -> list[Task]:
        return self._by_split.get(split, [])[:limit]

    def evaluate(self, task: Task, trajectory: Trajectory) -> Feedback:
        """Score the trajectory's ``output``; what is no text scores 0.0. Raises ``BenchmarkError``
        for a task that is not from here, and whatever the grader raises."""
        record = self._record(task)
        if self.grader.needs_text and not isinstance(trajectory.output, str):
            kind = type(trajectory.output).__name__
            return Feedback(False, 0.0, f"the agent's output is a {kind}, not text")
        expected = None if record.expected is MISSING else record.expected
        case = Case(record.task, trajectory.output, expected, record.hidden, trajectory)
        return self.grader.grade(case, self.runtime)

    def answers_of(self, task: Task) -> list[str]:
        """The expected answers, and every text that only graders see. Of a regular expression it
        is the literal parts. Raises ``BenchmarkError`` for a task that is not from here."""
        record = self._record(task)
        told = [] if record.expected is MISSING else alternatives(record.expected)
        if isinstance(self.grader, Regex):
            told = [part for pattern in told for part in literals(pattern)]
        return [*told, *texts_in(record.hidden)]

    def judge_texts(self) -> list[str]:
        """The rubric of a judge."""
        return [str(self._grading[1])] if isinstance(self.grader, Judge) else []

    def fingerprint(self, task: Task) -> list[Any]:
        """What decides the score of an answer to this task, as JSON-able values."""
        record = self._record(task)
        expected = None if record.expected is MISSING else record.expected
        decides: list[Any] = [self._grading, expected, dict(record.hidden)]
        if self.grader.needs_model and self.grader.model is None and self.runtime.model is not None:
            decides.append(["model", self.runtime.model.name])
        if record.task.metadata.get("directory"):
            decides.append(["files", self._files(str(record.task.metadata["directory"]))])
        return decides

    def _files(self, directory: str) -> str:
        """What the agent finds when it begins, as of the first time it was asked for."""
        if directory not in self._digests:
            self._digests[directory] = digest(Path(directory))
        return self._digests[directory]

    @cached_property
    def _grading(self) -> Any:
        return self.grader.fingerprint()

    def _record(self, task: Task) -> Record:
        try:
            return self._records[task.id]
        except KeyError:
            raise BenchmarkError(f"there is no task {task.id!r} in the task files") from None

    def _check_expected(self) -> None:
        """A task that can't be graded is found now, not after it was paid for."""
        for record in self._records.values():
            if record.expected is MISSING:
                if self.grader.needs_expected:
                    raise BenchmarkError(
                        f"{record.where}: has no expected answer, which the grader needs",
                        fix="add an 'expected' field, or name the one that holds it: "
                        "benchmark: {name: local, fields: {expected: THE_FIELD}}",
                    )
                continue
            wrong = self.grader.why_not(record.expected)
            if wrong:
                raise BenchmarkError(f"{record.where}: the expected answer {wrong}")


def literals(pattern: str) -> list[str]:
    """The parts of a regular expression that stand for themselves, at least four characters long.

    >>> literals(r"(?i)\\bflight to (?:Rome|Oslo)\\.?$")
    ['flight to', 'Rome', 'Oslo']
    """
    pieces = (found[1] or found[2] or "\0" for found in _REGEX_PIECE.finditer(pattern))
    parts = (part.strip() for part in "".join(pieces).split("\0"))
    return [part for part in parts if len(part) >= _LITERAL]


def _paths(tasks: str | Sequence[str], root: Path) -> list[Path]:
    told = [tasks] if isinstance(tasks, str) else tasks
    if (
        not isinstance(told, list | tuple)
        or not told
        or not all(isinstance(name, str) and name for name in told)
    ):
        raise ConfigurationError(
            f"tasks: {tasks!r} names no file", fix="for example: tasks: tasks.jsonl"
        )
    return [root / name for name in told]


def _fields(told: Mapping[str, Any] | None) -> Fields:
    told = {} if told is None else told
    if not isinstance(told, Mapping):
        raise ConfigurationError(
            f"fields: {told!r} is no mapping", fix="for example: fields: {input: question}"
        )
    named = {kind: name for kind, name in told.items() if kind != "hidden" and name is not None}
    hidden = told.get("hidden") or ()
    hidden = (hidden,) if isinstance(hidden, str) else hidden
    for kind, name in named.items():
        if kind not in _FIELDS:
            raise UnknownNameError("key of 'fields'", str(kind), _FIELDS)
        if not isinstance(name, str):
            raise ConfigurationError(f"fields: {kind}: {name!r} is no name of a field")
    if not isinstance(hidden, list | tuple) or not all(isinstance(name, str) for name in hidden):
        raise ConfigurationError(
            f"fields: hidden: {hidden!r} are no names of fields",
            fix="for example: fields: {hidden: [notes]}",
        )
    return Fields(**named, hidden=tuple(hidden))


def _divide(records: list[Record], split: Mapping[str, Any] | None) -> dict[str, list[Task]]:
    told = any(record.split for record in records)
    if split is None:
        parts: dict[str, list[Task]] = {"train": [], "holdout": [], "test": []}
        for record in records:
            parts[record.split or "train"].append(record.task)
        return parts
    if told:
        first = next(record for record in records if record.split)
        raise ConfigurationError(
            f"the tasks say their split themselves ({first.where}: {first.split}), "
            "and 'split' under benchmark: says another",
            fix="remove one of the two",
        )
    if not isinstance(split, Mapping):
        raise ConfigurationError(
            f"split: {split!r} is no mapping of shares",
            fix="for example: split: {holdout: 0.3, seed: 0}; "
            "to name the field that says it: fields: {split: THE_FIELD}",
        )
    shares = {str(name): share for name, share in split.items() if name != "seed"}
    for name, share in shares.items():
        if name not in _OWN_SPLITS:
            raise UnknownNameError("key of 'split'", name, (*_OWN_SPLITS, "seed"))
        if isinstance(share, bool) or not isinstance(share, int | float):
            raise ConfigurationError(f"split: {name}: {share!r} is no number from 0 to 1")
    seed = split.get("seed", 0)
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise ConfigurationError(f"split: seed: {seed!r} is no whole number")
    return split_by_hash([record.task for record in records], shares, seed)
