"""What a person sees: progress on stderr, tables and results on stdout."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from ..types import CycleRecord


def say(text: str) -> None:
    """A sentence on stderr."""
    print(text, file=sys.stderr, flush=True)


def emit_json(data: Any) -> None:
    """One JSON object on stdout."""
    print(json.dumps(data, ensure_ascii=False, default=str))


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A plain table on stdout, as wide as its content where stdout is not a terminal."""
    console = Console(width=None if sys.stdout.isatty() else 200, highlight=False)
    made = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        made.add_column(column, overflow="fold")
    for row in rows:
        made.add_row(*(_plain(cell) for cell in row))
    console.print(made)


def _plain(text: str) -> str:
    from rich.markup import escape

    return escape(text)


def number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def money(usd: float) -> str:
    return f"${usd:.4f}" if usd < 0.1 else f"${usd:.2f}"


def changes_line(changes: Mapping[str, Mapping[str, int]]) -> str:
    """``memory +2 ~1, skills -1``: files added, modified, deleted per layer."""
    parts = []
    for layer, counts in changes.items():
        signs = (("+", "added"), ("~", "modified"), ("-", "deleted"))
        marks = [f"{sign}{counts[key]}" for sign, key in signs if counts.get(key)]
        if marks:
            parts.append(f"{layer} {' '.join(marks)}")
    return ", ".join(parts) or "no change"


def cycle_line(record: CycleRecord, spent: float) -> str:
    """One line that tells a cycle."""
    if record.candidate_score is not None:
        holdout = f"holdout {number(record.head_score)} -> {number(record.candidate_score)}"
    else:
        holdout = f"holdout {number(record.holdout_score)}"
    line = (
        f"cycle {record.cycle:>3}  train {number(record.score)}  {holdout}  "
        f"{record.verdict:<11}  {changes_line(record.changes)}  "
        f"{record.seconds:.1f}s  {money(spent)}"
    )
    if record.verdict in ("failed", "unmeasured"):
        line += f"\n           {record.reason}"
    return line


class Watcher:
    """Progress of a run: a bar per phase on a terminal, one line per cycle everywhere."""

    def __init__(self, spent: Any = None, quiet: bool = False) -> None:
        self._console = Console(stderr=True, highlight=False)
        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=self._console,
            transient=True,
            disable=quiet or not self._console.is_terminal,
        )
        self._quiet = quiet
        self._task: Any = None
        self._usd = 0.0

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._bars.stop()

    def say(self, text: str) -> None:
        if not self._quiet:
            self._console.print(text, markup=False, soft_wrap=True)

    def phase(self, cycle: int, name: str, total: int) -> None:
        if self._task is not None:
            self._bars.remove_task(self._task)
        label = f"cycle {cycle} {name}" if cycle else name
        spent = f"  {money(self._usd)} so far" if self._usd else ""
        self._task = self._bars.add_task(label + spent, total=total)

    def advance(self) -> None:
        if self._task is not None:
            self._bars.advance(self._task)

    def cycle_done(self, record: CycleRecord) -> None:
        self._usd += record.usd
        if not self._quiet:
            self._console.print(cycle_line(record, self._usd), markup=False, soft_wrap=True)
