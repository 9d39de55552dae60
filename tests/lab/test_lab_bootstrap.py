"""Means over cuts, intervals over sessions."""

from __future__ import annotations

import random

import pytest

from holdfast.lab.bootstrap import _draws, differences, interval, mean


def test_every_cut_counts_the_same_and_missing_ones_do_not() -> None:
    assert mean([[1.0, 1.0, None], [0.0]]) == pytest.approx(2 / 3)
    assert mean([[None], []]) is None
    assert interval([[None]]) is None


def test_the_same_every_time() -> None:
    chance = random.Random(1)
    sessions = [[chance.random() for _ in range(3)] for _ in range(20)]
    found = interval(sessions)
    _draws.cache_clear()
    assert found == interval(sessions), "the chance is the same, not only remembered"
    assert found is not None and found.low is not None and found.high is not None
    assert found.low < found.value < found.high
    assert found.value == pytest.approx(mean(sessions))


def test_sessions_are_drawn_not_cuts() -> None:
    """Twenty equal cuts of one session say no more than one: the interval does not get narrower."""
    few = interval([[0.0], [1.0], [0.0], [1.0]])
    many = interval([[0.0] * 20, [1.0] * 20, [0.0] * 20, [1.0] * 20])
    assert few is not None and many is not None
    assert (few.low, few.high) == (many.low, many.high)


def test_too_few_sessions_have_no_interval() -> None:
    found = interval([[0.2, 0.4], [0.6]])
    assert found is not None and found.value == pytest.approx(0.4)
    assert found.low is None and found.high is None


def test_a_difference_is_of_pairs() -> None:
    hard_and_easy = [[0.1], [0.9], [0.2], [0.8]]
    better = [[value + 0.05 for value in values] for values in hard_and_easy]
    found = interval(differences(better, hard_and_easy))
    assert found is not None and found.low is not None
    assert found.low == pytest.approx(0.05), "the spread of the sessions is in both"


@pytest.mark.parametrize("others", [[[0.5]], [[0.5], [0.5, 0.5]]], ids=["a session", "a cut"])
def test_what_one_of_the_two_lacks_makes_no_pair(others: list[list[float]]) -> None:
    with pytest.raises(ValueError, match="zip"):
        differences([[0.5], [0.5]], others)


def test_a_cut_where_nothing_was_needed_makes_no_difference() -> None:
    assert differences([[0.5, None, 1.0]], [[0.25, None, 1.0]]) == [[0.25, 0.0]]
