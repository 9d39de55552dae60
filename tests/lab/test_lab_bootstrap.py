"""Means over cuts, intervals over sessions."""

from __future__ import annotations

import random

import pytest

from holdfast.lab.report import _resamples, bootstrap_interval, mean, paired_differences


def test_mean_weights_cuts_equally_and_skips_missing() -> None:
    assert mean([[1.0, 1.0, None], [0.0]]) == pytest.approx(2 / 3)
    assert mean([[None], []]) is None
    assert bootstrap_interval([[None]]) is None


def test_interval_is_deterministic() -> None:
    chance = random.Random(1)
    sessions = [[chance.random() for _ in range(3)] for _ in range(20)]
    found = bootstrap_interval(sessions)
    _resamples.cache_clear()
    assert found == bootstrap_interval(sessions), "the chance is the same, not only remembered"
    assert found is not None and found.low is not None and found.high is not None
    assert found.low < found.value < found.high
    assert found.value == pytest.approx(mean(sessions))


def test_interval_resamples_sessions_not_cuts() -> None:
    """Twenty equal cuts of one session count like one: the interval does not get narrower."""
    few = bootstrap_interval([[0.0], [1.0], [0.0], [1.0]])
    many = bootstrap_interval([[0.0] * 20, [1.0] * 20, [0.0] * 20, [1.0] * 20])
    assert few is not None and many is not None
    assert (few.low, few.high) == (many.low, many.high)


def test_interval_needs_three_sessions() -> None:
    found = bootstrap_interval([[0.2, 0.4], [0.6]])
    assert found is not None and found.value == pytest.approx(0.4)
    assert found.low is None and found.high is None


def test_differences_are_paired() -> None:
    hard_and_easy = [[0.1], [0.9], [0.2], [0.8]]
    better = [[value + 0.05 for value in values] for values in hard_and_easy]
    found = bootstrap_interval(paired_differences(better, hard_and_easy))
    assert found is not None and found.low is not None
    assert found.low == pytest.approx(0.05), "the spread of the sessions is in both"


@pytest.mark.parametrize("others", [[[0.5]], [[0.5], [0.5, 0.5]]], ids=["a session", "a cut"])
def test_differences_need_equal_cuts(others: list[list[float]]) -> None:
    with pytest.raises(ValueError, match="zip"):
        paired_differences([[0.5], [0.5]], others)


def test_differences_skip_cuts_without_needs() -> None:
    assert paired_differences([[0.5, None, 1.0]], [[0.25, None, 1.0]]) == [[0.25, 0.0]]
