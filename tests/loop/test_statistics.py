"""The paired test and its interval, against scipy and against what they promise."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from agent_evolve.loop.statistics import (
    EXACT_UP_TO,
    paired,
    smallest_gain,
    standard_error,
    within,
)

difference = st.integers(-8, 8).map(lambda n: n / 8)
level = st.sampled_from([0.2, 0.05, 0.02, 0.002])


@given(st.lists(difference, min_size=2, max_size=10))
@settings(max_examples=60, deadline=None)
def test_the_exact_p_is_that_of_scipys_permutation_test(differences):
    theirs = stats.permutation_test(
        (np.asarray(differences),),
        lambda x, axis: x.mean(axis=axis),
        permutation_type="samples",
        alternative="greater",
        n_resamples=np.inf,
        vectorized=True,
    )
    assert paired(differences, 0.05).p == pytest.approx(theirs.pvalue)


@given(st.lists(st.integers(-64, 64).map(lambda n: n / 64), min_size=15, max_size=40))
@settings(max_examples=15, deadline=None)
def test_the_sampled_p_is_near_that_of_scipys_permutation_test(differences):
    theirs = stats.permutation_test(
        (np.asarray(differences),),
        lambda x, axis: x.mean(axis=axis),
        permutation_type="samples",
        alternative="greater",
        n_resamples=20_000,
        vectorized=True,
        rng=np.random.default_rng(1),
    )
    assert paired(differences, 0.05).p == pytest.approx(theirs.pvalue, abs=0.02)


@given(st.lists(difference, min_size=1, max_size=30), level)
@settings(deadline=None)
def test_interval_and_p_never_contradict_each_other(differences, alpha):
    found = paired(differences, alpha)
    assert found.lower <= found.mean <= found.upper
    assert (found.lower > 0) == (found.p <= alpha)


@given(st.lists(difference, min_size=1, max_size=14), level)
@settings(deadline=None)
def test_the_ends_swap_when_the_signs_do(differences, alpha):
    found, mirrored = paired(differences, alpha), paired([-d for d in differences], alpha)
    assert (found.lower, found.upper) == pytest.approx((-mirrored.upper, -mirrored.lower))


@given(st.lists(difference, min_size=2, max_size=14), level)
@settings(deadline=None)
def test_an_end_that_is_not_shown_is_no_nearer_than_students(differences, alpha):
    found = paired(differences, alpha)
    error = np.std(differences, ddof=1) / math.sqrt(len(differences))
    width = stats.t.isf(alpha, len(differences) - 1) * error
    if found.lower <= 0:
        assert found.lower <= found.mean - width + 1e-9
    if found.upper >= 0:
        assert found.upper >= found.mean + width - 1e-9


def test_two_lost_of_ten_do_not_rule_out_a_gain():
    assert paired([-1.0, -1.0] + [0.0] * 8, 0.02).upper > 0.02


@pytest.mark.parametrize("n", range(1, EXACT_UP_TO + 1))
def test_a_gain_on_every_task_has_the_smallest_p_there_is(n):
    assert paired([0.5] * n, 0.05).p == 2.0**-n


@pytest.mark.parametrize("n", [8, 30])
def test_the_interval_covers_the_truth_as_often_as_it_says(n):
    generator = np.random.default_rng(4)
    below = above = 0
    for _ in range(1000):
        found = paired(list(generator.normal(0.1, 1, n)), 0.05)
        below += found.upper < 0.1
        above += found.lower > 0.1
    assert max(below, above) <= 50 + 3 * math.sqrt(1000 * 0.05 * 0.95)


def test_the_same_numbers_give_the_same_interval():
    values = list(np.random.default_rng(0).normal(size=60))
    assert paired(values, 0.01) == paired(values, 0.01)


def test_no_differences_are_no_evidence():
    with pytest.raises(ValueError, match="no differences"):
        paired([], 0.05)


def test_the_noise_is_that_about_each_tasks_own_mean():
    assert within([[0.0, 1.0], [1.0, 1.0], [0.5]]) == pytest.approx(0.5)
    assert within([[0.2], [0.9]]) == 0.0


def test_the_smallest_gain_is_found_as_often_as_it_says():
    generator = np.random.default_rng(2)
    noise = generator.normal(0, 0.3, 30)
    noise *= 0.3 / noise.std(ddof=1)
    gain = smallest_gain(standard_error(list(noise)), 30, 0.025, power=0.8)
    found = [
        stats.ttest_1samp(generator.normal(gain, 0.3, 30), 0, alternative="greater").pvalue <= 0.025
        for _ in range(2000)
    ]
    assert np.mean(found) == pytest.approx(0.8, abs=0.03)
    assert smallest_gain(standard_error([0.0] * 5), 5, 0.05) == 0.0
    assert math.isnan(standard_error([0.1]))
