"""``memory/<category>.jsonl``: one entry a line, newest last."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping
from pathlib import Path
from threading import Lock
from typing import Any

from ..errors import WorkspaceError
from . import line_merge, names
from .atomic import append_line
from .files import WorkspaceFiles

log = logging.getLogger(__name__)

_writing = Lock()
_reported: set[int] = set()
"""Hashes of the lines that were said to be unreadable, so that each is said once."""


class Memories(WorkspaceFiles):
    """What an agent has kept for later. A line that is not a JSON object (torn by a crash, edited
    by hand) is skipped and logged, and its bytes stay in the file."""

    def list_memory_categories(self) -> list[str]:
        """Names of the categories, sorted."""
        files = self._list_files("memory")
        return [name.removesuffix(".jsonl") for name in files if name.endswith(".jsonl")]

    def read_memories(self, category: str = "episodic") -> list[dict[str, Any]]:
        """The entries of a category, oldest first; ``[]`` when there is none."""
        path = self._category(category)
        return [entry for _, entry in self._lines(path) if entry is not None]

    def read_all_memories(self, limit: int | None = 100) -> list[dict[str, Any]]:
        """The newest ``limit`` entries of all categories (``None``: all), oldest first.

        Entries carry no time, so age is counted in lines from the end of each file: the last lines
        of all categories are the newest.
        """
        if limit is not None and limit <= 0:
            return []
        aged = []
        for category in self.list_memory_categories():
            entries = self.read_memories(category)
            aged += [(len(entries) - index, entry) for index, entry in enumerate(entries)]
        aged.sort(key=lambda item: -item[0])
        return [entry for _, entry in (aged if limit is None else aged[-limit:])]

    def add_memory(self, entry: Mapping[str, Any], category: str = "episodic") -> None:
        """Append one entry. Raises ``WorkspaceError`` when it can't be written as JSON."""
        path = self._category(category, writing=True)
        names.inside(self.root, path)
        line = _encode(entry, category)
        try:
            with _writing:
                append_line(path, line)
        except OSError as error:
            raise WorkspaceError(f"{path} can't be written: {error.strerror}") from error

    def write_memories(
        self, entries: Iterable[Mapping[str, Any]], category: str = "episodic"
    ) -> None:
        """Replace the entries of a category. Entries that were there keep their line as it was;
        lines that can't be read stay, at the top."""
        path = self._category(category, writing=True)
        wanted = [_encode(entry, category) for entry in entries]
        with _writing:
            old = self._read(path) or b""
            known: dict[bytes, bytes] = {}
            kept: list[bytes] = []
            for line, entry in self._lines(path):
                if entry is None:
                    kept.append(line)
                else:
                    known.setdefault(_encode(entry, category), line)
            kept += [known.get(line, line) for line in wanted]
            eol = line_merge.dominant_eol(old)
            data = b"".join(line + eol for line in kept)
            if data != old or not path.exists():
                self._write(path, data)

    def _lines(self, path: Path) -> list[tuple[bytes, dict[str, Any] | None]]:
        """Each line that is not blank, without its end, with its entry or ``None``."""
        lines: list[tuple[bytes, dict[str, Any] | None]] = []
        for number, raw in enumerate(line_merge.split_lines(self._read(path) or b""), 1):
            line = line_merge.content(raw)
            if not line.strip():
                continue
            entry, fault = parse_line(line)
            if fault and (known := hash((str(path), line))) not in _reported:
                _reported.add(known)
                log.warning("%s:%d: memory skipped: %s", path, number, fault)
            lines.append((line, entry))
        return lines

    def _category(self, category: str, *, writing: bool = False) -> Path:
        names.check("memory category", category)
        folder = self._place("memory")
        path = folder / self._existing(f"{category}.jsonl", folder)
        if writing and not path.exists():
            names.check("memory category", category, new=True)
        return path


def parse_line(line: bytes) -> tuple[dict[str, Any] | None, str]:
    """A line's entry, or ``None`` and why it has none."""
    try:
        entry = _DECODER.decode(line_merge.decode(line.removeprefix(line_merge.BOM)))
    except (ValueError, RecursionError) as error:
        return None, f"not JSON ({error})"
    if not isinstance(entry, dict):
        return None, "not a JSON object"
    return entry, ""


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is no number in JSON")


_DECODER = json.JSONDecoder(parse_constant=_no_number)


def _encode(entry: Mapping[str, Any], category: str) -> bytes:
    try:
        return line_merge.encode(json.dumps(dict(entry), ensure_ascii=False, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise WorkspaceError(
            f"a memory for {category!r} can't be written as JSON: {error}",
            fix="keep only text, finite numbers, lists and mappings in it",
        ) from error
