"""How often the gate is wrong, and how often it finds a gain that is there. Simulated, seeds fixed.

    python benchmarks/gate.py [--runs 2000]

Each row is one JSON line on stdout; a table for people follows on stderr. The gate that is shipped
is asked, look by look, as the loop asks it; only the scores are made up. Three kinds of noise:

``normal``      a task's score is its difficulty plus normal noise, cut to [0, 1];
``heavy``       the same with Student's t of 2 degrees of freedom;
``pass_fail``   a task passes with its own chance.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
from scipy import stats

from agent_evolve.loop.gate import Ask, Decision, Evidence, Gate, PairedGate, Run

TASKS, REPEATS, LOOKS = 30, 3, 20
KINDS = ("normal", "heavy", "pass_fail")


@dataclass
class Arm:
    """One version's scores, drawn when asked for and then kept, as the score cache does."""

    means: Any
    kind: str
    generator: Any
    noise: float
    calls: int = 0

    def __post_init__(self) -> None:
        self.known: dict[Run, float] = {}

    def score(self, run: Run) -> float:
        if run not in self.known:
            self.calls += 1
            self.known[run] = self._draw(self.means[int(run[0])])
        return self.known[run]

    def _draw(self, mean: float) -> float:
        if self.kind == "pass_fail":
            return float(self.generator.random() < mean)
        if self.kind == "heavy":
            wide = self.generator.standard_t(2) * self.noise / 2
        else:
            wide = self.generator.normal() * self.noise
        if self.kind == "unbounded":
            return float(mean + wide)
        return float(min(1.0, max(0.0, mean + wide)))


def difficulties(generator: Any) -> Any:
    """Chances of success: some tasks always done, some never, most in between."""
    return generator.beta(0.8, 0.8, TASKS)


def ask(gate: Gate, head: Arm, candidate: Arm, look: int) -> Decision:
    order = [str(i) for i in range(TASKS)]
    known: tuple[dict[Run, float | None], dict[Run, float | None]] = ({}, {})
    while True:
        answer = gate.next(Evidence(order, dict(known[0]), dict(known[1]), look))
        if isinstance(answer, Decision):
            return answer
        assert isinstance(answer, Ask)
        for run in answer.runs:
            known[0][run], known[1][run] = head.score(run), candidate.score(run)


def null_run(seed: int, gate: Gate, kind: str, noise: float) -> dict[str, Any]:
    """Twenty candidates that change nothing, against one head: was any accepted?"""
    generator = np.random.default_rng(seed)
    means = difficulties(generator)
    head = Arm(means, kind, generator, noise)
    verdicts, calls = [], 0
    for look in range(1, LOOKS + 1):
        candidate = Arm(means, kind, generator, noise)
        verdicts.append(ask(gate, head, candidate, look).verdict)
        calls += candidate.calls
    return {"accepted": "accepted" in verdicts, "verdicts": verdicts, "calls": calls}


def one_look(
    seed: int, gate: Gate, kind: str, noise: float, change: Callable[[Any, Any], Any], look: int = 1
) -> dict[str, Any]:
    """One changed candidate, and what a fixed-sample t-test says of the same scores."""
    generator = np.random.default_rng(seed)
    means = difficulties(generator)
    head = Arm(means, kind, generator, noise)
    candidate = Arm(change(means, generator), kind, generator, noise)
    decision = ask(gate, head, candidate, look)
    calls = candidate.calls
    level = gate.level(look) if isinstance(gate, PairedGate) else 0.05
    runs = [[(str(t), r) for r in range(REPEATS)] for t in range(TASKS)]
    differences = [
        sum(candidate.score(run) - head.score(run) for run in of_task) / REPEATS for of_task in runs
    ]
    p = stats.ttest_1samp(differences, 0.0, alternative="greater").pvalue
    return {"verdict": decision.verdict, "t_test": bool(p <= level), "calls": calls}


def gains(means: Any, generator: Any, gain: float) -> Any:
    """A true mean gain spread unevenly over the tasks, as far as each can rise."""
    share = (1 - means) * generator.uniform(0.5, 1.5, TASKS)
    risen = means + share * (gain * TASKS / share.sum())
    return np.minimum(risen, 1.0) + max(0.0, gain - float(np.mean(np.minimum(risen, 1) - means)))


def unbounded_gain(means: Any, generator: Any, gain: float) -> Any:
    return means + gain


def breaks(means: Any, generator: Any, count: int) -> Any:
    """The ``count`` tasks that the head does best are lost, nothing else changes."""
    changed = means.copy()
    changed[np.argsort(means)[-count:]] = 0.0
    return changed


class Uncorrected(PairedGate):
    """Every look at the whole level."""

    def level(self, look: int) -> float:
        return 0.05


class Uniform(PairedGate):
    """The level in equal shares for 20 looks."""

    def level(self, look: int) -> float:
        return 0.05 / LOOKS if look <= LOOKS else 1e-9


class PowerLaw(PairedGate):
    """Shares that fall with the 1.5th power of the look."""

    def level(self, look: int) -> float:
        return 0.05 * float(look**-1.5) / 2.612375


@dataclass(frozen=True)
class Ladder:
    """Blum and Hardt's ladder without parameter: accept what beats the best score so far by the
    standard error of the difference."""

    name: str = "ladder"

    def next(self, evidence: Evidence) -> Ask | Decision:
        needed = evidence.missing((t, r) for t in evidence.tasks for r in range(REPEATS))
        if needed:
            return Ask(needed)
        differences = [
            math.fsum(a - b for b, a in pairs) / len(pairs) for pairs in evidence.pairs.values()
        ]
        gain = float(np.mean(differences))
        error = float(np.std(differences, ddof=1)) / math.sqrt(len(differences))
        return Decision("accepted" if gain > error else "rejected", "")


def noise_for_85(kind_level: float = 0.025) -> float:
    """The noise at which a paired t-test at this level finds a gain of 0.15 with chance 0.85."""
    from scipy import optimize

    critical = stats.t.isf(kind_level, TASKS - 1)
    shift = optimize.brentq(lambda d: stats.nct.sf(critical, TASKS - 1, d) - 0.85, 0.1, 20)
    return float(0.15 / shift * math.sqrt(TASKS) * math.sqrt(REPEATS / 2))


def rate(results: list[dict[str, Any]], key: str, value: Any = True) -> float:
    return sum(result[key] == value for result in results) / len(results)


def rows(runs: int, pool: ProcessPoolExecutor) -> Iterator[dict[str, Any]]:
    def simulate(function: Callable[[int], dict[str, Any]], count: int = runs) -> Any:
        return list(pool.map(function, range(count), chunksize=max(1, count // 40)))

    gate = PairedGate()
    sigma = {"normal": 0.3, "heavy": 0.3, "pass_fail": 0.0}
    for kind in KINDS:
        found = simulate(partial(null_run, gate=gate, kind=kind, noise=sigma[kind]))
        accepted = rate(found, "accepted")
        spread = 1.96 * math.sqrt(max(accepted * (1 - accepted), 1 / runs) / runs)
        all_verdicts = [v for result in found for v in result["verdicts"]]
        yield {
            "row": f"false_acceptance_{kind}",
            "value": accepted,
            "interval": [max(0.0, accepted - spread), accepted + spread],
            "unit": f"share of {runs} runs of {LOOKS} looks, {TASKS} tasks x {REPEATS}",
            "goal": 0.05,
            "better": "lower",
            "verdicts": {v: all_verdicts.count(v) / len(all_verdicts) for v in set(all_verdicts)},
            "runs_bought": sum(r["calls"] for r in found) / len(all_verdicts),
            "peers": {},
        }
    noise = noise_for_85()
    found = simulate(
        partial(
            one_look,
            gate=gate,
            kind="unbounded",
            noise=noise,
            change=partial(unbounded_gain, gain=0.15),
        )
    )
    yield {
        "row": "power_gain_0.15",
        "value": rate(found, "verdict", "accepted"),
        "unit": f"share of {runs} runs, first look, level 0.025 one-sided",
        "goal": 0.80,
        "better": "higher",
        "runs_bought": sum(r["calls"] for r in found) / runs,
        "peers": {"paired t-test, same level, all runs": rate(found, "t_test")},
    }
    for kind in KINDS:
        found = simulate(
            partial(
                one_look, gate=gate, kind=kind, noise=sigma[kind], change=partial(gains, gain=0.15)
            )
        )
        yield {
            "row": f"power_gain_0.15_{kind}",
            "value": rate(found, "verdict", "accepted"),
            "unit": f"share of {runs} runs, first look",
            "goal": None,
            "better": "higher",
            "runs_bought": sum(r["calls"] for r in found) / runs,
            "peers": {"paired t-test, same level, all runs": rate(found, "t_test")},
        }
        found = simulate(
            partial(
                one_look, gate=gate, kind=kind, noise=sigma[kind], change=partial(breaks, count=2)
            )
        )
        yield {
            "row": f"breaks_2_of_30_{kind}",
            "value": 1 - rate(found, "verdict", "accepted"),
            "unit": f"share of {runs} runs refused",
            "goal": 0.95,
            "better": "higher",
            "rejected": rate(found, "verdict", "rejected"),
            "cannot_tell": rate(found, "verdict", "cannot_tell"),
            "peers": {},
        }


def schedule_rows(runs: int, pool: ProcessPoolExecutor) -> Iterator[dict[str, Any]]:
    def simulate(function: Callable[[int], dict[str, Any]], count: int) -> Any:
        return list(pool.map(function, range(count), chunksize=max(1, count // 40)))

    gate = PairedGate()
    few = max(100, runs // 4)
    schedules: dict[str, Gate] = {
        "k(k+1), shipped": gate,
        "uniform over 20": Uniform(),
        "k^-1.5": PowerLaw(),
        "uncorrected": Uncorrected(),
        "ladder": Ladder(),
    }
    for name, policy in schedules.items():
        false = simulate(partial(null_run, gate=policy, kind="pass_fail", noise=0.0), few)
        power = {
            look: rate(
                simulate(
                    partial(
                        one_look,
                        gate=policy,
                        kind="pass_fail",
                        noise=0.0,
                        change=partial(gains, gain=0.15),
                        look=look,
                    ),
                    few,
                ),
                "verdict",
                "accepted",
            )
            for look in (1, 3, 10)
        }
        yield {
            "row": f"schedule_{name}",
            "value": rate(false, "accepted"),
            "unit": f"false acceptance, share of {few} runs of {LOOKS} looks, pass/fail",
            "goal": 0.05,
            "better": "lower",
            "power_at_look": power,
            "peers": {},
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--only", default="", help="only the part 'errors' or 'schedules'")
    given = parser.parse_args()
    parts = {"errors": rows, "schedules": schedule_rows}
    wanted = [part for name, part in parts.items() if given.only in ("", name)]
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for row in chain.from_iterable(part(given.runs, pool) for part in wanted):
            print(json.dumps(row), flush=True)
            goal = "" if row["goal"] is None else f"  (goal {row['goal']})"
            print(f"{row['row']:<34} {row['value']:.4f}{goal}  {row['peers']}", file=sys.stderr)


if __name__ == "__main__":
    main()
