"""Curves of the learned weights."""

from __future__ import annotations

import pytest

from holdfast.ledger.scoring import LINE_MODELS, NAME_FEATURES, OWN_FEATURES, SHARED_FEATURES, line_curves, name_weights
from holdfast.ledger.weights import Curve, CurvePair, decay, load_weights, sum_curves

POINTS = [(1.0, 0.0), (2.0, 4.0), (4.0, -2.0)]


OTHER_POINTS = [(0.5, 0.0), (2.0, 1.0), (3.0, 0.0)]


@pytest.mark.parametrize(
    ("value", "adds", "adds_other"),
    [
        (0.0, 0.0, 0.0),
        (1.0, 0.0, 1 / 3),
        (1.5, 2.0, 2 / 3),
        (2.0, 4.0, 1.0),
        (2.5, 2.5, 0.5),
        (3.0, 1.0, 0.0),
        (4.0, -2.0, 0.0),
        (9.0, -2.0, 0.0),
    ],
)
def test_curves_are_linear_between_points_and_constant_beyond(value: float, adds: float, adds_other: float) -> None:
    pair = CurvePair.of(Curve.of(POINTS), Curve.of(OTHER_POINTS))
    assert sum_curves([pair], [value]) == pytest.approx((adds, adds_other))


def test_curve_of_single_weight_is_linear() -> None:
    pairs = [CurvePair.of(Curve.of(0.5), Curve.of(POINTS)), CurvePair.of(Curve.of(POINTS), Curve.of(-1.0))]
    assert sum_curves(pairs, [-3.0, 2.0]) == pytest.approx((2.5, -2.0))


def test_weights_exist_for_every_feature_of_names() -> None:
    assert set(load_weights()) == {"names", *LINE_MODELS}
    assert len(name_weights()) == len(NAME_FEATURES) == len(load_weights()["names"])


@pytest.mark.parametrize("model", LINE_MODELS)
def test_curves_exist_for_every_feature_of_lines(model: str) -> None:
    curves = line_curves(model, (*SHARED_FEATURES, *OWN_FEATURES))
    assert all(list(curve.ends) == sorted(set(curve.ends)) for curve in curves)
    assert set(load_weights()[model]) == {*SHARED_FEATURES, *OWN_FEATURES}


@pytest.mark.parametrize("age", [-30, -5, -1, 0])
def test_what_is_newer_than_the_clock_is_as_young_as_can_be(age: int) -> None:
    """At -5 of 5 it was a division by zero: a note that is read back may be newer than the messages read so far."""
    assert decay(age, 5) == 1.0
