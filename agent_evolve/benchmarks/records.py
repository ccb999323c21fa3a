"""Tasks as people keep them: JSONL, CSV, ``evals.json``, or a directory for each."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from ..errors import BenchmarkError, nearest
from ..types import Task

GUESSES: Mapping[str, Sequence[str]] = {
    "id": ("id", "task_id", "name"),
    "input": ("input", "prompt", "question", "query", "task", "instruction"),
    "expected": ("expected", "expected_output", "answer", "target", "label", "output"),
    "split": ("split",),
}
"""Field names that are taken, in this order, where the manifest names none."""

_TELLS_THE_ANSWER = frozenset(
    {
        *GUESSES["expected"],
        "answers",
        "assertions",
        "completion",
        "expectations",
        "explanation",
        "gold",
        "ground_truth",
        "rationale",
        "reasoning",
        "reference",
        "rubric",
        "solution",
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
_INPUT_FILES = ("instruction.md", "task.md", "prompt.md", "input.md", "input.txt")
_EXPECTED_FILES = ("expected.json", "expected.txt", "expected.md")

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
    ever passed over in silence.
    """
    records: list[Record] = []
    for path in paths:
        if not path.exists():
            raise BenchmarkError(
                f"there is no task file {path}",
                fix="correct 'tasks' under benchmark: in manifest.yaml",
            )
        found = [_record(raw, where, fields) for raw, where in _reader(path)(path)]
        if not found:
            raise BenchmarkError(f"{path} holds no tasks", fix="add one JSON object a line")
        records += found
    _refuse_duplicates(records)
    return records


def _reader(path: Path) -> Callable[[Path], Iterator[tuple[dict[str, Any], str]]]:
    if path.is_dir():
        return _directory
    readers = {".jsonl": _jsonl, ".ndjson": _jsonl, ".csv": _csv, ".tsv": _csv, ".json": _json}
    if path.suffix.lower() not in readers:
        raise BenchmarkError(
            f"{path}: tasks are read from .jsonl, .csv, .tsv, .json or a directory",
            fix="convert the file, one JSON object a line, and name it .jsonl",
        )
    return readers[path.suffix.lower()]


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise BenchmarkError(
            f"{path}:{line}: not UTF-8 (byte 0x{error.object[error.start]:02x})",
            fix=f"iconv -f latin1 -t utf-8 {path.name}",
        ) from error
    except OSError as error:
        raise BenchmarkError(f"{path} can't be read: {error.strerror}") from error


def _jsonl(path: Path) -> Iterator[tuple[dict[str, Any], str]]:
    for number, line in enumerate(_text(path).split("\n"), 1):
        if line.strip():
            where = f"{path}:{number}"
            yield _object(_parsed(line, where), where), where


def _json(path: Path) -> Iterator[tuple[dict[str, Any], str]]:
    """A list of objects, or an object with one under ``evals`` (Agent Skills) or ``tasks``."""
    told = _parsed(_text(path), str(path))
    key = ""
    if isinstance(told, dict):
        key = next((name for name in ("evals", "tasks") if isinstance(told.get(name), list)), "")
        told = told.get(key)
    if not isinstance(told, list):
        raise BenchmarkError(
            f"{path}: neither a list of tasks nor an object with a list under 'evals' or 'tasks'"
        )
    for number, item in enumerate(told):
        where = f"{path}: {key}[{number}]"
        raw = _object(item, where)
        if raw.get("files"):
            raw["files"] = _files(raw["files"], path, where)
        else:
            raw.pop("files", None)
        yield raw, where


def _files(names: Any, path: Path, where: str) -> dict[str, str]:
    """Texts of the files that an eval names, looked for beside it and in the skill."""
    if isinstance(names, dict):
        return names
    found: dict[str, str] = {}
    for name in names if isinstance(names, list) else [names]:
        places = [path.parent / str(name), path.parent.parent / str(name)]
        file = next((place for place in places if place.is_file()), None)
        if file is None:
            raise BenchmarkError(f"{where}: there is no file {name!r} beside it")
        try:
            found[str(name)] = file.read_bytes().decode()
        except UnicodeDecodeError as error:
            raise BenchmarkError(
                f"{where}: {name!r} is not text",
                fix="make a directory for the task and put the file into its files/",
            ) from error
    return found


def _csv(path: Path) -> Iterator[tuple[dict[str, Any], str]]:
    text = _text(path)
    if "\0" in text:
        raise BenchmarkError(f"{path} holds a NUL byte, so it is not CSV")
    delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    header: list[str] | None = None
    while True:
        line = rows.line_num + 1
        try:
            row = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            raise BenchmarkError(f"{path}:{line}: {error}", fix="correct the quotes") from error
        if not row:
            continue
        if header is None:
            header = row
            if len(set(header)) < len(header):
                raise BenchmarkError(f"{path}:{line}: the header names a column twice: {header}")
            continue
        if len(row) != len(header):
            raise BenchmarkError(
                f"{path}:{line}: {len(row)} cells under a header of {len(header)}",
                fix="put cells that hold a comma or a line end into double quotes",
            )
        yield dict(zip(header, row, strict=True)), f"{path}:{line}"


def _directory(path: Path) -> Iterator[tuple[dict[str, Any], str]]:
    """A task for each directory below: its text, its expected answer, ``task.json`` for further
    fields, and ``files/`` for what the agent finds when it begins."""
    for place in sorted(entry for entry in path.iterdir() if entry.is_dir()):
        if place.name.startswith((".", "_")):
            continue
        source = next((place / name for name in _INPUT_FILES if (place / name).is_file()), None)
        if source is None:
            raise BenchmarkError(
                f"{place} holds no task: none of {', '.join(_INPUT_FILES)}",
                fix="write the task into instruction.md, or begin the name with '_' to skip it",
            )
        raw: dict[str, Any] = {"id": place.name, "input": _text(source)}
        about = place / "task.json"
        if about.is_file():
            raw |= _object(_parsed(_text(about), str(about)), str(about))
        wanted = next((place / name for name in _EXPECTED_FILES if (place / name).is_file()), None)
        if wanted is not None:
            text = _text(wanted)
            raw["expected"] = _parsed(text, str(wanted)) if wanted.suffix == ".json" else text
        if (place / "files").is_dir():
            raw["directory"] = str((place / "files").absolute())
        yield raw, str(place)


def _parsed(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BenchmarkError(f"{where}: not JSON: {error}", fix="correct or remove it") from error


def _object(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        kind = type(value).__name__
        raise BenchmarkError(f"{where}: a task is a JSON object with an input, this is a {kind}")
    return value


def _record(raw: Mapping[str, Any], where: str, fields: Fields) -> Record:
    names = {kind: _name(kind, raw, fields, where) for kind in GUESSES}
    if names["input"] is None:
        found = ", ".join(raw) or "nothing"
        raise BenchmarkError(
            f"{where}: has none of {', '.join(GUESSES['input'])}, but {found}",
            fix="name the field: benchmark: {name: local, fields: {input: THE_FIELD}}",
        )
    text = _as_text(raw[names["input"]])
    if not text.strip():
        raise BenchmarkError(f"{where}: the input is empty")
    told = raw.get(names["id"]) if names["id"] else None
    task_id = _as_text(told) if told not in (None, "") else _made_id(text)
    if len(task_id) > 200 or not task_id.isprintable():
        raise BenchmarkError(
            f"{where}: the id {task_id[:60]!r} has {len(task_id)} characters, or some that can't "
            "be printed",
            fix="use an id of at most 200 printable characters",
        )
    expected = raw.get(names["expected"], MISSING) if names["expected"] else MISSING
    expected = MISSING if expected is None else expected
    used = {name for name in names.values() if name}
    secret = _TELLS_THE_ANSWER | set(fields.hidden)
    rest = {key: value for key, value in raw.items() if key not in used}
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
        return next((name for name in GUESSES[kind] if name in raw), None)
    if kind == "input" and given not in raw:
        near = nearest(given, raw)
        guess = f"; did you mean {near!r}?" if near else ""
        raise BenchmarkError(f"{where}: has no field {given!r}{guess}")
    return given if given in raw else None


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
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return json.dumps(value, ensure_ascii=False)


def _made_id(text: str) -> str:
    """An id that stays the same when tasks are put in another order."""
    return f"task-{sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:10]}"


def _refuse_duplicates(records: Sequence[Record]) -> None:
    first: dict[str, Record] = {}
    for record in records:
        before = first.setdefault(record.task.id, record)
        if before is not record:
            raise BenchmarkError(
                f"{record.where}: the id {record.task.id!r} stands at {before.where} already",
                fix="give every task an id of its own; without ids, remove the repeated task",
            )
