"""The gate that accepts only gains beyond chance. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ..types import Verdict
from .evidence import MARGIN, Ask, Decision, Evidence, Run, Summary, TaskChange, too_few
from .statistics import Paired, paired, within


@dataclass(frozen=True, slots=True)
class PairedGate:
    """Accepts a candidate only when its gain on the same tasks is beyond what chance gives.

    Head and candidate do the same tasks with the same seeds, ``repeats`` times. Per task the mean
    difference is taken, and over tasks the sign-flip test and its interval
    (``statistics.paired``). ``accepted``: the interval lies above zero and the gain is at least
    ``min_effect``. ``rejected``: the interval lies below ``min_effect``, or tasks broke, fresh runs
    confirmed it, and no gain makes up for them, or the scores are equal run for run and the
    candidate is not smaller. ``cannot_tell``: neither could be shown. ``unmeasured``: too few runs
    ended valid.

    **How often the holdout is asked.** The more candidates are tried on the same tasks, the surer
    one of them looks good by chance. The k-th look since the last accepted change is therefore
    given the level ``alpha / (k (k + 1))``: these sum to ``alpha`` over any number of looks, so by
    the union bound, whatever an engine learns from the verdicts, a change without any gain is
    accepted with a chance of at most ``alpha`` between two accepted ones. Simulated against the
    alternatives (``benchmarks/gate.py``, rows ``schedule_*``): an equal share of 20 looks finds
    a true gain at the first look much more rarely and knows no 21st; k^-1.5 gives half of the level
    away before the second; Blum and Hardt's ladder (2015) bounds the error of the reported score
    and not the rate of false acceptances, which is what users fear.

    **Growing slices.** A third of the tasks once, all once, then repeat by repeat. After each,
    a candidate that could hardly be accepted any more is dropped; a candidate may be accepted early
    with a tenth of its level, shared by the interim looks, and at the end with the other nine.
    Dropping early never accepts, so it can't raise the error. Where a second run gives exactly the
    scores of the first, for both, there is no noise to average out and the rest is not bought.

    Args:
        alpha: the level, in (0, 0.5).
        min_effect: the smallest mean gain worth a change, in score units.
        repeats: runs of each task.
        min_valid: share of tasks that must have a valid run on both sides.
        max_broken: more confirmed broken tasks than this refuse a candidate whatever it gains.
            ``None``: only the mean counts.
    """

    alpha: float = 0.05
    min_effect: float = 0.02
    repeats: int = 3
    min_valid: float = 0.6
    max_broken: int | None = None
    name: str = "paired"

    EARLY = 0.1
    """Share of a look's level that may be spent before all repeats are in."""
    HOPE = (1.75, 1.5)
    """Standard errors by which a candidate's mean may be better than it looks, in the first slice
    and later; what can't be accepted even so is dropped."""

    def level(self, look: int) -> float:
        """The chance given to the ``look``-th question, from 1."""
        return self.alpha / (look * (look + 1))

    def fewest(self, look: int = 1) -> int:
        """The fewest tasks with which a change could be accepted at this look."""
        return math.ceil(-math.log2(self._last(self.level(look))))

    def _last(self, level: float) -> float:
        """What of a look's level is left for its end."""
        return level if self.repeats == 1 else level * (1 - self.EARLY)

    def next(self, evidence: Evidence) -> Ask | Decision:
        level = self.level(evidence.look)
        total = len(evidence.tasks)
        if total < self.fewest(evidence.look):
            return Decision(
                "cannot_tell",
                f"not measured: {total} holdout tasks can't show a gain at look {evidence.look} "
                f"(at least {self.fewest(evidence.look)} are needed by now); add holdout tasks, "
                "or set gate: no_regression",
                total=total,
                alpha=level,
                look=evidence.look,
            )
        planned = evidence.before(self.repeats)
        first = [(task, 0) for task in evidence.tasks[: self._slice(total)]]
        if self._slice(total) < total:
            needed = planned.missing(first)
            if needed:
                return Ask(needed, "a part of the tasks, once")
            stop = self._hopeless(_head_of(planned, first), level, total, 0)
            if stop:
                return stop
        for repeat in range(self.repeats):
            needed = planned.missing((task, repeat) for task in evidence.tasks)
            if needed:
                return Ask(needed, f"every task, repeat {repeat + 1} of {self.repeats}")
            done = self._after(planned.before(repeat + 1), repeat, level)
            if done:
                return self._with_fresh_runs(evidence, done)
        raise AssertionError("the last repeat always decides")

    def _slice(self, total: int) -> int:
        return min(total, max(8, math.ceil(total / 3)))

    def _after(self, seen: Evidence, repeat: int, level: float) -> Decision | None:
        """The decision after this repeat of every task, if there is one yet."""
        last = repeat == self.repeats - 1 or (repeat == 1 and _noiseless(seen))
        few = too_few(seen, len(seen.tasks), self.min_valid)
        if few:
            return few
        if last:
            return self._final(seen, self._last(level))
        summary = Summary.of(seen)
        early = level * self.EARLY / (self.repeats - 1)
        if summary.gain >= self.min_effect and _nearly(summary.differences, early):
            test = paired(summary.differences, early)
            if test.p <= early:
                return self._judged("accepted", summary, test, early, seen)
        return self._hopeless(seen, level, len(seen.tasks), repeat)

    def _hopeless(self, seen: Evidence, level: float, total: int, repeat: int) -> Decision | None:
        """A decision to stop early, when even luck could hardly get this candidate accepted."""
        from statistics import NormalDist, stdev

        if not seen.pairs:
            return None
        summary = Summary.of(seen)
        share = self._last(level)
        n = len(summary.differences)
        if n < 2 or (spread := stdev(summary.differences)) == 0:
            return None  # an equal score run for run is told apart from noise by a repeat
        error = spread / math.sqrt(n)
        runs = sum(len(pairs) for pairs in seen.pairs.values())
        at_end = error * math.sqrt(runs / (total * self.repeats))
        needed = max(self.min_effect, NormalDist().inv_cdf(1 - share) * at_end)
        if summary.gain + self.HOPE[0 if n < total and repeat == 0 else 1] * error >= needed:
            return None
        test = paired(summary.differences, share)
        return self._judged(None, summary, test, share, seen, stopped=True)

    def _final(self, seen: Evidence, share: float) -> Decision:
        summary = Summary.of(seen)
        if summary.equal:
            if seen.shrinks:
                reason = f"the same score on every run of {summary.n} tasks, with smaller files"
                return summary.decision("accepted", reason, seen)
            reason = f"the same score on every run of {summary.n} tasks, and not smaller"
            return summary.decision("rejected", reason, seen)
        test = paired(summary.differences, share)
        passed = test.p <= share and test.mean >= self.min_effect
        return self._judged("accepted" if passed else None, summary, test, share, seen)

    def _judged(
        self,
        verdict: Verdict | None,
        summary: Summary,
        test: Paired,
        share: float,
        seen: Evidence,
        *,
        stopped: bool = False,
    ) -> Decision:
        """The decision that the interval tells; ``None`` where it is not an acceptance."""
        invalid = ""
        if verdict == "accepted" and (lost := seen.lost):
            worst = (math.fsum(summary.differences) - math.fsum(lost)) / (summary.n + len(lost))
            if worst < self.min_effect:
                verdict = "cannot_tell"
                invalid = (
                    f"{len(lost)} tasks have no valid run of the candidate only; were these "
                    f"failures, its gain would be {worst:+.3f}; "
                )
        if verdict is None:
            verdict = "rejected" if test.upper < self.min_effect else "cannot_tell"
        say = {
            "accepted": "a gain that chance hardly gives",
            "rejected": f"no gain of {self.min_effect:g} or more",
            "cannot_tell": "a gain can be neither shown nor ruled out",
        }[verdict]
        if stopped:
            say += ", stopped early: it could hardly have been accepted"
        reason = (
            f"{invalid}{say}: {summary.gain:+.3f}, "
            f"between {_end(test.lower)} and {_end(test.upper)} "
            f"(look {seen.look}, {share:.2%} each side); {summary.counts}"
        )
        decision = summary.decision(verdict, reason, seen, test, share)
        return replace(decision, stopped_early=stopped)

    # -- tasks that broke ----------------------------------------------------------------------

    def _with_fresh_runs(self, evidence: Evidence, decision: Decision) -> Ask | Decision:
        """Measure tasks that seem broken again before they count."""
        noise = _noise(evidence.before(self.repeats))
        repeats = max((change.runs for change in decision.tasks), default=1)
        limit = max(MARGIN, 2 * noise * math.sqrt(2 / repeats))
        suspects = [c for c in decision.tasks if c.candidate - c.head <= -limit]
        if not suspects or decision.stopped_early or decision.verdict == "rejected":
            return decision
        fresh = range(self.repeats, self.repeats + repeats)
        needed = evidence.missing((c.task, seed) for c in suspects for seed in fresh)
        if needed:
            return Ask(needed, "tasks that seem broken, again")
        again = evidence.only(lambda seed: seed >= self.repeats).pairs
        broken = {
            c.task
            for c in suspects
            if (pairs := again.get(c.task))
            and sum(after - before for before, after in pairs) / len(pairs) <= -limit
        }
        checked = {c.task for c in suspects}
        tasks = tuple(
            TaskChange(c.task, c.fate, c.head, c.candidate, c.runs, c.task in broken)
            if c.task in checked
            else c
            for c in decision.tasks
        )
        return self._veto(decision, tasks, sorted(broken))

    def _veto(
        self, decision: Decision, tasks: Sequence[TaskChange], broken: Sequence[str]
    ) -> Decision:
        decision = replace(decision, tasks=tasks)
        if not broken or decision.gain is None:
            return decision
        words = f"{len(broken)} broke, in fresh runs again"
        if decision.verdict == "accepted":
            if self.max_broken is None or len(broken) <= self.max_broken:
                return replace(decision, reason=f"{decision.reason}; {words}")
            reason = f"more than max_broken {self.max_broken} tasks: {words}; {decision.reason}"
            return replace(decision, verdict="rejected", reason=reason)
        if decision.gain > 0:
            return replace(decision, reason=f"{decision.reason}; {words}")
        reason = f"{words}, and no gain makes up for it; {decision.reason}"
        return replace(decision, verdict="rejected", reason=reason)


def _nearly(differences: Sequence[float], alpha: float) -> bool:
    """Whether the test is worth its many flips at this level: a coarser one is passed."""
    coarse = max(alpha, 1e-3)
    return paired(differences, coarse).p <= coarse


def _head_of(evidence: Evidence, runs: Iterable[Run]) -> Evidence:
    wanted = set(runs)
    return Evidence(
        evidence.tasks,
        {run: score for run, score in evidence.head.items() if run in wanted},
        {run: score for run, score in evidence.candidate.items() if run in wanted},
        evidence.look,
        evidence.shrinks,
    )


def _noiseless(evidence: Evidence) -> bool:
    """Whether every task that was run twice scored the same both times, on both sides."""
    return all(len(set(pairs)) == 1 for pairs in evidence.pairs.values())


def _noise(evidence: Evidence) -> float:
    """Standard deviation of one run's score about its task's mean, over both sides."""
    sides = [[pair[side] for pair in pairs] for pairs in evidence.pairs.values() for side in (0, 1)]
    return within(sides)


def _end(value: float) -> str:
    return f"{value:+.3f}" if math.isfinite(value) else "any"
