"""What the fields of a task mean: its id, its input, and what no agent may see."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from ..errors import BenchmarkError, nearest
from ..types import Task
from .sources import Raw, reader

GUESSES: Mapping[str, Sequence[str]] = {
    "id": ("id", "task_id", "name"),
    "input": ("input", "prompt", "question", "query", "task", "instruction"),
    "expected": ("expected", "expected_output", "answer", "target", "label", "output"),
    "split": ("split",),
}
"""Field names that are taken, in this order, where the manifest names none. Letter case makes no
difference, nor whether words are joined by a space, ``-`` or ``_``."""

_TELLS_THE_ANSWER = frozenset(
    {
        *GUESSES["expected"],
        "answer_key",
        "answers",
        "assertions",
        "canonical_solution",
        "completion",
        "correct",
        "correct_answer",
        "expectations",
        "expected_answer",
        "expected_outputs",
        "expected_result",
        "explanation",
        "gold",
        "gold_answer",
        "gold_label",
        "golden_answer",
        "ground_truth",
        "ideal",
        "ideal_answer",
        "labels",
        "model_answer",
        "rationale",
        "reasoning",
        "reference",
        "reference_answer",
        "references",
        "rubric",
        "should_trigger",
        "solution",
        "solutions",
        "target_output",
        "targets",
        "truth",
    }
)
_SPLITS = {
    "train": "train",
    "training": "train",
    "holdout": "holdout",
    "hold-out": "holdout",
    "hold_out": "holdout",
    "validation": "holdout",
    "valid": "holdout",
    "val": "holdout",
    "dev": "holdout",
    "test": "test",
}

MISSING = object()
"""The expected answer of a task that gives none."""


@dataclass(frozen=True, slots=True)
class Record:
    """One task as read.

    ``expected`` is what the grader compares with (any JSON value, or ``MISSING``); ``hidden`` holds
    the fields that only a grader may see. ``split`` is ``""`` where the record says none, ``where``
    the file and line to name in an error.
    """

    task: Task
    expected: Any
    split: str
    where: str
    hidden: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Fields:
    """Which field of a record means what; ``None`` to guess. ``hidden`` names further fields that
    no agent may see."""

    id: str | None = None
    input: str | None = None
    expected: str | None = None
    split: str | None = None
    hidden: Sequence[str] = ()


def read_records(paths: Sequence[Path], fields: Fields) -> list[Record]:
    """All tasks of files and directories, in their order.

    Raises ``BenchmarkError`` naming file and line for whatever can't be read as a task: no line is
    ever passed over in silence. Nor is a field that ``fields`` names and no task has: a slip of the
    pen would show an answer or lose a split.
    """
    found: list[Raw] = []
    for path in paths:
        if not path.exists():
            raise BenchmarkError(
                f"there is no task file {path}",
                fix="correct 'tasks' under benchmark: in manifest.yaml",
            )
        here = list(reader(path)(path))
        if not here:
            raise BenchmarkError(
                f"{path} holds no tasks",
                fix="make a directory with an instruction.md for each task"
                if path.is_dir()
                else "add one JSON object a line, or one row under the header of a table",
            )
        found += here
    records = [_record(raw, fields) for raw in found]
    _refuse_unknown(fields, {name for raw in found for name in raw.values}, found[0].where)
    _refuse_duplicates(records)
    return records


def texts_in(value: Any, *, but: str = "") -> Iterator[str]:
    """The texts of a JSON value, those below the key ``but`` left out. No keys, no numbers."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            if key != but:
                yield from texts_in(item, but=but)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from texts_in(item, but=but)


def _record(source: Raw, fields: Fields) -> Record:
    raw, where = source.values, source.where
    names = {kind: _name(kind, raw, fields, where) for kind in GUESSES}
    if names["input"] is None:
        found = ", ".join(raw) or "nothing"
        raise BenchmarkError(
            f"{where}: has none of {', '.join(GUESSES['input'])}, but {found}",
            fix="name the field: benchmark: {name: local, fields: {input: THE_FIELD}}",
        )
    asked = raw[names["input"]]
    text = "" if asked is None else _as_text(asked)
    if not text.strip():
        raise BenchmarkError(f"{where}: the input is empty")
    if not _is_unicode(text):
        raise BenchmarkError(f"{where}: the input holds half of a surrogate pair, so it is no text")
    told = raw.get(names["id"]) if names["id"] else None
    task_id = _as_text(told) if told not in (None, "") else _made_id(text)
    if len(task_id) > 200 or not task_id.isprintable():
        raise BenchmarkError(
            f"{where}: the id {task_id[:60]!r} has {len(task_id)} characters, or some that can't "
            "be printed",
            fix="use an id of at most 200 printable characters",
        )
    expected = raw.get(names["expected"], MISSING) if names["expected"] else MISSING
    if expected is None or (expected == "" and source.blank_is_absent):
        expected = MISSING
    used = {name for name in names.values() if name}
    rest = {key: value for key, value in raw.items() if key not in used}
    secret = {k for k in rest if k in fields.hidden or _plain(k) in _TELLS_THE_ANSWER}
    shown = {key: value for key, value in rest.items() if key not in secret}
    return Record(
        task=Task(task_id, text, shown),
        expected=expected,
        split=_split(raw.get(names["split"]) if names["split"] else None, where),
        where=where,
        hidden={key: value for key, value in rest.items() if key in secret},
    )


def _name(kind: str, raw: Mapping[str, Any], fields: Fields, where: str) -> str | None:
    given: str | None = getattr(fields, kind)
    if given is None:
        plain: dict[str, str] = {}
        for name in raw:
            plain.setdefault(_plain(name), name)
        return next((plain[name] for name in GUESSES[kind] if name in plain), None)
    if kind == "input" and given not in raw:
        near = nearest(given, raw)
        guess = f"; did you mean {near!r}?" if near else ""
        raise BenchmarkError(f"{where}: has no field {given!r}{guess}")
    return given if given in raw else None


@cache
def _plain(name: str) -> str:
    return re.sub(r"[\s_-]+", "_", name.strip().casefold())


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _split(told: Any, where: str) -> str:
    if told in (None, ""):
        return ""
    name = _SPLITS.get(str(told).strip().casefold())
    if name is None:
        raise BenchmarkError(
            f"{where}: unknown split {told!r}",
            fix="use train, holdout (also: validation, dev) or test",
        )
    return name


def _as_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


def _made_id(text: str) -> str:
    """An id that stays the same when tasks are put in another order."""
    return f"task-{sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:10]}"


def _refuse_unknown(fields: Fields, known: Iterable[str], where: str) -> None:
    told = {"id": fields.id, "input": fields.input}
    told |= {"expected": fields.expected, "split": fields.split}
    for kind, name in [*told.items(), *(("hidden", name) for name in fields.hidden)]:
        if name is not None and name not in known:
            near = nearest(name, known)
            guess = f"; did you mean {near!r}?" if near else ""
            raise BenchmarkError(
                f"no task has the field {name!r} that 'fields' names as {kind}{guess}",
                fix=f"correct or remove it under benchmark: in manifest.yaml; {where} "
                f"and the others have {', '.join(sorted(known))}",
            )


def _refuse_duplicates(records: Sequence[Record]) -> None:
    first: dict[str, Record] = {}
    for record in records:
        before = first.setdefault(record.task.id, record)
        if before is not record:
            raise BenchmarkError(
                f"{record.where}: the id {record.task.id!r} stands at {before.where} already",
                fix="give every task an id of its own; without ids, remove the repeated task",
            )
