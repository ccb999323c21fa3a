"""Everything known about train tasks at a step: from memory, from past cycles, from this one.
Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ...types import Observation
from .cases import Case, case_from


@dataclass(frozen=True, slots=True)
class Evidence:
    """Attributes:
    known: one case per task, by its newest answer; ``failed`` if it ever did.
    to_correct: tasks whose newest observation is a failure, this cycle's last.
    failed_now, failed_before: failures as observed, of this cycle and of those before.
    observed: how many valid observations this cycle has.
    """

    known: Sequence[Case]
    to_correct: Sequence[Case]
    failed_now: Sequence[Case]
    failed_before: Sequence[Case]
    observed: int

    @classmethod
    def gather(
        cls, remembered: Sequence[Case], past: Iterable[Observation], now: Iterable[Observation]
    ) -> Evidence:
        present = [case_from(observation) for observation in now if observation.status != "invalid"]
        current = {(case.task_id, case.cycle) for case in present}
        before = [case_from(observation) for observation in past if observation.status != "invalid"]
        before = [case for case in before if (case.task_id, case.cycle) not in current]
        newest: dict[str, Case] = {}
        for case in [*before, *present]:
            newest.pop(case.task_id, None)
            newest[case.task_id] = case
        return cls(
            known=_by_task([*remembered, *before, *present]),
            to_correct=[case for case in newest.values() if case.failed],
            failed_now=[case for case in present if case.failed],
            failed_before=[case for case in before if case.failed],
            observed=len(present),
        )

    @property
    def in_words(self) -> str:
        return f"{self.observed} tasks observed, {len(self.failed_now)} failed"


def _by_task(cases: Iterable[Case]) -> list[Case]:
    """One case per task in the order of first mention: the newest, with the last known answer."""
    known: dict[str, Case] = {}
    for case in cases:
        before = known.get(case.task_id)
        if before is not None:
            expected = case.expected if case.expected is not None else before.expected
            case = replace(case, expected=expected, failed=case.failed or before.failed)
        known[case.task_id] = case
    return list(known.values())
