"""The gate: what it asks for, what it decides, and how often it is wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_evolve.loop.gate import (
    Decision,
    Gate,
    NoGate,
    NoRegression,
    PairedGate,
    Run,
    make_gate,
)
from agent_evolve.loop.judge import judge

score = st.floats(0, 1, allow_nan=False)
Score = Callable[[str, int], float | None]


@dataclass
class Asked:
    """Scores by a function of task and seed, and what was asked of it."""

    of: Score

    def __post_init__(self) -> None:
        self.runs: list[Run] = []

    def __call__(self, runs):
        self.runs += runs
        return {run: self.of(*run) for run in runs}


def decide(
    gate: Gate, head: Score, candidate: Score, *, n: int = 30, look: int = 1, shrinks: bool = False
) -> tuple[Decision, Asked]:
    arms = Asked(head), Asked(candidate)
    tasks = [f"t{i}" for i in range(n)]
    decision = judge(gate, tasks, *arms, look=look, shrinks=shrinks, seed=0)
    return decision, arms[1]


def noisy(mean: float, arm: int, noise: float = 0.2) -> Score:
    def of(task: str, seed: int) -> float:
        generator = np.random.default_rng([int(task[1:]), seed, arm])
        return float(np.clip(generator.normal(mean, noise), 0, 1))

    return of


def number(task: str) -> int:
    return int(task[1:])


# -- none and no_regression ------------------------------------------------------------------


def test_no_gate_asks_for_nothing():
    decision, asked = decide(NoGate(), noisy(0.5, 0), noisy(0.1, 1))
    assert (decision.verdict, asked.runs) == ("ungated", [])


@given(st.lists(st.tuples(score, score), min_size=1, max_size=12))
def test_no_regression_keeps_only_what_is_not_lower(pairs):
    decision, asked = decide(
        NoRegression(),
        lambda task, seed: pairs[number(task)][0],
        lambda task, seed: pairs[number(task)][1],
        n=len(pairs),
    )
    assert (decision.verdict == "accepted") == (decision.candidate_mean >= decision.head_mean)
    assert len(asked.runs) == len(pairs)


@pytest.mark.parametrize("gate", [NoRegression(0.3), PairedGate(min_valid=0.3)])
def test_invalid_runs_are_left_out_on_both_sides(gate):
    decision, _ = decide(
        gate,
        lambda task, seed: None if number(task) == 2 else 0.0,
        lambda task, seed: None if number(task) == 1 else 1.0,
        n=12,
    )
    assert (decision.verdict, decision.valid, decision.total) == ("accepted", 10, 12)
    assert (decision.head_mean, decision.candidate_mean) == (0.0, 1.0)


def test_a_candidate_gains_nothing_by_making_its_own_runs_invalid():
    def head(task: str, seed: int) -> float:
        return float(number(task) < 15)

    def evasive(task: str, seed: int) -> float | None:
        if number(task) < 10:
            return None  # what the head can do ends as an outage
        return 1.0 if number(task) < 24 else 0.0

    decision, _ = decide(PairedGate(), head, evasive)
    assert decision.verdict == "cannot_tell"
    assert "10 tasks have no valid run of the candidate only" in decision.reason

    def unlucky(task: str, seed: int) -> float | None:
        return None if number(task) == 3 else 1.0

    assert decide(PairedGate(), head, unlucky)[0].verdict == "accepted"


@pytest.mark.parametrize("gate", [NoRegression(), PairedGate()])
def test_too_few_valid_pairs_accept_nothing(gate):
    decision, _ = decide(gate, lambda t, s: 0.0, lambda t, s: 1.0 if number(t) < 5 else None, n=12)
    assert decision.verdict == "unmeasured"
    assert "5 of 12" in decision.reason


def test_an_unknown_gate_is_an_error():
    with pytest.raises(ValueError, match="paired, no_regression, none"):
        make_gate("best")


# -- paired ----------------------------------------------------------------------------------


def test_a_clear_gain_is_accepted_before_all_repeats_are_bought():
    decision, asked = decide(PairedGate(), noisy(0.2, 0), noisy(0.8, 1))
    assert decision.verdict == "accepted"
    assert decision.lower > 0
    assert len(asked.runs) == 30
    assert {change.fate for change in decision.tasks} >= {"fixed"}


def test_a_clear_loss_is_rejected_after_a_part_of_the_tasks():
    decision, asked = decide(PairedGate(), noisy(0.8, 0), noisy(0.2, 1))
    assert (decision.verdict, decision.stopped_early) == ("rejected", True)
    assert decision.upper < 0
    assert len(asked.runs) == 10


def test_noise_is_told_apart_from_no_gain():
    verdicts = {
        decide(PairedGate(), noisy(0.5, 2 * i, 0.4), noisy(0.5, 2 * i + 1, 0.4))[0].verdict
        for i in range(40)
    }
    assert "cannot_tell" in verdicts


def test_a_change_without_effect_and_without_noise_is_decided_by_size():
    def fixed(task: str, seed: int) -> float:
        return float(number(task) % 2)

    smaller, asked = decide(PairedGate(), fixed, fixed, shrinks=True)
    assert smaller.verdict == "accepted"
    assert len(asked.runs) == 60  # the second repeat shows that there is no noise
    larger, _ = decide(PairedGate(), fixed, fixed)
    assert larger.verdict == "rejected"
    assert "not smaller" in larger.reason


def test_a_gain_without_noise_needs_no_third_repeat():
    decision, asked = decide(
        PairedGate(), lambda t, s: 0.0, lambda t, s: float(number(t) < 7), n=30
    )
    assert decision.verdict == "accepted"
    assert len(asked.runs) == 60
    assert sum(change.fate == "fixed" for change in decision.tasks) == 7


def test_a_gain_below_the_minimum_effect_is_no_gain():
    decision, _ = decide(PairedGate(min_effect=0.05), lambda t, s: 0.5, lambda t, s: 0.51)
    assert decision.verdict == "rejected"
    assert decision.lower > 0


def test_a_task_that_seems_broken_is_measured_again_before_it_counts():
    def unlucky(task: str, seed: int) -> float:
        return 0.0 if number(task) == 3 and seed < 3 else 1.0

    def broken(task: str, seed: int) -> float:
        return 0.0 if number(task) == 3 else 1.0

    def head(task: str, seed: int) -> float:
        return 1.0 if number(task) < 15 else 0.0

    gate = PairedGate(max_broken=0)
    passed, asked = decide(gate, head, unlucky)
    assert passed.verdict == "accepted"
    assert ("t3", 3) in asked.runs
    refused, _ = decide(gate, head, broken)
    assert refused.verdict == "rejected"
    report = {change.task: change for change in refused.tasks}["t3"]
    assert (report.fate, report.confirmed) == ("broke", True)
    assert decide(PairedGate(), head, broken)[0].verdict == "accepted"


def test_breaking_tasks_for_no_gain_is_rejected_and_names_no_task_in_the_sentence():
    lost, won = (4, 20), (5, 21)
    decision, _ = decide(
        PairedGate(),
        lambda t, s: float(number(t) not in won),
        lambda t, s: float(number(t) not in lost),
    )
    assert decision.verdict == "rejected"
    assert "2 broke, in fresh runs again" in decision.reason
    assert "t4" not in decision.reason
    assert [c.task for c in decision.tasks if c.confirmed] == ["t20", "t4"]


@pytest.mark.parametrize("n", [2, 5])
def test_too_few_tasks_to_show_anything_are_not_measured(n):
    decision, asked = decide(PairedGate(), lambda t, s: 0.0, lambda t, s: 1.0, n=n)
    assert (decision.verdict, asked.runs) == ("cannot_tell", [])
    assert "add holdout tasks" in decision.reason


@pytest.mark.parametrize("repeats", [1, 3])
def test_the_fewest_tasks_are_enough_for_a_gain_on_each(repeats):
    gate = PairedGate(repeats=repeats)
    fewest = gate.fewest()
    decision, _ = decide(gate, lambda t, s: 0.0, lambda t, s: 1.0, n=fewest)
    assert decision.verdict == "accepted"


def test_every_look_is_given_less_and_all_together_the_level():
    gate = PairedGate()
    levels = [gate.level(k) for k in range(1, 10_001)]
    assert levels == sorted(levels, reverse=True)
    assert sum(levels) == pytest.approx(0.05, rel=1e-3)


@given(
    n=st.integers(6, 40),
    repeats=st.integers(1, 5),
    look=st.integers(1, 30),
    seed=st.integers(0, 10_000),
    gain=st.floats(-0.5, 0.5),
    lost=st.floats(0, 0.5),
)
@settings(max_examples=150, deadline=None)
def test_whatever_the_scores_it_ends_and_says_what_it_rests_on(n, repeats, look, seed, gain, lost):
    generator = np.random.default_rng(seed)

    def arm(mean: float) -> Score:
        def of(task: str, turn: int) -> float | None:
            if generator.random() < lost:
                return None
            return float(generator.random() < mean)

        return of

    gate = PairedGate(repeats=repeats)
    decision, asked = decide(gate, arm(0.5), arm(0.5 + gain), n=n, look=look)
    assert len(asked.runs) == len(set(asked.runs)) <= 2 * n * repeats
    assert decision.reason
    if decision.verdict == "accepted":
        assert decision.gain > 0
        assert decision.lower > 0
        assert decision.p <= gate.level(look)
    if decision.gain is not None:
        assert decision.gain == pytest.approx(decision.candidate_mean - decision.head_mean)


@pytest.mark.slow
@pytest.mark.parametrize("passing", [True, False])
def test_a_change_of_bytes_only_is_accepted_in_at_most_five_percent_of_twenty_looks(passing):
    accepted = 0
    for run in range(300):
        generator = np.random.default_rng(run)
        means = generator.beta(0.8, 0.8, 30)
        known: dict[tuple[int, Run], float] = {}

        def arm(side: int, means=means, known=known, generator=generator) -> Score:
            def of(task: str, turn: int) -> float:
                mean = means[number(task)]
                drawn = generator.random() < mean if passing else generator.normal(mean, 0.3)
                return known.setdefault((side, (task, turn)), float(np.clip(drawn, 0, 1)))

            return of

        accepted += any(
            decide(PairedGate(), arm(0), arm(look), look=look)[0].verdict == "accepted"
            for look in range(1, 21)
        )
    assert accepted <= 15 + 2 * 3.8  # 5 % and two standard errors
