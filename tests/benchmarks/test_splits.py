"""Which task goes to which split, and what a score may be."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_evolve.benchmarks.scores import checked
from agent_evolve.benchmarks.splits import split_by_hash
from agent_evolve.errors import ConfigurationError, InvalidScoreError
from agent_evolve.types import Feedback, Task

IDS = st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=8), unique=True)
SHARE = st.floats(0, 0.45)


def made(ids: list[str]) -> list[Task]:
    return [Task(one, f"input of {one}") for one in ids]


@given(ids=IDS, holdout=SHARE, test=SHARE, seed=st.integers())
def test_splits_share_no_task_lose_none_and_have_the_size_that_was_asked_for(
    ids: list[str], holdout: float, test: float, seed: int
) -> None:
    tasks = made(ids)
    parts = split_by_hash(tasks, {"holdout": holdout, "test": test}, seed)
    assert sorted(parts) == ["holdout", "test", "train"]
    assert sorted(t.id for part in parts.values() for t in part) == sorted(ids)
    assert len(parts["holdout"]) == round(holdout * len(ids))
    assert len(parts["test"]) == min(round(test * len(ids)), len(ids) - round(holdout * len(ids)))
    for part in parts.values():
        assert part == [t for t in tasks if t in part], "in the order given"


@given(ids=IDS, share=SHARE, seed=st.integers(), data=st.data())
def test_a_split_depends_on_ids_and_seed_and_not_on_the_order(
    ids: list[str], share: float, seed: int, data: st.DataObject
) -> None:
    forth = split_by_hash(made(ids), {"holdout": share}, seed)
    back = split_by_hash(made(data.draw(st.permutations(ids))), {"holdout": share}, seed)
    assert {t.id for t in forth["holdout"]} == {t.id for t in back["holdout"]}


@given(ids=IDS, new=st.text("xyz", min_size=9, max_size=9), share=SHARE, seed=st.integers())
def test_one_more_task_moves_one_task_at_most(
    ids: list[str], new: str, share: float, seed: int
) -> None:
    before = {t.id for t in split_by_hash(made(ids), {"holdout": share}, seed)["holdout"]}
    after = {t.id for t in split_by_hash(made([*ids, new]), {"holdout": share}, seed)["holdout"]}
    assert len(before - after) <= 1
    assert len(after - before - {new}) <= 1


@pytest.mark.parametrize(
    "ratios",
    [{"holdout": -0.1}, {"holdout": 1.0}, {"holdout": 0.6, "test": 0.4}, {"holdout": math.nan}],
)
def test_shares_that_leave_nothing_to_train_on_are_refused(ratios: dict[str, float]) -> None:
    with pytest.raises(ConfigurationError, match="leave something to train on"):
        split_by_hash(made(["a", "b"]), ratios, 0)


@pytest.mark.parametrize(
    ("score", "kept"), [(True, 1.0), (False, 0.0), (0, 0.0), (1, 1.0), (0.25, 0.25),
                        (Fraction(1, 2), 0.5)],
)  # fmt: skip
def test_a_score_becomes_a_float(score: Any, kept: float) -> None:
    found = checked(Feedback(True, score, "words"), "here")
    assert (found.score, type(found.score), found.detail) == (kept, float, "words")


@pytest.mark.parametrize(
    "score", [math.nan, math.inf, -math.inf, 7.5, -0.01, 1.0000001, 10**400, "1", None, [1], 1j]
)
def test_what_is_no_score_is_an_error_of_the_benchmark(score: Any) -> None:
    with pytest.raises(InvalidScoreError, match=r"Mine\.evaluate, task 'a' gave the score"):
        checked(Feedback(True, score), "Mine.evaluate, task 'a'")


@pytest.mark.parametrize("answer", [0.5, None, {"score": 1}])
def test_what_is_no_feedback_is_an_error_of_the_benchmark(answer: Any) -> None:
    with pytest.raises(InvalidScoreError, match=f"{type(answer).__name__}, not a Feedback"):
        checked(answer, "here")
