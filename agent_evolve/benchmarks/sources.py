"""Files of tasks, read whole: JSONL, CSV, ``evals.json``, or a directory for each task."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import BenchmarkError

_INPUT_FILES = ("instruction.md", "task.md", "prompt.md", "input.md", "input.txt")
_EXPECTED_FILES = ("expected.json", "expected.txt", "expected.md")


@dataclass(frozen=True, slots=True)
class Raw:
    """The fields of one task as they stand in a file, and the file and line to name in an error.

    ``blank_is_absent``: an empty text is how this kind of file says that there is none.
    """

    values: dict[str, Any]
    where: str
    blank_is_absent: bool = False


def reader(path: Path) -> Callable[[Path], Iterator[Raw]]:
    """How the tasks of a file or directory are read, by its suffix."""
    if path.is_dir():
        return _directory
    if path.suffix.lower() not in _READERS:
        raise BenchmarkError(
            f"{path}: tasks are read from .jsonl, .csv, .tsv, .json or a directory",
            fix="convert the file, one JSON object a line, and name it .jsonl",
        )
    return _READERS[path.suffix.lower()]


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        wide = error.object.startswith((b"\xff\xfe", b"\xfe\xff"))
        raise BenchmarkError(
            f"{path}:{line}: not UTF-8 (byte 0x{error.object[error.start]:02x})",
            fix=f"iconv -f {'utf-16' if wide else 'latin1'} -t utf-8 {path.name}",
        ) from error
    except OSError as error:
        raise BenchmarkError(f"{path} can't be read: {error.strerror}") from error


def _jsonl(path: Path) -> Iterator[Raw]:
    for number, line in enumerate(_text(path).split("\n"), 1):
        if line.strip():
            where = f"{path}:{number}"
            yield Raw(_object(_parsed(line, where), where), where)


def _json(path: Path) -> Iterator[Raw]:
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
        yield Raw(raw, where)


def _files(names: Any, path: Path, where: str) -> dict[str, str]:
    """Texts of the files that an eval names: beside it or, from ``evals/``, in the skill above.

    A name that leads out of there is refused: what it holds would be shown to a model.
    """
    if isinstance(names, dict):
        return names
    places = [path.parent]
    if path.parent.name == "evals":
        places.append(path.parent.parent)
    home = places[-1].resolve()
    found: dict[str, str] = {}
    for name in names if isinstance(names, list) else [names]:
        file = next((place / str(name) for place in places if (place / str(name)).is_file()), None)
        if file is None:
            raise BenchmarkError(f"{where}: there is no file {name!r} beside it")
        if ".." in Path(str(name)).parts or not file.resolve().is_relative_to(home):
            raise BenchmarkError(
                f"{where}: the file {name!r} lies outside {home}",
                fix="copy it there and name the copy",
            )
        try:
            found[str(name)] = file.read_bytes().decode()
        except UnicodeDecodeError as error:
            raise BenchmarkError(
                f"{where}: {name!r} is not text",
                fix="make a directory for the task and put the file into its files/",
            ) from error
        except OSError as error:
            raise BenchmarkError(f"{where}: {name!r} can't be read: {error.strerror}") from error
    return found


def _csv(path: Path) -> Iterator[Raw]:
    text = _text(path)
    if "\0" in text:
        raise BenchmarkError(f"{path} holds a NUL byte, so it is not CSV")
    csv.field_size_limit(max(csv.field_size_limit(), len(text) + 1))  # a cell may be a document
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
        values = dict(zip(header, row, strict=True))
        yield Raw(values, f"{path}:{line}", blank_is_absent=True)


def _directory(path: Path) -> Iterator[Raw]:
    """A task for each directory below: its text, its expected answer, ``task.json`` for further
    fields, and ``files/`` for what the agent finds when it begins."""
    for place in sorted(path.iterdir()):
        if place.name.startswith((".", "_")):
            continue
        if not place.is_dir():
            if place.suffix.lower() in _READERS:
                raise BenchmarkError(
                    f"{place} lies where each task has a directory of its own",
                    fix=f"name the file itself: tasks: [{path.name}/{place.name}]",
                )
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
        yield Raw(raw, str(place))


def _parsed(text: str, where: str) -> Any:
    try:
        return _DECODER.decode(text)
    except (ValueError, RecursionError) as error:
        raise BenchmarkError(f"{where}: not JSON: {error}", fix="correct or remove it") from error


def _no_repeated_key(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {twice!r} stands twice in one object")
    return made


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is no number that JSON can hold; leave the field out, or null")
    return value


_DECODER = json.JSONDecoder(
    object_pairs_hook=_no_repeated_key, parse_float=_finite, parse_constant=_finite
)


def _object(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        kind = type(value).__name__
        raise BenchmarkError(f"{where}: a task is a JSON object with an input, this is a {kind}")
    return value


_READERS: dict[str, Callable[[Path], Iterator[Raw]]] = {
    ".jsonl": _jsonl,
    ".ndjson": _jsonl,
    ".csv": _csv,
    ".tsv": _csv,
    ".json": _json,
}
