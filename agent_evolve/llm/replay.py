"""The answers that an interrupted run has paid for, given again to the run that goes on.

A call leaves its trace first and its ``call`` event second. So after a kill an answer is on the
disk with its event, or it has a trace alone, and then the event is written when the run goes on.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from threading import Lock
from typing import Any

from ..errors import ModelError
from ..journal import Event
from .traces import first_id_at, read_trace, traced_ids
from .types import Completion, Request

_KEY = ("cycle", "part", "candidate", "task", "seed", "role", "digest")
_FAILED = f"{ModelError.__name__}: "
_OF_A_RUN = frozenset({"call", "batch", "cycle_started", "evolved", "judged", "cycle_finished"})


class Replay:
    """Earlier calls of the work that goes on.

    An answer is given again to the request it answered: the same scope (cycle, part, version, task,
    seed), role, model and content. Where one request was made several times in a scope, the
    answers come in the order of the calls. A damaged or missing trace costs one call, no more.

    Args:
        calls: records of all calls that the work has cost, oldest first; they count against caps.
        open_calls: those whose answers may be given again.
        traces: the folder of traces.
        unrecorded: records found in traces alone; they belong to both of the above.
        seconds: wall time used so far.
    """

    def __init__(
        self,
        calls: Iterable[Mapping[str, Any]],
        open_calls: Iterable[Mapping[str, Any]],
        traces: Path,
        *,
        unrecorded: Iterable[Mapping[str, Any]] = (),
        seconds: float = 0.0,
    ) -> None:
        self.unrecorded = tuple(unrecorded)
        self.calls = (*calls, *self.unrecorded)
        self.seconds = seconds
        self._traces = traces
        self._lock = Lock()
        self._open: dict[tuple[Any, ...], deque[Mapping[str, Any]]] = defaultdict(deque)
        for call in (*open_calls, *self.unrecorded):
            if call.get("digest"):
                self._open[_key(call)].append(call)

    @classmethod
    def of_run(
        cls, events: Iterable[Event], traces: Path, *, finished: Collection[str] = ()
    ) -> Replay:
        """The newest run of a journal, when it is not over; an empty replay when it is.

        Answers of its unfinished cycle are given again, and those of its baseline, which each of
        its processes takes anew where a task had no valid score.

        Args:
            finished: reasons of ``run_stopped`` after which a run is over.
        """
        past = _Past(finished)
        for event in events:
            past.add(event)
        if past.over:
            return cls((), (), traces)
        found = _unrecorded(traces, past.known, past.since)
        mine = [call for call in found if call.get("part") != "evaluate"]
        return cls(past.calls, past.open_calls, traces, unrecorded=mine, seconds=past.seconds)

    @classmethod
    def of_evaluation(cls, events: Iterable[Event], traces: Path, candidate: str) -> Replay:
        """The evaluation of a version (by tree hash) that was killed before it was journaled."""
        known: set[str] = set()
        calls: list[Mapping[str, Any]] = []
        since = 0.0
        for event in events:
            if event.type == "evaluated":
                calls, since = [], event.time
            elif event.type == "call":
                known.add(str(event.get("call_id")))
                calls.append(event.data)
        found = _unrecorded(traces, known, since)
        mine, unrecorded = (
            [c for c in some if c.get("part") == "evaluate" and c.get("candidate") == candidate]
            for some in (calls, found)
        )
        return cls(mine, mine, traces, unrecorded=unrecorded)

    @property
    def empty(self) -> bool:
        """Whether it has no answer to give, and never had."""
        return not self._open

    def take(self, call: Mapping[str, Any], *, failures: bool) -> Completion | None:
        """The earlier answer to a call, once; ``None`` when it must be made.

        Args:
            call: its scope, role and digest.
            failures: give a model's failure again too, by raising ``ModelError``.
        """
        with self._lock:
            earlier = self._open.get(_key(call))
            while earlier:
                found = earlier.popleft()
                error = found.get("error")
                if error is None:
                    trace = read_trace(self._traces, str(found["call_id"]))
                    return trace.completion if trace else None
                if failures and error.startswith(_FAILED):
                    message, _, fix = error.removeprefix(_FAILED).partition("\n  -> ")
                    raise ModelError(message, fix=fix)
        return None

    def requests(self, model: str, roles: Collection[str]) -> Iterator[Request]:
        """What a model was asked in these roles, and answered or refused by itself."""
        for call in self.calls:
            error = call.get("error")
            asked = call.get("digest") and call.get("model") == model and call.get("role") in roles
            if asked and (error is None or error.startswith(_FAILED)):
                trace = read_trace(self._traces, str(call["call_id"]))
                yield trace.request if trace else Request(())


class _Past:
    """What the events of a journal say about its newest run."""

    def __init__(self, finished: Collection[str]) -> None:
        self.over = True
        self.since = 0.0
        self.calls: list[Mapping[str, Any]] = []
        self.open_calls: list[Mapping[str, Any]] = []
        self.known: set[str] = set()
        self._finished = finished
        self._before = 0.0  # seconds of earlier processes
        self._began: float | None = None
        self._last = 0.0

    @property
    def seconds(self) -> float:
        """Wall time of the run's processes; one that was killed ran until its last event."""
        return self._before + (0.0 if self._began is None else max(0.0, self._last - self._began))

    def add(self, event: Event) -> None:
        if event.type == "call":
            self.known.add(str(event.get("call_id")))
            if event.get("part") == "evaluate":
                return
            self.calls.append(event.data)
            self.open_calls.append(event.data)
        if event.type in _OF_A_RUN:
            self._last = event.time
        match event.type:
            case "run_started":
                self._start(event)
            case "run_stopped":
                self._last = event.time
                self._before, self._began = self.seconds, None
                self.over = event["reason"] in self._finished
            case "cycle_finished":
                self.open_calls = [c for c in self.open_calls if c.get("part") == "baseline"]
            case "rolled_back":
                self.over = True

    def _start(self, event: Event) -> None:
        self._before = 0.0 if self.over else self.seconds
        self._began = self._last = event.time
        if self.over:
            self.since, self.calls, self.open_calls = event.time, [], []
        self.over = False


def _unrecorded(traces: Path, known: Collection[str], since: float) -> list[Mapping[str, Any]]:
    """Records of traces newer than ``since`` whose call no event tells of."""
    first = first_id_at(since - 0.001)  # the journal rounds to milliseconds
    new = [name for name in traced_ids(traces) if name >= first and name not in known]
    return [trace.record for name in new if (trace := read_trace(traces, name)) is not None]


def _key(call: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(call.get(name) for name in _KEY)
